//! The errors of opening a disk.

use blockyard_std::OpenError as StoreError;
use blockyard_std::parts::depth::SHARING_LANES_MAX;
use core::fmt;

/// The reason why a disk cannot be served.
#[derive(Debug)]
pub enum OpenError {
    /// The memory or the file of the disk cannot be had.
    Store(StoreError),
    /// The block translation table in this file cannot be opened.
    Btt(String, String),
    /// A disk accepts no request, because its depth is 0.
    Depth,
    /// There are this many lanes, more than can share a disk.
    Lanes(usize),
    /// The disk is larger than the device that it behaves like.
    TooLarge {
        /// The size of the disk, in bytes.
        bytes: u64,
        /// The capacity of the model, in bytes.
        most: u64,
    },
    /// A fault rule cannot fire on the disk, or cannot be obeyed.
    Fault {
        /// The name of the rule.
        rule: String,
        /// The reason.
        why: &'static str,
        /// The name of the disk's export; empty for the default one.
        disk: String,
    },
    /// Clients of the disk have no weights.
    Weight {
        /// The reason.
        why: &'static str,
        /// The name of the disk's export; empty for the default one.
        disk: String,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Btt(path, error) => write!(f, "{path}: {error}"),
            Self::Depth => f.write_str("a disk has a depth of at least 1"),
            Self::Lanes(lanes) => {
                write!(f, "{lanes} lanes: a server has at most {SHARING_LANES_MAX}")
            }
            Self::TooLarge { bytes, most } => {
                write!(f, "the disk has {bytes} bytes, but the device has only {most}")
            }
            Self::Weight { why, disk } => write!(f, "no weights: {why} (disk {disk:?})"),
            Self::Fault { rule, why, disk } => write!(f, "rule {rule:?}: {why} (disk {disk:?})"),
        }
    }
}

impl core::error::Error for OpenError {}

impl From<StoreError> for OpenError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
