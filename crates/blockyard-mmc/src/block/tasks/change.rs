//! A change of the engine's state: the step that is under way, and what it is for.

use crate::block::act::ActKind;
use crate::block::claim::{BUSY_LIMIT, Phase, Watch};
use crate::command::Direction;
use crate::exchange::{Exchange, Failure};
use blockyard::time::{Duration, Instant};

/// A change of the engine: it is turned on or off, or recovered.
#[derive(Clone, Copy, Debug)]
pub(in crate::block) struct Change {
    pub(in crate::block) step: Step,
    pub(in crate::block) phase: Phase,
    /// The step that follows once the card is ready; `None`: the engine is off then.
    pub(in crate::block) then: Option<Step>,
    pub(in crate::block) watch: Watch,
    /// How often commands have failed, or not helped.
    pub(in crate::block) tries: u8,
    pub(in crate::block) aim: Aim,
}

/// The purpose of a change.
#[derive(Clone, Copy, Debug)]
pub(in crate::block) enum Aim {
    /// The engine is turned on or off. Holds the reason where the card's queue is not turned on.
    Switch(Option<Failure>),
    /// Something failed, and the engine is to continue.
    Recovery(Recovery),
}

/// The knowledge gathered while the engine is recovered. All four combinations occur.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::block) struct Recovery {
    /// The card may have reported a failure of any task that was noted as done
    /// ([suspect-tasks-redone]).
    pub(in crate::block) distrusts: bool,
    /// A flush has used up its time: a card that is still busy with it gets no more.
    pub(in crate::block) overdue: bool,
}

/// A step of deferred work for the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::block) enum Step {
    /// The bus is tuned while the engine is off.
    Retune,
    /// CMD6, or CMD49 of SD, turns the card's queue on.
    QueueOn,
    /// The engine gets the bus.
    Enable,
    /// The engine, which has no task, loses the bus.
    Disable,
    /// CMD6, or CMD49 of SD, turns the card's queue off.
    QueueOff,
    /// The engine halts.
    Halt,
    /// CMD13 is sent, until the card is ready.
    Status,
    /// The response to CMD13 is acted on.
    HandleStatus(Exchange),
    /// CMD12 ends a transfer in this direction.
    Stop(Direction),
    /// CMD48, or CMD43 of SD, makes the card forget its tasks.
    Discard,
    /// The engine halts once more.
    HaltAgain,
    /// The engine forgets its tasks.
    Clear,
    /// The engine, which has not halted in time, forgets its tasks, and is restarted in any case.
    ClearUnhalted,
    /// The engine is disabled and enabled.
    Restart,
    /// Controller and card are reset.
    Reset,
}

impl Step {
    /// Returns the kind of the act that performs this step.
    pub(in crate::block) const fn act(self) -> ActKind {
        match self {
            Self::Retune => ActKind::Retune,
            Self::QueueOn | Self::QueueOff => ActKind::SwitchQueue,
            Self::Enable => ActKind::EnableEngine,
            Self::Disable => ActKind::DisableEngine,
            Self::Halt | Self::HaltAgain => ActKind::HaltEngine,
            Self::Status => ActKind::SendStatus,
            Self::HandleStatus(_) => ActKind::HandleStatus,
            Self::Stop(_) => ActKind::SendStop,
            Self::Discard => ActKind::DiscardTasks,
            Self::Clear | Self::ClearUnhalted => ActKind::ClearTasks,
            Self::Restart => ActKind::RestartEngine,
            Self::Reset => ActKind::Reset,
        }
    }
}

impl Change {
    /// A change that begins with `step`, which is in `phase`.
    pub(in crate::block) fn begins_with(step: Step, phase: Phase, now: Instant) -> Self {
        Self {
            step,
            phase,
            then: None,
            watch: Watch::until(now + BUSY_LIMIT),
            tries: 0,
            aim: Aim::Switch(None),
        }
    }

    /// Returns whether the change is a recovery.
    pub(in crate::block) const fn recovers(&self) -> bool {
        matches!(self.aim, Aim::Recovery(_))
    }

    /// Returns what is known of the recovery, if the change is one.
    pub(in crate::block) const fn recovery(&mut self) -> Option<&mut Recovery> {
        match &mut self.aim {
            Aim::Recovery(recovery) => Some(recovery),
            Aim::Switch(_) => None,
        }
    }

    /// Makes `step` due at once.
    pub(in crate::block) const fn next(&mut self, step: Step, now: Instant) {
        (self.step, self.phase) = (step, Phase::Due(now));
    }

    /// Sends CMD13 until the card is ready; `then` follows.
    pub(in crate::block) fn once_ready(&mut self, then: Option<Step>, now: Instant) {
        let is_overdue = self.recovery().is_some_and(|recovery| recovery.overdue);
        let grace = if is_overdue { Duration::ZERO } else { BUSY_LIMIT };
        (self.then, self.watch) = (then, Watch::until(now + grace));
        self.next(Step::Status, now);
    }
}
