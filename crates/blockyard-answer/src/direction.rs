//! The directions of a job: syncs, reads, writes and trims.

use blockyard_fio::job::Op;

/// A kind of call that a job waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// `fsync` and `fdatasync`; under `sync=`, each write.
    Sync,
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Trims.
    Trim,
}

impl Direction {
    /// All of them, in the order of an answer: a job that syncs waits for its syncs first of all.
    pub const ALL: [Self; 4] = [Self::Sync, Self::Read, Self::Write, Self::Trim];

    /// The name that goals, tables and sentences use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Read => Op::Read.name(),
            Self::Write => Op::Write.name(),
            Self::Trim => Op::Trim.name(),
        }
    }
}
