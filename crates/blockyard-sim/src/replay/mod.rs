//! Recorded I/O, read from traces and asked for again in virtual time.
//!
//! ```text
//! file ─► sniff ─► format::* ─► order ─► completions ─► Record ─► Player ─► tasks
//! ```
//!
//! A [`Trace`] is read twice or more: once when it is opened, so that everything wrong with it is
//! told before anything runs, and once for each simulation. [`Replay`] adds how it is to be paced
//! and where it lies on a device; [`Player`] hands its records to the tasks of a world.
//!
//! # Rules
//!
//! - **P1.** Any bytes give records or a [`TraceError`], never a panic; the memory needed does not
//!   grow with the length of a trace but is bounded by the constants of this module.
//! - **P2.** An error names the file and the line, or the byte where there are no lines, and what
//!   was expected there.
//! - **P3.** Records come in the order of time. What stands in a file up to [`REORDER_MAX`] places
//!   too late is put in order and counted; what stands later than that is an error.
//! - **P4.** A number that can only be in the wrong unit is an error. One that may be right and
//!   looks wrong is a warning.

mod completions;
mod disks;
mod error;
mod format;
mod lines;
mod order;
mod plan;
mod player;
mod reader;
mod record;
mod sniff;
mod source;
mod summary;
mod trace;

pub use error::{Place, Position, TraceError, TraceFault};
pub use plan::{Map, Options, Pace, Replay, ReplayError, Speed};
pub use player::{Delivery, Due, Player};
pub use reader::Reader;
pub use record::Record;
pub use sniff::Format;
pub use source::Source;
pub use summary::{DiskSummary, Summary, Warning};
pub use trace::Trace;

/// Longest line of a trace, bytes.
pub const LINE_BYTES_MAX: usize = 4096;
/// How many entries later than its time an entry may stand in a file.
pub const REORDER_MAX: usize = 4096;
/// Most I/Os of a trace that wait for their completion to be read.
pub const OPEN_MAX: usize = 65_536;
/// Most disks in a trace.
pub const DISKS_MAX: usize = 1024;
/// Most processes of a trace that are replayed each in its own time.
pub const SUBMITTERS_MAX: usize = 4096;
/// Most I/Os that a replay has outstanding, over all its tasks.
pub const OUTSTANDING_MAX: u32 = 1 << 14;
/// Most records handed to tasks and not submitted yet.
pub const BACKLOG_MAX: usize = 1 << 20;
/// Most files of one trace: one for each processor.
pub const PARTS_MAX: usize = 4096;
