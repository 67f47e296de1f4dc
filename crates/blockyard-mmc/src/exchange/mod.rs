//! One MMC request from its start to its end: which of its parts are still to be reported, and how
//! it went. Its first failure is kept, because later ones follow from it.
//!
//! # Rules
//!
//! - **[request-ends-once]** An MMC request ends once: with the last of its parts, or with the
//!   first error of the controller. Parts may be reported in any order, as interrupts may.
//! - **[earlier-bits-ignored]** Bits of a response that speak of the command *before* it fail the
//!   request only if that command is one of the request's own. The same holds for
//!   [`Status::OF_WORK_BEFORE`], [after a write](Exchange::after_write) that no CMD13 followed
//!   ([late-error-is-the-writes]).

use super::command::status::Status;
use super::command::{Direction, Response};
use super::controller::{HostError, HostEvent, MmcRequest, Part};
use super::host::BusyDetect;

/// The failure of an MMC request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The part that failed.
    pub part: Part,
    /// The cause.
    pub cause: Cause,
}

/// The cause of a failure: its reporter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The controller.
    Host(HostError),
    /// The card, in the status of a response.
    Card(Status),
    /// Nothing: the card was removed.
    Gone,
}

impl Failure {
    /// Returns whether the card may have answered without the host reading it: the response was
    /// damaged, or its interrupt got lost. A card reports a failure of earlier work only once.
    pub(super) const fn hides_answer(&self) -> bool {
        matches!(self.cause, Cause::Host(_))
    }
}

/// The meaning of an event for an MMC request.
#[must_use = "a transaction that has ended must be followed up"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The request continues.
    Waits,
    /// The event was the last one.
    Ended,
    /// The request has no such part, or no longer: a stray interrupt.
    Stray,
}

/// An earlier write on which the first response of an MMC request may report
/// ([earlier-bits-ignored]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EarlierWrite {
    None,
    /// No response has reported a failure of the write.
    Unconfirmed,
    Failed,
}

/// An MMC request on the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The parts to come, as bits by their order.
    awaited: u8,
    blocks_planned: u16,
    reads: bool,
    ends_busy: bool,
    announced: bool,
    continues: bool,
    earlier_write: EarlierWrite,
    blocks: u16,
    failure: Option<Failure>,
    /// The status in the last response.
    status: Option<Status>,
    exception: bool,
}

const fn bit(part: Part) -> u8 {
    1 << part as u8
}

/// Bits that speak of the command before.
const OF_COMMAND_BEFORE: u32 = Status::COM_CRC_ERROR | Status::ILLEGAL_COMMAND;

impl Exchange {
    /// The progress of `transaction`, which is started on a host that finds the end of busy by
    /// `busy`.
    #[must_use]
    pub fn new(transaction: &MmcRequest, busy: BusyDetect) -> Self {
        let data = transaction.data();
        let awaited = transaction
            .parts()
            .filter(|part| *part != Part::Busy || busy == BusyDetect::Hardware)
            .map(bit)
            .sum();
        debug_assert_ne!(awaited, 0, "every request has a command");
        Self {
            awaited,
            blocks_planned: data.map(|data| data.blocks).unwrap_or_default(),
            reads: data.is_some_and(|data| data.direction == Direction::Read),
            ends_busy: transaction.ends_busy(),
            announced: transaction.announce.is_some(),
            continues: transaction.continues,
            earlier_write: EarlierWrite::None,
            blocks: 0,
            failure: None,
            status: None,
            exception: false,
        }
    }

    /// Returns the same; `is`: the first response may report that an earlier write failed
    /// ([earlier-bits-ignored]).
    #[must_use]
    pub const fn after_write(mut self, is: bool) -> Self {
        self.earlier_write = if is { EarlierWrite::Unconfirmed } else { EarlierWrite::None };
        self
    }

    /// Returns whether the first response reported a failure of an earlier write
    /// ([earlier-bits-ignored]).
    #[must_use]
    pub(crate) const fn write_before_failed(&self) -> bool {
        matches!(self.earlier_write, EarlierWrite::Failed)
    }

    /// Takes an `event` of the controller, with bounded work. A [stray](Progress::Stray) event
    /// changes nothing.
    pub fn event(&mut self, event: HostEvent) -> Progress {
        if self.awaited == 0 {
            return Progress::Stray;
        }
        match event {
            HostEvent::CommandDone { part, response } if self.awaits(part) => {
                self.answered(part, response);
                self.ends(part)
            }
            HostEvent::DataDone if self.awaits(Part::Data) => {
                debug_assert!(self.blocks_planned > 0, "data without blocks");
                self.blocks = self.blocks_planned;
                self.ends(Part::Data)
            }
            HostEvent::BusyReleased if self.awaits(Part::Busy) => self.ends(Part::Busy),
            HostEvent::Error { part, error, blocks } if self.awaits(part) => {
                // Before the end of the data, the controller's count holds.
                if self.awaits(Part::Data) {
                    self.blocks = blocks.min(self.blocks_planned);
                }
                self.give_up(part, Cause::Host(error))
            }
            HostEvent::CardGone => self.give_up(Part::Command, Cause::Gone),
            _ => Progress::Stray,
        }
    }

    /// Notes that the request took too long and was taken off the bus: the first part that was
    /// awaited timed out.
    pub fn timed_out(&mut self) {
        let parts = [Part::Announce, Part::Command, Part::Data, Part::Stop, Part::Busy];
        if let Some(part) = parts.into_iter().find(|&part| self.awaits(part)) {
            let _ = self.give_up(part, Cause::Host(HostError::Timeout));
        }
    }

    /// Returns the failure; `None` while there is none.
    #[must_use]
    pub const fn failure(&self) -> Option<Failure> {
        self.failure
    }

    /// Returns the number of whole blocks that were transferred. Of a write the host sent this
    /// many; only the card knows what became of them.
    #[must_use]
    pub const fn blocks(&self) -> u16 {
        self.blocks
    }

    /// Returns whether the card may be busy when everything else is done.
    #[must_use]
    pub const fn ends_busy(&self) -> bool {
        self.ends_busy
    }

    /// Returns the status in the last response.
    #[must_use]
    pub const fn status(&self) -> Option<Status> {
        self.status
    }

    /// Returns whether no command was sent: the request continues a transfer that was left open.
    pub(crate) const fn continues(&self) -> bool {
        self.continues
    }

    /// Returns whether a response had the exception bit set.
    #[must_use]
    pub const fn exception(&self) -> bool {
        self.exception
    }

    const fn awaits(&self, part: Part) -> bool {
        self.awaited & bit(part) != 0
    }

    const fn ends(&mut self, part: Part) -> Progress {
        self.awaited &= !bit(part);
        if self.awaited == 0 { Progress::Ended } else { Progress::Waits }
    }

    fn give_up(&mut self, part: Part, cause: Cause) -> Progress {
        debug_assert_ne!(self.awaited, 0, "[request-ends-once]");
        // A card that refuses the command sends no data, and the host times out.
        if self.failure.is_none() || cause == Cause::Gone {
            self.failure = Some(Failure { part, cause });
        }
        self.awaited = 0; // [request-ends-once]
        Progress::Ended
    }

    fn answered(&mut self, part: Part, response: Response) {
        debug_assert!(self.awaits(part), "[request-ends-once]: {part:?}");
        let Some(status) = response.status() else { return };
        self.status = Some(status);
        self.exception |= status.has(Status::EXCEPTION_EVENT);
        let first = match part {
            Part::Announce => true,
            Part::Command => !self.announced,
            _ => false,
        };
        let mut errors = status.errors();
        if first {
            errors &= !OF_COMMAND_BEFORE; // [earlier-bits-ignored]
            if self.earlier_write != EarlierWrite::None {
                if status.has(Status::OF_WORK_BEFORE) {
                    self.earlier_write = EarlierWrite::Failed;
                }
                errors &= !Status::OF_WORK_BEFORE; // [earlier-bits-ignored]
            }
        }
        // A card that reads ahead may run over its end after the last block that the host wants.
        if part == Part::Stop && self.reads && self.blocks == self.blocks_planned {
            errors &= !Status::OUT_OF_RANGE;
        }
        if errors != 0 && self.failure.is_none() {
            self.failure = Some(Failure { part, cause: Cause::Card(status) });
        }
    }
}

#[cfg(test)]
mod tests;
