//! Retuning of the bus: the commands that a controller sends for it, played against the card.
//!
//! The bus takes the steps of [`Retune`], and the card checks each: it sends its tuning block only
//! in timings that are tuned. A tuning takes [`BLOCKS`] blocks, whichever sampling points work. A
//! block that is missing or damaged marks a point that does not work; the card is stopped in case
//! it still sends. If no point works, or the fault `tuning-fails-one-in` strikes, the tuning fails.
//!
//! # Rules
//!
//! - **[tuning-hides-no-write-error]** A host cannot know which write caused an error in the
//!   response to a tuning command. So it asks the card before it tunes, and the card has no error
//!   left to report. A host that does not ask ends the simulation.

use super::card::Reaction;
use super::controller::{Controller, RCA};
use super::registers::known;
use blockyard::time::{Duration, Instant};
use blockyard_mmc::command::status::Status;
use blockyard_mmc::command::{Command, Direction};
use blockyard_mmc::controller::{HostError, MmcRequest};
use blockyard_mmc::identify::{Retune, Step};

/// The maximum number of tuning blocks that a card needs (SD 4.2.4.5).
const BLOCKS: u8 = 40;

impl Controller {
    /// Tunes the bus from `now` on. The bus is in use until the tuning ends.
    pub(super) fn tune(&mut self, now: Instant) -> Result<(), HostError> {
        assert!(
            !self.card.is_to_say(Status::OF_WORK_BEFORE),
            "[tuning-hides-no-write-error] a write failed, and nobody asked"
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
                other => unreachable!("{other:?} is no step of a tuning"),
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

    /// Reads the tuning block [`BLOCKS`] times.
    fn sample(&mut self, command: &Command, at: &mut Instant) -> Result<(), HostError> {
        let from = *at;
        let mut works = false;
        for _ in 0..BLOCKS {
            let reaction = self.send(command, *at);
            *at = reaction.at + self.command_gap();
            let comes = reaction.answer.is_ok() && reaction.data_from.is_some();
            let good = comes && {
                let done = self.card.transfer(1, reaction.at);
                let done =
                    done.unwrap_or_else(|misuse| panic!("[misuse-ends-simulation] {misuse}"));
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
