//! A reader over a TOML table that knows where each value stands.
//!
//! A table is opened with all the keys it may have, so that a misspelt key is told before the key
//! it was meant for is missed. What a file does not say is asked of its base, the built-in profile
//! it names with `base = "..."`.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::builtin::Builtin;
use super::error::{Problem, ProfileError};
use super::source::Source;
use super::value::{Kind, OneOf, Text};

/// The key that names the profile a file builds on.
const BASE: &str = "base";
/// The keys at the top of a file that describe this profile only, so that no base answers for them.
const OWN: &[&str] = &["title", "origin"];

/// The keys of a figure that states where it comes from.
const FIGURE: &[&str] = &["value", "origin"];

/// A table of a file, with the same table of the file's base below it.
pub(super) struct Table<'a> {
    source: Source<'a>,
    /// `queue.deadline`; empty for the whole file.
    path: &'static str,
    /// The byte at which the table begins.
    offset: usize,
    entries: DeTable<'a>,
    /// The keys the table may have.
    known: &'static [&'static str],
    base: Option<Box<Table<'a>>>,
}

impl<'a> Table<'a> {
    /// Reads a whole file whose top may have the keys `known`, over the base it names among
    /// `builtins`.
    pub(super) fn open(
        source: Source<'a>,
        known: &'static [&'static str],
        builtins: &'static [Builtin],
    ) -> Result<Self, ProfileError> {
        let entries = DeTable::parse(source.text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            source.wrong(offset, Problem::Syntax(error.message().to_owned()))
        })?;
        let entries = entries.into_inner();
        let mut table = Self { source, path: "", offset: 0, entries, known, base: None };
        table.check_keys()?;
        if !known.contains(&BASE) {
            return Ok(table);
        }
        let names: Vec<_> = builtins.iter().map(|builtin| (builtin.name, builtin)).collect();
        if let Some(base) = table.take(BASE, OneOf(&names))? {
            let mut base = Self::open(base.source(), known, builtins)?;
            OWN.iter().for_each(|key| drop(base.entries.remove(*key)));
            table.base = Some(Box::new(base));
        }
        Ok(table)
    }

    /// The table at `path` (whose last part is the key here), which may have the keys `known`.
    /// Empty where neither the file nor its base has it.
    pub(super) fn table(
        &self,
        path: &'static str,
        known: &'static [&'static str],
    ) -> Result<Self, ProfileError> {
        let key = path.rsplit('.').next().unwrap_or(path);
        let mut table = match self.value(key) {
            Some(value) => self.part(path, key, value, known)?,
            None => Self { path, known, entries: DeTable::new(), base: None, ..*self },
        };
        if let Some(base) = &self.base {
            table.base = Some(Box::new(base.table(path, known)?));
        }
        Ok(table)
    }

    /// The tables of the array `[[key]]`, each of which may have the keys `known`; none where the
    /// file has none.
    pub(super) fn tables(
        &self,
        key: &'static str,
        known: &'static [&'static str],
    ) -> Result<Vec<Self>, ProfileError> {
        let Some(value) = self.value(key) else { return Ok(Vec::new()) };
        let DeValue::Array(parts) = value.get_ref() else {
            let given = value.get_ref().type_str().to_owned();
            let wanted = "an array of tables, each begun by `[[...]]`";
            return Err(self.wrong(key, Problem::Unsuitable { key: key.to_owned(), given, wanted }));
        };
        parts.iter().map(|part| self.part(key, key, part, known)).collect()
    }

    /// The value of `key`, here or in the base.
    pub(super) fn take<K: Kind>(&self, key: &str, kind: K) -> Result<Option<K::Out>, ProfileError> {
        let Some(value) = self.value(key) else {
            return self.base.as_ref().map_or(Ok(None), |base| base.take(key, kind));
        };
        if !K::FIGURE || !value.get_ref().is_table() {
            return self.read(key, value, kind).map(Some);
        }
        let figure = self.part("", key, value, FIGURE)?;
        figure.need("origin", Text)?;
        let value = figure.value("value").ok_or_else(|| figure.missing("value"))?;
        self.read(key, value, kind).map(Some)
    }

    /// As [`Self::take`], of a key that has to be there.
    pub(super) fn need<K: Kind>(&self, key: &str, kind: K) -> Result<K::Out, ProfileError> {
        self.take(key, kind)?.ok_or_else(|| self.missing(key))
    }

    /// Whether the file itself, not its base, has `key`.
    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// Whether neither the file nor its base has any key of the table.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.base.as_ref().is_none_or(|base| base.is_empty())
    }

    /// The same table of the base.
    pub(super) fn base(&self) -> Option<&Self> {
        self.base.as_deref()
    }

    /// The error `problem` at the line of `key`, or of the table where the file itself lacks it.
    pub(super) fn wrong(&self, key: &str, problem: Problem) -> ProfileError {
        self.source.wrong(self.offset_of(key), problem)
    }

    /// The line of `key`, from 1, or of the table where the file itself lacks it.
    pub(super) fn line_of(&self, key: &str) -> usize {
        self.source.line(self.offset_of(key))
    }

    fn offset_of(&self, key: &str) -> usize {
        self.entries.get_key_value(key).map_or(self.offset, |(key, _)| key.span().start)
    }

    /// Refuses `key` where it has one of `values` (any value where there are none): names kept
    /// for what is to come.
    pub(super) fn not_built(&self, key: &str, values: &[&str]) -> Result<(), ProfileError> {
        let Some(value) = self.entries.get(key) else { return Ok(()) };
        let what = match value.get_ref().as_str() {
            _ if values.is_empty() => format!("`{key}`"),
            Some(word) if values.contains(&word) => format!("`{key} = \"{word}\"`"),
            _ => return Ok(()),
        };
        Err(self.wrong(key, Problem::NotBuilt(what)))
    }

    fn value(&self, key: &str) -> Option<&Spanned<DeValue<'a>>> {
        debug_assert!(self.known.contains(&key), "`{key}` is not among the keys of {}", self.path);
        self.entries.get(key)
    }

    fn missing(&self, key: &str) -> ProfileError {
        let problem = Problem::MissingKey { key: key.to_owned(), table: self.path };
        self.source.wrong(self.offset, problem)
    }

    fn check_keys(&self) -> Result<(), ProfileError> {
        let unknown = self.entries.keys().find(|key| !self.known.contains(&key.get_ref().as_ref()));
        unknown.map_or(Ok(()), |key| {
            let problem = Problem::UnknownKey {
                key: key.get_ref().to_string(),
                table: self.path,
                known: self.known,
            };
            Err(self.source.wrong(key.span().start, problem))
        })
    }

    fn read<K: Kind>(
        &self,
        key: &str,
        value: &Spanned<DeValue<'a>>,
        kind: K,
    ) -> Result<K::Out, ProfileError> {
        let read = kind.read(key, value.get_ref());
        read.map_err(|problem| self.source.wrong(value.span().start, problem))
    }

    /// The table that `value`, which `key` has, must be, with the keys `known`.
    fn part(
        &self,
        path: &'static str,
        key: &str,
        value: &Spanned<DeValue<'a>>,
        known: &'static [&'static str],
    ) -> Result<Self, ProfileError> {
        let offset = value.span().start;
        let DeValue::Table(entries) = value.get_ref() else {
            let given = value.get_ref().type_str().to_owned();
            let problem = Problem::Unsuitable { key: key.to_owned(), given, wanted: "a table" };
            return Err(self.source.wrong(offset, problem));
        };
        let entries = entries.clone();
        let table = Self { source: self.source, path, offset, entries, known, base: None };
        table.check_keys()?;
        Ok(table)
    }
}
