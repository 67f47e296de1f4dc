//! A trace that has been read once and found sound.

use super::error::{TraceError, TraceFault};
use super::reader::{Reader, Taken};
use super::sniff::{self, Format};
use super::source::Source;
use super::summary::{Summary, Summing};

/// A trace, its format known and its records counted.
#[derive(Clone, Debug)]
pub struct Trace {
    source: Source,
    format: Format,
    taken: Taken,
    summary: Summary,
}

impl Trace {
    /// Tells the format of `source` and reads it to its end; costs as much time as the trace is
    /// long, and memory for one disk, processor and process each.
    ///
    /// # Errors
    ///
    /// The first fault in the trace, with its place.
    pub fn open(source: Source) -> Result<Self, TraceError> {
        let format = format_of(&source)?;
        for taken in [Taken::Queued, Taken::Dispatched] {
            let mut reader = Reader::new(&source, format, taken)?;
            let mut summing = Summing::new(format);
            while let Some(record) = reader.next()? {
                summing.add(&record);
            }
            let summary = summing.finish(reader.disks(), taken, reader.passed(), reader.moved());
            if summary.records > 0 {
                return Ok(Self { source, format, taken, summary });
            }
            if reader.passed().dispatched == 0 {
                break;
            }
        }
        Err(source.parts()[0].fault(TraceFault::NoRecords))
    }

    /// What it holds.
    #[must_use]
    pub const fn summary(&self) -> &Summary {
        &self.summary
    }

    /// How it is called: its first file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.source.parts()[0].name
    }

    /// How many files it has.
    #[must_use]
    pub fn files(&self) -> usize {
        self.source.parts().len()
    }

    /// Its records from the first.
    ///
    /// # Errors
    ///
    /// If it cannot be read any more.
    pub fn records(&self) -> Result<Reader, TraceError> {
        Reader::new(&self.source, self.format, self.taken)
    }

    /// An error about it as a whole.
    pub(super) fn fault(&self, fault: TraceFault) -> TraceError {
        self.source.parts()[0].fault(fault)
    }
}

/// The format of all files of `source`.
fn format_of(source: &Source) -> Result<Format, TraceError> {
    let mut known = None;
    for part in source.parts() {
        let found = match sniff::sniff(part) {
            // A processor that did nothing leaves an empty file.
            Err(error) if error.fault == TraceFault::NoRecords => continue,
            found => found?,
        };
        if *known.get_or_insert(found) != found {
            return Err(part.fault(TraceFault::UnknownFormat));
        }
    }
    known.ok_or_else(|| source.parts()[0].fault(TraceFault::NoRecords))
}
