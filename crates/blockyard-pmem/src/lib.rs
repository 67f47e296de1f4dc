//! Block translation tables ([`blockyard_btt`]) in files. Linux only.
//!
//! A file is the memory of a BTT, [`Mapped`] or [`Unmapped`]. [`Durability`] chooses what a fence
//! makes durable: nothing, if the BTT need only survive its process; cache lines, on persistent
//! memory; or the file, on a disk. An [`Image`] is a file whose kind is known: a namespace of
//! Linux, or a pool of libpmemblk.
//!
//! ```no_run
//! use blockyard_pmem::{Image, ImageOptions, NewImage};
//! use blockyard_btt::Container;
//!
//! let new = NewImage { bytes: 1 << 30, sector_bytes: 4096, container: Container::Namespace };
//! let btt = Image::create("disk.btt".as_ref(), &new, &ImageOptions::default())?;
//! btt.write(7, &[1; 4096])?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Modules
//!
//! - [`image`] recognises, opens and creates files. [`pool`] is the header of a pool, and
//!   [`pool_set`] the list of its parts. `unwritten` handles pools to
//!   which nobody has written yet.
//! - [`memory`] is the memory of an image, [`mapped`] or [`unmapped`]. A mapping of the caller is
//!   the memory of a BTT by [`Mapped::over`]. `parts` are the files of an image, one after another.
//!   `device` reads the size of a device DAX, which can only be mapped. `group` joins the fences of
//!   many threads. `lines` copies bytes and writes cache lines back. All `unsafe` code is in
//!   `mapped`, with its bus errors, and `lines`.

mod claim;
mod device;
mod durability;
mod error;
mod file;
mod group;
pub mod image;
mod lines;
pub mod mapped;
pub mod memory;
mod new_files;
mod parts;
pub mod pool;
pub mod pool_set;
pub mod unmapped;
mod unwritten;

pub use claim::{claim, is_written};
pub use durability::Durability;
pub use error::ImageError;
pub use file::hole;
pub use image::{Image, ImageOptions, NewImage};
pub use lines::Copying;
pub use mapped::Mapped;
pub use memory::ImageMemory;
pub use pool_set::{PoolPart, PoolSet, PoolSetError};
pub use unmapped::Unmapped;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
