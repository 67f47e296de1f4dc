//! Why a call fails.

use super::find::FindError;
use super::format::FormatError;
use super::memory::MediaError;
use super::recover::RecoverError;

/// Why a sector was not read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoError {
    /// It lies beyond the end.
    OutOfRange,
    /// The bytes are no whole sectors.
    Length,
    /// The sector was lost, and not written since.
    Lost,
    /// Nothing may be written here: it was opened so, or the arena says that it is broken.
    ReadOnly,
    /// A write failed after it had begun to be logged. What is on the medium will be known when it is
    /// opened again; until then nothing more is written.
    Broken,
    /// The map says that the sector has a block that does not exist.
    Map,
    /// The medium failed.
    Media(MediaError),
}

impl core::fmt::Display for IoError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::OutOfRange => f.write_str("beyond the last sector"),
            Self::Length => f.write_str("not a whole number of sectors"),
            Self::Lost => f.write_str("the sector was lost and not written since"),
            Self::ReadOnly => f.write_str("read-only"),
            Self::Broken => {
                f.write_str("nothing is written after a failed write until opened again")
            }
            Self::Map => f.write_str("the map names a block that does not exist"),
            Self::Media(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for IoError {}

impl From<MediaError> for IoError {
    fn from(error: MediaError) -> Self {
        Self::Media(error)
    }
}

/// Why a BTT cannot be opened or made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// Its arenas were not found.
    Find(FindError),
    /// The log of an arena is refused.
    Arena {
        /// Where the arena begins.
        start: u64,
        /// Why.
        error: RecoverError,
    },
    /// It cannot be written.
    Format(FormatError),
}

impl core::fmt::Display for OpenError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Find(error) => error.fmt(f),
            Self::Arena { start, error } => write!(f, "the arena at byte {start}: {error}"),
            Self::Format(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for OpenError {}

impl From<FindError> for OpenError {
    fn from(error: FindError) -> Self {
        Self::Find(error)
    }
}

impl From<FormatError> for OpenError {
    fn from(error: FormatError) -> Self {
        Self::Format(error)
    }
}
