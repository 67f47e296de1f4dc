//! The device at the bottom of the swarm. It has a limited depth and a service time for each
//! command, reorders commands, and gets stuck. Layers inject all other faults, listed in
//! [`KINDS`](crate::draw::KINDS).

use crate::draw::{DevicePlan, one_in};
use blockyard::driver::{Accept, Busy, Device, Driver, Finished, Issue, Outcome, TimedOut};
use blockyard::prng::Prng;
use blockyard::request::Request;
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{Budget, DriverTag, HctxId, QueueId};
use blockyard_devices::data::event::ReportsData;

/// The maximum number of stuck commands. Each takes seconds, during which every poller polls.
pub(crate) const STUCK_COMMANDS_MAX: u64 = 8;

/// Counts of the device's faults.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Misbehaved {
    pub(crate) no_budget: u64,
    pub(crate) empty_promises: u64,
    pub(crate) stuck: u64,
    pub(crate) again_prepared: u64,
    /// Commands given up at a timeout, to end or to be retried.
    pub(crate) taken_back: u64,
}

/// The device. It starts a command only at the end of the command's run ([last-or-commit]).
#[derive(Debug)]
pub(crate) struct Target {
    plan: DevicePlan,
    /// Whether the device misbehaves as planned: it denies budget, or reports that it is full
    /// without reason.
    pub(crate) misbehaves: bool,
    pub(crate) misbehaved: Misbehaved,
    prng: Prng,
    /// Permits given out and commands accepted, by queue.
    permits: Vec<u32>,
    outstanding: Vec<u32>,
    next_permit: u32,
    /// Accepted commands whose doorbell has not rung, and their service times.
    accepted: Vec<(Duration, Finished)>,
    /// The completion instant of each command.
    started: Vec<(Instant, Finished)>,
}

impl Target {
    pub(crate) fn new(plan: DevicePlan, queues: usize, prng: Prng) -> Self {
        Self {
            plan,
            misbehaves: true,
            misbehaved: Misbehaved::default(),
            prng,
            permits: vec![0; queues],
            outstanding: vec![0; queues],
            next_permit: 0,
            accepted: Vec::new(),
            started: Vec::new(),
        }
    }

    /// Makes the device slow, for a canary.
    pub(crate) const fn slow_down(&mut self) {
        self.plan.service_max = Duration::from_ms(300);
    }

    fn busy(&mut self, queue: QueueId) -> Option<Busy> {
        if self.misbehaves && one_in(&mut self.prng, self.plan.empty_promises) {
            self.misbehaved.empty_promises += 1;
            return Some(self.prng.pick(&[Busy::Device, Busy::Host]));
        }
        if self.outstanding[queue.index()] >= self.plan.queue_depth {
            return Some(Busy::Device);
        }
        let all: u32 = self.outstanding.iter().sum();
        (all >= self.plan.host_depth).then_some(Busy::Host)
    }

    /// Returns the service time of the next command, and its outcome.
    fn service(&mut self) -> (Duration, Outcome) {
        let mut max = self.plan.service_max;
        let mut outcome = Outcome::Done(Status::Ok);
        let may_stick = self.misbehaves && self.misbehaved.stuck < STUCK_COMMANDS_MAX;
        if may_stick && one_in(&mut self.prng, self.plan.stuck) {
            self.misbehaved.stuck += 1;
            max = self.plan.stuck_max;
        }
        if self.misbehaves && one_in(&mut self.prng, self.plan.again_prepared) {
            self.misbehaved.again_prepared += 1;
            outcome = Outcome::AgainPrepared;
        }
        (Duration::from_ns(1 + self.prng.below(max.as_ns())), outcome)
    }

    /// Gives `finished` back. A request that stays prepared gets no [`Driver::finish`].
    fn give_back(&mut self, finished: &Finished) {
        if finished.outcome == Outcome::AgainPrepared {
            self.outstanding[finished.queue.index()] -= 1;
        }
    }

    fn ring(&mut self, queue: QueueId, hctx: HctxId, now: Instant) {
        let of_run =
            |(_, command): &mut (_, Finished)| command.queue == queue && command.hctx == hctx;
        let rung = self.accepted.extract_if(.., of_run);
        self.started.extend(rung.map(|(delay, command)| (now + delay, command)));
    }
}

impl Driver for Target {
    blockyard::leaf_calls!(prepare, unprepare);

    fn take_budget(&mut self, queue: QueueId) -> Option<Budget> {
        if self.misbehaves && one_in(&mut self.prng, self.plan.no_budget) {
            self.misbehaved.no_budget += 1;
            return None;
        }
        if self.permits[queue.index()] >= self.plan.queue_depth {
            return None;
        }
        self.permits[queue.index()] += 1;
        self.next_permit += 1;
        Some(Budget(self.next_permit))
    }

    fn return_budget(&mut self, queue: QueueId, _budget: Budget) {
        self.permits[queue.index()] -= 1;
    }

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        let answer = if let Some(busy) = self.busy(issue.queue) {
            Accept::Busy(busy)
        } else {
            let (delay, outcome) = self.service();
            let queue = issue.queue;
            let hctx = issue.hctx;
            let tag = issue.tag;
            self.accepted.push((delay, Finished { queue, hctx, tag, outcome }));
            self.outstanding[queue.index()] += 1;
            Accept::Queued
        };
        if issue.last {
            self.ring(issue.queue, issue.hctx, issue.now);
        }
        answer
    }

    fn commit(&mut self, queue: QueueId, hctx: HctxId, now: Instant) {
        self.ring(queue, hctx, now);
    }

    /// Answers a timeout. Half of the answers ask for more time.
    fn timed_out(
        &mut self,
        queue: QueueId,
        hctx: HctxId,
        tag: DriverTag,
        _request: &Request,
        _now: Instant,
    ) -> TimedOut {
        let is_it =
            |(_, one): &(Instant, Finished)| (one.queue, one.hctx, one.tag) == (queue, hctx, tag);
        let Some(at) = self.started.iter().position(is_it) else {
            return TimedOut::Reset; // a canary has swallowed its completion
        };
        if !self.misbehaves || one_in(&mut self.prng, 2) {
            return TimedOut::Reset;
        }
        let outcomes = [Outcome::Done(Status::Timeout), Outcome::Again, Outcome::AgainPrepared];
        let outcome = self.prng.pick(&outcomes);
        let (_, finished) = self.started.remove(at);
        self.give_back(&Finished { outcome, ..finished });
        self.misbehaved.taken_back += 1;
        TimedOut::Ended(outcome)
    }

    fn finish(&mut self, queue: QueueId, _hctx: HctxId, _tag: DriverTag, _request: &Request) {
        self.outstanding[queue.index()] -= 1;
    }
}

impl ReportsData for Target {}

impl Device for Target {
    fn next_finished(&mut self, now: Instant) -> Option<Finished> {
        let due = self.started.iter().map(|(at, _)| *at).enumerate();
        let (first, at) = due.min_by_key(|(_, at)| *at)?;
        if at > now {
            return None;
        }
        let (_, finished) = self.started.remove(first);
        self.give_back(&finished);
        Some(finished)
    }

    fn poll_at(&self) -> Option<Instant> {
        self.started.iter().map(|(at, _)| *at).min()
    }
}
