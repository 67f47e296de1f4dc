//! A lane's counters of one disk: a sink of the core's trace events, which also passes them to a watcher.
//!
//! A lane keeps counters only if the server can be queried for them or has a watcher. The counters are in the lane's
//! own memory, and the lane sends a copy on demand, so a query delays requests only by that copy.
//!
//! Times are those of the lane's clock, which is read once per turn. A request that a disk in memory
//! handles within one turn therefore takes no time.

use crate::watcher::LaneWatcher;
use blockyard::bio::Op;
use blockyard::request::Request;
use blockyard::stats::StageStats;
use blockyard::time::Instant;
use blockyard::trace::{Action, Event, Sink};

/// The kinds of request that node_exporter distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    Discard,
    Flush,
}

impl Kind {
    fn of(op: Op) -> Self {
        match op {
            Op::Read | Op::DriverIn => Self::Read,
            Op::Write | Op::WriteZeroes | Op::DriverOut => Self::Write,
            Op::Discard | Op::SecureErase => Self::Discard,
            Op::Flush => Self::Flush,
        }
    }
}

/// Completed requests of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Done {
    pub(crate) requests: u64,
    pub(crate) sectors: u64,
    /// The total time in nanoseconds from submission to completion; for flushes, from issue to completion.
    pub(crate) ns: u128,
    /// Bios or requests that were merged into others.
    pub(crate) merged: u64,
}

/// The counters of one disk, for one lane or for all lanes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) stages: StageStats,
    done: [Done; 4],
    pub(crate) issued: u64,
    /// The time in nanoseconds with at least one request in the driver.
    pub(crate) busy_ns: u128,
    /// The sum of the times in nanoseconds that all requests were in the driver.
    pub(crate) weighted_ns: u128,
    /// The maximum number of turns between the arrival of a request and its answer.
    pub(crate) turns_max: u64,
    /// The last instant that `busy_ns` and `weighted_ns` cover.
    changed: Instant,
}

impl Counts {
    pub(crate) fn new() -> Self {
        Self { stages: StageStats::watching(1, 1), ..Self::default() }
    }

    pub(crate) fn done(&self, kind: Kind) -> &Done {
        &self.done[kind as usize]
    }

    /// Returns the counters as of `now`, with the busy times extended to it.
    pub(crate) fn at(&self, now: Instant) -> Self {
        let mut counts = self.clone();
        counts.pass(now);
        counts
    }

    /// Adds the counters of another lane for the same disk.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.stages.merge(&other.stages);
        for (to, from) in self.done.iter_mut().zip(&other.done) {
            to.requests += from.requests;
            to.sectors += from.sectors;
            to.ns += from.ns;
            to.merged += from.merged;
        }
        self.issued += other.issued;
        self.busy_ns += other.busy_ns;
        self.weighted_ns += other.weighted_ns;
        self.turns_max = self.turns_max.max(other.turns_max);
    }

    fn pass(&mut self, now: Instant) {
        if self.issued > 0 {
            let ns = u128::from(now.since(self.changed).as_ns());
            self.busy_ns += ns;
            self.weighted_ns += ns * u128::from(self.issued);
        }
        self.changed = now;
    }

    fn completed(&mut self, request: &Request, at: Instant) {
        let done = &mut self.done[Kind::of(request.op) as usize];
        let from = match request.op {
            Op::Flush => request.times.issued,
            _ => request.times.queued,
        };
        done.requests += 1;
        done.sectors += u64::from(request.sectors);
        done.ns += u128::from(at.since(from).as_ns());
    }
}

impl Sink for Counts {
    #[inline(always)] // its callers know the action: the `match` is decided at compile time
    fn event(&mut self, event: &Event<'_>) {
        self.stages.event(event);
        match (event.action, event.request) {
            (Action::Issue, _) => {
                self.pass(event.at);
                self.issued += 1;
            }
            (Action::Requeue, _) => {
                self.pass(event.at);
                self.issued = self.issued.saturating_sub(1);
            }
            (Action::Complete(_), Some((_, request))) => {
                self.pass(event.at);
                self.issued = self.issued.saturating_sub(1);
                self.completed(request, event.at);
            }
            (Action::BackMerge | Action::FrontMerge | Action::Join, _) => {
                self.done[Kind::of(event.op) as usize].merged += 1;
            }
            _ => {}
        }
    }
}

/// A sink that counts the events and passes them to the watcher, or ignores them if it is `None`.
#[derive(Debug, Default)]
pub(crate) struct Meter(pub(crate) Option<Box<Metered>>);

/// The counters of a disk and the watcher of its events.
#[derive(Debug)]
pub(crate) struct Metered {
    pub(crate) counts: Counts,
    /// The number of the disk, and the watcher of all disks of the lane.
    pub(crate) watcher: Option<(u16, LaneWatcher)>,
}

impl Sink for Meter {
    #[inline]
    fn listens(&self) -> bool {
        self.0.is_some()
    }

    #[inline(always)] // its callers know the action: the `match` is decided at compile time
    fn event(&mut self, event: &Event<'_>) {
        if let Some(metered) = &mut self.0 {
            metered.counts.event(event);
            if let Some((disk, watcher)) = &metered.watcher {
                watcher.tell(*disk, event);
            }
        }
    }
}
