//! The block translation table (BTT): sectors that a power cut cannot tear, on memory that is addressed by
//! bytes.
//!
//! A sector is written to a block that nobody has, a log entry says so, and the map entry of the sector is
//! switched to that block; the one it had is the next free one. What is on the medium is Linux's and
//! libpmemblk's format, byte for byte, in its versions 1.1 and 2.0.
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
//!             worker.write(thread * 8, &[7; 512 * 8]).expect("memory does not fail");
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
//! # What is promised
//!
//! A sector reads as it was written last, or, if a write was not acknowledged when the power went, as
//! before or after it: never as a mix. An acknowledged write is durable. Both on the condition that the
//! [`Memory`] keeps its rules, above all that a fence makes durable what it says. Nothing is promised of
//! the order of two sectors that were not acknowledged, nor about writes of several sectors as a whole.
//!
//! # What there is
//!
//! - [`Btt`], and [`Worker`], a thread's way to it ([`Seat`] for many in one thread). [`Policy`] is what designs decide otherwise.
//! - [`memory`], the seam to bytes; [`ram`], the smallest of them.
//! - The format: [`layout`], [`info_block`], [`map_entry`], [`flog`]; [`container`], what a BTT lies in and
//!   the habits of those who look there.
//! - [`mod@find`] and [`recover`]: what is on a medium. [`mod@format`] writes an empty one.
//! - [`mod@check`] says what is wrong with a medium, and [`repair`] mends what is certain.
//! - [`versions`] and [`readers`]: how readers and writers of one block keep apart.
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
mod sector_state;
mod shared_words;
mod sync;
mod touch;
pub mod versions;
mod worker;
mod write;

pub use address::{PostmapAba, PremapAba};
pub use container::{Container, Dialect};
pub use device::{Btt, OpenOptions};
pub use error::{IoError, OpenError};
pub use format::{Format, FormatError};
pub use info_block::{Uuid, Version};
pub use map_entry::{MapEntry, SectorState};
pub use memory::{MediaError, Memory};
pub use policy::{LaneChoice, Policy, ReadTracking};
pub use touch::{Touch, Word};
pub use worker::{Seat, Worker};
