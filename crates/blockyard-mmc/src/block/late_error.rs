//! Late write errors: failures that a card reports after the host has taken the write for done.
//!
//! A page that cannot be programmed shows in the next response of the card, to whatever command. A
//! host that sends CMD13 after each write hears of the failure in time. If the controller, or a
//! check of DAT0, finds the end of busy, no CMD13 follows the write, and the write is *unconfirmed*
//! until the next response.
//!
//! # Rules
//!
//! - **[late-error-is-the-writes]** The bits of the first response after such a write that speak of
//!   earlier work ([`Status::OF_WORK_BEFORE`](crate::command::status::Status::OF_WORK_BEFORE))
//!   report a failure of that write, not of the request that the response answers. A command queue
//!   engine passes on responses to its own commands. In one to CMD46 or CMD47 the bits speak of the
//!   last write that was done, as no later one has begun. A response to another command may have
//!   come while data passed. Its bits speak of that write, or of one that the engine has begun: the
//!   former is in doubt, and the tasks are done again.
//! - **[late-write-error-fails-flush]** If the write has not been reported yet, it ends with an
//!   error. Otherwise it is lost: it is [counted](super::Counts::lost_writes), and the flush that
//!   is under way and the next one fail, as after a loss of the cache.
//! - **[doubtful-write-fails-flush]** A write is *in doubt* if the first response after it was
//!   damaged or did not arrive, or if the card was reset before it responded. Most such writes are
//!   good, so the write ends well and is [counted separately](super::Counts::doubtful_writes). But
//!   flushes fail as if the write were lost.
//! - **[failure-told-in-recovery]** A response that got lost on the bus does not yet put the write
//!   in doubt. A card that has not got the command reports in response to the recovery's CMD13 what
//!   it would have reported, and the recovery's CMD12 may close the last page of the transfer. If a
//!   response of the recovery has bits of earlier work, the write has failed. The request on the
//!   bus has failed, too, as they may be about that one. The write is in doubt once the card has
//!   responded without them.
//! - **[status-before-tuning]** Responses are ignored while the bus is tuned. So CMD13 is sent
//!   before, and then no write is unconfirmed.

use super::mmc::Mmc;
use super::unconfirmed::UnconfirmedWrite;
use crate::command::state::CardState;
use crate::command::status::Status as CardStatus;
use crate::controller::{HostController, SlotId};
use crate::exchange::Exchange;
use blockyard::status::Status;

impl<H: HostController> Mmc<H> {
    /// Notes that the request in `slot` is reported now.
    pub(super) fn reported(&mut self, slot: SlotId) {
        if self.unconfirmed == UnconfirmedWrite::Held(slot) {
            self.unconfirmed = UnconfirmedWrite::Reported;
        }
    }

    /// Returns whether the next response is the first after a write.
    pub(super) fn has_unconfirmed_write(&self) -> bool {
        self.unconfirmed != UnconfirmedWrite::None
    }

    /// Takes what the responses of `exchange` so far report of the unconfirmed write
    /// ([late-error-is-the-writes]).
    pub(super) fn check_unconfirmed_write(&mut self, exchange: &Exchange) {
        let is_told_late = self.answer_lost
            && exchange.status().is_some_and(|status| status.has(CardStatus::OF_WORK_BEFORE));
        if exchange.write_before_failed() || is_told_late {
            self.unconfirmed_write_failed();
        } else if let Some(status) = exchange.status() {
            // A response says nothing while a transfer is open, or its last page is programmed.
            let is_at_work =
                matches!(status.state(), Some(CardState::Receive | CardState::Programming));
            match self.policy.open_limit {
                Some(_) if is_at_work => {}
                _ if self.answer_lost => self.unconfirmed_write_in_doubt(),
                _ => self.confirm_write(),
            }
        } else if !exchange.continues()
            && exchange.failure().is_some_and(|failure| failure.hides_answer())
        {
            match self.bus {
                // [failure-told-in-recovery]
                Some(_) => self.answer_lost = self.has_unconfirmed_write(),
                None => self.unconfirmed_write_in_doubt(),
            }
        }
    }

    /// Notes that the card has responded, and reported no failure of the unconfirmed write.
    pub(super) fn confirm_write(&mut self) {
        let _ = self.take_unconfirmed();
    }

    /// Returns the unconfirmed write, which no longer is one.
    pub(super) fn take_unconfirmed(&mut self) -> UnconfirmedWrite {
        debug_assert!(!self.answer_lost || self.has_unconfirmed_write(), "no answer was awaited");
        self.answer_lost = false;
        core::mem::replace(&mut self.unconfirmed, UnconfirmedWrite::None)
    }

    /// Acts on a response that reports a failure of the unconfirmed write
    /// ([late-write-error-fails-flush]).
    pub(super) fn unconfirmed_write_failed(&mut self) {
        match self.take_unconfirmed() {
            UnconfirmedWrite::None => {}
            UnconfirmedWrite::Held(slot) => {
                debug_assert!(self.slots[slot.index()].is_write(), "a late write error of a read");
                self.slots[slot.index()].status = Status::IoError;
                if let Some(bus) = self.bus.as_mut().filter(|bus| bus.slot == slot) {
                    // background operations run before the write ends
                    bus.end_with(Status::IoError);
                }
                self.counts.failures += 1;
                // The response does not say which write of an open transfer failed.
                let is_earlier = self.open.is_some_and(|open| open.has_earlier_writes);
                if is_earlier || core::mem::take(&mut self.stops_writes) {
                    self.counts.lost_writes += 1;
                    self.lose_reported_write();
                }
            }
            UnconfirmedWrite::Reported => {
                self.counts.lost_writes += 1;
                self.lose_reported_write();
            }
        }
    }

    /// Takes the unconfirmed write for in doubt ([doubtful-write-fails-flush]).
    pub(super) fn unconfirmed_write_in_doubt(&mut self) {
        let unconfirmed = self.take_unconfirmed();
        if let UnconfirmedWrite::Held(slot) = unconfirmed {
            debug_assert!(self.slots[slot.index()].is_in_use(), "{slot:?} holds no write");
            self.slots[slot.index()].held_at_loss = true;
        }
        if unconfirmed != UnconfirmedWrite::None {
            self.counts.doubtful_writes += 1;
            self.lose_reported_write();
        }
    }
}
