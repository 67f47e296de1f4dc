//! The seam to a command queue engine: tasks go in, their ends come out, in any order.
//!
//! A controller that has an engine (as CQHCI describes one) gives it out as a [`QueueEngine`]. It
//! takes tasks by number, tells the card of each (CMD44, CMD45), asks which are ready (CMD13) and has
//! those transferred (CMD46, CMD47), all on its own. How it goes is told as [`EngineEvent`]s.
//!
//! # Rules
//!
//! - **N1.** An engine is enabled while the card's queue is on and nothing is on the bus. From then on
//!   the bus is its own, and no transaction is started, until it is halted or disabled.
//! - **N2.** A task's number is that of its slot, whose memory is prepared (B4). It is the engine's
//!   until it is reported done, or the engine is cleared, disabled or reset, or the card is gone:
//!   until then no other task has the number, and after that nothing is reported of it and its
//!   memory is left alone. A direct command has number 31. Of two things that happened, the first is
//!   reported first.
//! - **N3.** What failed is the engine's still. After a failure it may go on with other tasks or not,
//!   and it takes no new ones before it has been cleared.
//! - **N4.** An engine that is told to halt ends the transfer that runs, sends nothing more, and says
//!   that it has halted, also where it had already. If it does not in time,
//!   [`abort`](super::controller::HostController::abort) takes the bus from it. Both leave the bus to
//!   transactions, and what has happened before and was not told is, before anything that happens later.
//! - **N5.** An engine is cleared when it has halted, or ought to have. It then goes on, with the bus
//!   and without a task.
//! - **N6.** A [reset](super::controller::HostController::reset) leaves the engine disabled, and the
//!   card's queue off.

pub use super::command::queue::DIRECT;
use super::command::queue::{TaskId, TaskParameters};
use super::command::status::Status;
use super::command::{Command, Response};
use super::request::{HostError, Part};
use blockyard::time::Instant;

/// A task for the engine. Its memory is that of the slot that has its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// What CMD44 tells of it.
    pub parameters: TaskParameters,
    /// What CMD45 tells: where it begins.
    pub address: u32,
    /// Blocks of the slot's memory that come before.
    pub skip: u32,
}

/// Tasks by number: bit 0 is task 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskSet(pub u32);

impl TaskSet {
    /// No task.
    pub const NONE: Self = Self(0);

    /// `task` alone.
    #[must_use]
    pub const fn of(task: TaskId) -> Self {
        Self(1 << task.number())
    }

    /// Whether `task` is one of them.
    #[must_use]
    pub const fn contains(self, task: TaskId) -> bool {
        self.0 & 1 << task.number() != 0
    }
}

/// What an engine tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineEvent {
    /// A task is done, and well.
    TaskDone(TaskId),
    /// The direct command is over, busy included.
    DirectDone(Response),
    /// Something failed.
    Failed {
        /// Those that it is known of; maybe none.
        tasks: TaskSet,
        /// At a command, or at [`Part::Data`].
        part: Part,
        /// How.
        error: HostError,
    },
    /// The card's response to a command of the engine's has bits that are to be seen: errors, or
    /// [`EXCEPTION_EVENT`](Status::EXCEPTION_EVENT) alone, which is no failure.
    Responded {
        /// The number of the command, 0 to 63.
        command: u8,
        /// Those that it is known to be about; maybe none.
        tasks: TaskSet,
        /// The response.
        status: Status,
    },
    /// It has halted (N4).
    Halted,
    /// It has no task any more, and goes on (N5).
    Cleared,
}

/// A command queue engine.
pub trait QueueEngine {
    /// Takes the bus and begins, without a task (N1).
    fn enable(&mut self, now: Instant);

    /// Stops at once, whatever it does, and forgets all tasks. The bus is free.
    fn disable(&mut self, now: Instant);

    /// Takes `task` (N2).
    fn queue(&mut self, task: &Task, now: Instant);

    /// Takes `command`, which has no data. It is sent when the tasks taken before have ended, and those
    /// taken later wait for it: cards take hardly a command while they have tasks. Only of an engine
    /// that [can](super::host::HostCapabilities::queue_engine_direct), one at a time.
    fn direct(&mut self, command: &Command, now: Instant) {
        let _ = (command, now);
    }

    /// Halts (N4).
    fn halt(&mut self, now: Instant);

    /// Forgets all tasks, and the direct command (N5).
    fn clear(&mut self, now: Instant);
}
