//! Recovery of failed transfers.
//!
//! First CMD13 asks for the card's status, CMD12 stops a transfer that the card is still at, and
//! CMD13 is repeated until the card is ready. A card that does not answer, or does not become
//! ready, is reset. Then the request is tried again, or ends. A read that fails in its last try is
//! read by the card's own sectors, one by one, each tried [`SECTOR_TRIES`](super::SECTOR_TRIES)
//! times. The first sector that cannot be read ends the request with an error.
//!
//! An SD card could say how many blocks of a failed write are good (ACMD22, which Linux sends). It
//! is not asked: no partial success of a write is reported, and writing the same blocks again costs
//! nothing but time and wear after an error.
//!
//! # Rules
//!
//! - **[retries-bounded]** A request is tried again [`RETRIES_MAX`](super::RETRIES_MAX) times.
//!   After an error of its data, at most [`DATA_RETRIES`](super::DATA_RETRIES) tries are left.
//! - Controller and card are reset before the last of these tries.
//! - **[only-good-blocks-count]** Blocks that came before an error of the bus stay read and are not
//!   read again, as far as they are whole sectors of the card's own. Nothing counts of a write, nor
//!   of a transfer of which the card reports a failure in any response up to the one to CMD13. A
//!   write has also failed if a CMD13 after it was not answered.
//! - Data or a response that came damaged has a tuned bus tuned again before the next
//!   transfer. If tuning fails, controller and card are reset.
//! - The card that comes back from a reset is checked. If it is the same card, requests continue
//!   with the address that it has now, and without what is no longer on (cache, packed commands,
//!   background operations). If it is another card, or one that no longer has what was promised of
//!   it, the card counts as removed. An SD card whose extension registers could not be read has no
//!   cache and no queue. Where requests go through its queue it is reset again, [`RESET_TRIES`]
//!   times in all.

use super::claim::{AfterRecovery, BusStep, Health};
use super::mmc::Mmc;
use super::pack_limit::PackLimit;
use super::unconfirmed::UnconfirmedWrite;
use super::verdict::{COMMAND_TRIES, Verdict, status_of};
use crate::command::state::CardState;
use crate::controller::{HostController, HostError, Part};
use crate::exchange::{Cause, Exchange, Failure};
use crate::target::Target;
use blockyard::status::Status;
use blockyard::time::Instant;

/// The resets after which an SD card without the registers of its queue counts as removed.
const RESET_TRIES: u8 = 3;

/// The failure of a card that has not come back from a transfer.
const NOT_BACK: Failure = Failure { part: Part::Busy, cause: Cause::Host(HostError::Timeout) };

impl<H: HostController> Mmc<H> {
    /// Acts on the end of a CMD13, whose response the asking context has seen by `now`.
    pub(super) fn status_received(&mut self, exchange: &Exchange, now: Instant) {
        let Some(status) = exchange.status() else { return self.command_failed(exchange, now) };
        // A write whose transfer went well can still have failed.
        if let Some(failure) = exchange.failure() {
            self.failed(failure);
        }
        match status.state() {
            Some(CardState::Transfer | CardState::Programming) => {
                self.stops_writes = false;
                self.status_known(status.is_ready(), now);
            }
            state => {
                let step = match state.and_then(CardState::transfers) {
                    Some(direction) => self.step_after_try(BusStep::Stop(direction)),
                    None => BusStep::Reset,
                };
                self.recover_with(NOT_BACK, step, now);
            }
        }
    }

    /// Notes `failure` of a step. The first failure counts, and the card is recovered before
    /// anything else happens.
    pub(super) fn failed(&mut self, failure: Failure) {
        // The recovery stops what the card is at. Of eight writes in an open transfer the sixth has
        // failed on the bus: the five before it have been reported, and their page is programmed
        // when CMD12 closes it.
        self.stops_writes |= self.open.take().is_some_and(|open| open.has_earlier_writes);
        let bus = self.bus.as_mut().expect("claim of a failed step");
        debug_assert_ne!(failure.cause, Cause::Gone, "a removed card is not recovered");
        if failure.cause == Cause::Host(HostError::Damaged) {
            self.retune_needed = self.controller.is_tuned(); // data or a response came damaged
        }
        let slot = &mut self.slots[bus.slot.index()];
        if slot.is_write() || matches!(failure.cause, Cause::Card(_)) {
            slot.done = bus.done_before; // [only-good-blocks-count]
        }
        if bus.fail(failure) {
            self.counts.failures += 1;
        }
    }

    /// Notes `failure` and makes `step` due.
    fn recover_with(&mut self, failure: Failure, step: BusStep, now: Instant) {
        self.failed(failure);
        self.bus.as_mut().expect("claim of a failed step").next(step, now);
    }

    /// Acts on the end of a CMD12.
    pub(super) fn stop_ended(&mut self, exchange: &Exchange, now: Instant) {
        match exchange.status() {
            // The failure of the transfer is known, and CMD13 asks for the card's state.
            Some(_) => self.bus.as_mut().expect("claim of a CMD12").next(BusStep::Status, now),
            None => self.command_failed(exchange, now),
        }
    }

    /// Acts on a command of the recovery without a response: it is sent again, or the card is
    /// reset.
    fn command_failed(&mut self, exchange: &Exchange, now: Instant) {
        match self.step_after_try(BusStep::Status) {
            BusStep::Reset => {
                let failure = exchange.failure().expect("failure of a command without a response");
                self.recover_with(failure, BusStep::Reset, now);
            }
            // The response may have got lost, and a card reports only once that a write failed
            // ([only-good-blocks-count]).
            step => {
                if let Some(failure) = exchange.failure().filter(Failure::hides_answer) {
                    self.failed(failure);
                }
                self.bus.as_mut().expect("claim of a failed command").next(step, now);
            }
        }
    }

    /// Returns `step`, or a reset if the steps tried before have failed too often.
    fn step_after_try(&mut self, step: BusStep) -> BusStep {
        let bus = self.bus.as_mut().expect("claim of a recovery");
        bus.tries += 1;
        debug_assert!(bus.tries <= COMMAND_TRIES, "{} tries of a recovery", bus.tries);
        if bus.tries < COMMAND_TRIES { step } else { BusStep::Reset }
    }

    /// Acts on a card that has been busy beyond its limit.
    pub(super) fn busy_too_long(&mut self, now: Instant) {
        if self.interrupts_background(now) {
            return;
        }
        let bus = self.bus.as_ref().expect("claim of a check");
        if self.unconfirmed == UnconfirmedWrite::Held(bus.slot) && bus.ended().is_none() {
            self.confirm_write(); // it has failed, and is tried again or ends
        }
        self.recover_with(NOT_BACK, BusStep::Reset, now);
        let bus = self.bus.as_mut().expect("claim of a check");
        bus.after_recovery(AfterRecovery::EndOperation);
    }

    /// Acts on the end of the CMD13 before the bus is tuned ([status-before-tuning]).
    pub(super) fn status_before_tuning(&mut self, exchange: &Exchange, now: Instant) {
        match exchange.failure() {
            None => self.next_transfer(now),
            Some(failure) => {
                self.failed(failure);
                self.recover(now);
            }
        }
    }

    /// Tunes the bus again. No write is unconfirmed: the card has answered
    /// [`BusStep::AskBeforeTuning`], or a command that turned the engine off.
    pub(super) fn retune_bus(&mut self, now: Instant) -> Result<(), HostError> {
        debug_assert!(!self.has_unconfirmed_write(), "[status-before-tuning]");
        self.retune_needed = false;
        self.controller.retune(now)
    }

    /// Tunes the bus again, and continues with the request.
    pub(super) fn retune(&mut self, now: Instant) {
        match self.retune_bus(now) {
            Ok(()) => self.next_transfer(now),
            Err(error) => {
                let failure = Failure { part: Part::Command, cause: Cause::Host(error) };
                self.recover_with(failure, BusStep::Reset, now); // data or a response came damaged
            }
        }
    }

    /// Resets controller and card. Returns `false` if the card does not come back.
    pub(super) fn reset_host(&mut self, now: Instant) -> bool {
        debug_assert!(!self.card_gone, "a reset for a card that was removed");
        self.open = None;
        let back = self.reset_until_complete(now);
        let comes_back = back.is_some_and(|back| self.accept_returned(back));
        if comes_back {
            self.retune_needed = false;
            // [reset-loss-fails-flush]
            self.lose_cache();
            // A card that was reset reports nothing of earlier writes.
            self.unconfirmed_write_in_doubt();
        } else {
            self.lose_card();
        }
        comes_back
    }

    /// Resets controller and card, again if an SD card comes back without the registers of the
    /// queue that requests need. Returns the card; `None` if none comes back.
    fn reset_until_complete(&mut self, now: Instant) -> Option<Target> {
        let mut tries = 0;
        loop {
            tries += 1;
            self.counts.resets += 1;
            let back = self.controller.reset(now).ok()?;
            let is_incomplete = self.cqe.is_some() && self.target.lost_queue(&back);
            if tries == RESET_TRIES || !is_incomplete {
                return Some(back);
            }
        }
    }

    /// Accepts the card that came `back`, if the requests can continue with it.
    fn accept_returned(&mut self, back: Target) -> bool {
        let can = self.target.is_still(&back, self.cqe.is_some());
        if can {
            let capabilities = self.controller.capabilities();
            self.pack_limit = PackLimit::of(&self.policy, &back, capabilities).unwrap_or_default();
            self.cache.is_off = !back.cache_on;
            // Flushes were promised, and report what was lost ([reset-loss-fails-flush]).
            self.target = Target { cache_on: self.target.cache_on, ..back };
        }
        can
    }

    /// Resets controller and card, and continues with the request if that helps.
    pub(super) fn reset(&mut self, now: Instant) {
        if !self.reset_host(now) {
            return self.release_bus(Status::Gone);
        }
        let bus = self.bus.as_mut().expect("claim of a reset");
        if matches!(bus.health, Health::Failed(_, AfterRecovery::LastTry)) {
            bus.recovered();
            self.next_transfer(now); // before the last try
        } else {
            self.decide(now);
        }
    }

    /// Decides what becomes of the request, as the card is ready again.
    pub(super) fn decide(&mut self, now: Instant) {
        let bus = self.bus.as_mut().expect("claim of a recovery");
        let Health::Failed(failure, then) = bus.health else {
            unreachable!("nothing was recovered from")
        };
        if let Some(status) = bus.ended() {
            return self.release_bus(status); // the request itself did not fail
        }
        if !self.pack.is_empty() {
            return self.packed_failed(failure, now);
        }
        let slot = &mut self.slots[bus.slot.index()];
        let is_exclusive = slot.is_exclusive();
        debug_assert!(bus.tries <= COMMAND_TRIES, "{} tries", bus.tries);
        if is_exclusive && then == AfterRecovery::EndOperation {
            return self.release_bus(status_of(failure)); // it is not tried again
        }
        if !is_exclusive && slot.left() == 0 {
            return self.finish_request(now); // only the stop failed
        }
        slot.restart_operation();
        match slot.verdict(failure) {
            Verdict::Again => {
                bus.recovered();
                self.next_transfer(now);
            }
            Verdict::AgainAfterReset => {
                bus.after_recovery(AfterRecovery::LastTry);
                bus.next(BusStep::Reset, now);
            }
            Verdict::Ends(status) => self.release_bus(status),
        }
    }
}
