//! Identification against a small model of a card, written from the standards: every command must be legal
//! ([only-legal-commands]), and data arrives only while host and card drive the bus in the same mode.

use super::*;
use crate::card::Card;
use crate::command::legal::legal;
use crate::command::state::{CardState, Queue};
use crate::command::status::Status;
use crate::command::{Addressing, Command, Opcode, Rca, Response};
use crate::command::{Direction, ResponseKind, Standard};
use crate::host::HostCapabilities;
use crate::mode::{Mode, SignalVoltage, Timing, TimingSet, Width};
use crate::register::example;
use crate::register::ext_csd::example::{emmc_4_41, emmc_5_1};
use crate::register::ext_csd::index;
use crate::register::ext_csd::revision;
use alloc::boxed::Box;
use blockyard::time::Duration;
use std::string::ToString;
use std::vec;
use std::vec::Vec;

mod ends;
mod ways;

/// The flaws of a slot or a card.
#[derive(Clone, Debug, Default)]
struct Flaws {
    /// Timings in which no data arrives and tuning fails.
    bad: Vec<Timing>,
    /// The wired data lanes.
    wired: Option<Width>,
    /// The card does not release its lines after CMD11.
    stuck_at_3v3: bool,
    /// Bytes of EXT_CSD that cannot be switched.
    refused: Vec<u16>,
    /// Commands, counted from 0, that the card does not receive.
    lost: Vec<usize>,
    /// Commands whose response and data the host does not receive.
    unheard: Vec<usize>,
    /// The card never becomes ready.
    never_ready: bool,
    /// The card is locked by a password.
    locked: bool,
    /// The card echoes a wrong CMD8 pattern.
    deaf: bool,
    /// From this start of identification on, counted from 1, the card does not answer this command.
    mute: Option<(usize, Opcode)>,
}

#[derive(Clone, Debug)]
enum Kind {
    Mmc { ext_csd: Option<Box<[u8; 512]>>, ocr: u32 },
    Sd { version_2: bool, ocr: u32, scr: [u8; 8], modes: u8, uhs: bool },
    Sdio,
    None,
}

#[derive(Clone, Debug)]
struct Slot {
    kind: Kind,
    csd: &'static str,
    flaws: Flaws,
    powered: bool,
    state: CardState,
    questions: u8,
    application: bool,
    /// The mode in which the host drives the bus, and the voltage.
    host: Option<Mode>,
    voltage: SignalVoltage,
    /// The mode in which the card is.
    width: Width,
    access: u8,
    low: bool,
    tuned: bool,
    stuck: bool,
    /// A response got lost since the last CMD0, so the host may not know the card's state.
    tolerant: bool,
    /// eMMC: CMD1 came without voltages, so the device ignores other CMD1s until CMD0.
    asked: bool,
    switch_error: bool,
    /// Commands whose status reported that a switch failed.
    reported: Vec<usize>,
    log: Vec<Command>,
    /// Each step of the host, in words.
    steps: Vec<std::string::String>,
    waited: Duration,
}

impl Slot {
    fn new(kind: Kind, csd: &'static str, flaws: Flaws) -> Self {
        Self {
            kind,
            csd,
            flaws,
            powered: false,
            state: CardState::Idle,
            questions: 0,
            application: false,
            host: None,
            voltage: SignalVoltage::V3_3,
            width: Width::One,
            access: 0,
            low: false,
            tuned: false,
            stuck: false,
            tolerant: false,
            asked: false,
            switch_error: false,
            reported: Vec::new(),
            log: Vec::new(),
            steps: Vec::new(),
            waited: Duration::ZERO,
        }
    }

    /// Retunes the bus of `card`, which is in the slot.
    fn retune(&mut self, card: &Card) -> Result<(), BusError> {
        self.tuned = false;
        for step in Retune::of(card) {
            match step {
                Step::Drive(mode) => self.host = Some(mode),
                Step::Tune(command) => drop(self.tune(command)?),
                Step::Send { command, limit } => {
                    assert!(limit > Duration::ZERO);
                    let (response, _) = self.send(command)?;
                    assert_eq!(response.status().unwrap().errors(), 0, "{command}");
                }
                other => panic!("{other:?}"),
            }
        }
        Ok(())
    }

    /// Identifies the card in the slot.
    fn identify(&mut self, host: &HostCapabilities) -> Result<Box<Card>, Failure> {
        let mut identify = Identify::new(host.clone());
        for _ in 0..20_000 {
            self.steps.push(match identify.next() {
                Step::Done(_) => "done".into(),
                Step::Send { command, limit } => {
                    std::format!("{command}, {} ms", limit.as_ns() / 1_000_000)
                }
                Step::Drive(Mode { timing, width, clock_hz, .. }) => {
                    std::format!("{timing:?}, {width:?}, {} kHz", clock_hz / 1000)
                }
                Step::Tune(command) => std::format!("tune by {command}"),
                Step::Wait(span) => std::format!("wait {} ms", span.as_ns() / 1_000_000),
                other => std::format!("{other:?}"),
            });
            let answer = match identify.next() {
                Step::Done(card) => return Ok(card),
                Step::Failed(failure) => return Err(failure),
                Step::Power(on) => {
                    self.power(on);
                    Ok((Response::None, vec![]))
                }
                Step::Wait(span) => {
                    self.waited += span;
                    Ok((Response::None, vec![]))
                }
                Step::Drive(mode) => {
                    assert_eq!(
                        mode.voltage == SignalVoltage::V3_3,
                        self.voltage == SignalVoltage::V3_3
                    );
                    assert!(mode.width <= host.width && mode.clock_hz <= host.max_clock_hz);
                    self.host = Some(mode);
                    Ok((Response::None, vec![]))
                }
                Step::Voltage(voltage) => self.change_voltage(voltage),
                Step::Tune(command) => self.tune(command),
                Step::Send { command, limit } => {
                    assert!(limit > Duration::ZERO);
                    self.send(command)
                }
            };
            match &answer {
                Ok((Response::None, _)) => identify.answered(Answer::Done),
                Ok((response, data)) if data.is_empty() => {
                    identify.answered(Answer::Response(*response));
                }
                Ok((response, data)) => identify.answered(Answer::Data(*response, data)),
                Err(error) => identify.answered(Answer::Error(*error)),
            }
        }
        panic!("identification does not end: {:?}", self.flaws)
    }

    fn power(&mut self, on: bool) {
        if on && self.powered {
            return;
        }
        self.powered = on;
        self.stuck = false;
        self.voltage = SignalVoltage::V3_3;
        self.low = false;
        self.reset();
    }

    fn reset(&mut self) {
        self.state = CardState::Idle;
        self.questions = 0;
        self.application = false;
        self.tolerant = false;
        self.asked = false;
        self.switch_error = false;
        self.width = Width::One;
        self.access = 0;
        self.tuned = false;
        if let Kind::Mmc { ext_csd: Some(bytes), .. } = &mut self.kind {
            for at in [
                index::HS_TIMING,
                index::BUS_WIDTH,
                index::CACHE_CTRL,
                index::HPI_MGMT,
                index::EXCEPTION_EVENTS_CTRL,
            ] {
                bytes[usize::from(at)] = 0;
            }
        }
    }

    fn change_voltage(&mut self, to: SignalVoltage) -> Result<(Response, Vec<u8>), BusError> {
        self.voltage = to;
        if matches!(self.kind, Kind::Sd { .. }) && to == SignalVoltage::V1_8 {
            assert!(self.low, "1.8 V without CMD11");
            if self.flaws.stuck_at_3v3 {
                self.stuck = true;
                return Err(BusError::Host);
            }
        }
        Ok((Response::None, vec![]))
    }

    /// Returns the card's timing.
    fn timing(&self) -> Option<Timing> {
        let Kind::Mmc { ext_csd, .. } = &self.kind else {
            return Some(match (self.low, self.access) {
                (false, 0) => Timing::SdDefault,
                (false, _) => Timing::SdHighSpeed,
                (true, 0) => Timing::Sdr12,
                (true, 1) => Timing::Sdr25,
                (true, 2) => Timing::Sdr50,
                (true, 3) => Timing::Sdr104,
                (true, _) => Timing::Ddr50,
            });
        };
        let Some(bytes) = ext_csd else { return Some(Timing::MmcLegacy) };
        let timing = bytes[usize::from(index::HS_TIMING)];
        let width = bytes[usize::from(index::BUS_WIDTH)];
        match (timing, width) {
            (0, 0..=2) => Some(Timing::MmcLegacy),
            (1, 0..=2) => Some(Timing::MmcHighSpeed),
            // Both edges, unchanged, and on the way to HS400 with strobe.
            (1, 5 | 6 | 0x86) => Some(Timing::MmcDdr52),
            (2, 1 | 2) => Some(Timing::Hs200),
            (3, 6) => Some(Timing::Hs400),
            (3, 0x86) => Some(Timing::Hs400Es),
            _ => None,
        }
    }

    fn lanes(&self) -> Width {
        let Kind::Mmc { ext_csd: Some(bytes), .. } = &self.kind else { return self.width };
        match bytes[usize::from(index::BUS_WIDTH)] & 0x7f {
            0 => Width::One,
            1 | 5 => Width::Four,
            _ => Width::Eight,
        }
    }

    /// Returns whether data arrives.
    fn agree(&self, tuning: bool) -> bool {
        let host = self.host.expect("the host should drive the bus");
        let card = self.timing();
        let tuned = self.tuned || tuning || !host.timing.needs_tuning();
        let volts = !host.timing.needs_low_voltage() || self.voltage != SignalVoltage::V3_3;
        Some(host.timing) == card
            && host.width == self.lanes()
            && host.width <= self.flaws.wired.unwrap_or(Width::Eight)
            && !self.flaws.bad.contains(&host.timing)
            && tuned
            && volts
    }

    fn tune(&mut self, command: Command) -> Result<(Response, Vec<u8>), BusError> {
        legal(self.state, command.opcode, Queue::Off).unwrap();
        let sd = matches!(self.kind, Kind::Sd { .. });
        assert_eq!(command.opcode.row().standard, if sd { Standard::Sd } else { Standard::Mmc });
        let expected = if self.lanes() == Width::Eight { 128 } else { 64 };
        assert_eq!(command.data.unwrap().bytes(), expected);
        self.tuned = self.agree(true);
        if self.tuned { Ok((Response::None, vec![])) } else { Err(BusError::Host) }
    }

    /// Returns what the host receives, which is nothing for a command without a response.
    fn send(&mut self, command: Command) -> Result<(Response, Vec<u8>), BusError> {
        let starts = self.steps.iter().filter(|step| *step == "Power(true)").count();
        if self.flaws.mute.is_some_and(|(start, of)| starts >= start && of == command.opcode) {
            self.log.push(command);
            return Err(BusError::NoResponse);
        }
        let answer = self.hear(command);
        if command.response == ResponseKind::None { Ok((Response::None, vec![])) } else { answer }
    }

    fn hear(&mut self, command: Command) -> Result<(Response, Vec<u8>), BusError> {
        let number = self.log.len();
        self.log.push(command);
        assert!(self.powered, "{command} without power");
        if self.flaws.lost.contains(&number) || self.stuck {
            return Err(BusError::NoResponse);
        }
        let own = match self.kind {
            Kind::Mmc { .. } => Standard::Mmc,
            Kind::Sd { .. } => Standard::Sd,
            Kind::Sdio if command.opcode == Opcode::IoSendOpCond => {
                return Ok((Response::Short(0x10ff_8000), vec![]));
            }
            Kind::Sdio | Kind::None => return Err(BusError::NoResponse),
        };
        let row = command.opcode.row();
        let probe = command.opcode == Opcode::IoSendOpCond
            || command.opcode == Opcode::SendIfCond
                && matches!(self.kind, Kind::Sd { version_2: false, .. });
        if self.state == CardState::Idle
            && (row.standard != own && row.standard != Standard::Both || probe)
        {
            return Err(BusError::NoResponse);
        }
        let clock = self.host.expect("the host should drive the bus").clock_hz;
        let identified = self.state >= CardState::StandBy;
        let most = if identified { self.timing().map_or(0, Timing::max_clock_hz) } else { 400_000 };
        if clock > most && (self.switch_error || self.tolerant) {
            // The host assumes that a failed switch succeeded.
            return Err(BusError::NoResponse);
        }
        assert!(clock <= most, "{command} at {clock} Hz in {:?}", self.timing());
        assert!(self.application || !row.application, "{command} without CMD55");
        let after = match legal(self.state, command.opcode, Queue::Off) {
            Ok(_) if row.standard != own && row.standard != Standard::Both => panic!("{command}"),
            Ok(after) => after,
            Err(_) if self.tolerant => return Err(BusError::NoResponse),
            Err(illegal) => panic!("{illegal}"),
        };
        self.application = command.opcode == Opcode::Application;
        let before = self.state;
        self.state = after;
        // The data arrives in the mode before the command takes effect.
        let arrives = self.agree(false);
        let data = self.obey(command);
        let switch_error = core::mem::take(&mut self.switch_error);
        let reports = command.opcode == Opcode::SendStatus && switch_error;
        self.switch_error = switch_error && !reports;
        if reports {
            self.reported.push(number);
        }
        let status = Status::new(before, true).0
            | if reports { Status::SWITCH_ERROR } else { 0 }
            | if self.flaws.locked && before == CardState::StandBy {
                Status::CARD_IS_LOCKED
            } else {
                0
            };
        if command.data.is_some_and(|data| data.direction == Direction::Read) {
            self.state = self.state.after_data();
        }
        if command.response.has_busy() {
            self.state = self.state.after_busy();
        }
        if self.flaws.unheard.contains(&number) {
            self.tolerant = command.opcode != Opcode::GoIdle;
            return Err(BusError::NoResponse);
        }
        match data {
            Obeyed::Status => Ok((Response::Short(status), vec![])),
            Obeyed::Other(response) => Ok((response, vec![])),
            Obeyed::Data(bytes) if arrives => Ok((Response::Short(status), bytes)),
            Obeyed::Data(_) => Err(BusError::Data),
        }
    }

    /// Plays the effect of a legal command.
    fn obey(&mut self, command: Command) -> Obeyed {
        let argument = command.argument;
        match command.opcode {
            Opcode::GoIdle => {
                self.reset();
                Obeyed::Other(Response::None)
            }
            Opcode::SendIfCond => {
                Obeyed::Other(Response::Short(argument ^ u32::from(self.flaws.deaf)))
            }
            Opcode::SendOpCond | Opcode::SdSendOpCond => self.op_cond(argument),
            Opcode::VoltageSwitch => {
                self.low = true;
                Obeyed::Status
            }
            Opcode::AllSendCid => {
                Obeyed::Other(Response::Long(example::bits("0353445355303847801234abcd00cb01")))
            }
            Opcode::SendRelativeAddr => Obeyed::Other(Response::Short(0xb368_0500)),
            Opcode::SendCsd => Obeyed::Other(Response::Long(example::bits(self.csd))),
            Opcode::SetBusWidth => {
                self.width = if argument == 2 { Width::Four } else { Width::One };
                Obeyed::Status
            }
            Opcode::Switch => {
                self.switch(argument);
                Obeyed::Status
            }
            Opcode::SwitchFunction => self.function(argument),
            Opcode::SendExtCsd => {
                let Kind::Mmc { ext_csd: Some(bytes), .. } = &self.kind else {
                    panic!("no EXT_CSD")
                };
                Obeyed::Data(bytes.to_vec())
            }
            Opcode::SendScr => {
                let Kind::Sd { scr, .. } = &self.kind else { panic!("no SCR") };
                Obeyed::Data(scr.to_vec())
            }
            Opcode::SdStatus => {
                let mut bytes = vec![0; 64];
                bytes[10] = 0x90;
                Obeyed::Data(bytes)
            }
            _ => Obeyed::Status,
        }
    }

    fn op_cond(&mut self, argument: u32) -> Obeyed {
        self.questions += 1;
        // Without voltages CMD1 is only a query.
        let asked = argument & 0x00ff_8000 != 0;
        let (ocr, capacity) = match self.kind {
            Kind::Mmc { ocr, .. } => (ocr, true),
            Kind::Sd { ocr, uhs, .. } => {
                let low = if uhs && argument & 1 << 24 != 0 { 1 << 24 } else { 0 };
                (ocr | low, ocr >> 30 & 1 == 0 || argument >> 30 & 1 == 1)
            }
            _ => unreachable!("{argument:#x}"),
        };
        self.asked |= !asked;
        let ready = !self.asked && self.questions > 2 && capacity && !self.flaws.never_ready;
        if !ready {
            self.state = CardState::Idle;
        }
        Obeyed::Other(Response::Short(if ready { ocr } else { ocr & !(1 << 31) }))
    }

    /// Changes a byte of EXT_CSD, or reports a failed switch later.
    fn switch(&mut self, argument: u32) {
        let [access, at, value, _] = argument.to_be_bytes();
        assert_eq!(access, 3);
        let before = self.timing();
        let Kind::Mmc { ext_csd: Some(bytes), .. } = &mut self.kind else { panic!("no EXT_CSD") };
        let at = u16::from(at);
        let types = bytes[usize::from(index::DEVICE_TYPE)];
        let timing = bytes[usize::from(index::HS_TIMING)];
        let width = bytes[usize::from(index::BUS_WIDTH)];
        // The conditions in 6.6 of the standard for each switch.
        let taken = match (at, value) {
            _ if bytes[usize::from(at)] == value => true,
            (index::BUS_WIDTH, 0..=2) => timing < 2,
            (index::BUS_WIDTH, 5 | 6) => timing == 1 && types & 0x0c != 0,
            (index::BUS_WIDTH, 0x86) => {
                timing == 1 && width == 2 && bytes[usize::from(index::STROBE_SUPPORT)] == 1
            }
            (index::HS_TIMING, 0) => true,
            (index::HS_TIMING, 1) => types & 0x03 != 0,
            (index::HS_TIMING, 2) => {
                let single_edge = [Timing::MmcLegacy, Timing::MmcHighSpeed].map(Some);
                types & 0x30 != 0 && width != 0 && single_edge.contains(&before)
            }
            (index::HS_TIMING, 3) => {
                types & 0xc0 != 0 && (width == 6 && self.tuned || width == 0x86)
            }
            _ => true,
        };
        if taken && !self.flaws.refused.contains(&at) {
            bytes[usize::from(at)] = value;
        } else {
            self.switch_error = true;
        }
    }

    /// Returns the card's functions: only group 1 has more than the default.
    fn function(&mut self, argument: u32) -> Obeyed {
        let Kind::Sd { modes, .. } = self.kind else { panic!("no functions") };
        let mut bytes = vec![0; 64];
        bytes[1] = 100;
        for group in 0..6 {
            bytes[2 + 2 * group] = 0x80;
            bytes[3 + 2 * group] = 1;
        }
        bytes[13] = modes;
        let asked = argument.to_be_bytes()[3] & 0xf;
        let selected = if asked == 0xf { self.access } else { asked };
        let there = modes >> selected & 1 == 1;
        bytes[16] = if there { selected } else { 0xf };
        if argument >> 31 == 1 && there {
            assert_eq!(
                argument & 0x7fff_fff0,
                0x00ff_fff0,
                "the host should not change other groups"
            );
            self.access = selected;
            self.tuned = false;
        }
        Obeyed::Data(bytes)
    }
}

enum Obeyed {
    Status,
    Other(Response),
    Data(Vec<u8>),
}

fn emmc(bytes: [u8; 512], flaws: Flaws) -> Slot {
    let kind = Kind::Mmc { ext_csd: Some(Box::new(bytes)), ocr: 0xc0ff_8080 };
    Slot::new(kind, example::CSD_CHROMEBOOK_EMMC, flaws)
}

/// Returns an SD card whose function group 1 has `modes`.
fn sd(csd: &'static str, scr: &str, ocr: u32, modes: u8, flaws: Flaws) -> Slot {
    let kind = Kind::Sd {
        version_2: ocr >> 30 & 1 == 1,
        ocr,
        scr: example::hex(scr),
        modes,
        uhs: modes & 0b1_1100 != 0,
    };
    Slot::new(kind, csd, flaws)
}

fn sdxc(flaws: Flaws) -> Slot {
    sd(example::CSD_KINGSTON_128G, "0235800300000000", 0xc0ff_8000, 0b1_1111, flaws)
}

/// Returns a host with all features but only these `timings`.
fn with(timings: &[Timing]) -> HostCapabilities {
    HostCapabilities { timings: TimingSet::of(timings), ..HostCapabilities::full() }
}

fn opcodes(slot: &Slot) -> Vec<Opcode> {
    slot.log.iter().map(|command| command.opcode).collect()
}

#[test]
fn emmc_5_1_reaches_hs400_with_strobe_and_its_settings() {
    let mut slot = emmc(emmc_5_1(), Flaws::default());
    let card = slot.identify(&HostCapabilities::full()).unwrap();
    let expected = Mode {
        timing: Timing::Hs400Es,
        width: Width::Eight,
        voltage: SignalVoltage::V1_8,
        clock_hz: 200_000_000,
    };
    assert_eq!(card.mode, expected);
    assert_eq!((card.sectors, card.addressing), (61_071_360, Addressing::Sectors));
    assert!(card.cache_on() && card.hpi().is_some());
    assert!(card.ext_csd().unwrap().erase_group_on());
    assert!(!opcodes(&slot).contains(&Opcode::MmcTuningBlock));
    assert_eq!(slot.state, CardState::Transfer);
    let given = slot.log.iter().find(|command| command.opcode == Opcode::SetRelativeAddr).unwrap();
    assert_eq!(u32::from(card.rca.0) << 16, given.argument);
}

#[test]
fn emmc_uses_the_best_timing_of_the_host() {
    use Timing::*;
    let all = [MmcHighSpeed, MmcDdr52, Hs200, Hs400, Hs400Es];
    for count in 0..=all.len() {
        let host = with(&all[..count]);
        let card = emmc(emmc_5_1(), Flaws::default()).identify(&host).unwrap();
        let best = [MmcLegacy, MmcHighSpeed, MmcDdr52, Hs200, Hs400, Hs400Es][count];
        assert_eq!((card.mode.timing, card.mode.width), (best, Width::Eight));
        assert_eq!(card.mode.clock_hz, best.max_clock_hz());
    }
}

#[test]
fn emmc_4_41_on_a_plain_host_reaches_high_speed_on_four_lanes() {
    let mut slot = emmc(emmc_4_41(), Flaws::default());
    let card = slot.identify(&HostCapabilities::plain()).unwrap();
    let Mode { timing, width, voltage, clock_hz } = card.mode;
    assert_eq!((timing, width), (Timing::MmcHighSpeed, Width::Four));
    assert_eq!((voltage, clock_hz), (SignalVoltage::V3_3, 50_000_000));
    assert_eq!((card.sectors, card.cache_on()), (0x0072_8000, false));
}

#[test]
fn emmc_4_3_without_timings_stays_basic_and_a_card_before_4_0_on_one_lane() {
    let mut bytes = emmc_4_41();
    bytes[usize::from(index::EXT_CSD_REV)] = revision::V4_3;
    bytes[usize::from(index::DEVICE_TYPE)] = 0;
    let mut slot = emmc(bytes, Flaws::default());
    let card = slot.identify(&HostCapabilities::full()).unwrap();
    assert_eq!((card.mode.timing, card.mode.width), (Timing::MmcLegacy, Width::Eight));
    assert_eq!(card.mode.clock_hz, 26_000_000);
    // SPEC_VERS 3, and the size of the 2 GB SD card, whose fields are at the same places.
    let kind = Kind::Mmc { ext_csd: None, ocr: 0x80ff_8000 };
    let mut old = Slot::new(kind, "8c2600325f5a83c93efbcfff928040cb", Flaws::default());
    let card = old.identify(&HostCapabilities::full()).unwrap();
    assert_eq!((card.mode.timing, card.mode.width), (Timing::MmcLegacy, Width::One));
    assert_eq!((card.sectors, card.addressing), (3877 * 1024, Addressing::Bytes));
    assert!(!opcodes(&old).contains(&Opcode::SendExtCsd));
    assert!(opcodes(&old).contains(&Opcode::SetBlockLen));
}

#[test]
fn sd_1_0_stays_at_default_speed_and_is_addressed_by_bytes() {
    let mut slot =
        sd(example::CSD_SANDISK_2G, "0025000000000000", 0x80ff_8000, 0, Flaws::default());
    let card = slot.identify(&HostCapabilities::full()).unwrap();
    assert_eq!(card.mode, Mode::new(Timing::SdDefault, Width::Four));
    assert_eq!((card.sectors, card.addressing), (3877 * 1024, Addressing::Bytes));
    assert_eq!((card.rca, card.cache_bytes()), (Rca(0xb368), 0));
    assert!(opcodes(&slot).contains(&Opcode::SetBlockLen));
    assert!(!opcodes(&slot).contains(&Opcode::SwitchFunction));
}

#[test]
fn sdhc_is_brought_to_high_speed() {
    let mut slot =
        sd(example::CSD_SAMSUNG_32G, "0235800100000000", 0xc0ff_8000, 0b11, Flaws::default());
    let card = slot.identify(&HostCapabilities::full()).unwrap();
    assert_eq!(card.mode, Mode::new(Timing::SdHighSpeed, Width::Four));
    assert_eq!((card.sectors, card.addressing), (59_878 * 1024, Addressing::Sectors));
    assert_eq!(card.ssr().unwrap().allocation_unit_sectors, Some(8192));
    assert!(!opcodes(&slot).contains(&Opcode::VoltageSwitch));
}

#[test]
fn sdxc_uses_the_best_timing_of_the_host() {
    use Timing::*;
    for (timings, best) in [
        (&[Sdr12, Sdr25, Sdr50, Ddr50, Sdr104][..], Sdr104),
        (&[Sdr25, Sdr50, Ddr50], Sdr50),
        (&[Sdr25, Ddr50], Ddr50),
        (&[Sdr25], Sdr25),
        (&[], Sdr12),
    ] {
        let mut slot = sdxc(Flaws::default());
        let card = slot.identify(&with(timings)).unwrap();
        assert_eq!(card.mode, Mode::new(best, Width::Four));
        let tuned = matches!(slot.host.unwrap().timing, Sdr104);
        assert_eq!(slot.tuned, tuned);
        assert_eq!(card.sectors, 239_072 * 1024);
    }
    // Without 1.8 V, or without a power switch, the card stays at 3.3 V.
    for host in [
        HostCapabilities { signal_1v8: false, ..HostCapabilities::full() },
        HostCapabilities { power_cycle: false, ..HostCapabilities::full() },
    ] {
        let card = sdxc(Flaws::default()).identify(&host).unwrap();
        assert_eq!(card.mode, Mode::new(SdHighSpeed, Width::Four));
    }
}

/// [mode-proved-by-data].
#[test]
fn every_failed_mode_is_followed_by_the_next_one() {
    use Timing::*;
    let mmc = [Hs400Es, Hs400, Hs200, MmcDdr52, MmcHighSpeed, MmcLegacy];
    let uhs = [Sdr104, Sdr50, Ddr50, Sdr25, Sdr12, SdHighSpeed, SdDefault];
    for bad in 1..mmc.len() {
        for power_cycle in [true, false] {
            let flaws = Flaws { bad: mmc[..bad].to_vec(), ..Flaws::default() };
            let host = HostCapabilities { power_cycle, ..HostCapabilities::full() };
            // [failed-mode-not-reused]. Legacy carries the first EXT_CSD, so it is never bad here.
            let card = emmc(emmc_5_1(), flaws).identify(&host).unwrap();
            assert_eq!((card.mode.timing, card.mode.width), (mmc[bad], Width::Eight));
        }
    }
    for bad in 1..uhs.len() {
        // SDR12 and default speed carry SCR and functions. If they are bad, so is every mode at their voltage.
        let flaws = Flaws { bad: uhs[..bad].to_vec(), ..Flaws::default() };
        let card = sdxc(flaws).identify(&HostCapabilities::full()).unwrap();
        assert_eq!(card.mode.timing, uhs[bad]);
    }
}

#[test]
fn lanes_that_are_not_wired_are_detected() {
    let flaws = Flaws { wired: Some(Width::Four), ..Flaws::default() };
    let card = emmc(emmc_5_1(), flaws).identify(&HostCapabilities::full()).unwrap();
    assert_eq!(card.mode, Mode::new(Timing::Hs200, Width::Four));
    let flaws = Flaws { wired: Some(Width::One), ..Flaws::default() };
    let card = emmc(emmc_5_1(), flaws.clone()).identify(&HostCapabilities::full()).unwrap();
    assert_eq!(card.mode, Mode::new(Timing::MmcHighSpeed, Width::One));
    let card = sdxc(flaws).identify(&HostCapabilities::full()).unwrap();
    assert_eq!(card.mode, Mode::new(Timing::SdHighSpeed, Width::One));
}

#[test]
fn a_failed_voltage_switch_costs_uhs_and_nothing_else() {
    let flaws = Flaws { stuck_at_3v3: true, ..Flaws::default() };
    let card = sdxc(flaws).identify(&HostCapabilities::full()).unwrap();
    assert_eq!(card.mode, Mode::new(Timing::SdHighSpeed, Width::Four));
}

#[test]
fn a_refused_switch_costs_its_mode_and_a_refused_setting_nothing() {
    let host = HostCapabilities::full();
    let card = emmc(emmc_5_1(), Flaws::default()).identify(&host).unwrap();
    assert_eq!((card.cache_on(), card.max_packed(&host)), (true, (63, 60)));
    let settings = vec![index::CACHE_CTRL, index::HPI_MGMT, index::EXCEPTION_EVENTS_CTRL];
    let flaws = Flaws { refused: settings, ..Flaws::default() };
    let card = emmc(emmc_5_1(), flaws).identify(&host).unwrap();
    assert_eq!(card.mode.timing, Timing::Hs400Es);
    assert!(!card.cache_on() && card.hpi().is_none() && card.cache_bytes() > 0);
    assert_eq!(card.max_packed(&host), (0, 0));
    let flaws = Flaws { refused: vec![index::BUS_WIDTH], ..Flaws::default() };
    let mut slot = emmc(emmc_5_1(), flaws);
    let card = slot.identify(&HostCapabilities::full()).unwrap();
    assert_eq!((card.mode.timing, card.mode.width), (Timing::MmcHighSpeed, Width::One));
    // A status reports only once that a switch failed, so CMD13 is not repeated.
    assert!(!slot.reported.is_empty());
    for number in slot.reported {
        assert_eq!(slot.log[number + 1].opcode, Opcode::GoIdle);
    }
    let flaws = Flaws { refused: vec![index::HS_TIMING], ..Flaws::default() };
    let card = emmc(emmc_5_1(), flaws).identify(&HostCapabilities::full()).unwrap();
    assert_eq!((card.mode.timing, card.mode.width), (Timing::MmcLegacy, Width::Eight));
}

#[test]
fn any_command_or_response_may_be_lost_once_or_twice() {
    let new: [fn(Flaws) -> Slot; 3] = [
        |flaws| emmc(emmc_5_1(), flaws),
        sdxc,
        |flaws| sd(example::CSD_SAMSUNG_32G, "0235800100000000", 0xc0ff_8000, 0b11, flaws),
    ];
    let mut runs = 0;
    for new in new {
        let mut whole = new(Flaws::default());
        let best = whole.identify(&HostCapabilities::full()).unwrap().mode;
        for number in 0..whole.log.len() {
            for (heard, times) in [(true, 1), (false, 1), (false, 2)] {
                // A lost CMD0 cannot be noticed.
                if !heard && whole.log[number].opcode == Opcode::GoIdle {
                    continue;
                }
                let lost = (number..number + times).collect();
                let flaws = if heard {
                    Flaws { unheard: lost, ..Flaws::default() }
                } else {
                    Flaws { lost, ..Flaws::default() }
                };
                let card = new(flaws).identify(&HostCapabilities::full());
                let mode = card.unwrap_or_else(|why| panic!("{number}, {heard}: {why}")).mode;
                // CMD11 cannot be repeated, so its loss costs 1.8 V. A lost response to a switch of the timing
                // costs that timing.
                let command = whole.log[number];
                let changed = heard && command.argument >> 31 == 1;
                let same = match command.opcode {
                    Opcode::VoltageSwitch => false,
                    Opcode::SwitchFunction => !changed,
                    _ => true,
                };
                assert_eq!(mode == best, same, "{command}, heard: {heard}");
                runs += 1;
            }
        }
    }
    assert!(runs > 150, "{runs}");
}

#[test]
fn a_card_that_cannot_be_used_is_refused_with_the_reason() {
    let full = HostCapabilities::full();
    let failure = |mut slot: Slot| slot.identify(&full).unwrap_err();
    let empty = |kind| Slot::new(kind, example::CSD_SANDISK_2G, Flaws::default());
    assert_eq!(failure(empty(Kind::None)), Failure::NoCard);
    assert_eq!(failure(empty(Kind::Sdio)), Failure::Sdio);
    let locked = Flaws { locked: true, ..Flaws::default() };
    assert_eq!(failure(sdxc(locked)), Failure::Locked);
    let deaf = Flaws { deaf: true, ..Flaws::default() };
    assert_eq!(failure(sdxc(deaf)), Failure::Voltage);
    // An SD card and an eMMC device of 1.8 V only, on a host that supplies 3.3 V.
    let kind = Kind::Mmc { ext_csd: Some(Box::new(emmc_5_1())), ocr: 0xc000_0080 };
    assert_eq!(failure(empty(kind)), Failure::Voltage);
    assert_eq!(
        failure(sd(example::CSD_SAMSUNG_32G, "0235800100000000", 0xc000_0000, 0, Flaws::default())),
        Failure::Voltage
    );
    // A register with an impossible value.
    let slot = sd(example::CSD_SAMSUNG_32G, "0335800100000000", 0xc0ff_8000, 0, Flaws::default());
    let text = failure(slot).to_string();
    assert!(text.starts_with("SCR: SD_SPEC is 0x3"), "{text}");
    // A bus without a single good lane ([identification-ends]).
    let bad = Timing::ALL.to_vec();
    let slot = sdxc(Flaws { bad, ..Flaws::default() });
    let opcode = Some(Opcode::SendScr);
    assert_eq!(failure(slot), Failure::Bus { opcode, error: BusError::Data });
}

#[test]
fn a_card_has_a_second_to_become_ready() {
    for mut slot in [emmc(emmc_5_1(), Flaws::default()), sdxc(Flaws::default())] {
        slot.flaws.never_ready = true;
        assert_eq!(slot.identify(&HostCapabilities::full()).unwrap_err(), Failure::NeverReady);
        assert!(slot.waited >= Duration::from_secs(1), "{:?}", slot.waited);
        assert!(slot.waited < Duration::from_ms(1_100), "{:?}", slot.waited);
    }
}

#[test]
fn the_final_step_never_changes() {
    let mut identify = Identify::new(HostCapabilities::full());
    let mut steps = 0;
    while !matches!(identify.next(), Step::Failed(_)) {
        identify.answered(Answer::Error(BusError::NoResponse));
        steps += 1;
        assert!(steps < 1000);
    }
    identify.answered(Answer::Done);
    assert!(matches!(identify.next(), Step::Failed(_)));
}

#[test]
fn retuning_returns_the_bus_to_its_mode() {
    use Timing::*;
    for (timing, steps) in [(Hs200, 1), (Hs400, 19), (Hs400Es, 0), (MmcHighSpeed, 0)] {
        let mut slot = emmc(emmc_5_1(), Flaws::default());
        let card = slot.identify(&with(&[timing])).unwrap();
        assert_eq!((card.mode.timing, Retune::of(&card).count()), (timing, steps));
        slot.retune(&card).unwrap();
        assert_eq!((slot.tuned, slot.host), (timing.needs_tuning(), Some(card.mode)));
        assert!(slot.agree(false), "{timing:?}: data arrives");
    }
    for (timing, steps) in [(Sdr104, 1), (Sdr50, 1), (Sdr25, 0)] {
        let mut slot = sdxc(Flaws::default());
        let card = slot.identify(&with(&[timing])).unwrap();
        assert_eq!(Retune::of(&card).count(), steps);
        slot.retune(&card).unwrap();
        assert!(slot.agree(false) && slot.tuned == (steps > 0), "{timing:?}");
    }
}

/// Each step of the identification of four cards, with arguments and limits.
#[test]
fn identification_takes_the_steps_of_the_standards() {
    let mut old = Slot::new(
        Kind::Mmc { ext_csd: None, ocr: 0x80ff_8000 },
        example::CSD_SANDISK_2G,
        Flaws::default(),
    );
    let plain = HostCapabilities::plain();
    let full = HostCapabilities::full();
    let mut sd_1_0 =
        sd(example::CSD_SANDISK_2G, "0025000000000000", 0x80ff_8000, 0, Flaws::default());
    let mut steps = std::string::String::new();
    for (name, slot, host) in [
        ("eMMC 5.1 on a full host", &mut emmc(emmc_5_1(), Flaws::default()), &full),
        ("a card before 4.0 on a plain host", &mut old, &plain),
        ("SD 1.0 on a plain host", &mut sd_1_0, &plain),
        ("SDXC on a full host", &mut sdxc(Flaws::default()), &full),
    ] {
        slot.identify(host).unwrap();
        steps += &std::format!("{name}\n  {}\n", slot.steps.join("\n  "));
    }
    assert_eq!(steps, include_str!("steps.txt"));
}
