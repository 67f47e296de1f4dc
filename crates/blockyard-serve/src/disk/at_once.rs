//! Devices that are done with a request in the call that hands it over.

use blockyard::driver::{Accept, Device, Driver, Finished, Issue, Outcome};
use blockyard::status::Status;
use blockyard::time::Instant;
use std::collections::VecDeque;

/// What carries out a request while its caller waits.
pub(crate) trait CarryOut {
    /// Does it; how that went.
    fn carry_out(&mut self, issue: &Issue<'_>) -> Status;
}

/// A device made of it: takes as many requests as there are tags, and has each done at once.
#[derive(Debug)]
pub(crate) struct AtOnce<C> {
    of: C,
    finished: VecDeque<Finished>,
}

impl<C> AtOnce<C> {
    pub(crate) fn new(of: C) -> Self {
        Self { of, finished: VecDeque::new() }
    }
}

impl<C: CarryOut> Driver for AtOnce<C> {
    blockyard::leaf_calls!(
        take_budget,
        return_budget,
        prepare,
        unprepare,
        commit,
        timed_out,
        finish
    );

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        let status = self.of.carry_out(issue);
        let (queue, hctx, tag) = (issue.queue, issue.hctx, issue.tag);
        let outcome = Outcome::Done(status);
        self.finished.push_back(Finished { queue, hctx, tag, outcome });
        Accept::Queued
    }
}

impl<C: CarryOut> Device for AtOnce<C> {
    fn next_finished(&mut self, _now: Instant) -> Option<Finished> {
        self.finished.pop_front()
    }

    fn poll_at(&self) -> Option<Instant> {
        (!self.finished.is_empty()).then_some(Instant::ZERO)
    }
}
