//! Results: [`Status`] is the device's answer to a bio, [`SubmitError`] the queue's refusal.
//!
//! A refused bio was never taken, so it has no status and does not end.

use core::fmt;

/// How a request, and with it each of its bios, ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// All of it was done.
    Ok,
    /// The device failed in a way it does not explain.
    IoError,
    /// The medium could not be read or written there.
    Medium,
    /// The device or the path to it timed out.
    Timeout,
    /// The device is full.
    NoSpace,
    /// The device does not know the operation.
    NotSupported,
    /// The device is gone.
    Gone,
}

/// Why [`submit`](crate::request_queue::RequestQueue::submit) took nothing. The queue is as it was
/// before the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SubmitError {
    /// The range is empty where it must not be, or ends beyond the device.
    OutOfRange,
    /// Start or length is not a multiple of the logical block.
    Misaligned,
    /// The operation is not one this device takes.
    NotSupported,
    /// The processor number is not below the number of processors of the queue.
    NoSuchCpu,
    /// Every tag is in use. Register with
    /// [`wait`](crate::request_queue::RequestQueue::wait) and submit again when woken.
    NoTag,
    /// As much writeback, or as many discards, as
    /// [`Policies::wbt`](crate::policy::Policies::wbt) allows are in flight. Register with
    /// [`wait`](crate::request_queue::RequestQueue::wait) and submit again when woken.
    Throttled,
    /// The queue is [frozen](crate::request_queue::RequestQueue::freeze). Register with
    /// [`wait`](crate::request_queue::RequestQueue::wait) and submit again when woken.
    Frozen,
    /// The queue [drains](crate::request_queue::RequestQueue::drain) and never takes a bio again.
    Draining,
    /// Every tag is in use, writeback is throttled, the queue is frozen, or the bio must be split,
    /// and it said [`nowait`](crate::bio::Flags::NOWAIT).
    WouldBlock,
    /// As many bios as the queue has memory for have not ended yet.
    TooManyBios,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "done",
            Self::IoError => "I/O error",
            Self::Medium => "medium error",
            Self::Timeout => "timed out",
            Self::NoSpace => "no space left on the device",
            Self::NotSupported => "not supported by the device",
            Self::Gone => "device is gone",
        })
    }
}

impl fmt::Display for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OutOfRange => "the range is empty or ends beyond the device",
            Self::Misaligned => "the range is not a multiple of the logical block",
            Self::NotSupported => "the device does not take this operation",
            Self::NoSuchCpu => "no such processor in this queue",
            Self::NoTag => "every tag is in use",
            Self::Throttled => "as much writeback as is allowed is in flight",
            Self::Frozen => "the queue is frozen",
            Self::Draining => "the queue takes no more bios",
            Self::WouldBlock => "it would have to wait, and may not",
            Self::TooManyBios => "too many bios have not ended yet",
        })
    }
}

impl core::error::Error for SubmitError {}
