//! What the exception bit of a status asks for: background operations that have become urgent.
//!
//! # Rules
//!
//! - **U1.** Where the host is to start background operations, and a response to a request or operation
//!   had the exception bit, EXT_CSD is read once that is over and before the bus is free. From
//!   [`Impacted`](BkopsLevel::Impacted) on they are started and waited for, as in Linux. Until then
//!   the request is not reported, and none is taken (P4).
//! - **U2.** They have [`BKOPS`]. Then the card is interrupted in its way
//!   (HPI), and has its own time to come back; where it cannot be, or does not, it is reset.
//! - **U3.** Nothing that goes wrong here is tried again, or fails the request: the card is brought back
//!   as after any error, and that is all.
//! - **U4.** Other events are noted ([`Counts::events`](super::Counts::events)), and nothing follows.
//! - **U5.** What a card says to a command queue engine asks for this, too. It then is an exclusive
//!   operation of the host's own (O1), unless another waits, which would be told the same.

use super::Mmc;
use super::errand::Errand;
use super::exclusive::Operation;
use crate::card::time::BKOPS;
use crate::command::{Command, SwitchAccess};
use crate::controller::{HostController, MmcRequest, Payload};
use crate::exchange::Exchange;
use crate::register::ext_csd::{BkopsLevel, ExtCsd, Hpi, index};
use blockyard::status::Status;
use blockyard::time::Instant;

impl<H: HostController> Mmc<H> {
    /// What has the bus is over with `status`. Says whether the card is cared for first (U1).
    pub(super) fn begins_upkeep(&mut self, status: Status) -> bool {
        let Some(bus) = &mut self.bus else { return false };
        let asks = bus.exception && self.target.bkops && bus.over.is_none();
        if !asks || status == Status::Gone {
            return false;
        }
        (bus.over, bus.failure, bus.tries) = (Some(status), None, 0);
        bus.next(Errand::Look, self.now);
        true
    }

    /// The card has said to the engine, or while that is turned on or off, that something exceptional is
    /// up (U5).
    pub(super) fn exception_at_engine(&mut self) {
        self.counts.exceptions += 1;
        if self.target.bkops && !self.gone {
            self.begin_own(Operation::Upkeep);
        }
    }

    /// The transaction of `errand`.
    pub(super) fn upkeep_of(&self, errand: Errand) -> MmcRequest {
        let interrupt = |by| match by {
            Hpi::SendStatus => Command::interrupt_by_status(self.target.rca),
            Hpi::StopTransmission => Command::interrupt_by_stop(self.target.rca),
        };
        match errand {
            Errand::Look => {
                let payload = Payload::Block;
                let limit = self.target.read_limit;
                MmcRequest { payload, ..MmcRequest::plain(Command::send_ext_csd(), limit) }
            }
            Errand::Upkeep => {
                let start = index::BKOPS_START;
                MmcRequest::plain(Command::switch(SwitchAccess::WriteByte, start, 1), BKOPS)
            }
            _ => {
                let by = self.target.hpi.expect("it can be interrupted");
                MmcRequest::plain(interrupt(by), self.target.interrupt_limit)
            }
        }
    }

    /// EXT_CSD has been read, or has not.
    pub(super) fn looked_up(&mut self, exchange: &Exchange, now: Instant) {
        if let Some(failure) = exchange.failure() {
            self.failed(failure);
            return self.recover(now);
        }
        let ext_csd = ExtCsd::parse(self.controller.block());
        let bus = self.bus.as_mut().expect("it was read for it");
        let Some(over) = bus.over else { return self.packed_judged(ext_csd.as_ref().ok()) };
        let Ok(ext_csd) = ext_csd else { return self.release_bus(over) }; // U3
        self.counts.events.0 |= ext_csd.exceptions().0; // U4
        if ext_csd.bkops_level() < BkopsLevel::Impacted {
            return self.release_bus(over);
        }
        self.counts.bkops_starts += 1;
        bus.background = true;
        bus.next(Errand::Upkeep, now);
    }

    /// The card has been busy for too long. Says whether it is interrupted: with background operations
    /// it is, once, when it has just said that it still is at them (U2).
    pub(super) fn interrupts(&mut self, now: Instant) -> bool {
        let Some(bus) = self.bus.as_mut().filter(|bus| bus.background) else { return false };
        if self.target.hpi.is_none() {
            return false;
        }
        if bus.errand == Errand::Line {
            bus.next(Errand::Status, now);
        } else {
            bus.background = false;
            self.counts.bkops_interrupts += 1;
            bus.next(Errand::Interrupt, now);
        }
        true
    }
}
