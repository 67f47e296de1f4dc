//! The state of a command queue engine in virtual time, over the card's queue. The controller drives it
//! ([`tasks`](super::tasks)) by the rules of [`blockyard_mmc::engine`].
//!
//! # Rules
//!
//! - **[one-task-moves-data]** Data passes for one task at a time (CMD46, CMD47), and for none while the
//!   card is busy. Ready tasks of high priority go first, then those that came first.
//! - **[failed-engine-starts-nothing]** After a failure the engine starts nothing until it is cleared.
//! - **[direct-command-after-tasks]** The engine sends a direct command when the tasks before it are done,
//!   and completes it when the card is no longer busy. Tasks that come meanwhile are queued at the card
//!   after that.
//!
//! The engine queues a task at the card (CMD44, CMD45) as soon as the command line is free, beside the data
//! of other tasks. When it knows of no ready task it asks the card (CMD13) at the instant at which one is
//! ready: real engines ask at a period that is short beside the time for which a task waits. Each completed
//! task interrupts at once; if that interrupt is lost, the next one reports the task too. The engine waits
//! for data as long as an SDHCI's counter can count, as it does not know the card's limits.

use blockyard::time::Instant;
use blockyard_mmc::command::Command;
use blockyard_mmc::command::queue::TaskId;
use blockyard_mmc::controller::MmcRequest;
use blockyard_mmc::engine::{DIRECT, EngineEvent, Task};
use std::collections::VecDeque;

/// The task whose data passes, or the direct command that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moving {
    pub(super) task: TaskId,
    pub(super) transaction: MmcRequest,
    pub(super) since: Instant,
    pub(super) until: Instant,
    /// How it ends.
    pub(super) end: EngineEvent,
}

/// Who has the bus of a controller with an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Power {
    /// The engine is disabled, and the host has the bus.
    #[default]
    Off,
    /// The engine has the bus.
    On,
    /// The engine has the bus, and halts as soon as no data passes.
    Halting,
    /// The engine is enabled, and the host has the bus.
    Halted,
}

/// The state of the engine.
#[derive(Debug, Default)]
pub(super) struct Engine {
    pub(super) power: Power,
    /// [failed-engine-starts-nothing]
    pub(super) failed: bool,
    /// Tasks in the order in which they came, without the one whose data passes.
    pub(super) tasks: Vec<Task>,
    pub(super) moving: Option<Moving>,
    /// A direct command that has not been sent.
    pub(super) direct: Option<Command>,
    /// Tasks that came after a direct command that is not done.
    pub(super) behind: Vec<Task>,
    /// The tasks that the card has reported as ready, one bit each.
    pub(super) ready: u32,
    /// Events to report, and when.
    pub(super) told: VecDeque<(Instant, EngineEvent)>,
}

impl Engine {
    /// An engine that has been enabled, without tasks.
    pub(super) fn on() -> Self {
        Self { power: Power::On, ..Self::default() }
    }

    /// Whether the engine owns the bus.
    pub(super) const fn has_bus(&self) -> bool {
        matches!(self.power, Power::On | Power::Halting)
    }

    /// Whether a direct command is not done.
    pub(super) fn has_direct(&self) -> bool {
        self.direct.is_some() || self.moving.as_ref().is_some_and(|moving| moving.task == DIRECT)
    }

    /// The host takes the bus from the engine.
    pub(super) fn abort(&mut self) {
        self.moving = None;
        if self.power != Power::Off {
            self.power = Power::Halted;
        }
    }

    /// Takes the events that are due by `now`.
    pub(super) fn take_told(&mut self, now: Instant) -> impl Iterator<Item = EngineEvent> {
        let over = self.told.iter().take_while(|(at, _)| *at <= now).count();
        self.told.drain(..over).map(|(_, event)| event)
    }

    /// The first of the tasks that are ready ([one-task-moves-data]).
    pub(super) fn first_ready(&self) -> Option<usize> {
        let is_ready = |task: &Task| self.ready >> task.parameters.task.number() & 1 != 0;
        let is_urgent = |task: &Task| task.parameters.high_priority && is_ready(task);
        self.tasks.iter().position(is_urgent).or_else(|| self.tasks.iter().position(is_ready))
    }
}
