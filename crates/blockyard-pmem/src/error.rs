//! The errors of opening and creating images.

use crate::pool_set::PoolSetError;
use blockyard_btt::OpenError;
use blockyard_btt::check::Finding;
use blockyard_btt::find::FindError;
use std::io;

/// Why an image cannot be opened or created.
#[derive(Debug)]
pub enum ImageError {
    /// The file failed.
    File(io::Error),
    /// The header of the pool is damaged, or does not fit its pool set.
    Pool(&'static str),
    /// The pool set cannot be used.
    PoolSet(PoolSetError),
    /// The BTT is missing, damaged or impossible.
    Btt(OpenError),
    /// A check found that the BTT is broken: the first such finding, and the number of others.
    Broken(Finding, u64),
}

impl core::fmt::Display for ImageError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::File(error) => error.fmt(f),
            Self::Pool(error) => f.write_str(error),
            Self::PoolSet(error) => error.fmt(f),
            Self::Btt(error) => error.fmt(f),
            Self::Broken(first, 0) => first.fmt(f),
            Self::Broken(first, others) => write!(f, "{first}, and {others} other findings"),
        }
    }
}

impl std::error::Error for ImageError {}

impl From<io::Error> for ImageError {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

impl From<PoolSetError> for ImageError {
    fn from(error: PoolSetError) -> Self {
        Self::PoolSet(error)
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
