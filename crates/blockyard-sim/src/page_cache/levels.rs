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

    /// Notes that a page of `disk` became dirty.
    pub(super) fn dirtied(&mut self, disk: QueueId) {
        self.disk(disk).dirty += 1;
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

    /// Whether `disk` has dirty pages.
    pub(crate) fn is_dirty(&self, disk: QueueId) -> bool {
        self.of(disk).dirty > 0
    }

    /// Whether no page of `disk` is under writeback.
    pub(crate) fn is_idle(&self, disk: QueueId) -> bool {
        self.of(disk).under_writeback == 0
    }

    /// Whether the disks together have more dirty pages than the background limit. A writer that
    /// finds so wakes the flusher of its disk.
    pub(crate) fn are_over_background(&self, limits: DirtyLimits) -> bool {
        self.dirty() > limits.background
    }

    /// Whether a flusher of `disk` that runs at `now` writes pages back, whatever their age: all
    /// disks are above the background limit, or `disk` is above its part (`wb_over_bg_thresh`).
    ///
    /// A disk that has written back nothing lately has no part, or an eighth of what is left of
    /// the limit: of 819 MiB with 91 MiB dirty, 91 MiB.
    pub(super) fn is_over_background(
        &mut self,
        disk: QueueId,
        limits: DirtyLimits,
        now: Instant,
    ) -> bool {
        self.age(now);
        let all = self.dirty();
        let of_disk = self.of(disk);
        let left = limits.background.saturating_sub(all);
        let least = if limits.raises_part { left / 8 } else { 0 };
        let part = self.part(of_disk, limits.background).max(least);
        of_disk.dirty > 0 && (all > limits.background || of_disk.dirty > part)
    }

    /// Lets the pages that were written back before `now` count less. The last one does not fade
    /// (`fprop_new_period`), so a disk alone keeps its part however long it is quiet.
    fn age(&mut self, now: Instant) {
        while now >= self.halved + HALF_LIFE {
            self.halved = self.halved + HALF_LIFE;
            if self.completed() > 1 {
                self.disks.iter_mut().for_each(|of_disk| of_disk.completed /= 2);
            }
        }
    }

    /// Returns the level of `disk` at `now`.
    pub(super) fn level(&mut self, disk: QueueId, limits: DirtyLimits, now: Instant) -> Level {
        self.age(now);
        let all = self.all();
        let of_disk = self.of(disk);
        let part = self.part(of_disk, limits.hard);
        Level { all, of_disk: of_disk.dirty + of_disk.under_writeback, part }
    }

    /// Returns the number of pages of all disks that are dirty or under writeback.
    pub(crate) fn all(&self) -> u64 {
        self.disks.iter().map(|of_disk| of_disk.dirty + of_disk.under_writeback).sum()
    }

    /// Returns the number of dirty pages of all disks.
    pub(crate) fn dirty(&self) -> u64 {
        self.disks.iter().map(|of_disk| of_disk.dirty).sum()
    }

    /// Returns the pages of all disks that were written back lately.
    fn completed(&self) -> u64 {
        self.disks.iter().map(|of_disk| of_disk.completed).sum()
    }

    /// Returns the part of `limit` that belongs to a disk, by its part of all writeback. A disk
    /// that has written nothing has none.
    fn part(&self, of_disk: OfDisk, limit: u64) -> u64 {
        let all = self.completed().max(1);
        let part = u128::from(limit) * u128::from(of_disk.completed) / u128::from(all);
        debug_assert!(part <= u128::from(limit), "{part} of {limit} pages");
        u64::try_from(part).unwrap_or(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISKS: [QueueId; 2] = [QueueId(0), QueueId(1)];

    fn write_back(levels: &mut Levels, disk: QueueId, pages: u64) {
        (0..pages).for_each(|_| levels.dirtied(disk));
        levels.begun(disk, pages);
        levels.ended(disk, pages);
    }

    fn is_over(levels: &mut Levels, disk: QueueId, raises_part: bool, second: u64) -> bool {
        let limits = DirtyLimits { background: 1000, hard: 2000, raises_part };
        levels.is_over_background(disk, limits, Instant::ZERO + Duration::from_ms(1000 * second))
    }

    /// Of a limit of 1000 pages, a new disk has no part, so that one dirty page is above it. Or it
    /// has an eighth of what is left: 111 of 889, but 112 of 888 are above 111. Neither wakes the
    /// flusher from within a write. When the disk has written a page, the whole limit is its own.
    #[test]
    fn a_new_disk_has_no_part_or_an_eighth_of_what_is_left() {
        let mut levels = Levels::default();
        assert!(!is_over(&mut levels, DISKS[0], false, 0), "nothing is dirty");
        for page in 1..=112 {
            levels.dirtied(DISKS[0]);
            let both = [false, true].map(|raises| is_over(&mut levels, DISKS[0], raises, 0));
            assert_eq!(both, [true, page == 112], "{page} pages");
        }
        assert!(!levels.are_over_background(DirtyLimits {
            background: 112,
            hard: 2000,
            raises_part: false
        }));
        write_back(&mut levels, DISKS[0], 1);
        assert!(!is_over(&mut levels, DISKS[0], false, 0));
        assert!(!is_over(&mut levels, DISKS[0], false, 100), "alone, it keeps the limit");
    }

    /// A disk that wrote 64 pages is quiet while another writes 32 every 3 s. At 3 s it has 32 of
    /// 64 pages, half of the limit, and 300 dirty pages are below that. After the next halves it
    /// has 16 of 64, 250 of 1000 pages.
    #[test]
    fn a_quiet_disk_loses_its_part_to_the_others() {
        let mut levels = Levels::default();
        write_back(&mut levels, DISKS[0], 64);
        (0..300).for_each(|_| levels.dirtied(DISKS[0]));
        let mut found = Vec::new();
        for second in [3, 6] {
            found.push(is_over(&mut levels, DISKS[0], false, second));
            write_back(&mut levels, DISKS[1], 32);
            found.push(is_over(&mut levels, DISKS[0], false, second));
        }
        assert_eq!(found, [false, false, false, true]);
    }
}
