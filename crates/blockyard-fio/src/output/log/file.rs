//! Log files and their lines.

use super::error::LogError;
use crate::job::Op;
use core::fmt::{self, Write as _};
use std::fs::File;
use std::io::Write;

/// Bytes to collect before a write.
const PIECE_BYTES: usize = 1 << 14;

/// One line of a log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) at_ms: u64,
    pub(super) value: u64,
    pub(super) op: Op,
    pub(super) len_bytes: u32,
    /// `None` if offsets are not logged.
    pub(super) offset_bytes: Option<u64>,
    pub(super) priority: Priority,
}

/// A priority in a log.
#[derive(Clone, Copy, Debug)]
pub(super) enum Priority {
    /// Whether it is real-time.
    RealTime(bool),
    /// In Linux's encoding.
    Encoded(u16),
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at_ms, value, op, len_bytes, .. } = self;
        write!(f, "{at_ms}, {value}, {}, {len_bytes}", *op as u8)?;
        if let Some(offset_bytes) = self.offset_bytes {
            write!(f, ", {offset_bytes}")?;
        }
        match self.priority {
            Priority::RealTime(real_time) => write!(f, ", {}", u8::from(real_time)),
            Priority::Encoded(priority) => write!(f, ", {priority:#06x}"),
        }
    }
}

/// A file, and its lines that were not written yet.
#[derive(Debug)]
pub(super) struct LogFile {
    path: String,
    lines: String,
}

impl LogFile {
    /// Creates an empty file at `path`.
    pub(super) fn create(path: String) -> Result<Self, LogError> {
        match File::create(&path) {
            Ok(_) => Ok(Self { path, lines: String::new() }),
            Err(error) => Err(LogError { path, kind: error.kind() }),
        }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Adds a line, to be written later.
    pub(super) fn put(&mut self, line: Line) {
        writeln!(self.lines, "{line}").expect("writing to a string should not fail");
    }

    /// Whether a whole piece is waiting.
    pub(super) const fn is_due(&self) -> bool {
        self.lines.len() >= PIECE_BYTES
    }

    /// Writes all lines.
    pub(super) fn write(&mut self) -> Result<(), LogError> {
        debug_assert!(self.lines.is_empty() || self.lines.ends_with('\n'), "whole lines");
        if self.lines.is_empty() {
            return Ok(());
        }
        let written = File::options()
            .append(true)
            .open(&self.path)
            .and_then(|mut file| file.write_all(self.lines.as_bytes()));
        self.lines.clear();
        written.map_err(|error| LogError { path: self.path.clone(), kind: error.kind() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_look_like_those_of_fio() {
        let line = Line {
            at_ms: 12,
            value: 3456,
            op: Op::Trim,
            len_bytes: 8192,
            offset_bytes: None,
            priority: Priority::RealTime(false),
        };
        assert_eq!(line.to_string(), "12, 3456, 2, 8192, 0");
        let full = Line { offset_bytes: Some(122_880), priority: Priority::Encoded(3), ..line };
        assert_eq!(full.to_string(), "12, 3456, 2, 8192, 122880, 0x0003");
    }
}
