//! Injection: requests of other queues that are served while the queue in service has none.
//!
//! Each queue learns how many requests of others may be in the device without making its own ones
//! slow: as long as its next request ends within one and a half times the time that it takes alone,
//! one more may be. First of all come the queues that the one in service waits for: the
//! asynchronous queue of its process, and the queue whose completions let it go on.

use super::Bfq;
use super::queue::{Marks, Queue};
use super::ticks::in_ticks;
use crate::time::{Duration, Instant};
use crate::unit::RequestId;

/// The time after which what a queue has learnt is forgotten.
const FORGOTTEN: Duration = Duration::from_ms(1000);
/// The least time between a change of a limit and the next trial: 3 ticks.
const BETWEEN_TRIALS: Duration = in_ticks(Duration::from_ms(10));
/// The time after a completion of another queue in which it may have been the waker.
const WAKING: Duration = Duration::from_ms(4);
/// The waits, in which a queue must be found to be the waker three times.
const WAKING_SLICES: u64 = 128;
const WAKINGS: u32 = 3;

/// The trial that goes on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Injection {
    /// Whether requests were injected.
    is_injected: bool,
    /// Whether the next request of the queue in service is the one to be measured.
    is_awaited: bool,
    /// The request that is measured, and when it came.
    measured: Option<RequestId>,
    came: Instant,
    /// The number of wakers found, which orders the woken ones.
    turns: u64,
}

impl Injection {
    pub(super) fn stop(&mut self) {
        self.is_injected = false;
        self.is_awaited = false;
        self.measured = None;
    }

    /// Notes that `id` of the queue in service is dispatched.
    pub(super) fn dispatched(&mut self, id: RequestId) {
        if core::mem::replace(&mut self.is_awaited, false) {
            self.measured = Some(id);
        }
    }
}

impl Bfq {
    pub(super) fn reset_inject_limit(&mut self, queue: usize) {
        self.injection.measured = None;
        let tick = self.tick();
        let of = &mut self.queues[queue];
        of.service_ns = 0;
        of.inject_limit = u32::from(!of.is(Marks::QUICK));
        of.limit_changed = tick;
    }

    /// Begins a trial with the request of `queue` that has just come, while the queue is in service
    /// and empty; forgets what is too old.
    pub(super) fn begin_trial(&mut self, queue: usize) {
        if self.queues[queue].limit_changed + FORGOTTEN <= self.tick() {
            self.reset_inject_limit(queue);
        }
        let of = &self.queues[queue];
        let is_alone = self.in_driver == 0;
        let is_mixed = of.service_ns > 0 && self.injection.is_injected && self.in_driver > 0;
        if self.serving == Some(queue)
            && (is_alone || is_mixed)
            && of.limit_changed + BETWEEN_TRIALS <= self.tick()
        {
            self.injection.came = self.now;
            self.injection.is_awaited = true;
            if is_alone {
                self.injection.is_injected = false;
            }
        }
    }

    /// Ends a trial if `id` of `queue`, which has ended, is the request that was measured.
    pub(super) fn end_trial(&mut self, queue: usize, id: RequestId) {
        if self.injection.measured.take_if(|measured| *measured == id).is_none() {
            return;
        }
        let took = self.now.since(self.injection.came).as_ns();
        let is_injected = core::mem::replace(&mut self.injection.is_injected, false);
        let is_alone = self.in_driver == 1;
        let most = self.queueing.most_in_driver;
        let tick = self.tick();
        let of = &mut self.queues[queue];
        let old_limit = of.inject_limit;
        if of.service_ns > 0 && is_injected {
            let bearable = of.service_ns * 3 / 2;
            if took >= bearable && old_limit > 0 {
                of.inject_limit -= 1;
                of.limit_changed = tick;
            } else if took < bearable && old_limit <= most {
                of.inject_limit += 1;
            }
        }
        if (of.service_ns == 0 && is_alone) || took < of.service_ns {
            if of.service_ns == 0 {
                of.inject_limit = old_limit.max(1);
            }
            of.service_ns = took;
        } else if !is_injected && is_alone {
            of.service_ns = took;
        }
    }

    /// Looks for the queue whose completions let `queue` go on: one whose request has ended last
    /// when a request of `queue` comes, three times in a row.
    pub(super) fn look_for_waker(&mut self, queue: usize) {
        let Some(waker) = self.last_completed.filter(|last| *last != queue) else { return };
        let is_late = self.now.since(self.rate.last_completion) >= WAKING;
        if self.queues[queue].is(Marks::QUICK) || is_late {
            return;
        }
        let window = Duration::from_ns(WAKING_SLICES * self.tunables.slice_idle.as_ns());
        let now = self.now;
        let of = &mut self.queues[queue];
        if of.waker_to_be != Some(waker) || of.waking_since + window < now {
            of.waker_to_be = Some(waker);
            of.wakings = 1;
            of.waking_since = now;
        } else {
            of.wakings += 1;
        }
        if of.wakings == WAKINGS {
            of.waker_to_be = None;
            self.set_waker(queue, Some(waker));
        }
    }

    /// Makes `waker` the queue whose completions let `queue` go on.
    pub(super) fn set_waker(&mut self, queue: usize, waker: Option<usize>) {
        debug_assert_ne!(waker, Some(queue), "a queue does not wake itself");
        if let Some(old) = self.queues[queue].waker {
            self.queues[old].woken -= 1;
        }
        self.queues[queue].waker = waker;
        self.note_woken(queue);
        if let Some(waker) = waker {
            self.queues[waker].woken += 1;
        }
    }

    /// Makes `queue` the first of those that its waker wakes.
    pub(super) fn note_woken(&mut self, queue: usize) {
        self.injection.turns += 1;
        self.queues[queue].woken_turn = self.injection.turns;
    }

    /// Forgets `queue` as a waker and as one that is woken.
    pub(super) fn forget_waker(&mut self, queue: usize) {
        self.set_waker(queue, None);
        if self.last_completed == Some(queue) {
            self.last_completed = None;
        }
        for of in &mut self.queues {
            of.waker = of.waker.filter(|waker| *waker != queue);
            of.waker_to_be = of.waker_to_be.filter(|waker| *waker != queue);
        }
        self.queues[queue].woken = 0;
    }

    /// Returns the queue whose request is served while `queue`, which is in service, has none.
    pub(super) fn choose_injected(&mut self, queue: usize) -> Option<usize> {
        let of = &self.queues[queue];
        let of_process = of.process.and_then(|process| self.processes.of(process).last_async);
        if let Some(other) = of_process
            && self.next_is_of(other, of.process)
            && self.may_go(other)
        {
            return Some(other);
        }
        if let Some(waker) = of.waker.filter(|waker| self.may_go(*waker)) {
            return Some(waker);
        }
        if of.woken > 0
            && let Some(woken) = self.first_woken(queue).filter(|woken| self.may_go(*woken))
        {
            return Some(woken);
        }
        let is_raised = self.scheduler.of(queue).raise > 1;
        let is_unhurt =
            !is_raised || self.scheduler.raised > 1 || !self.queues[queue].is(Marks::QUICK);
        if self.idling_boosts(queue) || !is_unhurt {
            return None;
        }
        self.choose_any_injected(queue)
    }

    /// Whether the next request of `queue` is one of `process`.
    fn next_is_of(&self, queue: usize, process: Option<usize>) -> bool {
        let next = self.queues[queue].next;
        let owner = next.map(|next| self.held[next.index()].process as usize);
        owner.is_some() && owner == process
    }

    /// Returns the queue that was last found to be woken by `queue`.
    fn first_woken(&self, queue: usize) -> Option<usize> {
        let queues = self.queues.iter().enumerate();
        let woken = queues.filter(|(_, woken)| woken.waker == Some(queue));
        woken.max_by_key(|(_, woken)| woken.woken_turn).map(|(at, _)| at)
    }

    /// Whether `queue` is busy with a request that fits into its budget.
    fn may_go(&self, queue: usize) -> bool {
        self.scheduler.of(queue).is_busy
            && self.queues[queue].next.is_some()
            && self.next_fits(queue)
    }

    /// Returns any active queue whose request may be injected, the newest first.
    fn choose_any_injected(&mut self, queue: usize) -> Option<usize> {
        // Linux means to inject one request as well if the device has waited for `slice_idle`, but
        // adds nanoseconds to ticks there: 8 ms become 9 hours at 250 ticks in a second.
        if self.in_driver >= self.queues[queue].inject_limit {
            return None;
        }
        let takes_all = self.scheduler.of(queue).raise == 1 || !self.queues[queue].is(Marks::QUICK);
        let mut active = self.scheduler.active_queues();
        let found = active.find(|other| {
            let may = takes_all || self.scheduler.of(*other).raise > 1;
            may && self.next_fits_in(&self.queues[*other], *other)
        })?;
        self.injection.is_injected = true;
        Some(found)
    }

    /// Whether the next request of `queue` fits into its budget and does not keep the device busy
    /// beside another one.
    fn next_fits_in(&self, of: &Queue, queue: usize) -> bool {
        let Some(next) = of.next else { return false };
        let is_large = !self.rotational && Self::is_large(self.held[next.index()].sectors);
        self.next_fits(queue) && !(is_large && self.in_driver >= 1)
    }
}
