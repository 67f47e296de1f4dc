//! Locks and contended words: how often they were taken, what held them and for how long, and how
//! long processors waited.

#![expect(clippy::float_arithmetic, reason = "means are for reading: nothing is ordered by them")]

use blockyard::time::Duration;
use serde::Serialize;

use blockyard_sim::machine::lock::{LockCounts, LockHolder};
use blockyard_sim::machine::locks::{LockKind, LockUse};
use blockyard_sim::simulate::Report;
use blockyard_text::number::{approximate, ratio};

/// The figures of all locks of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LockFigures {
    /// The kind of lock.
    pub kind: LockKind,
    /// The figures of all holders together.
    #[serde(flatten)]
    pub all: HoldFigures,
    /// The figures of each holder; one that neither took the lock nor waited for it is left out.
    pub holders: Vec<HolderFigures>,
}

/// The figures of what holds locks of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HolderFigures {
    /// The holder.
    pub holder: LockHolder,
    /// Its figures.
    #[serde(flatten)]
    pub of: HoldFigures,
}

/// How often locks were taken, for how long they were held, and how long CPUs waited for them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HoldFigures {
    /// Acquisitions for each I/O.
    pub per_io: f64,
    /// The share of acquisitions for which cache lines moved from another CPU.
    pub moved_percent: f64,
    /// The share of the time for which the lock was held; of several, that of the one which all
    /// holders together held for the longest time.
    pub held_percent: f64,
    /// The time for which the lock was held, for each acquisition, in nanoseconds.
    pub mean_hold_ns: f64,
    /// The longest time for which one acquisition held the lock, in nanoseconds.
    pub longest_hold_ns: u64,
    /// The time for which CPUs waited, for each acquisition, in nanoseconds.
    pub mean_wait_ns: f64,
    /// The longest wait of a piece of work for all of its acquisitions, in nanoseconds.
    pub longest_wait_ns: u64,
}

impl LockFigures {
    /// The figures of each kind of lock that was used in `report`, a run of so many `ios`.
    #[must_use]
    pub fn of(report: &Report, ios: u64) -> Vec<Self> {
        let of = |used: &LockUse| {
            let LockUse { kind, all, busiest } = used;
            let sum = LockCounts::sum(all);
            debug_assert!(sum.acquisitions > 0, "{kind:?} was not used");
            let each = LockHolder::ALL.into_iter().zip(all.iter().zip(busiest));
            let used = each.filter(|(_, (all, _))| **all != LockCounts::default());
            let holders = used.map(|(holder, (all, busiest))| HolderFigures {
                holder,
                of: HoldFigures::of(*all, *busiest, report.span, ios),
            });
            Self {
                kind: *kind,
                all: HoldFigures::of(sum, LockCounts::sum(busiest), report.span, ios),
                holders: holders.collect(),
            }
        };
        report.locks.iter().map(of).collect()
    }
}

impl HoldFigures {
    /// The figures of `all` locks and of the `busiest` one, in a run of such a `span` and so many
    /// `ios`.
    fn of(all: LockCounts, busiest: LockCounts, span: Duration, ios: u64) -> Self {
        debug_assert!(busiest.held <= all.held, "one lock is held no longer than all");
        let acquisitions = approximate(all.acquisitions);
        let held = approximate(busiest.held.as_ns());
        Self {
            per_io: ratio(acquisitions, approximate(ios)),
            moved_percent: 100.0 * ratio(approximate(all.moves), acquisitions),
            // The last hold may end after the run.
            held_percent: ratio(100.0 * held, approximate(span.as_ns())).min(100.0),
            mean_hold_ns: ratio(approximate(all.held.as_ns()), acquisitions),
            longest_hold_ns: all.longest_hold.as_ns(),
            mean_wait_ns: ratio(approximate(all.waited.as_ns()), acquisitions),
            longest_wait_ns: all.longest_wait.as_ns(),
        }
    }
}
