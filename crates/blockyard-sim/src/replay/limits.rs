//! Bounds on traces and replays ([bounded-trace-memory]).

/// The longest line of a trace, bytes.
pub const LINE_BYTES_MAX: usize = 4096;
/// How many places too late an entry may stand in a file.
pub const REORDER_MAX: usize = 4096;
/// The most I/Os of a trace that may wait for their completion.
pub const OPEN_MAX: usize = 65_536;
/// The most disks in a trace.
pub const DISKS_MAX: usize = 1024;
/// The most processes of a trace that are replayed with their own think time.
pub const SUBMITTERS_MAX: usize = 4096;
/// The most I/Os that a replay has outstanding, over all its tasks.
pub const OUTSTANDING_MAX: u32 = 1 << 14;
/// The most records that tasks have been handed and have not submitted.
pub const BACKLOG_MAX: usize = 1 << 20;
/// The most files of one trace: one for each processor.
pub const PARTS_MAX: usize = 4096;
