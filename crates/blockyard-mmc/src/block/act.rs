//! Acts: the work of a host path on a processor, one at a time.

use crate::command::Direction;
use crate::controller::SlotId;

/// Where code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Context {
    /// The thread that fetches requests, or the one that dispatches. It may wait.
    Thread,
    /// The controller's interrupt handler. It must not wait.
    Interrupt,
    /// Work that an interrupt leaves for later. It may wait.
    Deferred,
}

/// The kind of an act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ActKind {
    /// Copies the data of a write into the bounce buffer.
    CopyIn,
    /// Prepares memory for the controller.
    Prepare,
    /// Prepares the memory of the first blocks of a read that is on the bus.
    PrepareFirst,
    /// Prepares more of the memory of a read that is on the bus.
    PrepareMore,
    /// Tunes the bus again.
    Retune,
    /// Puts a transfer on the bus.
    Start,
    /// Asks the card for its status (CMD13). The response is an interrupt.
    SendStatus,
    /// Acts on the response to CMD13. If the card is busy, a pause begins.
    HandleStatus,
    /// Asks the controller whether the card is busy.
    PollLine,
    /// Ends a transfer that failed (CMD12). The response is an interrupt.
    SendStop,
    /// Sends a command without data, after which the card works by itself. The response is an
    /// interrupt.
    SendCommand,
    /// Reads a register of the card.
    ReadRegister,
    /// Resets controller and card.
    Reset,
    /// Turns the card's command queue on or off (CMD6). The response is an interrupt.
    SwitchQueue,
    /// Gives the bus to the command queue engine.
    EnableEngine,
    /// Takes the bus from the command queue engine, which has no task.
    DisableEngine,
    /// Halts the command queue engine. An interrupt reports that it has halted.
    HaltEngine,
    /// Makes the card forget all tasks (CMD48). The response is an interrupt.
    DiscardTasks,
    /// Makes the command queue engine forget all tasks. An interrupt reports that it has.
    ClearTasks,
    /// Disables and enables the command queue engine.
    RestartEngine,
    /// Posts memory: the processor can use it again.
    Post,
    /// Copies the data of a read out of the bounce buffer.
    CopyOut,
    /// Reports the end of a request.
    Complete,
}

/// An act that a context has begun. It takes effect at its [end](super::Mmc::finish). The time
/// between is its cost.
#[must_use = "an act that was begun and is not finished blocks its request for ever"]
#[derive(Debug, PartialEq, Eq)]
pub struct Act {
    pub(super) kind: ActKind,
    pub(super) context: Context,
    pub(super) slot: Option<SlotId>,
    pub(super) bytes: u32,
    pub(super) direction: Direction,
}

impl Act {
    /// Returns the kind of the act.
    #[must_use]
    pub const fn kind(&self) -> ActKind {
        self.kind
    }

    /// Returns the context that has begun the act.
    #[must_use]
    pub const fn context(&self) -> Context {
        self.context
    }

    /// Returns the request's slot; `None` for acts of the command queue engine.
    #[must_use]
    pub const fn slot(&self) -> Option<SlotId> {
        self.slot
    }

    /// Returns the bytes of the request; for [`ActKind::Start`] those of the transfer, and for
    /// [`ActKind::PrepareFirst`] and [`ActKind::PrepareMore`] those that they prepare. The value is
    /// 0 for a request that transfers nothing, and for no request.
    #[must_use]
    pub const fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Returns the direction of the request's data.
    #[must_use]
    pub const fn direction(&self) -> Direction {
        self.direction
    }
}
