//! Why a disk cannot be served.

use crate::words::error_words;
use core::fmt;
use std::io;

/// Why a disk cannot be served.
#[derive(Debug)]
pub enum OpenError {
    /// The file cannot be opened.
    Open(String, io::Error),
    /// It is neither a file nor a block device.
    NotAFile(String),
    /// It has no bytes.
    Empty(String),
    /// Another export, or another server, writes to it; of a block device, somebody has it for himself,
    /// as who mounted it.
    Busy(String),
    /// The block translation table in this file cannot be opened.
    Btt(String, String),
    /// There is no room for a disk of this size in memory.
    Memory(u64, io::Error),
    /// There are fewer requests at once than lanes to have them, or there are more lanes than can
    /// share.
    Depth {
        /// The depth.
        depth: u16,
        /// The lanes.
        lanes: usize,
    },
    /// Layers count for themselves, so one lane drives a disk with any.
    Lanes(usize),
    /// More bytes than what the disk is to behave as has.
    TooLarge {
        /// Bytes to serve.
        bytes: u64,
        /// Bytes of the model.
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
