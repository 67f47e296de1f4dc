//! A sync of pages: it tags those that are dirty, writes them back in order, waits, and flushes.
//!
//! `sync_file_range` does some of these steps, and never flushes. Linux 6.12: with all its steps it
//! writes as `fsync` does (`WB_SYNC_ALL`). With others nobody may wait for its bios, and it skips
//! pages whose writeback is under way (`WB_SYNC_NONE`).
//!
//! # Rules
//!
//! - **[synced-is-durable]** When a sync returns without an error, what was written to its pages
//!   before it is on the disk, and no volatile cache alone has it. A part of a file that
//!   `sync_file_range` writes may be in such a cache.

use crate::page_cache::{Dirt, Extents, Tid};
use blockyard::bio::Bio;
use blockyard::status::Status;
use blockyard_fio::job::RangeSync;
use core::ops::Range;

/// The next step of a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SyncStep {
    /// Write this page back.
    Write(u64),
    /// Wait until the writeback of this page has ended.
    Await(u64),
    /// Flush the disk.
    Flush,
    /// Return: nothing is left to do.
    Done,
    /// Return this error.
    Fail(Status),
}

/// A sync under way. Pages that are written to after its start are not its own, so it ends however
/// fast others write.
#[derive(Clone, Debug)]
pub(super) struct Sync {
    /// The pages that it is about.
    pages: Range<u64>,
    /// Those of them that it writes: they were dirty at the start.
    tagged: Extents,
    /// The first tagged page that has not been written back.
    at: u64,
    /// Whether it waits for writeback before it writes, and has not written.
    waits_before: bool,
    /// Whether a page that is dirty and under writeback is waited for and written once more.
    pub(super) is_thorough: bool,
    /// Whether it waits for writeback at its end.
    waits_after: bool,
    /// Whether it reports errors of writeback: it waits for some.
    pub(super) reports: bool,
    /// The flush at the end.
    flush: Option<Bio>,
    /// The transaction for whose commit it has asked, and whether the flush of that commit came
    /// after its data.
    pub(super) commit: Option<(Tid, bool)>,
    /// Whether it needs only those changes of the file that its data needs (`fdatasync`).
    pub(super) data_only: bool,
}

impl Sync {
    /// Returns a sync of `pages` with their `dirt`, which ends with `flush`.
    pub(super) fn of(pages: Range<u64>, dirt: &Dirt, flush: Bio) -> Self {
        debug_assert!(pages.start < pages.end, "a sync of no pages");
        Self {
            tagged: dirt.dirty().within(&pages),
            at: pages.start,
            pages,
            waits_before: false,
            is_thorough: true,
            waits_after: true,
            reports: true,
            flush: Some(flush),
            commit: None,
            data_only: false,
        }
    }

    /// Returns the sync as one of data only, or of all changes of the file.
    pub(super) fn of_data(self, data_only: bool) -> Self {
        Self { data_only, ..self }
    }

    /// Returns a `sync_file_range` of `pages`, which may be none, with the steps of `range`.
    pub(super) fn of_range(pages: Range<u64>, dirt: &Dirt, range: RangeSync) -> Self {
        let RangeSync { wait_before, write, wait_after, .. } = range;
        let tagged = if write { dirt.dirty().within(&pages) } else { Extents::default() };
        Self {
            tagged,
            at: pages.start,
            pages,
            waits_before: wait_before,
            is_thorough: wait_before && write && wait_after,
            waits_after: wait_after,
            reports: wait_before || wait_after,
            flush: None,
            commit: None,
            data_only: false,
        }
    }

    /// Returns a sync of all pages of a file with `dirt`. It reports no errors.
    pub(super) fn of_closing(dirt: &Dirt) -> Self {
        Self::of_pages(0..u64::MAX, dirt)
    }

    /// Returns a sync of `pages` of a file with `dirt`, without a flush. It reports no errors.
    pub(super) fn of_pages(pages: Range<u64>, dirt: &Dirt) -> Self {
        Self {
            tagged: dirt.dirty().within(&pages),
            at: pages.start,
            pages,
            waits_before: false,
            is_thorough: true,
            waits_after: true,
            reports: false,
            flush: None,
            commit: None,
            data_only: false,
        }
    }

    /// Returns the flush at the end.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub(super) fn flush(&self) -> Bio {
        self.flush.expect("a sync that flushes should have a flush")
    }

    /// Returns the next step. Of the errors of writeback, `seen` were reported before.
    pub(super) fn next(&self, dirt: &Dirt, seen: u64) -> SyncStep {
        let moving = dirt.under_writeback().first_from(self.pages.start);
        let moving = moving.filter(|page| *page < self.pages.end);
        if let Some(page) = moving.filter(|_| self.waits_before) {
            return SyncStep::Await(page);
        }
        if let Some(page) = self.next_page(dirt) {
            // A page that was written to during its writeback is written once more, afterwards.
            let is_moving = dirt.under_writeback().contains(page);
            return if is_moving { SyncStep::Await(page) } else { SyncStep::Write(page) };
        }
        if let Some(page) = moving.filter(|_| self.waits_after) {
            return SyncStep::Await(page);
        }
        // [synced-is-durable]
        match (dirt.errors(), self.flush) {
            ((count, Some(status)), _) if self.reports && count > seen => SyncStep::Fail(status),
            (_, Some(_)) => SyncStep::Flush,
            (_, None) => SyncStep::Done,
        }
    }

    /// Notes that a bio writes the pages before `end` back.
    pub(super) fn wrote(&mut self, end: u64) {
        debug_assert!(self.at < end && end <= self.pages.end, "{end} is not of {:?}", self.pages);
        self.at = end;
        self.waits_before = false;
    }

    /// Returns the first page behind `page` that is not tagged.
    pub(super) fn end_of_tagged(&self, page: u64) -> u64 {
        self.tagged.end_of(page).unwrap_or(page + 1)
    }

    /// Returns the next page that is tagged and still dirty: another thread may have written it.
    fn next_page(&self, dirt: &Dirt) -> Option<u64> {
        let mut at = self.at;
        loop {
            let tagged = self.tagged.first_from(at)?;
            at = dirt.dirty().first_from(tagged)?;
            if at > tagged {
                continue;
            }
            if self.is_thorough || !dirt.under_writeback().contains(at) {
                return Some(at);
            }
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard::bio::Op;

    fn dirty(pages: impl IntoIterator<Item = u64>) -> Dirt {
        let mut dirt = Dirt::default();
        assert!(pages.into_iter().all(|page| dirt.written(page)), "pages are dirtied once");
        dirt
    }

    fn sync(pages: Range<u64>, dirt: &Dirt) -> Sync {
        Sync::of(pages, dirt, Bio::new(Op::Flush, 0, 0, 0))
    }

    /// Of pages 2, 5 and 9, a sync of pages 0 to 7 writes two, waits for both, and flushes. Page 3
    /// became dirty too late.
    #[test]
    fn a_sync_writes_what_was_dirty_when_it_began() {
        let mut dirt = dirty([2, 5, 9]);
        let mut sync = sync(0..8, &dirt);
        dirt.written(3);
        for page in [2, 5] {
            assert_eq!(sync.next(&dirt, 0), SyncStep::Write(page));
            dirt.begin(page);
            sync.wrote(page + 1);
        }
        for page in [2, 5] {
            assert_eq!(sync.next(&dirt, 0), SyncStep::Await(page));
            dirt.end(page..page + 1, Status::Ok);
        }
        assert_eq!(sync.next(&dirt, 0), SyncStep::Flush);
        assert_eq!(dirt.dirty().pages(), 2);
    }

    fn of_range(dirt: &Dirt, [wait_before, write, wait_after]: [bool; 3]) -> Sync {
        Sync::of_range(0..8, dirt, RangeSync { every: 1, wait_before, write, wait_after })
    }

    /// Another thread writes page 1 back, and page 1 is dirty again. A call that only writes skips
    /// it, writes page 2, and returns. One that waits first waits for page 1 alone, not for its own
    /// page 2. One with all steps writes both, and then waits.
    #[test]
    fn a_sync_of_a_range_does_its_steps_and_no_others() {
        let mut dirt = dirty([1, 2]);
        dirt.begin(1);
        dirt.written(1);
        let mut writes = of_range(&dirt, [false, true, false]);
        let mut waits_first = of_range(&dirt, [true, true, false]);
        let mut all = of_range(&dirt, [true, true, true]);
        let mut waits = of_range(&dirt, [false, false, true]);
        assert_eq!(writes.next(&dirt, 0), SyncStep::Write(2));
        writes.wrote(3);
        assert_eq!(writes.next(&dirt, 0), SyncStep::Done);
        for sync in [&mut waits_first, &mut all, &mut waits] {
            assert_eq!(sync.next(&dirt, 0), SyncStep::Await(1));
        }
        dirt.end(1..2, Status::Medium);
        assert_eq!(waits.next(&dirt, 0), SyncStep::Fail(Status::Medium));
        assert_eq!(waits.next(&dirt, 1), SyncStep::Done);
        for sync in [&mut waits_first, &mut all] {
            assert_eq!(sync.next(&dirt, 1), SyncStep::Write(1));
            sync.wrote(2);
            assert_eq!(sync.next(&dirt, 1), SyncStep::Write(2));
            sync.wrote(3);
        }
        [1, 2].into_iter().for_each(|page| dirt.begin(page));
        assert_eq!(waits_first.next(&dirt, 1), SyncStep::Done);
        assert_eq!(all.next(&dirt, 1), SyncStep::Await(1));
        dirt.end(1..3, Status::Ok);
        assert_eq!(all.next(&dirt, 1), SyncStep::Done);
    }

    /// Another thread has begun to write page 1 back, and it is dirty again; it has also begun page
    /// 2, which is not.
    #[test]
    fn a_sync_waits_for_the_writeback_of_others() {
        let mut dirt = dirty([1, 2]);
        let sync = sync(0..8, &dirt);
        [1, 2].into_iter().for_each(|page| dirt.begin(page));
        dirt.written(1);
        assert_eq!(sync.next(&dirt, 0), SyncStep::Await(1));
        dirt.end(1..2, Status::Ok);
        assert_eq!(sync.next(&dirt, 0), SyncStep::Write(1));
        dirt.begin(1);
        dirt.end(1..2, Status::Ok);
        assert_eq!(sync.next(&dirt, 0), SyncStep::Await(2));
        dirt.end(2..3, Status::Medium);
        assert_eq!(sync.next(&dirt, 0), SyncStep::Fail(Status::Medium));
        assert_eq!(sync.next(&dirt, 1), SyncStep::Flush, "the error was reported before");
    }
}
