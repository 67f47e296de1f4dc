//! The records of a trace, one after the other.

use super::completions::Completions;
use super::error::{TraceError, TraceFault};
use super::format::blkparse::Blkparse;
use super::format::blktrace::Blktrace;
use super::format::iolog::Iolog;
use super::format::msr::Msr;
use super::order::Order;
use super::record::{Entry, Issue, Record, What};
use super::sniff::Format;
use super::source::{Part, Source};
use blockyard::time::{Duration, Instant};

/// Which entries of blktrace become records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// What was asked for: `Q`.
    Queued,
    /// What the driver was given: `D`, where a trace holds no `Q`.
    Dispatched,
}

/// What a reader has passed so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Passed {
    pub(super) dispatched: u64,
    pub(super) completed: u64,
    pub(super) remapped: u64,
}

/// Reads a trace from its begin to its end, in memory that does not grow with it (P1).
#[derive(Debug)]
pub struct Reader {
    parser: Parser,
    order: Order,
    at_end: bool,
    taken: Taken,
    completions: Completions,
    /// The trace's clock at its first record.
    first_ns: Option<u64>,
    passed: Passed,
}

#[derive(Debug)]
enum Parser {
    Iolog(Iolog),
    Blktrace(Blktrace),
    Blkparse(Blkparse),
    Msr(Msr),
}

impl Parser {
    fn new(source: &Source, format: Format) -> Result<Self, TraceError> {
        let first: &Part = &source.parts()[0];
        Ok(match format {
            Format::IologV2 | Format::IologV3 => Self::Iolog(Iolog::new(first, format)?),
            Format::Blktrace => Self::Blktrace(Blktrace::new(source.parts())?),
            Format::Blkparse => Self::Blkparse(Blkparse::new(first)?),
            Format::MsrCambridge => Self::Msr(Msr::new(first)?),
        })
    }

    fn next(&mut self) -> Result<Option<Entry>, TraceError> {
        match self {
            Self::Iolog(parser) => parser.next(),
            Self::Blktrace(parser) => parser.next(),
            Self::Blkparse(parser) => parser.next(),
            Self::Msr(parser) => parser.next(),
        }
    }

    /// An error about the entry read last.
    fn fault(&self, fault: TraceFault) -> TraceError {
        match self {
            Self::Iolog(parser) => parser.fault(fault),
            Self::Blktrace(parser) => parser.fault(fault),
            Self::Blkparse(parser) => parser.fault(fault),
            Self::Msr(parser) => parser.fault(fault),
        }
    }

    fn disks(&self) -> &[String] {
        match self {
            Self::Iolog(parser) => parser.disks(),
            Self::Blktrace(parser) => parser.disks(),
            Self::Blkparse(parser) => parser.disks(),
            Self::Msr(parser) => parser.disks(),
        }
    }

    /// Whether an I/O and its completion are entries of their own.
    const fn tells_completions(&self) -> bool {
        matches!(self, Self::Blktrace(_) | Self::Blkparse(_))
    }
}

impl Reader {
    pub(super) fn new(source: &Source, format: Format, taken: Taken) -> Result<Self, TraceError> {
        Ok(Self {
            parser: Parser::new(source, format)?,
            order: Order::default(),
            at_end: false,
            taken,
            completions: Completions::default(),
            first_ns: None,
            passed: Passed::default(),
        })
    }

    /// The next record; `None` after the last.
    ///
    /// # Errors
    ///
    /// A [`TraceError`]; there is nothing to be read after it.
    #[expect(clippy::should_implement_trait, reason = "it may fail at any record")]
    pub fn next(&mut self) -> Result<Option<Record>, TraceError> {
        loop {
            if let Some((at_ns, issue)) = self.completions.next(self.at_end) {
                return Ok(Some(self.record(at_ns, issue)));
            }
            if self.at_end {
                return Ok(None);
            }
            let Some(Entry { at_ns, what }) = self.next_entry()? else {
                self.at_end = true;
                continue;
            };
            self.passed.dispatched += u64::from(matches!(what, What::Dispatch(_)));
            match (what, self.taken) {
                (What::Queue(issue), Taken::Queued)
                | (What::Dispatch(issue), Taken::Dispatched) => {
                    if !self.parser.tells_completions() {
                        return Ok(Some(self.record(at_ns, issue)));
                    }
                    self.completions.issued(at_ns, issue);
                }
                (What::Complete { disk, offset_bytes, len_bytes }, _) => {
                    self.passed.completed += 1;
                    self.completions.completed(at_ns, disk, offset_bytes, len_bytes);
                }
                (What::Remap, _) => self.passed.remapped += 1,
                (What::Queue(_) | What::Dispatch(_) | What::Other, _) => {}
            }
        }
    }

    /// The next entry in the order of time (P3).
    fn next_entry(&mut self) -> Result<Option<Entry>, TraceError> {
        if matches!(self.parser, Parser::Blktrace(_)) {
            // Its files are put in order one by one.
            return self.parser.next();
        }
        while self.order.wants() {
            let Some(entry) = self.parser.next()? else { break };
            self.order
                .push(entry)
                .map_err(|by_ns| self.parser.fault(TraceFault::Backwards { by_ns }))?;
        }
        Ok(self.order.pop())
    }

    fn record(&mut self, at_ns: u64, issue: Issue) -> Record {
        let first_ns = *self.first_ns.get_or_insert(at_ns);
        let Issue { disk, cpu, pid, op, offset_bytes, len_bytes, flags, took } = issue;
        let at = Instant::from_ns(at_ns - first_ns);
        Record { at, took, disk, cpu, pid, op, offset_bytes, len_bytes, flags }
    }

    /// Names of the disks met so far, by number.
    pub(super) fn disks(&self) -> &[String] {
        self.parser.disks()
    }

    /// An error about the entry read last.
    pub(super) fn fault(&self, fault: TraceFault) -> TraceError {
        self.parser.fault(fault)
    }

    pub(super) const fn passed(&self) -> Passed {
        self.passed
    }

    /// How many entries stood too late in their file, and by how long at most.
    pub(super) fn moved(&self) -> (u64, Duration) {
        let (moved, most_ns) = match &self.parser {
            Parser::Blktrace(parser) => parser.moved(),
            _ => (self.order.moved, self.order.moved_ns_max),
        };
        (moved, Duration::from_ns(most_ns))
    }
}
