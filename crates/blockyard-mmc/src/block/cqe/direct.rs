//! Direct commands: commands without data that go through the engine, one at a time.
//!
//! They serve what can be done with the engine on, such as a flush of the card's cache. Their
//! sender knows what a direct command means, and decides whether to send it again.

use crate::block::mmc::Mmc;
use crate::block::slot::Stage;
use crate::block::tasks::direct_command::{Direct, DirectEnd, NotDirect};
use crate::block::tasks::state::State;
use crate::command::status::Status;
use crate::command::{Command, Response};
use crate::controller::{HostController, Part};
use crate::exchange::{Cause, Failure};
use blockyard::time::{Duration, Instant};

impl<H: HostController> Mmc<H> {
    /// Sends `command`, which has no data, through the command queue engine after all tasks that
    /// the engine has now. It fails if that takes longer than `limit`. [`Self::next_direct`]
    /// returns how it ended.
    ///
    /// # Errors
    ///
    /// The command cannot be sent now: the engine is off, is being recovered, or takes no direct
    /// commands; the command before has not ended, or nobody has [asked](Self::next_direct) how; or
    /// an exclusive operation waits ([exclusive-waits-for-idle]).
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

    /// Does the same as [`Self::direct`], even while an exclusive operation waits.
    pub(in crate::block) fn send_direct(
        &mut self,
        command: &Command,
        limit: Duration,
        now: Instant,
    ) -> Result<(), NotDirect> {
        let takes = self.takes_direct();
        debug_assert!(command.data.is_none(), "{command} has data and cannot be a direct command");
        let cqe = self.cqe.as_mut().filter(|_| takes).ok_or(NotDirect)?;
        cqe.direct = Direct::Sent(now + limit);
        self.engine().direct(command, now);
        Ok(())
    }

    /// Returns whether a direct command can be sent now.
    pub(in crate::block) fn takes_direct(&self) -> bool {
        self.cqe
            .as_ref()
            .is_some_and(|cqe| matches!((cqe.state, cqe.direct), (State::On, Direct::Free)))
            && self.controller.capabilities().queue_engine_direct
    }

    /// Ends the direct command with `end`. A flush that sent it goes on. Returns `false` if the
    /// engine has no direct command.
    pub(super) fn end_direct(&mut self, end: DirectEnd) -> bool {
        let cqe = self.cqe.as_mut().expect("engine of a direct command");
        if !cqe.direct.end(end) {
            return false;
        }
        if let Some(flush) =
            self.exclusive.filter(|slot| self.slots[slot.index()].stage == Stage::Direct)
        {
            cqe.direct = Direct::Free;
            self.direct_ended(flush, end);
        }
        true
    }

    /// Ends the direct command after the card was removed.
    pub(super) fn lose_direct(&mut self) {
        self.end_direct(DirectEnd::Failed(Failure { part: Part::Command, cause: Cause::Gone }));
    }

    /// Returns how the last direct command ended, once.
    pub fn next_direct(&mut self) -> Option<DirectEnd> {
        let cqe = self.cqe.as_mut()?;
        let Direct::Ended(end) = cqe.direct else { return None };
        cqe.direct = Direct::Free;
        Some(end)
    }

    /// Takes the response to the direct command. Returns `false` if the engine has no direct
    /// command.
    pub(super) fn direct_done(&mut self, response: Response) -> bool {
        let status = response.status();
        // [late-error-is-the-writes]: the tasks before the command are done, so this response is
        // the first after the last write.
        let of_write = if self.has_unconfirmed_write() { Status::OF_WORK_BEFORE } else { 0 };
        let end = match status.filter(|status| status.errors() & !of_write != 0) {
            None => DirectEnd::Done(response),
            Some(status) => {
                DirectEnd::Failed(Failure { part: Part::Command, cause: Cause::Card(status) })
            }
        };
        if status.is_some_and(|status| status.has(Status::OF_WORK_BEFORE)) {
            self.unconfirmed_write_failed();
        } else {
            self.confirm_write();
        }
        let has_exception = status.is_some_and(|status| status.has(Status::EXCEPTION_EVENT));
        let is_ours = self.end_direct(end);
        if is_ours && has_exception {
            self.exception_at_engine();
        }
        is_ours
    }
}
