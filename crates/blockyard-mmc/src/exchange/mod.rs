//! One transaction from its start to its end: which of its parts are still to be reported, and how
//! it went.
//!
//! # Rules
//!
//! - **X1.** A transaction ends once: with the last of its parts, or with the first error of the
//!   controller. Parts may be reported in any order, as interrupts may.
//! - **X2.** What went wrong first is what is kept: the rest follows from it.
//! - **X3.** Bits of a response that speak of the command *before* it fail the transaction only where
//!   that command is one of its own.
//! - **X4.** The same holds, [after a write](Exchange::after_write) of which nobody asked whether it failed,
//!   for [`Status::OF_WORK_BEFORE`].

use super::command::status::Status;
use super::command::{Direction, Response};
use super::controller::{HostError, HostEvent, MmcRequest, Part};
use super::host::BusyDetect;

/// What a transaction failed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Where.
    pub part: Part,
    /// How.
    pub cause: Cause,
}

/// Who says that something failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The controller.
    Host(HostError),
    /// The card, in the status of a response.
    Card(Status),
    /// Nobody, any more: there is no card.
    Gone,
}

impl Failure {
    /// Whether the card may have answered, and nobody has read it: damaged, or with an interrupt that got
    /// lost. What it says of a failure it says once.
    pub(super) const fn hides_answer(&self) -> bool {
        matches!(self.cause, Cause::Host(_))
    }
}

/// What an event is to a transaction.
#[must_use = "a transaction that has ended must be followed up"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It goes on.
    Waits,
    /// That was the end.
    Ended,
    /// It has no such part, or not any more: a stray interrupt.
    Stray,
}

/// A transaction on the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Parts to come, as bits by their order.
    awaited: u8,
    blocks_planned: u16,
    reads: bool,
    ends_busy: bool,
    announced: bool,
    after_write: bool,
    write_before_failed: bool,
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
    /// `transaction` is started on a host that finds the end of busy by `busy`.
    #[must_use]
    pub fn new(transaction: &MmcRequest, busy: BusyDetect) -> Self {
        let data = transaction.data();
        let is_told = |part: &Part| *part != Part::Busy || busy == BusyDetect::Hardware;
        let awaited = transaction.parts().filter(is_told).map(bit).sum();
        Self {
            awaited,
            blocks_planned: data.map_or(0, |data| data.blocks),
            reads: data.is_some_and(|data| data.direction == Direction::Read),
            ends_busy: transaction.ends_busy(),
            announced: transaction.announce.is_some(),
            after_write: false,
            write_before_failed: false,
            blocks: 0,
            failure: None,
            status: None,
            exception: false,
        }
    }

    /// The same; `is`: its first response may say that a write before it failed (X4).
    #[must_use]
    pub const fn after_write(mut self, is: bool) -> Self {
        self.after_write = is;
        self
    }

    /// Whether its first response said so (X4).
    #[must_use]
    pub const fn write_before_failed(&self) -> bool {
        self.write_before_failed
    }

    /// The controller says `event`. Bounded work; a [stray](Progress::Stray) event changes nothing.
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
                self.blocks = self.blocks_planned;
                self.ends(Part::Data)
            }
            HostEvent::BusyReleased if self.awaits(Part::Busy) => self.ends(Part::Busy),
            HostEvent::Error { part, error, blocks } if self.awaits(part) => {
                // Without the end of the data, they are as many as the controller counted.
                if self.awaits(Part::Data) {
                    self.blocks = blocks.min(self.blocks_planned);
                }
                self.give_up(part, Cause::Host(error))
            }
            HostEvent::CardGone => self.give_up(Part::Command, Cause::Gone),
            _ => Progress::Stray,
        }
    }

    /// It took too long and was taken off the bus: the first part that was awaited timed out.
    pub fn timed_out(&mut self) {
        let parts = [Part::Announce, Part::Command, Part::Data, Part::Stop, Part::Busy];
        if let Some(part) = parts.into_iter().find(|&part| self.awaits(part)) {
            let _ = self.give_up(part, Cause::Host(HostError::Timeout));
        }
    }

    /// What it failed with; `None`: nothing, so far.
    #[must_use]
    pub const fn failure(&self) -> Option<Failure> {
        self.failure
    }

    /// Whole blocks that were transferred. Of a write it is what the host sent; what the card made of
    /// them only the card knows.
    #[must_use]
    pub const fn blocks(&self) -> u16 {
        self.blocks
    }

    /// Whether the card may be busy when all else is done.
    #[must_use]
    pub const fn ends_busy(&self) -> bool {
        self.ends_busy
    }

    /// The status in the response that came last.
    #[must_use]
    pub const fn status(&self) -> Option<Status> {
        self.status
    }

    /// Whether a response had the exception bit set.
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
        // X2: a card that refuses the command sends no data, and the host times out.
        if self.failure.is_none() || cause == Cause::Gone {
            self.failure = Some(Failure { part, cause });
        }
        self.awaited = 0; // X1
        Progress::Ended
    }

    fn answered(&mut self, part: Part, response: Response) {
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
            errors &= !OF_COMMAND_BEFORE; // X3
            if self.after_write {
                self.write_before_failed = status.has(Status::OF_WORK_BEFORE);
                errors &= !Status::OF_WORK_BEFORE; // X4
            }
        }
        // A card that reads ahead may run over its end after the last block that was asked for.
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
