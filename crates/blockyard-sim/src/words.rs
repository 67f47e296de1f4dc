//! What the system says of a file, in words that a user knows.

use core::fmt;
use std::io::ErrorKind;

/// An error of the system's, in words.
pub(crate) struct Words(pub(crate) ErrorKind);

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ErrorKind::NotFound => f.write_str("no such file or directory"),
            ErrorKind::IsADirectory => f.write_str("it is a directory"),
            kind => kind.fmt(f),
        }
    }
}
