//! What becomes of a request whose transfer failed.
//!
//! First the card is asked how it is (CMD13), told to stop if it is still at the transfer (CMD12),
//! and asked until it is ready; if it does not answer or does not become ready, it is reset. Then:
//!
//! - **E1.** A request is tried again [`RETRIES_MAX`] times. After an error of the data there are at
//!   most [`DATA_RETRIES`] left.
//! - **E2.** Before the last of these, controller and card are reset.
//! - **E3.** A read that still fails is read by the card's own sectors, one by one, each tried [`SECTOR_TRIES`] times. The
//!   first that cannot be read ends the request with an error.
//! - **E4.** Blocks that came before an error of the bus stay read, as far as they are whole sectors of
//!   the card's own. Of a transfer of which the card
//!   says that it failed, in any response up to the one to CMD13, and of a write, nothing counts. A write has
//!   failed, too, if a question about it was not answered. An SD card would say how many blocks of a write
//!   are good (ACMD22, which Linux asks): it is not asked, as no partial success of a write is reported (P6),
//!   and to write the same blocks again costs time and wear after an error, and nothing else.
//! - **E5.** What came damaged has the bus tuned again before the next transfer, where it is tuned.
//!   Where that fails, controller and card are reset.
//! - **E6.** What comes back from a reset is looked at. The same card goes on: by the address that it has
//!   now, and what is not on any more (cache, packed commands, background operations) is not used any
//!   more. Another card, or one that does not hold what was promised of it, is none.

use super::errand::Errand;
use super::packed::Most;
use super::slot::Slot;
use super::unasked::Unasked;
use super::{Mmc, Target};
use crate::command::Direction;
use crate::command::state::CardState;
use crate::command::status::Status as CardStatus;
use crate::controller::{HostController, HostError, Part};
use crate::exchange::{Cause, Exchange, Failure};
use blockyard::status::Status;
use blockyard::time::Instant;

/// How often a request is tried again.
pub const RETRIES_MAX: u8 = 5;
/// How often at most after an error of the data.
pub const DATA_RETRIES: u8 = 2;
/// How often a sector is tried that is read alone.
pub const SECTOR_TRIES: u8 = 2;
/// How often commands of the recovery may fail, or not help.
pub(super) const COMMAND_TRIES: u8 = 3;

/// The card has not come back from a transfer.
const NOT_BACK: Failure = Failure { part: Part::Busy, cause: Cause::Host(HostError::Timeout) };

impl<H: HostController> Mmc<H> {
    /// The card has said how it is, or has not: whoever asked has seen it by `now`.
    pub(super) fn status_came(&mut self, exchange: &Exchange, now: Instant) {
        let Some(status) = exchange.status() else { return self.command_failed(exchange, now) };
        // A write that was sent well can still have failed.
        if let Some(failure) = exchange.failure() {
            self.failed(failure);
        }
        match status.state() {
            Some(CardState::Transfer | CardState::Programming) => {
                self.looked(status.is_ready(), now);
            }
            state => {
                let errand = match state.and_then(CardState::transfers) {
                    Some(direction) => self.errand_after_try(Errand::Stop(direction)),
                    None => Errand::Reset,
                };
                self.go_on(NOT_BACK, errand, now);
            }
        }
    }

    /// A transfer failed with `failure`, if with nothing before: nothing else happens before the
    /// card is well.
    pub(super) fn failed(&mut self, failure: Failure) {
        let bus = self.bus.as_mut().expect("its transfer has failed");
        if failure.cause == Cause::Host(HostError::Damaged) {
            self.wants_retune = self.controller.is_tuned(); // E5
        }
        let slot = &mut self.slots[bus.slot.index()];
        if slot.direction == Direction::Write || matches!(failure.cause, Cause::Card(_)) {
            slot.done = bus.done_before; // E4
        }
        if bus.failure.is_none() {
            (bus.failure, bus.failed_once) = (Some(failure), true);
            self.counts.failures += 1;
        }
    }

    /// As [`Self::failed`], and `errand` is next.
    fn go_on(&mut self, failure: Failure, errand: Errand, now: Instant) {
        self.failed(failure);
        self.bus.as_mut().expect("it has failed").next(errand, now);
    }

    /// CMD12 was answered, or was not.
    pub(super) fn stopped(&mut self, exchange: &Exchange, now: Instant) {
        match exchange.status() {
            // Whatever it says of the transfer is known; how the card is, CMD13 says.
            Some(_) => self.bus.as_mut().expect("it has the bus").next(Errand::Status, now),
            None => self.command_failed(exchange, now),
        }
    }

    /// A command of the recovery got no answer: again, or the card is reset.
    fn command_failed(&mut self, exchange: &Exchange, now: Instant) {
        match self.errand_after_try(Errand::Status) {
            Errand::Reset => {
                let failure = exchange.failure().expect("no answer is a failure");
                self.go_on(failure, Errand::Reset, now);
            }
            // The answer may have got lost, and a card says only once that a write failed (E4).
            errand => {
                if let Some(failure) = exchange.failure().filter(Failure::hides_answer) {
                    self.failed(failure);
                }
                self.bus.as_mut().expect("its command failed").next(errand, now);
            }
        }
    }

    /// `errand`, unless what was tried has not helped too often.
    fn errand_after_try(&mut self, errand: Errand) -> Errand {
        let bus = self.bus.as_mut().expect("something was tried for it");
        bus.tries += 1;
        if bus.tries < COMMAND_TRIES { errand } else { Errand::Reset }
    }

    /// The card has been busy for longer than any may.
    pub(super) fn busy_for_ever(&mut self, now: Instant) {
        if self.interrupts(now) {
            return;
        }
        let bus = self.bus.as_mut().expect("it was looked for it");
        bus.overdue = true;
        if self.unasked == Unasked::Held(bus.slot) {
            self.unasked = Unasked::None; // it has failed itself, and is tried again or ends so
        }
        self.go_on(NOT_BACK, Errand::Reset, now);
    }

    /// The card was asked before the bus is tuned, and what it says of a write before was heeded (A4).
    pub(super) fn asked(&mut self, exchange: &Exchange, now: Instant) {
        match exchange.failure() {
            None => self.next_transfer(now),
            Some(failure) => {
                self.failed(failure);
                self.recover(now);
            }
        }
    }

    /// Tunes the bus again. The card has said all that it had to of a write before (A4): to [`Errand::Ask`], or
    /// as the engine was turned off.
    pub(super) fn tune_again(&mut self, now: Instant) -> Result<(), HostError> {
        debug_assert!(!self.has_unasked(), "A4");
        self.wants_retune = false;
        self.controller.retune(now)
    }

    /// Tunes the bus again, and goes on with the request.
    pub(super) fn retune(&mut self, now: Instant) {
        match self.tune_again(now) {
            Ok(()) => self.next_transfer(now),
            Err(error) => {
                let failure = Failure { part: Part::Command, cause: Cause::Host(error) };
                self.go_on(failure, Errand::Reset, now); // E5
                self.wants_retune = false;
            }
        }
    }

    /// Resets controller and card. `false`: the card does not come back, and is lost.
    pub(super) fn reset_host(&mut self, now: Instant) -> bool {
        self.counts.resets += 1;
        let back = self.controller.reset(now).ok();
        let comes_back = back.is_some_and(|back| self.goes_on_with(back));
        if comes_back {
            self.wants_retune = false;
            self.lose_cache(); // O5
            self.unasked_in_doubt(); // A3: a card that was reset says nothing of before
        } else {
            self.lose_card();
        }
        comes_back
    }

    /// Goes on with the card that came `back`, if it can (E6).
    fn goes_on_with(&mut self, back: Target) -> bool {
        let can = self.target.is_still(&back);
        if can {
            let capabilities = self.controller.capabilities();
            self.most_packed = Most::of(&self.policy, &back, capabilities).unwrap_or_default();
            self.cache.is_off = self.target.cache_on && !back.cache_on;
            // Flushes were promised, and tell of what was lost (O5).
            self.target = Target { cache_on: self.target.cache_on, ..back };
        }
        can
    }

    /// Resets controller and card, and goes on with the request if that helps.
    pub(super) fn reset(&mut self, now: Instant) {
        if !self.reset_host(now) {
            return self.release_bus(Status::Gone);
        }
        let bus = self.bus.as_mut().expect("it was reset for it");
        if core::mem::take(&mut bus.reset_before_last) {
            bus.failure = None;
            self.next_transfer(now); // E2
        } else {
            self.decide(now);
        }
    }

    /// The card is ready again: what becomes of the request?
    pub(super) fn decide(&mut self, now: Instant) {
        let bus = self.bus.as_mut().expect("it was recovered for it");
        let Some(failure) = bus.failure else { unreachable!("it was recovered from something") };
        if let Some(status) = bus.over {
            return self.release_bus(status); // U3
        }
        if !self.pack.is_empty() {
            return self.packed_failed(failure, now);
        }
        let slot = &mut self.slots[bus.slot.index()];
        let is_apart = slot.operation.is_some();
        if is_apart && bus.overdue {
            return self.release_bus(status_of(failure)); // O4
        }
        if !is_apart && slot.left() == 0 {
            return self.all_over(now); // E4: only the stop failed
        }
        slot.begin_again();
        match slot.verdict(failure) {
            Verdict::Again => {
                bus.failure = None;
                self.next_transfer(now);
            }
            Verdict::AgainAfterReset => {
                bus.reset_before_last = true;
                bus.next(Errand::Reset, now);
            }
            Verdict::Ends(status) => self.release_bus(status),
        }
    }
}

/// What becomes of a request of which a transfer failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is tried again.
    Again,
    /// As [`Self::Again`], once controller and card have been reset.
    AgainAfterReset,
    /// It ends.
    Ends(Status),
}

impl Slot {
    /// A transfer failed with `failure`, and something is left to transfer.
    pub(super) fn verdict(&mut self, failure: Failure) -> Verdict {
        if self.single {
            self.sector_tries += 1;
            if self.sector_tries >= SECTOR_TRIES {
                return Verdict::Ends(status_of(failure)); // E3
            }
        } else if self.retries == RETRIES_MAX {
            let is_whole = self.direction == Direction::Write || self.operation.is_some();
            if is_whole || self.left() == self.unit {
                return Verdict::Ends(status_of(failure));
            }
            self.single = true; // E3
        } else {
            if failure.part == Part::Data {
                self.retries = self.retries.max(RETRIES_MAX - DATA_RETRIES); // E1
            }
            self.retries += 1;
            if self.retries == RETRIES_MAX {
                return Verdict::AgainAfterReset; // E2
            }
        }
        Verdict::Again
    }
}

/// How a request ends that failed with `failure`.
const fn status_of(failure: Failure) -> Status {
    match failure.cause {
        Cause::Gone => Status::Gone,
        Cause::Host(HostError::Timeout) => Status::Timeout,
        Cause::Card(status) if status.has(CardStatus::CARD_ECC_FAILED) => Status::Medium,
        Cause::Host(_) | Cause::Card(_) => Status::IoError,
    }
}
