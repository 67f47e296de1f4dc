//! Deferred work for the engine, one step at a time.

use crate::block::act::ActKind;
use crate::block::claim::{Phase, REQUEST_LIMIT};
use crate::block::mmc::Mmc;
use crate::block::power::Power;
use crate::block::tasks::change::{Change, Step};
use crate::block::tasks::state::{Cqe, State};
use crate::card::time::EXTENSION_WRITE;
use crate::command::{Command, SwitchAccess};
use crate::controller::{HostController, MmcRequest};
use crate::exchange::Exchange;
use crate::register::ext_csd::index::CMDQ_MODE_EN;
use crate::register::extension::byte_block;
use blockyard::time::Instant;

/// Returns the CMD6 of eMMC that turns the card's queue `on`, or off.
fn switch_queue(on: bool) -> Command {
    Command::switch(SwitchAccess::WriteByte, CMDQ_MODE_EN, u8::from(on))
}

impl<H: HostController> Mmc<H> {
    /// Returns the act that deferred work has to do for the engine.
    pub(in crate::block) fn due_of_engine(&self, now: Instant) -> Option<ActKind> {
        let cqe = self.cqe.as_ref()?;
        match cqe.state {
            State::Changing(Change { step, phase: Phase::Due(at), .. }) if at <= now => {
                Some(step.act())
            }
            State::Changing(_) => None,
            State::On | State::Off => self.first_step(cqe).map(Step::act),
        }
    }

    /// Returns whether deferred work may have something to do for the engine. Where the answer is
    /// no, it has nothing to do. `request_waits`: a request waits for the engine.
    pub(in crate::block) fn engine_may_step(&self, cqe: &Cqe, request_waits: bool) -> bool {
        match &cqe.state {
            State::Changing(change) => matches!(change.phase, Phase::Due(_)),
            State::On => self.retune_needed || self.engine_must_leave(),
            State::Off => request_waits,
        }
    }

    /// Returns the first step of turning the engine on or off, if that is due.
    fn first_step(&self, cqe: &Cqe) -> Option<Step> {
        let is_wanted = !self.ready.is_empty();
        match cqe.state {
            State::On if self.wants_bus(is_wanted) && cqe.is_idle() => Some(Step::Disable),
            // [exclusive-waits-for-idle]: no request is ready while an exclusive operation has the
            // bus.
            State::Off if is_wanted && self.tunes_before_tasks() => Some(Step::Retune),
            State::Off if is_wanted => Some(Step::QueueOn),
            _ => None,
        }
    }

    /// Returns whether another user wants the bus as soon as the engine has no task.
    fn wants_bus(&self, request_waits: bool) -> bool {
        let leaves = matches!(self.power, Power::Disabling(_)) && self.slots_in_use == 0;
        let operates = self.exclusive_is_next().is_some_and(|slot| self.needs_bus(slot));
        (self.tunes_before_tasks() && request_waits) || operates || leaves
    }

    /// Returns whether the bus is to be tuned before a task is queued. A bus that drifts with each
    /// transfer is thus tuned once for each task.
    pub(super) fn tunes_before_tasks(&self) -> bool {
        self.retune_needed && self.cqe.as_ref().is_some_and(|cqe| !cqe.must_queue_before_tuning)
    }

    /// Begins an act for the engine.
    pub(in crate::block) fn claim_engine(&mut self, now: Instant) {
        let first = self.cqe.as_ref().and_then(|cqe| self.first_step(cqe));
        let cqe = self.cqe.as_mut().expect("engine with a step due");
        debug_assert!(self.bus.is_none(), "[one-claim-on-bus]: a step of the engine");
        match &mut cqe.state {
            State::Changing(change) => change.phase = Phase::Begun,
            state => {
                let step = first.expect("first step of an engine with a step due");
                *state = State::Changing(Change::begins_with(step, Phase::Begun, now));
            }
        }
    }

    /// Ends an act for the engine: its step is done, or under way.
    pub(in crate::block) fn engine_step(&mut self, now: Instant) {
        if self.card_gone {
            return self.set_engine_state(State::Off);
        }
        match self.change().step {
            Step::Retune => self.retune_before_tasks(now),
            Step::QueueOn => self.turn_queue(true, now),
            Step::Enable => {
                self.engine().enable(now);
                self.set_engine_state(State::On);
            }
            Step::Disable => {
                self.engine().disable(now);
                self.change().next(Step::QueueOff, now);
            }
            Step::QueueOff => self.turn_queue(false, now),
            Step::Status => self.send_for_engine(Command::send_status(self.target.rca), now),
            Step::HandleStatus(answer) => {
                self.change().step = Step::Status; // for a card that is still busy
                self.handle_card_status(&answer, now);
            }
            Step::Stop(direction) => {
                self.send_for_engine(Command::stop_transmission(direction), now);
            }
            Step::Discard => {
                let is_sd = self.target.performance.is_some();
                let discard =
                    if is_sd { Command::sd_discard_queue } else { Command::discard_queue };
                self.send_for_engine(discard(), now);
            }
            Step::Halt | Step::HaltAgain | Step::Clear | Step::ClearUnhalted => {
                self.command_engine(now)
            }
            Step::Restart => self.restart_engine(now),
            Step::Reset => self.reset_engine(now),
        }
    }

    /// Turns the card's queue `on`, or off: by CMD6, or by CMD49 of SD.
    fn turn_queue(&mut self, on: bool, now: Instant) {
        let Some(place) = self.target.performance else {
            return self.send_for_engine(switch_queue(on), now);
        };
        debug_assert!(self.engine_exchange().is_none(), "the block is in use");
        *self.controller.block() = byte_block(u8::from(on));
        self.send_for_engine(Command::write_extension_byte(place.queue_enable()), now);
    }

    /// Puts `command` on the bus for the engine.
    fn send_for_engine(&mut self, command: Command, now: Instant) {
        debug_assert!(self.bus.is_none(), "[one-claim-on-bus]: {command} for the engine");
        let limit = match self.change().step {
            Step::Stop(_) => self.target.write_limit,
            _ if command.data.is_some() => EXTENSION_WRITE,
            _ => self.target.switch_limit,
        };
        let request = MmcRequest::by_block(command, limit);
        // During a recovery, the response may be about tasks that were under way
        // ([suspect-tasks-redone]).
        let after_write = self.has_unconfirmed_write() && !self.change().recovers();
        let busy_detect = self.controller.capabilities().busy_detect;
        let exchange = Exchange::new(&request, busy_detect).after_write(after_write);
        self.controller.start(&request, now);
        self.change().phase = Phase::Running(exchange, now + REQUEST_LIMIT);
    }

    /// Returns the MMC request on the bus, where it is for the engine.
    pub(in crate::block) fn engine_exchange(&mut self) -> Option<&mut Exchange> {
        match &mut self.cqe.as_mut()?.state {
            State::Changing(Change { phase: Phase::Running(exchange, _), .. }) => Some(exchange),
            _ => None,
        }
    }
}
