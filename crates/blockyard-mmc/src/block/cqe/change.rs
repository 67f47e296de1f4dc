//! Turning the engine on and off, and what the card says meanwhile.
//!
//! The card's queue is turned on before the engine, and off after it, with CMD6; how that came out,
//! only the status that follows says. A card that does not become ready, or does not take the
//! command, is reset. Where its queue cannot be turned on, that is a failure of the request which is
//! first in line, so it does not go on for ever.

use super::State;
use super::step::{Aim, Change, Recovery, Step};
use crate::block::errand::Phase;
use crate::block::recovery::{COMMAND_TRIES, Verdict};
use crate::block::{Context, Mmc};
use crate::command::state::CardState;
use crate::command::status::Status;
use crate::command::{Command, SwitchAccess};
use crate::controller::{HostController, HostError, Part};
use crate::engine::TaskSet;
use crate::exchange::{Cause, Exchange, Failure};
use crate::register::ext_csd::index::CMDQ_MODE_EN;
use blockyard::status;
use blockyard::time::Instant;

/// CMD6 by which the card's queue goes `on`, or off.
pub(super) fn switch_queue(on: bool) -> Command {
    Command::switch(SwitchAccess::WriteByte, CMDQ_MODE_EN, u8::from(on))
}

/// Whether it is the card that says that `exchange` failed.
fn is_by_card(exchange: &Exchange) -> bool {
    exchange.failure().is_some_and(|failure| matches!(failure.cause, Cause::Card(_)))
}

impl<H: HostController> Mmc<H> {
    /// The transaction for the engine is over.
    pub(in crate::block) fn engine_sent(&mut self, now: Instant) {
        let &mut Change { step, phase: Phase::Running(exchange, _), .. } = self.change() else {
            unreachable!("only what runs ends")
        };
        if exchange.exception() {
            self.exception_at_engine();
        }
        if exchange.failure().is_some_and(|failure| failure.cause == Cause::Gone) {
            return self.engine_is(State::Off);
        }
        let is_hidden = exchange.failure().is_some_and(|failure| failure.hides_answer());
        if (is_by_card(&exchange) || is_hidden) && self.is_recovering() {
            self.distrust_tasks(); // T3
        }
        let is_of_before =
            exchange.status().is_some_and(|status| status.has(Status::OF_WORK_BEFORE));
        if is_of_before && self.is_recovering() {
            match self.begun_write(TaskSet::NONE) {
                TaskSet::NONE => self.unasked_failed(),
                _ => self.unasked_in_doubt(), // A5
            }
        } else {
            self.heed_unasked(&exchange);
        }
        if exchange.status().is_none() {
            return self.no_answer(&exchange, now);
        }
        match step {
            Step::QueueOn => self.change().once_ready(Some(Step::Enable), now),
            Step::QueueOff => self.change().once_ready(None, now),
            Step::Discard => self.change().once_ready(Some(Step::HaltAgain), now),
            // Whatever it says of the transfer is known; how the card is, CMD13 says.
            Step::Stop => self.change().next(Step::Status, now),
            Step::Status => self.change().next(Step::Heed(exchange), now),
            _ => unreachable!("{step:?} is no transaction"),
        }
    }

    /// A command was not answered: again, once the card has said how it is, or a reset.
    fn no_answer(&mut self, exchange: &Exchange, now: Instant) {
        let change = self.change();
        match change.step {
            Step::Status | Step::Stop => {}
            again => change.then = Some(again),
        }
        self.try_again(Step::Status, exchange.failure(), now);
    }

    /// `step`, unless what was tried has not helped too often.
    fn try_again(&mut self, step: Step, failure: Option<Failure>, now: Instant) {
        let change = self.change();
        change.tries += 1;
        if change.tries < COMMAND_TRIES {
            change.next(step, now);
        } else {
            self.reset_for(failure, now);
        }
    }

    /// The card does not do as it should: it is reset.
    fn reset_for(&mut self, failure: Option<Failure>, now: Instant) {
        const NOT_READY: Failure =
            Failure { part: Part::Busy, cause: Cause::Host(HostError::Timeout) };
        let change = self.change();
        if let Aim::Switch(why) = &mut change.aim {
            *why = Some(failure.unwrap_or(NOT_READY));
        }
        change.next(Step::Reset, now);
    }

    /// The card has said how it is, and deferred work has seen it.
    pub(super) fn card_said(&mut self, exchange: &Exchange, now: Instant) {
        let status = exchange.status().expect("it was looked at");
        let fails = is_by_card(exchange);
        let change = self.change();
        match status.state() {
            Some(_) if status.is_ready() && fails && !change.recovers() => {
                self.reset_for(exchange.failure(), now);
            }
            Some(_) if status.is_ready() => {
                if let Some(recovery) = change.recovery() {
                    recovery.overdue = false;
                }
                match change.then {
                    Some(step) => change.next(step, now),
                    None => self.engine_is(State::Off),
                }
            }
            Some(CardState::Transfer | CardState::Programming) => match change.watch.again(now) {
                Some(at) => change.phase = Phase::Due(at),
                None => self.reset_for(None, now),
            },
            state => match state.and_then(CardState::transfers) {
                Some(direction) => {
                    change.stops = direction;
                    self.try_again(Step::Stop, None, now);
                }
                None => self.reset_for(None, now),
            },
        }
    }

    /// Tunes the bus, as a request is ready and the engine off.
    pub(super) fn retune_before_tasks(&mut self, now: Instant) {
        match self.tune_again(now) {
            Ok(()) => {
                self.cqe.as_mut().expect("it has an engine").owes_task = true;
                self.engine_is(State::Off);
            }
            Err(error) => {
                let failure = Failure { part: Part::Command, cause: Cause::Host(error) };
                self.reset_for(Some(failure), now); // E5
            }
        }
    }

    /// Resets controller and card, which leaves the engine off (N6).
    pub(super) fn reset_engine(&mut self, now: Instant) {
        let aim = self.change().aim;
        let comes_back = self.reset_host(now);
        self.engine_is(State::Off);
        if !comes_back {
            return;
        }
        match aim {
            Aim::Recovery(Recovery { overdue, .. }) => {
                // They are reset already, for those that are to be tried after a reset.
                let _ = self.decide_tasks();
                if overdue {
                    let flush = self.exclusive.expect("it waited to be begun anew");
                    self.retire(flush, status::Status::Timeout, Context::Thread); // O4
                }
            }
            Aim::Switch(Some(failure)) => self.blame_first(failure),
            Aim::Switch(None) => {}
        }
    }

    /// The queue could not be turned on for the request that is first in line.
    fn blame_first(&mut self, failure: Failure) {
        let Some(slot) = self.ready.first() else { return };
        self.counts.failures += 1;
        if let Verdict::Ends(status) = self.slots[slot.index()].verdict(failure) {
            self.ready.take(slot);
            self.retire(slot, status, self.who_ends());
        }
    }
}
