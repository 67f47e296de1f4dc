//! The trait of all formats.

use super::file::OutputError;
use super::record::{LaneId, Record};
use crate::observe::{Setting, TaskId};

/// A format. It receives the records in order, on the recorder's thread.
pub(super) trait Output: Send {
    /// Begins a world, and ends the one before it.
    fn world(&mut self, setting: &Setting) -> Result<(), OutputError>;

    /// Gives the name of a task of this world.
    fn task(&mut self, task: TaskId, name: &str) -> Result<(), OutputError>;

    /// Takes more records of `lane`.
    fn records(&mut self, lane: LaneId, records: &[Record]) -> Result<(), OutputError>;

    /// Ends the trace: all of it reaches the file.
    fn finish(&mut self) -> Result<(), OutputError>;
}
