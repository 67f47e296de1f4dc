//! What follows when a task fails: the engine and the card forget all tasks, and each is tried again
//! or ends.
//!
//! 1. The engine is to halt ([`HALT_LIMIT`]); where it does not, the bus is taken from it.
//! 2. The card is asked how it is (CMD13), told to stop if it is at a transfer (CMD12), and asked
//!    until it is ready.
//! 3. It is told to forget all tasks (CMD48), and asked until it is ready.
//! 4. The engine is to halt once more ([`LAST_HALT_LIMIT`]) and to forget all tasks
//!    ([`CLEAR_LIMIT`]). If it does not do both in time, it is disabled and enabled again.
//! 5. Each task goes back to be tried again, or ends.
//!
//! A card that does not do as it should in steps 2 and 3 is reset instead of all that follows.
//!
//! - **T1.** A failure marks the tasks that it names; where it names none that the engine has, the
//!   oldest. So each recovery brings some task nearer to its end.
//! - **T2.** For those that are marked E1, E2 and E3 hold; the reset before the last try of one is
//!   the reset of this recovery. The others are tried again for nothing.
//! - **T3.** A task that is done while the engine is recovered is only noted, and ends with the
//!   others; unless the card then says that something failed, or may have said so in a response that got
//!   lost: it may have been this. Once a response to the engine has said so (A5), or got lost, none is noted any
//!   more.
//! - **T4.** A task that takes longer than [`TASK_LIMIT`], or a direct command that takes longer than
//!   it may, is a failure.

use super::direct::DirectEnd;
use super::step::{Aim, Change, Recovery, Step};
use super::task::{Mark, task_of};
use super::{Cqe, State};
use crate::block::Mmc;
use crate::block::errand::Phase;
use crate::block::recovery::Verdict;
use crate::block::slot::Stage;
use crate::command::status::Status as CardStatus;
use crate::command::{Direction, Opcode};
use crate::controller::{HostController, HostError, Part, SlotId};
use crate::engine::{DIRECT, EngineEvent, TaskSet};
use crate::exchange::{Cause, Failure};
use blockyard::time::{Duration, Instant, earlier};

/// How long the engine has to halt when a task has failed. As Linux, like the others.
pub const HALT_LIMIT: Duration = Duration::from_ms(5);
/// How long it has to halt before it is cleared.
pub const LAST_HALT_LIMIT: Duration = Duration::from_ms(20);
/// How long it has to forget its tasks.
pub const CLEAR_LIMIT: Duration = Duration::from_ms(20);
/// How long a task may take.
pub const TASK_LIMIT: Duration = Duration::from_secs(60);

/// These are sent while no data of another task passes.
const EXECUTE_READ: u8 = Opcode::ExecuteRead.index();
/// See [`EXECUTE_READ`].
const EXECUTE_WRITE: u8 = Opcode::ExecuteWrite.index();

impl<H: HostController> Mmc<H> {
    /// Something failed, and it may be known of which `tasks`. `false`: there is no engine that could
    /// have failed.
    pub(super) fn tasks_failed(
        &mut self,
        state: State,
        tasks: TaskSet,
        failure: Failure,
        now: Instant,
    ) -> bool {
        let names_some = (0..self.plan.slots).any(|number| {
            let task = task_of(SlotId(number));
            tasks.contains(task) && self.open_task(task).is_some()
        });
        let names_direct = tasks.contains(DIRECT) && self.has_direct();
        let oldest = self.cqe.as_ref().and_then(|cqe| cqe.tasks.first());
        let tasks = match oldest {
            Some(oldest) if matches!(state, State::On) && !names_some && !names_direct => {
                TaskSet::of(task_of(oldest)) // T1
            }
            _ => tasks,
        };
        self.recovers_from(state, tasks, failure, now)
    }

    /// The engine is recovered from now on, if it is not already; `tasks` have failed. As
    /// [`Self::tasks_failed`].
    fn recovers_from(
        &mut self,
        state: State,
        tasks: TaskSet,
        failure: Failure,
        now: Instant,
    ) -> bool {
        let is_new = match state {
            State::On => true,
            State::Changing(change) if change.recovers() => false,
            State::Changing(_) | State::Off => return false,
        };
        if failure.cause == Cause::Host(HostError::Damaged) {
            self.wants_retune = self.controller.is_tuned(); // E5
        }
        if tasks.contains(DIRECT) {
            self.end_direct(DirectEnd::Failed(failure));
        }
        for slot in (0..self.plan.slots).map(SlotId) {
            if tasks.contains(task_of(slot)) {
                self.mark(slot, failure);
            }
        }
        if is_new {
            self.recover_engine(now);
        }
        if failure.part == Part::Command && failure.hides_answer() {
            self.unasked_in_doubt();
            self.distrust_from_now_on();
        }
        true
    }

    /// Marks the task in `slot` as failed, unless it is none, or more is known of it already.
    fn mark(&mut self, slot: SlotId, failure: Failure) {
        let Some((_, of)) = self.open_task(task_of(slot)) else { return };
        of.mark = Mark::Failed(failure);
        self.counts.failures += 1;
    }

    fn recover_engine(&mut self, now: Instant) {
        let change = Change::begins_with(Step::Halt, Phase::Due(now), now);
        let aim = Aim::Recovery(Recovery::default());
        self.engine_is(State::Changing(Change { aim, ..change }));
    }

    /// The card responded to the engine's `command` with `status`.
    pub(super) fn card_responded(
        &mut self,
        state: State,
        command: u8,
        tasks: TaskSet,
        status: CardStatus,
        now: Instant,
    ) -> bool {
        let has_exception = status.has(CardStatus::EXCEPTION_EVENT);
        if has_exception {
            self.exception_at_engine();
        }
        if status.errors() == 0 {
            return has_exception;
        }
        let failure = Failure { part: Part::Command, cause: Cause::Card(status) };
        let is_of_command = status.errors() & !CardStatus::OF_WORK_BEFORE != 0;
        if is_of_command {
            return self.tasks_failed(state, tasks, failure, now);
        }
        // A5: it is not about the command that it responds to.
        let suspects = match command {
            EXECUTE_READ | EXECUTE_WRITE => TaskSet::NONE,
            _ => self.begun_write(tasks),
        };
        if suspects == TaskSet::NONE && !self.has_unasked() {
            return self.tasks_failed(state, tasks, failure, now);
        }
        if !self.recovers_from(state, suspects, failure, now) {
            return false;
        }
        if suspects == TaskSet::NONE {
            self.unasked_failed();
        } else {
            self.unasked_in_doubt();
        }
        self.distrust_from_now_on();
        true
    }

    /// The card has said that something failed, or may have: what is noted as done may be meant (T3).
    fn distrust_from_now_on(&mut self) {
        self.distrust_tasks();
        if let Some(recovery) = self.recovery() {
            recovery.distrusts = true;
        }
    }

    /// The oldest write that the engine may be at, which is none of `others`.
    pub(super) fn begun_write(&self, others: TaskSet) -> TaskSet {
        let Some(cqe) = &self.cqe else { return TaskSet::NONE };
        let is_write = |slot: &SlotId| {
            let of = &self.slots[slot.index()];
            of.direction == Direction::Write && !others.contains(task_of(*slot))
        };
        cqe.tasks.iter().find(is_write).map_or(TaskSet::NONE, |slot| TaskSet::of(task_of(slot)))
    }

    /// Begins the step that the engine itself is to do.
    pub(super) fn command_engine(&mut self, now: Instant) {
        let step = self.change().step;
        let limit = match step {
            Step::Halt => HALT_LIMIT,
            Step::HaltAgain => LAST_HALT_LIMIT,
            _ => CLEAR_LIMIT,
        };
        self.change().phase = Phase::Told(now + limit);
        match step {
            Step::Halt | Step::HaltAgain => self.engine().halt(now),
            _ => self.engine().clear(now),
        }
    }

    /// The engine says `event`. `false`: it was not told to.
    pub(super) fn engine_obeyed(
        &mut self,
        change: &Change,
        event: EngineEvent,
        now: Instant,
    ) -> bool {
        let Phase::Told(_) = change.phase else { return false };
        match (change.step, event) {
            (Step::Halt, EngineEvent::Halted) => {
                self.change().once_ready(Some(Step::Discard), now);
            }
            (Step::HaltAgain, EngineEvent::Halted) => self.change().next(Step::Clear, now),
            (Step::Clear, EngineEvent::Cleared) if self.is_stuck() => {
                self.change().next(Step::Restart, now);
            }
            (Step::Clear, EngineEvent::Cleared) => self.engine_is_clear(now),
            _ => return false,
        }
        true
    }

    fn is_stuck(&mut self) -> bool {
        self.recovery().is_some_and(|recovery| recovery.is_stuck)
    }

    /// The engine does not do what it was told to.
    pub(super) fn engine_is_deaf(&mut self, now: Instant) {
        match self.change().step {
            Step::Halt => {
                self.controller.abort(now);
                self.change().once_ready(Some(Step::Discard), now);
            }
            Step::HaltAgain => {
                if let Some(recovery) = self.recovery() {
                    recovery.is_stuck = true;
                }
                self.change().next(Step::Clear, now);
            }
            _ => self.change().next(Step::Restart, now),
        }
    }

    pub(super) fn restart_engine(&mut self, now: Instant) {
        self.engine().disable(now);
        self.engine().enable(now);
        self.engine_is_clear(now);
    }

    /// Neither engine nor card has a task any more.
    fn engine_is_clear(&mut self, now: Instant) {
        if self.decide_tasks() {
            self.change().next(Step::Reset, now); // T2
        } else {
            self.engine_is(State::On);
        }
    }

    /// What becomes of each task? Answers whether there is to be a reset before any is tried again.
    pub(super) fn decide_tasks(&mut self) -> bool {
        self.end_direct(DirectEnd::Cleared);
        let mut resets = false;
        // The last first, as each goes before all that wait.
        while let Some(slot) = self.cqe.as_ref().and_then(|cqe| cqe.tasks.iter().last()) {
            self.cqe.as_mut().expect("it had the task").tasks.remove(slot);
            let verdict = match self.slots[slot.index()].mark {
                Mark::Done => {
                    self.task_went_well(slot); // T3
                    continue;
                }
                Mark::None => Verdict::Again,
                Mark::Failed(failure) => self.slots[slot.index()].verdict(failure),
            };
            if let Verdict::Ends(status) = verdict {
                self.retire(slot, status, self.who_ends());
            } else {
                resets |= verdict == Verdict::AgainAfterReset;
                self.slots[slot.index()].stage = Stage::Ready;
                self.ready.put_back(slot);
            }
        }
        // Of what was noted as done the card has spoken since, or it was not believed (T3).
        self.nobody_unasked();
        resets
    }

    /// The card says that something failed, and not what (T3).
    pub(super) fn distrust_tasks(&mut self) {
        for of in self.slots.iter_mut().filter(|of| of.mark == Mark::Done) {
            of.mark = Mark::None;
        }
    }

    /// T4.
    pub(super) fn look_at_tasks(&mut self, now: Instant) {
        let Some(cqe) = &self.cqe else { return };
        if self.task_limit(cqe).is_none_or(|limit| now < limit) {
            return;
        }
        let is_late = |slot: &SlotId| self.slots[slot.index()].since + TASK_LIMIT <= now;
        let late = cqe.tasks.iter().take_while(is_late);
        let late = late.fold(0, |tasks, slot| tasks | TaskSet::of(task_of(slot)).0);
        let is_direct_late = cqe.direct.is_late(now);
        let is_flush_late = is_direct_late && self.flushes_directly();
        let direct = if is_direct_late { TaskSet::of(DIRECT).0 } else { 0 };
        let failure = Failure { part: Part::Data, cause: Cause::Host(HostError::Timeout) };
        if is_direct_late {
            self.unasked_in_doubt(); // it was the first command after it, and nobody has read the answer
        }
        self.tasks_failed(State::On, TaskSet(late | direct), failure, now);
        if let Some(recovery) = self.recovery() {
            recovery.overdue = is_flush_late;
        }
    }

    /// When the first task, or the direct command, has taken too long.
    pub(super) fn task_limit(&self, cqe: &Cqe) -> Option<Instant> {
        let oldest = cqe.tasks.first().map(|slot| self.slots[slot.index()].since + TASK_LIMIT);
        earlier(oldest, cqe.direct.limit())
    }
}
