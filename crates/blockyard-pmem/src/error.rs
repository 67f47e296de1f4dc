//! What can be wrong with a file that is to be a BTT.

use blockyard_btt::OpenError;
use blockyard_btt::find::FindError;
use std::io;

/// Why there is no open image.
#[derive(Debug)]
pub enum ImageError {
    /// The file.
    File(io::Error),
    /// The header of the pool.
    Pool(&'static str),
    /// The BTT in it.
    Btt(OpenError),
}

impl core::fmt::Display for ImageError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::File(error) => error.fmt(f),
            Self::Pool(error) => f.write_str(error),
            Self::Btt(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ImageError {}

impl From<io::Error> for ImageError {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

impl From<OpenError> for ImageError {
    fn from(error: OpenError) -> Self {
        Self::Btt(error)
    }
}

impl From<FindError> for ImageError {
    fn from(error: FindError) -> Self {
        Self::Btt(error.into())
    }
}
