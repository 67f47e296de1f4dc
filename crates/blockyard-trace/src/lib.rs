//! Recorded block I/O, in and out.
//!
//! ```text
//! file ─► sniff ─► format::* ─► order ─► plugs ─► completions ─► Record
//! ```
//!
//! A [`Trace`] is read at least twice: once when it is opened, so that every fault is reported
//! before anything uses it, and once for each use. [`observe`] is the interface to an observer of
//! running queues, and [`output`] has observers that write traces for other tools.
//!
//! # Rules
//!
//! - **[bad-trace-is-an-error]** Any bytes give records or a [`TraceError`], never a panic.
//! - **[bounded-trace-memory]** Reading a trace takes memory that does not grow with the length of
//!   the trace. The constants of this crate bound it.
//! - **[records-in-time-order]** Records come in the order of time. An entry that stands up to
//!   `REORDER_MAX` places too late is put in order and counted; a later entry is an error.
//!
//! An error names the file and the line (or the byte, in a binary file), and what was expected
//! there. A number that can only be in the wrong unit is an error. A number that looks wrong but
//! may be right is a warning.

mod completions;
mod disks;
mod error;
mod format;
mod limits;
mod lines;
pub mod observe;
mod order;
pub mod output;
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
pub use plugs::CALL_SPAN_MAX;
pub use reader::Reader;
pub use record::Record;
pub use source::Source;
pub use summary::{DiskSummary, Summary, Warning};
pub use trace::Trace;
pub use trace_format::Format;

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
