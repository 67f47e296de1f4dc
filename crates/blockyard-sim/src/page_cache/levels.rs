//! The numbers of dirty pages and of pages under writeback, by disk.

use super::limits::DirtyLimits;
use super::pace::Level;
use blockyard::time::{Duration, Instant};
use blockyard::unit::QueueId;

/// The time after which a disk's part of all writeback counts half (`VM_COMPLETIONS_PERIOD_LEN`).
const HALF_LIFE: Duration = Duration::from_ms(3000);

/// The pages of one disk.
#[derive(Clone, Copy, Debug, Default)]
struct OfDisk {
    dirty: u64,
    under_writeback: u64,
    /// The dirty pages that leave the cache when they are on the disk.
    transient: u64,
    /// When it was last without dirty pages.
    since: Instant,
    /// The pages that were written back, of which older ones count less.
    completed: u64,
}

/// The pages of all disks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Levels {
    disks: Vec<OfDisk>,
    /// When [`OfDisk::completed`] is next halved.
    halved: Instant,
}

impl Levels {
    fn disk(&mut self, disk: QueueId) -> &mut OfDisk {
        if disk.index() >= self.disks.len() {
            self.disks.resize(disk.index() + 1, OfDisk::default());
        }
        &mut self.disks[disk.index()]
    }

    fn of(&self, disk: QueueId) -> OfDisk {
        self.disks.get(disk.index()).copied().unwrap_or_default()
    }

    /// Notes that a page of `disk` became dirty at `now`.
    pub(super) fn dirtied(&mut self, disk: QueueId, now: Instant) {
        let of_disk = self.disk(disk);
        if of_disk.dirty == 0 {
            of_disk.since = now;
        }
        of_disk.dirty += 1;
    }

    /// Notes that a dirty page of `disk` is transient.
    pub(super) fn transient_dirtied(&mut self, disk: QueueId) {
        self.disk(disk).transient += 1;
    }

    /// Notes that so many dirty pages of `disk` are no longer both dirty and transient.
    pub(super) fn transient_left(&mut self, disk: QueueId, pages: u64) {
        let of_disk = self.disk(disk);
        debug_assert!(of_disk.transient >= pages, "{pages} pages of {of_disk:?}");
        of_disk.transient -= pages;
    }

    /// Returns the number of transient pages of `disk` that are dirty.
    pub(crate) fn transient(&self, disk: QueueId) -> u64 {
        self.of(disk).transient
    }

    /// Notes that the writeback of so many pages of `disk` begins.
    pub(super) fn begun(&mut self, disk: QueueId, pages: u64) {
        let of_disk = self.disk(disk);
        debug_assert!(of_disk.dirty >= pages, "{pages} pages of {of_disk:?}");
        of_disk.dirty -= pages;
        of_disk.under_writeback += pages;
    }

    /// Notes that the writeback of so many pages of `disk` has ended.
    pub(super) fn ended(&mut self, disk: QueueId, pages: u64) {
        let of_disk = self.disk(disk);
        debug_assert!(of_disk.under_writeback >= pages, "{pages} pages of {of_disk:?}");
        of_disk.under_writeback -= pages;
        of_disk.completed += pages;
    }

    /// Returns since when `disk` has had dirty pages, if it has any.
    pub(crate) fn dirty_since(&self, disk: QueueId) -> Option<Instant> {
        let of_disk = self.of(disk);
        (of_disk.dirty > 0).then_some(of_disk.since)
    }

    /// Whether no page of `disk` is under writeback.
    pub(crate) fn is_idle(&self, disk: QueueId) -> bool {
        self.of(disk).under_writeback == 0
    }

    /// Whether a flusher writes pages of `disk` back, whatever their age.
    pub(crate) fn is_over_background(&self, disk: QueueId, limits: DirtyLimits) -> bool {
        let all: u64 = self.disks.iter().map(|of_disk| of_disk.dirty).sum();
        let of_disk = self.of(disk);
        let part = self.part(of_disk, limits.background);
        let is_over_part = of_disk.completed > 0 && of_disk.dirty > part;
        of_disk.dirty > 0 && (all > limits.background || is_over_part)
    }

    /// Returns the level of `disk` at `now`.
    pub(crate) fn level(&mut self, disk: QueueId, limits: DirtyLimits, now: Instant) -> Level {
        while now >= self.halved + HALF_LIFE {
            self.halved = self.halved + HALF_LIFE;
            self.disks.iter_mut().for_each(|of_disk| of_disk.completed /= 2);
        }
        let all = self.all();
        let of_disk = self.of(disk);
        let part = self.part(of_disk, limits.hard);
        Level { all, of_disk: of_disk.dirty + of_disk.under_writeback, part }
    }

    /// Returns the number of pages of all disks that are dirty or under writeback.
    pub(crate) fn all(&self) -> u64 {
        self.disks.iter().map(|of_disk| of_disk.dirty + of_disk.under_writeback).sum()
    }

    /// Returns the part of `limit` that belongs to a disk, by its part of all writeback. A disk
    /// that has written nothing has none.
    fn part(&self, of_disk: OfDisk, limit: u64) -> u64 {
        let all: u64 = self.disks.iter().map(|of_disk| of_disk.completed).sum();
        let part = u128::from(limit) * u128::from(of_disk.completed) / u128::from(all.max(1));
        u64::try_from(part).unwrap_or(limit)
    }
}
