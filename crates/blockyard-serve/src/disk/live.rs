//! A disk that behaves like a modelled device.
//!
//! The medium below keeps the data, and the model decides when requests end and how many fit.
//!
//! A request goes to the medium when the model accepts it, and ends when both have finished it. A
//! fast medium shows the time of the model; the delay that a slow one adds is counted. The request
//! ends with the model's status if that is an error, otherwise with the medium's. A request that
//! the medium refuses for now is tried again when the model has finished it.
//!
//! # Rules (cited by name)
//!
//! - **[extra-flush-for-medium]** A flush that only the medium needs goes to the medium alone.
//! - **[both-sides-get-every-call]** Model and medium each get every call about a request that they
//!   are offered. If the medium refuses a request that the model accepted, the request is undone at
//!   the medium immediately.

use blockyard::bio::Op;
use blockyard::device::null::NullDevice;
use blockyard::driver::{Accept, Device, Driver, Finished, Issue, Outcome, TimedOut};
use blockyard::limits::Limits;
use blockyard::request::Request;
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{Budget, DriverTag, HctxId, QueueId};
use blockyard_std::parts::device::completions::Completions;
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// A completion counts as late from this delay on. A timer and a context switch take less.
pub const LATE: Duration = Duration::from_us(100);

/// A model of a device, which a disk can imitate.
///
/// The model's device gets instants of the lane's clock. It has timing, depth and errors, but no
/// data. It serves queue 0 and hardware queue 0.
pub trait Behaviour: fmt::Debug + Send + Sync {
    /// Returns the limits of the device. The disk must not be larger than their capacity.
    fn limits(&self) -> &Limits;

    /// Returns the number of requests that the device holds at the same time.
    fn depth(&self) -> u16;

    /// Creates the device, in the thread of the lane that drives it.
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

/// The counts of a [`Timing`] since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Requests that have ended.
    pub completions: u64,
    /// Of those, the ones that were late by [`LATE`] or more.
    pub late: u64,
    /// The sum of the lateness of all requests.
    pub total: Duration,
    /// The greatest lateness of one request.
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

    /// Returns the counts so far.
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

/// A request in flight, on both sides.
#[derive(Clone, Copy, Debug, Default)]
struct Sides {
    /// The model's outcome, and when it was due.
    model: Option<(Outcome, Instant)>,
    medium: Option<Outcome>,
    holders: Holders,
}

/// The sides that have accepted a request and have to finish it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Holders {
    /// No request has the tag.
    #[default]
    Neither,
    /// Model and medium.
    Both,
    /// The model alone: the medium refused the request.
    Model,
    /// The medium alone: the request is not for the model ([extra-flush-for-medium]).
    Medium,
}

impl Holders {
    const fn has_model(self) -> bool {
        matches!(self, Self::Both | Self::Model)
    }

    const fn has_medium(self) -> bool {
        matches!(self, Self::Both | Self::Medium)
    }
}

/// A medium that behaves like a model. See the [module](self).
pub(crate) struct Live<M> {
    medium: M,
    model: Box<dyn Device>,
    /// Whether the model has a write cache and therefore gets flushes.
    model_flushes: bool,
    /// Whether the model gets no more requests ([let-go-ends-held]).
    lets_go: bool,
    /// By tag.
    sides: Vec<Sides>,
    finished: Completions,
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
            lets_go: false,
            sides: vec![Sides::default(); usize::from(behaviour.depth())],
            finished: Completions::default(),
            timing,
        }
    }

    /// Fails the requests that only the model has not finished, and decides without the model from
    /// now on ([let-go-ends-held]).
    pub(crate) fn let_go(&mut self) {
        self.lets_go = true;
        self.model = Box::new(NullDevice::new(1, 1)); // it gets no request either
        for (tag, sides) in (0..).map(DriverTag).zip(&mut self.sides) {
            if sides.model.is_some() || !sides.holders.has_model() {
                continue;
            }
            let has_medium = sides.holders.has_medium();
            sides.holders = if has_medium { Holders::Medium } else { Holders::Neither };
            let outcome = match sides.medium {
                None => continue, // the medium still has the request
                Some(Outcome::Done(_)) => Outcome::Done(Status::IoError),
                Some(_) => Outcome::Again, // the medium refused it for now
            };
            self.finished.push(Finished { queue: QueueId(0), hctx: HctxId(0), tag, outcome });
        }
    }

    /// Returns whether the model is offered this request too ([extra-flush-for-medium]).
    fn is_for_model(&self, issue: &Issue<'_>) -> bool {
        !self.lets_go && (self.model_flushes || issue.request().op != Op::Flush)
    }

    /// Takes every completion of the two sides up to `now`.
    fn take_in(&mut self, now: Instant) {
        while let Some(finished) = self.medium.next_finished(now) {
            self.sides[finished.tag.index()].medium = Some(finished.outcome);
            self.conclude(finished, now);
        }
        while let Some(due) = self.model.poll_at().filter(|due| *due <= now) {
            while let Some(finished) = self.model.next_finished(due) {
                // The model is asked at `due`, not at `now`: it never learns that the lane was
                // late. If it has this request to end at 100 us and the lane looks at 150 us, the
                // model begins the next one at 100 us.
                self.sides[finished.tag.index()].model = Some((finished.outcome, due));
                self.conclude(finished, now);
            }
        }
    }

    /// Ends a request if both sides have finished it, the slower one now. An error of the model
    /// takes precedence over the status of the medium.
    fn conclude(&mut self, finished: Finished, now: Instant) {
        let sides = self.sides[finished.tag.index()];
        let outcome = match (sides.model, sides.medium) {
            (None, Some(medium)) if !sides.holders.has_model() => medium,
            (Some((model, due)), Some(medium)) => {
                self.timing.note(now.since(due));
                if model == Outcome::Done(Status::Ok) { medium } else { model }
            }
            _ => return,
        };
        // The other side may not have kept its preparation, so both are finished and prepared
        // again.
        let outcome = match outcome {
            Outcome::AgainPrepared => Outcome::Again,
            outcome => outcome,
        };
        self.finished.push(Finished { outcome, ..finished });
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
            // [both-sides-get-every-call]: the model's run ends without this request.
            self.model.commit(issue.queue, issue.hctx, issue.now);
        }
        let (medium, holders) = match self.medium.queue_rq(issue) {
            Accept::Queued if is_models => (None, Holders::Both),
            Accept::Queued => (None, Holders::Medium),
            refused if !is_models => return refused,
            refused => {
                self.medium.unprepare(issue); // [both-sides-get-every-call]
                if issue.last {
                    self.medium.commit(issue.queue, issue.hctx, issue.now);
                }
                match refused {
                    Accept::Failed(status) => (Some(Outcome::Done(status)), Holders::Model),
                    // Tried again when the model has finished it.
                    _ => (Some(Outcome::Again), Holders::Model),
                }
            }
        };
        self.sides[issue.tag.index()] = Sides { model: None, medium, holders };
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
        if !sides.holders.has_model() {
            return self.medium.timed_out(queue, hctx, tag, request, now);
        }
        if sides.model.is_some() || (sides.holders.has_medium() && sides.medium.is_none()) {
            return TimedOut::Reset; // the medium still has the request
        }
        self.model.timed_out(queue, hctx, tag, request, now)
    }

    fn finish(&mut self, queue: QueueId, hctx: HctxId, tag: DriverTag, request: &Request) {
        let Sides { holders, .. } = core::mem::take(&mut self.sides[tag.index()]);
        if holders.has_model() {
            self.model.finish(queue, hctx, tag, request);
        }
        if holders.has_medium() {
            self.medium.finish(queue, hctx, tag, request);
        }
    }
}

impl<M: Device> Device for Live<M> {
    fn next_finished(&mut self, now: Instant) -> Option<Finished> {
        self.take_in(now);
        self.finished.pop()
    }

    fn poll_at(&self) -> Option<Instant> {
        let polls = [self.finished.poll_at(), self.model.poll_at(), self.medium.poll_at()];
        polls.into_iter().flatten().min()
    }
}

/// Returns the limits of a disk on a medium with limits `medium` that behaves like a device with
/// limits `model`.
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
        // [extra-flush-for-medium]: a flush that only the medium needs takes the place of FUA.
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
    use blockyard::layer::delay::{Delayed, Extra};
    use blockyard::policy::Policies;
    use blockyard::prng::Prng;
    use blockyard::request_queue::{QueueConfig, RequestQueue};
    use blockyard::tag::TagSetConfig;
    use blockyard::unit::CpuId;
    use std::sync::Mutex;

    /// The calls that were made, in order: which recorder, and which call.
    type Calls = Arc<Mutex<Vec<(&'static str, &'static str)>>>;

    type Probe = Recorder<Box<dyn Fn(&'static str)>>;

    /// Returns a device that records each call under `name`, fails the first `refusals` requests,
    /// and finishes the others immediately.
    fn probe(name: &'static str, calls: &Calls, refusals: u32) -> Probe {
        let calls = Arc::clone(calls);
        let record = move |call| calls.lock().expect("no call panics").push((name, call));
        Recorder::new(Box::new(record), refusals)
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
            Box::new(probe("model", &self.calls, 0))
        }
    }

    /// Returns the calls that `bio` leads to at a medium that refuses `refusals` requests, and the
    /// status of the bio.
    fn calls_of(bio: Bio, refusals: u32) -> (Vec<(&'static str, &'static str)>, Status) {
        let calls = Calls::default();
        let limits = Limits::new(1 << 20);
        let model = Model { limits: limits.clone(), calls: Arc::clone(&calls) };
        let medium = probe("medium", &calls, refusals);
        let live = Live::new(medium, &model, Arc::default());
        let tags = TagSetConfig::single(4);
        let mut host = Host::new(live, (), tags);
        let limits = Limits { write_cache: true, ..limits };
        let config = QueueConfig::new(1, 1, limits, Policies::NONE);
        let mut queue = RequestQueue::new(QueueId(0), config, &host);
        queue
            .submit(&mut host, CpuId(0), bio, Instant::ZERO)
            .expect("submission of a bio within the limits");
        queue.turn(&mut host, Instant::ZERO);
        let ended = queue.next_ended().expect("bio that both sides have finished");
        let calls = calls.lock().expect("no call panics").clone();
        fn names_request(call: &str) -> bool {
            !call.ends_with("budget") && !matches!(call, "next_finished" | "poll_at")
        }
        (calls.into_iter().filter(|(_, call)| names_request(call)).collect(), ended.status)
    }

    #[test]
    fn model_and_medium_get_every_call_about_a_request() {
        let (calls, status) = calls_of(Bio::read(0, 8, 0), 0);
        let expected = ["prepare", "queue_rq", "finish"];
        let expected = expected.iter().flat_map(|call| [("model", *call), ("medium", *call)]);
        // [both-sides-get-every-call]
        assert_eq!((calls, status), (expected.collect(), Status::Ok));
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
        // [both-sides-get-every-call]
        assert_eq!(medium, ["prepare", "queue_rq", "unprepare", "commit"]);
        assert_eq!(status, Status::IoError);
        assert!(calls.contains(&("model", "finish")));
    }

    /// A model whose requests take an hour.
    #[derive(Debug)]
    struct Slow(Limits);

    impl Behaviour for Slow {
        fn limits(&self) -> &Limits {
            &self.0
        }

        fn depth(&self) -> u16 {
            4
        }

        fn device(&self) -> Box<dyn Device> {
            let hour = Duration::from_secs(3600);
            let draws = Prng::new(1);
            let below = NullDevice::new(1, 4);
            Box::new(Delayed::new(below, Extra::fixed(hour), draws, &TagSetConfig::single(4)))
        }
    }

    /// Checks [let-go-ends-held].
    #[test]
    fn a_request_that_only_the_model_has_fails_when_the_disk_lets_go() {
        let limits = Limits::new(1 << 20);
        let live = Live::new(NullDevice::new(1, 4), &Slow(limits.clone()), Arc::default());
        let mut host = Host::new(live, (), TagSetConfig::single(4));
        let config = QueueConfig::new(1, 1, limits, Policies::NONE);
        let mut queue = RequestQueue::new(QueueId(0), config, &host);
        let mut ended = |read: Bio, lets_go: bool| {
            queue.submit(&mut host, CpuId(0), read, Instant::ZERO).expect("bio within the limits");
            queue.turn(&mut host, Instant::ZERO);
            if lets_go {
                assert!(queue.next_ended().is_none(), "the model has it");
                host.driver.let_go();
                queue.turn(&mut host, Instant::ZERO);
            }
            queue.next_ended().map(|ended| ended.status)
        };
        assert_eq!(ended(Bio::read(0, 8, 0), true), Some(Status::IoError));
        assert_eq!(ended(Bio::read(32, 8, 0), false), Some(Status::Ok), "the model is not asked");
    }

    #[test]
    fn a_commit_reaches_model_and_medium() {
        let calls = Calls::default();
        let model = Model { limits: Limits::new(1 << 20), calls: Arc::clone(&calls) };
        let mut live = Live::new(probe("medium", &calls, 0), &model, Arc::default());
        live.commit(QueueId(0), HctxId(0), Instant::ZERO);
        let expected = [("model", "commit"), ("medium", "commit")];
        assert_eq!(*calls.lock().expect("no call panics"), expected);
    }
}
