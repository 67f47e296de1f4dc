//! Requests that the driver has owned for too long, and flushes that were held back for too long.
//!
//! # Rules
//!
//! - **[asked-each-timeout]** The driver is asked once about a request that it has owned for the
//!   queue's timeout, at the next whole second. If the driver still waits for it, it is asked again
//!   after another timeout.
//! - **[first-end-wins]** Between a late completion and [`TimedOut::Ended`] the first wins. The
//!   other finds nothing in flight under the tag and changes nothing.

use super::number::{hctx_id, request_id};
use super::turn::Turn;
use super::{RequestQueue, is_in_flight};
use crate::driver::{Driver, Finished, TimedOut};
use crate::time::{Duration, Instant};
use crate::trace::{Action, Sink};
use crate::unit::RequestId;

/// The timer fires at multiples of this, so that many requests share one check.
const GRAIN: Duration = Duration::from_secs(1);

impl RequestQueue {
    /// Sets the timer to fire no later than `at`, rounded up to a whole second.
    #[inline]
    pub(super) fn arm_timer(&mut self, at: Instant) {
        if at < self.timer {
            self.set_timer(at);
        }
    }

    #[cold]
    fn set_timer(&mut self, at: Instant) {
        self.timer = at_grain(at);
        debug_assert!(self.timer >= at, "timer at {}, before {at}", self.timer);
    }
}

/// Returns the first instant from `at` on at which the timer looks for requests that timed out.
const fn at_grain(at: Instant) -> Instant {
    let grains = at.as_ns().div_ceil(GRAIN.as_ns());
    Instant::from_ns(grains.saturating_mul(GRAIN.as_ns()))
}

impl<D: Driver, S: Sink> Turn<'_, D, S> {
    /// Handles the timer.
    #[cold]
    pub(super) fn handle_timer(&mut self) {
        debug_assert!(
            self.queue.timer <= self.now,
            "timer at {}, handled at {}",
            self.queue.timer,
            self.now
        );
        self.queue.timer = Instant::MAX;
        self.queue.end_window(self.now);
        for id in (0..self.queue.requests.capacity()).map(request_id) {
            let rq = &self.queue.requests[id];
            // The window of throttled writeback ends at any instant.
            if is_in_flight(rq) && at_grain(rq.deadline) <= self.now {
                self.timed_out(id);
            }
            let rq = &self.queue.requests[id];
            if is_in_flight(rq) {
                self.queue.arm_timer(rq.deadline);
            }
        }
        for at in 0..self.queue.hctxs.len() {
            self.begin_flush(hctx_id(at)); // [flush-held-bounded]
        }
    }

    /// Asks the driver about a request ([asked-each-timeout]).
    fn timed_out(&mut self, id: RequestId) {
        self.emit_request(Action::TimedOut, id);
        let rq = &self.queue.requests[id];
        let hctx = rq.hctx;
        let tag = rq.driver_tag.expect("a request in flight has a driver tag");
        match self.host.driver.timed_out(self.queue.id, hctx, tag, rq, self.now) {
            TimedOut::Reset => {
                self.queue.requests[id].deadline = self.now + self.queue.timeout;
            }
            TimedOut::Ended(outcome) => self
                .conclude(&Finished { queue: self.queue.id, hctx, tag, outcome })
                .expect("it was in flight"),
        }
    }
}
