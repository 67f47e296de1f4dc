//! Traces that other tools read, written while a world runs.
//!
//! ```text
//! World ──────► Recorder ════╗ batches
//! lane 0 ──► LaneRecorder ═══╬═══════════► a thread: perfetto, blktrace ──► files
//! lane 1 ──► LaneRecorder ═══╝ of records
//! ```
//!
//! A [`Recorder`] is an [`Observer`](crate::observe::Observer) that notes what it is told in
//! records of fixed size. A thread of its own turns them into each format asked for, so that
//! the simulation pays for little more than the copy. The order of the records is that of the
//! world, and so are the bytes: the same seed, the same files.
//!
//! A [`LiveRecorder`] does the same for request queues that are driven in real time, by several
//! threads at once: each of these *lanes* has a [`LaneRecorder`], a sink of the core's events. What one
//! lane notes is in the order of time; of two lanes that is not so, and formats keep them apart.
//!
//! - [`perfetto`]: Chrome's trace-event JSON, which <https://ui.perfetto.dev> opens.
//! - [`blktrace`]: what `blktrace` writes, which `blkparse` and `btt` read.

pub mod blktrace;
mod file;
mod json;
mod live;
pub mod perfetto;
mod record;
mod recorder;
mod writer;

pub use file::OutputError;
pub use live::{LaneRecorder, Lanes, LiveRecorder};
pub use recorder::Recorder;

use crate::machine::cpu::TaskId;
use crate::observe::Setting;
use record::{LaneId, Record};
use std::path::PathBuf;

/// Where traces go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// A file of [`perfetto`] JSON.
    pub perfetto: Option<PathBuf>,
    /// The prefix of [`blktrace`] files.
    pub blktrace: Option<PathBuf>,
}

/// A format: receives what a recorder noted, in order, on the recorder's thread.
trait Output: Send {
    /// A world begins; another one may have ended before it.
    fn world(&mut self, setting: &Setting) -> Result<(), OutputError>;

    /// What a task of this world is called.
    fn task(&mut self, task: TaskId, name: &str) -> Result<(), OutputError>;

    /// More has happened in `lane`.
    fn records(&mut self, lane: LaneId, records: &[Record]) -> Result<(), OutputError>;

    /// Nothing more will come: everything is to reach the file.
    fn finish(&mut self) -> Result<(), OutputError>;
}
