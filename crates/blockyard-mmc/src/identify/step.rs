//! What identification asks of a host, and what the host answers.

use crate::card::Card;
use crate::command::status::Status;
use crate::command::{Command, Opcode, Response};
use crate::mode::{Mode, SignalVoltage};
use crate::register::RegisterError;
use alloc::boxed::Box;
use blockyard::time::Duration;
use core::fmt;

/// How often a step is tried before it has failed.
pub const TRIES: u8 = 3;

/// Between two questions whether a card is ready.
pub const READY_INTERVAL: Duration = Duration::from_ms(10);

/// How often it is asked: a card is ready within a second (SD 4.2.3; JESD84-B51 6.4.2).
pub const READY_TRIES: u8 = 101;

/// Granted for a command without busy, and for the data that follows it.
pub const COMMAND: Duration = Duration::from_ms(150);

/// What the host is to do next.
#[derive(Clone, Debug)]
pub enum Step {
    /// Send `command`, with its data if it has any. Give up after `limit`: no response, no data, or
    /// busy still. Answer with [`Answer::Response`] or [`Answer::Data`].
    Send {
        /// What to send.
        command: Command,
        /// When to give up.
        limit: Duration,
    },
    /// Take the card's power away, or give it, where it has none yet, with signals at 3.3 V. How the
    /// bus is driven then follows.
    Power(bool),
    /// Change the signals' voltage, the clock standing still meanwhile. On SD that is the second
    /// half of CMD11, and fails where the card does not let go of its data lines (SD 4.2.4.2).
    Voltage(SignalVoltage),
    /// Drive the bus so from now on.
    Drive(Mode),
    /// Find the sampling point by sending `command` up to 40 times.
    Tune(Command),
    /// Let at least so much time pass.
    Wait(Duration),
    /// There is a card, selected and in its mode.
    Done(Box<Card>),
    /// There is none that can be used.
    Failed(Failure),
}

/// How a step went.
#[derive(Clone, Copy, Debug)]
pub enum Answer<'a> {
    /// It is done; of all but [`Step::Send`], and of commands without a response.
    Done,
    /// The card answered, and busy is over.
    Response(Response),
    /// The card answered and sent data.
    Data(Response, &'a [u8]),
    /// It failed.
    Error(BusError),
}

/// What can fail on a bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusError {
    /// No response came.
    NoResponse,
    /// The response came damaged.
    ResponseCrc,
    /// No data came, or damaged.
    Data,
    /// The card was busy beyond the limit.
    Busy,
    /// The host could not do it: a voltage, a tuning.
    Host,
}

/// Why there is no card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Nothing answers.
    NoCard,
    /// It is an I/O card, or has an I/O part: not a block device.
    Sdio,
    /// The card does not work at the voltages that the host has.
    Voltage,
    /// The card did not become ready within a second.
    NeverReady,
    /// The card is locked by a password.
    Locked,
    /// A register says what cannot be.
    Register(RegisterError),
    /// The card says nothing of its size.
    NoCapacity,
    /// A command failed again and again.
    Bus {
        /// The command, or the one tuned with; `None`: power, voltage, clock.
        opcode: Option<Opcode>,
        /// How, the last time.
        error: BusError,
    },
    /// The card reported errors again and again.
    Card {
        /// The command.
        opcode: Opcode,
        /// The status that came back.
        status: Status,
    },
    /// The card's answer has not the form that the command asks for.
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
