//! The text of a profile, and lines in it.

use std::fs::File;
use std::io::Read;

use super::error::{MAX_FILE_BYTES, Problem, ProfileError};
use super::reading::Notes;

/// A file, its text, and what was read of it.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
    pub(crate) notes: &'a Notes,
}

impl<'a> Source<'a> {
    pub(crate) const fn new(name: &'a str, text: &'a str, notes: &'a Notes) -> Self {
        Self { name, text, notes }
    }

    /// Returns the error `problem` at the line of byte `offset`.
    pub(crate) fn wrong(self, offset: usize, problem: Problem) -> ProfileError {
        ProfileError::Wrong { file: self.name.to_owned(), line: self.line(offset), problem }
    }

    /// Returns the line of byte `offset`, from 1.
    pub(crate) fn line(self, offset: usize) -> usize {
        debug_assert!(offset <= self.text.len(), "byte {offset} of {}", self.text.len());
        let before = self.text.as_bytes().iter().take(offset);
        1 + before.filter(|&&byte| byte == b'\n').count()
    }
}

/// Reads the text of the file at `path`.
pub(crate) fn read(path: &str) -> Result<String, ProfileError> {
    let unreadable = |error| ProfileError::Unreadable { file: path.to_owned(), error };
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    let len = file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if len as u64 > MAX_FILE_BYTES {
        return Err(ProfileError::TooLong { file: path.to_owned() });
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|&&byte| byte == b'\n').count();
        ProfileError::Wrong { file: path.to_owned(), line, problem: Problem::NotText }
    })
}
