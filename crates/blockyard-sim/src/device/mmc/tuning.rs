//! A bus that is tuned again: what a controller sends for it, played against the card.
//!
//! - **W1.** The bus goes the way that [`Retune`] says, and the card checks each step: it sends its tuning block
//!   only in the timings that are tuned.
//! - **W2.** A tuning takes [`BLOCKS`] blocks, whichever sampling points are found. A block that does not come, or
//!   comes damaged, is one that does not work; the card is stopped, in case that it still sends. Where none
//!   comes, or the fault `tuning-fails-one-in` strikes, the bus is not tuned.
//! - **W3.** Of what these responses say nobody knows which write it is about. So a host asks the card before, and
//!   it has nothing left to say of its work: else the simulation ends, as by S2.

use super::card::Reaction;
use super::controller::{Controller, RCA};
use super::registers::known;
use blockyard::time::{Duration, Instant};
use blockyard_mmc::command::status::Status;
use blockyard_mmc::command::{Command, Direction};
use blockyard_mmc::controller::{HostError, MmcRequest};
use blockyard_mmc::identify::{Retune, Step};

/// SD 4.2.4.5: at most so many are needed.
const BLOCKS: u8 = 40;

impl Controller {
    /// Tunes the bus from `now` on. It is in use until it has been.
    pub(super) fn tune(&mut self, now: Instant) -> Result<(), HostError> {
        assert!(
            !self.card.is_to_say(Status::OF_WORK_BEFORE),
            "W3: a write failed, and nobody asked"
        );
        let card = known(self.card.registers(), self.mode, RCA);
        let mut at = now.max(self.free_at);
        let mut tuned = Ok(());
        for step in Retune::of(&card) {
            tuned = match step {
                Step::Drive(mode) => {
                    self.card.drive(mode);
                    Ok(())
                }
                Step::Tune(command) => self.sample(&command, &mut at),
                Step::Send { command, .. } => self.switches(&command, &mut at),
                other => unreachable!("{other:?} is not for tuning"),
            };
            if tuned.is_err() {
                break;
            }
        }
        self.free_at = at;
        self.bus.add(now, at);
        self.device.add(now, at);
        tuned
    }

    /// Sends `command`, and waits until the card is not busy.
    fn switches(&mut self, command: &Command, at: &mut Instant) -> Result<(), HostError> {
        let Reaction { answer, at: end, busy_until, .. } = self.send(command, *at);
        *at = busy_until.unwrap_or(end).max(end) + self.command_gap();
        let response = answer.map_err(|_| HostError::Damaged)?;
        let errors = response.status().map_or(0, |status| status.errors());
        if errors == 0 { Ok(()) } else { Err(HostError::Damaged) }
    }

    /// Has the card send its block again and again (W2).
    fn sample(&mut self, command: &Command, at: &mut Instant) -> Result<(), HostError> {
        let (from, mut works) = (*at, false);
        for _ in 0..BLOCKS {
            let reaction = self.send(command, *at);
            *at = reaction.at + self.command_gap();
            let comes = reaction.answer.is_ok() && reaction.data_from.is_some();
            let good = comes && {
                let done = self.card.transfer(1, reaction.at);
                let done = done.unwrap_or_else(|misuse| panic!("S2: {misuse}"));
                *at = done.end + self.command_gap();
                done.error.is_none()
            };
            works |= good;
            if !good {
                let stop = Command::stop_transmission(Direction::Read);
                *at = self.send(&stop, *at).at + self.command_gap();
            }
        }
        self.uses.transaction(&MmcRequest::plain(*command, Duration::ZERO), from, *at);
        if works && !self.faults.fails_tuning() { Ok(()) } else { Err(HostError::Damaged) }
    }
}
