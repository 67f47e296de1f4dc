//! [`Late`]: completions pass up later than they come, by a policy.

use super::held::Held;
use super::tagged::Tagged;
use crate::driver::{Accept, Device, Driver, Finished, Issue, TimedOut};
use crate::request::Request;
use crate::tag::TagSetConfig;
use crate::time::{Duration, Instant, earlier};
use crate::unit::{DriverTag, HctxId, QueueId};

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
    /// Returns how late `request`, which the device below accepts at `now`, is to complete.
    fn lateness(&mut self, request: &Request, now: Instant) -> Lateness;
}

/// The layer. It refuses nothing ([layers-only-delay]).
#[derive(Clone, Debug)]
pub struct Late<D, P> {
    /// The device whose completions are delayed.
    pub below: D,
    pub(super) policy: P,
    /// By request below.
    lateness: Tagged<Lateness>,
    held: Held,
    /// Whether completions pass up at once ([let-go-ends-held]).
    lets_go: bool,
}

impl<D, P: Policy> Late<D, P> {
    /// Returns `below` with completions as late as `policy` says.
    pub(super) fn with_policy(below: D, policy: P, tags: &TagSetConfig) -> Self {
        let none = Lateness { after: Duration::ZERO, not_before: Instant::ZERO };
        let (lateness, held) = (Tagged::new(none, tags), Held::new(tags));
        Self { below, policy, lateness, held, lets_go: false }
    }

    /// Fails the requests whose completions are held, and holds none from now on ([let-go-ends-held]).
    pub fn let_go(&mut self) {
        self.lets_go = true;
        self.held.fail_all();
    }
}

impl<D: Driver, P: Policy> Driver for Late<D, P> {
    crate::pass_on!(below: take_budget, return_budget, prepare, unprepare, commit, finish);

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        let answer = self.below.queue_rq(issue);
        if answer == Accept::Queued {
            let lateness = self.policy.lateness(issue.request(), issue.now);
            self.lateness[(issue.hctx, issue.tag)] = lateness;
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
        self.below.timed_out(queue, hctx, tag, request, now)
    }
}

impl<D: Device, P: Policy> Device for Late<D, P> {
    fn next_finished(&mut self, now: Instant) -> Option<Finished> {
        while let Some(finished) = self.below.next_finished(now) {
            let Lateness { after, not_before } = self.lateness[(finished.hctx, finished.tag)];
            let due = if self.lets_go { now } else { (now + after).max(not_before) };
            self.held.hold(finished, due);
        }
        self.held.next(now)
    }

    fn poll_at(&self) -> Option<Instant> {
        earlier(self.held.next_at(), self.below.poll_at())
    }
}
