//! A disk for threads and futures, with the block layer of [`blockyard`] inside. Linux only.
//!
//! A [`Disk`] is memory, a file, a block device, or a device of your own, with a request queue of
//! the core. Any thread calls it, and blocks meanwhile or gets a future for whatever executor it
//! has. A disk has a thread of its own, and for a file an io_uring, or threads where there is none
//! ([`IoEngine`]). A disk in memory has neither, unless it has an elevator of your own: each call
//! has ended its I/O when it returns.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use blockyard_std::Disk;
//!
//! let disk = Disk::memory(1 << 20)?;
//! disk.write_at(b"hello", 4096)?;
//! let mut word = [0; 5];
//! disk.read_at(&mut word, 4096)?;
//! disk.shutdown()?.ok()?;
//! # assert_eq!(&word, b"hello");
//! # Ok(()) }
//! ```
//!
//! - [`Options`] chooses the design of the queue, the depth, and what lies below:
//!   [`Options::driver`] takes your own [`Device`](blockyard::driver::Device).
//! - [`Disk::read_at`] and its like borrow memory and block. [`Disk::read`] and its like own their
//!   buffer and return an [`Io`], which is a future and can also be waited for, with a timeout. A
//!   [`Batch`] begins many at once.
//! - [`Disk::stats`] counts, and [`Disk::shutdown`] drains and reports what failed.
//!
//! Each I/O uses its caller's own memory until it has ended. Direct I/O needs [aligned](Buffer)
//! memory for that; other memory is copied.
//!
//! # Unsafe code
//!
//! Four modules of `parts` have all of it. `ring`: the kernel, or a thread, reads and writes memory
//! whose addresses it got. `map`: lanes and the kernel share mapped memory, to which no Rust
//! reference may exist. `loan`: callers of other threads lend memory. `discards`: no library has a
//! safe call for BLKDISCARD and its like.

mod batch;
mod buffer;
mod disk;
mod driver;
mod error;
mod inbox;
mod io;
mod lane;
mod memory_queue;
mod options;
#[doc(hidden)]
pub mod parts;
mod report;
mod stats;
mod worker;

pub use batch::Batch;
pub use blockyard::bio::{IoPrio, Op, PrioClass};
pub use blockyard::status::Status;
pub use buffer::Buffer;
pub use disk::Disk;
pub use driver::{Bell, Data, Tools};
pub use error::Error;
pub use io::{Act, Io};
pub use options::Options;
pub use parts::device::OpenError;
pub use parts::ring::IoEngine;
pub use parts::shape::MakeElevator;
pub use report::{Failure, Report};
pub use stats::{Count, Stats};

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The example of the workspace's README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct WorkspaceReadme;
