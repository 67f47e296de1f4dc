//! A disk that keeps nothing: what everything around it costs.

use blockyard::driver::{Accept, Device, Driver, Finished, Issue, Outcome};
use blockyard::status::Status;
use blockyard::time::Instant;
use std::collections::VecDeque;

/// A disk that keeps nothing. Unlike the core's, it takes as many requests as there are tags.
#[derive(Debug, Default)]
pub(crate) struct NullDevice {
    finished: VecDeque<Finished>,
}

impl Driver for NullDevice {
    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        let (queue, hctx, tag) = (issue.queue, issue.hctx, issue.tag);
        let outcome = Outcome::Done(Status::Ok);
        self.finished.push_back(Finished { queue, hctx, tag, outcome });
        Accept::Queued
    }
}

impl Device for NullDevice {
    fn next_finished(&mut self, _now: Instant) -> Option<Finished> {
        self.finished.pop_front()
    }

    fn poll_at(&self) -> Option<Instant> {
        (!self.finished.is_empty()).then_some(Instant::ZERO)
    }
}
