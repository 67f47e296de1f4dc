//! Errors in traces and their places.

use super::limits::{DISKS_MAX, LINE_BYTES_MAX, PARTS_MAX, REORDER_MAX, SUBMITTERS_MAX};
use blockyard_text::words::Words;
use std::fmt;
use std::io;
use std::sync::Arc;

/// A position in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Position {
    /// The file as a whole.
    Whole,
    /// A line, counted from 1.
    Line(u64),
    /// A byte, counted from 0.
    Byte(u64),
}

/// A place in a trace, which each error names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file as it was named.
    pub file: Arc<str>,
    /// The position in that file.
    pub(crate) position: Position,
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

/// A trace that cannot be replayed: the fault and its place. Displays as `FILE:LINE: message`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// The place of the fault.
    pub place: Place,
    /// The fault.
    pub fault: TraceFault,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.fault)
    }
}

impl core::error::Error for TraceError {}

/// The reason why a trace was refused ([bad-trace-is-an-error]).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceFault {
    /// The file could not be read.
    Unreadable(io::ErrorKind),
    /// The beginning matches no known format.
    UnknownFormat,
    /// The file is compressed by this program.
    Compressed(&'static str),
    /// The file begins with a byte-order mark.
    ByteOrderMark,
    /// An unsupported version of a known format.
    Version {
        /// The format.
        format: &'static str,
        /// The version in the file.
        found: u32,
        /// The supported versions.
        known: &'static str,
    },
    /// The trace holds no I/O.
    NoRecords,
    /// A line is longer than [`LINE_BYTES_MAX`].
    LineTooLong,
    /// A line is not UTF-8 text.
    NotText,
    /// A line has too few fields, or too many.
    Fields {
        /// The expected fields.
        expected: &'static str,
    },
    /// A field of a line or record cannot be parsed.
    Value {
        /// The field.
        field: &'static str,
        /// Its text.
        found: String,
        /// The expected text.
        expected: &'static str,
    },
    /// An unknown word.
    Word {
        /// The field.
        field: &'static str,
        /// The word.
        found: String,
        /// The nearest known word, if one is close.
        nearest: Option<&'static str>,
        /// All known words.
        known: &'static str,
    },
    /// A number that can only be in another unit than the format's.
    Unit {
        /// The field.
        field: &'static str,
        /// The number.
        found: u64,
        /// The format's unit.
        expected: &'static str,
        /// The unit that the number suggests.
        looks_like: &'static str,
    },
    /// I/O to a file that no earlier line added.
    NotAdded(String),
    /// An entry is too late to be put in order.
    Backwards {
        /// The delay, nanoseconds.
        by_ns: u64,
    },
    /// A `wait` that is not later than the previous one.
    WaitBackwards {
        /// The time of this wait, as written.
        found: u64,
        /// The time of the previous wait.
        before: u64,
    },
    /// The file ends within a record.
    Truncated {
        /// Bytes that the record needs.
        needed: u64,
        /// Bytes left in the file.
        left: u64,
    },
    /// This first word does not begin a blktrace record.
    BadMagic(u32),
    /// This blktrace record has the other byte order than those before it in its file.
    OtherByteOrder,
    /// The range ends beyond the largest byte offset.
    Beyond,
    /// More than 1024 disks.
    TooManyDisks,
    /// More processes than `SUBMITTERS_MAX` in a replay that keeps each process's think time.
    TooManySubmitters,
    /// More files than `PARTS_MAX`.
    TooManyParts,
    /// A device or standard input: a trace must be a file, as it is read more than once.
    NotAFile,
    /// The file changed after it was opened.
    Changed,
}

impl fmt::Display for TraceFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(kind) => write!(f, "cannot read the file: {}", Words(*kind)),
            Self::NotAFile => f.write_str("not a regular file: a trace is read more than once"),
            Self::UnknownFormat => f.write_str(
                "not a trace of a known format: fio iolog (version 2 or 3), blktrace, output of \
                 blkparse, or MSR-Cambridge CSV",
            ),
            Self::Compressed(by) => write!(f, "compressed by {by}: decompress it first"),
            Self::ByteOrderMark => {
                f.write_str("the file begins with a byte-order mark: save it as UTF-8 without one")
            }
            Self::Version { format, found, known } => {
                write!(f, "{format} has version {found}: the supported versions are {known}")
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
                write!(f, "I/O to `{name}`, which no earlier line has added")
            }
            Self::Backwards { by_ns } => write!(
                f,
                "{by_ns} ns earlier than an entry more than {REORDER_MAX} places before it: sort \
                 the trace by time"
            ),
            Self::WaitBackwards { found, before } => write!(
                f,
                "wait until {found} after a wait until {before}: fio counts milliseconds since the \
                 start of the run; these numbers look like durations"
            ),
            Self::Truncated { needed, left } => {
                write!(f, "the record needs {needed} bytes, and the file ends after {left}")
            }
            Self::BadMagic(found) => {
                write!(f, "no blktrace record begins here: its first word is {found:#010x}")
            }
            Self::OtherByteOrder => f.write_str(
                "this blktrace record has the other byte order than those before it: it was recorded on a machine of the other \
                 byte order. A file of either order can be replayed, but not both in one file",
            ),
            Self::Beyond => f.write_str("the range ends beyond the largest byte offset"),
            Self::TooManyDisks => write!(f, "more than {DISKS_MAX} disks"),
            Self::TooManySubmitters => write!(
                f,
                "more than {SUBMITTERS_MAX} processes: replay by timestamps or in a closed loop"
            ),
            Self::TooManyParts => write!(f, "more than {PARTS_MAX} files"),
            Self::Changed => f.write_str("the file changed while it was replayed"),
        }
    }
}
