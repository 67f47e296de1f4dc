//! Direct commands: commands without data that go through the engine, one at a time.
//!
//! They are for what is to be done without turning the engine off, as a flush of the card's cache.
//! What one means, and whether it is sent again, is its sender's.

use super::{Cqe, Mmc, State};
use crate::block::slot::Stage;
use crate::command::status::Status;
use crate::command::{Command, Response};
use crate::controller::{HostController, Part, SlotId};
use crate::exchange::{Cause, Failure};
use blockyard::time::{Duration, Instant};

/// No direct command can be sent now: the engine is not on or has no place for one. Wait, or turn to
/// a [transaction](crate::controller::MmcRequest) where the engine is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotDirect;

/// How a direct command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectEnd {
    /// The card has done it.
    Done(Response),
    /// It failed.
    Failed(Failure),
    /// A task failed, and this was cleared with all tasks: whether the card has done it is not known.
    Cleared,
}

/// The place for a direct command.
#[derive(Clone, Copy, Debug)]
pub(super) enum Direct {
    Free,
    /// The engine has it, until the limit.
    Sent(Instant),
    /// It has ended, and its sender has not asked.
    Ended(DirectEnd),
}

impl Direct {
    pub(super) const fn is_sent(&self) -> bool {
        matches!(self, Self::Sent(_))
    }

    pub(super) const fn limit(&self) -> Option<Instant> {
        match self {
            Self::Sent(limit) => Some(*limit),
            Self::Free | Self::Ended(_) => None,
        }
    }

    pub(super) fn is_late(&self, now: Instant) -> bool {
        self.limit().is_some_and(|limit| limit <= now)
    }

    /// The command that the engine has ended with `end`; `false`: it has none.
    const fn end(&mut self, end: DirectEnd) -> bool {
        let is_sent = self.is_sent();
        if is_sent {
            *self = Self::Ended(end);
        }
        is_sent
    }
}

impl<H: HostController> Mmc<H> {
    /// Sends `command`, which has no data, through the command queue engine, when the tasks that it
    /// has now have ended. It is a failure if that takes longer than `limit`.
    /// [`Self::next_direct`] says how it ended.
    ///
    /// # Errors
    ///
    /// Not now: the engine is off, is being recovered or has no direct commands, the one before has not
    /// ended or not been [asked for](Self::next_direct), or what needs the engine off waits (O1).
    pub fn direct(
        &mut self,
        command: &Command,
        limit: Duration,
        now: Instant,
    ) -> Result<(), NotDirect> {
        self.tick(now);
        if self.exclusive.is_some() {
            return Err(NotDirect);
        }
        self.send_direct(command, limit, now)
    }

    /// As [`Self::direct`], whatever waits.
    pub(in crate::block) fn send_direct(
        &mut self,
        command: &Command,
        limit: Duration,
        now: Instant,
    ) -> Result<(), NotDirect> {
        let takes = self.takes_direct();
        let cqe = self.cqe.as_mut().filter(|_| takes).ok_or(NotDirect)?;
        cqe.direct = Direct::Sent(now + limit);
        self.engine().direct(command, now);
        Ok(())
    }

    /// Whether a direct command can be sent now.
    pub(in crate::block) fn takes_direct(&self) -> bool {
        let is_free = |cqe: &Cqe| matches!((cqe.state, cqe.direct), (State::On, Direct::Free));
        let can = || self.controller.capabilities().queue_engine_direct;
        self.cqe.as_ref().is_some_and(is_free) && can()
    }

    /// The direct command has ended with `end`, and its sender, where that is a flush, goes on;
    /// `false`: the engine has none.
    pub(super) fn end_direct(&mut self, end: DirectEnd) -> bool {
        let Some(cqe) = self.cqe.as_mut() else { return false };
        if !cqe.direct.end(end) {
            return false;
        }
        let is_sender = |slot: &SlotId| self.slots[slot.index()].stage == Stage::Direct;
        if let Some(flush) = self.exclusive.filter(is_sender) {
            cqe.direct = Direct::Free;
            self.operated_directly(flush, end);
        }
        true
    }

    /// As [`Self::end_direct`], with the card gone.
    pub(super) fn lose_direct(&mut self) {
        self.end_direct(DirectEnd::Failed(Failure { part: Part::Command, cause: Cause::Gone }));
    }

    /// How the last direct command ended, once.
    pub fn next_direct(&mut self) -> Option<DirectEnd> {
        let cqe = self.cqe.as_mut()?;
        let Direct::Ended(end) = cqe.direct else { return None };
        cqe.direct = Direct::Free;
        Some(end)
    }

    /// The engine says that its direct command was answered. `false`: it has none.
    pub(super) fn direct_done(&mut self, response: Response) -> bool {
        let status = response.status();
        // A1: the tasks before it are done, so it is the first response after the last write.
        let of_write = if self.has_unasked() { Status::OF_WORK_BEFORE } else { 0 };
        let end = match status.filter(|status| status.errors() & !of_write != 0) {
            None => DirectEnd::Done(response),
            Some(status) => {
                DirectEnd::Failed(Failure { part: Part::Command, cause: Cause::Card(status) })
            }
        };
        if status.is_some_and(|status| status.has(of_write)) {
            self.unasked_failed();
        } else {
            self.nobody_unasked();
        }
        let has_exception = status.is_some_and(|status| status.has(Status::EXCEPTION_EVENT));
        let is_ours = self.end_direct(end);
        if is_ours && has_exception {
            self.exception_at_engine();
        }
        is_ours
    }
}
