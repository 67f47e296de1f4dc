//! Block translation tables ([`blockyard_btt`]) in files. Linux only.
//!
//! A file is the memory of a BTT, [`Mapped`] or [`Unmapped`]. What a fence makes durable is chosen: nothing, for
//! what is to survive its process only; cache lines, for persistent memory; the file, for a disk
//! ([`Durability`]). An [`Image`] is such a file with what it is: a namespace of Linux, or a pool of libpmemblk.
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
//! # What there is
//!
//! - [`image`]: files, and how they are told apart. [`pool`]: the header of a pool; `unlaid`:
//!   pools that nobody wrote yet.
//! - [`memory`]: the memory of an image, [`mapped`] or [`unmapped`]. `group`: fences of many threads joined.
//!   `lines`: copying and cache lines. All `unsafe` code is in `mapped` and `lines`.

mod durability;
mod error;
mod file;
mod group;
pub mod image;
mod lines;
pub mod mapped;
pub mod memory;
pub mod pool;
mod unlaid;
pub mod unmapped;

pub use durability::Durability;
pub use error::ImageError;
pub use image::{Image, ImageOptions, NewImage};
pub use lines::Copying;
pub use mapped::Mapped;
pub use memory::ImageMemory;
pub use unmapped::Unmapped;
