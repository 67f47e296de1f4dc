//! Transfers that stay open between requests.
//!
//! A transfer of several blocks that was not announced (CMD23) goes on until CMD12. With
//! [`HostPolicy::open_limit`](crate::policy::HostPolicy::open_limit) no CMD12 follows a request. A
//! request of the same direction that begins where the last one ended continues the transfer: its
//! data passes without a command, and the card goes on with the page that it has begun. So eight
//! writes of 4 KiB in sequence are one CMD25 and one CMD12, and the card is busy once.
//!
//! Nothing of a write is confirmed while its transfer is open: the responses to CMD12 and to the
//! command after it speak of all of them ([late-error-is-the-writes]).
//!
//! # Rules
//!
//! - **[open-transfer-closes-first]** Every other use of the bus closes the transfer first: a
//!   request that does not continue it, one that is tried again, an operation, tuning, EXT_CSD.
//!   Only a recovery sends other commands, and it stops the transfer itself.
//! - **[flush-closes-transfer]** A flush ends after the transfer is closed, and after a response
//!   that would have reported a failure of its writes, even if the card's cache is off. So a disk
//!   whose host leaves transfers open must have a write cache for its queue.
//! - A transfer that no request has continued within its limit is closed, by the thread. So is one
//!   on a host that is to be disabled. Requests are accepted meanwhile.

use super::claim::{BUSY_LIMIT, BusStep, Claim};
use super::mmc::Mmc;
use super::open::OpenTransfer;
use super::operation::Operation;
use super::power::Power;
use super::slot::{Kind, Scope, Slot, Stage};
use super::unconfirmed::UnconfirmedWrite;
use crate::command::{Command, Direction};
use crate::controller::{HostController, MmcRequest, SlotId};
use crate::exchange::Exchange;
use crate::host::BusyDetect;
use blockyard::time::Instant;

impl<H: HostController> Mmc<H> {
    /// Returns whether the next transfer of `of` is left open, and may continue an open one.
    pub(super) fn is_left_open(&self, of: &Slot) -> bool {
        self.policy.open_limit.is_some()
            && matches!(of.kind, Kind::Read | Kind::Write)
            && matches!(of.scope, Scope::Packable | Scope::Alone)
            && of.retries == 0
    }

    /// Returns whether the next transfer of `of` continues the one that is open.
    pub(super) fn continues_open(&self, of: &Slot) -> bool {
        self.open.is_some_and(|open| {
            of.is_in_use()
                && self.is_left_open(of)
                && open.direction == of.direction()
                && open.next == of.sector + u64::from(of.done)
        })
    }

    /// Returns whether a transfer has to be closed before the next step for `of`
    /// ([open-transfer-closes-first]).
    pub(super) fn closes_before(&self, of: &Slot) -> bool {
        self.open.is_some() && (self.retune_needed || !self.continues_open(of))
    }

    /// Returns what is left open once `transfer`, for `of`, has passed.
    pub(super) fn opened_by(&self, transfer: &MmcRequest, of: &Slot) -> Option<OpenTransfer> {
        transfer.stays_open.then(|| OpenTransfer {
            direction: of.direction(),
            next: of.sector + u64::from(of.sectors),
            until: Instant::MAX,
            is_closing: false,
            has_earlier_writes: self.open.is_some_and(|open| open.has_earlier_writes),
        })
    }

    /// Notes that the data of a transfer has passed at `now`. Returns whether it stays open.
    pub(super) fn note_open(&mut self, now: Instant) -> bool {
        let Some((open, limit)) = self.open.as_mut().zip(self.policy.open_limit) else {
            return false;
        };
        open.until = now + limit;
        open.has_earlier_writes |= self.unconfirmed != UnconfirmedWrite::None;
        true
    }

    /// Returns the slot in which a transfer is closed for want of requests, if it is time to.
    pub(super) fn stale_open(&self, now: Instant) -> Option<SlotId> {
        let open = self.open?;
        let own = self.internal_slot();
        let is_time = open.until <= now || self.power != Power::On;
        let is_free = self.bus.is_none()
            && self.exclusive.is_none()
            && !self.slots[own.index()].is_in_use()
            && !self.slots.iter().any(|slot| slot.stage.is_before_its_end());
        (is_time && is_free).then_some(own)
    }

    /// Claims the bus to close the transfer that no request continues.
    pub(super) fn claim_stale(&mut self, own: SlotId) -> Stage {
        debug_assert!(self.bus.is_none(), "[one-claim-on-bus]");
        let kind = Kind::Operation(Operation::CloseTransfer);
        self.slots[own.index()] = Slot { kind, ..Slot::FREE };
        self.slots_in_use += 1;
        self.bus = Some(Claim::starting(own, BusStep::CloseTransfer, super::act::Context::Thread));
        Stage::OnBus
    }

    /// Returns whether a transfer is being closed for want of requests.
    pub(super) fn closes_stale(&self) -> bool {
        self.slots[self.internal_slot().index()].kind == Kind::Operation(Operation::CloseTransfer)
    }

    /// Returns the MMC request that closes the open transfer.
    pub(super) fn close_request(&self) -> MmcRequest {
        let open = self.open.expect("open transfer to close");
        let stop = Command::stop_transmission(open.direction);
        MmcRequest::plain(stop, self.target.write_limit)
    }

    /// Acts on the end of the CMD12 that closes a transfer.
    pub(super) fn close_ended(&mut self, exchange: &Exchange, now: Instant) {
        let open = self.open.expect("open transfer that was stopped");
        if open.direction == Direction::Read && exchange.status().is_some() {
            return self.closed(now); // what the card has read beyond the requests does not matter
        }
        if let Some(failure) = exchange.failure() {
            self.failed(failure);
            return self.recover(now);
        }
        let is_operation = self.operation_on_bus().is_some();
        let bus = self.bus.as_mut().expect("claim of a CMD12");
        match self.policy.busy {
            // An operation does not end before a response ([flush-closes-transfer]).
            BusyDetect::Hardware if !is_operation => self.closed(now),
            BusyDetect::Line => bus.watch(BusStep::PollLine, now + BUSY_LIMIT, now),
            BusyDetect::Hardware | BusyDetect::Status => {
                bus.watch(BusStep::Status, now + BUSY_LIMIT, now);
            }
        }
    }

    /// Goes on with what waited for the transfer to be closed.
    pub(super) fn closed(&mut self, now: Instant) {
        self.open = None;
        self.cache.note_closed();
        let bus = self.bus.as_mut().expect("claim of a CMD12");
        if bus.ended().is_some() {
            return bus.next(BusStep::ReadExtCsd, now);
        }
        match self.operation_on_bus() {
            Some(Operation::Flush) if self.cache.is_off => self.finish_request(now),
            _ => self.next_transfer(now),
        }
    }
}
