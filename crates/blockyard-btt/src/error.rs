//! The errors of opening, reading and writing a BTT.

use super::find::FindError;
use super::format::FormatError;
use super::memory::MediaError;
use super::recover::RecoverError;

/// Why a sector could not be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoError {
    /// The sectors end beyond the last one.
    OutOfRange,
    /// The length is not a whole number of sectors.
    Length,
    /// The sector was lost, and has not been written since.
    Lost,
    /// The BTT was opened read-only, or the arena is marked as broken.
    ReadOnly,
    /// An earlier write failed after part of its log entry was stored. Recovery decides the result
    /// when the BTT is opened again; until then all writes are refused.
    Broken,
    /// The map entry of the sector names a block that does not exist.
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
                f.write_str("an earlier write failed: open the BTT again before writing")
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

/// Why a BTT cannot be opened or created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The arenas were not found.
    Find(FindError),
    /// The log of an arena was refused.
    Arena {
        /// First byte of the arena.
        start: u64,
        /// The reason.
        error: RecoverError,
    },
    /// The BTT could not be formatted.
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
