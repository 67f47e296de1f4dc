//! Identification: from a slot with power to a [`Card`] in its best mode (JESD84-B51 6.4 to 6.6;
//! SD 4.2 and 4.3).
//!
//! [`Identify`] does no I/O. [`Identify::next`] says what to do, the host does it and tells with
//! [`Identify::answered`] how it went, until the step is [`Step::Done`] or [`Step::Failed`].
//!
//! ```text
//! power ─► CMD0 ─► CMD8 ─► CMD5 ─► ACMD41 ─┬─ SD: CMD11 ─► CMD2 3 9 7 ─► SCR SSR CMD6 ─► mode ─► done
//!                                           └─ eMMC: CMD0 1 2 3 9 7 ─► EXT_CSD ─► mode ─► settings ─► done
//! ```
//!
//! # Rules
//!
//! - **I1.** No command is sent that is [illegal](super::command::legal::legal) in the card's state.
//!   Those that ask which standard a card follows are the exception: the wrong card stays silent.
//! - **I2.** What fails is tried [`TRIES`] times in all, what cannot be repeated once. For a probe
//!   silence then is the answer.
//! - **I3.** A mode that fails is not used, and nothing is assumed of the card that it failed on:
//!   identification starts over, without power in between where the host can, and chooses again
//!   among the rest. When the slowest timing fails, it starts over with a narrower bus. Before a mode
//!   was chosen it starts over [`TRIES`] times in all, then without 1.8 V. So it ends.
//! - **I4.** Settings that a card can do without (cache, HPI, erase groups, tales of packed
//!   commands that failed) do not fail it.
//! - **I5.** A mode counts only once the card's data arrives well in it.
//!
//! A bus that is tuned, and has drifted, is tuned again by the steps of a [`Retune`].
//!
//! Memory is allocated here; a [`Card`] needs none later on.
//!
//! # Examples
//!
//! The whole loop, on an empty slot:
//!
//! ```
//! use blockyard_mmc::command::ResponseKind;
//! use blockyard_mmc::host::HostCapabilities;
//! use blockyard_mmc::identify::{Answer, BusError, Failure, Identify, Step};
//!
//! let mut identify = Identify::new(HostCapabilities::plain());
//! let end = loop {
//!     match identify.next() {
//!         Step::Done(card) => break Ok(card),
//!         Step::Failed(why) => break Err(why),
//!         Step::Send { command, .. } if command.response != ResponseKind::None => {
//!             identify.answered(Answer::Error(BusError::NoResponse));
//!         }
//!         // Power, clocks, voltages, waits: a real host does them here.
//!         _ => identify.answered(Answer::Done),
//!     }
//! };
//! assert_eq!(end.unwrap_err(), Failure::NoCard);
//! ```

mod machine;
mod moves;
mod plan;
mod retune;
mod step;
mod take;

#[cfg(test)]
mod tests;

pub use machine::Identify;
pub use retune::Retune;
pub use step::{Answer, BusError, COMMAND, Failure, READY_INTERVAL, READY_TRIES, Step, TRIES};
