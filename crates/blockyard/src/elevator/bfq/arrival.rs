//! Arrivals: what the next request of a process changes.

use super::budget::Expiry;
use super::queue::Marks;
use super::{Bfq, Held, SMALL};
use crate::request::Requests;
use crate::time::Duration;
use crate::unit::RequestId;

impl Bfq {
    /// Inserts `id` of `process` into `queue`, or into the one that this is merged into.
    pub(super) fn insert_sorted(
        &mut self,
        requests: &mut Requests,
        id: RequestId,
        process: usize,
        queue: usize,
    ) {
        let sector = requests[id].sector;
        let mut queue = queue;
        if requests[id].is_sync()
            && let Some(heir) = self.find_heir(queue, process, sector)
        {
            self.queues[queue].requests -= 1;
            self.queues[heir].requests += 1;
            if self.processes.of(process).sync == Some(queue) {
                self.merge_into_heirs(queue, process);
            }
            self.queues[queue].marks.put(Marks::NEW, false);
            queue = heir;
        }
        self.keep(&requests[id], id, process, queue);
        let Held { sectors, is_sync, .. } = self.held[id.index()];
        self.note_think_time(queue);
        self.judge_think_time(queue);
        self.note_seek(queue, sector, sectors);
        self.doubt_soft_real_time(queue);
        if is_sync && self.processes.of(process).requests <= 1 {
            self.look_for_waker(queue);
            self.begin_trial(queue);
        }
        if is_sync {
            self.judge_io_bound(queue);
        }
        self.queues[queue].sorted.insert(&mut self.nodes, id, sector);
        self.queues[queue].fifo.push_back(requests, id);
        if requests[id].extent().is_mergeable() {
            self.ends.insert_behind_last(&mut self.end_nodes, id, requests[id].end_sector());
        }
        self.arrived(queue, process, id);
        self.end_wait(queue, id);
    }

    /// Lets `queue` take `id`, which has come: it may become busy, and its next request may be
    /// another one.
    pub(super) fn arrived(&mut self, queue: usize, process: usize, id: RequestId) {
        let was_raised = self.scheduler.of(queue).raise > 1;
        let before = self.queues[queue].next;
        let next = self.choose(before, Some(id), self.last_end);
        self.queues[queue].next = next;
        let mut is_interactive = false;
        if self.scheduler.of(queue).is_busy {
            if !was_raised && !self.held[id.index()].is_sync {
                self.raise_async(queue);
            }
            if before != next {
                self.fit_budget(queue);
            }
        } else {
            is_interactive = self.become_busy(queue, process);
        }
        self.note_raising_at_arrival(queue, was_raised, is_interactive);
    }

    /// Makes `queue`, whose first request has come, busy. Returns whether it is interactive.
    pub(super) fn become_busy(&mut self, queue: usize, process: usize) -> bool {
        let is_own = self.queues[queue].process.is_some() || self.processes.of(process).is_stable;
        let arrival = self.judge_arrival(queue, is_own);
        let slices = Duration::from_ns(3 * self.tunables.slice_idle.as_ns());
        let in_time = self.now <= self.queues[queue].think.last_end + slices;
        let keeps_budget = self.budget_on_return(queue, in_time);
        self.forget_burst(queue);
        self.raise_on_arrival(queue, arrival);
        let tick = self.tick();
        let of = &mut self.queues[queue];
        of.last_busy = tick;
        of.served = 0;
        of.marks.put(Marks::SOFT_REAL_TIME_DUE, false);
        let in_time = of.is(Marks::KEEPS_BUDGET);
        of.marks.put(Marks::KEEPS_BUDGET, false);
        self.scheduler.activate(queue, in_time, false, tick);
        self.scheduler.set_busy(queue, true);
        self.join_pending(queue);
        self.preempt_for(queue, keeps_budget);
        arrival.is_interactive
    }

    /// Ends the slot of the queue in service if `queue`, which has become busy, is to go first.
    pub(super) fn preempt_for(&mut self, queue: usize, keeps_budget: bool) {
        let Some(serving) = self.serving else { return };
        let raise = self.scheduler.of(queue).raise;
        let may = (keeps_budget && raise >= self.scheduler.of(serving).raise)
            || self.outranks(queue, serving)
            || !self.better_to_idle(serving);
        if may && self.scheduler.may_preempt() {
            self.expire(serving, None, Expiry::Preempted);
        }
    }

    /// Whether `queue` is of a higher class than `other`, or it or its group has more weight.
    pub(super) fn outranks(&self, queue: usize, other: usize) -> bool {
        let own = self.scheduler.of(queue);
        let its = self.scheduler.of(other);
        if own.class < its.class {
            return true;
        }
        if own.level == its.level {
            return own.weight > its.weight;
        }
        let weights = [own, its].map(|entity| {
            let group = self.scheduler.group(entity.level);
            group.map_or(entity.weight, |group| self.scheduler.of(group).weight)
        });
        weights[0] > weights[1]
    }

    /// Ends the wait for a request of `queue` if `id`, which has come, is worth it.
    pub(super) fn end_wait(&mut self, queue: usize, id: RequestId) {
        let Held { sector, sectors, .. } = self.held[id.index()];
        self.queues[queue].last_end = sector + u64::from(sectors);
        if self.serving != Some(queue) || !self.queues[queue].is(Marks::WAITED_FOR) {
            return;
        }
        let is_late = self.is_out_of_time(queue);
        let is_small = self.queues[queue].fifo.len() == 1 && sectors < SMALL;
        // Another one may follow that merges with it.
        if is_small && self.idling_boosts(queue) && !is_late {
            return;
        }
        self.end_to_idle(queue);
        if is_late {
            self.expire(queue, None, Expiry::Timeout);
        }
    }
}
