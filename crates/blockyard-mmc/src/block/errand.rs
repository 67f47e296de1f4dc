//! Who has the bus, what for, and how far that is.

use super::{ActKind, Context};
use crate::command::Direction;
use crate::controller::SlotId;
use crate::exchange::{Exchange, Failure};
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};

/// After this long a transaction is given up, as after a lost interrupt. Linux's drivers have 10 s.
pub const TRANSACTION_LIMIT: Duration = Duration::from_secs(10);
/// After this long of busy after a write, the card is given up. As Linux.
pub const BUSY_LIMIT: Duration = Duration::from_secs(10);
/// Time between two looks whether a card is still busy: at first, and doubled each time up to the
/// most. As Linux.
pub const FIRST_PAUSE: Duration = Duration::from_us(32);
/// See [`FIRST_PAUSE`].
pub const LONGEST_PAUSE: Duration = Duration::from_us(32_768);

/// What the bus is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Errand {
    /// The bus is tuned again.
    Retune,
    /// A write is copied into the bounce buffer.
    CopyIn,
    /// A read is copied out of the bounce buffer.
    CopyOut,
    /// The request's transfer.
    Transfer,
    /// CMD13, before the bus is tuned (A4).
    Ask,
    /// CMD13.
    Status,
    /// What the card has said to it is acted on.
    Heed(Exchange),
    /// A look at DAT0.
    Line,
    /// CMD12, while the card is at a transfer in this direction.
    Stop(Direction),
    /// A reset.
    Reset,
    /// The next command of an exclusive operation.
    Operate,
    /// EXT_CSD is read: what is the exception?
    Look,
    /// Background operations are begun.
    Upkeep,
    /// They are interrupted.
    Interrupt,
}

impl Errand {
    pub(super) const fn act(self) -> ActKind {
        match self {
            Self::Retune => ActKind::Retune,
            Self::CopyIn => ActKind::CopyIn,
            Self::CopyOut => ActKind::CopyOut,
            Self::Transfer => ActKind::Start,
            Self::Ask | Self::Status => ActKind::SendStatus,
            Self::Heed(_) => ActKind::HandleStatus,
            Self::Line => ActKind::PollLine,
            Self::Stop(_) => ActKind::SendStop,
            Self::Reset => ActKind::Reset,
            Self::Operate | Self::Upkeep | Self::Interrupt => ActKind::SendCommand,
            Self::Look => ActKind::ReadRegister,
        }
    }
}

/// How far an errand is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Phase {
    /// It is to be begun, from then on.
    Due(Instant),
    /// An act begins it.
    Begun,
    /// The controller is at it, until the limit.
    Running(Exchange, Instant),
    /// The command queue engine is to say that it is done, until the limit.
    Told(Instant),
}

impl Phase {
    /// When something is to be done although no event comes.
    pub(super) const fn wakes_at(&self) -> Option<Instant> {
        match self {
            Self::Due(at) | Self::Running(_, at) | Self::Told(at) => Some(*at),
            Self::Begun => None,
        }
    }
}

/// How a card that is busy is looked at: after pauses that grow, and not for ever.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    pause: Duration,
    until: Instant,
}

impl Watch {
    /// The card is busy from now on, for all that is known, and may be `until` then.
    pub(super) const fn until(until: Instant) -> Self {
        Self { pause: FIRST_PAUSE, until }
    }

    /// When it is looked at again, as it still is busy at `now`; `None`: it has been for too long.
    pub(super) fn again(&mut self, now: Instant) -> Option<Instant> {
        let at = now + self.pause;
        self.pause = Duration::from_ns((2 * self.pause.as_ns()).min(LONGEST_PAUSE.as_ns()));
        (now < self.until).then_some(at)
    }
}

/// The request that has the bus (P1).
#[derive(Clone, Copy, Debug)]
pub(super) struct OnBus {
    pub(super) slot: SlotId,
    pub(super) errand: Errand,
    pub(super) phase: Phase,
    /// Whose acts are due.
    pub(super) by: Context,
    /// What its transfer failed with: it is being recovered from.
    pub(super) failure: Option<Failure>,
    /// Something has been recovered from.
    pub(super) failed_once: bool,
    /// Sectors that were done before this transfer.
    pub(super) done_before: u32,
    /// How often commands of the recovery have failed, or not helped.
    pub(super) tries: u8,
    /// The reset that is due is the one before the last try.
    pub(super) reset_before_last: bool,
    watch: Watch,
    /// It was busy for longer than it may.
    pub(super) overdue: bool,
    /// The card said that something exceptional is up.
    pub(super) exception: bool,
    /// The request is over, with this status: the bus is used for the card's sake (U1).
    pub(super) over: Option<Status>,
    /// The header of a packed read is with the card.
    pub(super) header_sent: bool,
    /// EXT_CSD was read to learn what of a pack failed.
    pub(super) judged: bool,
    /// So many of what is packed are done.
    pub(super) packed_done: u8,
    /// Background operations were started, and not interrupted.
    pub(super) background: bool,
    /// When its last transaction was begun.
    pub(super) started: Instant,
}

impl OnBus {
    /// `slot` gets the bus, and an act begins `errand`; what follows is for `by`.
    pub(super) const fn starting(slot: SlotId, errand: Errand, by: Context) -> Self {
        Self {
            slot,
            errand,
            phase: Phase::Begun,
            by,
            failure: None,
            failed_once: false,
            done_before: 0,
            tries: 0,
            reset_before_last: false,
            watch: Watch::until(Instant::MAX),
            overdue: false,
            exception: false,
            over: None,
            header_sent: false,
            judged: false,
            packed_done: 0,
            background: false,
            started: Instant::ZERO,
        }
    }

    pub(super) const fn claim(&mut self) {
        self.phase = Phase::Begun;
    }

    /// When something is to be done although no event comes.
    pub(super) const fn wakes_at(&self) -> Option<Instant> {
        self.phase.wakes_at()
    }

    /// `errand` is next, at once.
    pub(super) fn next(&mut self, errand: Errand, now: Instant) {
        (self.errand, self.phase) = (errand, Phase::Due(now));
    }

    /// The card is busy at `now`, for all that is known, and may be `until` then: `errand` finds out.
    pub(super) fn watch(&mut self, errand: Errand, until: Instant, now: Instant) {
        self.watch = Watch::until(until);
        self.tries = 0;
        self.next(errand, now);
    }

    /// The card is still busy: look again after a pause. `false`: it has been for too long.
    pub(super) fn look_again(&mut self, now: Instant) -> bool {
        let again = self.watch.again(now);
        self.phase = Phase::Due(again.unwrap_or(now));
        again.is_some()
    }
}
