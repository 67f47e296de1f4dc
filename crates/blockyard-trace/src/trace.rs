//! A trace that has been read once without a fault.

use super::error::{TraceError, TraceFault};
use super::plugs::Known;
use super::reader::{Reader, Taken};
use super::sniff;
use super::source::Source;
use super::summary::{Summary, Summing};
use super::trace_format::Format;

/// A trace with a known format and counted records.
#[derive(Clone, Debug)]
pub struct Trace {
    source: Source,
    format: Format,
    taken: Taken,
    /// What the whole trace says about plugs.
    known: Known,
    summary: Summary,
}

impl Trace {
    /// Detects the format of `source` and reads it to the end. The time is proportional to the
    /// length of the trace; the memory to its disks, processors and processes.
    ///
    /// # Errors
    ///
    /// The first fault in the trace, with its place.
    pub fn open(source: Source) -> Result<Self, TraceError> {
        let format = format_of(&source)?;
        for taken in [Taken::Queued, Taken::Dispatched] {
            let mut reader = Reader::new(&source, format, taken, Known::default())?;
            let mut summing = Summing::new(format);
            while let Some(record) = reader.next()? {
                summing.add(&record);
            }
            let summary = summing.finish(reader.disks(), taken, reader.passed(), reader.moved());
            if summary.records > 0 {
                let known = reader.passed().known;
                return Ok(Self { source, format, taken, known, summary });
            }
            if reader.passed().dispatched == 0 {
                break;
            }
        }
        Err(source.parts()[0].fault(TraceFault::NoRecords))
    }

    /// The contents of the trace.
    #[must_use]
    pub const fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The name of the trace: its first file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.source.parts()[0].name
    }

    /// Number of files.
    #[must_use]
    pub fn files(&self) -> usize {
        self.source.parts().len()
    }

    /// Returns a reader at the first record.
    ///
    /// # Errors
    ///
    /// If the trace cannot be read any more.
    pub fn records(&self) -> Result<Reader, TraceError> {
        debug_assert!(self.summary.records > 0, "an open trace has a record");
        Reader::new(&self.source, self.format, self.taken, self.known)
    }

    /// Returns an error about the trace as a whole.
    pub fn fault(&self, fault: TraceFault) -> TraceError {
        self.source.parts()[0].fault(fault)
    }
}

/// Detects the common format of all files of `source`.
fn format_of(source: &Source) -> Result<Format, TraceError> {
    let mut known = None;
    for part in source.parts() {
        let found = match sniff::sniff(part) {
            // A processor without I/O leaves an empty file.
            Err(error) if error.fault == TraceFault::NoRecords => continue,
            found => found?,
        };
        if *known.get_or_insert(found) != found {
            return Err(part.fault(TraceFault::UnknownFormat));
        }
    }
    known.ok_or_else(|| source.parts()[0].fault(TraceFault::NoRecords))
}
