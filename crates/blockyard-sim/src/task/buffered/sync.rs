//! A sync of pages: it tags those that are dirty, writes them back in order, waits, and flushes.

use crate::page_cache::{Dirt, Extents};
use blockyard::bio::Bio;
use blockyard::status::Status;
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
    /// Return this error.
    Fail(Status),
}

/// A sync under way. Pages that are written to after its start are not its own, so it ends however
/// fast others write.
#[derive(Clone, Debug)]
pub(super) struct Sync {
    /// The pages that must be on the disk.
    pages: Range<u64>,
    /// Those of them that were dirty at the start.
    tagged: Extents,
    /// The first tagged page that has not been written back.
    at: u64,
    /// The flush at the end.
    pub(super) flush: Bio,
}

impl Sync {
    /// Returns a sync of `pages` with their `dirt`, which ends with `flush`.
    pub(super) fn of(pages: Range<u64>, dirt: &Dirt, flush: Bio) -> Self {
        debug_assert!(pages.start < pages.end, "a sync of no pages");
        Self { tagged: dirt.dirty().within(&pages), at: pages.start, pages, flush }
    }

    /// Returns the next step. Of the errors of writeback, `seen` were reported before.
    pub(super) fn next(&self, dirt: &Dirt, seen: u64) -> SyncStep {
        if let Some(page) = self.next_page(dirt) {
            // A page that was written to during its writeback is written once more, afterwards.
            let is_moving = dirt.under_writeback().contains(page);
            return if is_moving { SyncStep::Await(page) } else { SyncStep::Write(page) };
        }
        let moving = dirt.under_writeback().first_from(self.pages.start);
        if let Some(page) = moving.filter(|page| *page < self.pages.end) {
            return SyncStep::Await(page);
        }
        match dirt.errors() {
            (count, Some(status)) if count > seen => SyncStep::Fail(status),
            _ => SyncStep::Flush,
        }
    }

    /// Notes that a bio writes `page` back.
    pub(super) fn wrote(&mut self, page: u64) {
        debug_assert!(self.pages.contains(&page), "page {page} is not of {:?}", self.pages);
        self.at = page + 1;
    }

    /// Returns the next page that is tagged and still dirty: another thread may have written it.
    fn next_page(&self, dirt: &Dirt) -> Option<u64> {
        let mut at = self.at;
        loop {
            let tagged = self.tagged.first_from(at)?;
            at = dirt.dirty().first_from(tagged)?;
            if at == tagged {
                return Some(at);
            }
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
            sync.wrote(page);
        }
        for page in [2, 5] {
            assert_eq!(sync.next(&dirt, 0), SyncStep::Await(page));
            dirt.end(page..page + 1, Status::Ok);
        }
        assert_eq!(sync.next(&dirt, 0), SyncStep::Flush);
        assert_eq!(dirt.dirty().pages(), 2);
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
