//! Idling: holding the device for the next request of the process in service.
//!
//! A process that reads block after block has no request waiting at the moment in which its last
//! one ends. To serve another one in that moment costs a disk two seeks, and costs the process its
//! share on any device. So the device waits for up to [`BfqTunables::slice_idle`] where that raises
//! throughput, or where shares would not be kept without it.
//!
//! [`BfqTunables::slice_idle`]: crate::policy::BfqTunables::slice_idle

use super::queue::{Marks, SEEK};
use super::scheduler::IDLE_CLASS;
use super::{Bfq, MIN_THINK};
use crate::elevator::IDLE_MAX;
use crate::time::{Duration, Instant};

/// The least time for which the device waits for a raised queue.
pub(super) const RAISED_WAIT: Duration = Duration::from_ms(20);

/// What idling cost and bought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Idled {
    /// How often the device was held.
    pub waits: u64,
    /// How often the request came for which it was held.
    pub met: u64,
    /// How often that request was near the end of the last one of its queue: no seek.
    pub near: u64,
    /// The time for which it was held, in all.
    pub time: Duration,
    /// The part of that time in which the device had nothing to do although requests of others
    /// were held.
    pub withheld: Duration,
}

impl Idled {
    pub(super) fn add(&mut self, other: &Self) {
        self.waits += other.waits;
        self.met += other.met;
        self.near += other.near;
        self.time += other.time;
        self.withheld += other.withheld;
    }
}

impl Bfq {
    /// Whether queues would not get their shares if requests were mixed in the device: weights,
    /// classes or groups differ.
    pub(super) fn is_asymmetric(&self, queue: usize) -> bool {
        let busy_classes = self.scheduler.busy_by_class().iter().filter(|busy| **busy > 0).count();
        self.scheduler.weights_differ(queue) || busy_classes > 1 || self.groups_pending > 1
    }

    /// Whether idling for `queue` raises throughput: the device serves one request at a time and
    /// seeks, or it seeks or serves one at a time and the queue is sequential.
    pub(super) fn idling_boosts(&self, queue: usize) -> bool {
        let of = &self.queues[queue];
        if of.owners == 0 || self.scheduler.raised > 0 {
            return false;
        }
        let is_queueing = self.queueing.is_found();
        let is_sequential = !of.is_seeky() && of.is(Marks::IO_BOUND) && of.is(Marks::QUICK);
        (self.rotational && !is_queueing) || ((self.rotational || !is_queueing) && is_sequential)
    }

    /// Whether idling for `queue` is needed to keep guarantees: it is raised and others are served,
    /// or shares would not be kept, or nobody else wants the device.
    pub(super) fn must_idle_for_guarantees(&self, queue: usize) -> bool {
        let of = &self.queues[queue];
        let busy = self.scheduler.busy();
        let has_rivals =
            self.scheduler.raised < busy || self.in_driver >= of.dispatched.saturating_add(4);
        of.owners > 0
            && ((self.scheduler.of(queue).raise > 1 && has_rivals)
                || self.is_asymmetric(queue)
                || busy == 1)
    }

    /// Whether it is better to hold the device for `queue` than to serve another one.
    pub(super) fn better_to_idle(&self, queue: usize) -> bool {
        let of = &self.queues[queue];
        if of.owners == 0 {
            return false;
        }
        if self.tunables.strict_guarantees {
            return true;
        }
        let is_idle_class = self.scheduler.of(queue).class == IDLE_CLASS;
        if self.tunables.slice_idle == Duration::ZERO || !of.is(Marks::SYNC) || is_idle_class {
            return false;
        }
        self.idling_boosts(queue) || self.must_idle_for_guarantees(queue)
    }

    /// Whether the device is to be held for `queue`, which has no request.
    pub(super) fn must_idle(&self, queue: usize) -> bool {
        self.queues[queue].is_empty() && self.better_to_idle(queue)
    }

    /// Begins to hold the device for `queue` ([idling-bounded]).
    pub(super) fn begin_to_idle(&mut self, queue: usize) {
        debug_assert_eq!(self.serving, Some(queue), "the device is held for the one in service");
        debug_assert!(self.queues[queue].is_empty(), "queue {queue} has requests");
        let slice = self.tunables.slice_idle;
        let is_raised = self.scheduler.of(queue).raise > 1;
        // A process of random I/O gains little: its next request comes within 2 ms, or is not
        // waited for.
        let wait = if is_raised {
            slice.max(RAISED_WAIT)
        } else if self.queues[queue].is_seeky() && !self.is_asymmetric(queue) {
            slice.min(MIN_THINK)
        } else {
            slice
        };
        self.stop_idling();
        self.queues[queue].marks.put(Marks::WAITED_FOR, true);
        self.idled_since = self.now;
        self.idle_until = Some(self.now + wait.min(IDLE_MAX));
        self.counts.idled.waits += 1;
    }

    /// Ends the wait for `queue` if the device is held for it: its request has come.
    pub(super) fn end_to_idle(&mut self, queue: usize) {
        if self.stop_idling() {
            self.counts.idled.met += 1;
            self.counts.idled.near += u64::from(self.next_is_near(queue));
        }
        self.queues[queue].marks.put(Marks::WAITED_FOR, false);
    }

    /// Whether the next request of `queue`, which is in service, is near the end of its last one.
    fn next_is_near(&self, queue: usize) -> bool {
        self.queues[queue].next.is_some_and(|next| {
            let sector = self.held[next.index()].sector;
            self.in_service_end > 0 && self.in_service_end.abs_diff(sector) <= SEEK
        })
    }

    /// Ends the wait, if the device is held. Returns whether it was.
    pub(super) const fn stop_idling(&mut self) -> bool {
        self.idle_until.take().is_some()
    }

    /// Ends a wait whose instant has come. The slot of the queue ends with it if no request has
    /// come, or if its time is over.
    pub(super) fn pass_time(&mut self, now: Instant) {
        self.count_time(self.idle_until.map_or(now, |until| until.min(now)));
        if let Some(until) = self.idle_until.take_if(|until| *until <= now)
            && let Some(queue) = self.serving
        {
            // Work is done as at that instant, although the call may come later.
            self.set_now(until);
            self.queues[queue].marks.put(Marks::WAITED_FOR, false);
            if self.is_out_of_time(queue) {
                self.expire(queue, Some(self.idled_since), super::budget::Expiry::Timeout);
            } else if self.queues[queue].is_empty() {
                self.expire(queue, Some(self.idled_since), super::budget::Expiry::TooIdle);
            }
        }
        self.set_now(now);
        self.count_time(now);
    }
}
