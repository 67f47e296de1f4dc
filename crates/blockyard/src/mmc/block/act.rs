//! What a host path does on a processor, one act at a time.

use crate::mmc::controller::SlotId;

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
    /// The controller is asked whether the card is busy.
    LookAtLine,
    /// The card is told to end a transfer that failed (CMD12). The answer is an interrupt.
    SendStop,
    /// Controller and card are reset.
    Reset,
    /// Memory is made ready for the processor again.
    Cleanup,
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
    pub(super) slot: SlotId,
    pub(super) bytes: u32,
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

    /// The request's place.
    #[must_use]
    pub const fn slot(&self) -> SlotId {
        self.slot
    }

    /// Bytes of the request, or for [`ActKind::Start`] of the transfer.
    #[must_use]
    pub const fn bytes(&self) -> u32 {
        self.bytes
    }
}
