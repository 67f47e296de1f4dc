//! The pages of one file whose data is newer than that on the disk.
//!
//! ```text
//! clean ─ written ─► dirty ─ a bio begins ─► under writeback ─ the bio ends ─► clean
//!                      ▲                           │ written again
//!                      └───────────────────────────┴─► dirty and under writeback
//! ```

use super::extents::Extents;
use blockyard::status::Status;
use core::ops::Range;

/// The dirty pages of a file, those under writeback, and the errors of its writeback.
#[derive(Clone, Debug, Default)]
pub struct Dirt {
    dirty: Extents,
    under_writeback: Extents,
    /// The number of bios of writeback that failed, and the status of the last one.
    errors: (u64, Option<Status>),
}

impl Dirt {
    /// Returns the dirty pages.
    #[must_use]
    pub const fn dirty(&self) -> &Extents {
        &self.dirty
    }

    /// Returns the pages under writeback.
    #[must_use]
    pub(crate) const fn under_writeback(&self) -> &Extents {
        &self.under_writeback
    }

    /// Returns the number of bios of writeback that failed, and the status of the last one.
    #[must_use]
    pub const fn errors(&self) -> (u64, Option<Status>) {
        self.errors
    }

    /// Whether the data of `page` is not known to be on the disk.
    #[must_use]
    pub(crate) fn is_unwritten(&self, page: u64) -> bool {
        self.dirty.contains(page) || self.under_writeback.contains(page)
    }

    /// Whether the data of a page of `pages` is not known to be on the disk.
    pub(crate) fn is_unwritten_in(&self, pages: &Range<u64>) -> bool {
        let firsts = [&self.dirty, &self.under_writeback].map(|set| set.first_from(pages.start));
        firsts.into_iter().flatten().any(|page| page < pages.end)
    }

    /// Notes that `page` was written to. Linux does not wait if it is under writeback: the page is
    /// then dirty again. Returns whether it was not dirty.
    pub fn written(&mut self, page: u64) -> bool {
        self.dirty.insert(page)
    }

    /// Whether all data is known to be on the disk.
    pub(super) const fn is_clean(&self) -> bool {
        !self.is_dirty() && self.is_idle()
    }

    /// Whether any page is dirty.
    pub(crate) const fn is_dirty(&self) -> bool {
        self.dirty.pages() > 0
    }

    /// Whether no page is under writeback.
    pub(crate) const fn is_idle(&self) -> bool {
        self.under_writeback.pages() == 0
    }

    /// Returns the first dirty page from `page` on that no bio writes back.
    pub(crate) fn first_idle_from(&self, page: u64) -> Option<u64> {
        let mut at = self.dirty.first_from(page)?;
        while self.under_writeback.contains(at) {
            at = self.dirty.first_from(at + 1)?;
        }
        Some(at)
    }

    /// Returns the first page behind `page` that is not dirty, or that a bio writes back.
    pub(super) fn end_of_idle(&self, page: u64) -> u64 {
        debug_assert!(self.dirty.contains(page), "page {page} is clean");
        let end = self.dirty.end_of(page).unwrap_or(page + 1);
        self.under_writeback.first_from(page).map_or(end, |busy| busy.min(end))
    }

    /// Notes that a bio writes `page` back ([page-written-once]).
    pub fn begin(&mut self, page: u64) {
        let was_dirty = self.dirty.remove(page);
        debug_assert!(was_dirty, "[page-written-once] page {page} is clean");
        let began = self.under_writeback.insert(page);
        debug_assert!(began, "[page-written-once] two bios write page {page}");
    }

    /// Notes that the bio that writes `pages` back has ended with `status`. As in Linux, its pages
    /// are clean after an error, too: the next sync of each open file reports it.
    pub fn end(&mut self, pages: Range<u64>, status: Status) {
        for page in pages {
            let ended = self.under_writeback.remove(page);
            debug_assert!(ended, "[page-written-once] no bio writes page {page}");
        }
        if status != Status::Ok {
            self.errors = (self.errors.0 + 1, Some(status));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_written_during_its_writeback_is_dirty_again() {
        let mut dirt = Dirt::default();
        dirt.written(3);
        dirt.begin(3);
        assert_eq!((dirt.dirty().pages(), dirt.under_writeback().pages()), (0, 1));
        dirt.written(3);
        dirt.end(3..4, Status::Ok);
        assert_eq!((dirt.dirty().pages(), dirt.under_writeback().pages()), (1, 0));
        assert!(dirt.is_unwritten(3) && !dirt.is_unwritten(2));
    }

    #[test]
    fn errors_are_counted_and_leave_pages_clean() {
        let mut dirt = Dirt::default();
        dirt.written(0);
        dirt.begin(0);
        dirt.end(0..1, Status::Medium);
        assert_eq!((dirt.errors(), dirt.is_unwritten(0)), ((1, Some(Status::Medium)), false));
    }

    #[test]
    #[should_panic(expected = "two bios write page 7")]
    fn a_page_is_not_written_by_two_bios() {
        let mut dirt = Dirt::default();
        dirt.written(7);
        dirt.begin(7);
        dirt.written(7);
        dirt.begin(7);
    }
}
