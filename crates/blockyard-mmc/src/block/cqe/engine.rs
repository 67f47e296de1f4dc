//! Events of the engine, its time limits, and the loss of the card.

use crate::block::act::Context;
use crate::block::claim::Phase;
use crate::block::mmc::Mmc;
use crate::block::power::Power;
use crate::block::tasks::change::{Change, Recovery};
use crate::block::tasks::state::{Cqe, State};
use crate::controller::HostController;
use crate::engine::{EngineEvent, QueueEngine};
use crate::exchange::{Cause, Failure};
use blockyard::status::Status;
use blockyard::time::Instant;

impl<H: HostController> Mmc<H> {
    /// Takes note of the engine's `event`.
    pub(in crate::block) fn engine_event(&mut self, event: EngineEvent, now: Instant) {
        let is_stray = match (self.cqe.as_ref().map(|cqe| cqe.state), event) {
            (None | Some(State::Off), _) => true,
            (Some(_), EngineEvent::TaskDone(task)) => !self.task_done(task),
            (Some(_), EngineEvent::DirectDone(response)) => !self.direct_done(response),
            (Some(state), EngineEvent::Failed { tasks, part, error }) => {
                let failure = Failure { part, cause: Cause::Host(error) };
                !self.tasks_failed(state, tasks, failure, now)
            }
            (Some(state), EngineEvent::Responded { command, tasks, status }) => {
                !self.card_responded(state, command, tasks, status, now)
            }
            (Some(State::Changing(change)), EngineEvent::Halted | EngineEvent::Cleared) => {
                !self.engine_answered(&change, event, now)
            }
            (Some(State::On), EngineEvent::Halted | EngineEvent::Cleared) => true,
        };
        self.counts.strays += u64::from(is_stray);
    }

    /// Gives up what has taken too long at `now`.
    ///
    /// Not inlined: hosts without an engine check the time as often.
    #[inline(never)]
    pub(in crate::block) fn tick_engine(&mut self, now: Instant) {
        let Some(cqe) = &mut self.cqe else { return };
        match &mut cqe.state {
            State::Changing(Change { phase: Phase::Running(exchange, limit), .. })
                if *limit <= now =>
            {
                exchange.timed_out();
                self.controller.abort(now);
                self.engine_request_ended(now);
            }
            State::Changing(Change { phase: Phase::AwaitsEngine(limit), .. }) if *limit <= now => {
                self.engine_timed_out(now);
            }
            State::On => self.check_task_limits(now),
            State::Changing(_) | State::Off => {}
        }
    }

    /// Returns the instant at which the engine needs attention although no event arrives.
    pub(in crate::block) fn engine_wakes_at(&self) -> Option<Instant> {
        let cqe = self.cqe.as_ref()?;
        match cqe.state {
            State::Changing(change) => change.phase.wakes_at(),
            State::On => self.task_limit(cqe),
            State::Off => None,
        }
    }

    /// Ends all tasks after the card was removed. The context `by` posts and reports them.
    pub(in crate::block) fn lose_tasks(&mut self, by: Context) {
        let Some(cqe) = &mut self.cqe else { return };
        // An act that has begun, and an MMC request that is over, end the change themselves.
        let ends_itself = matches!(
            cqe.state,
            State::Changing(Change { phase: Phase::Begun | Phase::Running(..), .. })
        );
        if !ends_itself {
            cqe.state = State::Off;
        }
        self.lose_direct();
        while let Some(slot) = self.cqe.as_ref().and_then(|cqe| cqe.tasks.first()) {
            self.cqe.as_mut().expect("engine of a task").tasks.remove(slot);
            self.retire(slot, Status::Gone, by);
        }
        debug_assert!(!self.has_direct(), "a direct command outlives the card");
    }

    /// Returns whether the engine has a direct command.
    pub(in crate::block) fn has_direct(&self) -> bool {
        self.cqe.as_ref().is_some_and(|cqe| cqe.direct.is_sent())
    }

    /// Returns whether an exclusive operation or a host that is being disabled waits for the engine
    /// to lose the bus.
    pub(in crate::block) fn engine_must_leave(&self) -> bool {
        self.exclusive.is_some() || self.power != Power::On
    }

    /// Returns whether no engine has the bus.
    pub(in crate::block) fn engine_is_off(&self) -> bool {
        self.cqe.as_ref().is_none_or(Cqe::is_off)
    }

    /// Returns the controller's engine.
    pub(super) fn engine(&mut self) -> &mut dyn QueueEngine {
        self.controller
            .engine()
            .expect("engine of a controller that had one when the driver was made")
    }

    /// Changes the engine's state.
    pub(super) fn set_engine_state(&mut self, state: State) {
        debug_assert!(
            self.bus.is_none() || !matches!(state, State::On),
            "[one-claim-on-bus]: the engine is turned on"
        );
        self.cqe.as_mut().expect("state of a pipeline's engine").state = state;
    }

    /// Returns what is known of the recovery, while the engine is recovered.
    pub(super) fn recovery(&mut self) -> Option<&mut Recovery> {
        match self.cqe.as_mut().map(|cqe| &mut cqe.state) {
            Some(State::Changing(change)) => change.recovery(),
            _ => None,
        }
    }

    /// Returns the change that is under way.
    pub(super) fn change(&mut self) -> &mut Change {
        match self.cqe.as_mut().map(|cqe| &mut cqe.state) {
            Some(State::Changing(change)) => change,
            _ => unreachable!("no change of the engine is under way"),
        }
    }
}
