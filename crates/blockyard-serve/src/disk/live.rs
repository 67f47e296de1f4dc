//! A disk that behaves as a modelled device: its data is kept below, and when requests are done, and how
//! many it takes, is the model's.
//!
//! # Rules (cited by number in the code)
//!
//! - **V1.** A request begins below when the model takes it, and is done when both are: so a fast medium
//!   shows the time of the model, and what a slow one adds is counted.
//! - **V2.** The model is asked at the instants that it names, not at those at which the lane comes to
//!   it: it never learns that the lane was late, and lateness does not add up.
//! - **V3.** How a request ends is what the model says, where that is not well; else what the medium
//!   says. What the medium cannot take now is tried again when the model is done with it.
//! - **V4.** A flush that only the medium needs is the medium's alone.

use super::Medium;
use blockyard::bio::Op;
use blockyard::driver::{Accept, Device, Driver, Finished, Issue, Outcome, TimedOut};
use blockyard::limits::Limits;
use blockyard::request::Request;
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{Budget, DriverTag, HctxId, QueueId};
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::VecDeque;
use std::sync::Arc;

/// A completion this much after its time is late: a timer and a switch of threads take less.
pub const LATE: Duration = Duration::from_us(100);

/// What a disk is to behave as.
///
/// The device is told the instants of the lane's clock. Of its own it has timing, depth and errors, no
/// data; it has queue 0 and hardware queue 0.
pub trait Behaviour: fmt::Debug + Send + Sync {
    /// What it takes at once. A disk may be smaller than this says, not larger.
    fn limits(&self) -> &Limits;

    /// Requests that it holds at once: its tags.
    fn depth(&self) -> u16;

    /// The device itself, within the lane that drives it.
    fn device(&self) -> Box<dyn Device>;
}

/// How well the machine keeps up with a model. See [`Server::timing`](crate::Server::timing).
#[derive(Debug, Default)]
pub struct Timing {
    completions: AtomicU64,
    late: AtomicU64,
    late_ns: AtomicU64,
    latest_ns: AtomicU64,
}

/// A [`Timing`] at an instant, counted from the begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Requests that are done.
    pub completions: u64,
    /// Of those, later than due by [`LATE`] or more.
    pub late: u64,
    /// Sum of how much later than due they were, of all.
    pub total: Duration,
    /// Most that one was.
    pub most: Duration,
}

impl Timing {
    fn note(&self, lateness: Duration) {
        let ns = lateness.as_ns();
        self.completions.fetch_add(1, Ordering::Relaxed);
        self.late.fetch_add(u64::from(lateness >= LATE), Ordering::Relaxed);
        self.late_ns.fetch_add(ns, Ordering::Relaxed);
        self.latest_ns.fetch_max(ns, Ordering::Relaxed);
    }

    /// What was counted so far.
    #[must_use]
    pub fn read(&self) -> Lateness {
        Lateness {
            completions: self.completions.load(Ordering::Relaxed),
            late: self.late.load(Ordering::Relaxed),
            total: Duration::from_ns(self.late_ns.load(Ordering::Relaxed)),
            most: Duration::from_ns(self.latest_ns.load(Ordering::Relaxed)),
        }
    }
}

/// A request under way, on both sides.
#[derive(Clone, Copy, Debug, Default)]
struct Sides {
    /// What the model says of it, and when that was due.
    model: Option<(Outcome, Instant)>,
    /// What the medium says of it.
    medium: Option<Outcome>,
    /// The model has it (V4), and so has the medium (V3).
    has: (bool, bool),
}

/// A medium that behaves as a model. See the [module](self).
pub(crate) struct Live {
    medium: Box<Medium>,
    model: Box<dyn Device>,
    /// The model knows of flushes.
    model_flushes: bool,
    /// By tag.
    sides: Vec<Sides>,
    finished: VecDeque<Finished>,
    timing: Arc<Timing>,
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").field("medium", &self.medium).finish_non_exhaustive()
    }
}

impl Live {
    pub(crate) fn new(medium: Medium, behaviour: &dyn Behaviour, timing: Arc<Timing>) -> Self {
        Self {
            medium: Box::new(medium),
            model: behaviour.device(),
            model_flushes: behaviour.limits().write_cache,
            sides: vec![Sides::default(); usize::from(behaviour.depth())],
            finished: VecDeque::new(),
            timing,
        }
    }

    /// Everything that both sides are done with by `now`.
    fn take_in(&mut self, now: Instant) {
        while let Some(finished) = self.medium.next_finished(now) {
            self.sides[finished.tag.index()].medium = Some(finished.outcome);
            self.conclude(finished, now);
        }
        while let Some(due) = self.model.poll_at().filter(|due| *due <= now) {
            while let Some(finished) = self.model.next_finished(due) {
                self.sides[finished.tag.index()].model = Some((finished.outcome, due)); // V2
                self.conclude(finished, now);
            }
        }
    }

    /// V1, V3.
    fn conclude(&mut self, finished: Finished, now: Instant) {
        let sides = self.sides[finished.tag.index()];
        let outcome = match (sides.model, sides.medium) {
            (None, Some(medium)) if !sides.has.0 => medium,
            (Some((model, due)), Some(medium)) => {
                self.timing.note(now.since(due));
                if model == Outcome::Done(Status::Ok) { medium } else { model }
            }
            _ => return,
        };
        self.finished.push_back(Finished { outcome, ..finished });
    }
}

impl Driver for Live {
    fn take_budget(&mut self, queue: QueueId) -> Option<Budget> {
        self.model.take_budget(queue)
    }

    fn return_budget(&mut self, queue: QueueId, budget: Budget) {
        self.model.return_budget(queue, budget);
    }

    fn prepare(&mut self, issue: &Issue<'_>) {
        self.model.prepare(issue);
    }

    fn unprepare(&mut self, issue: &Issue<'_>) {
        self.model.unprepare(issue);
    }

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        self.take_in(issue.now);
        let is_models = self.model_flushes || issue.request().op != Op::Flush; // V4
        if is_models {
            let accept = self.model.queue_rq(issue);
            if accept != Accept::Queued {
                return accept;
            }
        }
        let (medium, has) = match self.medium.queue_rq(issue) {
            Accept::Queued => (None, true),
            refused if !is_models => return refused,
            Accept::Busy(_) => (Some(Outcome::Again), false), // V3
            Accept::Failed(status) => (Some(Outcome::Done(status)), false),
        };
        self.sides[issue.tag.index()] = Sides { model: None, medium, has: (is_models, has) };
        Accept::Queued
    }

    fn commit(&mut self, queue: QueueId, hctx: HctxId, now: Instant) {
        self.model.commit(queue, hctx, now);
    }

    fn timed_out(
        &mut self,
        queue: QueueId,
        hctx: HctxId,
        tag: DriverTag,
        request: &Request,
        now: Instant,
    ) -> TimedOut {
        let sides = self.sides[tag.index()];
        if !sides.has.0 || sides.model.is_some() || (sides.has.1 && sides.medium.is_none()) {
            return TimedOut::Reset; // the medium is at it still
        }
        self.model.timed_out(queue, hctx, tag, request, now)
    }

    fn finish(&mut self, queue: QueueId, hctx: HctxId, tag: DriverTag, request: &Request) {
        let Sides { has: (model, medium), .. } = core::mem::take(&mut self.sides[tag.index()]);
        if model {
            self.model.finish(queue, hctx, tag, request);
        }
        if medium {
            self.medium.finish(queue, hctx, tag, request);
        }
    }
}

impl Device for Live {
    fn next_finished(&mut self, now: Instant) -> Option<Finished> {
        self.take_in(now);
        self.finished.pop_front()
    }

    fn poll_at(&self) -> Option<Instant> {
        if self.finished.is_empty() {
            self.model.poll_at().into_iter().chain(self.medium.poll_at()).min()
        } else {
            Some(Instant::ZERO)
        }
    }
}

/// The limits of a disk on a medium with those of `medium`, that behaves as one with those of `model`.
pub(crate) fn limits(medium: Limits, model: &Limits) -> Limits {
    Limits {
        logical_block_sectors: medium.logical_block_sectors.max(model.logical_block_sectors),
        max_sectors: medium.max_sectors.min(model.max_sectors),
        max_discard_sectors: medium.max_discard_sectors.min(model.max_discard_sectors),
        max_write_zeroes_sectors: medium
            .max_write_zeroes_sectors
            .min(model.max_write_zeroes_sectors),
        max_discard_segments: 1,
        write_cache: medium.write_cache || model.write_cache,
        // V4: what only the medium needs is asked of it by a flush.
        fua: model.fua && (medium.fua || !medium.write_cache) && model.write_cache,
        capacity_sectors: medium.capacity_sectors,
        ..model.clone()
    }
}
