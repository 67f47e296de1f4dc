//! The block translation table (BTT): sectors that a power cut cannot tear, on byte-addressable
//! memory.
//!
//! A write goes to a free block. A log entry records it, and the map entry of the sector is then
//! switched to that block; the sector's old block becomes the next free one. The format on the
//! medium is that of Linux and libpmemblk, byte for byte, in versions 1.1 and 2.0.
//!
//! ```
//! use blockyard_btt::{Btt, Container, Format, OpenOptions, Policy, Uuid};
//! use blockyard_btt::ram::Ram;
//!
//! let ram = Ram::new(16 << 20);
//! let format = Format {
//!     container: Container::LabelledNamespace,
//!     sector_bytes: 512,
//!     uuid: Uuid(*b"any sixteen byte"),
//!     parent_uuid: Uuid::NIL,
//!     blank: true,
//! };
//! let btt = Btt::create(&ram, &format, Policy::DEFAULT)?;
//! std::thread::scope(|scope| {
//!     for thread in 0..4 {
//!         let btt = &btt;
//!         scope.spawn(move || {
//!             let mut worker = btt.worker();
//!             worker.write(thread * 8, &[7; 512 * 8]).expect("write to ram");
//!         });
//!     }
//! });
//! drop(btt);
//!
//! let btt = Btt::open(&ram, &OpenOptions::new(format.container))?;
//! let mut sector = [0; 512];
//! btt.read(31, &mut sector)?;
//! assert_eq!(sector, [7; 512]);
//! btt.set_zero(31, 1)?;
//! btt.read(31, &mut sector)?;
//! assert_eq!(sector, [0; 512]);
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! # Guarantees
//!
//! A sector reads as its last write. After a power cut, a sector whose write was not acknowledged
//! reads as it was before or after that write, never as a mix. An acknowledged write is durable.
//! Both hold as long as the [`Memory`] keeps its rules, above all [fence-makes-durable]. Nothing is
//! promised about the order of two unacknowledged writes, or about a write of several sectors as a
//! whole.
//!
//! # Modules
//!
//! - [`Btt`] is an open BTT. Each thread uses it through a [`Worker`] ([`Seat`] lets one thread act
//!   for many). [`Policy`] holds the choices in which designs differ.
//! - [`memory`] is the seam to the bytes; [`ram`] is the smallest implementation.
//! - [`layout`], [`info_block`], [`map_entry`] and [`flog`] are the format. [`container`] lists the
//!   containers of a BTT, and what the readers of each container expect.
//! - [`mod@find`] and [`recover`] read what is on a medium. [`mod@format`] writes an empty BTT.
//! - [`mod@check`] reports damage, and [`repair`] corrects the damage whose correction is certain.
//! - [`versions`] and [`readers`] keep readers and writers of one block apart.
#![allow(
    clippy::cast_possible_truncation,
    reason = "counts of an arena are checked to be below 2^30 when it is opened, and constants are small"
)]
#![no_std]
#![forbid(unsafe_code)]

#[cfg(not(target_has_atomic = "64"))]
compile_error!("blockyard-btt needs 64-bit atomics, which this target does not have");

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod address;
pub mod arena;
pub mod check;
pub mod container;
mod device;
mod error;
pub mod find;
pub mod flog;
pub mod format;
pub mod info_block;
mod lanes;
pub mod layout;
pub mod map_entry;
pub mod memory;
mod padded;
mod pending;
mod policy;
pub mod ram;
mod read;
pub mod readers;
pub mod recover;
pub mod repair;
mod runs;
mod sector_state;
mod shared_words;
mod sync;
mod touch;
pub mod versions;
mod worker;
mod write;
mod zeroings;

pub use address::{PostmapAba, PremapAba};
pub use container::{Container, Dialect};
pub use device::{Btt, Health, OpenOptions};
pub use error::{IoError, OpenError};
pub use format::{Format, FormatError};
pub use info_block::{Uuid, Version};
pub use map_entry::{MapEntry, SectorState};
pub use memory::{MediaError, Memory};
pub use policy::{LaneChoice, Policy, ReadTracking};
pub use runs::Runs;
pub use touch::{Touch, Word};
pub use worker::{Seat, Worker};

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
