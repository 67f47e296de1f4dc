//! The limits on replays ([bounded-trace-memory]).

/// The maximum number of I/Os of a trace that are read ahead to find the calls that submitted them.
pub(super) const CALLS_RECORDS_MAX: usize = 4096;
/// The maximum number of outstanding I/Os of a replay, over all its tasks.
pub const OUTSTANDING_MAX: u32 = 1 << 14;
/// The maximum number of records that tasks have received but not submitted.
pub(super) const BACKLOG_MAX: usize = 1 << 20;
