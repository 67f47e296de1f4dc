//! The commands of the moves, and the ways into each mode.

use super::machine::Identify;
use super::moves::{MMC_RCA, Move, PATTERN};
use super::step::Failure;
use crate::command::{Command, Direction, Opcode, SwitchAccess};
use crate::mode::{Mode, SignalVoltage, Timing, TimingSet, Width};
use crate::register::csd::Classes;
use crate::register::ext_csd::{DeviceType, ExceptionEvents, ExtCsd, index};
use crate::register::extension::ExtensionPlace;
use crate::register::scr::SdVersion;
use crate::register::switch::{self, Group};
use alloc::vec;
use alloc::vec::Vec;

impl Identify {
    /// Returns the command of a move that has one.
    pub(super) fn bare_command(&self, of: &Move) -> Command {
        let rca = self.found.rca;
        match *of {
            Move::GoIdle => Command::go_idle(),
            Move::IfCond => Command::send_if_cond(PATTERN),
            Move::IoCond => Command::io_send_op_cond(),
            Move::SdReady { .. } => Command::sd_send_op_cond(self.sd_ocr()),
            Move::MmcThere => Command::send_op_cond(0),
            Move::MmcReady { .. } => Command::send_op_cond(self.mmc_ocr()),
            Move::VoltageSwitch => Command::voltage_switch(),
            Move::Cid => Command::all_send_cid(),
            Move::AskRca => Command::send_relative_addr(),
            Move::GiveRca => Command::set_relative_addr(MMC_RCA),
            Move::Csd => Command::send_csd(rca),
            Move::Select => Command::select(rca),
            Move::BlockLen => Command::set_block_len(512),
            Move::Scr => Command::send_scr(),
            Move::Ssr => Command::sd_status(),
            Move::Extensions => Command::read_extension(ExtensionPlace::GENERAL),
            Move::Performance(place) | Move::PerformanceAgain(place) => {
                Command::read_extension(place)
            }
            Move::CacheOn { place, .. } => Command::write_extension_byte(place.cache_enable()),
            Move::StopSetting => Command::stop_transmission(Direction::Write),
            Move::Functions => Command::check_functions(),
            Move::FourLanes => Command::set_bus_width(true),
            Move::AccessMode(mode) => Command::set_function(Group::AccessMode, mode),
            Move::ExtCsd | Move::Reread => Command::send_ext_csd(),
            Move::Switch(at, value) | Move::Setting(at, value) => {
                Command::switch(SwitchAccess::WriteByte, at, value)
            }
            Move::Check | Move::CheckSetting | Move::AskAfterCacheOn { .. } => {
                Command::send_status(rca)
            }
            Move::Power(_) | Move::Wait(_) | Move::Drive(_) | Move::Voltage(_) | Move::Tune(_) => {
                unreachable!("{of:?} has no command")
            }
        }
    }

    /// Returns the timings of an SD card at the present voltage.
    fn sd_timings(&self) -> TimingSet {
        let (basic, others): (_, &[(Timing, u8)]) = match self.found.voltage {
            SignalVoltage::V3_3 => {
                (Timing::SdDefault, &[(Timing::SdHighSpeed, switch::ACCESS_HIGH_SPEED)])
            }
            SignalVoltage::V1_8 | SignalVoltage::V1_2 => (
                Timing::Sdr12,
                &[
                    (Timing::Sdr25, switch::ACCESS_HIGH_SPEED),
                    (Timing::Sdr50, switch::ACCESS_SDR50),
                    (Timing::Sdr104, switch::ACCESS_SDR104),
                    (Timing::Ddr50, switch::ACCESS_DDR50),
                ],
            ),
        };
        others
            .iter()
            .filter(|&&(_, mode)| self.has_access_mode(mode))
            .fold(TimingSet::of(&[basic]), |set, &(timing, _)| set.with(timing))
    }

    fn has_access_mode(&self, mode: u8) -> bool {
        self.found.functions.is_some_and(|status| status.supports(Group::AccessMode, mode))
    }

    /// Returns whether an SD card has CMD6.
    pub(super) fn has_functions(&self) -> bool {
        let version = self.found.scr.is_some_and(|scr| scr.version >= SdVersion::V1_10);
        version && self.found.csd.is_some_and(|csd| csd.classes.has(Classes::SWITCH))
    }

    /// Plans the way of an SD card into its best mode that has not failed.
    pub(super) fn sd_mode(&mut self) -> Result<(), Failure> {
        let four = self.found.scr.is_some_and(|scr| scr.width_4) && self.width >= Width::Four;
        let width = if four { Width::Four } else { Width::One };
        let timings = self.sd_timings();
        // At 3.3 V the basic timing is always there. A card that went to 1.8 V must have four
        // lanes.
        let best = Mode::best(timings.and(self.timings), width, &self.host)
            .ok_or(Failure::Malformed(Opcode::SendScr))?;
        self.found.mode = Some(best);
        if four {
            self.moves.push_back(Move::FourLanes);
        }
        let basic = if best.timing.is_uhs() { Timing::Sdr12 } else { Timing::SdDefault };
        let clock_hz = basic.max_clock_hz().min(self.host.max_clock_hz);
        self.moves.push_back(Move::Drive(Mode { timing: basic, clock_hz, ..best }));
        let access = match best.timing {
            Timing::SdHighSpeed | Timing::Sdr25 => Some(switch::ACCESS_HIGH_SPEED),
            Timing::Sdr50 => Some(switch::ACCESS_SDR50),
            Timing::Sdr104 => Some(switch::ACCESS_SDR104),
            Timing::Ddr50 => Some(switch::ACCESS_DDR50),
            _ => None,
        };
        if let Some(access) = access {
            self.moves.extend([Move::AccessMode(access), Move::Drive(best)]);
        }
        let sdr50 = best.timing == Timing::Sdr50 && self.host.tunes_sdr50;
        if best.timing.needs_tuning() || sdr50 {
            self.moves.push_back(Move::Tune(Command::sd_tuning_block()));
        }
        // Last, so that the registers come in the final mode.
        self.moves.push_back(Move::Ssr);
        if self.found.scr.is_some_and(|scr| scr.extension_registers) && self.extensions {
            self.moves.push_back(Move::Extensions);
        }
        Ok(())
    }

    /// Plans the way of an eMMC device into its best mode that has not failed, and its settings.
    pub(super) fn mmc_mode(&mut self) {
        debug_assert!(self.found.mmc && self.found.csd.is_some(), "a mode before the CSD");
        let timings = match &self.found.ext_csd {
            Some(ext_csd) => self.mmc_timings(ext_csd),
            None => TimingSet::of(&[Timing::MmcLegacy]),
        };
        // Before 4.0 there is neither EXT_CSD nor a bus of more than one lane.
        let width = if self.found.ext_csd.is_some() { self.width } else { Width::One };
        let legacy = Mode {
            timing: Timing::MmcLegacy,
            width: width.min(self.host.width),
            voltage: SignalVoltage::V3_3,
            clock_hz: self.mmc_legacy_hz(),
        };
        let best = Mode::best(timings.and(self.timings), width, &self.host);
        let best = best.filter(|best| best.timing != Timing::MmcLegacy).unwrap_or(legacy);
        self.found.mode = Some(best);
        let moves = match best.timing {
            Timing::MmcHighSpeed | Timing::MmcDdr52 => to_high_speed(best),
            Timing::Hs200 => self.to_hs200(best),
            Timing::Hs400 => self.to_hs400(best),
            Timing::Hs400Es => self.to_hs400es(best),
            _ => to_lanes(best),
        };
        self.moves.extend(moves);
        self.mmc_settings();
    }

    /// Returns the clock before any switch.
    fn mmc_legacy_hz(&self) -> u32 {
        let card = self.found.csd.map_or(Timing::MmcLegacy.max_clock_hz(), |csd| csd.max_clock_hz);
        card.min(Timing::MmcLegacy.max_clock_hz()).min(self.host.max_clock_hz)
    }

    /// Returns the timings of a device at the voltages that the host will use.
    fn mmc_timings(&self, ext_csd: &ExtCsd) -> TimingSet {
        let types = ext_csd.device_type();
        let hs400 = self.has_low_voltage(types, DeviceType::HS400_1V8, DeviceType::HS400_1V2);
        [
            (Timing::MmcHighSpeed, types.has(DeviceType::HS_52)),
            (Timing::MmcDdr52, types.has(DeviceType::DDR_1V8)),
            (
                Timing::Hs200,
                self.has_low_voltage(types, DeviceType::HS200_1V8, DeviceType::HS200_1V2),
            ),
            (Timing::Hs400, hs400),
            (Timing::Hs400Es, hs400 && ext_csd.enhanced_strobe()),
        ]
        .into_iter()
        .filter(|&(_, has)| has)
        .fold(TimingSet::of(&[Timing::MmcLegacy]), |set, (timing, _)| set.with(timing))
    }

    fn has_low_voltage(&self, types: DeviceType, at_1v8: u8, at_1v2: u8) -> bool {
        if self.host.signal_1v8 { types.has(at_1v8) } else { types.has(at_1v2) }
    }

    /// Plans the settings after the mode, and a read of EXT_CSD after them.
    fn mmc_settings(&mut self) {
        debug_assert!(self.found.mmc, "settings of eMMC");
        let Some(ext_csd) = &self.found.ext_csd else { return };
        let settings = [
            (index::ERASE_GROUP_DEF, 1, ext_csd.erase_group_sectors() != 0),
            (index::HPI_MGMT, 1, ext_csd.hpi().is_some()),
            (index::CACHE_CTRL, 1, ext_csd.cache_bytes() != 0),
            // Without this event, a packed write that failed looks like one that did not.
            (index::EXCEPTION_EVENTS_CTRL, PACKED_EVENTS, ext_csd.max_packed_writes() != 0),
        ];
        for (at, value, _) in settings.into_iter().filter(|&(.., has)| has) {
            self.moves.extend([Move::Setting(at, value), Move::CheckSetting]);
        }
        self.moves.push_back(Move::Reread);
    }

    /// JESD84-B51 6.6.5: the width first, then HS200, and tuning.
    fn to_hs200(&self, best: Mode) -> Vec<Move> {
        let lanes = Mode { timing: Timing::MmcLegacy, clock_hz: self.mmc_legacy_hz(), ..best };
        let eight = best.width == Width::Eight;
        vec![
            Move::Voltage(best.voltage),
            wide(lanes),
            Move::Drive(lanes),
            Move::Check,
            Move::Switch(index::HS_TIMING, 2),
            Move::Drive(best),
            Move::Check,
            Move::Tune(Command::mmc_tuning_block(eight)),
        ]
    }

    /// JESD84-B51 6.6.6: tuned in HS200, back to high speed, both edges, HS400.
    fn to_hs400(&self, best: Mode) -> Vec<Move> {
        let tuned = Mode { timing: Timing::Hs200, ..best };
        let mut moves = self.to_hs200(tuned);
        moves.extend(by_high_speed(best));
        moves
    }

    /// JESD84-B51 6.6.7: eight lanes, high speed, both edges with strobe, HS400.
    fn to_hs400es(&self, best: Mode) -> Vec<Move> {
        let lanes = Mode { timing: Timing::MmcLegacy, clock_hz: self.mmc_legacy_hz(), ..best };
        let mut moves =
            vec![Move::Voltage(best.voltage), wide(lanes), Move::Drive(lanes), Move::Check];
        moves.extend(by_high_speed(best));
        moves
    }
}

/// Returns the moves to `best`, which is HS400: high speed, both edges, HS400.
pub(super) fn by_high_speed(best: Mode) -> [Move; 8] {
    debug_assert_eq!(best.width, Width::Eight, "HS400 has eight lanes");
    [
        Move::Switch(index::HS_TIMING, 1),
        Move::Drive(high_speed(best)),
        Move::Check,
        wide(best),
        Move::Check,
        Move::Switch(index::HS_TIMING, 3),
        Move::Drive(best),
        Move::Check,
    ]
}

/// Returns `mode` with the timing and clock of high speed.
pub(super) fn high_speed(mode: Mode) -> Mode {
    let timing = Timing::MmcHighSpeed;
    Mode { timing, clock_hz: mode.clock_hz.min(timing.max_clock_hz()), ..mode }
}

/// JESD84-B51 6.6.2 and 6.6.4: high speed on one lane, then lanes and edges.
fn to_high_speed(best: Mode) -> Vec<Move> {
    let one_lane = Mode { width: Width::One, ..high_speed(best) };
    let mut moves = vec![Move::Switch(index::HS_TIMING, 1), Move::Drive(one_lane), Move::Check];
    moves.extend(to_lanes(best));
    moves
}

/// Lanes and edges. A device begins with one of each.
fn to_lanes(best: Mode) -> Vec<Move> {
    match best.width {
        Width::One => vec![Move::Drive(best)],
        _ => vec![wide(best), Move::Drive(best), Move::Check],
    }
}

/// Returns the switch of BUS_WIDTH (183) for a mode: lanes, both edges (4 added), and strobe (bit
/// 7).
pub(super) fn wide(mode: Mode) -> Move {
    let lanes = match mode.width {
        Width::One => 0,
        Width::Four => 1,
        Width::Eight => 2,
    };
    let edges = if mode.timing.both_edges() { 4 } else { 0 };
    let strobe = if mode.timing == Timing::Hs400Es { 0x80 } else { 0 };
    Move::Switch(index::BUS_WIDTH, strobe | edges | lanes)
}

/// The exceptions that a card is to report.
const PACKED_EVENTS: u8 = ExceptionEvents::PACKED_FAILURE.to_le_bytes()[0];
