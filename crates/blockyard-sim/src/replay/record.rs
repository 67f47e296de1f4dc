//! What a trace says of one I/O.

use blockyard::bio::{Flags, Op};
use blockyard::time::{Duration, Instant};

/// One I/O of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it was issued, from the first record of the trace.
    pub at: Instant,
    /// From issue to completion; `None` where the trace does not say.
    pub took: Option<Duration>,
    /// Its disk, by order of appearance in the trace.
    pub disk: u16,
    /// The processor that issued it; 0 where the trace does not say.
    pub cpu: u16,
    /// The process that issued it; 0 where the trace does not say.
    pub pid: u32,
    /// What it did.
    pub op: Op,
    /// First byte on its disk; 0 for a flush. A multiple of 512.
    pub offset_bytes: u64,
    /// Bytes; 0 only for a flush. A multiple of 512.
    pub len_bytes: u32,
    /// Its properties.
    pub flags: Flags,
}

/// An I/O as a parser finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Issue {
    pub(super) disk: u16,
    pub(super) cpu: u16,
    pub(super) pid: u32,
    pub(super) op: Op,
    pub(super) offset_bytes: u64,
    pub(super) len_bytes: u32,
    pub(super) flags: Flags,
    pub(super) took: Option<Duration>,
}

/// What a parser finds in a line or a binary record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// An I/O was asked for: blktrace's `Q`, or the only kind of entry that a format has.
    Queue(Issue),
    /// A request went to the driver: blktrace's `D`.
    Dispatch(Issue),
    /// A range was completed: blktrace's `C`.
    Complete { disk: u16, offset_bytes: u64, len_bytes: u32 },
    /// An I/O went on to the disk below: blktrace's `A`.
    Remap,
    /// Something that cannot be replayed, such as a command that is no block I/O.
    Other,
}

/// An entry of a trace, with the trace's own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) at_ns: u64,
    pub(super) what: What,
}
