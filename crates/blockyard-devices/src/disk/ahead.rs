//! Reading ahead: the head stays on the course of the disk until other work comes, or until the
//! segment is full.

use super::geometry::Geometry;
use blockyard::time::Instant;

/// A head that reads on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    /// The first sector that it reads.
    pub(super) from: u64,
    /// When that sector begins to pass the head.
    pub(super) since: Instant,
    /// The first sector that it does not read.
    pub(super) limit: u64,
}

impl Ahead {
    /// Returns the first sector that it has not read completely at `now`.
    pub(super) fn reached(&self, geometry: &Geometry, now: Instant) -> u64 {
        debug_assert!(self.from < self.limit, "{self:?} reads nothing");
        match now > self.since {
            true => geometry.passed(self.from, self.limit, now.since(self.since)),
            false => self.from,
        }
    }
}
