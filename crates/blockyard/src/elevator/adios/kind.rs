//! The kinds of requests, each with a model, a target latency and a limit of its own.

use crate::bio::Op;

/// The number of kinds.
pub(super) const KINDS: usize = 4;

/// A kind of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    Discard,
    Other,
}

impl Kind {
    /// Returns the kind of requests with this `op`.
    pub(super) const fn of(op: Op) -> Self {
        match op {
            Op::Read => Self::Read,
            Op::Write => Self::Write,
            Op::Discard => Self::Discard,
            _ => Self::Other,
        }
    }

    pub(super) const fn index(self) -> usize {
        self as usize
    }
}
