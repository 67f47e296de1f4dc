//! Steps of identification: requests to a host, and the host's answers.

use crate::card::Card;
use crate::command::status::Status;
use crate::command::{Command, Opcode, Response};
use crate::mode::{Mode, SignalVoltage};
use crate::register::RegisterError;
use alloc::boxed::Box;
use blockyard::time::Duration;
use core::fmt;

/// The tries of a step before it counts as failed.
pub const TRIES: u8 = 3;

/// The time between two questions whether a card is ready.
pub const READY_INTERVAL: Duration = Duration::from_ms(10);

/// The number of times that a card is asked whether it is ready. It must be within a second (SD
/// 4.2.3; JESD84-B51 6.4.2).
pub const READY_TRIES: u8 = 101;

/// The time limit of a command without busy, and of its data.
pub const COMMAND: Duration = Duration::from_ms(150);

/// The next step of the host.
#[derive(Clone, Debug)]
pub enum Step {
    /// Send `command`, with its data if it has any. Give up after `limit`, if there is no response,
    /// no data, or busy does not end. Answer with [`Answer::Response`] or [`Answer::Data`].
    Send {
        /// The command.
        command: Command,
        /// The time limit.
        limit: Duration,
    },
    /// Send `command`, and then a block of 512 bytes: `first`, and 511 zeros. Give up after
    /// `limit`, if there is no response or busy does not end. Answer with [`Answer::Response`].
    SendByte {
        /// The command.
        command: Command,
        /// The first byte of its data.
        first: u8,
        /// The time limit.
        limit: Duration,
    },
    /// Switch the card's power off; or on, if it is off, with signals at 3.3 V. The mode of the bus
    /// follows.
    Power(bool),
    /// Change the voltage of the signals while the clock stands still. On SD this is the second
    /// half of CMD11, and fails if the card does not release its data lines (SD 4.2.4.2).
    Voltage(SignalVoltage),
    /// Drive the bus in this mode from now on.
    Drive(Mode),
    /// Find the sampling point by sending `command` up to 40 times.
    Tune(Command),
    /// Let at least this time pass.
    Wait(Duration),
    /// The card is identified, selected and in its mode.
    Done(Box<Card>),
    /// There is no card that can be used.
    Failed(Failure),
}

/// The result of a step.
#[derive(Clone, Copy, Debug)]
pub enum Answer<'a> {
    /// The step is done: any step but [`Step::Send`] and [`Step::SendByte`], and commands without a
    /// response.
    Done,
    /// The card answered, and busy is over.
    Response(Response),
    /// The card answered and sent data.
    Data(Response, &'a [u8]),
    /// The step failed.
    Error(BusError),
}

/// Errors on the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusError {
    /// No response came.
    NoResponse,
    /// The response came damaged.
    ResponseCrc,
    /// No data came, or it came damaged.
    Data,
    /// The card was busy beyond the limit.
    Busy,
    /// The host could not do it: change a voltage, or tune.
    Host,
}

/// Why there is no card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No card answers.
    NoCard,
    /// The card is an I/O card, or has an I/O part: it is no block device.
    Sdio,
    /// The card does not work at the voltages that the host has.
    Voltage,
    /// The card did not become ready within a second.
    NeverReady,
    /// The card is locked by a password.
    Locked,
    /// A register has an impossible value.
    Register(RegisterError),
    /// The card does not state its size.
    NoCapacity,
    /// A command failed each time.
    Bus {
        /// The command, or the tuning command; `None` for power, voltage, clock.
        opcode: Option<Opcode>,
        /// The last error.
        error: BusError,
    },
    /// The card reported errors each time.
    Card {
        /// The command.
        opcode: Opcode,
        /// The status in the response.
        status: Status,
    },
    /// The card's answer does not have the form that the command asks for.
    Malformed(Opcode),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCard => f.write_str("no card answers"),
            Self::Sdio => f.write_str("an I/O card (SDIO), which holds no blocks"),
            Self::Voltage => f.write_str("the card does not work at any voltage the host has"),
            Self::NeverReady => f.write_str("the card did not become ready within a second"),
            Self::Locked => f.write_str("the card is locked by a password"),
            Self::Register(error) => error.fmt(f),
            Self::NoCapacity => f.write_str("the card says nothing of its size"),
            Self::Bus { opcode: Some(opcode), error } => write!(f, "{opcode} failed: {error:?}"),
            Self::Bus { opcode: None, error } => write!(f, "the bus failed: {error:?}"),
            Self::Card { opcode, status } => write!(f, "{opcode} was answered by {status:?}"),
            Self::Malformed(opcode) => write!(f, "{opcode} got an answer of the wrong form"),
        }
    }
}

impl core::error::Error for Failure {}
