//! Built-in profiles, and the choice between one of them and a file.

use toml::de::DeTable;

use super::error::ProfileError;
use super::reading::Notes;
use super::source::{Source, read};

/// A profile that comes with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Builtin {
    /// The name.
    pub name: &'static str,
    /// The TOML text.
    pub text: &'static str,
}

impl Builtin {
    /// Returns what it is in one line; empty if the text does not say.
    #[must_use]
    pub fn title(&self) -> String {
        let file = DeTable::parse(self.text).ok();
        let title = file.as_ref().and_then(|file| file.get_ref().get("title")?.get_ref().as_str());
        title.unwrap_or_default().to_owned()
    }

    pub(crate) const fn source<'a>(&self, notes: &'a Notes) -> Source<'a> {
        Source::new(self.name, self.text, notes)
    }
}

/// The built-in profiles of these names, whose texts are files in `folder`.
macro_rules! builtins {
    ($folder:literal: $($name:literal),+ $(,)?) => {
        &[$($crate::reader::builtin::Builtin {
            name: $name,
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/profiles/", $folder, "/", $name, ".toml")),
        }),+]
    };
}
pub(crate) use builtins;

/// Whether `name_or_path` is a path: it has a `/`, or ends in `.toml`.
#[must_use]
pub fn is_path(name_or_path: &str) -> bool {
    name_or_path.contains('/') || name_or_path.ends_with(".toml")
}

/// Returns the text of the profile with this name or path.
pub(crate) fn text_of(
    what: &'static str,
    name_or_path: &str,
    builtins: &'static [Builtin],
) -> Result<String, ProfileError> {
    if is_path(name_or_path) {
        return read(name_or_path);
    }
    let found = builtins.iter().find(|builtin| builtin.name == name_or_path);
    found.map(|builtin| builtin.text.to_owned()).ok_or_else(|| ProfileError::UnknownName {
        what,
        name: name_or_path.to_owned(),
        known: builtins.iter().map(|builtin| builtin.name).collect(),
    })
}
