//! eMMC devices and SD cards: what they are and how they are spoken to.
//!
//! - [`register`] reads the registers in which a card says what it is.
//! - [`command`] makes commands and reads responses; its tables say what is legal when.
//! - [`mode`] says what a bus mode costs on the wire, and which one is best for a card on a
//!   [`host`].
//! - [`identify`] brings a card from power-up to its best mode, and makes a [`card`] of it: what the
//!   request path needs to know, with time limits and block limits.
//!
//! Nothing here does I/O or knows the time: a controller is told what to do, and tells how it went.

pub mod card;
pub mod command;
pub mod host;
pub mod identify;
pub mod mode;
pub mod register;
