//! What can be wrong with a trace, and where.

use super::{DISKS_MAX, LINE_BYTES_MAX, PARTS_MAX, REORDER_MAX, SUBMITTERS_MAX};
use crate::words::Words;
use std::fmt;
use std::io;
use std::sync::Arc;

/// Where in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Position {
    /// The file as a whole.
    Whole,
    /// This line, from 1.
    Line(u64),
    /// This byte, from 0.
    Byte(u64),
}

/// A place in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file as it was named.
    pub file: Arc<str>,
    /// Where in it.
    pub position: Position,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Position::Whole => f.write_str(&self.file),
            Position::Line(line) => write!(f, "{}:{line}", self.file),
            Position::Byte(byte) => write!(f, "{}: byte {byte}", self.file),
        }
    }
}

/// A trace that cannot be replayed: the fault and where it is. Displayed as `FILE:LINE: message`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// Where.
    pub place: Place,
    /// What.
    pub fault: TraceFault,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.fault)
    }
}

impl core::error::Error for TraceError {}

/// Why a trace was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceFault {
    /// It could not be read.
    Unreadable(io::ErrorKind),
    /// It begins like none of the formats known.
    UnknownFormat,
    /// It is packed by this program.
    Compressed(&'static str),
    /// A version of a known format that is not read.
    Version {
        /// The format.
        format: &'static str,
        /// The version found.
        found: u32,
        /// The versions read.
        known: &'static str,
    },
    /// It holds no I/O.
    NoRecords,
    /// A line is longer than [`LINE_BYTES_MAX`].
    LineTooLong,
    /// A line is not text.
    NotText,
    /// A line has too few parts, or too many.
    Fields {
        /// What it should look like.
        expected: &'static str,
    },
    /// A part of a line or record cannot be understood.
    Value {
        /// Which part.
        field: &'static str,
        /// What it is.
        found: String,
        /// What it should be.
        expected: &'static str,
    },
    /// A word that is not one of those known.
    Word {
        /// What it stands for.
        field: &'static str,
        /// The word.
        found: String,
        /// The nearest one known, if any is near.
        nearest: Option<&'static str>,
        /// All that are known.
        known: &'static str,
    },
    /// A number that can only be in another unit than the format's.
    Unit {
        /// Which number.
        field: &'static str,
        /// What it is.
        found: u64,
        /// The format's unit.
        expected: &'static str,
        /// What it looks like.
        looks_like: &'static str,
    },
    /// I/O to a file that was not added before.
    NotAdded(String),
    /// Time goes back by more than can be put in order.
    Backwards {
        /// Nanoseconds.
        by_ns: u64,
    },
    /// A `wait` that is not later than the one before.
    WaitBackwards {
        /// As written.
        found: u64,
        /// The one before.
        before: u64,
    },
    /// The file ends within a record.
    Truncated {
        /// Bytes the record needs.
        needed: u64,
        /// Bytes there are.
        left: u64,
    },
    /// No record begins here.
    BadMagic(u32),
    /// A range that ends beyond what 64 bits of bytes can name.
    Beyond,
    /// More disks than [`DISKS_MAX`].
    TooManyDisks,
    /// More processes than [`SUBMITTERS_MAX`], where each is to be replayed in its own time.
    TooManySubmitters,
    /// More files than [`PARTS_MAX`].
    TooManyParts,
    /// It is a device, or standard input: a trace is read more than once.
    NotAFile,
    /// It is not what it was when it was opened.
    Changed,
}

impl fmt::Display for TraceFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(kind) => write!(f, "cannot read the file: {}", Words(*kind)),
            Self::NotAFile => f.write_str("not a file: a trace is read more than once"),
            Self::UnknownFormat => f.write_str(
                "not a trace of a known format: fio iolog (version 2 or 3), blktrace, output of \
                 blkparse, or MSR-Cambridge CSV",
            ),
            Self::Compressed(by) => write!(f, "packed by {by}: unpack it first"),
            Self::Version { format, found, known } => {
                write!(f, "{format} of version {found}: known are {known}")
            }
            Self::NoRecords => f.write_str("no I/O in this trace"),
            Self::LineTooLong => write!(f, "the line is longer than {LINE_BYTES_MAX} bytes"),
            Self::NotText => f.write_str("not text: the line is not UTF-8, or holds a NUL byte"),
            Self::Fields { expected } => write!(f, "expected `{expected}`"),
            Self::Value { field, found, expected } => {
                write!(f, "{field}: `{found}` is not {expected}")
            }
            Self::Word { field, found, nearest, known } => {
                write!(f, "unknown {field} `{found}`")?;
                if let Some(nearest) = nearest {
                    write!(f, ": did you mean `{nearest}`?")?;
                }
                write!(f, " (one of {known})")
            }
            Self::Unit { field, found, expected, looks_like } => {
                write!(f, "{field} {found}: expected {expected}, this looks like {looks_like}")
            }
            Self::NotAdded(name) => {
                write!(f, "I/O to `{name}`, which no line before has added")
            }
            Self::Backwards { by_ns } => write!(
                f,
                "{by_ns} ns earlier than an entry more than {REORDER_MAX} places before it: sort \
                 the trace by time"
            ),
            Self::WaitBackwards { found, before } => write!(
                f,
                "wait until {found} after a wait until {before}: fio counts milliseconds from the \
                 begin of the run; these look like spans"
            ),
            Self::Truncated { needed, left } => {
                write!(f, "the record needs {needed} bytes, and the file ends after {left}")
            }
            Self::BadMagic(found) => {
                write!(f, "no blktrace record begins here: its first word is {found:#010x}")
            }
            Self::Beyond => f.write_str("the range ends beyond the largest byte number"),
            Self::TooManyDisks => write!(f, "more than {DISKS_MAX} disks"),
            Self::TooManySubmitters => write!(
                f,
                "more than {SUBMITTERS_MAX} processes: replay by timestamps, or as fast as can be"
            ),
            Self::TooManyParts => write!(f, "more than {PARTS_MAX} files"),
            Self::Changed => f.write_str("the file changed while it was replayed"),
        }
    }
}
