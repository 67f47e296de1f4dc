//! Service: which queue gives its next request, and what follows when a request has ended.
//!
//! # Rules
//!
//! - **[next-is-held]** The next request of a queue is one that it holds, and a queue with requests
//!   has one.

use super::budget::Expiry;
use super::queue::Marks;
use super::{Bfq, Held, scheduler};
use crate::request::Requests;
use crate::unit::RequestId;

impl Bfq {
    /// Counts `queue`, which has become busy, among those with requests.
    pub(super) fn join_pending(&mut self, queue: usize) {
        if self.queues[queue].waker.is_some() {
            self.note_woken(queue);
        }
        // Not by `dispatched`: a request that came back and went out again is not counted.
        if self.queues[queue].is(Marks::PENDING) {
            return;
        }
        self.queues[queue].marks.put(Marks::PENDING, true);
        let group = &mut self.groups[self.scheduler.of(queue).level];
        self.groups_pending += u32::from(group.pending == 0);
        group.pending += 1;
        if self.scheduler.of(queue).raise == 1 {
            self.scheduler.use_weight(queue);
        }
    }

    /// Takes `queue`, which has no more requests, out of those that have.
    pub(super) fn leave_pending(&mut self, queue: usize) {
        if self.queues[queue].is(Marks::PENDING) {
            self.queues[queue].marks.put(Marks::PENDING, false);
            let group = &mut self.groups[self.scheduler.of(queue).level];
            debug_assert!(group.pending > 0 && self.groups_pending > 0, "queue {queue}");
            group.pending -= 1;
            self.groups_pending -= u32::from(group.pending == 0);
        }
        self.scheduler.leave_weight(queue);
    }

    /// Returns the queue of which a request goes next.
    pub(super) fn select(&mut self) -> Option<usize> {
        if let Some(serving) = self.serving
            && self.may_time_out(serving)
            && !self.must_idle(serving)
        {
            self.expire(serving, None, Expiry::Timeout);
        }
        loop {
            let queue = match self.serving {
                Some(serving) => serving,
                None => {
                    let next = self.scheduler.take_next(self.tick())?;
                    self.begin_slot(next);
                    self.serving = Some(next);
                    next
                }
            };
            self.rescue_oldest(queue);
            let of = &self.queues[queue];
            if of.next.is_some() && self.next_fits(queue) {
                if of.is(Marks::WAITED_FOR) {
                    self.end_to_idle(queue);
                }
                return Some(queue);
            }
            if of.next.is_some() {
                self.expire(queue, None, Expiry::Exhausted);
            } else if of.is(Marks::WAITED_FOR) || (of.dispatched > 0 && self.better_to_idle(queue))
            {
                let injected = self.choose_injected(queue);
                self.counts.injected += u64::from(injected.is_some());
                return injected;
            } else {
                self.expire(queue, None, Expiry::NoMoreRequests);
            }
        }
    }

    /// Takes the next request of `queue`.
    pub(super) fn take(&mut self, requests: &mut Requests, queue: usize) -> Option<RequestId> {
        let id = self.queues[queue].next?;
        let Held { sector, sectors, is_sync, queue: of_id, .. } = self.held[id.index()];
        debug_assert_eq!(of_id as usize, queue, "[next-is-held] {id:?}");
        debug_assert!(self.next_fits(queue), "[budget-kept] queue {queue}");
        self.serve(queue, self.charge(queue, sectors));
        self.count_service(self.scheduler.of(queue).level, sectors, is_sync);
        if self.serving == Some(queue) {
            self.injection.dispatched(id);
        }
        self.queues[queue].dispatched += 1;
        let is_seek = self.is_seek(self.last_end, sector, sectors);
        if self.rate.dispatched(sectors, is_seek, self.in_driver, self.now) {
            self.follow_rate();
        }
        self.last_end = sector + u64::from(sectors);
        if self.serving == Some(queue) {
            self.in_service_end = self.last_end;
        }
        self.remove(requests, queue, id);
        if self.serving == Some(queue) {
            self.update_raising(queue);
            if self.scheduler.busy() > 1 && self.scheduler.of(queue).class == scheduler::IDLE_CLASS
            {
                self.expire(queue, None, Expiry::Exhausted);
            }
        }
        self.in_driver += 1;
        Some(id)
    }

    /// Makes the largest budget what the device transfers in the time of a slot.
    pub(super) fn follow_rate(&mut self) {
        if self.tunables.max_budget == 0 {
            self.budgets.most = self.rate.sectors_in(self.tunables.timeout_sync).max(1);
        }
    }

    /// Takes `id` out of `queue` ([next-is-held]).
    pub(super) fn remove(&mut self, requests: &mut Requests, queue: usize, id: RequestId) {
        if self.queues[queue].next == Some(id) {
            let next = self.next_after(queue, id);
            self.queues[queue].next = next;
            self.fit_budget(queue);
        }
        let of = &mut self.queues[queue];
        debug_assert!(!of.is_empty(), "queue {queue} is empty");
        of.fifo.remove(requests, id);
        of.sorted.remove(&mut self.nodes, id);
        self.ends.remove(&mut self.end_nodes, id);
        self.len -= 1;
        if of.is_empty() && self.serving != Some(queue) && self.scheduler.of(queue).is_busy {
            self.leave_busy(queue, false);
            let entity = self.scheduler.of_mut(queue);
            entity.budget = 0;
            entity.service = 0;
        }
    }

    /// Notes that a request of `queue` has ended or come back.
    pub(super) fn completed(&mut self, queue: usize) {
        let few = self.serving.is_some_and(|serving| {
            let of = &self.queues[serving];
            of.is(Marks::QUICK) && of.dispatched + of.fifo.len() < 3
        });
        self.queueing.completed(self.in_driver, self.len - self.head.len(), few);
        debug_assert!(self.in_driver > 0, "nothing is in the device");
        self.in_driver -= 1;
        let now = self.now;
        let tick = self.tick();
        let of = &mut self.queues[queue];
        of.dispatched -= 1;
        of.think.last_end = now;
        if of.dispatched == 0 && !self.scheduler.of(queue).is_busy {
            of.timeout = Some(tick);
            self.leave_pending(queue);
        }
        if self.rate.completed(now) {
            self.follow_rate();
        }
        self.last_completed = Some(queue).filter(|of| !self.queues[*of].is(Marks::SHARED));
        self.note_soft_real_time_at_completion(queue);
        self.holds_for_last = self.serving == Some(queue) && self.must_idle(queue);
        if self.serving != Some(queue) {
            return;
        }
        let dispatched = self.queues[queue].dispatched;
        if self.holds_for_last {
            if dispatched == 0 {
                self.begin_to_idle(queue);
            }
        } else if self.may_time_out(queue) {
            self.expire(queue, None, Expiry::Timeout);
        } else if self.queues[queue].is_empty() && (dispatched == 0 || !self.better_to_idle(queue))
        {
            self.expire(queue, None, Expiry::NoMoreRequests);
        }
    }
}
