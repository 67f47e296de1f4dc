//! The I/Os of a trace.

use blockyard::bio::{Flags, Op};
use blockyard::time::{Duration, Instant};

/// One I/O of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The instant of issue, counted from the first record of the trace.
    pub at: Instant,
    /// The time from issue to completion; `None` if the trace does not say.
    pub took: Option<Duration>,
    /// The disk, numbered in order of appearance in the trace.
    pub disk: u16,
    /// The processor that issued the I/O; 0 if the trace does not say.
    pub cpu: u16,
    /// The process that issued the I/O; 0 if the trace does not say.
    pub pid: u32,
    /// The operation.
    pub op: Op,
    /// First byte on its disk, a multiple of 512; 0 for a flush.
    pub offset_bytes: u64,
    /// Length in bytes, a multiple of 512; 0 only for a flush.
    pub len_bytes: u32,
    /// The flags.
    pub flags: Flags,
    /// The same thread submitted the I/O in the same call as its I/O before it, under one plug.
    pub joins: bool,
}

/// An I/O as a parser returns it.
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
    /// As in [`Record`]. No parser sets it.
    pub(super) joins: bool,
}

/// The content of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    /// A bio was submitted: blktrace's `Q`, or the only kind of entry that a format has.
    Queue(Issue),
    /// A request went to the driver: blktrace's `D`.
    Dispatch(Issue),
    /// A range was completed: blktrace's `C`.
    Complete { disk: u16, offset_bytes: u64, len_bytes: u32 },
    /// A bio was passed on to the disk below: blktrace's `A`.
    Remap,
    /// A thread began to hold requests back: blktrace's `P`.
    Plug { pid: u32 },
    /// A thread passed on the requests that it held back: blktrace's `U`.
    Unplug { pid: u32 },
    /// A thread inserted a request into a queue: blktrace's `I`.
    Insert { pid: u32 },
    /// An event that cannot be replayed, such as a command that is not block I/O.
    Other,
}

/// An entry of a trace, with the time of the trace's own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) at_ns: u64,
    pub(super) kind: EntryKind,
}
