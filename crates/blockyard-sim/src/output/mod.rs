//! Traces that other tools read, written while a world runs.
//!
//! ```text
//! World ──► Recorder ══ batches of records ══► a thread: perfetto, blktrace ──► files
//! ```
//!
//! A [`Recorder`] is an [`Observer`](crate::observe::Observer) that notes what it is told in
//! records of fixed size. A thread of its own turns them into each format asked for, so that
//! the simulation pays for little more than the copy. The order of the records is that of the
//! world, and so are the bytes: the same seed, the same files.
//!
//! - [`perfetto`]: Chrome's trace-event JSON, which <https://ui.perfetto.dev> opens.
//! - [`blktrace`]: what `blktrace` writes, which `blkparse` and `btt` read.

pub mod blktrace;
mod file;
mod json;
pub mod perfetto;
mod record;
mod recorder;

pub use file::OutputError;
pub use recorder::{Files, Recorder};

use crate::machine::cpu::TaskId;
use crate::observe::Setting;
use record::Record;

/// A format: receives what a recorder noted, in order, on the recorder's thread.
trait Output: Send {
    /// A world begins; another one may have ended before it.
    fn world(&mut self, setting: &Setting) -> Result<(), OutputError>;

    /// What a task of this world is called.
    fn task(&mut self, task: TaskId, name: &str) -> Result<(), OutputError>;

    /// More has happened.
    fn records(&mut self, records: &[Record]) -> Result<(), OutputError>;

    /// Nothing more will come: everything is to reach the file.
    fn finish(&mut self) -> Result<(), OutputError>;
}
