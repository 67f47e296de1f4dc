//! The source of job files and environment variables.

use std::io::{self, Read as _};

use super::limits::FILE_BYTES_MAX;

/// The parser's only access to files and environment variables ([input-through-source]).
pub trait Source {
    /// Returns the bytes of the file at `path`. The first [`FILE_BYTES_MAX`] + 1 bytes suffice, as longer files
    /// are refused.
    ///
    /// # Errors
    ///
    /// Returns the kind of failure, which the message repeats.
    fn read(&self, path: &str) -> Result<Vec<u8>, io::ErrorKind>;

    /// Returns the value of an environment variable, `None` if it is not set.
    fn variable(&self, name: &str) -> Option<String>;

    /// Returns the value of a variable that the user has given for this run, `None` if there is none. The facts
    /// about a machine come from here only, because the modelled machine is not the one that reads the file.
    fn given(&self, _name: &str) -> Option<String> {
        None
    }
}

/// The file system and the environment of this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemSource;

impl Source for SystemSource {
    fn read(&self, path: &str) -> Result<Vec<u8>, io::ErrorKind> {
        let file = std::fs::File::open(path).map_err(|e| e.kind())?;
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(|e| e.kind())?;
        Ok(bytes)
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}

/// No files and no variables: every include fails and every `${NAME}` is an error.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSource;

impl Source for NoSource {
    fn read(&self, _path: &str) -> Result<Vec<u8>, io::ErrorKind> {
        Err(io::ErrorKind::NotFound)
    }

    fn variable(&self, _name: &str) -> Option<String> {
        None
    }
}
