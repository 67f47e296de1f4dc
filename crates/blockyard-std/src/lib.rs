//! A disk with the scheduler inside, for threads and futures. Linux only.

#[doc(hidden)]
pub mod parts;

pub use parts::device::OpenError;
