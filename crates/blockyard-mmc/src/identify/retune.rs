//! Tuning a bus again in its mode (JESD84-B51 6.6.5, 6.6.6; SD 4.2.4.5).
//!
//! HS200, SDR104 and SDR50 are tuned in their own mode. A bus with a strobe, or in a timing that
//! was never tuned, needs no tuning. HS400 is tuned in HS200, the only mode in which the device
//! takes CMD21: the bus goes there by high speed, and back the way it came at first.

use super::moves::Move;
use super::plan::{by_high_speed, high_speed, wide};
use super::step::{COMMAND, Step};
use crate::card::Card;
use crate::command::{Command, Rca, SwitchAccess};
use crate::mode::{Mode, Timing, Width};
use crate::register::ext_csd::index;
use alloc::vec;
use alloc::vec::Vec;
use blockyard::time::Duration;

/// The steps that tune the bus of a card again: [`Step::Send`], [`Step::Drive`] and [`Step::Tune`],
/// in this order. A [`HostController::retune`] performs them. All must go well, and no status may
/// report an [error](crate::command::status::Status::errors); otherwise the bus is not tuned, and
/// the card has to be reset. Allocates when it is made.
///
/// [`HostController::retune`]: crate::controller::HostController::retune
#[derive(Clone, Debug)]
pub struct Retune {
    rca: Rca,
    switch_limit: Duration,
    moves: vec::IntoIter<Move>,
}

impl Retune {
    /// The steps for the bus of `card`, which is in the card's mode.
    #[must_use]
    pub fn of(card: &Card) -> Self {
        let mode = card.mode;
        let block = Command::mmc_tuning_block(mode.width == Width::Eight);
        let moves = match mode.timing {
            Timing::Sdr50 | Timing::Sdr104 => vec![Move::Tune(Command::sd_tuning_block())],
            Timing::Hs200 => vec![Move::Tune(block)],
            Timing::Hs400 => by_hs200(mode, block),
            _ => Vec::new(),
        };
        Self { rca: card.rca, switch_limit: card.switch_limit(), moves: moves.into_iter() }
    }
}

impl Iterator for Retune {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        Some(match self.moves.next()? {
            Move::Drive(mode) => Step::Drive(mode),
            Move::Tune(command) => Step::Tune(command),
            Move::Switch(at, value) => Step::Send {
                command: Command::switch(SwitchAccess::WriteByte, at, value),
                limit: self.switch_limit,
            },
            Move::Check => Step::Send { command: Command::send_status(self.rca), limit: COMMAND },
            other => unreachable!("{other:?} is not for tuning"),
        })
    }
}

/// Returns the moves from `best`, which is HS400, to HS200, and back.
fn by_hs200(best: Mode, block: Command) -> Vec<Move> {
    debug_assert_eq!(best.timing, Timing::Hs400, "only HS400 is tuned in HS200");
    let both_edges = Mode { timing: Timing::MmcDdr52, ..high_speed(best) };
    let tuned = Mode { timing: Timing::Hs200, ..best };
    let mut moves = vec![
        Move::Drive(Mode { clock_hz: both_edges.clock_hz, ..best }),
        Move::Switch(index::HS_TIMING, 1),
        Move::Drive(both_edges),
        Move::Check,
        wide(high_speed(best)),
        Move::Drive(high_speed(best)),
        Move::Check,
        Move::Switch(index::HS_TIMING, 2),
        Move::Drive(tuned),
        Move::Check,
        Move::Tune(block),
    ];
    moves.extend(by_high_speed(best));
    moves
}
