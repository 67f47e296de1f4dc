//! What deferred work does for the engine, a step at a time.

use super::{Cqe, State, change};
use crate::block::errand::{BUSY_LIMIT, Phase, TRANSACTION_LIMIT, Watch};
use crate::block::standby::Power;
use crate::block::{ActKind, Context, Mmc};
use crate::command::{Command, Direction};
use crate::controller::{HostController, MmcRequest};
use crate::exchange::{Exchange, Failure};
use blockyard::time::{Duration, Instant};

/// How the engine is turned on or off, or recovered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) step: Step,
    pub(super) phase: Phase,
    /// What follows once the card is ready; `None`: nothing, the engine is off.
    pub(super) then: Option<Step>,
    pub(super) watch: Watch,
    /// What CMD12 ends.
    pub(super) stops: Direction,
    /// How often commands have failed, or not helped.
    pub(super) tries: u8,
    /// What for.
    pub(super) aim: Aim,
}

/// What the engine is changed for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Aim {
    /// To be on, or off. The card's queue may turn out not to go on; it is known why.
    Switch(Option<Failure>),
    /// To go on, as something failed.
    Recovery(Recovery),
}

/// What is known while the engine is recovered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recovery {
    /// The card has said that something failed, or may have: what is noted as done may be meant (T3).
    pub(super) distrusts: bool,
    /// A flush has taken as long as it may: a card that is busy with it still is given no more time (O4).
    pub(super) overdue: bool,
    /// The engine has not halted, or not forgotten its tasks.
    pub(super) is_stuck: bool,
}

/// A step of deferred work for the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The bus is tuned, with the engine off.
    Retune,
    /// CMD6: the card's queue goes on.
    QueueOn,
    /// The engine gets the bus.
    Enable,
    /// The engine, which has no task, loses it.
    Disable,
    /// CMD6: the card's queue goes off.
    QueueOff,
    /// The engine is to halt.
    Halt,
    /// CMD13, until the card is ready.
    Status,
    /// What the card has said to it is acted on.
    Heed(Exchange),
    /// CMD12.
    Stop,
    /// CMD48.
    Discard,
    /// The engine is to halt, once more.
    HaltAgain,
    /// The engine is to forget its tasks.
    Clear,
    /// It is disabled and enabled.
    Restart,
    /// Controller and card are reset.
    Reset,
}

impl Step {
    const fn act(self) -> ActKind {
        match self {
            Self::Retune => ActKind::Retune,
            Self::QueueOn | Self::QueueOff => ActKind::SwitchQueue,
            Self::Enable => ActKind::EnableEngine,
            Self::Disable => ActKind::DisableEngine,
            Self::Halt | Self::HaltAgain => ActKind::HaltEngine,
            Self::Status => ActKind::SendStatus,
            Self::Heed(_) => ActKind::HandleStatus,
            Self::Stop => ActKind::SendStop,
            Self::Discard => ActKind::DiscardTasks,
            Self::Clear => ActKind::ClearTasks,
            Self::Restart => ActKind::RestartEngine,
            Self::Reset => ActKind::Reset,
        }
    }
}

impl Change {
    pub(super) fn begins_with(step: Step, phase: Phase, now: Instant) -> Self {
        Self {
            step,
            phase,
            then: None,
            watch: Watch::until(now + BUSY_LIMIT),
            stops: Direction::Read,
            tries: 0,
            aim: Aim::Switch(None),
        }
    }

    pub(super) const fn recovers(&self) -> bool {
        matches!(self.aim, Aim::Recovery(_))
    }

    /// What is known of the recovery that this is, if it is one.
    pub(super) const fn recovery(&mut self) -> Option<&mut Recovery> {
        match &mut self.aim {
            Aim::Recovery(recovery) => Some(recovery),
            Aim::Switch(_) => None,
        }
    }

    pub(super) const fn next(&mut self, step: Step, now: Instant) {
        (self.step, self.phase) = (step, Phase::Due(now));
    }

    /// The card is asked until it is ready; `then` follows.
    pub(super) fn once_ready(&mut self, then: Option<Step>, now: Instant) {
        let is_overdue = self.recovery().is_some_and(|recovery| recovery.overdue);
        let grace = if is_overdue { Duration::ZERO } else { BUSY_LIMIT };
        (self.then, self.watch) = (then, Watch::until(now + grace));
        self.next(Step::Status, now);
    }
}

impl<H: HostController> Mmc<H> {
    /// What `context` has to do for the engine.
    pub(in crate::block) fn due_of_engine(
        &self,
        context: Context,
        now: Instant,
    ) -> Option<ActKind> {
        let cqe = self.cqe.as_ref().filter(|_| context == Context::Deferred && !self.gone)?;
        match cqe.state {
            State::Changing(Change { step, phase: Phase::Due(at), .. }) if at <= now => {
                Some(step.act())
            }
            State::Changing(_) => None,
            State::On | State::Off => self.first_step(cqe).map(Step::act),
        }
    }

    /// Whether deferred work may have something to do for the engine, where a request waits for it or not.
    /// Where it says not, it has not.
    pub(in crate::block) fn engine_may_step(&self, cqe: &Cqe, request_waits: bool) -> bool {
        match &cqe.state {
            State::Changing(change) => matches!(change.phase, Phase::Due(_)),
            State::On => (request_waits && self.wants_retune) || self.engine_is_to_leave(),
            State::Off => request_waits,
        }
    }

    /// With what the engine is turned on, or off, if it is to be.
    fn first_step(&self, cqe: &Cqe) -> Option<Step> {
        let is_wanted = !self.ready.is_empty();
        match cqe.state {
            State::On if self.wants_bus(is_wanted) && cqe.is_idle() => Some(Step::Disable),
            // O1: nothing is ready while an exclusive operation has the bus.
            State::Off if is_wanted && self.tunes_before_tasks() => Some(Step::Retune),
            State::Off if is_wanted => Some(Step::QueueOn),
            _ => None,
        }
    }

    /// Whether somebody else wants the bus as soon as the engine has no task.
    fn wants_bus(&self, request_waits: bool) -> bool {
        let leaves = matches!(self.power, Power::Leaving(_)) && self.held == 0;
        let operates = self.exclusive_is_next().is_some_and(|slot| !self.goes_direct(slot)); // O6
        (self.tunes_before_tasks() && request_waits) || operates || leaves
    }

    /// Whether the bus is to be tuned before a task is given. One that drifts in whatever is sent is so
    /// tuned once for each.
    pub(super) fn tunes_before_tasks(&self) -> bool {
        self.wants_retune && self.cqe.as_ref().is_some_and(|cqe| !cqe.owes_task)
    }

    /// An act for the engine begins.
    pub(in crate::block) fn claim_engine(&mut self, now: Instant) {
        let first = self.cqe.as_ref().and_then(|cqe| self.first_step(cqe));
        let cqe = self.cqe.as_mut().expect("it has something due");
        match &mut cqe.state {
            State::Changing(change) => change.phase = Phase::Begun,
            state => {
                let step = first.expect("it has something due");
                *state = State::Changing(Change::begins_with(step, Phase::Begun, now));
            }
        }
    }

    /// Ends an act for the engine: its step is done, or under way.
    pub(in crate::block) fn engine_step(&mut self, now: Instant) {
        if self.gone {
            return self.engine_is(State::Off);
        }
        match self.change().step {
            Step::Retune => self.retune_before_tasks(now),
            Step::QueueOn => self.send_for_engine(change::switch_queue(true), now),
            Step::Enable => {
                self.engine().enable(now);
                self.engine_is(State::On);
            }
            Step::Disable => {
                self.engine().disable(now);
                self.change().next(Step::QueueOff, now);
            }
            Step::QueueOff => self.send_for_engine(change::switch_queue(false), now),
            Step::Status => self.send_for_engine(Command::send_status(self.target.rca), now),
            Step::Heed(answer) => {
                self.change().step = Step::Status; // if it is busy
                self.card_said(&answer, now);
            }
            Step::Stop => {
                let direction = self.change().stops;
                self.send_for_engine(Command::stop_transmission(direction), now);
            }
            Step::Discard => self.send_for_engine(Command::discard_queue(), now),
            Step::Halt | Step::HaltAgain | Step::Clear => self.command_engine(now),
            Step::Restart => self.restart_engine(now),
            Step::Reset => self.reset_engine(now),
        }
    }

    fn send_for_engine(&mut self, command: Command, now: Instant) {
        let limit = match self.change().step {
            Step::Stop => self.target.write_limit,
            _ => self.target.switch_limit,
        };
        let transaction = MmcRequest::plain(command, limit);
        // While something is recovered from, the tasks that were under way may be meant, too (T3).
        let after_write = self.has_unasked() && !self.change().recovers();
        let exchange = Exchange::new(&transaction, self.policy.busy).after_write(after_write);
        self.controller.start(&transaction, now);
        self.change().phase = Phase::Running(exchange, now + TRANSACTION_LIMIT);
    }

    /// The transaction on the bus, where it is for the engine.
    pub(in crate::block) fn engine_exchange(&mut self) -> Option<&mut Exchange> {
        match &mut self.cqe.as_mut()?.state {
            State::Changing(Change { phase: Phase::Running(exchange, _), .. }) => Some(exchange),
            _ => None,
        }
    }
}
