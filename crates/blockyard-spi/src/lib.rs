//! SD cards over SPI, blocking and async, behind blockyard's request queue.
//!
//! ```text
//! embedded-sdmmc ─► sdmmc ─► disk: request queue ─► card: commands, blocks ─► frame
//!                                                              ─► SpiBus, chip select, delay
//! ```
//!
//! - [`frame`]: what is on the wire, and its checksums.
//! - [`card`]: one card. It is identified, reads, writes and erases; it repeats blocks that were
//!   damaged on the wire.
//! - [`disk`]: a request queue in front of a card. Neighbours among the I/Os of a call become one
//!   transfer.
//! - [`sdmmc`]: the block device of `embedded-sdmmc` over such a disk.
//! - [`blocking`]: the same for a bus that blocks.
//!
//! There is one implementation, as `async fn` over the traits of `embedded-hal-async`. It names no
//! executor and needs no timer but a delay. Over the blocking traits of `embedded-hal`, its futures
//! are ready at the first poll.
//!
//! The crate is `no_std` with `alloc` and has no `unsafe` code. [`disk::Disk::new`] allocates; no
//! later call does. The target must have atomic compare-and-swap, as the core needs it.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod blocking;
pub mod card;
pub mod disk;
pub mod error;
pub mod frame;
pub mod memory;
pub mod sdmmc;
