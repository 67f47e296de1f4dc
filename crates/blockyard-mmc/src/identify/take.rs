//! Answers of identification: the meaning of each for its move, and the moves that follow.

use super::machine::Identify;
use super::moves::{MMC_RCA, Move, PATTERN, Taken};
use super::step::{Answer, BusError, Failure, READY_INTERVAL, READY_TRIES, TRIES};
use crate::command::response::R6;
use crate::command::state::CardState;
use crate::command::status::Status;
use crate::command::{Addressing, Opcode, Response};
use crate::mode::{Mode, SignalVoltage, Timing};
use crate::register::Bits;
use crate::register::csd::{Csd, Layout};
use crate::register::ext_csd::ExtCsd;
use crate::register::extension::{self, ExtensionPlace, Performance};
use crate::register::ocr::{MmcOcr, SdOcr};
use crate::register::scr::Scr;
use crate::register::ssr::Ssr;
use crate::register::switch::{Group, SwitchStatus};
use alloc::boxed::Box;

impl Identify {
    /// Takes the answer to `first`, and adds the moves that follow from it behind all others.
    pub(super) fn take(&mut self, first: Move, answer: Answer<'_>) -> Result<Taken, Failure> {
        match first {
            Move::Power(_) | Move::Wait(_) | Move::Drive(_) => done(None, answer)?,
            Move::Tune(command) => done(Some(command.opcode), answer)?,
            Move::Voltage(voltage) => {
                done(None, answer)?;
                self.found.voltage = voltage;
            }
            _ => return self.take_response(first, answer),
        }
        Ok(Taken::Move)
    }

    /// Takes the answer to a command, or to CMD55 before it.
    fn take_response(&mut self, first: Move, answer: Answer<'_>) -> Result<Taken, Failure> {
        let opcode = self.bare_command(&first).opcode;
        if let Answer::Error(error) = answer {
            return Err(Failure::Bus { opcode: Some(opcode), error });
        }
        if opcode.is_application() && !self.progress.prefixed {
            // Errors in this response are those of the probes before it.
            return Ok(Taken::Prefix);
        }
        match first {
            Move::GoIdle => {}
            Move::IfCond => {
                // The card accepted 2.7 to 3.6 V, and returned the pattern.
                if short(opcode, answer)? & 0xfff != 0x100 | u32::from(PATTERN) {
                    return Err(Failure::Voltage);
                }
                self.found.version_2 = true;
            }
            Move::IoCond => return Err(Failure::Sdio),
            Move::SdReady { tries } => self.sd_ready(short(opcode, answer)?, tries)?,
            Move::MmcThere => {
                if !MmcOcr(short(opcode, answer)?).takes(self.mmc_ocr()) {
                    return Err(Failure::Voltage);
                }
                self.moves.extend([Move::GoIdle, Move::MmcReady { tries: 0 }]);
            }
            Move::MmcReady { tries } => self.mmc_ready(short(opcode, answer)?, tries)?,
            Move::Cid => self.found.cid = Some(long(opcode, answer)?),
            Move::AskRca => self.found.rca = R6::parse(short(opcode, answer)?).rca,
            Move::GiveRca => {
                status(opcode, answer)?;
                self.found.rca = MMC_RCA;
            }
            Move::Csd => {
                let bits = long(opcode, answer)?;
                let csd = if self.found.mmc { Csd::mmc(&bits) } else { Csd::sd(&bits) };
                self.found.csd = Some(csd.map_err(Failure::Register)?);
            }
            Move::Select => {
                if status(opcode, answer)?.has(Status::CARD_IS_LOCKED) {
                    return Err(Failure::Locked);
                }
                self.selected();
            }
            Move::Scr
            | Move::Functions
            | Move::AccessMode(_)
            | Move::Ssr
            | Move::Extensions
            | Move::Performance(_)
            | Move::PerformanceAgain(_)
            | Move::ExtCsd
            | Move::Reread => self.take_data(first, opcode, answer)?,
            Move::VoltageSwitch
            | Move::BlockLen
            | Move::FourLanes
            | Move::Switch(..)
            | Move::Check
            | Move::Setting(..)
            | Move::CheckSetting => {
                status(opcode, answer)?;
            }
            Move::CacheOn { .. } | Move::AskAfterCacheOn { .. } | Move::StopSetting => {
                self.take_setting(first, opcode, answer)?;
            }
            _ => unreachable!("{first:?} has no response"),
        }
        Ok(Taken::Move)
    }

    /// Takes the register that the answer to `opcode` brings as data.
    fn take_data(
        &mut self,
        first: Move,
        opcode: Opcode,
        answer: Answer<'_>,
    ) -> Result<(), Failure> {
        match first {
            Move::Scr => {
                let scr = Scr::parse(data(opcode, answer)?).map_err(Failure::Register)?;
                self.found.scr = Some(scr);
                if self.has_functions() {
                    self.moves.push_back(Move::Functions);
                } else {
                    self.sd_mode()?;
                }
            }
            Move::Functions => {
                self.found.functions = Some(SwitchStatus::parse(data(opcode, answer)?));
                self.sd_mode()?;
            }
            Move::AccessMode(mode) => {
                let switched = SwitchStatus::parse(data(opcode, answer)?);
                if switched.selected(Group::AccessMode) != Some(mode) {
                    let status = Status(Status::SWITCH_ERROR);
                    return Err(Failure::Card { opcode, status });
                }
            }
            Move::Ssr => self.found.ssr = Some(Ssr::parse(data(opcode, answer)?)),
            Move::Extensions => {
                let place = extension::performance_place(data(opcode, answer)?);
                self.moves.extend(place.map(Move::Performance));
            }
            Move::Performance(place) => {
                let performance = Performance::parse(place, data(opcode, answer)?);
                self.found.performance = Some(performance);
                if performance.cache {
                    self.moves.push_back(Move::CacheOn { place, tries: 0 });
                }
            }
            Move::PerformanceAgain(place) => {
                self.found.performance = Some(Performance::parse(place, data(opcode, answer)?));
            }
            Move::ExtCsd => {
                let ext_csd = ExtCsd::parse(data(opcode, answer)?).map_err(Failure::Register)?;
                self.found.ext_csd = Some(Box::new(ext_csd));
                self.mmc_mode();
            }
            Move::Reread => self.compare_reread(opcode, data(opcode, answer)?)?,
            _ => unreachable!("{first:?} brings no register"),
        }
        Ok(())
    }

    /// Takes the answer to CMD49, or to a command after one that failed.
    fn take_setting(
        &mut self,
        first: Move,
        opcode: Opcode,
        answer: Answer<'_>,
    ) -> Result<(), Failure> {
        match first {
            Move::CacheOn { place, .. } => {
                status(opcode, answer)?;
                self.check_cache(place);
            }
            Move::AskAfterCacheOn { place, tries } => {
                self.after_cache_on(Status(short(opcode, answer)?), place, tries);
            }
            // That the data of CMD49 failed is known.
            _ => drop(short(opcode, answer)?),
        }
        Ok(())
    }

    /// Acts on the status after a CMD49 that failed. A card that did not get the byte waits for it
    /// until CMD12.
    fn after_cache_on(&mut self, status: Status, place: ExtensionPlace, tries: u8) {
        debug_assert!((1..=TRIES).contains(&tries), "{tries} tries of CMD49");
        if status.state() == Some(CardState::Receive) {
            self.moves.push_back(Move::StopSetting);
        }
        if tries < TRIES {
            self.moves.push_back(Move::CacheOn { place, tries });
        } else {
            self.check_cache(place);
        }
    }

    /// Plans to find out whether the cache is on. CMD13 says whether the card took the byte. The
    /// register says whether the cache is on, and must be read: a cache that is on has to be
    /// flushed.
    fn check_cache(&mut self, place: ExtensionPlace) {
        self.moves.extend([Move::CheckSetting, Move::PerformanceAgain(place)]);
    }

    /// Acts on a probe without a good answer, which says what the card is not. Returns `None` if
    /// `first` is no probe.
    pub(super) fn handle_silence(&mut self, first: Move) -> Option<Result<(), Failure>> {
        match first {
            Move::IfCond | Move::IoCond => {}
            Move::SdReady { tries: 0 } => {
                // The card is not SD. CMD0 undoes what the probes did to an eMMC device.
                self.found.mmc = true;
                let slow = Move::Drive(self.identification_mode());
                self.moves.extend([slow, Move::GoIdle, Move::MmcThere]);
            }
            Move::MmcThere => return Some(Err(Failure::NoCard)),
            _ => return None,
        }
        Some(Ok(()))
    }

    fn sd_ready(&mut self, bits: u32, tries: u8) -> Result<(), Failure> {
        debug_assert!(tries < READY_TRIES, "{tries} tries are too many");
        let ocr = SdOcr(bits);
        if !ocr.is_ready() {
            return self.ask_again(Move::SdReady { tries: tries + 1 }, tries);
        }
        if !ocr.takes(self.host.supply) {
            return Err(Failure::Voltage);
        }
        if ocr.is_sector_addressed() {
            self.found.addressing = Addressing::Sectors;
        }
        if ocr.accepts_1v8() && self.sd_ocr() & SdOcr::SIGNAL_1V8 != 0 {
            let voltage = SignalVoltage::V1_8;
            let slow = Mode { timing: Timing::Sdr12, voltage, ..self.identification_mode() };
            self.moves.extend([Move::VoltageSwitch, Move::Voltage(voltage), Move::Drive(slow)]);
        }
        self.moves.extend([Move::Cid, Move::AskRca, Move::Csd, Move::Select]);
        Ok(())
    }

    fn mmc_ready(&mut self, bits: u32, tries: u8) -> Result<(), Failure> {
        debug_assert!(tries < READY_TRIES, "{tries} tries are too many");
        let ocr = MmcOcr(bits);
        if !ocr.is_ready() {
            return self.ask_again(Move::MmcReady { tries: tries + 1 }, tries);
        }
        if ocr.is_sector_addressed() {
            self.found.addressing = Addressing::Sectors;
        }
        self.moves.extend([Move::Cid, Move::GiveRca, Move::Csd, Move::Select]);
        Ok(())
    }

    /// Asks a card that is not ready again after a while, for up to a second.
    fn ask_again(&mut self, again: Move, tries: u8) -> Result<(), Failure> {
        if tries + 1 >= READY_TRIES {
            return Err(Failure::NeverReady);
        }
        self.moves.extend([Move::Wait(READY_INTERVAL), again]);
        Ok(())
    }

    /// Plans to read the registers of the selected card, and to choose its mode from them.
    fn selected(&mut self) {
        debug_assert!(self.found.csd.is_some(), "a card is selected after its CSD was read");
        if self.found.addressing == Addressing::Bytes {
            self.moves.push_back(Move::BlockLen);
        }
        if !self.found.mmc {
            self.moves.push_back(Move::Scr);
            return;
        }
        let layout = self.found.csd.map(|csd| csd.layout);
        // Since 4.0.
        let has_ext_csd = matches!(layout, Some(Layout::Mmc { spec_version }) if spec_version >= 4);
        if has_ext_csd {
            self.moves.push_back(Move::ExtCsd);
        } else {
            self.mmc_mode();
        }
    }

    /// Compares EXT_CSD, read again in the final mode.
    fn compare_reread(&mut self, opcode: Opcode, bytes: &[u8; 512]) -> Result<(), Failure> {
        let again = ExtCsd::parse(bytes).map_err(Failure::Register)?;
        let same = self.found.ext_csd.as_ref().is_some_and(|before| before.same_device(&again));
        if !same {
            return Err(Failure::Bus { opcode: Some(opcode), error: BusError::Data });
        }
        self.found.ext_csd = Some(Box::new(again));
        Ok(())
    }
}

/// Returns the error of a step without a response, if it failed.
fn done(opcode: Option<Opcode>, answer: Answer<'_>) -> Result<(), Failure> {
    match answer {
        Answer::Error(error) => Err(Failure::Bus { opcode, error }),
        _ => Ok(()),
    }
}

/// Returns the 32 bits of a short response.
fn short(opcode: Opcode, answer: Answer<'_>) -> Result<u32, Failure> {
    match answer {
        Answer::Response(response) | Answer::Data(response, _) => {
            response.short().ok_or(Failure::Malformed(opcode))
        }
        _ => Err(Failure::Malformed(opcode)),
    }
}

/// Returns the status of an R1, which must be free of errors.
fn status(opcode: Opcode, answer: Answer<'_>) -> Result<Status, Failure> {
    let status = Status(short(opcode, answer)?);
    if status.errors() == 0 { Ok(status) } else { Err(Failure::Card { opcode, status }) }
}

/// Returns the 128 bits of a long response.
fn long(opcode: Opcode, answer: Answer<'_>) -> Result<Bits<16>, Failure> {
    match answer {
        Answer::Response(Response::Long(bits)) => Ok(bits),
        _ => Err(Failure::Malformed(opcode)),
    }
}

/// Returns the data, which must have the right length and come with a status free of errors.
fn data<const N: usize>(opcode: Opcode, answer: Answer<'_>) -> Result<&[u8; N], Failure> {
    status(opcode, answer)?;
    match answer {
        Answer::Data(_, bytes) => bytes.try_into().map_err(|_| Failure::Malformed(opcode)),
        _ => Err(Failure::Malformed(opcode)),
    }
}
