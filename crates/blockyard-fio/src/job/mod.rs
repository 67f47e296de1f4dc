//! fio job files and command lines, read into typed [`Job`]s.
//!
//! ```text
//! bytes ─► sections of settings (reader) ─► one Job per section (build, table of options)
//!                                                └─► checks (check) ─► resolve(device size)
//! ```
//!
//! The format is fio's, learnt from its manual and from the program's behaviour. Both fio and this
//! module read the corpus in `tests/jobs`. This module is stricter than fio in two cases. It
//! refuses a value that fio understands only in part (`4.5k` as 4 bytes, `10min` as ten
//! microseconds), and a job that makes no sense (`size` below `bs`). Both errors name the file and
//! the line. An option that cannot matter to a simulation is accepted with one [`Note`]. An option
//! that would matter but is not modelled is refused.
//!
//! A later setting overrides an earlier one, except that files add up, and that `bs` yields to
//! `bsrange` and `bssplit`. A `[global]` section applies to the sections after it.
//!
//! # Rules
//!
//! - **[input-through-source]** The parser opens no file and reads no variable except through its
//!   [`Source`].
//! - **[any-bytes-are-safe]** Any bytes give jobs or a [`JobError`], never a panic. The constants
//!   of this module bound time and memory.
//! - **[error-names-line]** An error carries the line of the setting at fault.

mod blocks;
mod build;
mod cgroup;
mod check;
mod effectless;
mod engines;
mod error;
mod expand;
mod instead;
mod limits;
mod logging;
mod model;
mod modelled;
mod op;
mod option;
mod priority;
mod reader;
mod refused;
mod resolve;
mod source;
mod structured;
mod table;
mod targets;
mod units;
mod value;

pub use blocks::BlockSizes;
pub use build::{Input, JobFile, parse, parse_args, parse_bytes, parse_file};
pub use cgroup::{Cgroup, cgroups};
pub use error::{Buffered, Fault, JobError, Note, Place, Remark, ValueFault};
pub use instead::size_hint;
pub use limits::{
    BLOCK_BYTES_MAX, CGROUPS_MAX, CPUS_MAX, DEPTH_MAX, FILE_BYTES_MAX, FILES_MAX,
    INCLUDE_DEPTH_MAX, INCLUDES_MAX, INSTANCES_MAX, LINE_BYTES_MAX, MAPPED_BLOCKS_MAX,
    SETTINGS_MAX,
};
pub use logging::{LogPrefix, Logging};
pub use model::{
    ContinueOnError, CpuPolicy, Distribution, Engine, ExitWhat, FadviseHint, Fallocate,
    FileService, Flow, Job, Mix, Pattern, RandomGenerator, RangeSync, RateProcess, Reporting,
    Sequencer, Strides, SyncMode, ThinktimeBlocks, UnifiedReporting, Zone,
};
pub use op::{Op, PerOp};
pub use option::{Effect, OptionDef};
pub use priority::encoded;
pub use priority::{CommandPriority, Priority, PriorityClass, PriorityShare};
pub use reader::option_word;
pub use resolve::{FileRange, Resolved};
pub use source::{NoSource, Source, SystemSource};
pub use table::{find, options};
pub use targets::{Bounds, LatencyTarget, Steady, SteadyCriterion, SteadyState, Targets};
pub(crate) use units::{Units, Visits};
pub use value::Amount;
