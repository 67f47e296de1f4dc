//! Identification: from a slot with power to a [`Card`] in its best mode (JESD84-B51 6.4 to 6.6;
//! SD 4.2 and 4.3).
//!
//! [`Identify`] does no I/O. [`Identify::next`] says what to do, the host does it and tells with
//! [`Identify::answered`] how it went, until the step is [`Step::Done`] or [`Step::Failed`].
//!
//! ```text
//! power ─► CMD0 ─► CMD8 ─► CMD5 ─► ACMD41 ─┬─ SD: CMD11 ─► CMD2 3 9 7 ─► SCR SSR CMD6 ─► mode ─► done
//!                                           └─ eMMC: CMD0 1 2 3 9 7 ─► EXT_CSD ─► mode ─► settings ─► done
//! ```
//!
//! # Rules
//!
//! - **I1.** No command is sent that is [illegal](super::command::state::legal) in the card's state.
//!   Those that ask which standard a card follows are the exception: the wrong card stays silent.
//! - **I2.** What fails is tried [`TRIES`] times in all, what cannot be repeated once. For a probe
//!   silence then is the answer.
//! - **I3.** A mode that fails is not used, and nothing is assumed of the card that it failed on:
//!   identification starts over, without power in between where the host can, and chooses again
//!   among the rest. When the slowest timing fails, it starts over with a narrower bus. Before a mode
//!   was chosen it starts over [`TRIES`] times in all, then without 1.8 V. So it ends.
//! - **I4.** Settings that a card can do without (cache, HPI, erase groups, tales of packed
//!   commands that failed) do not fail it.
//! - **I5.** A mode counts only once the card's data arrives well in it.
//!
//! A bus that is tuned, and has drifted, is tuned again by the steps of a [`Retune`].
//!
//! Memory is allocated here; a [`Card`] needs none later on.
//!
//! # Examples
//!
//! The whole loop, on an empty slot:
//!
//! ```
//! use blockyard_mmc::command::ResponseKind;
//! use blockyard_mmc::host::HostCapabilities;
//! use blockyard_mmc::identify::{Answer, BusError, Failure, Identify, Step};
//!
//! let mut identify = Identify::new(HostCapabilities::plain());
//! let end = loop {
//!     match identify.next() {
//!         Step::Done(card) => break Ok(card),
//!         Step::Failed(why) => break Err(why),
//!         Step::Send { command, .. } if command.response != ResponseKind::None => {
//!             identify.answered(Answer::Error(BusError::NoResponse));
//!         }
//!         // Power, clocks, voltages, waits: a real host does them here.
//!         _ => identify.answered(Answer::Done),
//!     }
//! };
//! assert_eq!(end.unwrap_err(), Failure::NoCard);
//! ```

use super::card::time::SWITCH;
use super::card::{Card, CardKind};
use super::command::status::Status;
use super::command::{Addressing, Command, Opcode, Rca, Response};
use super::host::HostCapabilities;
use super::mode::{IDENTIFICATION_HZ, Mode, SignalVoltage, Timing, TimingSet, Width};
use super::register::RegisterError;
use super::register::cid::Cid;
use super::register::csd::Csd;
use super::register::ext_csd::ExtCsd;
use super::register::scr::Scr;
use super::register::ssr::Ssr;
use super::register::switch::SwitchStatus;
use super::register::{Bits, ocr};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use blockyard::time::Duration;
use core::fmt;

mod plan;
mod retune;
mod take;

#[cfg(test)]
mod tests;

pub use retune::Retune;

use plan::Move;
use take::Taken;

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

/// The state machine. See the [module](self).
#[derive(Clone, Debug)]
pub struct Identify {
    host: HostCapabilities,
    /// Timings that have not failed yet (I3).
    timings: TimingSet,
    /// Widest bus that has not failed yet (I3).
    width: Width,
    /// Whether SD signals at 1.8 V have not failed yet (I3).
    low_voltage: bool,
    /// What is still to be done, the first now.
    moves: VecDeque<Move>,
    /// Whether CMD55 came before the application's command that is now.
    prefixed: bool,
    /// How often the first move was tried.
    tries: u8,
    /// How often it was begun since something was forgone.
    starts: u8,
    /// What is known of the card.
    found: Found,
    failed: Option<Failure>,
}

/// What is known of a card so far.
#[derive(Clone, Debug)]
struct Found {
    /// Whether it answered CMD8 of SD.
    version_2: bool,
    /// Whether its addresses count sectors.
    addressing: Addressing,
    rca: Rca,
    cid: Option<Bits<16>>,
    csd: Option<Csd>,
    scr: Option<Scr>,
    ssr: Option<Ssr>,
    functions: Option<SwitchStatus>,
    ext_csd: Option<Box<ExtCsd>>,
    /// Whether it is an eMMC device.
    mmc: bool,
    /// Signals' voltage now.
    voltage: SignalVoltage,
    /// The mode that is being entered, or was.
    mode: Option<Mode>,
}

impl Found {
    fn nothing() -> Self {
        Self {
            version_2: false,
            addressing: Addressing::Bytes,
            rca: Rca(0),
            cid: None,
            csd: None,
            scr: None,
            ssr: None,
            functions: None,
            ext_csd: None,
            mmc: false,
            voltage: SignalVoltage::V3_3,
            mode: None,
        }
    }
}

impl Identify {
    /// Begins with whatever is behind `host`.
    #[must_use]
    pub fn new(host: HostCapabilities) -> Self {
        let mut identify = Self {
            timings: host.timings.or(TimingSet::BASIC),
            width: host.width,
            low_voltage: host.signal_1v8 && host.power_cycle && host.width >= Width::Four,
            host,
            moves: VecDeque::new(),
            prefixed: false,
            tries: 0,
            starts: 0,
            found: Found::nothing(),
            failed: None,
        };
        identify.start();
        identify
    }

    /// What to do now. The same until [`Self::answered`] was called.
    #[must_use]
    pub fn next(&self) -> Step {
        if let Some(failure) = self.failed {
            return Step::Failed(failure);
        }
        let Some(first) = self.moves.front() else {
            return match self.card() {
                Ok(card) => Step::Done(Box::new(card)),
                Err(failure) => Step::Failed(failure),
            };
        };
        match first {
            Move::Power(on) => Step::Power(*on),
            Move::Wait(span) => Step::Wait(*span),
            Move::Drive(mode) => Step::Drive(*mode),
            Move::Voltage(voltage) => Step::Voltage(*voltage),
            Move::Tune(command) => Step::Tune(*command),
            other => {
                let command = self.command(other);
                let limit = self.limit(&command);
                Step::Send { command, limit }
            }
        }
    }

    /// Tells how the step that [`Self::next`] named went. After [`Step::Done`] and
    /// [`Step::Failed`] it changes nothing.
    pub fn answered(&mut self, answer: Answer<'_>) {
        if self.failed.is_some() {
            return;
        }
        let Some(&first) = self.moves.front() else { return };
        match self.take(first, answer) {
            Ok(Taken::Prefix) => self.prefixed = true,
            Ok(Taken::Move) => self.advance(),
            Err(problem) => {
                self.prefixed = false;
                self.tries += 1;
                if self.tries >= TRIES || !first.is_repeatable(problem) {
                    self.give_up(first, problem);
                }
            }
        }
    }

    /// The first move is over.
    fn advance(&mut self) {
        self.moves.pop_front();
        self.tries = 0;
        self.prefixed = false;
    }

    /// Begins from power-up with what has not failed yet.
    fn start(&mut self) {
        let changed = self.found.voltage != SignalVoltage::V3_3;
        self.found = Found::nothing();
        self.moves.clear();
        self.starts = self.starts.saturating_add(1);
        self.tries = 0;
        self.prefixed = false;
        if self.host.power_cycle {
            self.moves.extend([Move::Power(false), Move::Wait(Duration::from_ms(10))]);
        } else if changed {
            self.moves.push_back(Move::Voltage(SignalVoltage::V3_3));
        }
        self.moves.extend([
            Move::Power(true),
            // Supplies rise for up to 1 ms, and 74 clocks of 2.5 us follow.
            Move::Wait(Duration::from_ms(2)),
            Move::Drive(self.identification_mode()),
            Move::GoIdle,
            Move::IfCond,
            Move::IoCond,
            Move::SdReady { tries: 0 },
        ]);
    }

    /// One lane at the clock that all cards listen to.
    fn identification_mode(&self) -> Mode {
        let timing = if self.found.mmc { Timing::MmcLegacy } else { Timing::SdDefault };
        let clock_hz = IDENTIFICATION_HZ.min(self.host.max_clock_hz);
        Mode { timing, width: Width::One, voltage: self.found.voltage, clock_hz }
    }

    /// The command of a move, or CMD55 where that must come first.
    fn command(&self, of: &Move) -> Command {
        let command = self.bare_command(of);
        if command.opcode.is_application() && !self.prefixed {
            return Command::application(self.found.rca);
        }
        command
    }

    /// What a command is granted.
    fn limit(&self, command: &Command) -> Duration {
        match &self.found.ext_csd {
            _ if !command.response.has_busy() => COMMAND,
            Some(ext_csd) => ext_csd.generic_switch_time().unwrap_or(SWITCH),
            None => SWITCH,
        }
    }

    /// What SD is asked with ACMD41.
    fn sd_ocr(&self) -> u32 {
        let high_capacity = if self.found.version_2 { ocr::SdOcr::HIGH_CAPACITY } else { 0 };
        let low = self.found.version_2 && self.low_voltage;
        let low = if low { ocr::SdOcr::SIGNAL_1V8 } else { 0 };
        self.host.supply & ocr::SdOcr::VOLTAGES | high_capacity | low
    }

    /// What eMMC is asked with CMD1.
    fn mmc_ocr(&self) -> u32 {
        let window = ocr::MmcOcr::VOLTAGES | ocr::MmcOcr::LOW_VOLTAGE;
        self.host.supply & window | ocr::MmcOcr::SECTOR_MODE
    }

    /// `first` failed for good: what that means.
    fn give_up(&mut self, first: Move, problem: Failure) {
        let bus = matches!(problem, Failure::Bus { .. });
        if first.is_optional() {
            return self.advance();
        }
        match if bus { self.silence(first) } else { None } {
            Some(Ok(())) => return self.advance(),
            Some(Err(failure)) => return self.failed = Some(failure),
            None => {}
        }
        let again = match self.found.mode {
            Some(mode) => self.forgo(mode),
            None if matches!(first, Move::VoltageSwitch | Move::Voltage(_)) => {
                self.forgo_low_voltage()
            }
            None if !bus && !matches!(problem, Failure::Card { .. }) => false,
            None if self.starts < TRIES => true,
            // Perhaps it is the voltage.
            None => self.found.voltage != SignalVoltage::V3_3 && self.forgo_low_voltage(),
        };
        if again {
            self.start();
        } else {
            self.failed = Some(problem);
        }
    }

    /// Never again at 1.8 V. Whether there was something to forgo (I3).
    fn forgo_low_voltage(&mut self) -> bool {
        self.starts = 0;
        core::mem::replace(&mut self.low_voltage, false)
    }

    /// Never again in `mode`. Whether another is left (I3).
    fn forgo(&mut self, mode: Mode) -> bool {
        self.starts = 0;
        if !TimingSet::BASIC.has(mode.timing) {
            self.timings = self.timings.without(mode.timing);
            return true;
        }
        if mode.timing == Timing::Sdr12 {
            return self.forgo_low_voltage();
        }
        self.width = match mode.width {
            Width::Eight => Width::Four,
            Width::Four => Width::One,
            Width::One => return false,
        };
        self.timings = self.host.timings.or(TimingSet::BASIC);
        true
    }

    /// The card that was found.
    fn card(&self) -> Result<Card, Failure> {
        let found = &self.found;
        let (Some(cid), Some(csd), Some(mode)) = (&found.cid, found.csd, found.mode) else {
            unreachable!("moves end only after CID, CSD and a mode")
        };
        let ext_csd = found.ext_csd.as_ref();
        let (kind, cid) = if found.mmc {
            let revision = ext_csd.map_or(0, |ext_csd| ext_csd.revision());
            (CardKind::Mmc { ext_csd: ext_csd.cloned() }, Cid::mmc(cid, revision))
        } else {
            let (Some(scr), Some(ssr)) = (found.scr, found.ssr) else {
                unreachable!("moves of an SD card end only after SCR and SSR")
            };
            (CardKind::Sd { scr, ssr }, Cid::sd(cid))
        };
        // Above 2 GB the CSD of an eMMC device does not say; below, EXT_CSD need not.
        let stated = ext_csd.and_then(|ext_csd| ext_csd.sectors());
        let by_sectors = found.addressing == Addressing::Sectors;
        let sectors = if by_sectors { stated.or(csd.sectors) } else { csd.sectors.or(stated) };
        let sectors = sectors.ok_or(Failure::NoCapacity)?;
        let addressing = found.addressing;
        Ok(Card { kind, rca: found.rca, cid, csd, addressing, sectors, mode })
    }
}
