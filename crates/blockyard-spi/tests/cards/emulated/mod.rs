//! An SD card in SPI mode, written from the specification, behind the traits of `embedded-hal`.
//!
//! The card is strict: it panics where a real one would do something undefined, or where the
//! specification forbids what the host did. `model` is the card, `act` what commands do,
//! `registers` what it is, `wires` the traits.

mod act;
mod model;
mod registers;
mod wires;

pub(crate) use model::{Model, Sent};
pub(crate) use registers::Kind;
pub(crate) use wires::{Select, Slot, Wire, block_on, poll_times};
