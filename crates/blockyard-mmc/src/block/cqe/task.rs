//! Requests as tasks of the engine: how they are given to it, and how they end.

use super::Cqe;
use crate::block::Mmc;
use crate::block::slot::{Slot, Stage};
use crate::block::unasked::Unasked;
use crate::command::Direction;
use crate::command::queue::{TaskId, TaskParameters};
use crate::controller::{HostController, SlotId};
use crate::engine::Task;
use crate::exchange::Failure;
use blockyard::status::Status;
use blockyard::time::Instant;

/// What is known of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::block) enum Mark {
    /// Nothing.
    None,
    /// It was done while the engine was recovered (T3).
    Done,
    /// It is one of those that failed (T1).
    Failed(Failure),
}

/// The number of the task in `slot`.
pub(super) const fn task_of(slot: SlotId) -> TaskId {
    TaskId::new(slot.0)
}

impl<H: HostController> Mmc<H> {
    /// Whether a request may be given to the engine: not while that is recovered (P4), nor while the
    /// bus is to be tuned.
    pub(in crate::block) fn may_queue(&self) -> bool {
        self.cqe.as_ref().is_some_and(Cqe::is_on) && !self.tunes_before_tasks()
    }

    /// Gives the request in `slot` to the engine, unless that has come to be not possible.
    pub(in crate::block) fn queue_task(&mut self, slot: SlotId, now: Instant) {
        if self.gone {
            return self.retire(slot, Status::Gone, self.who_ends());
        }
        if !self.may_queue() {
            self.slots[slot.index()].stage = Stage::Ready;
            return self.ready.put_back(slot);
        }
        let cqe = self.cqe.as_mut().expect("it takes tasks");
        cqe.tasks.push(slot);
        cqe.owes_task = false;
        let of = &mut self.slots[slot.index()];
        (of.stage, of.since, of.mark) = (Stage::Queued, now, Mark::None);
        if of.direction == Direction::Write && !of.reliable {
            self.cache.written(); // O5
        }
        let task = self.task(slot);
        self.engine().queue(&task, now);
    }

    /// The next task of the request in `slot`.
    fn task(&self, slot: SlotId) -> Task {
        let of = &self.slots[slot.index()];
        let sector = of.sector + u64::from(of.done);
        let blocks = u16::try_from(of.blocks_next()).expect("looked at when it was taken");
        let plain = TaskParameters::new(task_of(slot), of.direction, blocks);
        Task {
            parameters: TaskParameters {
                reliable: of.reliable,
                high_priority: of.real_time,
                ..plain
            },
            address: self.target.addressing.argument(sector).expect("looked at when it was taken"),
            skip: of.done,
        }
    }

    /// The slot of `task`, which the engine has and of which nothing is known.
    pub(super) fn open_task(&mut self, task: TaskId) -> Option<(SlotId, &mut Slot)> {
        let slot = SlotId(task.number());
        let of = self.slots.get_mut(slot.index())?;
        (of.stage == Stage::Queued && of.mark == Mark::None).then_some((slot, of))
    }

    /// The engine is done with `task`. `false`: it did not have it, or not well.
    pub(super) fn task_done(&mut self, task: TaskId) -> bool {
        let recovers = self.is_recovering();
        let distrusts = self.recovery().is_some_and(|recovery| recovery.distrusts);
        let Some((slot, of)) = self.open_task(task) else { return false };
        if distrusts {
            // It is tried again (T3).
        } else if recovers {
            of.mark = Mark::Done;
        } else {
            self.cqe.as_mut().expect("it had the task").tasks.remove(slot);
            self.task_went_well(slot);
        }
        true
    }

    /// The task in `slot`, which the engine has no more, is done: so is its request, or the rest of it
    /// comes next.
    pub(super) fn task_went_well(&mut self, slot: SlotId) {
        self.unasked = match self.slots[slot.index()].direction {
            Direction::Write => Unasked::Held(slot), // A1
            Direction::Read => Unasked::None,
        };
        if self.slots[slot.index()].went_well() {
            self.retire(slot, Status::Ok, self.who_ends());
        } else {
            self.slots[slot.index()].stage = Stage::Ready;
            self.ready.put_back(slot);
        }
    }
}
