//! Why a card did not do what it was told.

use blockyard::status::Status;
use blockyard_mmc::register::RegisterError;
use core::fmt;
use embedded_hal::spi::ErrorKind;

/// Why a card did not do what it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The bus failed.
    Bus(ErrorKind),
    /// The pin of the chip select failed.
    ChipSelect,
    /// No response to a command, or none to a block: the card is gone, or never was there.
    NoAnswer {
        /// The number of the command.
        command: u8,
    },
    /// The card did not come out of reset or is no SD card: it refused a command of the
    /// identification, or does not work at the voltage of the slot.
    NotSd,
    /// Another card is in the slot than the one that was identified before.
    OtherCard,
    /// The card refused a command.
    Refused {
        /// The number of the command.
        command: u8,
        /// Its R1.
        response: u8,
    },
    /// The card was busy, or kept a block back, for longer than the specification allows.
    Timeout {
        /// The number of the command that the card is busy with.
        command: u8,
    },
    /// A block was damaged on the wire at every try.
    Damaged,
    /// The card could not read a block, for the reasons in the [error
    /// token](crate::frame::ErrorToken).
    Unreadable(u8),
    /// The card could not write a block. The second byte of its status (R2) says why, if it says
    /// so.
    Unwritable(u8),
    /// The card's CSD makes no sense.
    Register(RegisterError),
}

impl Error {
    /// Returns whether the connection to the card is lost or in doubt, so that the card must be
    /// identified again.
    #[must_use]
    pub const fn is_lost(self) -> bool {
        !matches!(
            self,
            Self::Refused { .. } | Self::Damaged | Self::Unreadable(_) | Self::Unwritable(_)
        )
    }

    /// Returns the status with which an I/O ends that failed with this error.
    #[must_use]
    pub const fn status(self) -> Status {
        match self {
            Self::NoAnswer { .. } | Self::NotSd | Self::OtherCard => Status::Gone,
            Self::Timeout { .. } => Status::Timeout,
            Self::Unreadable(_) | Self::Unwritable(_) => Status::Medium,
            Self::Bus(_)
            | Self::ChipSelect
            | Self::Refused { .. }
            | Self::Damaged
            | Self::Register(_) => Status::IoError,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bus(kind) => write!(f, "the SPI bus failed: {kind}"),
            Self::ChipSelect => f.write_str("the pin of the chip select failed"),
            Self::NoAnswer { command } => write!(f, "no answer to CMD{command}"),
            Self::NotSd => f.write_str("the slot has no SD card that works at its voltage"),
            Self::OtherCard => f.write_str("another card is in the slot"),
            Self::Refused { command, response } => {
                write!(f, "the card refused CMD{command} with {response:#04x}")
            }
            Self::Timeout { command } => write!(f, "the card took too long for CMD{command}"),
            Self::Damaged => f.write_str("a block was damaged on the wire at every try"),
            Self::Unreadable(token) => write!(f, "a block is unreadable, token {token:#04x}"),
            Self::Unwritable(status) => write!(f, "a block is unwritable, status {status:#04x}"),
            Self::Register(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for Error {}

/// A transfer that failed after its first blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Blocks, from the first, that were transferred well.
    pub done: u32,
    /// Why the next one was not.
    pub error: Error,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {} blocks: {}", self.done, self.error)
    }
}

impl core::error::Error for Failed {}
