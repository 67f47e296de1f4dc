//! The place of a job's file on the disks of a device.
//!
//! A [`Placement`] is decided once, by [`simulate`](crate::simulate). Tasks and the page cache read from
//! it where an offset of the file lies.

use blockyard::unit::QueueId;

/// The place of a file of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The request queue of its disk.
    pub queue: QueueId,
    /// First byte of the file on the disk.
    pub base_bytes: u64,
    /// Length of the file in bytes; read-ahead stops at its end.
    pub len_bytes: u64,
}
