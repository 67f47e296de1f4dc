//! Locks and contended words: how often they were taken, for how long they were held, and how long processors waited.

#![expect(clippy::float_arithmetic, reason = "means are for reading: nothing is ordered by them")]

use serde::Serialize;

use super::number::{approximate, ratio};
use crate::machine::locks::{LockKind, LockUse};
use crate::simulate::Report;

/// The figures of all locks of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LockFigures {
    /// The kind of lock.
    pub kind: LockKind,
    /// Acquisitions for each I/O.
    pub per_io: f64,
    /// The share of acquisitions for which cache lines moved from another CPU.
    pub moved_percent: f64,
    /// The share of the time for which the lock was held; of several, that of the busiest one.
    pub held_percent: f64,
    /// The time for which CPUs waited, for each acquisition, in nanoseconds.
    pub mean_wait_ns: f64,
    /// The longest wait of a piece of work for all of its acquisitions, in nanoseconds.
    pub longest_wait_ns: u64,
}

impl LockKind {
    /// Returns its name in sentences.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "the queue's lock",
            Self::Elevator => "the scheduler's lock",
            Self::DispatchList => "the dispatch list's lock",
            Self::TagWords => "the words of the tag map",
        }
    }
}

impl LockFigures {
    /// The figures of each kind of lock that was used in `report`, a run of so many `ios`.
    #[must_use]
    pub fn of(report: &Report, ios: u64) -> Vec<Self> {
        let span = approximate(report.span.as_ns());
        let of = |used: &LockUse| {
            let LockUse { kind, all, busiest } = *used;
            let acquisitions = approximate(all.acquisitions);
            debug_assert!(acquisitions > 0.0, "{kind:?} was not used");
            Self {
                kind,
                per_io: ratio(acquisitions, approximate(ios)),
                moved_percent: 100.0 * ratio(approximate(all.moves), acquisitions),
                // The last hold may end after the run.
                held_percent: ratio(100.0 * approximate(busiest.held.as_ns()), span).min(100.0),
                mean_wait_ns: ratio(approximate(all.waited.as_ns()), acquisitions),
                longest_wait_ns: all.longest_wait.as_ns(),
            }
        };
        report.locks.iter().map(of).collect()
    }
}
