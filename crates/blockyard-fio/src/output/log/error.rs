//! The error of a log.

use blockyard_text::words::Words;
use std::fmt;
use std::io;

/// The error of a log that cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogError {
    /// The file.
    pub path: String,
    /// The kind of error.
    pub kind: io::ErrorKind,
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: cannot write the log: {}", self.path, Words(self.kind))
    }
}

impl core::error::Error for LogError {}
