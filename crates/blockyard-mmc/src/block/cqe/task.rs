//! Requests as tasks of the engine: how the engine gets them, and how they end.

use crate::block::mmc::Mmc;
use crate::block::slot::{Kind, Slot, Stage};
use crate::block::tasks::mark::Mark;
use crate::block::tasks::state::Cqe;
use crate::block::unconfirmed::UnconfirmedWrite;
use crate::command::Direction;
use crate::command::queue::{TaskId, TaskParameters};
use crate::controller::{HostController, SlotId};
use crate::engine::Task;
use blockyard::status::Status;
use blockyard::time::Instant;

/// Returns the number of the task in `slot` ([task-number-is-slot]).
pub(super) const fn task_of(slot: SlotId) -> TaskId {
    TaskId::new(slot.0)
}

impl<H: HostController> Mmc<H> {
    /// Returns whether a request may be given to the engine: not while the engine is recovered
    /// ([no-intake-in-recovery]), nor while the bus is to be tuned.
    pub(in crate::block) fn may_queue(&self) -> bool {
        self.cqe.as_ref().is_some_and(Cqe::is_on) && !self.tunes_before_tasks()
    }

    /// Gives the request in `slot` to the engine, if the engine still takes tasks.
    pub(in crate::block) fn queue_task(&mut self, slot: SlotId, now: Instant) {
        debug_assert_eq!(self.slots[slot.index()].stage, Stage::Starting, "[one-act-per-request]");
        if self.card_gone {
            return self.retire(slot, Status::Gone, self.ending_context());
        }
        if !self.may_queue() {
            self.slots[slot.index()].stage = Stage::Ready;
            return self.ready.put_back(slot);
        }
        let cqe = self.cqe.as_mut().expect("engine that takes tasks");
        cqe.tasks.push(slot);
        cqe.must_queue_before_tuning = false;
        let of = &mut self.slots[slot.index()];
        (of.stage, of.since, of.mark) = (Stage::Queued, now, Mark::None);
        if of.kind == Kind::Write {
            self.cache.note_write(); // [reset-loss-fails-flush]
        }
        let task = self.task(slot);
        self.engine().queue(&task, now);
    }

    /// Returns the next task of the request in `slot`.
    fn task(&self, slot: SlotId) -> Task {
        let of = &self.slots[slot.index()];
        debug_assert!(
            of.left() > 0 && of.memory.is_prepared(),
            "[prepared-while-in-use]: {slot:?}"
        );
        let sector = of.sector + u64::from(of.done);
        let blocks = u16::try_from(of.next_blocks()).expect("blocks of an accepted request");
        let plain = TaskParameters::new(task_of(slot), of.direction(), blocks);
        Task {
            parameters: TaskParameters {
                reliable: of.kind == Kind::ReliableWrite,
                high_priority: of.real_time,
                ..plain
            },
            address: self
                .target
                .addressing
                .argument(sector)
                .expect("address of an accepted request"),
            skip: of.done,
        }
    }

    /// Returns the slot of `task`, if the engine has it and nothing is known of it.
    pub(super) fn open_task(&mut self, task: TaskId) -> Option<(SlotId, &mut Slot)> {
        let slot = SlotId(task.number());
        let of = self.slots.get_mut(slot.index())?;
        (of.stage == Stage::Queued && of.mark == Mark::None).then_some((slot, of))
    }

    /// Notes that the engine has done `task` well. Returns `false` if the engine did not have it,
    /// or it has failed.
    pub(super) fn task_done(&mut self, task: TaskId) -> bool {
        let recovers = self.is_recovering();
        let distrusts = self.recovery().is_some_and(|recovery| recovery.distrusts);
        let Some((slot, of)) = self.open_task(task) else { return false };
        if distrusts {
            // [suspect-tasks-redone]: the task is tried again.
        } else if recovers {
            of.mark = Mark::Done;
        } else {
            self.cqe.as_mut().expect("engine of a task").tasks.remove(slot);
            self.task_succeeded(slot);
        }
        true
    }

    /// Ends the request in `slot`, whose task is done and no longer the engine's; or makes the rest
    /// of the request ready.
    pub(super) fn task_succeeded(&mut self, slot: SlotId) {
        debug_assert_eq!(self.slots[slot.index()].stage, Stage::Queued, "{slot:?} holds no task");
        self.unconfirmed = match self.slots[slot.index()].direction() {
            Direction::Write => UnconfirmedWrite::Held(slot), // [late-error-is-the-writes]
            Direction::Read => UnconfirmedWrite::None,
        };
        if self.slots[slot.index()].note_transfer() {
            self.retire(slot, Status::Ok, self.ending_context());
        } else {
            self.slots[slot.index()].stage = Stage::Ready;
            self.ready.put_back(slot);
        }
    }
}
