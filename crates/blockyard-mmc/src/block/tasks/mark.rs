//! Marks of tasks during a recovery of the engine.

use crate::exchange::Failure;

/// The mark of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::block) enum Mark {
    /// Nothing is known.
    None,
    /// The task was done while the engine was recovered ([suspect-tasks-redone]).
    Done,
    /// The task is one of those that failed.
    Failed(Failure),
}
