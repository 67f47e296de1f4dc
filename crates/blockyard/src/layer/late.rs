//! [`Late`]: completions pass up later than they come, by a policy.
//!
//! After a change of the policy, requests that are below or held here are as late as the new policy says: they count as
//! taken at the change, in the order in which they came.

use super::held::Held;
use super::tagged::{Slot, Tagged};
use crate::bio::Op;
use crate::driver::{Accept, Device, Driver, Finished, Issue, TimedOut};
use crate::request::Request;
use crate::tag::TagSetConfig;
use crate::time::{Duration, Instant, earlier};
use crate::unit::{DriverTag, HctxId, QueueId};
use alloc::vec::Vec;

/// How late the completion of a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lateness {
    /// This long after it came from below.
    pub after: Duration,
    /// Not before this instant.
    pub not_before: Instant,
}

/// Decides how late completions are.
pub trait Policy {
    /// Returns how late a request of `op` and so many sectors, which the device below accepts at `now`, is to complete.
    fn lateness(&mut self, op: Op, sectors: u32, now: Instant) -> Lateness;
}

/// A request that has not completed upwards.
#[derive(Clone, Copy, Debug)]
struct Taken {
    op: Op,
    sectors: u32,
    /// Its place in the order in which requests came.
    place: u64,
    lateness: Lateness,
    /// When its completion came from below, if it has.
    came: Option<Instant>,
}

impl Taken {
    /// Returns when a completion that came at this instant is to pass up.
    fn due(&self, came: Instant) -> Instant {
        (came + self.lateness.after).max(self.lateness.not_before)
    }
}

/// The layer. It refuses nothing.
#[derive(Clone, Debug)]
pub struct Late<D, P> {
    /// The device whose completions are delayed.
    pub below: D,
    pub(super) policy: P,
    taken: Tagged<Option<Taken>>,
    /// The place of the next request in the order.
    next_place: u64,
    held: Held,
    /// Whether completions pass up at once ([let-go-ends-held]).
    lets_go: bool,
    /// Room for the requests in their order, at a change.
    in_order: Vec<(u64, Slot)>,
}

impl<D, P: Policy> Late<D, P> {
    /// Returns `below` with completions as late as `policy` says.
    pub(super) fn with_policy(below: D, policy: P, tags: &TagSetConfig) -> Self {
        let taken = Tagged::new(None, tags);
        let in_order = Vec::with_capacity(taken.len());
        let held = Held::new(tags);
        Self { below, policy, taken, next_place: 0, held, lets_go: false, in_order }
    }

    /// Fails the requests whose completions are held, and holds none from now on ([let-go-ends-held]).
    pub fn let_go(&mut self) {
        self.lets_go = true;
        self.held.fail_all();
    }

    /// Lets the policy, which has changed, decide anew about all requests.
    pub(super) fn decide_anew(&mut self, now: Instant) {
        if self.lets_go {
            return;
        }
        self.in_order.clear();
        let taken = self.taken.iter();
        self.in_order.extend(taken.filter_map(|(slot, taken)| Some(((*taken)?.place, slot))));
        self.in_order.sort_unstable();
        for &(_, slot) in &self.in_order {
            if let Some(taken) = &mut self.taken[slot] {
                taken.lateness = self.policy.lateness(taken.op, taken.sectors, now);
            }
        }
        let taken = &self.taken;
        self.held.set_due(|slot| {
            let taken = taken[slot].expect("a request whose completion is held was taken");
            taken.due(taken.came.expect("a completion that is held has come"))
        });
    }
}

impl<D: Driver, P: Policy> Driver for Late<D, P> {
    crate::pass_on!(below: take_budget, return_budget, prepare, unprepare, commit, finish);

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        let answer = self.below.queue_rq(issue);
        if answer == Accept::Queued {
            let Request { op, sectors, .. } = *issue.request();
            let lateness = self.policy.lateness(op, sectors, issue.now);
            let place = self.next_place;
            self.next_place += 1;
            let taken = Taken { op, sectors, place, lateness, came: None };
            self.taken[(issue.hctx, issue.tag)] = Some(taken);
        }
        answer
    }

    fn timed_out(
        &mut self,
        queue: QueueId,
        hctx: HctxId,
        tag: DriverTag,
        request: &Request,
        now: Instant,
    ) -> TimedOut {
        if self.held.has((hctx, tag)) {
            return TimedOut::Reset; // its completion is held here
        }
        let answer = self.below.timed_out(queue, hctx, tag, request, now);
        if let TimedOut::Ended(_) = answer {
            self.taken[(hctx, tag)] = None;
        }
        answer
    }
}

impl<D: Device, P: Policy> Device for Late<D, P> {
    fn next_finished(&mut self, now: Instant) -> Option<Finished> {
        while let Some(finished) = self.below.next_finished(now) {
            let taken = self.taken[(finished.hctx, finished.tag)].as_mut();
            let taken = taken.expect("a request that the device below completes was taken");
            taken.came = Some(now);
            let due = if self.lets_go { now } else { taken.due(now) };
            self.held.hold(finished, due);
        }
        let finished = self.held.next(now)?;
        self.taken[(finished.hctx, finished.tag)] = None;
        Some(finished)
    }

    fn poll_at(&self) -> Option<Instant> {
        earlier(self.held.next_at(), self.below.poll_at())
    }
}
