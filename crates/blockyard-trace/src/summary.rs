//! The contents of a trace, summed in one pass.

use super::limits::SUBMITTERS_MAX;
use super::reader::{Passed, Taken};
use super::record::Record;
use super::trace_format::Format;
use blockyard::bio::{Flags, Op};
use blockyard::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// With at least this many records, their common alignment suggests the unit.
const ALIGNED_RECORDS_MIN: u64 = 64;
/// Sectors that are counted in place of bytes are all aligned to this.
const ALIGNED_SUSPECT_BYTES: u64 = 512 * 512;
/// A longer response time suggests another unit.
const TOOK_SUSPECT: Duration = Duration::from_secs(600);
/// A longer trace suggests another unit.
const SPAN_SUSPECT: Duration = Duration::from_secs(60 * 86_400);

/// The I/O of one disk in a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskSummary {
    /// The name of the disk in the trace.
    pub name: String,
    /// Number of records.
    pub records: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written, including zeroes.
    pub written_bytes: u64,
    /// Bytes discarded or securely erased.
    pub(crate) discarded_bytes: u64,
    /// Number of reads.
    pub reads: u64,
    /// Number of writes, including writes of zeroes.
    pub writes: u64,
    /// Number of discards and secure erases.
    pub discards: u64,
    /// Number of flushes.
    pub flushes: u64,
    /// Number of writes that ask for a flush before them.
    pub(super) preflushes: u64,
    /// Number of writes with FUA.
    pub(super) fua_writes: u64,
    /// The end of the last record, bytes: the smallest size that the disk can have.
    pub end_bytes: u64,
    /// Length of the longest read or write, bytes.
    pub len_bytes_max: u32,
    /// Bitwise OR of all offsets and lengths: its lowest set bit is their common alignment.
    pub(super) positions: u64,
}

impl DiskSummary {
    /// Returns the largest power of two that divides every offset and length; 0 if all are 0.
    #[must_use]
    pub const fn alignment_bytes(&self) -> u64 {
        self.positions & self.positions.wrapping_neg()
    }
}

/// The contents of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The format.
    pub format: Format,
    /// Number of I/Os.
    pub records: u64,
    /// Number of I/Os with a known response time.
    pub timed: u64,
    /// Time from the first issue to the last.
    pub span: Duration,
    /// The disks, in order of appearance.
    pub disks: Vec<DiskSummary>,
    /// Warnings about the trace.
    pub warnings: Vec<Warning>,
    /// Processors that issued I/O.
    pub cpus: BTreeSet<u16>,
    /// Processes, each with the first processor it ran on; at most `SUBMITTERS_MAX`.
    pub processes: BTreeMap<u32, u16>,
    /// Whether there are more processes.
    pub more_processes: bool,
}

impl Summary {
    /// Returns the bytes of all disks that were read, written and discarded.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let of = |disk: &DiskSummary| [disk.read_bytes, disk.written_bytes, disk.discarded_bytes];
        self.disks.iter().flat_map(of).fold(0, u64::saturating_add)
    }
}

/// A trace that looks wrong but may be right, or that is replayed differently from its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// The trace has no `Q`: the requests of the driver are replayed instead.
    Dispatches,
    /// Entries stood too late in the file.
    Moved {
        /// Number of entries.
        entries: u64,
        /// The largest delay.
        by: Duration,
    },
    /// I/O was remapped from one disk to another.
    Remapped {
        /// Number of remaps.
        times: u64,
    },
    /// blktrace saw flushes, and no write with FUA. blktrace 1.2 on Linux 7.2 and later records no
    /// event of a request with FUA.
    NoFua,
    /// Plugs are not recorded: threads and times decided which bios were submitted in one call.
    Calls,
    /// All offsets and lengths are multiples of 256 KiB.
    Coarse {
        /// The number of the disk.
        disk: usize,
    },
    /// A response time is very long.
    LongAnswer(Duration),
    /// The trace lasts very long.
    LongSpan(Duration),
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dispatches => f.write_str(
                "the trace has no submitted bios (Q): the requests of the driver (D) are \
                 replayed, merged and ordered as in the recording",
            ),
            Self::Moved { entries, by } => write!(
                f,
                "{entries} entries stood too late in the file, by at most {} us, and were put in \
                 order",
                by.as_ns().div_ceil(1000)
            ),
            Self::Remapped { times } => write!(
                f,
                "I/O was remapped from disk to disk {times} times: the trace holds it once for \
                 each disk; choose one disk"
            ),
            Self::NoFua => f.write_str(
                "the trace has flushes and no write with FUA: if blktrace 1.2 recorded it under \
                 Linux 7.2 or later, all writes with FUA are missing",
            ),
            Self::Calls => f.write_str(
                "the trace has no plugs (P, U): a bio that closely follows its thread's bio before it \
                 is taken as part of the same call",
            ),
            Self::Coarse { disk } => write!(
                f,
                "disk {disk}: every offset and length is a multiple of 256 KiB: bytes in place of \
                 sectors?"
            ),
            Self::LongAnswer(took) => write!(
                f,
                "an I/O took {} s: response times in another unit?",
                took.as_ns() / 1_000_000_000
            ),
            Self::LongSpan(span) => write!(
                f,
                "the trace lasts {} days: times in another unit?",
                span.as_ns() / 1_000_000_000 / 86_400
            ),
        }
    }
}

/// Whether blktrace made the trace of disks that were flushed, without a write with FUA.
///
/// A flush that the driver got but nobody submitted is the trace of a write whose own events were
/// lost: of 3 writes with PREFLUSH and FUA, Linux 7.3 leaves 3 times `D FN`.
fn lacks_fua(summary: &Summary, passed: Passed) -> bool {
    let of_blktrace = matches!(summary.format, Format::Blktrace | Format::Blkparse);
    let has_fua = summary.disks.iter().any(|disk| disk.fua_writes > 0);
    let is_flushed = passed.flushes_dispatched > 0
        || summary.disks.iter().any(|disk| disk.flushes + disk.preflushes > 0);
    of_blktrace && is_flushed && !has_fua
}

/// Collects records into a summary.
#[derive(Debug)]
pub(super) struct Summing {
    summary: Summary,
    took_max: Duration,
}

impl Summing {
    pub(super) const fn new(format: Format) -> Self {
        let summary = Summary {
            format,
            records: 0,
            timed: 0,
            span: Duration::ZERO,
            disks: Vec::new(),
            warnings: Vec::new(),
            cpus: BTreeSet::new(),
            processes: BTreeMap::new(),
            more_processes: false,
        };
        Self { summary, took_max: Duration::ZERO }
    }

    pub(super) fn add(&mut self, record: &Record) {
        let all = &mut self.summary;
        debug_assert!(all.span.as_ns() <= record.at.as_ns(), "[records-in-time-order]");
        all.records += 1;
        all.span = Duration::from_ns(record.at.as_ns());
        if let Some(took) = record.took {
            all.timed += 1;
            self.took_max = self.took_max.max(took);
        }
        all.cpus.insert(record.cpu);
        if all.processes.len() < SUBMITTERS_MAX || all.processes.contains_key(&record.pid) {
            all.processes.entry(record.pid).or_insert(record.cpu);
        } else {
            all.more_processes = true;
        }
        let at = usize::from(record.disk);
        if all.disks.len() <= at {
            all.disks.resize_with(at + 1, DiskSummary::default);
        }
        all.disks[at].add(record);
    }

    pub(super) fn finish(
        self,
        names: &[String],
        taken: Taken,
        passed: Passed,
        moved: (u64, Duration),
    ) -> Summary {
        let mut summary = self.summary;
        debug_assert!(summary.disks.len() <= names.len(), "every disk of a record has a name");
        debug_assert!(summary.processes.len() <= SUBMITTERS_MAX, "[bounded-trace-memory]");
        for (disk, name) in summary.disks.iter_mut().zip(names) {
            disk.name.clone_from(name);
        }
        let mut warnings = Vec::new();
        warn(&mut warnings, taken == Taken::Dispatched, Warning::Dispatches);
        warn(&mut warnings, moved.0 > 0, Warning::Moved { entries: moved.0, by: moved.1 });
        warn(&mut warnings, passed.assumes_calls, Warning::Calls);
        warn(&mut warnings, lacks_fua(&summary, passed), Warning::NoFua);
        let stacked = passed.remapped > 0 && summary.disks.len() > 1;
        warn(&mut warnings, stacked, Warning::Remapped { times: passed.remapped });
        for (number, disk) in summary.disks.iter().enumerate() {
            let coarse = disk.alignment_bytes() >= ALIGNED_SUSPECT_BYTES;
            warn(
                &mut warnings,
                coarse && disk.records >= ALIGNED_RECORDS_MIN,
                Warning::Coarse { disk: number },
            );
        }
        warn(&mut warnings, self.took_max > TOOK_SUSPECT, Warning::LongAnswer(self.took_max));
        warn(&mut warnings, summary.span > SPAN_SUSPECT, Warning::LongSpan(summary.span));
        summary.warnings = warnings;
        summary
    }
}

/// Adds a warning that applies.
fn warn(warnings: &mut Vec<Warning>, applies: bool, warning: Warning) {
    warnings.extend(applies.then_some(warning))
}

impl DiskSummary {
    fn add(&mut self, record: &Record) {
        self.records += 1;
        let (count, bytes) = match record.op {
            Op::Read => (&mut self.reads, &mut self.read_bytes),
            Op::Write | Op::WriteZeroes => (&mut self.writes, &mut self.written_bytes),
            Op::Discard | Op::SecureErase => (&mut self.discards, &mut self.discarded_bytes),
            Op::Flush => {
                self.flushes += 1;
                return;
            }
            Op::DriverIn | Op::DriverOut => return, // driver commands transfer no sectors
        };
        self.preflushes += u64::from(record.flags.contains(Flags::PREFLUSH));
        self.fua_writes += u64::from(record.flags.contains(Flags::FUA));
        *count += 1;
        *bytes = bytes.saturating_add(record.len_bytes.into());
        self.end_bytes = self.end_bytes.max(record.offset_bytes + u64::from(record.len_bytes));
        self.positions |= record.offset_bytes | u64::from(record.len_bytes);
        if matches!(record.op, Op::Read | Op::Write) {
            self.len_bytes_max = self.len_bytes_max.max(record.len_bytes);
        }
    }
}
