//! The state of a task while the engine is recovered.

use crate::exchange::Failure;

/// What is known of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::block) enum Mark {
    /// Nothing is known.
    None,
    /// The task was done while the engine was recovered ([suspect-tasks-redone]).
    Done,
    /// The task is one of those that failed ([failure-marks-a-task]).
    Failed(Failure),
}
