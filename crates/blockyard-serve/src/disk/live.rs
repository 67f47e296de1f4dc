//! A disk that behaves as a modelled device: its data is kept below, and when requests are done, and how
//! many it takes, is the model's.
//!
//! # Rules (cited by name)
//!
//! - **[slower-side-decides]** A request begins below when the model takes it, and is done when both are: so a fast medium
//!   shows the time of the model, and what a slow one adds is counted.
//! - **[model-asked-on-time]** The model is asked at the instants that it names, not at those at which the lane comes to
//!   it: it never learns that the lane was late, and lateness does not add up.
//! - **[model-error-wins]** How a request ends is what the model says, where that is not well; else what the medium
//!   says. What the medium cannot take now is tried again when the model is done with it.
//! - **[extra-flush-for-medium]** A flush that only the medium needs is the medium's alone.
//! - **[both-sides-get-every-call]** Model and medium each get every call about a request that they are offered. What the medium
//!   refuses after the model took it is undone at the medium at once.

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
    /// The model has it ([extra-flush-for-medium]), and so has the medium ([model-error-wins]).
    has: (bool, bool),
}

/// A medium that behaves as a model. See the [module](self).
pub(crate) struct Live<M> {
    medium: M,
    model: Box<dyn Device>,
    /// The model knows of flushes.
    model_flushes: bool,
    /// By tag.
    sides: Vec<Sides>,
    finished: VecDeque<Finished>,
    timing: Arc<Timing>,
}

impl<M: fmt::Debug> fmt::Debug for Live<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").field("medium", &self.medium).finish_non_exhaustive()
    }
}

impl<M: Device> Live<M> {
    pub(crate) fn new(medium: M, behaviour: &dyn Behaviour, timing: Arc<Timing>) -> Self {
        Self {
            medium,
            model: behaviour.device(),
            model_flushes: behaviour.limits().write_cache,
            sides: vec![Sides::default(); usize::from(behaviour.depth())],
            finished: VecDeque::new(),
            timing,
        }
    }

    /// Whether the model is offered this too ([extra-flush-for-medium]).
    fn is_for_model(&self, issue: &Issue<'_>) -> bool {
        self.model_flushes || issue.request().op != Op::Flush
    }

    /// Everything that both sides are done with by `now`.
    fn take_in(&mut self, now: Instant) {
        while let Some(finished) = self.medium.next_finished(now) {
            self.sides[finished.tag.index()].medium = Some(finished.outcome);
            self.conclude(finished, now);
        }
        while let Some(due) = self.model.poll_at().filter(|due| *due <= now) {
            while let Some(finished) = self.model.next_finished(due) {
                self.sides[finished.tag.index()].model = Some((finished.outcome, due)); // [model-asked-on-time]
                self.conclude(finished, now);
            }
        }
    }

    /// [slower-side-decides], [model-error-wins].
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
        // What one side keeps prepared, the other may not have: both are finished and prepared again.
        let outcome = match outcome {
            Outcome::AgainPrepared => Outcome::Again,
            outcome => outcome,
        };
        self.finished.push_back(Finished { outcome, ..finished });
    }
}

impl<M: Device> Driver for Live<M> {
    fn take_budget(&mut self, queue: QueueId) -> Option<Budget> {
        self.model.take_budget(queue)
    }

    fn return_budget(&mut self, queue: QueueId, budget: Budget) {
        self.model.return_budget(queue, budget);
    }

    fn prepare(&mut self, issue: &Issue<'_>) {
        if self.is_for_model(issue) {
            self.model.prepare(issue);
        }
        self.medium.prepare(issue);
    }

    fn unprepare(&mut self, issue: &Issue<'_>) {
        if self.is_for_model(issue) {
            self.model.unprepare(issue);
        }
        self.medium.unprepare(issue);
    }

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        self.take_in(issue.now);
        let is_models = self.is_for_model(issue); // [extra-flush-for-medium]
        if is_models {
            let accept = self.model.queue_rq(issue);
            if accept != Accept::Queued {
                return accept;
            }
        } else if issue.last {
            self.model.commit(issue.queue, issue.hctx, issue.now); // [both-sides-get-every-call]: its run ends without this one
        }
        let (medium, has) = match self.medium.queue_rq(issue) {
            Accept::Queued => (None, true),
            refused if !is_models => return refused,
            refused => {
                self.medium.unprepare(issue); // [both-sides-get-every-call]
                if issue.last {
                    self.medium.commit(issue.queue, issue.hctx, issue.now);
                }
                match refused {
                    Accept::Failed(status) => (Some(Outcome::Done(status)), false),
                    _ => (Some(Outcome::Again), false), // [model-error-wins]
                }
            }
        };
        self.sides[issue.tag.index()] = Sides { model: None, medium, has: (is_models, has) };
        Accept::Queued
    }

    fn commit(&mut self, queue: QueueId, hctx: HctxId, now: Instant) {
        self.model.commit(queue, hctx, now);
        self.medium.commit(queue, hctx, now);
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
        if !sides.has.0 {
            return self.medium.timed_out(queue, hctx, tag, request, now);
        }
        if sides.model.is_some() || (sides.has.1 && sides.medium.is_none()) {
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

impl<M: Device> Device for Live<M> {
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
        // [extra-flush-for-medium]: what only the medium needs is asked of it by a flush.
        fua: model.fua && (medium.fua || !medium.write_cache) && model.write_cache,
        capacity_sectors: medium.capacity_sectors,
        ..model.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard::bio::Bio;
    use blockyard::device::recorder::Recorder;
    use blockyard::host::Host;
    use blockyard::policy::Policies;
    use blockyard::request_queue::{QueueConfig, RequestQueue};
    use blockyard::tag::TagSetConfig;
    use blockyard::unit::CpuId;
    use std::sync::Mutex;

    /// What was called, in order: the side and the call.
    type Calls = Arc<Mutex<Vec<(&'static str, &'static str)>>>;

    /// A device that notes each call about a request as one on `side`.
    fn recorder(
        side: &'static str,
        calls: &Calls,
        refusals: u32,
    ) -> Recorder<impl Fn(&'static str) + use<>> {
        let calls = Arc::clone(calls);
        let note = move |call| {
            if !matches!(call, "next_finished" | "poll_at") {
                calls.lock().expect("no call panics").push((side, call));
            }
        };
        Recorder::new(note, refusals)
    }

    #[derive(Debug)]
    struct Model {
        limits: Limits,
        calls: Calls,
    }

    impl Behaviour for Model {
        fn limits(&self) -> &Limits {
            &self.limits
        }

        fn depth(&self) -> u16 {
            4
        }

        fn device(&self) -> Box<dyn Device> {
            Box::new(recorder("model", &self.calls, 0))
        }
    }

    /// The calls that a bio leads to, and how it ends, at a medium that refuses `refusals` requests.
    fn calls_of(bio: Bio, refusals: u32) -> (Vec<(&'static str, &'static str)>, Status) {
        let calls = Calls::default();
        let limits = Limits::new(1 << 20);
        let model = Model { limits: limits.clone(), calls: Arc::clone(&calls) };
        let medium = recorder("medium", &calls, refusals);
        let live = Live::new(medium, &model, Arc::default());
        let tags = TagSetConfig::single(4);
        let mut host = Host::new(live, (), tags);
        let limits = Limits { write_cache: true, ..limits };
        let config = QueueConfig::new(1, 1, limits, Policies::NONE);
        let mut queue = RequestQueue::new(QueueId(0), config, &host);
        queue.submit(&mut host, CpuId(0), bio, Instant::ZERO).expect("a bio within the limits");
        queue.turn(&mut host, Instant::ZERO);
        let ended = queue.next_ended().expect("a bio that both sides are done with");
        let calls = calls.lock().expect("no call panics").clone();
        let is_budget = |call: &str| call.ends_with("budget");
        (calls.into_iter().filter(|(_, call)| !is_budget(call)).collect(), ended.status)
    }

    #[test]
    fn model_and_medium_get_every_call_about_a_request() {
        let (calls, status) = calls_of(Bio::read(0, 8, 0), 0);
        let expected = ["prepare", "queue_rq", "finish"];
        let expected = expected.iter().flat_map(|call| [("model", *call), ("medium", *call)]);
        assert_eq!((calls, status), (expected.collect(), Status::Ok)); // [both-sides-get-every-call]
    }

    /// Checks [extra-flush-for-medium] and [both-sides-get-every-call].
    #[test]
    fn a_flush_for_the_medium_alone_ends_the_run_of_the_model() {
        let (calls, status) = calls_of(Bio::new(Op::Flush, 0, 0, 0), 0);
        let model: Vec<_> = calls.iter().filter(|(side, _)| *side == "model").collect();
        assert_eq!(
            model,
            [&("model", "commit")],
            "[extra-flush-for-medium], [both-sides-get-every-call]"
        );
        let medium: Vec<_> = calls.iter().filter(|(side, _)| *side == "medium").collect();
        assert_eq!(medium.len(), 3, "{medium:?}");
        assert_eq!(status, Status::Ok);
    }

    #[test]
    fn a_medium_that_refuses_what_the_model_took_is_left_unprepared() {
        let (calls, status) = calls_of(Bio::read(0, 8, 0), 1);
        let medium: Vec<_> =
            calls.iter().filter(|(side, _)| *side == "medium").map(|(_, call)| *call).collect();
        assert_eq!(medium, ["prepare", "queue_rq", "unprepare", "commit"]); // [both-sides-get-every-call]
        assert_eq!(status, Status::IoError);
        assert!(calls.contains(&("model", "finish")));
    }

    #[test]
    fn a_commit_reaches_model_and_medium() {
        let calls = Calls::default();
        let model = Model { limits: Limits::new(1 << 20), calls: Arc::clone(&calls) };
        let mut live = Live::new(recorder("medium", &calls, 0), &model, Arc::default());
        live.commit(QueueId(0), HctxId(0), Instant::ZERO);
        let expected = [("model", "commit"), ("medium", "commit")];
        assert_eq!(*calls.lock().expect("no call panics"), expected);
    }
}
