//! The records of a trace, one at a time.

use super::completions::Completions;
use super::error::{TraceError, TraceFault};
use super::format::blkparse::Blkparse;
use super::format::blktrace::Blktrace;
use super::format::iolog::Iolog;
use super::format::msr::Msr;
use super::order::Order;
use super::plugs::{Known, Plugs};
use super::record::{Entry, EntryKind, Issue, Record};
use super::source::{Part, Source};
use super::trace_format::Format;
use blockyard::bio::Op;
use blockyard::time::{Duration, Instant};

/// The blktrace events that become records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// Bios as they were submitted: `Q`.
    Queued,
    /// Requests as the driver got them: `D`, for a trace without `Q`.
    Dispatched,
}

/// Counts of the entries that a reader has passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Passed {
    pub(super) dispatched: u64,
    /// Those of `dispatched` that are flushes.
    pub(super) flushes_dispatched: u64,
    pub(super) completed: u64,
    pub(super) remapped: u64,
    /// Whether bios were taken as part of a call without a recorded plug.
    pub(super) assumes_calls: bool,
    pub(super) known: Known,
}

/// Reads a trace from start to end ([bounded-trace-memory]).
#[derive(Debug)]
pub struct Reader {
    parser: Parser,
    order: Order,
    at_end: bool,
    taken: Taken,
    plugs: Plugs,
    completions: Completions,
    /// The trace's clock at the first record.
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

    /// Returns an error at the entry read last.
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

    /// Whether the format has separate entries for issue and completion.
    const fn tells_completions(&self) -> bool {
        matches!(self, Self::Blktrace(_) | Self::Blkparse(_))
    }
}

impl Reader {
    pub(super) fn new(
        source: &Source,
        format: Format,
        taken: Taken,
        known: Known,
    ) -> Result<Self, TraceError> {
        Ok(Self {
            parser: Parser::new(source, format)?,
            order: Order::default(),
            at_end: false,
            taken,
            plugs: Plugs::new(known),
            completions: Completions::default(),
            first_ns: None,
            passed: Passed::default(),
        })
    }

    /// Returns the next record, or `None` after the last one.
    ///
    /// # Errors
    ///
    /// A [`TraceError`]. No record can be read after an error.
    #[expect(clippy::should_implement_trait, reason = "each record may be an error")]
    pub fn next(&mut self) -> Result<Option<Record>, TraceError> {
        loop {
            if let Some((at_ns, issue)) = self.completions.next(self.at_end) {
                return Ok(Some(self.record(at_ns, issue)));
            }
            if self.at_end {
                return Ok(None);
            }
            let Some(Entry { at_ns, kind }) = self.next_entry()? else {
                self.at_end = true;
                continue;
            };
            self.look_for_plugs(&kind);
            match (kind, self.taken) {
                (EntryKind::Queue(issue), Taken::Queued)
                | (EntryKind::Dispatch(issue), Taken::Dispatched) => {
                    if !self.parser.tells_completions() {
                        return Ok(Some(self.record(at_ns, issue)));
                    }
                    let queued = self.taken == Taken::Queued;
                    let joins = queued && self.plugs.joins(at_ns, issue.pid);
                    self.completions.issued(at_ns, Issue { joins, ..issue });
                }
                (EntryKind::Complete { disk, offset_bytes, len_bytes }, _) => {
                    self.passed.completed += 1;
                    self.completions.completed(at_ns, disk, offset_bytes, len_bytes);
                }
                (EntryKind::Remap, _) => self.passed.remapped += 1,
                _ => {}
            }
        }
    }

    /// Notes what an entry says about the calls of its thread.
    fn look_for_plugs(&mut self, kind: &EntryKind) {
        match *kind {
            EntryKind::Plug { pid } => self.plugs.plugged(pid),
            EntryKind::Unplug { pid } | EntryKind::Insert { pid } => self.plugs.passed_on(pid),
            EntryKind::Dispatch(issue) => {
                self.passed.dispatched += 1;
                self.passed.flushes_dispatched += u64::from(issue.op == Op::Flush);
                self.plugs.passed_on(issue.pid);
            }
            EntryKind::Queue(_)
            | EntryKind::Complete { .. }
            | EntryKind::Remap
            | EntryKind::Other => {}
        }
    }

    /// Returns the next entry in the order of time ([records-in-time-order]).
    fn next_entry(&mut self) -> Result<Option<Entry>, TraceError> {
        if matches!(self.parser, Parser::Blktrace(_)) {
            // Each of its files is sorted separately.
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
        debug_assert!(at_ns >= first_ns, "[records-in-time-order]");
        debug_assert!(issue.len_bytes > 0 || issue.op == Op::Flush, "only a flush has no range");
        let Issue { disk, cpu, pid, op, offset_bytes, len_bytes, flags, took, joins } = issue;
        let at = Instant::from_ns(at_ns - first_ns);
        Record { at, took, disk, cpu, pid, op, offset_bytes, len_bytes, flags, joins }
    }

    /// Names of the disks found so far, by number.
    pub(super) fn disks(&self) -> &[String] {
        self.parser.disks()
    }

    /// Returns an error at the entry read last.
    pub fn fault(&self, fault: TraceFault) -> TraceError {
        self.parser.fault(fault)
    }

    pub(super) const fn passed(&self) -> Passed {
        Passed { assumes_calls: self.plugs.assumes, known: self.plugs.known, ..self.passed }
    }

    /// Returns how many entries stood too late in their file, and the largest delay.
    pub(super) fn moved(&self) -> (u64, Duration) {
        let (moved, delay_ns_max) = match &self.parser {
            Parser::Blktrace(parser) => parser.moved(),
            _ => (self.order.moved, self.order.moved_ns_max),
        };
        (moved, Duration::from_ns(delay_ns_max))
    }
}
