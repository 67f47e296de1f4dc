//! Recovery from a failed task: the engine and the card forget all tasks, and each task is tried
//! again or ends. A task that takes longer than [`TASK_LIMIT`], or a direct command that takes
//! longer than its limit, has failed.
//!
//! 1. The engine halts ([`HALT_LIMIT`]). If it does not, the bus is taken from it.
//! 2. CMD13 asks for the card's status, CMD12 stops a transfer that the card is at, and CMD13 is
//!    repeated until the card is ready.
//! 3. CMD48, or CMD43 of SD, makes the card forget all tasks, and CMD13 is repeated until the card
//!    is ready.
//! 4. The engine halts once more ([`LAST_HALT_LIMIT`]) and forgets all tasks ([`CLEAR_LIMIT`]). If
//!    it does not do both in time, it is disabled and enabled again.
//! 5. Each task is tried again, or ends.
//!
//! A card that does not obey in steps 2 and 3 is reset instead of all that follows. Tasks that are
//! not marked as failed are tried again, and that does not count as one of their retries. For the
//! marked ones the rules of [`recovery`](crate::block::recovery) hold; this recovery's reset is the
//! one before their last try.
//!
//! # Rules
//!
//! - A failure marks the tasks that it names; if it names none that the engine
//!   has, it marks the oldest. So each recovery brings some task nearer to its end.
//! - **[suspect-tasks-redone]** A task that is done while the engine is recovered is only noted,
//!   and ends with the others. It is tried again if the card then reports a failure, or may have
//!   reported one in a response that got lost: the failure may be this task's. Once a response to a
//!   command of the engine's own has reported a failure of earlier work, or got lost, no task is
//!   noted any more.

use super::task::task_of;
use crate::block::claim::Phase;
use crate::block::mmc::Mmc;
use crate::block::slot::Stage;
use crate::block::tasks::change::{Aim, Change, Recovery, Step};
use crate::block::tasks::direct_command::DirectEnd;
use crate::block::tasks::mark::Mark;
use crate::block::tasks::state::{Cqe, State};
use crate::block::verdict::Verdict;
use crate::command::Opcode;
use crate::command::status::Status as CardStatus;
use crate::controller::{HostController, HostError, Part, SlotId};
use crate::engine::{DIRECT, EngineEvent, TaskSet};
use crate::exchange::{Cause, Failure};
use blockyard::time::{Duration, Instant, earlier};

/// The time limit for the engine to halt after a task failed. As in Linux, like the limits below.
pub const HALT_LIMIT: Duration = Duration::from_ms(5);
/// The time limit for the engine to halt before it is cleared.
pub const LAST_HALT_LIMIT: Duration = Duration::from_ms(20);
/// The time limit for the engine to forget its tasks.
pub const CLEAR_LIMIT: Duration = Duration::from_ms(20);
/// The time limit of a task.
pub const TASK_LIMIT: Duration = Duration::from_secs(60);

/// CMD46, during which no data of another task passes.
const EXECUTE_READ: u8 = Opcode::ExecuteRead.index();
/// CMD47, during which no data of another task passes.
const EXECUTE_WRITE: u8 = Opcode::ExecuteWrite.index();

impl<H: HostController> Mmc<H> {
    /// Acts on a failure of `tasks`, which may be empty. Returns `false` if no engine is on that
    /// could have failed.
    pub(super) fn tasks_failed(
        &mut self,
        state: State,
        tasks: TaskSet,
        failure: Failure,
        now: Instant,
    ) -> bool {
        let names_some = self.cqe.as_ref().is_some_and(|cqe| {
            cqe.tasks.iter().any(|slot| {
                tasks.contains(task_of(slot)) && self.slots[slot.index()].mark == Mark::None
            })
        });
        let names_direct = tasks.contains(DIRECT) && self.has_direct();
        let oldest = self.cqe.as_ref().and_then(|cqe| cqe.tasks.first());
        let tasks = match oldest {
            Some(oldest) if matches!(state, State::On) && !names_some && !names_direct => {
                TaskSet::of(task_of(oldest)) // so some task comes nearer to its end
            }
            _ => tasks,
        };
        self.recovers_from(state, tasks, failure, now)
    }

    /// Begins a recovery, unless one is under way, and marks `tasks` as failed. Returns the same as
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
            self.retune_needed = self.controller.is_tuned(); // data or a response came damaged
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
            self.unconfirmed_write_in_doubt();
            self.distrust_completions();
        }
        true
    }

    /// Marks the task in `slot` as failed, if it is a task and nothing is known of it.
    fn mark(&mut self, slot: SlotId, failure: Failure) {
        let Some((_, of)) = self.open_task(task_of(slot)) else { return };
        of.mark = Mark::Failed(failure);
        self.counts.failures += 1;
    }

    /// Begins a recovery.
    fn recover_engine(&mut self, now: Instant) {
        debug_assert!(
            self.cqe.as_ref().is_some_and(Cqe::is_on),
            "only an engine that is on recovers"
        );
        let change = Change::begins_with(Step::Halt, Phase::Due(now), now);
        let aim = Aim::Recovery(Recovery::default());
        self.set_engine_state(State::Changing(Change { aim, ..change }));
    }

    /// Acts on the `status` with which the card responded to the engine's `command`. Returns
    /// `false` if no engine is on.
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
        // [late-error-is-the-writes]: the status is not about the command that it answers.
        let suspects = match command {
            EXECUTE_READ | EXECUTE_WRITE => TaskSet::NONE,
            _ => self.begun_write(tasks),
        };
        if suspects == TaskSet::NONE && !self.has_unconfirmed_write() {
            return self.tasks_failed(state, tasks, failure, now);
        }
        if !self.recovers_from(state, suspects, failure, now) {
            return false;
        }
        if suspects == TaskSet::NONE {
            self.unconfirmed_write_failed();
        } else {
            self.unconfirmed_write_in_doubt();
        }
        self.distrust_completions();
        true
    }

    /// Believes no task that is, or will be, reported as done during this recovery
    /// ([suspect-tasks-redone]).
    fn distrust_completions(&mut self) {
        self.distrust_tasks();
        if let Some(recovery) = self.recovery() {
            recovery.distrusts = true;
        }
    }

    /// Returns the oldest write that the engine may have begun and that is none of `others`.
    pub(super) fn begun_write(&self, others: TaskSet) -> TaskSet {
        let Some(cqe) = &self.cqe else { return TaskSet::NONE };
        cqe.tasks
            .iter()
            .find(|slot| {
                let of = &self.slots[slot.index()];
                of.is_write() && !others.contains(task_of(*slot))
            })
            .map_or(TaskSet::NONE, |slot| TaskSet::of(task_of(slot)))
    }

    /// Begins a step that the engine itself performs.
    pub(super) fn command_engine(&mut self, now: Instant) {
        let step = self.change().step;
        let limit = match step {
            Step::Halt => HALT_LIMIT,
            Step::HaltAgain => LAST_HALT_LIMIT,
            _ => CLEAR_LIMIT,
        };
        self.change().phase = Phase::AwaitsEngine(now + limit);
        debug_assert!(self.is_recovering(), "{step:?} outside of a recovery");
        match step {
            Step::Halt | Step::HaltAgain => self.engine().halt(now),
            _ => self.engine().clear(now),
        }
    }

    /// Acts on an `event` that ends a step of the engine. Returns `false` if the engine had no such
    /// step.
    pub(super) fn engine_answered(
        &mut self,
        change: &Change,
        event: EngineEvent,
        now: Instant,
    ) -> bool {
        let Phase::AwaitsEngine(_) = change.phase else { return false };
        match (change.step, event) {
            (Step::Halt, EngineEvent::Halted) => {
                self.change().once_ready(Some(Step::Discard), now);
            }
            (Step::HaltAgain, EngineEvent::Halted) => self.change().next(Step::Clear, now),
            (Step::ClearUnhalted, EngineEvent::Cleared) => {
                self.change().next(Step::Restart, now);
            }
            (Step::Clear, EngineEvent::Cleared) => self.engine_cleared(now),
            _ => return false,
        }
        true
    }

    /// Acts on a step that the engine has not performed in time.
    pub(super) fn engine_timed_out(&mut self, now: Instant) {
        match self.change().step {
            Step::Halt => {
                self.controller.abort(now);
                self.change().once_ready(Some(Step::Discard), now);
            }
            Step::HaltAgain => self.change().next(Step::ClearUnhalted, now),
            _ => self.change().next(Step::Restart, now),
        }
    }

    /// Disables and enables the engine, which then has no task.
    pub(super) fn restart_engine(&mut self, now: Instant) {
        self.engine().disable(now);
        self.engine().enable(now);
        self.engine_cleared(now);
    }

    /// Goes on after engine and card have forgotten all tasks.
    fn engine_cleared(&mut self, now: Instant) {
        debug_assert!(self.is_recovering(), "an engine is cleared outside of a recovery");
        if self.decide_tasks() {
            self.change().next(Step::Reset, now); // before the last try
        } else {
            self.set_engine_state(State::On);
        }
    }

    /// Decides for each task whether it is tried again or ends. Returns whether a reset comes
    /// before any is tried again.
    pub(super) fn decide_tasks(&mut self) -> bool {
        debug_assert!(self.bus.is_none(), "[one-claim-on-bus]");
        self.end_direct(DirectEnd::Cleared);
        let mut resets = false;
        // The last task first: each goes before all requests that wait.
        while let Some(slot) = self.cqe.as_ref().and_then(|cqe| cqe.tasks.iter().last()) {
            self.cqe.as_mut().expect("engine of a task").tasks.remove(slot);
            let verdict = match self.slots[slot.index()].mark {
                Mark::Done => {
                    self.task_succeeded(slot); // [suspect-tasks-redone]
                    continue;
                }
                Mark::None => Verdict::Again,
                Mark::Failed(failure) => self.slots[slot.index()].verdict(failure),
            };
            if let Verdict::Ends(status) = verdict {
                self.retire(slot, status, self.ending_context());
            } else {
                resets |= verdict == Verdict::AgainAfterReset;
                self.slots[slot.index()].stage = Stage::Ready;
                self.ready.put_back(slot);
            }
        }
        // The card has responded since the last task was noted as done, or that task was not
        // believed ([suspect-tasks-redone]).
        self.confirm_write();
        resets
    }

    /// Forgets which tasks were done: the card has reported a failure, and not of which task
    /// ([suspect-tasks-redone]).
    pub(super) fn distrust_tasks(&mut self) {
        for of in self.slots.iter_mut().filter(|of| of.mark == Mark::Done) {
            of.mark = Mark::None;
        }
    }

    /// Gives up tasks and a direct command that have taken too long.
    pub(super) fn check_task_limits(&mut self, now: Instant) {
        let Some(cqe) = &self.cqe else { return };
        if self.task_limit(cqe).is_none_or(|limit| now < limit) {
            return;
        }
        let late =
            cqe.tasks.iter().take_while(|slot| self.slots[slot.index()].since + TASK_LIMIT <= now);
        let late = late.fold(TaskSet::NONE, |tasks, slot| tasks.with(task_of(slot)));
        let is_direct_late = cqe.direct.is_late(now);
        let is_flush_late = is_direct_late && self.flushes_directly();
        let late = if is_direct_late { late.with(DIRECT) } else { late };
        let failure = Failure { part: Part::Data, cause: Cause::Host(HostError::Timeout) };
        if is_direct_late {
            // The command was the first after the write, and nobody has read the response.
            self.unconfirmed_write_in_doubt();
        }
        self.tasks_failed(State::On, late, failure, now);
        if let Some(recovery) = self.recovery() {
            recovery.overdue = is_flush_late;
        }
    }

    /// Returns the instant at which the first task, or the direct command, has taken too long.
    pub(super) fn task_limit(&self, cqe: &Cqe) -> Option<Instant> {
        let oldest = cqe.tasks.first().map(|slot| self.slots[slot.index()].since + TASK_LIMIT);
        earlier(oldest, cqe.direct.limit())
    }
}
