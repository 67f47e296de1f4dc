//! What a lane counts of a disk: a sink of the core's events, and copies of it for whoever asks; and
//! whoever is told all of them.
//!
//! Nothing is counted where nobody can ask. Where somebody can, the lane counts in memory of its own,
//! and is told to copy it: so asking costs the requests of others a copy now and then, and nothing else.
//!
//! Times are those of the lane's clock, which is read once a turn: what a disk in memory does within one
//! takes no time.

use crate::watcher::LaneWatcher;
use blockyard::bio::Op;
use blockyard::request::Request;
use blockyard::stats::StageStats;
use blockyard::time::Instant;
use blockyard::trace::{Action, Event, Sink};

/// The kinds that node_exporter keeps apart.
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

/// Requests of one kind that the device was done with.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Done {
    pub(crate) requests: u64,
    pub(crate) sectors: u64,
    /// From their submission, or for flushes from when the device had them, in nanoseconds.
    pub(crate) ns: u128,
    /// Bios, or requests, that joined others.
    pub(crate) merged: u64,
}

/// What was counted of one disk, by one lane or by all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) stages: StageStats,
    done: [Done; 4],
    /// Requests at the device.
    pub(crate) issued: u64,
    /// How long there was one at least, and how long all were there together, in nanoseconds.
    pub(crate) busy_ns: u128,
    pub(crate) weighted_ns: u128,
    /// The most turns of a lane between the arrival of a request and its answer.
    pub(crate) turns_max: u64,
    /// When `issued` changed last.
    changed: Instant,
}

impl Counts {
    /// Nothing counted.
    pub(crate) fn new() -> Self {
        Self { stages: StageStats::watching(1, 1), ..Self::default() }
    }

    pub(crate) fn done(&self, kind: Kind) -> &Done {
        &self.done[kind as usize]
    }

    /// As it will be at `now`, if nothing happens until then.
    pub(crate) fn at(&self, now: Instant) -> Self {
        let mut counts = self.clone();
        counts.pass(now);
        counts
    }

    /// Adds what another lane counted of the same disk.
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

/// Counts, where somebody can ask, and tells, where somebody wants to hear.
#[derive(Debug, Default)]
pub(crate) struct Meter(pub(crate) Option<Box<Metered>>);

/// What is counted of a disk, and who is told.
#[derive(Debug)]
pub(crate) struct Metered {
    pub(crate) counts: Counts,
    /// The number of the disk, and who hears of all disks of the lane.
    pub(crate) watcher: Option<(u16, LaneWatcher)>,
}

impl Sink for Meter {
    #[inline]
    fn listens(&self) -> bool {
        self.0.is_some()
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        if let Some(metered) = &mut self.0 {
            metered.counts.event(event);
            if let Some((disk, watcher)) = &metered.watcher {
                watcher.tell(*disk, event);
            }
        }
    }
}
