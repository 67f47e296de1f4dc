//! The limits on traces ([bounded-trace-memory]).

/// The maximum length of a line of a trace, in bytes.
pub const LINE_BYTES_MAX: usize = 4096;
/// The maximum number of places by which an entry may be late in its file.
pub(crate) const REORDER_MAX: usize = 4096;
/// The maximum number of I/Os of a trace that wait for their completion.
pub const OPEN_MAX: usize = 65_536;
/// The maximum number of disks in a trace.
pub(crate) const DISKS_MAX: usize = 1024;
/// The maximum number of processes that are replayed with their own think time.
pub(crate) const SUBMITTERS_MAX: usize = 4096;
/// The maximum number of files of one trace, which has one for each processor.
pub(crate) const PARTS_MAX: usize = 4096;
