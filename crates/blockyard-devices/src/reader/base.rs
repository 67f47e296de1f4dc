//! Files on which a profile builds: `base = "file.toml"`.

use std::path::Path;

use toml::de::DeTable;

use super::builtin::is_path;
use super::error::{Problem, ProfileError};
use super::reading::Notes;
use super::source::{Source, read};

/// The key that names the base of a file.
pub(crate) const BASE: &str = "base";
/// The key that names the processors of a file's machine.
pub(crate) const PROCESSORS: &str = "processors";
/// The largest number of files that build on each other.
const FILES_MAX: usize = 8;

/// The files on which a profile builds, the nearest first.
#[derive(Debug, Default)]
pub(crate) struct Bases(Vec<File>);

/// No files.
pub(crate) static NONE: Bases = Bases(Vec::new());

/// The path of a file, and its text.
#[derive(Debug)]
struct File {
    path: String,
    text: String,
}

impl Bases {
    /// Reads the files on which `text` builds, whose own file is `name`. A path is relative to the
    /// file that has it.
    pub(crate) fn of(name: &str, text: &str) -> Result<Self, ProfileError> {
        let mut files: Vec<File> = Vec::new();
        loop {
            let (name, text) =
                files.last().map_or((name, text), |file| (file.path.as_str(), file.text.as_str()));
            let Some(path) = named_in(text, BASE).filter(|base| is_path(base)) else {
                return Ok(Self(files));
            };
            if files.len() == FILES_MAX {
                let words = "more than 8 files build on each other: perhaps in a circle";
                return Err(wrong_base(name, text, Problem::Contradiction(words)));
            }
            let folder = Path::new(name).parent().unwrap_or(Path::new(""));
            let path = folder.join(path).to_string_lossy().into_owned();
            let text = read(&path).map_err(|error| match error {
                // The line to repair may be the one that names the base: `base = "mq-dead/ine"`.
                ProfileError::Unreadable { .. } | ProfileError::TooLong { .. } => {
                    wrong_base(name, text, Problem::Base(error.to_string()))
                }
                error => error,
            })?;
            files.push(File { path, text });
        }
    }

    /// Returns the file on which the one after `before` others builds.
    pub(crate) fn get<'a>(&'a self, before: usize, notes: &'a Notes) -> Option<Source<'a>> {
        self.0.get(before).map(|file| Source::new(&file.path, &file.text, notes))
    }

    /// Returns the texts, the nearest first.
    pub(crate) fn into_texts(self) -> impl Iterator<Item = String> {
        self.0.into_iter().map(|file| file.text)
    }
}

/// Returns the error `problem` at the line of the file `name` that names its base.
fn wrong_base(name: &str, text: &str, problem: Problem) -> ProfileError {
    let top = DeTable::parse(text).ok();
    let key = top.as_ref().and_then(|top| top.get_ref().get_key_value(BASE));
    let at = key.map_or(0, |(key, _)| key.span().start);
    Source::new(name, text, &Notes::default()).wrong(at, problem)
}

/// Returns `error` about the file `text`. If the file lacks something and names no base, the error
/// names one: the first of `bases`, each with a table of its own, whose table the file has, or else
/// `usual`.
pub(crate) fn with_base(
    error: ProfileError,
    text: &str,
    bases: &[(&str, &'static str)],
    usual: &'static str,
) -> ProfileError {
    debug_assert!(!usual.is_empty() && !is_path(usual), "`{usual}` is no name");
    match (error, DeTable::parse(text)) {
        (ProfileError::Wrong { file, line, problem }, Ok(top))
            if is_lack(&problem) && !top.get_ref().contains_key(BASE) =>
        {
            let found = bases.iter().find(|(table, _)| top.get_ref().contains_key(*table));
            let base = found.map_or(usual, |(_, base)| base);
            let problem = Problem::Baseless { problem: Box::new(problem), base };
            ProfileError::Wrong { file, line, problem }
        }
        (error, _) => error,
    }
}

/// Whether a table, or a key of one, is missing.
const fn is_lack(problem: &Problem) -> bool {
    match problem {
        Problem::MissingKey { table, .. } => !table.is_empty(),
        problem => matches!(problem, Problem::MissingTable(_)),
    }
}

/// Returns the name that `text` has for `key`, if it is TOML.
pub(crate) fn named_in(text: &str, key: &str) -> Option<String> {
    let top = DeTable::parse(text).ok()?;
    Some(top.get_ref().get(key)?.get_ref().as_str()?.to_owned())
}
