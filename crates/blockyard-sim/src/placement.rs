//! The place of a job's file on the disks of a device.
//!
//! [`simulate`](crate::simulate) decides each [`Placement`] once. Tasks and the page cache use it
//! to find the place of an offset of the file.

use blockyard::unit::QueueId;

/// The place of one file of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The request queue of its disk.
    pub queue: QueueId,
    /// The first byte of the file on the disk.
    pub(crate) base_bytes: u64,
    /// The length of the file in bytes. Read-ahead stops at the end of the file.
    pub len_bytes: u64,
}
