//! Where job files and environment variables come from.

use std::io::{self, Read as _};

use super::FILE_BYTES_MAX;

/// What the parser may ask of the world. The parser itself opens no file and reads no variable.
pub trait Source {
    /// The bytes of the file at `path`. At most [`FILE_BYTES_MAX`] + 1 bytes need be returned:
    /// longer files are refused anyway.
    ///
    /// # Errors
    ///
    /// The kind of failure, which ends up in the message.
    fn read(&self, path: &str) -> Result<Vec<u8>, io::ErrorKind>;

    /// The value of an environment variable; `None` if it is not set.
    fn variable(&self, name: &str) -> Option<String>;
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
