//! The block layer as a library.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod bio;
pub mod device;
pub mod driver;
pub mod elevator;
pub mod end_index;
pub mod hardware_queue;
pub mod host;
pub mod limits;
pub mod merge;
mod plug;
pub mod policy;
pub mod request;
pub mod request_queue;
pub mod sector_hash;
pub mod software_queue;
pub mod stats;
pub mod status;
pub mod tag;
pub mod time;
pub mod trace;
pub mod unit;
