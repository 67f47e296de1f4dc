//! Requests that the driver has owned for too long, and flushes that were held back for too long.
//!
//! # Rules
//!
//! - **[asked-each-timeout]** The driver is asked once about a request that it has owned for the queue's
//!   timeout, at the next whole second. If the driver still waits for it, it is asked again after another
//!   timeout.
//! - **[first-end-wins]** Between a late completion and [`TimedOut::Ended`] the first wins. The other finds
//!   nothing in flight under the tag and changes nothing.

use super::number::{hctx_id, request_id};
use super::{RequestQueue, is_in_flight};
use crate::driver::{Driver, Finished, TimedOut};
use crate::host::Host;
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
        let grains = at.as_ns().div_ceil(GRAIN.as_ns());
        self.timer = Instant::from_ns(grains.saturating_mul(GRAIN.as_ns()));
        debug_assert!(self.timer >= at, "timer at {}, before {at}", self.timer);
    }

    /// Handles the timer.
    #[cold]
    pub(super) fn handle_timer<D: Driver, S: Sink>(&mut self, host: &mut Host<D, S>, now: Instant) {
        debug_assert!(self.timer <= now, "timer at {}, handled at {now}", self.timer);
        self.timer = Instant::MAX;
        for id in (0..self.requests.capacity()).map(request_id) {
            let rq = &self.requests[id];
            if is_in_flight(rq) && rq.deadline <= now {
                self.timed_out(host, id, now);
            }
            let rq = &self.requests[id];
            if is_in_flight(rq) {
                self.arm_timer(rq.deadline);
            }
        }
        for at in 0..self.hctxs.len() {
            self.begin_flush(host, hctx_id(at), now); // [flush-held-bounded]
        }
    }

    /// Asks the driver about a request ([asked-each-timeout]).
    fn timed_out<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        id: RequestId,
        now: Instant,
    ) {
        self.emit(host, now, Action::TimedOut, id);
        let rq = &self.requests[id];
        let hctx = rq.hctx;
        let tag = rq.driver_tag.expect("a request in flight has a driver tag");
        let ended = match host.driver.timed_out(self.id, hctx, tag, rq, now) {
            TimedOut::Reset => {
                self.requests[id].deadline = now + self.timeout;
                return;
            }
            TimedOut::Ended(outcome) => {
                self.conclude(host, &Finished { queue: self.id, hctx, tag, outcome }, now)
            }
        };
        ended.expect("it was in flight");
    }
}
