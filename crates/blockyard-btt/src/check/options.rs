//! The options of a check, and its progress.

use crate::container::Container;
use crate::info_block::Uuid;

/// The options of a check.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The container of the BTT.
    pub container: Container,
    /// The UUID of the container, if known.
    pub own_uuid: Option<Uuid>,
    /// The most findings of each severity to keep. All findings are counted.
    pub keep: usize,
}

impl Options {
    /// Accepts any parent UUID, and keeps a thousand findings of each severity.
    #[must_use]
    pub const fn new(container: Container) -> Self {
        Self { container, own_uuid: None, keep: 1000 }
    }
}

/// The progress of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The arena, numbered from 0.
    pub arena: usize,
    /// Sectors of the arena that were checked.
    pub done: u32,
    /// Sectors of the arena.
    pub of: u32,
}

impl Progress {
    /// Sectors between two calls.
    pub(super) const STEP: u32 = 1 << 14;
}
