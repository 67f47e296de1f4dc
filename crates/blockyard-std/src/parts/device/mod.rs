//! Devices over memory and files, and the depth that lanes share.

pub mod at_once;
pub mod completions;
pub mod extents;
pub mod file;
pub mod limited;
pub mod memory;
mod open;
pub mod overlap;
#[cfg(test)]
mod tests;

pub use open::{How, OpenError};

use crate::parts::job::SECTOR;
use blockyard::limits::Limits;

/// The longest request to a disk in memory, in sectors.
pub const MEMORY_REQUEST_SECTORS: u32 = 1 << 17;
/// The longest read or write of a file or BTT, in sectors; longer ones are split.
pub const FILE_REQUEST_SECTORS: u32 = 1 << 12;
/// The longest discard or zeroing, in sectors; longer ones are split. A file system locks the file
/// meanwhile, and a thread that discards has other disks too.
pub const RANGE_SECTORS_MAX: u32 = 1 << 19;
/// The sectors of a memory disk or BTT that a lane discards or zeroes in one turn: other clients
/// wait meanwhile.
pub const SLICE_SECTORS: u32 = 1 << 13;

/// Returns the limits of a disk of `size_bytes` without a cache, in blocks of `block_bytes` (1 for
/// none), with reads and writes of up to `max_sectors`.
#[must_use]
pub fn limits(size_bytes: u64, block_bytes: u64, max_sectors: u32) -> Limits {
    let block_sectors = (block_bytes / SECTOR).max(1);
    Limits {
        logical_block_sectors: u32::try_from(block_sectors).expect("block size within 32 bits"),
        max_sectors,
        max_discard_sectors: RANGE_SECTORS_MAX,
        max_write_zeroes_sectors: RANGE_SECTORS_MAX,
        write_cache: false,
        fua: false,
        ..Limits::new(size_bytes.div_ceil(SECTOR))
    }
}
