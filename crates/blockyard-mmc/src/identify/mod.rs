//! Identification: from a slot with power to a [`Card`](crate::card::Card) in its best mode
//! (JESD84-B51 6.4 to 6.6; SD 4.2 and 4.3).
//!
//! [`Identify`] does no I/O. [`Identify::next`] returns a step; the host performs it and reports
//! the result with [`Identify::answered`], until the step is [`Step::Done`] or [`Step::Failed`].
//!
//! ```text
//! power ─► CMD0 ─► CMD8 ─► CMD5 ─► ACMD41
//!   ├─ SD: CMD11 ─► CMD2 3 9 7 ─► SCR SSR CMD6 ─► mode ─► done
//!   └─ eMMC: CMD0 1 2 3 9 7 ─► EXT_CSD ─► mode ─► settings ─► done
//! ```
//!
//! Settings that a card can do without (cache, HPI, erase groups, reports of packed commands that
//! failed) may fail. A bus that is tuned, and has drifted, is tuned again by the steps of a
//! [`Retune`].
//!
//! # Rules
//!
//! - **[only-legal-commands]** No command is sent that is [illegal](super::command::legal::legal)
//!   in the card's state. Probes that find out which standard a card follows are the exception: the
//!   wrong card stays silent.
//! - A step that fails is tried [`TRIES`] times in all; a step that cannot be repeated, once. A
//!   probe is over when the card stays silent. Before a mode was chosen, identification starts over
//!   [`TRIES`] times in all, then without 1.8 V.
//! - A mode that fails is not used again, and nothing is assumed of the card on which it failed:
//!   identification starts over, without power in between if the host can, and chooses again among
//!   the rest. When the slowest timing fails, it starts over with a narrower bus.
//! - A mode counts only once the card's data arrives well in it.
//! - The cache of an SD card is on or off when identification is done, and the card has said which.
//!   A CMD49 that fails is followed by CMD13, as the card may wait for its data, which CMD12 ends.
//!   If the card does not say whether the cache is on, identification starts over without its
//!   extension registers: CMD0 has turned the cache off.
//!
//! Memory is allocated here; a [`Card`](crate::card::Card) needs none later on.
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
