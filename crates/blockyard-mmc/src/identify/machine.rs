//! The state machine of identification.

use super::moves::{Move, Taken};
use super::step::{Answer, COMMAND, Failure, Step, TRIES};
use crate::card::time::{EXTENSION_WRITE, SWITCH};
use crate::card::{Card, CardKind};
use crate::command::{Addressing, Command, Opcode, Rca};
use crate::host::HostCapabilities;
use crate::mode::{IDENTIFICATION_HZ, Mode, SignalVoltage, Timing, TimingSet, Width};
use crate::register::cid::Cid;
use crate::register::csd::Csd;
use crate::register::ext_csd::ExtCsd;
use crate::register::extension::Performance;
use crate::register::scr::Scr;
use crate::register::ssr::Ssr;
use crate::register::switch::SwitchStatus;
use crate::register::{Bits, ocr};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use blockyard::time::Duration;

/// The state machine of identification. See [`identify`](super).
#[derive(Clone, Debug)]
pub struct Identify {
    pub(super) host: HostCapabilities,
    /// Timings that have not failed yet.
    pub(super) timings: TimingSet,
    /// The widest bus that has not failed yet.
    pub(super) width: Width,
    /// Whether SD signals at 1.8 V have not failed yet.
    pub(super) low_voltage: bool,
    /// Whether the extension registers of an SD card have not failed yet.
    pub(super) extensions: bool,
    /// The moves to come. The first one is under way.
    pub(super) moves: VecDeque<Move>,
    pub(super) progress: Progress,
    /// How often identification has started since a mode was given up.
    pub(super) starts: u8,
    /// What is known of the card.
    pub(super) found: Found,
    pub(super) failed: Option<Failure>,
}

/// The progress of the first move.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// Whether CMD55 was sent for its application command.
    pub(super) prefixed: bool,
    /// How often it was tried.
    tries: u8,
}

/// The knowledge about a card so far.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// Whether the card answered CMD8 of SD.
    pub(super) version_2: bool,
    /// Whether the card's addresses count sectors.
    pub(super) addressing: Addressing,
    pub(super) rca: Rca,
    pub(super) cid: Option<Bits<16>>,
    pub(super) csd: Option<Csd>,
    pub(super) scr: Option<Scr>,
    pub(super) ssr: Option<Ssr>,
    pub(super) functions: Option<SwitchStatus>,
    pub(super) performance: Option<Performance>,
    pub(super) ext_csd: Option<Box<ExtCsd>>,
    /// Whether the card is an eMMC device.
    pub(super) mmc: bool,
    /// The present voltage of the signals.
    pub(super) voltage: SignalVoltage,
    /// The mode that the card is entering, or has entered.
    pub(super) mode: Option<Mode>,
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
            performance: None,
            ext_csd: None,
            mmc: false,
            voltage: SignalVoltage::V3_3,
            mode: None,
        }
    }
}

impl Identify {
    /// Begins with whatever card is behind `host`.
    #[must_use]
    pub fn new(host: HostCapabilities) -> Self {
        let mut identify = Self {
            timings: host.timings.or(TimingSet::BASIC),
            width: host.width,
            low_voltage: host.signal_1v8 && host.power_cycle && host.width >= Width::Four,
            extensions: true,
            host,
            moves: VecDeque::new(),
            progress: Progress::default(),
            starts: 0,
            found: Found::nothing(),
            failed: None,
        };
        identify.start();
        identify
    }

    /// Returns the step to perform now. It stays the same until [`Self::answered`] is called.
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
                match command.opcode {
                    Opcode::WriteExtension => Step::SendByte { command, first: 1, limit },
                    _ => Step::Send { command, limit },
                }
            }
        }
    }

    /// Takes the result of the step that [`Self::next`] returned. After [`Step::Done`] and
    /// [`Step::Failed`] it changes nothing.
    pub fn answered(&mut self, answer: Answer<'_>) {
        if self.failed.is_some() {
            return;
        }
        let Some(&first) = self.moves.front() else { return };
        match self.take(first, answer) {
            Ok(Taken::Prefix) => self.progress.prefixed = true,
            Ok(Taken::Move) => self.advance(),
            Err(problem) => {
                let tries = self.progress.tries + 1;
                self.progress = Progress { tries, ..Progress::default() };
                if tries >= TRIES || !first.is_repeatable(problem) {
                    self.give_up(first, problem);
                }
            }
        }
    }

    /// Ends the first move.
    fn advance(&mut self) {
        debug_assert!(!self.moves.is_empty(), "no move to end");
        self.moves.pop_front();
        self.progress = Progress::default();
    }

    /// Begins at power-up, with the modes that have not failed yet.
    fn start(&mut self) {
        let changed = self.found.voltage != SignalVoltage::V3_3;
        self.found = Found::nothing();
        self.moves.clear();
        self.starts = self.starts.saturating_add(1);
        self.progress = Progress::default();
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

    /// Returns the mode of identification: one lane, at the clock that all cards support.
    pub(super) fn identification_mode(&self) -> Mode {
        let timing = if self.found.mmc { Timing::MmcLegacy } else { Timing::SdDefault };
        let clock_hz = IDENTIFICATION_HZ.min(self.host.max_clock_hz);
        Mode { timing, width: Width::One, voltage: self.found.voltage, clock_hz }
    }

    /// Returns the command of a move, or CMD55 if that must come first ([only-legal-commands]).
    fn command(&self, of: &Move) -> Command {
        let command = self.bare_command(of);
        if command.opcode.is_application() && !self.progress.prefixed {
            return Command::application(self.found.rca);
        }
        command
    }

    /// Returns the time limit of a command.
    fn limit(&self, command: &Command) -> Duration {
        match &self.found.ext_csd {
            _ if command.opcode == Opcode::WriteExtension => EXTENSION_WRITE,
            _ if !command.response.has_busy() => COMMAND,
            Some(ext_csd) => ext_csd.generic_switch_time().unwrap_or(SWITCH),
            None => SWITCH,
        }
    }

    /// Returns the argument of ACMD41 for SD.
    pub(super) fn sd_ocr(&self) -> u32 {
        let high_capacity = if self.found.version_2 { ocr::SdOcr::HIGH_CAPACITY } else { 0 };
        let low = self.found.version_2 && self.low_voltage;
        let low = if low { ocr::SdOcr::SIGNAL_1V8 } else { 0 };
        self.host.supply & ocr::SdOcr::VOLTAGES | high_capacity | low
    }

    /// Returns the argument of CMD1 for eMMC.
    pub(super) fn mmc_ocr(&self) -> u32 {
        let window = ocr::MmcOcr::VOLTAGES | ocr::MmcOcr::LOW_VOLTAGE;
        self.host.supply & window | ocr::MmcOcr::SECTOR_MODE
    }

    /// Decides what the final failure of `first` means.
    fn give_up(&mut self, first: Move, problem: Failure) {
        debug_assert!(self.failed.is_none(), "identification has already failed");
        debug_assert!(self.progress.tries <= TRIES, "too many tries: {:?}", self.progress);
        let bus = matches!(problem, Failure::Bus { .. });
        if let Move::CacheOn { place, tries } = first {
            self.moves.push_back(Move::AskAfterCacheOn { place, tries: tries + 1 });
            return self.advance();
        }
        if first.is_optional() {
            return self.advance();
        }
        if first.decides_cache() {
            return self.forgo_extensions();
        }
        match if bus { self.handle_silence(first) } else { None } {
            Some(Ok(())) => return self.advance(),
            Some(Err(failure)) => return self.failed = Some(failure),
            None => {}
        }
        let again = match self.found.mode {
            Some(mode) => self.give_up_mode(mode),
            None if matches!(first, Move::VoltageSwitch | Move::Voltage(_)) => {
                self.forgo_low_voltage()
            }
            None if !bus && !matches!(problem, Failure::Card { .. }) => false,
            None if self.starts < TRIES => true,
            // The voltage may be the reason.
            None => self.found.voltage != SignalVoltage::V3_3 && self.forgo_low_voltage(),
        };
        if again {
            self.start();
        } else {
            self.failed = Some(problem);
        }
    }

    /// Starts over without the extension registers, so that the cache of the card stays off.
    fn forgo_extensions(&mut self) {
        debug_assert!(self.extensions, "a cache without its register");
        self.extensions = false;
        self.starts = 0;
        self.start();
    }

    /// Gives up 1.8 V. Returns whether it was still in use.
    fn forgo_low_voltage(&mut self) -> bool {
        self.starts = 0;
        core::mem::replace(&mut self.low_voltage, false)
    }

    /// Gives up `mode`. Returns whether another mode is left.
    fn give_up_mode(&mut self, mode: Mode) -> bool {
        debug_assert!(mode.width <= self.width, "a bus that has failed: {mode:?}");
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

    /// Returns the card that was found.
    fn card(&self) -> Result<Card, Failure> {
        let found = &self.found;
        let cid = found.cid.as_ref().expect("CID after the moves");
        let csd = found.csd.expect("CSD after the moves");
        let mode = found.mode.expect("mode after the moves");
        let ext_csd = found.ext_csd.as_ref();
        let (kind, cid) = if found.mmc {
            let revision = ext_csd.map(|ext_csd| ext_csd.revision()).unwrap_or_default();
            (CardKind::Mmc { ext_csd: ext_csd.cloned() }, Cid::mmc(cid, revision))
        } else {
            let scr = found.scr.expect("SCR of an SD card after the moves");
            let ssr = found.ssr.expect("SSR of an SD card after the moves");
            (CardKind::Sd { scr, ssr, performance: found.performance }, Cid::sd(cid))
        };
        // Above 2 GB the CSD of an eMMC device does not state the size; below, EXT_CSD need not.
        let stated = ext_csd.and_then(|ext_csd| ext_csd.sectors());
        let by_sectors = found.addressing == Addressing::Sectors;
        let sectors = if by_sectors { stated.or(csd.sectors) } else { csd.sectors.or(stated) };
        let sectors = sectors.ok_or(Failure::NoCapacity)?;
        debug_assert!(mode.timing.min_width() <= mode.width, "{mode:?} is no mode");
        let addressing = found.addressing;
        Ok(Card { kind, rca: found.rca, cid, csd, addressing, sectors, mode })
    }
}
