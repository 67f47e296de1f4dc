//! What a trace holds, found by reading it once.

use super::reader::{Passed, Taken};
use super::record::Record;
use super::{Format, SUBMITTERS_MAX};
use blockyard::bio::Op;
use blockyard::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Records from which a common alignment of all says something about the unit.
const ALIGNED_RECORDS_MIN: u64 = 64;
/// Sectors counted as if they were bytes are all aligned to this.
const ALIGNED_SUSPECT_BYTES: u64 = 512 * 512;
/// An answer that took longer says something about the unit.
const TOOK_SUSPECT: Duration = Duration::from_secs(600);
/// A trace that lasts longer says something about the unit.
const SPAN_SUSPECT: Duration = Duration::from_secs(60 * 86_400);

/// What a trace holds of one disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskSummary {
    /// Its name in the trace.
    pub name: String,
    /// Its records.
    pub records: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written, zeroes among them.
    pub written_bytes: u64,
    /// Bytes discarded or erased.
    pub discarded_bytes: u64,
    /// Reads.
    pub reads: u64,
    /// Writes, those of zeroes among them.
    pub writes: u64,
    /// Discards and secure erases.
    pub discards: u64,
    /// Flushes.
    pub flushes: u64,
    /// The byte behind the last one that a record touches: the disk has at least this size.
    pub end_bytes: u64,
    /// The longest read or write, bytes.
    pub len_bytes_max: u32,
    /// Offsets and lengths joined bit by bit: its lowest bit is the alignment of all.
    pub(super) positions: u64,
}

impl DiskSummary {
    /// The largest power of two that divides every offset and length; 0 where there is none but 0.
    #[must_use]
    pub const fn alignment_bytes(&self) -> u64 {
        self.positions & self.positions.wrapping_neg()
    }
}

/// What a trace holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Its format.
    pub format: Format,
    /// I/Os.
    pub records: u64,
    /// Of those, how many tell how long they took.
    pub timed: u64,
    /// From the first issue to the last.
    pub span: Duration,
    /// By number: the order of appearance.
    pub disks: Vec<DiskSummary>,
    /// What looks wrong, or is worth knowing.
    pub warnings: Vec<Warning>,
    /// Processors that issued something.
    pub(super) cpus: BTreeSet<u16>,
    /// Processes, each with the processor it ran on first; no more than [`SUBMITTERS_MAX`].
    pub(super) processes: BTreeMap<u32, u16>,
    /// There are more.
    pub(super) more_processes: bool,
}

impl Summary {
    /// Bytes of all disks, read, written and discarded.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let of = |disk: &DiskSummary| [disk.read_bytes, disk.written_bytes, disk.discarded_bytes];
        self.disks.iter().flat_map(of).fold(0, u64::saturating_add)
    }
}

/// Something about a trace that is possible and looks wrong, or that changes what is replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// There was no `Q`: what the driver was given is replayed.
    Dispatches,
    /// Entries stood later than their time.
    Moved {
        /// How many.
        entries: u64,
        /// By how much at most.
        by: Duration,
    },
    /// I/O was passed on from disk to disk.
    Remapped {
        /// How often.
        times: u64,
    },
    /// All offsets and lengths are multiples of 256 KiB.
    Coarse {
        /// The number of the disk.
        disk: usize,
    },
    /// An answer took very long.
    LongAnswer(Duration),
    /// The trace lasts very long.
    LongSpan(Duration),
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dispatches => f.write_str(
                "no I/O was recorded as it was queued (Q): what the driver was given (D) is \
                 replayed, merged and ordered as it was then",
            ),
            Self::Moved { entries, by } => write!(
                f,
                "{entries} entries stood later than their time, by {} us at most, and were put in \
                 order",
                by.as_ns().div_ceil(1000)
            ),
            Self::Remapped { times } => write!(
                f,
                "I/O was passed on from disk to disk {times} times: the same I/O is in the trace \
                 once for each; choose one disk"
            ),
            Self::Coarse { disk } => write!(
                f,
                "disk {disk}: every offset and length is a multiple of 256 KiB: bytes where \
                 sectors should be?"
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

/// Takes records and makes a summary of them.
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
        for (disk, name) in summary.disks.iter_mut().zip(names) {
            disk.name.clone_from(name);
        }
        let mut warnings = Vec::new();
        let mut warn = |so: bool, warning| warnings.extend(so.then_some(warning));
        warn(taken == Taken::Dispatched, Warning::Dispatches);
        warn(moved.0 > 0, Warning::Moved { entries: moved.0, by: moved.1 });
        let stacked = passed.remapped > 0 && summary.disks.len() > 1;
        warn(stacked, Warning::Remapped { times: passed.remapped });
        for (number, disk) in summary.disks.iter().enumerate() {
            let coarse = disk.alignment_bytes() >= ALIGNED_SUSPECT_BYTES;
            warn(coarse && disk.records >= ALIGNED_RECORDS_MIN, Warning::Coarse { disk: number });
        }
        warn(self.took_max > TOOK_SUSPECT, Warning::LongAnswer(self.took_max));
        warn(summary.span > SPAN_SUSPECT, Warning::LongSpan(summary.span));
        summary.warnings = warnings;
        summary
    }
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
            Op::DriverIn | Op::DriverOut => return, // no sectors are read or written
        };
        *count += 1;
        *bytes = bytes.saturating_add(record.len_bytes.into());
        self.end_bytes = self.end_bytes.max(record.offset_bytes + u64::from(record.len_bytes));
        self.positions |= record.offset_bytes | u64::from(record.len_bytes);
        if matches!(record.op, Op::Read | Op::Write) {
            self.len_bytes_max = self.len_bytes_max.max(record.len_bytes);
        }
    }
}
