//! The requests that a device has finished and that its queue has not taken yet.

use blockyard::driver::{Finished, Issue, Outcome};
use blockyard::status::Status;
use blockyard::time::Instant;
use std::collections::VecDeque;

/// Finished requests, in the order in which they finished.
#[derive(Debug, Default)]
pub struct Completions(VecDeque<Finished>);

/// Returns `issue` as finished with `status`.
pub fn completion(issue: &Issue<'_>, status: Status) -> Finished {
    let queue = issue.queue;
    let hctx = issue.hctx;
    let tag = issue.tag;
    Finished { queue, hctx, tag, outcome: Outcome::Done(status) }
}

impl Completions {
    /// Adds a finished request.
    pub fn push(&mut self, finished: Finished) {
        self.0.push_back(finished);
    }

    /// Removes and returns the request that finished first.
    pub fn pop(&mut self) -> Option<Finished> {
        self.0.pop_front()
    }

    /// Gives all requests that succeeded the status that `fail` returns for each.
    pub fn fail(&mut self, fail: impl Fn() -> Status) {
        self.0
            .iter_mut()
            .filter(|one: &&mut Finished| one.outcome == Outcome::Done(Status::Ok))
            .for_each(|one| one.outcome = Outcome::Done(fail()));
    }

    /// Returns a past instant if there is a completion, so that the queue takes it in the same
    /// turn.
    pub fn poll_at(&self) -> Option<Instant> {
        (!self.0.is_empty()).then_some(Instant::ZERO)
    }
}
