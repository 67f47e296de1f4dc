//! From power-up to a card in its best mode: by polling, as there is nothing else to do yet.

use crate::sdhci::Sdhci;
use alloc::boxed::Box;
use blockyard::time::Duration;
use blockyard_mmc::card::Card;
use blockyard_mmc::command::{Command, Response};
use blockyard_mmc::controller::{HostController, HostEvent, MmcRequest, Part, Payload};
use blockyard_mmc::identify::{Answer, BusError, Failure, Identify, Step};

impl Sdhci {
    /// Performs the steps of identification until it has a card or gives up.
    pub(crate) fn identify(&mut self) -> Result<Box<Card>, Failure> {
        let mut identify = Identify::new(self.capabilities().clone());
        loop {
            let answer = match identify.next() {
                Step::Done(card) => return Ok(card),
                Step::Failed(failure) => return Err(failure),
                Step::Send { command, limit } => self.send(command, limit),
                Step::Drive(mode) => {
                    self.chip.drive(mode);
                    Answer::Done
                }
                Step::Wait(span) => {
                    self.chip.spend(span);
                    Answer::Done
                }
                // Here a board switches the card's supply. On this board it is always on.
                Step::Power(_) => Answer::Done,
                // Not asked of a host whose capabilities have neither 1.8 V nor a tuned mode.
                Step::Voltage(_) | Step::Tune(_) => Answer::Error(BusError::Host),
            };
            identify.answered(answer);
        }
    }

    /// Sends `command` and waits for its end.
    fn send(&mut self, command: Command, limit: Duration) -> Answer<'_> {
        let payload = if command.data.is_some() { Payload::Block } else { Payload::None };
        let end = self.chip.now() + limit;
        self.start(&MmcRequest { payload, ..MmcRequest::plain(command, limit) }, self.chip.now());
        let mut response = Response::None;
        loop {
            match self.next_event() {
                Some(HostEvent::CommandDone { response: came, .. }) => response = came,
                Some(HostEvent::Error { part: Part::Data, .. }) => {
                    return Answer::Error(BusError::Data);
                }
                Some(HostEvent::Error { .. }) => return Answer::Error(BusError::NoResponse),
                Some(_) => {}
                None if !self.is_running() => break,
                None if self.chip.now() >= end => {
                    self.abort(end);
                    return Answer::Error(BusError::Busy);
                }
                None => self.chip.wait(Some(end)),
            }
        }
        match command.data {
            Some(data) => Answer::Data(response, &self.block()[..data.bytes() as usize]),
            None if response == Response::None => Answer::Done,
            None => Answer::Response(response),
        }
    }
}
