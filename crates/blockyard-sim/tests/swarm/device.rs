//! The device at the end of the swarm: it refuses, fails, delays and reorders as drawn.

use crate::draw::{DevicePlan, Faults, one_in};
use blockyard::driver::{Accept, Busy, Driver, Issue};
use blockyard::request::Request;
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{Budget, DriverTag, HctxId, QueueId};
use blockyard_sim::workload::Prng;

/// How a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done(Status),
    Again,
}

/// A command the device was told of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    pub(crate) queue: QueueId,
    pub(crate) hctx: HctxId,
    pub(crate) tag: DriverTag,
    pub(crate) outcome: Outcome,
    pub(crate) delay: Duration,
}

/// How often each fault was injected.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Injected {
    pub(crate) no_budget: u64,
    pub(crate) busy_device: u64,
    pub(crate) busy_host: u64,
    pub(crate) busy_resource: u64,
    pub(crate) failed: u64,
    pub(crate) error: u64,
    pub(crate) again: u64,
}

/// The device. It starts a command when its run ends, not before (D2).
#[derive(Debug)]
pub(crate) struct Target {
    plan: DevicePlan,
    pub(crate) faults: Faults,
    pub(crate) injected: Injected,
    prng: Prng,
    /// Permits out and commands taken, by queue.
    permits: Vec<u32>,
    outstanding: Vec<u32>,
    next_permit: u32,
    /// Accepted, the doorbell not rung yet.
    accepted: Vec<Command>,
    /// Told to the device since the loop last looked.
    pub(crate) started: Vec<Command>,
}

const FAILURES: [Status; 3] = [Status::IoError, Status::Medium, Status::NoSpace];

impl Target {
    pub(crate) fn new(plan: DevicePlan, faults: Faults, queues: usize, prng: Prng) -> Self {
        Self {
            plan,
            faults,
            injected: Injected::default(),
            prng,
            permits: vec![0; queues],
            outstanding: vec![0; queues],
            next_permit: 0,
            accepted: Vec::new(),
            started: Vec::new(),
        }
    }

    /// Refused by lot or for want of room, as D4 allows.
    fn busy(&mut self, queue: QueueId) -> Option<Busy> {
        let own = self.outstanding[queue.index()];
        let all: u32 = self.outstanding.iter().sum();
        let (prng, faults) = (&mut self.prng, &self.faults);
        if one_in(prng, faults.busy_resource) {
            self.injected.busy_resource += 1;
            return Some(Busy::Resource);
        }
        if one_in(prng, faults.busy_device) {
            self.injected.busy_device += 1;
            return Some(Busy::Device);
        }
        if one_in(prng, faults.busy_host) {
            self.injected.busy_host += 1;
            return Some(Busy::Host);
        }
        if own >= self.plan.queue_depth {
            return Some(Busy::Device);
        }
        (all >= self.plan.host_depth).then_some(Busy::Host)
    }

    fn outcome(&mut self) -> Outcome {
        if one_in(&mut self.prng, self.faults.again) {
            self.injected.again += 1;
            return Outcome::Again;
        }
        if one_in(&mut self.prng, self.faults.error) {
            self.injected.error += 1;
            return Outcome::Done(crate::draw::pick(&mut self.prng, &FAILURES));
        }
        Outcome::Done(Status::Ok)
    }

    fn ring(&mut self, queue: QueueId, hctx: HctxId) {
        let (now, later) = core::mem::take(&mut self.accepted)
            .into_iter()
            .partition(|command| command.queue == queue && command.hctx == hctx);
        self.accepted = later;
        let mut now: Vec<Command> = now;
        self.started.append(&mut now);
    }
}

impl Driver for Target {
    fn take_budget(&mut self, queue: QueueId) -> Option<Budget> {
        if one_in(&mut self.prng, self.faults.no_budget) {
            self.injected.no_budget += 1;
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
        } else if one_in(&mut self.prng, self.faults.failed) {
            self.injected.failed += 1;
            Accept::Failed(crate::draw::pick(&mut self.prng, &FAILURES))
        } else {
            let delay = 1 + self.prng.below(self.plan.service_max.as_ns());
            let outcome = self.outcome();
            let (queue, hctx, tag) = (issue.queue, issue.hctx, issue.tag);
            let delay = Duration::from_ns(delay);
            self.accepted.push(Command { queue, hctx, tag, outcome, delay });
            self.outstanding[queue.index()] += 1;
            Accept::Queued
        };
        if issue.last {
            self.ring(issue.queue, issue.hctx);
        }
        answer
    }

    fn commit(&mut self, queue: QueueId, hctx: HctxId, _now: Instant) {
        self.ring(queue, hctx);
    }

    fn finish(&mut self, queue: QueueId, _hctx: HctxId, _tag: DriverTag, _request: &Request) {
        self.outstanding[queue.index()] -= 1;
    }
}
