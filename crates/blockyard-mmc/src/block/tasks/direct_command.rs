//! The place for a direct command.

use crate::command::Response;
use crate::exchange::Failure;
use blockyard::time::Instant;

/// No direct command can be sent now: the engine is not on, or has no place for one. Wait, or use
/// an [MMC request](crate::request::MmcRequest) where the engine is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotDirect;

/// The end of a direct command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectEnd {
    /// The card has done it.
    Done(Response),
    /// It failed.
    Failed(Failure),
    /// A task failed, and the direct command was cleared with all tasks. Whether the card has done
    /// it is not known.
    Cleared,
}

/// The place for a direct command.
#[derive(Clone, Copy, Debug)]
pub(in crate::block) enum Direct {
    /// No direct command was sent.
    Free,
    /// The engine has the command, until this time limit.
    Sent(Instant),
    /// The command has ended, and its sender has not asked how.
    Ended(DirectEnd),
}

impl Direct {
    /// Returns whether the engine has a command.
    pub(in crate::block) const fn is_sent(&self) -> bool {
        matches!(self, Self::Sent(_))
    }

    /// Returns the time limit of the command that the engine has.
    pub(in crate::block) const fn limit(&self) -> Option<Instant> {
        match self {
            Self::Sent(limit) => Some(*limit),
            Self::Free | Self::Ended(_) => None,
        }
    }

    /// Returns whether the command has taken too long.
    pub(in crate::block) fn is_late(&self, now: Instant) -> bool {
        self.limit().is_some_and(|limit| limit <= now)
    }

    /// Ends the command that the engine has with `end`. Returns `false` if the engine has none.
    pub(in crate::block) const fn end(&mut self, end: DirectEnd) -> bool {
        let is_sent = self.is_sent();
        if is_sent {
            *self = Self::Ended(end);
        }
        is_sent
    }
}
