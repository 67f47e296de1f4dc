//! Writes after which nobody asks the card how it is.
//!
//! A page that cannot be programmed shows in the next response of the card, whatever that responds to. Who
//! asks after each write (CMD13) hears of it in time. Where the controller or a look at DAT0 finds the end
//! of busy, nobody asks:
//!
//! - **A1.** What the first response after such a write says of work before it
//!   ([`Status::OF_WORK_BEFORE`](crate::command::status::Status::OF_WORK_BEFORE)) is that write's
//!   failure, and not that of the request which the response is for.
//! - **A2.** If the write is not reported yet, it ends with an error. Else it cannot be told any more, which
//!   is [counted](super::Counts::lost_writes), and flushes fail as after a loss of the cache: O5 of
//!   [`exclusive`](super::exclusive).
//! - **A3.** Where nobody can know whether it failed, the write is *in doubt*: when the first response after it
//!   came damaged or not at all, or the card was reset before it said anything. Most often it is good, and what
//!   went wrong is another's; so it ends well and is [counted apart](super::Counts::doubtful_writes). But flushes fail
//!   as if it were lost.
//! - **A4.** To who tunes the bus nobody listens. So the card is asked (CMD13) before that, and has nothing left
//!   to say.
//! - **A5.** A command queue engine passes on what the response to a command of its own says. To one that
//!   has data moved (CMD46, CMD47) that is about the last write that was done, as no other has begun. Any
//!   other may have come beside data: it is about that write, or one that the engine is at, so the former is in
//!   doubt. The tasks that it has are done again (T3).

use super::Mmc;
use crate::controller::{HostController, SlotId};
use crate::exchange::Exchange;
use blockyard::status::Status;

/// The last write, as far as nobody has asked after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unasked {
    /// There is none.
    None,
    /// It is done, and its request still held.
    Held(SlotId),
    /// It was reported as done.
    Told,
}

impl<H: HostController> Mmc<H> {
    /// The request in `slot` is reported as done now, or was not.
    pub(super) fn reported(&mut self, slot: SlotId) {
        if self.unasked == Unasked::Held(slot) {
            self.unasked = Unasked::Told;
        }
    }

    /// Whether the next response is the first after such a write.
    pub(super) fn has_unasked(&self) -> bool {
        self.unasked != Unasked::None
    }

    /// What `exchange` says, as far as it has come, of such a write (A1).
    pub(super) fn heed_unasked(&mut self, exchange: &Exchange) {
        if exchange.write_before_failed() {
            self.unasked_failed();
        } else if exchange.status().is_some() {
            self.nobody_unasked();
        } else if exchange.failure().is_some_and(|failure| failure.hides_answer()) {
            self.unasked_in_doubt();
        }
    }

    /// The card has responded, and said nothing of such a write.
    pub(super) fn nobody_unasked(&mut self) {
        self.unasked = Unasked::None;
    }

    /// The card says that such a write failed (A2).
    pub(super) fn unasked_failed(&mut self) {
        match core::mem::replace(&mut self.unasked, Unasked::None) {
            Unasked::None => {}
            Unasked::Held(slot) => {
                self.slots[slot.index()].status = Status::IoError;
                if let Some(bus) = self.bus.as_mut().filter(|bus| bus.slot == slot) {
                    bus.over = Some(Status::IoError); // background operations are run before it ends
                }
                self.counts.failures += 1;
            }
            Unasked::Told => {
                self.counts.lost_writes += 1;
                self.lose_told();
            }
        }
    }

    /// Such a write may have failed, and nobody can know (A3).
    pub(super) fn unasked_in_doubt(&mut self) {
        let unasked = core::mem::replace(&mut self.unasked, Unasked::None);
        if let Unasked::Held(slot) = unasked {
            self.slots[slot.index()].held_at_loss = true;
        }
        if unasked != Unasked::None {
            self.counts.doubtful_writes += 1;
            self.lose_told();
        }
    }
}
