//! Counters of rare events.

use crate::register::ext_csd::ExceptionEvents;

/// Counters of rare events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events that belonged to no MMC request.
    pub strays: u64,
    /// Starts that the controller refused in interrupt context.
    pub not_now: u64,
    /// Failures of transfers and of other uses of the bus.
    pub failures: u64,
    /// Resets.
    pub resets: u64,
    /// MMC requests of which a response had the exception bit
    /// ([`EXCEPTION_EVENT`](crate::command::status::Status::EXCEPTION_EVENT)). EXT_CSD tells which
    /// exception.
    pub exceptions: u64,
    /// All exceptions that EXT_CSD has reported.
    pub events: ExceptionEvents,
    /// How often background operations were started.
    pub bkops_starts: u64,
    /// How often background operations were interrupted.
    pub bkops_interrupts: u64,
    /// Late write errors of writes that had been reported as done. The writes are lost, and only a
    /// flush reports it, if the card has a cache. This happens only if the controller or DAT0 finds
    /// the end of busy, so that no CMD13 follows each write. See [late-write-error-fails-flush].
    pub lost_writes: u64,
    /// Writes in doubt: they were reported as done, but the card's next response got lost, or may
    /// be about a write that is done again. Flushes fail as for a lost write. See
    /// [doubtful-write-fails-flush].
    pub doubtful_writes: u64,
}
