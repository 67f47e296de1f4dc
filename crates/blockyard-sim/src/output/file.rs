//! A file that is written in large pieces, and errors that name it.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Bytes that are collected before they are written.
const PIECE_BYTES: usize = 1 << 18;

/// An output that could not be written.
#[derive(Debug)]
pub struct OutputError {
    /// The file.
    pub path: PathBuf,
    /// What the system says.
    pub error: io::Error,
}

impl fmt::Display for OutputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.error)
    }
}

impl core::error::Error for OutputError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// A file, and what is yet to be written to it.
#[derive(Debug)]
pub(super) struct OutputFile {
    path: PathBuf,
    file: File,
    /// Append here; then call [`Self::spill`].
    pub(super) bytes: Vec<u8>,
}

impl OutputFile {
    /// An empty file at `path`, in place of one that was there.
    pub(super) fn create(path: &Path) -> Result<Self, OutputError> {
        let path = path.to_owned();
        match File::create(&path) {
            Ok(file) => Ok(Self { path, file, bytes: Vec::with_capacity(PIECE_BYTES + 4096) }),
            Err(error) => Err(OutputError { path, error }),
        }
    }

    /// Writes what has been collected if it is enough for a piece.
    #[inline]
    pub(super) fn spill(&mut self) -> Result<(), OutputError> {
        if self.bytes.len() >= PIECE_BYTES { self.write() } else { Ok(()) }
    }

    /// Writes what has been collected.
    pub(super) fn write(&mut self) -> Result<(), OutputError> {
        let written = self.file.write_all(&self.bytes);
        self.bytes.clear();
        written.map_err(|error| OutputError { path: self.path.clone(), error })
    }
}
