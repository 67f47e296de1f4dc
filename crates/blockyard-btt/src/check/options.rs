//! What a check is asked for, and what it says while it works.

use crate::container::Container;
use crate::info_block::Uuid;

/// What is checked.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What the BTT lies in.
    pub container: Container,
    /// The container's UUID, where it is known.
    pub own_uuid: Option<Uuid>,
    /// Most findings of each severity that are remembered; all are counted.
    pub keep: usize,
}

impl Options {
    /// For a BTT of anybody's, remembering a thousand findings of each severity.
    #[must_use]
    pub const fn new(container: Container) -> Self {
        Self { container, own_uuid: None, keep: 1000 }
    }
}

/// How far a check is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The arena, by number from 0.
    pub arena: usize,
    /// Its sectors that were looked at.
    pub done: u32,
    /// Its sectors.
    pub of: u32,
}

impl Progress {
    /// Sectors between two calls.
    pub(super) const STEP: u32 = 1 << 14;
}
