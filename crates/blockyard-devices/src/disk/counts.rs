//! The counters of a disk.

use crate::load::{Work, WorkTimes};
use crate::medium::MediumCounts;
use blockyard::time::Duration;

/// Counts of a disk, and the times of its arm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Movements of the arm to another cylinder.
    pub(super) seeks: u64,
    /// The time of seeks and switches of heads.
    pub(super) seek: Duration,
    /// The time for which a head waited on its track for a sector.
    pub(super) rotation: Duration,
    /// The time for which sectors passed the head of a command or of a write that had been
    /// acknowledged.
    pub(super) transfer: Duration,
    /// The time for which something passed the head that a command waited for: `transfer`, reading
    /// ahead before it, and the switches of heads in between.
    pub(super) passing: Duration,
    /// Reads that the cache answered.
    pub(super) cached_reads: u64,
    /// Writes that were acknowledged from the cache.
    pub(super) cached_writes: u64,
    /// Pieces that went from the cache to the platters.
    pub(super) destages: u64,
    /// Commands that went next because they had waited for too long.
    pub(super) overdue: u64,
}

impl Counts {
    /// Adds one movement of the arm.
    pub(super) fn moved(&mut self, to_other_cylinder: bool, seek: Duration, wait: Duration) {
        self.seeks += u64::from(to_other_cylinder);
        self.seek += seek;
        self.rotation += wait;
    }

    /// Returns the counts by their names in answers.
    pub(super) fn named(&self) -> MediumCounts {
        vec![
            ("seeks", self.seeks),
            ("seek_ns", self.seek.as_ns()),
            ("rotation_ns", self.rotation.as_ns()),
            ("transfer_ns", self.transfer.as_ns()),
            ("cached_reads", self.cached_reads),
            ("cached_writes", self.cached_writes),
            ("destages", self.destages),
            ("overdue", self.overdue),
        ]
    }

    /// What the head was occupied with.
    pub(super) fn work(&self) -> WorkTimes {
        let mut work = WorkTimes::NONE;
        work.add(Work::Seeks, self.seek);
        work.add(Work::Rotation, self.rotation);
        work.add(Work::Transfer, self.passing);
        work
    }

    /// The time for which the arm was in use.
    pub(super) fn used(&self) -> Duration {
        self.seek + self.rotation + self.transfer
    }
}
