//! Devices that finish each request in the call that issues it.

use super::completions::{Completions, completion};
use blockyard::driver::{Accept, Device, Driver, Finished, Issue};
use blockyard::status::Status;
use blockyard::time::Instant;

/// Carries out each request while the caller waits.
pub trait CarryOut {
    /// Carries out the request, and returns its result.
    fn carry_out(&mut self, issue: &Issue<'_>) -> Status;
}

/// A device that takes as many requests as there are tags, and finishes each immediately.
#[derive(Debug)]
pub struct AtOnce<C> {
    /// Carries out the requests.
    pub below: C,
    finished: Completions,
}

impl<C> AtOnce<C> {
    /// Returns a device whose requests `below` carries out.
    pub fn new(below: C) -> Self {
        Self { below, finished: Completions::default() }
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
        let status = self.below.carry_out(issue);
        self.finished.push(completion(issue, status));
        Accept::Queued
    }
}

impl<C: CarryOut> Device for AtOnce<C> {
    fn next_finished(&mut self, _now: Instant) -> Option<Finished> {
        self.finished.pop()
    }

    fn poll_at(&self) -> Option<Instant> {
        self.finished.poll_at()
    }
}
