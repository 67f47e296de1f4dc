//! fio job files and command lines, read into typed [`Job`]s.
//!
//! ```text
//! bytes ─► sections of settings (reader) ─► a Job per section (build, option table)
//!                                                └─► checks (check) ─► resolve(device size)
//! ```
//!
//! The format is fio's, learnt from its manual and from what the program does; a corpus in
//! `tests/jobs` is read by both. Where fio goes on with a value it only half understood (`4.5k`
//! as 4 bytes, `10min` as ten microseconds), or would run something that cannot be meant
//! (`size` below `bs`), the reading here is stricter: an error with file and line. What cannot
//! matter to a simulation is accepted with one [`Note`]; what would matter and is not modelled is
//! refused.
//!
//! # Rules
//!
//! - **J1.** Later settings override earlier ones; a `[global]` section holds for the sections
//!   after it.
//! - **J2.** The parser opens no file and reads no variable but through its [`Source`].
//! - **J3.** Any bytes give jobs or a [`JobError`], never a panic; time and memory are bounded by
//!   the constants of this module.
//! - **J4.** An error carries the line of the setting at fault.

mod build;
mod check;
mod effectless;
mod error;
mod logging;
mod model;
mod modelled;
mod option;
mod reader;
mod refused;
mod resolve;
mod source;
mod structured;
mod value;

pub use build::{JobFile, parse_args, parse_bytes, parse_file};
pub use error::{Buffered, Fault, JobError, Note, Place, Remark, ValueFault};
pub use logging::{LogPrefix, Logging};
pub use model::{
    Amount, BlockSizes, ContinueOnError, CpuPolicy, Distribution, Engine, FadviseHint, FileService,
    Job, Mix, Op, Pattern, PerOp, PriorityClass, RandomGenerator, RateProcess, Reporting,
    Sequencer, SyncMode, ThinktimeBlocks, UnifiedReporting, Zone,
};
pub use option::{Effect, OptionDef, options};
pub use resolve::{FileRange, Resolved};
pub use source::{NoSource, Source, SystemSource};

/// Longest job file, bytes.
pub const FILE_BYTES_MAX: usize = 1 << 20;
/// Longest line, bytes, after `${NAME}` has been expanded; fio's own limit.
pub const LINE_BYTES_MAX: usize = 8192;
/// Deepest nesting of includes.
pub const INCLUDE_DEPTH_MAX: usize = 16;
/// Most includes followed in one job file.
pub const INCLUDES_MAX: usize = 64;
/// Most options in one job file, its includes counted.
pub const SETTINGS_MAX: usize = 100_000;
/// Most sections, and most job instances, in one job file.
pub const INSTANCES_MAX: u32 = 4096;
/// Longest I/O, bytes.
pub const BLOCK_BYTES_MAX: u32 = 1 << 30;
/// Greatest `iodepth`.
pub const DEPTH_MAX: u32 = 1 << 20;
/// CPUs are numbered below this.
pub const CPUS_MAX: u64 = 4096;
/// Most files of an instance.
pub const FILES_MAX: u16 = 4096;
