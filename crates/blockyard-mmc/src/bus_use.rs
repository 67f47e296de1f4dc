//! The uses of the bus between a controller and its card, for observers.

use crate::command::Opcode;
use crate::controller::{MmcRequest, Payload, SlotId};
use blockyard::time::Instant;

/// A use of the bus between a controller and its card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusUse {
    /// The kind of use.
    pub kind: BusUseKind,
    /// The start of the use.
    pub from: Instant,
    /// The end of the use.
    pub until: Instant,
}

/// The kind of a [`BusUse`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusUseKind {
    /// An MMC request was on the bus, until its interrupt or until it was aborted.
    Transaction {
        /// The command that announces the request's transfer.
        announce: Option<Opcode>,
        /// The request's main command; `None` if it continues a transfer that was left open.
        command: Option<Opcode>,
        /// The command that ends the transfer.
        stop: Option<Opcode>,
        /// The sectors of the transfer.
        sectors: u16,
        /// The slot whose memory the request uses; the first slot of a packed command.
        slot: Option<SlotId>,
    },
    /// The card held DAT0 low. If the controller waits for the end of busy, the request includes
    /// the time too.
    CardBusy,
}

impl BusUseKind {
    /// Returns the use of the bus by `transaction`.
    #[must_use]
    pub fn of(transaction: &MmcRequest) -> Self {
        let slot = match transaction.payload {
            Payload::None | Payload::Block => None,
            Payload::Slot { slot, .. } => Some(slot),
            Payload::Packed(pack) => pack.slots().first().copied(),
        };
        Self::Transaction {
            announce: transaction.announce.map(|command| command.opcode),
            command: (!transaction.continues).then_some(transaction.command.opcode),
            stop: transaction.stop.map(|command| command.opcode),
            sectors: transaction.data().map_or(0, |data| data.blocks),
            slot,
        }
    }
}
