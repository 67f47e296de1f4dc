//! Errors of a host in its use of a card.

use super::packed::HeaderError;
use blockyard::time::Instant;
use blockyard_mmc::command::Command;
use blockyard_mmc::command::legal::Illegal;
use blockyard_mmc::command::state::CardState;
use core::fmt;

/// A host did what no host may do, or used a feature that this card does not model. That is a bug of the
/// host and no fault to recover from: the simulation ends. The card stays as it was
/// ([misuse-changes-nothing]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misuse {
    /// The command, or the last one before the data in question; `None`: there was none.
    pub command: Option<Command>,
    /// The state of the card.
    pub state: CardState,
    /// The instant of the misuse.
    pub at: Instant,
    /// The error.
    pub wrong: Wrong,
}

/// The error of a [`Misuse`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// The card's state does not take the command.
    Illegal(Illegal),
    /// Something happened at this later instant already.
    Backwards(Instant),
    /// The response to the command before was still on its way until then.
    Overlap(Instant),
    /// The card is still busy with falling asleep or waking until then.
    Busy(Instant),
    /// The command is of the other standard.
    Standard,
    /// CMD55 did not come right before.
    NotApplication,
    /// It is not the card's address.
    Rca,
    /// It has not as many blocks as CMD23, or the task, said.
    Count(u32),
    /// The task is none that the card holds ready, or goes the other way, or cannot be queued.
    Task(u8),
    /// CMD45 without CMD44 right before.
    NoTask,
    /// Interrupts (HPI) are not on, or are by the other command.
    Interrupt,
    /// A tuning block in a timing that is not tuned: HS400 is in HS200.
    Tuning,
    /// No transfer of so many blocks is going on.
    Transfer(u32),
    /// A packed write whose header was not shown, or a header of no packed write.
    Header,
    /// A header of a packed command that says nothing sensible.
    BadHeader(HeaderError),
    /// This card does not model it.
    Unmodelled(&'static str),
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { command, state, at, wrong } = self;
        write!(f, "at {at} in state {state:?}, ")?;
        match command {
            Some(command) => write!(f, "{command}: {wrong}"),
            None => write!(f, "before any command: {wrong}"),
        }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Illegal(illegal) => illegal.fmt(f),
            Self::Backwards(last) => write!(f, "comes after what happened at {last}"),
            Self::Overlap(end) => write!(f, "comes before the last response ends at {end}"),
            Self::Busy(until) => write!(f, "the card is busy until {until}"),
            Self::Standard => f.write_str("is a command of the other standard"),
            Self::NotApplication => f.write_str("needs CMD55 right before it"),
            Self::Rca => f.write_str("is for another card"),
            Self::Count(blocks) => write!(f, "{blocks} blocks were announced"),
            Self::Task(task) => write!(f, "task {task} cannot be queued or is not ready for it"),
            Self::NoTask => f.write_str("CMD44 must come before it"),
            Self::Interrupt => f.write_str("such interrupts are not on"),
            Self::Tuning => f.write_str("the bus is not in a timing that is tuned"),
            Self::Transfer(blocks) => write!(f, "{blocks} blocks are not what is transferred now"),
            Self::Header => f.write_str("a packed write has one header, shown before its data"),
            Self::BadHeader(error) => error.fmt(f),
            Self::Unmodelled(what) => write!(f, "{what} is not modelled"),
        }
    }
}

impl core::error::Error for Misuse {}
