//! A slot with a card that follows the standards, apart from its flaws.

use super::*;
use crate::register::extension::example::{general, performance};

/// The flaws of a slot or a card.
#[derive(Clone, Debug, Default)]
pub(super) struct Flaws {
    /// Timings in which no data arrives and tuning fails.
    pub(super) bad: Vec<Timing>,
    /// The wired data lanes.
    pub(super) wired: Option<Width>,
    /// The card does not release its lines after CMD11.
    pub(super) stuck_at_3v3: bool,
    /// Bytes of EXT_CSD that cannot be switched.
    pub(super) refused: Vec<u16>,
    /// Commands, counted from 0, that the card does not receive.
    pub(super) lost: Vec<usize>,
    /// Commands whose data does not reach the card, which waits for it.
    pub(super) dataless: Vec<usize>,
    /// Commands whose response and data the host does not receive.
    pub(super) unheard: Vec<usize>,
    /// The card never becomes ready.
    pub(super) never_ready: bool,
    /// The card is locked by a password.
    pub(super) locked: bool,
    /// The card echoes a wrong CMD8 pattern.
    pub(super) deaf: bool,
    /// From this start of identification on, counted from 1, the card does not answer this command.
    pub(super) mute: Option<(usize, Opcode)>,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Mmc { ext_csd: Option<Box<[u8; 512]>>, ocr: u32 },
    Sd { version_2: bool, ocr: u32, scr: [u8; 8], modes: u8, uhs: bool },
    Sdio,
    None,
}

#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) kind: Kind,
    pub(super) csd: &'static str,
    pub(super) flaws: Flaws,
    pub(super) powered: bool,
    pub(super) state: CardState,
    pub(super) questions: u8,
    pub(super) application: bool,
    /// The mode in which the host drives the bus, and the voltage.
    pub(super) host: Option<Mode>,
    pub(super) voltage: SignalVoltage,
    /// The mode in which the card is.
    pub(super) width: Width,
    pub(super) access: u8,
    pub(super) low: bool,
    pub(super) tuned: bool,
    pub(super) stuck: bool,
    /// A response got lost since the last CMD0, so the host may not know the card's state.
    pub(super) tolerant: bool,
    /// eMMC: CMD1 came without voltages, so the device ignores other CMD1s until CMD0.
    pub(super) asked: bool,
    pub(super) switch_error: bool,
    /// SD: the performance enhancement register, and the byte that CMD49 brings.
    pub(super) performance: [u8; 512],
    pub(super) brought: u8,
    /// Commands whose status reported that a switch failed.
    pub(super) reported: Vec<usize>,
    pub(super) log: Vec<Command>,
    /// Each step of the host, in words.
    pub(super) steps: Vec<std::string::String>,
    pub(super) waited: Duration,
}

impl Slot {
    pub(super) fn new(kind: Kind, csd: &'static str, flaws: Flaws) -> Self {
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
            performance: performance(),
            brought: 0,
            reported: Vec::new(),
            log: Vec::new(),
            steps: Vec::new(),
            waited: Duration::ZERO,
        }
    }

    /// Retunes the bus of `card`, which is in the slot.
    pub(super) fn retune(&mut self, card: &Card) -> Result<(), BusError> {
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
    pub(super) fn identify(&mut self, host: &HostCapabilities) -> Result<Box<Card>, Failure> {
        let mut identify = Identify::new(host.clone());
        for _ in 0..20_000 {
            self.steps.push(match identify.next() {
                Step::Done(_) => "done".into(),
                Step::Send { command, limit } => {
                    std::format!("{command}, {} ms", limit.as_ns() / 1_000_000)
                }
                Step::SendByte { command, first, limit } => {
                    std::format!("{command} with {first}, {} ms", limit.as_ns() / 1_000_000)
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
                Step::SendByte { command, first, limit } => {
                    assert!(limit > Duration::ZERO);
                    self.brought = first;
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
        self.performance = performance();
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
    pub(super) fn agree(&self, tuning: bool) -> bool {
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
        let answer = self.receive(command);
        if command.response == ResponseKind::None { Ok((Response::None, vec![])) } else { answer }
    }

    fn receive(&mut self, command: Command) -> Result<(Response, Vec<u8>), BusError> {
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
        if self.flaws.dataless.contains(&number) {
            return Err(BusError::Data);
        }
        // The data arrives in the mode before the command takes effect.
        let arrives = self.agree(false);
        let data = self.obey(command);
        let switch_error = core::mem::take(&mut self.switch_error);
        let reports = command.opcode == Opcode::SendStatus && switch_error;
        self.switch_error = switch_error && !reports;
        if reports {
            self.reported.push(number);
        }
        let status = self.status(before, reports);
        if command.data.is_some() {
            self.state = self.state.after_data().after_busy();
        }
        if command.response.has_busy() {
            self.state = self.state.after_busy();
        }
        if self.flaws.unheard.contains(&number) {
            self.tolerant = command.opcode != Opcode::GoIdle;
            return Err(BusError::NoResponse);
        }
        data.heard(status, arrives)
    }

    /// Returns the status in state `before`.
    fn status(&self, before: CardState, switch_failed: bool) -> u32 {
        let is_locked = self.flaws.locked && before == CardState::StandBy;
        Status::new(before, true).0
            | if switch_failed { Status::SWITCH_ERROR } else { 0 }
            | if is_locked { Status::CARD_IS_LOCKED } else { 0 }
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
            // The general information is function 0, and performance enhancement function 2.
            Opcode::ReadExtension => Obeyed::Data(match argument >> 27 {
                0 => general(&[1, 2]).to_vec(),
                2 => self.performance.to_vec(),
                other => panic!("no function {other}"),
            }),
            Opcode::WriteExtension => {
                let at = argument >> 9 & 0x1ff;
                assert_eq!(argument, 2 << 27 | at << 9, "one byte of page 0 of function 2");
                self.performance[usize::try_from(at).unwrap()] = self.brought;
                Obeyed::Status
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

impl Obeyed {
    /// Returns what the host receives, if data `arrives`.
    fn heard(self, status: u32, arrives: bool) -> Result<(Response, Vec<u8>), BusError> {
        match self {
            Self::Status => Ok((Response::Short(status), vec![])),
            Self::Other(response) => Ok((response, vec![])),
            Self::Data(bytes) if arrives => Ok((Response::Short(status), bytes)),
            Self::Data(_) => Err(BusError::Data),
        }
    }
}
