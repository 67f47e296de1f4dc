//! The check of all invariants that hold between two calls.

use super::mmc::Mmc;
use super::operation::Operation;
use super::slot::{Kind, Slot, Stage};
use crate::controller::{HostController, SlotId};
use alloc::vec::Vec;

impl<H: HostController> Mmc<H> {
    /// Checks that each slot is where its stage says and nowhere else, that one claim is on the
    /// bus, and that an exclusive operation has the card to itself. Takes time and memory in
    /// proportion to the slots: for tests and debugging.
    ///
    /// # Panics
    ///
    /// Panics if an invariant does not hold. That is a bug of this crate.
    pub fn self_check(&self) {
        let leader = self.bus.iter().map(|bus| bus.slot);
        let on_bus: Vec<_> = leader.chain(self.pack.iter().skip(1).copied()).collect();
        assert_eq!(
            sorted(&mut on_bus.into_iter()),
            self.slots_at(Stage::OnBus),
            "[one-claim-on-bus]"
        );
        assert!(
            self.pack.is_empty() || self.bus.is_some(),
            "[one-claim-on-bus]: a pack without claim"
        );
        let lists = [
            (&self.fresh, Stage::Fresh),
            (&self.ended, Stage::Ended),
            (&self.posted, Stage::Posted),
        ];
        for (list, stage) in lists {
            assert_eq!(
                sorted(&mut list.iter()),
                self.slots_at(stage),
                "[one-act-per-request]: {stage:?}"
            );
        }
        let ready = self.slots_at(Stage::Ready).len();
        assert_eq!(self.ready.count(|_| true), ready, "[one-act-per-request]: ready");
        assert_eq!(self.ready.is_empty(), ready == 0, "[one-act-per-request]: ready");
        let tasks = self.cqe.iter().flat_map(|cqe| cqe.tasks.iter());
        assert_eq!(
            sorted(&mut { tasks }),
            self.slots_at(Stage::Queued),
            "[one-act-per-request]: tasks"
        );
        let in_use = self.slots.len() - self.slots_at(Stage::Free).len();
        assert_eq!(usize::from(self.slots_in_use), in_use, "slots in use");
        self.check_exclusive();
        for slot in self.slots.iter().filter(|slot| slot.is_in_use()) {
            assert!(slot.done <= slot.sectors, "{} of {} sectors done", slot.done, slot.sectors);
            let is_posted = matches!(slot.stage, Stage::Posted | Stage::Completing);
            assert!(!is_posted || !slot.memory.is_prepared(), "[memory-prepared-once]");
        }
    }

    fn slots_at(&self, stage: Stage) -> Vec<SlotId> {
        (0..=self.plan.slots)
            .map(SlotId)
            .filter(|slot| self.slots[slot.index()].stage == stage)
            .collect()
    }

    /// Checks [exclusive-waits-for-idle]. Requests are accepted while a transfer is closed for want
    /// of some.
    fn check_exclusive(&self) {
        let waits_for_idle = |slot: &&Slot| {
            slot.is_exclusive() && slot.kind != Kind::Operation(Operation::CloseTransfer)
        };
        let mut exclusive = self.slots.iter().filter(waits_for_idle);
        let has_bus = exclusive.any(|slot| slot.stage == Stage::OnBus);
        if has_bus {
            let others = self.slots.iter().filter(|slot| slot.stage.is_before_its_end());
            assert_eq!(others.count(), 1, "[exclusive-waits-for-idle]");
        }
        let unfinished = self.slots.iter().filter(waits_for_idle).filter(|slot| {
            matches!(slot.stage, Stage::Exclusive | Stage::OnBus | Stage::Starting | Stage::Direct)
        });
        assert_eq!(
            unfinished.count(),
            usize::from(self.exclusive.is_some()),
            "operations under way"
        );
    }
}

fn sorted(slots: &mut dyn Iterator<Item = SlotId>) -> Vec<SlotId> {
    let mut slots: Vec<_> = slots.collect();
    slots.sort_unstable();
    slots
}
