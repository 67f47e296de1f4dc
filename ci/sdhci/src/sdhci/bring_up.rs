//! From power-up to a card in its best mode: high speed at most. QEMU's cards do not change to signals at 1.8 V, so
//! nothing here does.

use super::Sdhci;
use super::register::{self, clock, host_control, reset, status};
use alloc::boxed::Box;
use blockyard::time::Duration;
use blockyard_mmc::card::Card;
use blockyard_mmc::command::{Command, Response};
use blockyard_mmc::controller::{HostController, HostEvent, MmcRequest, Part, Payload};
use blockyard_mmc::identify::{Answer, BusError, Failure, Identify, Step};
use blockyard_mmc::mode::{Mode, Timing, Width};

impl Sdhci {
    /// Performs the steps of identification until it has a card or gives up.
    pub(crate) fn identify(&mut self) -> Result<Box<Card>, Failure> {
        self.reset_parts(reset::ALL);
        self.registers.write_32(register::STATUS_ENABLE, status::USED);
        self.registers.write_32(register::SIGNAL_ENABLE, status::USED);
        self.running = None;
        self.line.rearm();
        let mut identify = Identify::new(self.capabilities.clone());
        loop {
            let answer = match identify.next() {
                Step::Done(card) => return Ok(card),
                Step::Failed(failure) => return Err(failure),
                Step::Send { command, limit } => self.ask(command, limit),
                Step::Drive(mode) => {
                    self.drive(mode);
                    Answer::Done
                }
                Step::Wait(span) => {
                    self.clock.spend(span);
                    Answer::Done
                }
                Step::Power(is_on) => {
                    let power = if is_on { register::POWER_3V3 } else { 0 };
                    self.registers.write_8(register::POWER, power);
                    Answer::Done
                }
                // Not asked of a host whose capabilities have neither 1.8 V nor a tuned mode.
                Step::Voltage(_) | Step::Tune(_) => Answer::Error(BusError::Host),
            };
            identify.answered(answer);
        }
    }

    /// Sends `command` and waits for its end.
    fn ask(&mut self, command: Command, limit: Duration) -> Answer<'_> {
        let payload = if command.data.is_some() { Payload::Block } else { Payload::None };
        let end = self.now() + limit;
        self.start(&MmcRequest { payload, ..MmcRequest::plain(command, limit) }, self.now());
        let mut response = Response::None;
        loop {
            match self.next_event() {
                Some(HostEvent::CommandDone { response: came, .. }) => response = came,
                Some(HostEvent::Error { part: Part::Data, .. }) => {
                    return Answer::Error(BusError::Data);
                }
                Some(HostEvent::Error { .. } | HostEvent::CardGone) => {
                    return Answer::Error(BusError::NoResponse);
                }
                Some(_) => {}
                None if self.running.is_none() => break,
                None if self.now() >= end => {
                    self.abort(end);
                    return Answer::Error(BusError::Busy);
                }
                None => self.wait(),
            }
        }
        match command.data {
            Some(data) => Answer::Data(response, &self.own_block[..data.bytes() as usize]),
            None if response == Response::None => Answer::Done,
            None => Answer::Response(response),
        }
    }

    /// Changes clock, width and timing, while the clock stands still.
    fn drive(&self, mode: Mode) {
        let registers = self.registers;
        registers.write_16(register::CLOCK, 0);
        let width = if mode.width == Width::One { 0 } else { host_control::FOUR_LANES };
        let basic = matches!(mode.timing, Timing::SdDefault | Timing::MmcLegacy);
        let speed = if basic { 0 } else { host_control::HIGH_SPEED };
        let dma = if self.features.adma2 { host_control::ADMA2 } else { 0 };
        registers.write_8(register::HOST_CONTROL, width | speed | dma);
        let running = self.features.divisor_bits(mode.clock_hz) | clock::RUNS;
        registers.write_16(register::CLOCK, running);
        while registers.read_16(register::CLOCK) & clock::IS_STABLE == 0 {}
        registers.write_16(register::CLOCK, running | clock::GOES_TO_CARD);
    }
}
