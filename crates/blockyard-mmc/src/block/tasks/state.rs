//! The engine's state, its tasks, and its direct command.

use super::change::Change;
use super::direct_command::Direct;
use crate::block::order::Fifo;

/// The engine of a host, and its tasks.
#[derive(Debug)]
pub(in crate::block) struct Cqe {
    pub(in crate::block) state: State,
    /// The tasks, in the order in which the engine got them.
    pub(in crate::block) tasks: Fifo,
    pub(in crate::block) direct: Direct,
    /// The bus was tuned and no task was queued since. One is queued before the bus is tuned again.
    pub(in crate::block) must_queue_before_tuning: bool,
}

/// The state of the engine: whether it has the bus.
#[derive(Clone, Copy, Debug)]
pub(in crate::block) enum State {
    /// The bus is free, and the card's queue is off.
    Off,
    /// The engine has the bus.
    On,
    /// The engine is on its way between the two.
    Changing(Change),
}

impl Cqe {
    /// An engine that is off, with places for `depth` tasks.
    pub(in crate::block) fn new(depth: u8) -> Self {
        debug_assert!(depth <= 32, "a command queue holds at most 32 tasks, not {depth}");
        Self {
            state: State::Off,
            tasks: Fifo::new(depth),
            direct: Direct::Free,
            must_queue_before_tuning: false,
        }
    }

    /// Returns whether the engine is being recovered.
    pub(in crate::block) const fn is_recovering(&self) -> bool {
        matches!(&self.state, State::Changing(change) if change.recovers())
    }

    /// Returns whether the engine is off.
    pub(in crate::block) const fn is_off(&self) -> bool {
        matches!(self.state, State::Off)
    }

    /// Returns whether the engine has the bus and takes tasks.
    pub(in crate::block) const fn is_on(&self) -> bool {
        matches!(self.state, State::On)
    }

    /// Returns whether the engine has neither a task nor a direct command.
    pub(in crate::block) fn is_idle(&self) -> bool {
        self.tasks.first().is_none() && !self.direct.is_sent()
    }
}
