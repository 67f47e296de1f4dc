//! What a host path does on a processor, one act at a time.

use crate::command::Direction;
use crate::controller::SlotId;

/// Where code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Context {
    /// The thread that fetches requests, or the one that dispatches. May wait.
    Thread,
    /// The controller's interrupt handler. Must not wait.
    Interrupt,
    /// Work that an interrupt leaves for later. May wait.
    Deferred,
}

/// What an act does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ActKind {
    /// What is to be written is copied into the bounce buffer.
    CopyIn,
    /// Memory is made ready for the controller.
    Prepare,
    /// The bus is tuned again.
    Retune,
    /// A transfer is put on the bus.
    Start,
    /// The card is asked how it is (CMD13). The answer is an interrupt.
    SendStatus,
    /// That answer is looked at, and acted on: where the card is busy, a pause begins.
    HandleStatus,
    /// The controller is asked whether the card is busy.
    PollLine,
    /// The card is told to end a transfer that failed (CMD12). The answer is an interrupt.
    SendStop,
    /// A command without data is sent, for what the card does by itself. The answer is an interrupt.
    SendCommand,
    /// A register of the card is read.
    ReadRegister,
    /// Controller and card are reset.
    Reset,
    /// The card is told to turn its command queue on or off (CMD6). The answer is an interrupt.
    SwitchQueue,
    /// The command queue engine gets the bus.
    EnableEngine,
    /// The command queue engine, which has no task, loses the bus.
    DisableEngine,
    /// The command queue engine is halted. That it has is an interrupt.
    HaltEngine,
    /// The card is told to forget all tasks (CMD48). The answer is an interrupt.
    DiscardTasks,
    /// The command queue engine is to forget all tasks. That it has is an interrupt.
    ClearTasks,
    /// The command queue engine is disabled and enabled again.
    RestartEngine,
    /// Memory is made ready for the processor again.
    Post,
    /// What was read is copied out of the bounce buffer.
    CopyOut,
    /// A request's end is reported.
    Complete,
}

/// An act that a context has begun. What it does happens at its
/// [end](super::Mmc::finish): what lies between is its cost.
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
    /// What it does.
    #[must_use]
    pub const fn kind(&self) -> ActKind {
        self.kind
    }

    /// Where it runs.
    #[must_use]
    pub const fn context(&self) -> Context {
        self.context
    }

    /// The request's place; `None` where it is for no request, but for the command queue engine.
    #[must_use]
    pub const fn slot(&self) -> Option<SlotId> {
        self.slot
    }

    /// Bytes of the request, or for [`ActKind::Start`] of the transfer. What transfers nothing has 0, as
    /// what is for no request.
    #[must_use]
    pub const fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Which way the data of the request goes.
    #[must_use]
    pub const fn direction(&self) -> Direction {
        self.direction
    }
}
