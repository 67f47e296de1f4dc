//! Cooperators: processes whose I/O is interleaved share one queue, so that it is sequential.
//!
//! Two queues are merged when a request of one comes close to the requests of the other, in the
//! first 100 ms of their I/O. Besides, queues of one group and priority that are created within
//! 180 ms of each other are merged for good: at once on a device without moving parts that queues,
//! else after 600 ms if idling is of no use. A queue that was merged by position and has become one
//! of random I/O is split again, and each process goes on with what its queue had before. With
//! [`merges_queues`](crate::policy::BfqTunables::merges_queues) off, nothing is merged.

use super::entity::Raise;
use super::process::Saved;
use super::queue::{Marks, has_passed};
use super::scheduler::IDLE_CLASS;
use super::{Bfq, burst};
use crate::time::Duration;

/// Sectors between requests that are close.
const CLOSE: u64 = 8 * 1024;
/// The time from its first request in which a queue may be merged by position.
const EARLY: Duration = Duration::from_ms(100);
/// The most time between the creations of two queues that are to be merged for good, and the time
/// after which they are.
const STABLE: Duration = Duration::from_ms(600);

impl Bfq {
    /// Whether the device has no moving parts and serves several requests at a time: then merges by
    /// position gain nothing.
    fn needs_no_order(&self) -> bool {
        !self.rotational && self.queueing.is_found()
    }

    fn is_too_late(&self, queue: usize) -> bool {
        let of = &self.queues[queue];
        of.served > 0 && of.first_served + EARLY < self.tick()
    }

    /// Returns the queue that `queue` is to be merged into, now that a request of `process` at
    /// `sector` comes.
    pub(super) fn find_heir(&mut self, queue: usize, process: usize, sector: u64) -> Option<usize> {
        if self.queues[queue].heir.is_some() {
            return Some(self.last_heir(queue));
        }
        if self.needs_no_order() || !self.tunables.merges_queues {
            return None;
        }
        let of = &self.queues[queue];
        let stable = self.processes.of(process).stable_heir.filter(|_| {
            of.is(Marks::SYNC)
                && !of.is(Marks::NEW)
                && has_passed(of.split, STABLE, self.tick())
                && of.created + STABLE < self.tick()
        });
        if let Some(heir) = stable {
            self.processes.of_mut(process).stable_heir = None;
            if self.idling_boosts(queue) || self.queues[queue].owners == 0 {
                return None;
            }
            return self.plan_stable_merge(queue, process, heir);
        }
        if self.is_too_late(queue) || self.scheduler.busy() == 1 {
            return None;
        }
        let serving = self.serving.filter(|serving| {
            *serving != queue
                && self.in_service_end.abs_diff(sector) <= CLOSE
                && self.may_cooperate(queue, *serving)
        });
        if let Some(heir) = serving.and_then(|serving| self.plan_merge(queue, serving)) {
            return Some(heir);
        }
        let close = self.find_close(queue, sector)?;
        if self.may_cooperate(queue, close) { self.plan_merge(queue, close) } else { None }
    }

    /// Returns the busy queue of the same group whose next request is the closest to `sector`, if
    /// it is close.
    fn find_close(&self, queue: usize, sector: u64) -> Option<usize> {
        let level = self.scheduler.of(queue).level;
        let others = self.scheduler.active_queues().chain(self.serving);
        let close = others.filter_map(|other| {
            let next = self.queues[other].next?;
            let entity = self.scheduler.of(other);
            let is_there = entity.level == level && entity.class != IDLE_CLASS;
            let distance = self.held[next.index()].sector.abs_diff(sector);
            (is_there && !self.is_too_late(other) && distance <= CLOSE).then_some((distance, other))
        });
        close.min().map(|(_, other)| other).filter(|other| *other != queue)
    }

    fn may_cooperate(&self, queue: usize, other: usize) -> bool {
        let own = self.scheduler.of(queue);
        let its = self.scheduler.of(other);
        !self.is_too_late(other)
            && own.class != IDLE_CLASS
            && own.class == its.class
            && own.level == its.level
            && [queue, other].iter().all(|at| {
                let of = &self.queues[*at];
                !of.is_seeky() && of.is(Marks::SYNC)
            })
    }

    fn last_heir(&self, queue: usize) -> usize {
        let mut last = queue;
        while let Some(heir) = self.queues[last].heir {
            last = heir;
        }
        last
    }

    /// Plans to merge `queue` into `heir`, or into what that is to be merged into. Its processes
    /// count as owners of the heir from now on.
    fn plan_merge(&mut self, queue: usize, heir: usize) -> Option<usize> {
        if self.queues[heir].owners == 0 {
            return None;
        }
        let heir = self.last_heir(heir);
        let owners = self.queues[queue].owners;
        let is_possible = heir != queue
            && owners > 0
            && self.queues[heir].owners > 0
            && self.scheduler.of(heir).level == self.scheduler.of(queue).level;
        if !is_possible {
            return None;
        }
        self.queues[queue].heir = Some(heir);
        self.queues[heir].owners += owners;
        Some(heir)
    }

    fn plan_stable_merge(&mut self, queue: usize, process: usize, heir: usize) -> Option<usize> {
        let heir = self.plan_merge(queue, heir)?;
        self.processes.of_mut(process).is_stable = true;
        if let Some(owner) = self.queues[heir].process {
            self.processes.of_mut(owner).is_stable = true;
        }
        Some(heir)
    }

    /// Merges `queue` of `process` into its heirs, up to the last one, which it returns.
    pub(super) fn merge_into_heirs(&mut self, queue: usize, process: usize) -> usize {
        let mut last = queue;
        while let Some(heir) = self.queues[last].heir {
            self.merge_queue(last, process, heir);
            last = heir;
        }
        last
    }

    fn merge_queue(&mut self, queue: usize, process: usize, heir: usize) {
        debug_assert_ne!(queue, heir, "a queue is merged into another one");
        self.save_state(queue);
        self.save_state(heir);
        if self.queues[queue].is(Marks::IO_BOUND) {
            self.queues[heir].marks.put(Marks::IO_BOUND, true);
        }
        self.queues[queue].marks.put(Marks::IO_BOUND, false);
        let waker = self.queues[queue].waker.filter(|waker| *waker != heir);
        if waker.is_some() && self.queues[heir].waker.is_none() {
            self.queues[heir].waker_to_be = None;
            self.set_waker(heir, waker);
        }
        self.hand_over_raising(queue, heir);
        let merged = self.processes.of_mut(process);
        merged.sync = Some(heir);
        // They are one by position: after a split they are not merged for good.
        merged.stable_heir = merged.stable_heir.filter(|stable| *stable != heir);
        self.queues[heir].marks.put(Marks::SHARED, true);
        self.queues[heir].process = None;
        self.queues[queue].process = None;
        self.newest_is_now(queue, Some(heir));
        self.counts.merged += 1;
        self.leave_owner(queue);
    }

    /// Lets `heir` stand for `queue` where that is the newest one of a group.
    pub(super) fn newest_is_now(&mut self, queue: usize, heir: Option<usize>) {
        for newest in self.newest_created.iter_mut().filter(|newest| **newest == Some(queue)) {
            *newest = heir;
        }
    }

    /// Notes that a process no longer submits into `queue`.
    pub(super) fn leave_owner(&mut self, queue: usize) {
        debug_assert!(self.queues[queue].owners > 0, "queue {queue} is nobody's");
        self.queues[queue].owners -= 1;
        let is_busy = self.scheduler.of(queue).is_busy;
        if is_busy && self.queues[queue].is_empty() && self.serving != Some(queue) {
            self.leave_busy(queue, false);
        }
        self.newest_is_now(queue, None);
    }

    /// Saves what the one process of `queue` is to have again after a split.
    fn save_state(&mut self, queue: usize) {
        let Some(process) = self.queues[queue].process else { return };
        let of = &self.queues[queue];
        let entity = self.scheduler.of(queue);
        let is_new = of.is(Marks::NEW) && !of.is(Marks::IN_LARGE_BURST);
        let mut saved = Saved {
            marks: of.marks,
            weight: entity.own_weight,
            think: of.think,
            io_since: of.io_since,
            idle_ns: of.idle_ns,
            service_ns: of.service_ns,
            inject_limit: of.inject_limit,
            limit_changed: of.limit_changed,
            raise: entity.raise,
            raised_as: of.raised_as,
            raised_for: of.raised_for,
            raised_at: of.raised_at,
            raised_before: of.raised_before,
            raised_service: of.raised_service,
        };
        // A queue that is merged before its first request was going to be raised.
        if is_new && self.tunables.low_latency {
            let (raise, raised_for) = self.raising_of_new();
            saved.raise = raise;
            saved.raised_as = Raise::Interactive;
            saved.raised_for = raised_for;
            saved.raised_at = self.tick();
            saved.raised_before = None;
        }
        self.processes.of_mut(process).saved = Some(saved);
    }

    /// Gives `queue` of `process` back what it had before it was merged.
    fn restore_state(&mut self, queue: usize, process: usize) {
        let Some(saved) = self.processes.of(process).saved else { return };
        let of = &mut self.queues[queue];
        of.marks.put(Marks::QUICK, saved.marks.has(Marks::QUICK));
        of.marks.put(Marks::IO_BOUND, saved.marks.has(Marks::IO_BOUND));
        of.think = saved.think;
        of.io_since = saved.io_since;
        of.idle_ns = saved.idle_ns;
        of.service_ns = saved.service_ns;
        of.inject_limit = saved.inject_limit;
        of.limit_changed = saved.limit_changed;
        of.raised_as = saved.raised_as;
        of.raised_for = saved.raised_for;
        of.raised_at = saved.raised_at;
        of.raised_before = saved.raised_before;
        of.raised_service = saved.raised_service;
        let class = self.scheduler.of(queue).asked_class;
        self.scheduler.ask(queue, class, saved.weight);
        if self.tunables.low_latency {
            self.resume_raising(queue, saved.raise);
        }
    }

    /// Splits the queue of `process`, which is shared, if its I/O has become random. Returns the
    /// queue that the process has then.
    pub(super) fn split_if_random(&mut self, queue: usize, process: usize) -> usize {
        let of = &self.queues[queue];
        let is_stable = self.processes.of(process).is_stable;
        if !of.is(Marks::SHARED) || !of.is(Marks::SPLIT) || is_stable {
            return queue;
        }
        let in_large_burst = of.is(Marks::IN_LARGE_BURST);
        if in_large_burst && let Some(saved) = &mut self.processes.of_mut(process).saved {
            saved.marks.put(Marks::IN_LARGE_BURST, true);
        }
        self.counts.split += 1;
        if self.queues[queue].owners == 1 && self.queues[queue].heir.is_none() {
            // The others have left: the last process keeps it.
            self.queues[queue].marks.put(Marks::SHARED, false);
            self.queues[queue].marks.put(Marks::SPLIT, false);
            self.restore_state(queue, process);
            return queue;
        }
        let mut heir = self.queues[queue].heir;
        while let Some(at) = heir {
            self.queues[at].owners -= 1;
            heir = self.queues[at].heir;
        }
        self.leave_owner(queue);
        self.processes.of_mut(process).sync = None;
        let own = self.create_sync(process, true);
        // The queue that becomes the new one may have been the waker, and is none any more.
        let waker = self.queues[queue].waker;
        self.join_burst_again(own, process);
        self.queues[own].split = Some(self.tick());
        self.restore_state(own, process);
        self.queues[own].waker_to_be = None;
        self.set_waker(own, waker.filter(|waker| self.queues[*waker].owners > 0));
        own
    }

    /// Puts `queue`, which was split off, back into the burst that it was created in.
    fn join_burst_again(&mut self, queue: usize, process: usize) {
        let saved = self.processes.of(process).saved.map(|saved| saved.marks);
        let marks = saved.unwrap_or_default();
        let was_in_burst = marks.has(Marks::IN_BURST);
        let is_large = (was_in_burst && self.burst.is_large) || marks.has(Marks::IN_LARGE_BURST);
        let of = &mut self.queues[queue];
        of.marks.put(Marks::IN_LARGE_BURST, is_large);
        of.marks.put(Marks::IN_BURST, was_in_burst && !is_large);
    }

    /// Merges `queue`, which `process` has just created, with the one of its group that was created
    /// before it, or plans that. Returns the queue that the process has then.
    pub(super) fn merge_created(&mut self, queue: usize, process: usize) -> usize {
        if !self.tunables.merges_queues {
            return queue;
        }
        let entity = self.scheduler.of(queue);
        let level = entity.level;
        let created = self.queues[queue].created;
        let last = self.newest_created[level].filter(|last| {
            let its = self.scheduler.of(*last);
            self.queues[*last].created + STABLE >= created
                && its.asked_weight == entity.asked_weight
                && its.class == entity.class
        });
        let Some(last) = last else {
            self.newest_created[level] = Some(queue);
            return queue;
        };
        if self.queues[last].created + burst::INTERVAL < created {
            return queue;
        }
        if !self.needs_no_order() {
            self.processes.of_mut(process).stable_heir = Some(last);
            return queue;
        }
        if self.plan_stable_merge(queue, process, last).is_none() {
            return queue;
        }
        self.queues[queue].process = Some(process);
        self.merge_into_heirs(queue, process)
    }
}
