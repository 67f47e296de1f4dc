//! The time at which a worker gets its processor in a design: `worker`.

/// When a worker that is woken to run a hardware queue gets the processor of a thread that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerTurn {
    /// When the call of that thread returns, as up to Linux 6.5.
    AtOnce,
    /// Then if it has had less than its share, or else when that thread sleeps or has used its
    /// slice, as since Linux 6.6.
    ByLag,
}
