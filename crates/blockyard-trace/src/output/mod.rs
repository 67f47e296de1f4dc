//! Traces for other tools, written while a world runs.
//!
//! ```text
//! World ──────► Recorder ════╗ batches
//! lane 0 ──► LaneRecorder ═══╬═══════════► a thread: perfetto, blktrace ──► files
//! lane 1 ──► LaneRecorder ═══╝ of records
//! ```
//!
//! A [`Recorder`] is an [`Observer`](crate::observe::Observer) that stores what it sees in records
//! of fixed size. A separate thread formats them, so that the simulation pays for little more than
//! the copy. The records have the order of the world, so the same seed gives the same files.
//!
//! A [`LiveRecorder`] does the same for request queues that several threads drive in real time. Each
//! of these *lanes* has a [`LaneRecorder`], a sink of the core's events. The records of one lane are in
//! the order of time; those of two lanes are not, so the formats keep the lanes apart.
//!
//! - [`perfetto`]: Chrome's trace-event JSON, which <https://ui.perfetto.dev> opens.
//! - [`blktrace`]: blktrace's binary files, which `blkparse` and `btt` read.

pub mod blktrace;
mod file;
mod files;
mod format;
mod json;
mod live;
pub mod perfetto;
mod record;
mod recorder;
mod writer;

pub use file::OutputError;
pub use files::Files;
pub use live::{LaneRecorder, Lanes, LiveRecorder};
pub use recorder::Recorder;
