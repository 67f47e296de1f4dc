//! The errors of opening a disk.

use blockyard_std::OpenError as StoreError;
use core::fmt;

/// The reason why a disk cannot be served.
#[derive(Debug)]
pub enum OpenError {
    /// The memory or the file of the disk cannot be had.
    Store(StoreError),
    /// The block translation table in this file cannot be opened.
    Btt(String, String),
    /// The depth is less than the number of lanes, or there are more lanes than can share a depth.
    Depth {
        /// The depth, in requests.
        depth: u16,
        /// The number of lanes.
        lanes: usize,
    },
    /// There are this many lanes, but a disk with layers can have only one: layers keep their own counts.
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
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Btt(path, error) => write!(f, "{path}: {error}"),
            Self::Depth { depth, lanes } => {
                write!(f, "a depth of {depth} cannot be shared by {lanes} lanes")
            }
            Self::Lanes(lanes) => {
                write!(f, "a disk with a model, delay, rate or faults has one lane, not {lanes}")
            }
            Self::TooLarge { bytes, most } => {
                write!(f, "the disk has {bytes} bytes, but the device has only {most}")
            }
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
