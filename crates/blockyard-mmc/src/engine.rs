//! The interface to a command queue engine: tasks go in, and their ends come out in any order.
//!
//! A controller that has an engine (as CQHCI describes one) offers it as a [`QueueEngine`]. The
//! engine takes tasks by number, describes each to the card (CMD44, CMD45), asks which are ready
//! (CMD13), and transfers their data (CMD46, CMD47), all on its own. It reports progress as
//! [`EngineEvent`]s.
//!
//! A task that failed is still the engine's. After a failure the engine may continue with other
//! tasks or not, and it takes no new tasks before it has been cleared. It is cleared when it has
//! halted, or ought to have. It then continues, with the bus and without a task. If two things
//! happen, the first is reported first. A [reset](super::controller::HostController::reset) leaves
//! the engine disabled and the card's queue off.
//!
//! # Rules
//!
//! - **[engine-owns-bus]** An engine is enabled while the card's queue is on and nothing is on the
//!   bus. From then on the bus is the engine's, and no MMC request is started, until the engine is
//!   halted or disabled.
//! - **[task-number-is-slot]** A task's number is that of its slot, whose memory is prepared
//!   ([prepared-while-in-use]). The task is the engine's until it is reported done; until the
//!   engine is cleared, disabled or reset; or until the card is gone. Until then no other task has
//!   the number; after that nothing is reported of the task and its memory is left alone. A direct
//!   command has number 31.
//! - **[halt-frees-bus]** [`halt`](QueueEngine::halt) lets the running transfer finish, and nothing
//!   is sent after it. The engine then reports that it has halted, even if it had halted before. If
//!   this report is late, [`abort`](super::controller::HostController::abort) takes the bus from
//!   the engine. Either way, the bus is free for MMC requests.

pub use super::command::queue::DIRECT;
use super::command::queue::{TaskId, TaskParameters};
use super::command::status::Status;
use super::command::{Command, Response};
use super::request::{HostError, Part};
use blockyard::time::Instant;

/// A task for the engine. Its memory is that of the slot that has its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// What CMD44 says of the task.
    pub parameters: TaskParameters,
    /// What CMD45 says: the address where the task begins.
    pub address: u32,
    /// The blocks of the slot's memory that come before this task's.
    pub skip: u32,
}

/// A set of tasks by number: bit 0 is task 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskSet(pub u32);

impl TaskSet {
    /// No task.
    pub const NONE: Self = Self(0);

    /// The set of `task` alone.
    #[must_use]
    pub const fn of(task: TaskId) -> Self {
        Self::NONE.with(task)
    }

    /// The set with `task` too.
    #[must_use]
    pub const fn with(self, task: TaskId) -> Self {
        Self(self.0 | 1 << task.number())
    }

    /// Returns whether `task` is in the set.
    #[must_use]
    pub const fn contains(self, task: TaskId) -> bool {
        self.0 & 1 << task.number() != 0
    }
}

/// An event that an engine reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineEvent {
    /// A task is done, without an error.
    TaskDone(TaskId),
    /// The direct command is over, busy included.
    DirectDone(Response),
    /// Something failed.
    Failed {
        /// The tasks that are known to have failed; the set may be empty.
        tasks: TaskSet,
        /// The part that failed: a command, or [`Part::Data`].
        part: Part,
        /// The error.
        error: HostError,
    },
    /// The card's response to a command of the engine's own has bits that matter: errors, or
    /// [`EXCEPTION_EVENT`](Status::EXCEPTION_EVENT) alone, which is no failure.
    Responded {
        /// The number of the command, 0 to 63.
        command: u8,
        /// The tasks that the response is known to be about; the set may be empty.
        tasks: TaskSet,
        /// The response.
        status: Status,
    },
    /// The engine has halted ([halt-frees-bus]).
    Halted,
    /// The engine has forgotten all tasks, and continues.
    Cleared,
}

/// A command queue engine.
pub trait QueueEngine {
    /// Takes the bus and begins, without a task ([engine-owns-bus]).
    fn enable(&mut self, now: Instant);

    /// Stops at once, whatever the engine does, and forgets all tasks. The bus is free then.
    fn disable(&mut self, now: Instant);

    /// Takes `task` ([task-number-is-slot]).
    fn queue(&mut self, task: &Task, now: Instant);

    /// Takes `command`, which has no data. The engine sends it when the tasks that it took before
    /// have ended, and tasks that it takes later wait: cards take hardly any command while they
    /// have tasks. Called only if the engine
    /// [can](super::host::HostCapabilities::queue_engine_direct), for one command at a time.
    fn direct(&mut self, command: &Command, now: Instant) {
        let _ = (command, now);
    }

    /// Halts ([halt-frees-bus]).
    fn halt(&mut self, now: Instant);

    /// Forgets all tasks, and the direct command.
    fn clear(&mut self, now: Instant);
}
