//! The command queue engine: it has the bus, and as many requests as it has places for.
//!
//! A request that is prepared is given to the engine as a task; the interrupt handler hears of its
//! end, and deferred work does the rest. All that the engine itself needs is deferred work's, a
//! [step](step) at a time: it is [turned on](change) when a request is ready, turned off when somebody
//! else needs the bus, and [recovered](recovery) when something failed. [Direct commands](direct) go
//! through it, too.
//!
//! ```text
//!        ready ──► SwitchQueue ─ Status ─ Enable ──►
//!   off                                              on ─ failure ─► recovery ──► on
//!        ◄── Status ─ SwitchQueue ─ Disable ◄──                         └─ Reset ──► off
//! ```

mod change;
pub(super) mod direct;
mod recovery;
mod step;
mod task;

pub use recovery::{CLEAR_LIMIT, HALT_LIMIT, LAST_HALT_LIMIT, TASK_LIMIT};
pub(super) use task::Mark;

use super::errand::Phase;
use super::order::Fifo;
use super::standby::Power;
use super::{Context, Mmc};
use crate::controller::HostController;
use crate::engine::{EngineEvent, QueueEngine};
use crate::exchange::{Cause, Failure};
use blockyard::status::Status;
use blockyard::time::Instant;
use direct::Direct;
use step::{Change, Recovery};

/// The engine of a host, and its tasks.
#[derive(Debug)]
pub(super) struct Cqe {
    state: State,
    /// In the order in which they were given to it.
    pub(super) tasks: Fifo,
    direct: Direct,
    /// The bus was tuned, and no task given since: one is, before it is tuned again.
    owes_task: bool,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// The bus is free, and the card's queue off.
    Off,
    /// It has the bus.
    On,
    /// On the way between the two.
    Changing(Change),
}

impl Cqe {
    pub(super) fn new(depth: u8) -> Self {
        Self { state: State::Off, tasks: Fifo::new(depth), direct: Direct::Free, owes_task: false }
    }

    pub(super) const fn is_recovering(&self) -> bool {
        matches!(&self.state, State::Changing(change) if change.recovers())
    }

    const fn is_off(&self) -> bool {
        matches!(self.state, State::Off)
    }

    pub(super) const fn is_on(&self) -> bool {
        matches!(self.state, State::On)
    }

    fn is_idle(&self) -> bool {
        self.tasks.first().is_none() && !self.direct.is_sent()
    }
}

impl<H: HostController> Mmc<H> {
    /// The engine says `event`: only notes it.
    pub(super) fn engine_says(&mut self, event: EngineEvent, now: Instant) {
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
                !self.engine_obeyed(&change, event, now)
            }
            (Some(State::On), EngineEvent::Halted | EngineEvent::Cleared) => true,
        };
        self.counts.strays += u64::from(is_stray);
    }

    /// It is `now`: what has taken too long is given up.
    ///
    /// Not inlined, for hosts without an engine look at the clock as often.
    #[inline(never)]
    pub(super) fn tick_engine(&mut self, now: Instant) {
        let Some(cqe) = &mut self.cqe else { return };
        match &mut cqe.state {
            State::Changing(Change { phase: Phase::Running(exchange, limit), .. })
                if *limit <= now =>
            {
                exchange.timed_out();
                self.controller.abort(now);
                self.engine_sent(now);
            }
            State::Changing(Change { phase: Phase::Told(limit), .. }) if *limit <= now => {
                self.engine_is_deaf(now);
            }
            State::On => self.look_at_tasks(now),
            State::Changing(_) | State::Off => {}
        }
    }

    /// When something is to be done although nothing comes from the controller.
    pub(super) fn engine_wakes_at(&self) -> Option<Instant> {
        let cqe = self.cqe.as_ref()?;
        match cqe.state {
            State::Changing(change) => change.phase.wakes_at(),
            State::On => self.task_limit(cqe),
            State::Off => None,
        }
    }

    /// The card is gone, and with it all tasks; `by` does the rest for them.
    pub(super) fn lose_tasks(&mut self, by: Context) {
        let Some(cqe) = &mut self.cqe else { return };
        // An act, or the transaction that is over, has still to end what it began.
        let ends_itself = matches!(
            cqe.state,
            State::Changing(Change { phase: Phase::Begun | Phase::Running(..), .. })
        );
        if !ends_itself {
            cqe.state = State::Off;
        }
        self.lose_direct();
        while let Some(slot) = self.cqe.as_ref().and_then(|cqe| cqe.tasks.first()) {
            self.cqe.as_mut().expect("it has a task").tasks.remove(slot);
            self.retire(slot, Status::Gone, by);
        }
    }

    /// Whether a direct command has not ended.
    pub(super) fn has_direct(&self) -> bool {
        self.cqe.as_ref().is_some_and(|cqe| cqe.direct.is_sent())
    }

    /// Whether somebody waits for the engine to lose the bus, but for requests.
    pub(super) fn engine_is_to_leave(&self) -> bool {
        self.exclusive.is_some() || self.power != Power::On
    }

    /// Whether there is no engine that has the bus.
    pub(super) fn engine_is_off(&self) -> bool {
        self.cqe.as_ref().is_none_or(Cqe::is_off)
    }

    /// The engine. Its controller had one when this was made.
    fn engine(&mut self) -> &mut dyn QueueEngine {
        self.controller.engine().expect("a controller does not lose its engine")
    }

    fn engine_is(&mut self, state: State) {
        self.cqe.as_mut().expect("it has an engine").state = state;
    }

    /// What is known of the recovery of the engine, while it is recovered.
    fn recovery(&mut self) -> Option<&mut Recovery> {
        match self.cqe.as_mut().map(|cqe| &mut cqe.state) {
            Some(State::Changing(change)) => change.recovery(),
            _ => None,
        }
    }

    fn change(&mut self) -> &mut Change {
        match self.cqe.as_mut().map(|cqe| &mut cqe.state) {
            Some(State::Changing(change)) => change,
            _ => unreachable!("the engine is not being changed"),
        }
    }
}
