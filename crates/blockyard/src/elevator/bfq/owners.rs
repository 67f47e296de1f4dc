//! Processes and the queues that they submit into, from the first request on.

use super::budget::Expiry;
use super::process::level_of;
use super::queue::{Marks, Queue, Think, class_and_level, weight_of_level};
use super::{Bfq, scheduler};
use crate::bio::Submitter;
use crate::request::{Request, Requests};
use crate::unit::RequestId;

impl Bfq {
    /// Returns a free queue, as a new one of `level`.
    pub(super) fn create(
        &mut self,
        level: usize,
        class: usize,
        weight: u32,
        is_sync: bool,
    ) -> usize {
        let count = self.queues.len();
        let from = self.free_from;
        let mut free = (from..count).chain(0..from).filter(|at| self.is_free(*at));
        // An idle asynchronous queue keeps its stamps, by which it was charged, as long as it can.
        let queue = free
            .clone()
            .find(|at| self.queues[*at].is(Marks::SYNC))
            .or_else(|| free.next())
            .unwrap_or_else(|| self.make_free());
        self.free_from = (queue + 1) % count;
        self.scheduler.forget_idle_queue(queue);
        self.forget_queue(queue);
        let largest = self.budgets.largest();
        let max_budget = largest - largest.div_ceil(3);
        self.scheduler.renew(queue, level, class, weight);
        self.queues[queue] =
            Queue::new(is_sync, class == scheduler::IDLE_CLASS, max_budget, self.now);
        self.queues[queue].owners = 1;
        self.queues[queue].think = Think::new(self.now, self.tunables.plug_stops_clock);
        queue
    }

    /// Whether `queue` may become another one: it has no requests, and no process would miss it.
    pub(super) fn is_free(&self, queue: usize) -> bool {
        let of = &self.queues[queue];
        let is_needed = of.owners > 0 && of.is(Marks::SYNC);
        of.requests == 0
            && !is_needed
            && !self.scheduler.of(queue).is_busy
            && self.serving != Some(queue)
    }

    /// Makes a queue free that is not, although it has no requests and no process submits into it:
    /// an asynchronous one that was preempted and stays active, or one that is merged and waits for
    /// processes of queues merged into it before. There is one: see [`Self::queue_count`].
    fn make_free(&mut self) -> usize {
        let mut all = 0..self.queues.len();
        let queue =
            all.find(|at| self.is_dispensable(*at)).expect("fewer are in use than there are");
        if self.scheduler.of(queue).is_busy {
            self.leave_busy(queue, false);
        }
        let heir = self.queues[queue].heir;
        for of in self.queues.iter_mut().filter(|of| of.heir == Some(queue)) {
            of.heir = heir;
        }
        queue
    }

    fn is_dispensable(&self, queue: usize) -> bool {
        self.queues[queue].requests == 0
            && self.serving != Some(queue)
            && !self.processes.all().any(|process| process.sync == Some(queue))
    }

    /// Takes `queue` out of everything that names it.
    pub(super) fn forget_queue(&mut self, queue: usize) {
        self.forget_waker(queue);
        for of in &mut self.queues {
            of.heir = of.heir.filter(|heir| *heir != queue);
        }
        self.newest_is_now(queue, None);
        for process in self.processes.all_mut() {
            process.stable_heir = process.stable_heir.filter(|heir| *heir != queue);
            process.last_async = process.last_async.filter(|of| *of != queue);
        }
        for of_async in self.groups.iter_mut().flat_map(|group| group.of_async.as_flattened_mut()) {
            *of_async = of_async.filter(|of| *of != queue);
        }
        let was_in_burst = self.queues[queue].is(Marks::IN_BURST);
        self.burst.size -= u32::from(was_in_burst && self.burst.size > 0);
    }

    /// Returns the process of a request, which may be a new one.
    pub(super) fn process_of(&mut self, key: Submitter, request: &Request) -> usize {
        if let Some(process) = self.processes.find(key) {
            if self.processes.of(process).prio != request.prio {
                self.processes.of_mut(process).prio = request.prio;
                let (class, level) = class_and_level(request.prio);
                if let Some(queue) = self.processes.of(process).sync {
                    self.scheduler.ask(queue, class, weight_of_level(level));
                }
            }
            return process;
        }
        let level = level_of(&mut self.groups, key.group);
        let old = if self.processes.has_room() { None } else { self.processes.longest_silent() };
        if let Some(old) = old {
            self.let_go(old);
        }
        self.processes.add(key, level, request.prio, old)
    }

    /// Lets go the queue of `process`, which is forgotten.
    pub(super) fn let_go(&mut self, process: usize) {
        debug_assert_eq!(self.processes.of(process).requests, 0, "process {process} is not silent");
        let Some(queue) = self.processes.of_mut(process).sync.take() else { return };
        if self.serving == Some(queue) {
            // No slot ends for which the queue would be judged.
            self.injection.stop();
            self.leave_service(queue, Expiry::Timeout);
            self.scheduler.clear_service_above(queue);
        }
        let mut heir = self.queues[queue].heir;
        while let Some(at) = heir {
            self.queues[at].owners -= 1;
            heir = self.queues[at].heir;
        }
        if self.queues[queue].process == Some(process) {
            self.queues[queue].process = None;
        }
        self.leave_owner(queue);
    }

    /// Creates the queue of the synchronous requests of `process`.
    pub(super) fn create_sync(&mut self, process: usize, is_split: bool) -> usize {
        let of = self.processes.of(process);
        let level = of.level;
        let (class, prio_level) = class_and_level(of.prio);
        let queue = self.create(level, class, weight_of_level(prio_level), true);
        self.processes.of_mut(process).sync = Some(queue);
        if is_split { queue } else { self.merge_created(queue, process) }
    }

    /// Returns the queue of the asynchronous requests of `process`.
    pub(super) fn async_queue(&mut self, process: usize) -> usize {
        let of = self.processes.of(process);
        let level = of.level;
        let (class, prio_level) = class_and_level(of.prio);
        let queue = self.groups[level].of_async[class][prio_level].unwrap_or_else(|| {
            let queue = self.create(level, class, weight_of_level(prio_level), false);
            self.groups[level].of_async[class][prio_level] = Some(queue);
            queue
        });
        self.processes.of_mut(process).last_async = Some(queue);
        queue
    }

    /// Returns process and queue of a request, and counts the request there.
    pub(super) fn assign(&mut self, requests: &Requests, id: RequestId) -> (usize, usize) {
        let rq = &requests[id];
        let process = self.process_of(rq.submitter, rq);
        let queue = if rq.is_sync() {
            match self.processes.of(process).sync {
                Some(queue) => self.split_if_random(queue, process),
                None => self.create_sync(process, false),
            }
        } else {
            self.async_queue(process)
        };
        debug_assert!(self.queues[queue].owners > 0, "queue {queue} is nobody's");
        self.processes.of_mut(process).requests += 1;
        let of = &mut self.queues[queue];
        of.requests += 1;
        if rq.is_sync() && of.owners == 1 && of.heir.is_none() {
            of.process = Some(process);
        }
        if of.is(Marks::NEW) && (self.burst.size > 0 || self.scheduler.busy() == 0) {
            self.join_burst(queue);
        }
        (process, queue)
    }
}
