//! Persistent memory: what a processor spends an I/O on.

#![expect(clippy::float_arithmetic, reason = "means are for reading: nothing is ordered by them")]

use serde::Serialize;

use super::{Part, PmemReport};
use crate::compare::RunTotals;
use blockyard_text::number::{approximate, per_io, ratio};

/// Means for each I/O on persistent memory.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PmemFigures {
    /// CPU time in nanoseconds.
    pub io_ns: f64,
    /// The parts of that time, in nanoseconds.
    pub parts_ns: PmemParts,
    /// The parts of that time as shares of it, in percent.
    pub percent: PmemParts,
    /// Fences.
    pub fences: f64,
    /// Cache lines written back, data excluded.
    pub write_backs: f64,
    /// Scans of the words of all readers.
    pub scans: f64,
    /// Lines of shared words fetched from another processor.
    pub transfers: f64,
    /// Time spent waiting for locks, in nanoseconds. It is included in the time for locks.
    pub lock_wait_ns: f64,
    /// Utilisation of the memory channels, in percent.
    pub channels_percent: f64,
}

/// The parts of an I/O's CPU time. They add up to the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PmemParts {
    /// Before and after the memory: system calls, bios, threads.
    pub path: f64,
    /// Copying data, and waiting for memory channels.
    pub copy: f64,
    /// Keeping track of readers: published blocks, scans, versions.
    pub tracking: f64,
    /// Taking lanes and map entries, and waiting for them.
    pub locks: f64,
    /// Storing and writing back log entries.
    pub log: f64,
    /// Loading, storing and writing back map entries.
    pub map: f64,
    /// Waiting until stores are durable.
    pub fences: f64,
}

impl PmemParts {
    /// The part that is spent on `part`.
    #[must_use]
    pub const fn of(&self, part: Part) -> f64 {
        match part {
            Part::Copy => self.copy,
            Part::Tracking => self.tracking,
            Part::Locks => self.locks,
            Part::Log => self.log,
            Part::Map => self.map,
            Part::Fences => self.fences,
        }
    }

    /// The value that `of` gives for each part, apart from `path`.
    #[must_use]
    pub fn new(path: f64, of: impl Fn(Part) -> f64) -> Self {
        Self {
            path,
            copy: of(Part::Copy),
            tracking: of(Part::Tracking),
            locks: of(Part::Locks),
            log: of(Part::Log),
            map: of(Part::Map),
            fences: of(Part::Fences),
        }
    }

    /// All parts that are spent in the memory and the table.
    pub(crate) fn in_memory(&self) -> f64 {
        Part::ALL.into_iter().map(|part| self.of(part)).sum()
    }
}

impl PmemFigures {
    /// The figures of `pmem` in a run with these `totals`.
    pub(super) fn new(pmem: &PmemReport, totals: &RunTotals) -> Self {
        let ios = pmem.reads + pmem.writes;
        let part_ns = |part: Part| per_io(pmem.parts[part as usize].as_ns(), ios);
        let io_ns = per_io(totals.cpu.as_ns(), ios);
        let in_memory: f64 = Part::ALL.into_iter().map(part_ns).sum();
        let path_ns = (io_ns - in_memory).max(0.0);
        Self {
            io_ns,
            parts_ns: PmemParts::new(path_ns, part_ns),
            percent: PmemParts::new(ratio(100.0 * path_ns, io_ns), |part| {
                ratio(100.0 * part_ns(part), io_ns)
            }),
            fences: per_io(pmem.fences, ios),
            write_backs: per_io(pmem.write_backs, ios),
            scans: per_io(pmem.scans, ios),
            transfers: per_io(pmem.transfers, ios),
            lock_wait_ns: per_io(pmem.lock_wait.as_ns(), ios),
            channels_percent: ratio(
                100.0 * approximate(pmem.channels_used.as_ns()),
                approximate(totals.span.as_ns()) * f64::from(pmem.channels),
            ),
        }
    }
}
