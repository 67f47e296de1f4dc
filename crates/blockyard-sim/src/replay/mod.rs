//! Recorded I/O: reads traces and issues their I/Os again in virtual time.
//!
//! ```text
//! file ─► sniff ─► format::* ─► order ─► plugs ─► completions ─► Record ─► Player (calls) ─► tasks
//! ```
//!
//! A [`Trace`] is read at least twice: once when it is opened, so that every fault is reported
//! before anything runs, and once for each simulation. [`Replay`] adds the pace and the place on a
//! device; [`Player`] hands the records to the tasks of a world. What a thread submitted under one
//! plug is submitted by one call again.
//!
//! # Rules
//!
//! - **[bad-trace-is-an-error]** Any bytes give records or a [`TraceError`], never a panic.
//! - **[bounded-trace-memory]** Reading a trace takes memory that does not grow with the length of
//!   the trace. The constants of this module bound it.
//! - **[trace-error-names-its-place]** An error names the file and the line (or the byte, in a binary
//!   file), and what was expected there.
//! - **[records-in-time-order]** Records come in the order of time. An entry that stands up to
//!   [`REORDER_MAX`] places too late is put in order and counted; a later entry is an error.
//! - **[wrong-unit-is-refused]** A number that can only be in the wrong unit is an error. A number
//!   that looks wrong but may be right is a warning.

mod calls;
mod completions;
mod disks;
mod error;
mod format;
mod limits;
mod lines;
mod options;
mod order;
mod placing;
mod plan;
mod player;
mod plugs;
mod reader;
mod record;
mod sniff;
mod source;
mod summary;
mod trace;
mod trace_format;

pub use error::{Place, Position, TraceError, TraceFault};
pub use limits::*;
pub use options::{Map, Options, Pace, Speed};
pub use plan::{Replay, ReplayError};
pub use player::{Delivery, Due, Player};
pub use reader::Reader;
pub use record::Record;
pub use source::Source;
pub use summary::{DiskSummary, Summary, Warning};
pub use trace::Trace;
pub use trace_format::Format;
