//! The failures of a run: reasons why it ends before its jobs are done.

use super::Standstill;
use crate::task::Violation;
use blockyard::status::{Status, SubmitError};
use blockyard_fio::job::Op;
use blockyard_trace::observe::TaskId;

/// An I/O that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedIo {
    /// The kind of I/O; `None` for a sync.
    pub op: Option<Op>,
    /// Offset in its file, bytes.
    pub offset_bytes: u64,
    /// Length, bytes.
    pub len_bytes: u32,
    /// The error.
    pub status: Status,
}

impl core::fmt::Display for FailedIo {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { op, offset_bytes, len_bytes, status } = self;
        match op {
            Some(op) => {
                write!(f, "a {} of {len_bytes} bytes at {offset_bytes} failed: {status}", op.name())
            }
            None => write!(f, "a sync failed: {status}"),
        }
    }
}

/// The reason why a run ended before its jobs were done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A queue refused a bio for a reason that waiting does not resolve: a bio of a task, or of a
    /// flusher.
    Refused(Option<TaskId>, SubmitError),
    /// An I/O of a job failed.
    Io(TaskId, FailedIo),
    /// A job violated one of its own bounds.
    Bound(TaskId, Violation),
    /// No event is left, because fault rules lost this many completions.
    Lost(u64),
    /// The trace could not be read to its end.
    Trace,
    /// There would be more power cuts than [`POWER_CUTS_MAX`](super::POWER_CUTS_MAX).
    PowerCuts,
    /// So many events passed without the end of an I/O that no I/O is likely to end.
    Endless(Standstill),
    /// Nothing more happens before the end of virtual time, because a pause, a start delay or a
    /// rate reaches beyond it.
    TimeIsOver,
    /// No event is left, and jobs are not done. This is a defect of the design or of Blockyard.
    Stuck(Standstill),
}
