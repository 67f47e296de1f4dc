//! Operating system errors as phrases for users.

use core::fmt;
use std::io::ErrorKind;

/// An error of the operating system, displayed as a phrase.
pub struct Words(pub ErrorKind);

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ErrorKind::NotFound => f.write_str("no such file or directory"),
            ErrorKind::IsADirectory => f.write_str("it is a directory"),
            kind => kind.fmt(f),
        }
    }
}
