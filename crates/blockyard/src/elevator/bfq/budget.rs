//! Budgets: how many sectors a queue may be served in a slot, and what it learns from the slot.
//!
//! A queue gets the device until its budget is used up, its time is over, or it has no more
//! requests. A queue that uses its budget up gets a larger one, up to what the device transfers in
//! the time of a slot; a queue whose process lets the device wait gets a smaller one. Queues that
//! are slow are charged for their time instead of their sectors, so that random I/O cannot take
//! more than its share of time.
//!
//! # Rules
//!
//! - **[budget-kept]** A queue in service is charged no more than its budget, except for time.

use super::entity::Raise;
use super::queue::Marks;
use super::{Bfq, MIN_THINK};
use crate::time::{Duration, Instant};

/// The sum of slots from which on the estimated budget is used. A slot adds 32, and the sum decays
/// by an eighth with each: the 11th slot reaches it.
const SETTLED: u32 = 194;
/// The largest budget until then, and at first; in sectors.
pub(super) const DEFAULT_MAX: u32 = 16 * 1024;
/// The factor by which asynchronous requests are charged, so that writes do not take the device
/// from reads.
const ASYNC_CHARGE: u32 = 3;
/// The time for which the largest budget is charged, in ms: that of a slot by default, whatever
/// [`BfqTunables::timeout_sync`](crate::policy::BfqTunables::timeout_sync) says (Linux's
/// `bfq_timeout`).
const FULL_SLOT_MS: u64 = 124;

/// Why a slot ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// The process let the device wait for too long.
    TooIdle,
    /// The time of the slot is over.
    Timeout,
    /// The budget is used up.
    Exhausted,
    /// The queue has no more requests.
    NoMoreRequests,
    /// Another queue must go.
    Preempted,
}

/// Slots by why they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    /// [`Expiry::TooIdle`].
    pub too_idle: u64,
    /// [`Expiry::Timeout`].
    pub timeout: u64,
    /// [`Expiry::Exhausted`].
    pub exhausted: u64,
    /// [`Expiry::NoMoreRequests`].
    pub no_more_requests: u64,
    /// [`Expiry::Preempted`].
    pub preempted: u64,
}

impl Slots {
    /// Returns the number of all slots.
    #[must_use]
    pub const fn all(&self) -> u64 {
        self.too_idle + self.timeout + self.exhausted + self.no_more_requests + self.preempted
    }

    pub(super) const fn add(&mut self, other: &Self) {
        self.too_idle += other.too_idle;
        self.timeout += other.timeout;
        self.exhausted += other.exhausted;
        self.no_more_requests += other.no_more_requests;
        self.preempted += other.preempted;
    }

    fn count(&mut self, why: Expiry) {
        let counter = match why {
            Expiry::TooIdle => &mut self.too_idle,
            Expiry::Timeout => &mut self.timeout,
            Expiry::Exhausted => &mut self.exhausted,
            Expiry::NoMoreRequests => &mut self.no_more_requests,
            Expiry::Preempted => &mut self.preempted,
        };
        *counter += 1;
    }
}

/// The largest budget, and the slots that led to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budgets {
    /// The largest budget of a queue, by the peak rate or by the tunable.
    pub(super) most: u32,
    /// The decaying count of slots.
    assigned: u32,
    /// When the current slot began.
    pub(super) slot_began: Instant,
}

impl Budgets {
    pub(super) fn new(most: u32) -> Self {
        Self { most, assigned: 0, slot_began: Instant::ZERO }
    }

    const fn is_settled(&self) -> bool {
        self.assigned >= SETTLED
    }

    /// Notes that a queue gets a slot.
    pub(super) const fn note_slot(&mut self) {
        self.assigned = (self.assigned * 7 + 256) / 8;
    }

    /// Returns the largest budget of a new queue.
    pub(super) const fn largest(&self) -> u32 {
        if self.is_settled() { self.most } else { DEFAULT_MAX }
    }

    /// Returns the smallest budget.
    pub(super) const fn smallest(&self) -> u32 {
        self.largest() / 32
    }
}

impl Bfq {
    /// Returns the sectors by which a request of `queue` is charged.
    pub(super) fn charge(&self, queue: usize, sectors: u32) -> u32 {
        let is_sync = self.queues[queue].is(Marks::SYNC);
        if is_sync || self.scheduler.of(queue).raise > 1 || self.is_asymmetric(queue) {
            sectors
        } else {
            sectors.saturating_mul(ASYNC_CHARGE)
        }
    }

    /// Returns the charge of the next request of `queue`; 0 if it has none.
    pub(super) fn charge_of_next(&self, queue: usize) -> u32 {
        let next = self.queues[queue].next;
        next.map_or(0, |next| self.charge(queue, self.held[next.index()].sectors))
    }

    /// Whether the next request of `queue` fits into what is left of its budget.
    pub(super) fn next_fits(&self, queue: usize) -> bool {
        i64::from(self.charge_of_next(queue)) <= self.scheduler.of(queue).left()
    }

    /// Gives `queue`, which is not in service and has another next request, a budget that the
    /// request fits into.
    pub(super) fn fit_budget(&mut self, queue: usize) {
        if self.queues[queue].next.is_none() || self.serving == Some(queue) {
            return;
        }
        let charge = self.charge_of_next(queue);
        let service = self.scheduler.of(queue).service;
        let budget = self.queues[queue].max_budget.max(charge).max(service);
        if self.scheduler.of(queue).budget != budget {
            self.scheduler.of_mut(queue).budget = budget;
            self.scheduler.activate(queue, false, false, self.tick());
        }
    }

    /// Gives `queue`, which becomes busy, a budget: the rest of its last one if it may keep it and
    /// its request has come in time. Returns whether it keeps the rest.
    pub(super) fn budget_on_return(&mut self, queue: usize, in_time: bool) -> bool {
        let max_budget = self.queues[queue].max_budget;
        let charge = self.charge_of_next(queue);
        let left = self.scheduler.of(queue).left();
        let entity = self.scheduler.of_mut(queue);
        entity.service = 0;
        if self.queues[queue].is(Marks::KEEPS_BUDGET) && in_time && left > 0 {
            entity.budget = u32::try_from(left).unwrap_or(u32::MAX).min(max_budget);
            return true;
        }
        entity.budget = max_budget.max(charge);
        self.queues[queue].marks.put(Marks::KEEPS_BUDGET, false);
        false
    }

    /// Begins a slot of `queue`.
    pub(super) fn begin_slot(&mut self, queue: usize) {
        debug_assert!(self.serving.is_none(), "a slot in a slot");
        self.queues[queue].marks.put(Marks::FIFO_SEEN, false);
        self.budgets.note_slot();
        self.prolong_soft_real_time(queue);
        self.budgets.slot_began = self.now;
        // A raised queue has its time by the factor of its weight, unless it is soft real-time.
        let factor = if self.queues[queue].raised_as == Raise::SoftRealTime {
            1
        } else {
            let entity = self.scheduler.of(queue);
            entity.weight / entity.own_weight
        };
        let time = self.tunables.timeout_sync.as_ns().saturating_mul(factor.into());
        self.queues[queue].timeout = Some(self.tick() + Duration::from_ns(time));
        self.in_service_end = 0;
    }

    /// Whether the time of the slot of `queue` is over.
    pub(super) fn is_out_of_time(&self, queue: usize) -> bool {
        self.queues[queue].timeout.is_none_or(|timeout| timeout <= self.tick())
    }

    /// Whether the slot of `queue` ends because its time is over. A queue that the device is held
    /// for may finish a budget of which less than a third is left.
    pub(super) fn may_time_out(&self, queue: usize) -> bool {
        let entity = self.scheduler.of(queue);
        let has_much = entity.left() >= i64::from(entity.budget / 3);
        (!self.queues[queue].is(Marks::WAITED_FOR) || has_much) && self.is_out_of_time(queue)
    }

    /// Judges whether `queue` used its slot slowly, and returns the time of the slot. `until`: its
    /// end.
    fn is_slow(&self, queue: usize, until: Instant) -> (bool, Duration) {
        let of = &self.queues[queue];
        if !of.is(Marks::SYNC) {
            return (false, Duration::ZERO);
        }
        let took = until.since(self.budgets.slot_began);
        // Too short a time says nothing: a usual one is charged.
        if took < Duration::from_ms(1) {
            let usual = if self.rotational { super::SLICE_IDLE } else { MIN_THINK };
            return (of.is_seeky(), usual);
        }
        let service = self.scheduler.of(queue).service;
        let is_slow = if took > Duration::from_ms(20) {
            service < self.budgets.most / 2
        } else {
            of.is_seeky()
        };
        (is_slow, took)
    }

    /// Charges `queue` for the time of its slot: 124 ms are worth the largest budget. With slots of
    /// 20 ms and a largest budget of 2848 sectors, a whole slot is charged 459.
    fn charge_time(&mut self, queue: usize, time: Duration) {
        let time_ms = (time.as_ns() / 1_000_000).min(FULL_SLOT_MS);
        let worth = u64::from(self.budgets.most) * time_ms / FULL_SLOT_MS;
        let worth = u32::try_from(worth).unwrap_or(u32::MAX);
        let entity = self.scheduler.of_mut(queue);
        let total = worth.max(entity.service);
        entity.budget = entity.budget.max(total);
        let more = total - entity.service;
        self.serve(queue, more);
    }

    /// Notes that `queue` was served as many sectors.
    pub(super) fn serve(&mut self, queue: usize, sectors: u32) {
        let is_raised = self.scheduler.of(queue).raise > 1;
        let tick = self.tick();
        let of = &mut self.queues[queue];
        if of.served == 0 {
            of.first_served = tick;
        }
        if is_raised {
            of.raised_service = of.raised_service.saturating_add(sectors);
        }
        of.served = of.served.saturating_add(sectors);
        self.scheduler.served(queue, sectors);
    }

    /// Gives `queue` its next budget, by why its slot ended.
    fn adjust_budget(&mut self, queue: usize, why: Expiry) {
        let least = self.budgets.smallest();
        let most = self.budgets.most;
        let is_raised = self.scheduler.of(queue).raise > 1;
        let service = self.scheduler.of(queue).service;
        let of = &self.queues[queue];
        let now = if is_raised { 2 * least } else { of.max_budget };
        let budget = if !of.is(Marks::SYNC) {
            most
        } else if is_raised {
            now
        } else {
            match why {
                Expiry::TooIdle if of.dispatched > 0 => now.saturating_mul(2).min(most),
                Expiry::TooIdle if now > 5 * least => now - 4 * least,
                Expiry::TooIdle => least,
                Expiry::Timeout => now.saturating_mul(2).min(most),
                Expiry::Exhausted => now.saturating_mul(4).min(most),
                Expiry::NoMoreRequests => service.max(least),
                Expiry::Preempted => return,
            }
        };
        let is_bounded = self.budgets.is_settled() && self.tunables.max_budget == 0;
        self.queues[queue].max_budget = if is_bounded { budget.min(most) } else { budget };
        if self.queues[queue].next.is_some() {
            let charge = self.charge_of_next(queue);
            self.scheduler.of_mut(queue).budget = self.queues[queue].max_budget.max(charge);
        }
    }

    /// Ends the slot of `queue`. `idled_since`: when the wait began that has ended the slot.
    pub(super) fn expire(&mut self, queue: usize, idled_since: Option<Instant>, why: Expiry) {
        debug_assert_eq!(self.serving, Some(queue), "its slot ends");
        let (is_slow, took) = self.is_slow(queue, idled_since.unwrap_or(self.now));
        let entity = self.scheduler.of(queue);
        let is_raised = entity.raise > 1;
        let has_much = entity.left() >= i64::from(entity.budget / 3);
        self.counts.budgets += u64::from(entity.budget);
        self.counts.charged += u64::from(entity.service);
        if !is_raised && (is_slow || (why == Expiry::Timeout && has_much)) {
            self.charge_time(queue, took);
        }
        self.note_soft_real_time_at_end(queue, is_raised);
        self.injection.stop();
        self.counts.slots.count(why);
        self.adjust_budget(queue, why);
        self.leave_service(queue, why);
        if !self.scheduler.of(queue).is_busy && why != Expiry::Timeout && why != Expiry::Exhausted {
            self.queues[queue].marks.put(Marks::KEEPS_BUDGET, true);
        } else {
            self.scheduler.of_mut(queue).service = 0;
        }
        self.scheduler.clear_service_above(queue);
    }

    /// Takes `queue` out of service: it goes to the idle ones if it has no requests, unless it was
    /// preempted although the device is to be held for it.
    pub(super) fn leave_service(&mut self, queue: usize, why: Expiry) {
        let of = &self.queues[queue];
        if of.is(Marks::SHARED) && of.is_seeky() {
            self.queues[queue].marks.put(Marks::SPLIT, true);
        }
        let stays = !self.queues[queue].is_empty()
            || (why == Expiry::Preempted && self.must_idle_for_guarantees(queue));
        if stays {
            self.scheduler.activate(queue, false, true, self.tick());
        } else {
            if self.queues[queue].dispatched == 0 {
                self.queues[queue].timeout = Some(self.tick());
            }
            self.leave_busy(queue, true);
        }
        self.queues[queue].marks.put(Marks::WAITED_FOR, false);
        self.stop_idling();
        self.serving = None;
        self.scheduler.leave_service(queue);
    }

    /// Makes `queue` not busy. `is_over`: its slot has ended.
    pub(super) fn leave_busy(&mut self, queue: usize, is_over: bool) {
        debug_assert!(self.queues[queue].is_empty(), "queue {queue} has requests");
        self.scheduler.set_busy(queue, false);
        self.scheduler.deactivate(queue, is_over, self.tick());
        if self.queues[queue].dispatched == 0 {
            self.leave_pending(queue);
        }
    }
}
