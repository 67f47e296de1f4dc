//! The lines of a text file, each of bounded length.

use super::error::{Place, Position, TraceError, TraceFault};
use super::limits::LINE_BYTES_MAX;
use super::source::Part;
use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

/// Reads a part line by line.
pub(super) struct Lines {
    name: Arc<str>,
    text: BufReader<Box<dyn Read>>,
    line: Vec<u8>,
    number: u64,
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines")
            .field("name", &self.name)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

impl Lines {
    pub(super) fn of(part: &Part) -> Result<Self, TraceError> {
        let text = BufReader::new(part.open()?);
        Ok(Self { name: Arc::clone(&part.name), text, line: Vec::new(), number: 0 })
    }

    /// Returns the next line without its line end, or `None` after the last line.
    pub(super) fn next(&mut self) -> Result<Option<&str>, TraceError> {
        self.line.clear();
        self.number += 1;
        let limit = LINE_BYTES_MAX as u64 + 2;
        let read = self.text.by_ref().take(limit).read_until(b'\n', &mut self.line);
        let read = read.map_err(|error| self.fault(TraceFault::Unreadable(error.kind())))?;
        if read == 0 {
            return Ok(None);
        }
        debug_assert!(self.line.len() <= LINE_BYTES_MAX + 2, "[bounded-trace-memory]");
        let text = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        if text.len() > LINE_BYTES_MAX {
            return Err(self.fault(TraceFault::LineTooLong));
        }
        match core::str::from_utf8(text) {
            Ok(text) if !text.contains('\0') => Ok(Some(text)),
            _ => Err(self.fault(TraceFault::NotText)),
        }
    }

    /// Returns an error at the line read last.
    pub(super) fn fault(&self, fault: TraceFault) -> TraceError {
        let position = Position::Line(self.number);
        TraceError { place: Place { file: Arc::clone(&self.name), position }, fault }
    }
}
