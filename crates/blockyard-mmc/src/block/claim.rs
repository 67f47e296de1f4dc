//! The claim on the bus: which request holds it, what the bus does for that request, and how far
//! that is.

use super::act::{ActKind, Context};
use crate::command::Direction;
use crate::controller::SlotId;
use crate::exchange::{Exchange, Failure};
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};

/// The time after which an MMC request is given up, as after a lost interrupt. Linux's drivers use
/// 10 s.
pub const REQUEST_LIMIT: Duration = Duration::from_secs(10);
/// The time after which a card that is busy after a write is given up. As in Linux.
pub const BUSY_LIMIT: Duration = Duration::from_secs(10);
/// The first pause between two checks whether a card is still busy. Each pause is twice as long as
/// the one before, up to [`LONGEST_PAUSE`]. As in Linux.
pub const FIRST_PAUSE: Duration = Duration::from_us(32);
/// The longest pause between two checks whether a card is still busy. See [`FIRST_PAUSE`].
pub const LONGEST_PAUSE: Duration = Duration::from_us(32_768);

const _: () = assert!(FIRST_PAUSE.as_ns() <= LONGEST_PAUSE.as_ns());

/// The step of the bus for the request that holds the claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BusStep {
    /// The bus is tuned again.
    Retune,
    /// The data of a write is copied into the bounce buffer.
    CopyIn,
    /// The data of a read is copied out of the bounce buffer.
    CopyOut,
    /// The request's data is transferred.
    Transfer,
    /// CMD13 is sent before the bus is tuned ([status-before-tuning]).
    AskBeforeTuning,
    /// CMD13 is sent.
    Status,
    /// The response to CMD13 is acted on.
    HandleStatus(Exchange),
    /// DAT0 is checked.
    PollLine,
    /// CMD12 is sent to a card that transfers data in this direction.
    Stop(Direction),
    /// CMD12 is sent to close a transfer that was left open.
    CloseTransfer,
    /// Controller and card are reset.
    Reset,
    /// The next command of an exclusive operation is sent.
    Command,
    /// EXT_CSD is read to learn which exception occurred.
    ReadExtCsd,
    /// Background operations are started.
    StartBackground,
    /// Background operations are interrupted (HPI).
    InterruptBackground,
}

impl BusStep {
    /// Returns the kind of the act that performs this step.
    pub(super) const fn act(self) -> ActKind {
        match self {
            Self::Retune => ActKind::Retune,
            Self::CopyIn => ActKind::CopyIn,
            Self::CopyOut => ActKind::CopyOut,
            Self::Transfer => ActKind::Start,
            Self::AskBeforeTuning | Self::Status => ActKind::SendStatus,
            Self::HandleStatus(_) => ActKind::HandleStatus,
            Self::PollLine => ActKind::PollLine,
            Self::Stop(_) | Self::CloseTransfer => ActKind::SendStop,
            Self::Reset => ActKind::Reset,
            Self::Command | Self::StartBackground | Self::InterruptBackground => {
                ActKind::SendCommand
            }
            Self::ReadExtCsd => ActKind::ReadRegister,
        }
    }
}

/// The progress of a step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Phase {
    /// A context may begin the step from this instant on.
    Due(Instant),
    /// An act has begun the step.
    Begun,
    /// The controller performs the step, until the time limit.
    Running(Exchange, Instant),
    /// The command queue engine is to report that the step is done, until the time limit.
    AwaitsEngine(Instant),
}

impl Phase {
    /// Returns the instant at which the step needs attention although no event arrives.
    pub(super) const fn wakes_at(&self) -> Option<Instant> {
        match self {
            Self::Due(at) | Self::Running(_, at) | Self::AwaitsEngine(at) => Some(*at),
            Self::Begun => None,
        }
    }
}

/// The checks of a busy card: pauses between them grow, and end at a time limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    pause: Duration,
    until: Instant,
}

impl Watch {
    /// A watch over a card that may be busy until `until`.
    pub(super) const fn until(until: Instant) -> Self {
        Self { pause: FIRST_PAUSE, until }
    }

    /// Returns the instant of the next check of a card that is still busy at `now`; `None` when the
    /// limit has passed.
    pub(super) fn again(&mut self, now: Instant) -> Option<Instant> {
        debug_assert!(self.pause <= LONGEST_PAUSE, "a pause of {:?}", self.pause);
        let at = now + self.pause;
        self.pause = Duration::from_ns((2 * self.pause.as_ns()).min(LONGEST_PAUSE.as_ns()));
        (now < self.until).then_some(at)
    }
}

/// Whether a step of the request has failed, and what follows once the card is ready again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    /// No step has failed.
    Well,
    /// A step failed, and the recovery is over.
    Recovered,
    /// A step failed with this failure, and the recovery is under way.
    Failed(Failure, AfterRecovery),
}

/// The continuation after a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterRecovery {
    /// The failure decides.
    Decide,
    /// The request is tried for the last time: the reset is the one before the last try.
    LastTry,
    /// The card was busy beyond its limit: an exclusive operation ends.
    EndOperation,
}

/// For whose sake the bus is claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// For the request.
    Request,
    /// For the request, and a response to it had the exception bit set.
    RequestWithException,
    /// For the card's exception. The request has ended with this status.
    Exception(Status),
    /// For the background operations that the card is running, which have not been interrupted yet.
    /// The request has ended with this status.
    Background(Status),
}

/// The progress of a packed command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PackStep {
    /// Nothing is known of it. A packed read has to send its header first.
    Begun,
    /// The card has the header of the packed read.
    HeaderSent,
    /// EXT_CSD is read to learn which request of the packed write failed.
    Judging,
    /// This many requests of the pack are done, from its first on.
    Done(u8),
}

/// The request that holds the claim on the bus ([one-claim-on-bus]).
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) slot: SlotId,
    pub(super) step: BusStep,
    pub(super) phase: Phase,
    /// The context whose acts are due.
    pub(super) by: Context,
    pub(super) health: Health,
    pub(super) purpose: Purpose,
    pub(super) pack_step: PackStep,
    /// Sectors of the request that were done before the present transfer.
    pub(super) done_before: u32,
    /// How often commands of the present recovery have failed, or not helped.
    pub(super) tries: u8,
    watch: Watch,
    /// The instant at which the last MMC request was put on the bus.
    pub(super) started: Instant,
}

impl Claim {
    /// The claim of `slot`, for which an act begins `step`. The context `by` does what follows.
    pub(super) const fn starting(slot: SlotId, step: BusStep, by: Context) -> Self {
        Self {
            slot,
            step,
            phase: Phase::Begun,
            by,
            health: Health::Well,
            purpose: Purpose::Request,
            pack_step: PackStep::Begun,
            done_before: 0,
            tries: 0,
            watch: Watch::until(Instant::MAX),
            started: Instant::ZERO,
        }
    }

    /// Notes that an act begins the step that is due.
    pub(super) fn begin_step(&mut self) {
        debug_assert!(matches!(self.phase, Phase::Due(_)), "{:?} is not due", self.step);
        self.phase = Phase::Begun;
    }

    /// Returns the instant at which the claim needs attention although no event arrives.
    pub(super) const fn wakes_at(&self) -> Option<Instant> {
        self.phase.wakes_at()
    }

    /// Makes `step` due at once.
    pub(super) fn next(&mut self, step: BusStep, now: Instant) {
        (self.step, self.phase) = (step, Phase::Due(now));
    }

    /// Takes the card for busy, up to the instant `until`. `step` checks it.
    pub(super) fn watch(&mut self, step: BusStep, until: Instant, now: Instant) {
        self.watch = Watch::until(until);
        self.tries = 0;
        self.next(step, now);
    }

    /// Schedules another check of a card that is still busy. Returns `false` when its limit has
    /// passed.
    pub(super) fn look_again(&mut self, now: Instant) -> bool {
        debug_assert!(
            matches!(self.step, BusStep::Status | BusStep::PollLine),
            "{:?} does not check whether the card is busy",
            self.step
        );
        let again = self.watch.again(now);
        self.phase = Phase::Due(again.unwrap_or(now));
        again.is_some()
    }

    /// Returns the failure that is being recovered from.
    pub(super) const fn failure(&self) -> Option<Failure> {
        match self.health {
            Health::Failed(failure, _) => Some(failure),
            Health::Well | Health::Recovered => None,
        }
    }

    /// Notes `failure`, unless a recovery is under way. Returns whether a recovery begins.
    pub(super) const fn fail(&mut self, failure: Failure) -> bool {
        let is_first = !matches!(self.health, Health::Failed(..));
        if is_first {
            self.health = Health::Failed(failure, AfterRecovery::Decide);
        }
        is_first
    }

    /// Notes what follows the recovery that is under way.
    pub(super) fn after_recovery(&mut self, then: AfterRecovery) {
        let failure = self.failure();
        debug_assert!(failure.is_some(), "{then:?} after no failure");
        if let Some(failure) = failure {
            self.health = Health::Failed(failure, then);
        }
    }

    /// Notes that the recovery, if one is under way, is over.
    pub(super) const fn recovered(&mut self) {
        if matches!(self.health, Health::Failed(..)) {
            self.health = Health::Recovered;
        }
    }

    /// Returns the status with which the request has ended, while the claim serves the card.
    pub(super) const fn ended(&self) -> Option<Status> {
        match self.purpose {
            Purpose::Request | Purpose::RequestWithException => None,
            Purpose::Exception(status) | Purpose::Background(status) => Some(status),
        }
    }

    /// Notes that the request has ended with `status`; what the bus does for the card continues.
    pub(super) const fn end_with(&mut self, status: Status) {
        self.purpose = match self.purpose {
            Purpose::Background(_) => Purpose::Background(status),
            _ => Purpose::Exception(status),
        };
    }

    /// Returns whether a response to the request had the exception bit set.
    pub(super) const fn has_exception(&self) -> bool {
        matches!(self.purpose, Purpose::RequestWithException)
    }

    /// Notes that a response had the exception bit set.
    pub(super) const fn note_exception(&mut self) {
        if matches!(self.purpose, Purpose::Request) {
            self.purpose = Purpose::RequestWithException;
        }
    }

    /// Returns whether anything of this claim was not plain sailing: an error, an exception, or a
    /// pack.
    pub(super) fn had_trouble(&self) -> bool {
        self.health != Health::Well || self.ended().is_some()
    }
}
