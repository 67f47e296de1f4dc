//! The state of a command queue engine in virtual time, on top of the card's queue. The controller
//! drives the engine ([`tasks`](super::tasks)) by the rules of [`blockyard_mmc::engine`].
//!
//! # Rules
//!
//! - **[one-task-moves-data]** One task at a time moves data (CMD46, CMD47), and none does while
//!   the card is busy. Ready tasks of high priority go first, then the oldest tasks.
//! - **[failed-engine-starts-nothing]** After a failure the engine starts nothing until it is
//!   cleared.
//! - **[direct-command-after-tasks]** The engine sends a direct command when all earlier tasks are
//!   done, and completes the command when the card is no longer busy. Tasks that arrive meanwhile
//!   are queued at the card after that.
//!
//! The engine queues a task at the card (CMD44, CMD45) as soon as the command line is free, even
//! while another task moves data. When it knows of no ready task, it asks the card (CMD13): at the
//! end of a transfer, after the first task of an empty queue, and then in periods (CQHCI's send
//! status idle timer) until a task is ready. Each completed task interrupts at once. If that
//! interrupt is lost, the next one reports the task too. The engine waits for data as long as an
//! SDHCI's counter can count, because it does not know the card's limits.

use blockyard::time::{Duration, Instant};
use blockyard_mmc::command::Command;
use blockyard_mmc::command::queue::TaskId;
use blockyard_mmc::controller::MmcRequest;
use blockyard_mmc::engine::{DIRECT, EngineEvent, Task};
use std::collections::VecDeque;

/// The task that moves data, or the direct command that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moving {
    pub(super) task: TaskId,
    pub(super) transaction: MmcRequest,
    pub(super) since: Instant,
    pub(super) until: Instant,
    /// The result of the task or command.
    pub(super) end: EngineEvent,
}

/// The owner of the bus of a controller with an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Power {
    /// The engine is disabled, and the host has the bus.
    #[default]
    Off,
    /// The engine has the bus.
    On,
    /// The engine has the bus, and halts as soon as no data is moving.
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
    /// Tasks in the order of arrival, without the one that moves data.
    pub(super) tasks: Vec<Task>,
    pub(super) moving: Option<Moving>,
    /// A direct command that has not been sent.
    pub(super) direct: Option<Command>,
    /// Tasks that arrived after a direct command that is not done.
    pub(super) behind: Vec<Task>,
    /// The tasks that the card has reported as ready, one bit each.
    pub(super) ready: u32,
    /// The instant from which it asks in periods.
    pub(super) polls_from: Instant,
    /// Events to report, each with its instant.
    pub(super) told: VecDeque<(Instant, EngineEvent)>,
}

impl Engine {
    /// Returns an enabled engine without tasks.
    pub(super) fn on() -> Self {
        Self { power: Power::On, ..Self::default() }
    }

    /// Returns whether the engine owns the bus.
    pub(super) const fn has_bus(&self) -> bool {
        matches!(self.power, Power::On | Power::Halting)
    }

    /// Returns whether a direct command is not done.
    pub(super) fn has_direct(&self) -> bool {
        self.direct.is_some() || self.moving.as_ref().is_some_and(|moving| moving.task == DIRECT)
    }

    /// Takes the bus from the engine for the host.
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

    /// Returns when it asks next, if it asks every `period` and not before `at`, and how often it
    /// asks before that. From 0 on, every 10 us, not before 25 us: at 30 us, after 3 times.
    pub(super) fn next_poll(&self, period: Duration, at: Instant) -> (Instant, u64) {
        let ns = at.since(self.polls_from).as_ns();
        let before = if period == Duration::ZERO { 0 } else { ns.div_ceil(period.as_ns()) };
        let waits = Duration::from_ns(before * period.as_ns());
        (at.max(self.polls_from + waits), before)
    }

    /// Returns the first ready task ([one-task-moves-data]).
    pub(super) fn first_ready(&self) -> Option<usize> {
        let is_ready = |task: &Task| self.ready >> task.parameters.task.number() & 1 != 0;
        let is_urgent = |task: &Task| task.parameters.high_priority && is_ready(task);
        self.tasks.iter().position(is_urgent).or_else(|| self.tasks.iter().position(is_ready))
    }
}
