//! The parts of a lane, which `blockyard-serve` uses too. They are no stable interface.
//!
//! - [`queue`], [`bio_queue`], [`shape`]: a disk as one lane sees it: the core's request queue over
//!   the disk's device.
//! - [`device`]: devices over memory and files, and the depth that lanes share.
//! - [`job`], [`bios`]: requests in flight: their owner, and the place of their data.
//! - [`ring`], [`map`], [`loan`], [`discards`]: io_uring, mappings, memory of callers, discards of
//!   block devices. All `unsafe` code is in these.
//! - [`pool`], [`slab`], [`depth`]: buffers; values by number; the depth that lanes share
//!   (model-checked).
//! - [`bell`], [`clock`], [`words`]: waking a lane; time; errors of the system.

pub mod bell;
pub mod bio_queue;
pub mod bios;
pub mod clock;
pub mod depth;
pub mod device;
pub mod discards;
pub mod job;
pub mod loan;
pub mod map;
pub mod pool;
pub mod queue;
pub mod ring;
pub mod shape;
pub mod slab;
pub mod words;
