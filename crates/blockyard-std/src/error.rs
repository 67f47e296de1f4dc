//! Errors of I/O.

use blockyard::status::Status;
use core::fmt;
use std::io::{self, ErrorKind};

/// The reason why an I/O failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The range ends beyond the disk.
    OutOfRange,
    /// The range does not consist of whole blocks, which the disk needs:
    /// [`Disk::block_bytes`](crate::Disk::block_bytes).
    Misaligned,
    /// The disk is read-only.
    ReadOnly,
    /// The disk has been shut down, or its work has failed.
    ShutDown,
    /// The device failed.
    Failed(Status),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange => f.write_str("the range ends beyond the disk"),
            Self::Misaligned => f.write_str("the range does not consist of whole blocks"),
            Self::ReadOnly => f.write_str("the disk is read-only"),
            Self::ShutDown => f.write_str("the disk has been shut down"),
            Self::Failed(status) => status.fmt(f),
        }
    }
}

impl core::error::Error for Error {}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match error {
            Error::OutOfRange | Error::Misaligned => ErrorKind::InvalidInput,
            Error::ReadOnly => ErrorKind::ReadOnlyFilesystem,
            Error::ShutDown => ErrorKind::BrokenPipe,
            Error::Failed(Status::NoSpace) => ErrorKind::StorageFull,
            Error::Failed(Status::NotSupported) => ErrorKind::Unsupported,
            Error::Failed(Status::Timeout) => ErrorKind::TimedOut,
            Error::Failed(_) => ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}
