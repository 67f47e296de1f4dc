//! The device at the end of the swarm: it has room for so many commands, takes its time with each,
//! and reorders. What goes wrong with it is mostly a layer's doing: see [`faults`](crate::faults).

use crate::draw::{DevicePlan, one_in};
use blockyard::driver::{Accept, Busy, Device, Driver, Finished, Issue, Outcome};
use blockyard::request::Request;
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{Budget, DriverTag, HctxId, QueueId};
use blockyard_sim::workload::Prng;

/// How often it misbehaved.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Misbehaved {
    pub(crate) no_budget: u64,
    pub(crate) empty_promises: u64,
}

/// The device. It starts a command when its run ends, not before (D2).
#[derive(Debug)]
pub(crate) struct Target {
    plan: DevicePlan,
    /// It denies budget and makes empty promises, as planned.
    pub(crate) misbehaves: bool,
    pub(crate) misbehaved: Misbehaved,
    prng: Prng,
    /// Permits out and commands taken, by queue.
    permits: Vec<u32>,
    outstanding: Vec<u32>,
    next_permit: u32,
    /// Accepted, the doorbell not rung yet, and how long each will take.
    accepted: Vec<(Duration, Finished)>,
    /// When each command is done.
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

    fn busy(&mut self, queue: QueueId) -> Option<Busy> {
        if self.misbehaves && one_in(&mut self.prng, self.plan.empty_promises) {
            self.misbehaved.empty_promises += 1;
            return Some(crate::draw::pick(&mut self.prng, &[Busy::Device, Busy::Host]));
        }
        if self.outstanding[queue.index()] >= self.plan.queue_depth {
            return Some(Busy::Device);
        }
        let all: u32 = self.outstanding.iter().sum();
        (all >= self.plan.host_depth).then_some(Busy::Host)
    }

    fn ring(&mut self, queue: QueueId, hctx: HctxId, now: Instant) {
        let of_run =
            |(_, command): &mut (_, Finished)| command.queue == queue && command.hctx == hctx;
        let rung = self.accepted.extract_if(.., of_run);
        self.started.extend(rung.map(|(delay, command)| (now + delay, command)));
    }
}

impl Driver for Target {
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
            let delay = 1 + self.prng.below(self.plan.service_max.as_ns());
            let (queue, hctx, tag) = (issue.queue, issue.hctx, issue.tag);
            let finished = Finished { queue, hctx, tag, outcome: Outcome::Done(Status::Ok) };
            self.accepted.push((Duration::from_ns(delay), finished));
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

    fn finish(&mut self, queue: QueueId, _hctx: HctxId, _tag: DriverTag, _request: &Request) {
        self.outstanding[queue.index()] -= 1;
    }
}

impl Device for Target {
    fn next_finished(&mut self, now: Instant) -> Option<Finished> {
        let due = self.started.iter().map(|(at, _)| *at).enumerate();
        let (first, at) = due.min_by_key(|(_, at)| *at)?;
        (at <= now).then(|| self.started.remove(first).1)
    }

    fn poll_at(&self) -> Option<Instant> {
        self.started.iter().map(|(at, _)| *at).min()
    }
}
