//! A file that is written in large pieces, and its errors.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Bytes to collect before a write.
const PIECE_BYTES: usize = 1 << 18;

/// The error of an output that could not be written.
#[derive(Debug)]
pub struct OutputError {
    /// The file.
    pub path: PathBuf,
    /// The error of the system.
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

/// A file with a buffer.
#[derive(Debug)]
pub(super) struct OutputFile {
    path: PathBuf,
    file: File,
    /// The buffer: append here, then call [`Self::spill`].
    pub(super) bytes: Vec<u8>,
}

impl OutputFile {
    /// Creates an empty file at `path`, in place of an older one.
    pub(super) fn create(path: &Path) -> Result<Self, OutputError> {
        let path = path.to_owned();
        match File::create(&path) {
            Ok(file) => Ok(Self { path, file, bytes: Vec::with_capacity(PIECE_BYTES + 4096) }),
            Err(error) => Err(OutputError { path, error }),
        }
    }

    /// Writes the buffer if it holds a whole piece.
    #[inline]
    pub(super) fn spill(&mut self) -> Result<(), OutputError> {
        if self.bytes.len() >= PIECE_BYTES { self.write() } else { Ok(()) }
    }

    /// Writes the buffer.
    pub(super) fn write(&mut self) -> Result<(), OutputError> {
        let written = self.file.write_all(&self.bytes);
        self.bytes.clear();
        written.map_err(|error| OutputError { path: self.path.clone(), error })
    }
}
