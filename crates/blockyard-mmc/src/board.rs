//! A controller and its board, for a program that polls: identification, and the main loop.
//!
//! [`identify`](super::identify) says what to do, and a [`Board`] does it: [`bring_up`] is the loop
//! between them. [`Mmc::turn`] is the part of a main loop that belongs to the card. A host with
//! threads needs neither: it performs the steps itself, and lets each [`Context`] run where it
//! belongs.

use super::block::{Context, Mmc};
use super::card::Card;
use super::command::{Command, Direction, Response};
use super::controller::{HostController, HostError, HostEvent, MmcRequest, Part};
use super::host::BusyDetect;
use super::identify::{Answer, BusError, Failure, Identify, Step};
use super::mode::{Mode, SignalVoltage};
use super::register::extension::byte_block;
use alloc::boxed::Box;
use blockyard::time::{Duration, Instant};

/// The time between two looks at DAT0.
const LOOK_INTERVAL: Duration = Duration::from_us(100);

/// A controller's services for identification and for a main loop, besides its requests.
pub trait Board: HostController {
    /// Returns the time.
    fn now(&self) -> Instant;

    /// Returns the next event of the controller, which its interrupt handler may have noted; `None`
    /// if there is none yet.
    fn next_event(&mut self) -> Option<HostEvent>;

    /// Sleeps until the controller interrupts, or until `limit`. It may return before, or a tick of
    /// the board later.
    fn sleep(&mut self, limit: Instant);

    /// Drives the bus in `mode` from now on.
    fn drive(&mut self, mode: Mode);

    /// Switches the power of the card. A board that cannot do so does nothing; its capabilities
    /// have no [`power_cycle`](super::host::HostCapabilities::power_cycle).
    fn power(&mut self, is_on: bool) {
        let _ = is_on;
    }

    /// Performs [`Step::Voltage`]. Only a host that can signal at other voltages is asked to.
    ///
    /// # Errors
    ///
    /// Fails if the card does not follow.
    fn voltage(&mut self, voltage: SignalVoltage) -> Result<(), BusError> {
        let _ = voltage;
        Err(BusError::Host)
    }

    /// Performs [`Step::Tune`]. Only a host with a timing that is tuned is asked to.
    ///
    /// # Errors
    ///
    /// Fails if no sampling point works.
    fn tune(&mut self, command: Command) -> Result<(), BusError> {
        let _ = command;
        Err(BusError::Host)
    }
}

/// Identifies the card of `board`. Nothing may be on its bus. Allocates memory.
///
/// # Errors
///
/// Returns the reason for which there is no card.
pub fn bring_up(board: &mut impl Board) -> Result<Box<Card>, Failure> {
    let mut identify = Identify::new(board.capabilities().clone());
    loop {
        let answer = match identify.next() {
            Step::Done(card) => return Ok(card),
            Step::Failed(failure) => return Err(failure),
            Step::Send { command, limit } => send(board, command, limit),
            Step::SendByte { command, first, limit } => {
                *board.block() = byte_block(first);
                send(board, command, limit)
            }
            Step::Drive(mode) => {
                board.drive(mode);
                Answer::Done
            }
            Step::Wait(span) => {
                sleep_for(board, span);
                Answer::Done
            }
            Step::Power(is_on) => {
                board.power(is_on);
                Answer::Done
            }
            Step::Voltage(voltage) => done(board.voltage(voltage)),
            Step::Tune(command) => done(board.tune(command)),
        };
        identify.answered(answer);
    }
}

fn done(result: Result<(), BusError>) -> Answer<'static> {
    result.map_or_else(Answer::Error, |()| Answer::Done)
}

fn sleep_for(board: &mut impl Board, span: Duration) {
    sleep_until(board, board.now() + span);
}

fn sleep_until(board: &mut impl Board, end: Instant) {
    while board.now() < end {
        board.sleep(end);
    }
}

/// Sends `command` and waits until it is over, busy included.
fn send(board: &mut impl Board, command: Command, limit: Duration) -> Answer<'_> {
    let request = MmcRequest::by_block(command, limit);
    let end = board.now() + limit;
    let response = match perform(board, &request, end) {
        Ok(response) => response,
        Err(error) => return Answer::Error(error),
    };
    match command.data.filter(|data| data.direction == Direction::Read) {
        Some(data) => Answer::Data(response, &board.block()[..data.bytes() as usize]),
        None if response == Response::None => Answer::Done,
        None => Answer::Response(response),
    }
}

/// Performs `request` until `end` at the latest. Returns the response of its command.
fn perform(
    board: &mut impl Board,
    request: &MmcRequest,
    end: Instant,
) -> Result<Response, BusError> {
    let busy_detect = board.capabilities().busy_detect;
    let mut parts_left = request
        .parts()
        .filter(|part| *part != Part::Busy || busy_detect == BusyDetect::Hardware)
        .count();
    let mut response = Response::None;
    board.start(request, board.now());
    while parts_left > 0 {
        match board.next_event() {
            Some(HostEvent::CommandDone { response: came, .. }) => {
                response = came;
                parts_left -= 1;
            }
            Some(HostEvent::DataDone | HostEvent::BusyReleased) => parts_left -= 1,
            Some(HostEvent::Error { part, error, .. }) => return Err(bus_error(part, error)),
            Some(HostEvent::CardGone) => return Err(BusError::NoResponse),
            Some(HostEvent::RetuneNeeded | HostEvent::Engine(_)) => {}
            None if board.now() >= end => {
                board.abort(end);
                return Err(BusError::Busy);
            }
            None => board.sleep(end),
        }
    }
    match busy_detect {
        _ if !request.ends_busy() => {}
        BusyDetect::Hardware => {}
        BusyDetect::Line => {
            while board.card_busy(board.now()) {
                if board.now() >= end {
                    return Err(BusError::Busy);
                }
                sleep_for(board, LOOK_INTERVAL);
            }
        }
        BusyDetect::Status => sleep_until(board, end), // the card is ready by then
    }
    Ok(response)
}

const fn bus_error(part: Part, error: HostError) -> BusError {
    match (part, error) {
        (Part::Data, _) => BusError::Data,
        (Part::Busy, _) => BusError::Busy,
        (_, HostError::Damaged) => BusError::ResponseCrc,
        (_, HostError::Timeout | HostError::Memory) => BusError::NoResponse,
    }
}

impl<B: Board> Mmc<B> {
    /// Does the work of the card that is due at `now`: takes the controller's events, then performs
    /// all acts of the interrupt, and one of the other contexts, after which there may be events
    /// again. Returns whether it performed one of these.
    ///
    /// If it did not, the caller lets its queue [take its
    /// turn](blockyard::request_queue::RequestQueue::turn), and may then [sleep](Board::sleep).
    pub fn turn(&mut self, now: Instant) -> bool {
        while let Some(event) = self.controller.next_event() {
            self.interrupt(event, now);
        }
        while self.step(Context::Interrupt, now).is_some() {}
        let step = self.step(Context::Deferred, now);
        step.or_else(|| self.step(Context::Thread, now)).is_some()
    }
}

#[cfg(test)]
mod tests;
