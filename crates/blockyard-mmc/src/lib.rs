//! eMMC devices and SD cards: what they are and how they are spoken to.
//!
//! - [`register`] reads the registers in which a card says what it is.
//! - [`command`] makes commands and reads responses; its tables say what is legal when.
//! - [`mode`] says what a bus mode costs on the wire, and which one is best for a card on a
//!   [`host`].
//! - [`identify`] brings a card from power-up to its best mode, and makes a [`card`] of it: what the
//!   request path needs to know, with time limits and block limits.
//! - [`controller`] is the seam to a controller, [`engine`] to its command queue engine; [`exchange`]
//!   follows one transaction on its bus.
//! - [`block`] is the request path over that seam, a [`Driver`](blockyard::driver::Driver); [`policy`]
//!   says how it works: who does what, and when the next request starts.
//!
//! `examples/firmware` has what to write around it for a controller of your own: its driver, the loop of
//! identification, and the main loop.
//!
//! Nothing here does I/O or knows the time: a controller is told what to do, and tells how it went.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod block;
pub mod card;
pub mod command;
pub mod controller;
pub mod engine;
pub mod exchange;
pub mod host;
pub mod identify;
pub mod mode;
pub mod policy;
pub mod register;
pub mod request;
pub mod target;
pub mod timing;
