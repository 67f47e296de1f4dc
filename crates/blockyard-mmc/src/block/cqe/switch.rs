//! Turning the engine on and off, and what the card reports meanwhile.
//!
//! CMD6, or CMD49 of SD, turns the card's queue on before the engine, and off after it. Only the
//! status that follows says whether that worked. A card that does not become ready, or does not
//! take the command, is reset. Where the card's queue cannot be turned on, the first request in
//! line fails, so that this does not repeat for ever.

use crate::block::act::Context;
use crate::block::claim::Phase;
use crate::block::mmc::Mmc;
use crate::block::tasks::change::{Aim, Change, Recovery, Step};
use crate::block::tasks::state::{Cqe, State};
use crate::block::verdict::{COMMAND_TRIES, Verdict};
use crate::command::state::CardState;
use crate::command::status::Status;
use crate::controller::{HostController, HostError, Part};
use crate::engine::TaskSet;
use crate::exchange::{Cause, Exchange, Failure};
use blockyard::status;
use blockyard::time::Instant;

/// Returns whether the card reports that `exchange` failed.
fn is_by_card(exchange: &Exchange) -> bool {
    exchange.failure().is_some_and(|failure| matches!(failure.cause, Cause::Card(_)))
}

impl<H: HostController> Mmc<H> {
    /// Acts on the end of the MMC request for the engine.
    pub(in crate::block) fn engine_request_ended(&mut self, now: Instant) {
        let &mut Change { step, phase: Phase::Running(exchange, _), .. } = self.change() else {
            unreachable!("an MMC request of the engine ends while it runs")
        };
        if exchange.exception() {
            self.exception_at_engine();
        }
        if exchange.failure().is_some_and(|failure| failure.cause == Cause::Gone) {
            return self.set_engine_state(State::Off);
        }
        let is_hidden = exchange.failure().is_some_and(|failure| failure.hides_answer());
        if (is_by_card(&exchange) || is_hidden) && self.is_recovering() {
            self.distrust_tasks(); // [suspect-tasks-redone]
        }
        let is_of_before =
            exchange.status().is_some_and(|status| status.has(Status::OF_WORK_BEFORE));
        if is_of_before && self.is_recovering() {
            match self.begun_write(TaskSet::NONE) {
                TaskSet::NONE => self.unconfirmed_write_failed(),
                _ => self.unconfirmed_write_in_doubt(), // [late-error-is-the-writes]
            }
        } else {
            self.check_unconfirmed_write(&exchange);
        }
        // A card that did not get the data of CMD49 waits for it, and has not changed its queue.
        let lacks_data = exchange.failure().is_some_and(|failure| failure.part == Part::Data);
        if exchange.status().is_none() || lacks_data {
            return self.engine_request_unanswered(&exchange, now);
        }
        match step {
            Step::QueueOn => self.change().once_ready(Some(Step::Enable), now),
            Step::QueueOff => self.change().once_ready(None, now),
            Step::Discard => self.change().once_ready(Some(Step::HaltAgain), now),
            // The failure of the transfer is known, and CMD13 asks for the card's state.
            Step::Stop(_) => self.change().next(Step::Status, now),
            Step::Status => self.change().next(Step::HandleStatus(exchange), now),
            _ => unreachable!("{step:?} is no MMC request"),
        }
    }

    /// Acts on a command without a response, or whose data failed: it is sent again once the card
    /// has reported its status, or controller and card are reset.
    fn engine_request_unanswered(&mut self, exchange: &Exchange, now: Instant) {
        let change = self.change();
        match change.step {
            Step::Status | Step::Stop(_) => {}
            again => change.then = Some(again),
        }
        self.try_again(Step::Status, exchange.failure(), now);
    }

    /// Makes `step` due, or a reset if the steps tried before have failed too often.
    fn try_again(&mut self, step: Step, failure: Option<Failure>, now: Instant) {
        let change = self.change();
        change.tries += 1;
        if change.tries < COMMAND_TRIES {
            change.next(step, now);
        } else {
            self.reset_engine_after(failure, now);
        }
    }

    /// Makes a reset due, as the card does not do what it was told to. The reason is `failure`.
    fn reset_engine_after(&mut self, failure: Option<Failure>, now: Instant) {
        const NOT_READY: Failure =
            Failure { part: Part::Busy, cause: Cause::Host(HostError::Timeout) };
        let change = self.change();
        if let Aim::Switch(why) = &mut change.aim {
            *why = Some(failure.unwrap_or(NOT_READY));
        }
        change.next(Step::Reset, now);
    }

    /// Acts on the card's status, in deferred work.
    pub(super) fn handle_card_status(&mut self, exchange: &Exchange, now: Instant) {
        let status = exchange.status().expect("status of a card that answered CMD13");
        let fails = is_by_card(exchange);
        let change = self.change();
        match status.state() {
            Some(_) if status.is_ready() && fails && !change.recovers() => {
                self.reset_engine_after(exchange.failure(), now);
            }
            Some(_) if status.is_ready() => {
                if let Some(recovery) = change.recovery() {
                    recovery.overdue = false;
                }
                match change.then {
                    Some(step) => change.next(step, now),
                    None => self.set_engine_state(State::Off),
                }
            }
            Some(CardState::Transfer | CardState::Programming) => match change.watch.again(now) {
                Some(at) => change.phase = Phase::Due(at),
                None => self.reset_engine_after(None, now),
            },
            state => match state.and_then(CardState::transfers) {
                Some(direction) => {
                    self.try_again(Step::Stop(direction), None, now);
                }
                None => self.reset_engine_after(None, now),
            },
        }
    }

    /// Tunes the bus while a request is ready and the engine is off.
    pub(super) fn retune_before_tasks(&mut self, now: Instant) {
        debug_assert!(self.cqe.as_ref().is_some_and(Cqe::is_idle), "tasks while the bus is tuned");
        match self.retune_bus(now) {
            Ok(()) => {
                self.cqe
                    .as_mut()
                    .expect("engine that tunes the bus before its tasks")
                    .must_queue_before_tuning = true;
                self.set_engine_state(State::Off);
            }
            Err(error) => {
                let failure = Failure { part: Part::Command, cause: Cause::Host(error) };
                self.reset_engine_after(Some(failure), now); // data or a response came damaged
            }
        }
    }

    /// Resets controller and card, which leaves the engine off.
    pub(super) fn reset_engine(&mut self, now: Instant) {
        let aim = self.change().aim;
        let comes_back = self.reset_host(now);
        self.set_engine_state(State::Off);
        if !comes_back {
            return;
        }
        match aim {
            Aim::Recovery(Recovery { overdue, .. }) => {
                // This reset serves those tasks that are to be tried again after a reset.
                let _ = self.decide_tasks();
                if overdue {
                    let flush = self.exclusive.expect("flush whose direct command was late");
                    // An operation that exceeded its limit is not tried again.
                    self.retire(flush, status::Status::Timeout, Context::Thread);
                }
            }
            Aim::Switch(Some(failure)) => self.fail_first(failure),
            Aim::Switch(None) => {}
        }
    }

    /// Counts it as a failure of the request that is first in line that the card's queue could not
    /// be turned on.
    fn fail_first(&mut self, failure: Failure) {
        let Some(slot) = self.ready.first() else { return };
        self.counts.failures += 1;
        if let Verdict::Ends(status) = self.slots[slot.index()].verdict(failure) {
            self.ready.take(slot);
            self.retire(slot, status, self.ending_context());
        }
    }
}
