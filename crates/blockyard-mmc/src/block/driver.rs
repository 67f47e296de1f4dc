//! The card as a block device: how requests come in, and their ends go out.

use super::claim::Claim;
use super::mmc::Mmc;
use super::power::Power;
use super::slot::{Slot, Stage};
use crate::controller::HostController;
use crate::host::Transfer;
use blockyard::driver::{Accept, Busy, Device, Driver, Finished, Issue};
use blockyard::status::Status;
use blockyard::time::Instant;
use blockyard::unit::{Budget, HctxId, QueueId};

impl<H: HostController> Driver for Mmc<H> {
    blockyard::leaf_calls!(prepare, unprepare, commit, timed_out, finish);

    /// Grants as many budgets as the host [admits](Mmc::admits) requests. Other requests stay in
    /// the elevator.
    fn take_budget(&mut self, _queue: QueueId) -> Option<Budget> {
        if self.budgets_taken >= self.admits() || self.exclusive.is_some() {
            return None; // [exclusive-waits-for-idle]
        }
        self.budgets_taken += 1;
        Some(Budget(0))
    }

    fn return_budget(&mut self, _queue: QueueId, _budget: Budget) {
        debug_assert!(self.budgets_taken > 0, "a budget comes back that was not taken");
        self.budgets_taken -= 1;
    }

    /// # Panics
    ///
    /// Panics if the request comes from another hardware queue than the first, or if its tag has no
    /// slot.
    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        assert_eq!(
            issue.hctx,
            HctxId(0),
            "a card has one hardware queue: the number of the request's queue must be 0"
        );
        self.tick(issue.now);
        if self.card_gone {
            return Accept::Failed(Status::Gone);
        }
        let Some(mut slot) = Slot::of(issue, &self.target) else {
            return Accept::Failed(Status::NotSupported);
        };
        if self.power == Power::Off {
            return Accept::Busy(Busy::Resource);
        }
        let held = self.slots_in_use - u8::from(self.closes_stale());
        if self.is_recovering() || self.exclusive.is_some() || held >= self.admits() {
            // [no-intake-in-recovery], [exclusive-waits-for-idle]
            let only_own =
                self.slots_in_use == 1 && self.slots[self.internal_slot().index()].is_in_use();
            return Accept::Busy(if only_own { Busy::Resource } else { Busy::Device });
        }
        let at = self.place(issue.tag.index());
        debug_assert!(self.bus.is_none() || !self.is_recovering(), "[no-intake-in-recovery]");
        debug_assert!(!self.slots[at.index()].is_in_use(), "{at:?} holds another request");
        self.slots_in_use += 1;
        if slot.stage == Stage::Posted {
            self.posted.push(at);
        } else if slot.stage == Stage::Exclusive {
            self.await_idle(at, &mut slot, issue.request().times.queued);
        } else if self.policy.transfer == Transfer::Pio {
            self.controller.accept(at, issue);
            slot.stage = Stage::Ready;
            self.ready.push(at);
        } else {
            self.controller.accept(at, issue);
            self.fresh.push(at);
        }
        self.slots[at.index()] = slot;
        debug_assert!(self.slots_in_use <= self.plan.slots + 1, "{} slots", self.slots_in_use);
        Accept::Queued
    }
}

impl<H: HostController> Device for Mmc<H> {
    fn next_finished(&mut self, now: Instant) -> Option<Finished> {
        self.tick(now);
        self.finished.pop_front()
    }

    /// Returns the instant of the next check of a busy card, or of the next time limit, which an
    /// open transfer has, too. The controller reports everything else.
    fn poll_at(&self) -> Option<Instant> {
        let of_open = self.open.as_ref().map(|open| open.until);
        let of_claim = self.bus.as_ref().map_or(of_open, Claim::wakes_at);
        let on_bus = later_than(self.now, of_claim);
        if self.power == Power::On && self.cqe.is_none() {
            return on_bus; // the usual case
        }
        let of_power = later_than(self.now, self.power.wakes_at());
        let of_engine = later_than(self.now, self.engine_wakes_at());
        [on_bus, of_power, of_engine].into_iter().flatten().min()
    }
}

/// Returns `at` if it is later than `now`. `Instant::MAX` means never.
fn later_than(now: Instant, at: Option<Instant>) -> Option<Instant> {
    at.filter(|&at| at > now && at < Instant::MAX)
}
