//! The errors of opening a disk.

use crate::words::error_words;
use core::fmt;
use std::io;

/// The reason why a disk cannot be served.
#[derive(Debug)]
pub enum OpenError {
    /// The file cannot be opened.
    Open(String, io::Error),
    /// The path names neither a regular file nor a block device.
    NotAFile(String),
    /// The disk has a size of 0 bytes.
    Empty(String),
    /// Another export or server writes to the file, or another user, such as a mount, holds the block device
    /// exclusively.
    Busy(String),
    /// The block translation table in this file cannot be opened.
    Btt(String, String),
    /// There is not enough memory for a disk of this many bytes.
    Memory(u64, io::Error),
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
            Self::Open(path, error) => write!(f, "{path}: {}", error_words(error)),
            Self::NotAFile(path) => write!(f, "{path}: neither a file nor a block device"),
            Self::Empty(path) => write!(f, "{path}: it has no bytes to serve"),
            Self::Busy(path) => write!(f, "{path}: another export, server or mount writes to it"),
            Self::Btt(path, error) => write!(f, "{path}: {error}"),
            Self::Memory(bytes, error) => {
                write!(f, "no memory for a disk of {bytes} bytes: {}", error_words(error))
            }
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
