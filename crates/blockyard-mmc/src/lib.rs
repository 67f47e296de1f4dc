//! eMMC devices and SD cards: registers, commands, identification, and the request path of a host.
//!
//! - [`register`] reads the registers that describe a card.
//! - [`command`] makes commands and reads responses. Its tables say which command is legal when.
//! - [`timing`] has the timings of a bus; [`mode`] says what a mode costs on the wire, and which
//!   mode is best for a card on a [`host`].
//! - [`identify`] brings a card from power-up to its best mode. The result is a [`card`], with time
//!   limits and block limits; [`target`] is the part of it that the request path needs.
//! - [`request`] is an MMC request: command, data and stop as one unit. [`controller`] is the
//!   interface to a controller, [`engine`] that to its command queue engine; [`exchange`] follows
//!   one MMC request on the bus.
//! - [`block`] is the request path over that interface, a [`Driver`](blockyard::driver::Driver).
//!   [`policy`] says how it works: which context does what, and when the next request starts.
//! - [`board`] has the loop of identification, and a turn of the main loop, for a firmware that
//!   polls.
//!
//! `examples/firmware` has the code to write around this crate for a controller of your own: its
//! driver, and the main loop.
//!
//! Nothing here does I/O or reads a clock: the controller carries out the driver's calls and
//! reports events.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod block;
pub mod board;
pub mod bus_use;
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

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
