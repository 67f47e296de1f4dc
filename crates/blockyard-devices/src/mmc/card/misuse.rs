//! Errors that a host makes in its use of a card.

use super::packed::HeaderError;
use blockyard::time::Instant;
use blockyard_mmc::command::Command;
use blockyard_mmc::command::legal::Illegal;
use blockyard_mmc::command::state::CardState;
use core::fmt;

/// A host broke a rule for hosts, or used a feature that this card does not model. This is a bug of
/// the host, not a fault to recover from, so the simulation ends. The card stays as it was
/// ([misuse-changes-nothing]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misuse {
    /// The command, or the last command before the data in question; `None` if there was no
    /// command.
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
    /// The command is illegal in the card's state.
    Illegal(Illegal),
    /// The card has already advanced to this later instant.
    Backwards(Instant),
    /// The previous response was still on the wire, until this instant.
    Overlap(Instant),
    /// The card is still falling asleep or waking, until this instant.
    Busy(Instant),
    /// The command belongs to the other standard.
    Standard,
    /// The previous command was not CMD55.
    NotApplication,
    /// The address is not the card's.
    Rca,
    /// The number of blocks differs from that of CMD23 or of the task.
    Count(u32),
    /// The task is not ready, has the other direction, or cannot be queued.
    Task(u8),
    /// The command before CMD45 was not CMD44.
    NoTask,
    /// Interrupts (HPI) are off, or this card takes the other command for them.
    Interrupt,
    /// The host asked for a tuning block in a timing that is not tuned. HS400 is tuned in HS200.
    Tuning,
    /// No transfer in progress has this many blocks left.
    Transfer(u32),
    /// A packed write has no header, or a header has no packed write.
    Header,
    /// The header of a packed command is invalid.
    BadHeader(HeaderError),
    /// This card does not model the feature.
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
