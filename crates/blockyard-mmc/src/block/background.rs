//! Urgent background operations, after the exception bit of a status.
//!
//! If the host is to start background operations, and a response to a request had the exception
//! bit, EXT_CSD is read after the request and before the bus is free. From
//! [`Impacted`](BkopsLevel::Impacted) on, background operations are started and waited for, as in
//! Linux. Until then the request is not reported, and none is accepted. When [`BKOPS`] is over, the
//! card is interrupted (HPI), and gets the time to stop that it states. A card that cannot be
//! interrupted, or does not stop, is reset.
//!
//! Other events than urgent background operations are only noted
//! ([`Counts::events`](super::Counts::events)). A response with the exception bit to a command
//! queue engine leads to background operations, too: they then are an exclusive operation of the
//! host's own, unless another one waits, which would get the same response.
//!
//! # Rules
//!
//! - A failure of these steps is not tried again and does not fail the
//!   request. The card is recovered as after any error.

use super::claim::{BusStep, Purpose};
use super::mmc::Mmc;
use super::operation::Operation;
use crate::card::time::BKOPS;
use crate::command::{Command, SwitchAccess};
use crate::controller::{HostController, MmcRequest};
use crate::exchange::Exchange;
use crate::register::ext_csd::{BkopsLevel, ExtCsd, Hpi, index};
use blockyard::status::Status;
use blockyard::time::Instant;

impl<H: HostController> Mmc<H> {
    /// Returns whether the bus serves an exception of the card before the request, which has ended
    /// with `status`, releases it.
    pub(super) fn begins_background(&mut self, status: Status) -> bool {
        let bus = self.bus.as_mut().expect("claim to release");
        let asks = bus.has_exception() && self.target.bkops;
        if !asks || status == Status::Gone {
            return false;
        }
        bus.recovered();
        bus.end_with(status);
        let step = if self.open.is_some() { BusStep::CloseTransfer } else { BusStep::ReadExtCsd };
        bus.next(step, self.now); // [open-transfer-closes-first]
        true
    }

    /// Acts on a response with the exception bit to the engine, or to a command that turns the
    /// engine on or off.
    pub(super) fn exception_at_engine(&mut self) {
        self.counts.exceptions += 1;
        if self.target.bkops && !self.card_gone {
            self.begin_internal(Operation::Background);
        }
    }

    /// Returns the MMC request of `step`.
    pub(super) fn background_request(&self, step: BusStep) -> MmcRequest {
        match step {
            BusStep::ReadExtCsd => {
                MmcRequest::by_block(Command::send_ext_csd(), self.target.read_limit)
            }
            BusStep::StartBackground => {
                let start = index::BKOPS_START;
                MmcRequest::plain(Command::switch(SwitchAccess::WriteByte, start, 1), BKOPS)
            }
            _ => {
                let by = self.target.hpi.expect("HPI of a card that is interrupted");
                MmcRequest::plain(self.interrupt_command(by), self.target.interrupt_limit)
            }
        }
    }

    fn interrupt_command(&self, by: Hpi) -> Command {
        match by {
            Hpi::SendStatus => Command::interrupt_by_status(self.target.rca),
            Hpi::StopTransmission => Command::interrupt_by_stop(self.target.rca),
        }
    }

    /// Acts on the end of a read of EXT_CSD.
    pub(super) fn ext_csd_read(&mut self, exchange: &Exchange, now: Instant) {
        if let Some(failure) = exchange.failure() {
            self.failed(failure);
            return self.recover(now);
        }
        let ext_csd = ExtCsd::parse(self.controller.block());
        let bus = self.bus.as_mut().expect("claim of a read of EXT_CSD");
        let Some(status) = bus.ended() else { return self.packed_judged(ext_csd.as_ref().ok()) };
        // The request itself did not fail.
        let Ok(ext_csd) = ext_csd else { return self.release_bus(status) };
        self.counts.events.0 |= ext_csd.exceptions().0;
        if ext_csd.bkops_level() < BkopsLevel::Impacted {
            return self.release_bus(status);
        }
        self.counts.bkops_starts += 1;
        bus.purpose = Purpose::Background(status);
        bus.next(BusStep::StartBackground, now);
    }

    /// Returns whether a card that has been busy for too long is interrupted: once, if it runs
    /// background operations and has just said that it is still at them.
    pub(super) fn interrupts_background(&mut self, now: Instant) -> bool {
        let bus = self.bus.as_mut().expect("claim of a check");
        let Purpose::Background(status) = bus.purpose else { return false };
        if self.target.hpi.is_none() {
            return false;
        }
        if bus.step == BusStep::PollLine {
            bus.next(BusStep::Status, now);
        } else {
            bus.purpose = Purpose::Exception(status);
            self.counts.bkops_interrupts += 1;
            bus.next(BusStep::InterruptBackground, now);
        }
        true
    }
}
