//! A reader of TOML tables that knows the line of each value.
//!
//! A table is opened with all the keys that it may have. So a misspelt key is reported rather than
//! the absence of the key that was meant. Keys that a file does not have come from the class of
//! processors that it names with `processors = "..."`, and then from its base, the built-in profile
//! that it names with `base = "..."`.

use core::iter;

use blockyard::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::base::{self, BASE, Bases, PROCESSORS};
use super::builtin::{Builtin, is_path};
use super::error::{Problem, ProfileError};
use super::source::Source;
use super::syntax;
use super::value::{InRange, Kind, OneOf, Text, unsuitable, written};

/// The keys at the top of a file that describe this profile only, so they never come from a base.
const OWN: &[&str] = &["title", "origin"];

/// The keys of a figure with its origin.
const FIGURE: &[&str] = &["value", "origin", "range"];

/// A table of a file, together with the same table of the file's base.
pub(crate) struct Table<'a> {
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

/// Declares the keys of the table at a path, and a function that reads it from its parent. Each
/// field has one line: its name, its key, and the method of [`Table`] that reads the value. An
/// `optional` table that neither the file nor its base has is `None`.
macro_rules! table_of {
    (
        $keys:ident, $(#[$doc:meta])* $vis:vis fn $read:ident($path:literal) -> $type:ident {
            $($field:ident: $key:literal $method:ident($($argument:expr),*),)*
        }
    ) => {
        const $keys: &[&str] = &[$($key),*];

        $(#[$doc])*
        $vis fn $read(parent: &Table<'_>) -> Result<$type, ProfileError> {
            let table = parent.table($path, $keys)?;
            Ok($type { $($field: table.$method($key, $($argument),*)?),* })
        }
    };
    (
        $keys:ident, optional fn $read:ident($path:literal) -> $type:ident {
            $($field:ident: $key:literal $method:ident($($argument:expr),*),)*
        }
    ) => {
        const $keys: &[&str] = &[$($key),*];

        fn $read(parent: &Table<'_>) -> Result<Option<$type>, ProfileError> {
            let table = parent.table($path, $keys)?;
            if table.is_empty() {
                return Ok(None);
            }
            Ok(Some($type { $($field: table.$method($key, $($argument),*)?),* }))
        }
    };
}
pub(crate) use table_of;

/// What a file may build on.
#[derive(Clone, Copy)]
pub(crate) struct Choices<'a> {
    /// The profiles that `base` may name.
    pub(crate) bases: &'static [Builtin],
    /// The classes that `processors` may name.
    pub(crate) processors: &'static [Builtin],
    /// The files that `base` names by their paths.
    pub(crate) files: &'a Bases,
}

impl Choices<'_> {
    /// For a file that stands alone.
    pub(crate) const NONE: Self = Self { bases: &[], processors: &[], files: &base::NONE };
}

impl<'a> Table<'a> {
    /// Reads a whole file whose top level may have the keys `known`, and what it builds on among
    /// `choices`.
    pub(crate) fn open(
        source: Source<'a>,
        known: &'static [&'static str],
        choices: Choices<'a>,
    ) -> Result<Self, ProfileError> {
        Self::open_after(0, source, known, choices)
    }

    /// Reads a whole file, after so many files that build on it.
    fn open_after(
        before: usize,
        source: Source<'a>,
        known: &'static [&'static str],
        choices: Choices<'a>,
    ) -> Result<Self, ProfileError> {
        let mut table = Self::top(source, known)?;
        if known.contains(&BASE) {
            let file = match table.take(BASE, Text)? {
                Some(path) if is_path(&path) => choices.files.get(before, source.notes),
                Some(_) => table.builtin(BASE, choices.bases)?,
                None => None,
            };
            let below = |file| Self::open_after(before + 1, file, known, choices);
            table.base = file.map(below).transpose()?.map(Self::without_own);
        }
        // The class of processors comes after the file and before its base.
        if known.contains(&PROCESSORS)
            && let Some(class) = table.builtin(PROCESSORS, choices.processors)?
        {
            let mut class = Self::without_own(Self::top(class, known)?);
            class.base = table.base.take();
            table.base = Some(class);
        }
        Ok(table)
    }

    /// Returns the one of `choices` that `key` of the file itself names.
    fn builtin(
        &self,
        key: &str,
        choices: &'static [Builtin],
    ) -> Result<Option<Source<'a>>, ProfileError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let name = self.read(key, value, Text)?;
        let Some(builtin) = choices.iter().find(|builtin| builtin.name == name) else {
            let known = choices.iter().map(|builtin| builtin.name).collect();
            let problem = Problem::UnknownProfile { key: key.to_owned(), value: name, known };
            return Err(self.source.wrong(value.span().start, problem));
        };
        Ok(Some(builtin.source(self.source.notes)))
    }

    /// Returns a file without what describes that profile only.
    fn without_own(mut file: Self) -> Box<Self> {
        OWN.iter().for_each(|key| drop(file.entries.remove(*key)));
        Box::new(file)
    }

    /// Returns the whole file `source` with this one as its base, whose keys it may have. It names
    /// no base itself.
    pub(crate) fn under(self, source: Source<'a>) -> Result<Self, ProfileError> {
        let table = Self::top(source, self.known)?;
        debug_assert!(!table.has(BASE), "a file has one base");
        Ok(Self { base: Some(Box::new(self)), ..table })
    }

    /// Reads a whole file without a base.
    fn top(source: Source<'a>, known: &'static [&'static str]) -> Result<Self, ProfileError> {
        let entries = DeTable::parse(source.text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            source.wrong(offset, syntax::problem(source.text, &error))
        })?;
        let entries = entries.into_inner();
        debug_assert!(!known.is_empty(), "a table without keys");
        source.notes.open("", known);
        let table = Self { source, path: "", offset: 0, entries, known, base: None };
        table.check_keys()?;
        Ok(table)
    }

    /// Returns the table at `path`, whose last part is the key in this table. It may have the keys
    /// `known`, and is empty if neither the file nor its base has it.
    pub(crate) fn table(
        &self,
        path: &'static str,
        known: &'static [&'static str],
    ) -> Result<Self, ProfileError> {
        let key = path.rsplit('.').next().unwrap_or(path);
        debug_assert!(path.starts_with(self.path), "{path} is not within {}", self.path);
        self.source.notes.open(path, known);
        let mut table = match self.value(key) {
            Some(value) => self.part(path, key, value, known)?,
            None => Self { path, known, entries: DeTable::new(), base: None, ..*self },
        };
        if let Some(base) = &self.base {
            table.base = Some(Box::new(base.table(path, known)?));
        }
        Ok(table)
    }

    /// Returns the tables of the array `[[key]]`, each of which may have the keys `known`.
    pub(crate) fn tables(
        &self,
        key: &'static str,
        known: &'static [&'static str],
    ) -> Result<Vec<Self>, ProfileError> {
        let Some(value) = self.value(key) else { return Ok(Vec::new()) };
        let DeValue::Array(parts) = value.get_ref() else {
            let given = value.get_ref().type_str().to_owned();
            let wanted = "an array of tables, each begun by `[[...]]`";
            let problem = Problem::Unsuitable { key: key.to_owned(), given, wanted, instead: None };
            return Err(self.wrong(key, problem));
        };
        parts.iter().map(|part| self.part(key, key, part, known)).collect()
    }

    /// Returns the value of `key`, from the file or else from its base.
    pub(crate) fn take<K: Kind>(&self, key: &str, kind: K) -> Result<Option<K::Out>, ProfileError> {
        let Some(value) = self.value(key) else {
            return self.base.as_ref().map_or(Ok(None), |base| base.take(key, kind));
        };
        if !K::FIGURE || !value.get_ref().is_table() {
            return self.read(key, value, kind).map(Some);
        }
        self.take_figure(key, value, &kind).map(Some)
    }

    /// Returns the value of a figure: the stated one, or the one of this reading.
    fn take_figure<K: Kind>(
        &self,
        key: &str,
        figure: &Spanned<DeValue<'a>>,
        kind: &K,
    ) -> Result<K::Out, ProfileError> {
        let figure = self.part("", key, figure, FIGURE)?;
        let origin = figure.need("origin", Text)?;
        let stated = figure.value("value").ok_or_else(|| figure.missing("value"))?;
        let at = stated.span().start;
        let wrong = |problem| self.source.wrong(at, problem);
        let value = kind.read(key, stated.get_ref()).map_err(wrong)?;
        let range = figure.value("range").map(|range| match range.get_ref() {
            DeValue::Array(ends) if ends.len() == 2 => Ok([0, 1].map(|end| ends[end].get_ref())),
            other => Err(wrong(unsuitable("range", other, "a lowest and a highest value"))),
        });
        let range = range.transpose()?;
        let words = range.map(|ends| ends.map(written));
        let moves_with = self.full(kind.moves_with(key));
        let place = self.source.notes.add(self.full(key), &moves_with, origin, words);
        let Some([low, high]) = range else { return Ok(value) };
        let stated = stated.get_ref();
        let at_place = place.unwrap_or_default();
        let range = InRange { key, low, high, stated, place: at_place };
        let varied = kind.vary(&range).map_err(wrong)?;
        Ok(if place.is_some() { varied } else { value })
    }

    /// Returns `key` after the path of the table: `flash.read`.
    fn full(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Returns the value of `key` that the file itself states, and not its base.
    pub(crate) fn own<K: Kind>(&self, key: &str, kind: K) -> Result<Option<K::Out>, ProfileError> {
        if self.has(key) { self.take(key, kind) } else { Ok(None) }
    }

    /// Returns the value of the required `key`, as [`Self::take`] does.
    pub(crate) fn need<K: Kind>(&self, key: &str, kind: K) -> Result<K::Out, ProfileError> {
        self.take(key, kind)?.ok_or_else(|| self.missing(key))
    }

    /// Returns the value of `key`, or `usual` if neither the file nor its base has the key.
    pub(crate) fn take_or<K: Kind>(
        &self,
        key: &str,
        kind: K,
        usual: K::Out,
    ) -> Result<K::Out, ProfileError> {
        Ok(self.take(key, kind)?.unwrap_or(usual))
    }

    /// Whether the file itself has `key`, rather than its base.
    pub(crate) fn has(&self, key: &str) -> bool {
        debug_assert!(self.known.contains(&key), "`{key}` is not among the keys of {}", self.path);
        self.entries.contains_key(key)
    }

    /// Whether neither the file nor its base has any key of the table.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.base.as_ref().is_none_or(|base| base.is_empty())
    }

    /// Reads the table of `key` by `read`, which opens it.
    pub(crate) fn by<T>(
        &self,
        key: &str,
        read: impl FnOnce(&Self) -> Result<T, ProfileError>,
    ) -> Result<T, ProfileError> {
        debug_assert!(self.known.contains(&key), "`{key}` is not among the keys of {}", self.path);
        read(self)
    }

    /// Returns this table and the same table of each file on which its file builds, the nearest
    /// first.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Self> {
        iter::successors(Some(self), |table| table.base.as_deref())
    }

    /// Returns the error `problem` at the line of `key`, or at the line of the table if the file
    /// itself lacks the key.
    pub(crate) fn wrong(&self, key: &str, problem: Problem) -> ProfileError {
        self.source.wrong(self.offset_of(key), problem)
    }

    /// Returns the first of `keys` that the file itself has; the first one if it has none.
    pub(crate) fn given<'k>(&self, keys: &[&'k str]) -> &'k str {
        debug_assert!(!keys.is_empty(), "no keys of {}", self.path);
        keys.iter().copied().find(|key| self.has(key)).unwrap_or(keys[0])
    }

    /// Returns the value that the file or its base states for `key`, as it writes it. Empty if
    /// neither has the key.
    pub(crate) fn stated(&self, key: &str) -> String {
        let value = self.files().find_map(|file| file.value(key)).map(Spanned::get_ref);
        let value = value.map(|value| value.get("value").map_or(value, Spanned::get_ref));
        value.map_or_else(String::new, written)
    }

    /// Returns those of `words` that `key` has in some reading: the words of its range, or the
    /// stated one. None if neither the file nor its base has the key.
    pub(crate) fn span<'w, T>(
        &self,
        key: &str,
        words: &'w [(&'static str, T)],
    ) -> Result<&'w [(&'static str, T)], ProfileError> {
        let Some((file, value)) = self.files().find_map(|file| Some((file, file.value(key)?)))
        else {
            return Ok(&[]);
        };
        let value = value.get_ref();
        let stated = value.get("value").map_or(value, Spanned::get_ref);
        let ends = match value.get("range").map(Spanned::get_ref) {
            Some(DeValue::Array(ends)) if ends.len() == 2 => [0, 1].map(|end| ends[end].get_ref()),
            _ => [stated; 2],
        };
        let places = OneOf(words).places(key, ends).map_err(|problem| file.wrong(key, problem))?;
        Ok(&words[places])
    }

    /// Returns the nearest file that states `key`, unless a nearer one states `decides`, on which
    /// it depends whether `key` is used.
    pub(crate) fn stated_with(&self, key: &str, decides: &str) -> Option<&Self> {
        let nearest = self.files().find(|file| file.has(key) || file.has(decides));
        nearest.filter(|file| file.has(key))
    }

    /// Whether figures have values from their ranges, rather than the stated ones.
    pub(crate) fn is_reading(&self) -> bool {
        self.source.notes.is_reading()
    }

    /// Checks that the time of the first key is not longer than that of the second.
    pub(crate) fn not_longer(
        &self,
        (key, time): (&str, Duration),
        (bound, most): (&str, Duration),
    ) -> Result<(), ProfileError> {
        if time <= most {
            return Ok(());
        }
        let given = self.stated(key);
        let limit = self.stated(bound);
        let words = format!(
            "`{key}` is `{given}`, longer than `{bound}`, `{limit}`: lower `{key}` or raise `{bound}`"
        );
        Err(self.wrong(self.given(&[key, bound]), Problem::Unfit(words)))
    }

    /// Returns the line of `key`, from 1, or the line of the table if the file itself lacks the
    /// key.
    pub(crate) fn line_of(&self, key: &str) -> usize {
        self.source.line(self.offset_of(key))
    }

    fn offset_of(&self, key: &str) -> usize {
        self.entries.get_key_value(key).map_or(self.offset, |(key, _)| key.span().start)
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

    /// Returns `value` of `key`, which must be a table, as a table with the keys `known`.
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
            let key = key.to_owned();
            let wanted = "a table";
            let problem = Problem::Unsuitable { key, given, wanted, instead: None };
            return Err(self.source.wrong(offset, problem));
        };
        let entries = entries.clone();
        let table = Self { source: self.source, path, offset, entries, known, base: None };
        table.check_keys()?;
        Ok(table)
    }
}
