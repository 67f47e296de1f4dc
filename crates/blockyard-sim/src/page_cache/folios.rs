//! The large folios of a file whose pages leave the cache when they have been read.
//!
//! A folio is a block of pages that Linux allocates, flags and drops as one. Read-ahead puts pages
//! into larger folios, the further a stream goes. That matters only for uncached reads: a folio
//! leaves when a part of it has been read. Other folios are not recorded here.

use core::ops::Range;
use std::collections::BTreeMap;

/// The large folios, by their first page, with the page behind each.
#[derive(Clone, Debug, Default)]
pub(super) struct Folios(BTreeMap<u64, u64>);

impl Folios {
    /// Returns the folio of `page`, which may be a page alone.
    pub(super) fn of(&self, page: u64) -> Range<u64> {
        let before = self.0.range(..=page).next_back();
        let large = before.map(|(start, end)| *start..*end);
        large.filter(|folio| folio.contains(&page)).unwrap_or(page..page + 1)
    }

    /// Adds a folio of pages that are in none.
    pub(super) fn add(&mut self, folio: Range<u64>) {
        debug_assert_eq!(self.of(folio.start), folio.start..folio.start + 1, "{folio:?}");
        self.0.insert(folio.start, folio.end);
    }

    /// Forgets the folio of `page`, whose other pages, if they are in the cache, are then alone.
    pub(super) fn forget(&mut self, page: u64) {
        let folio = self.of(page);
        self.0.remove(&folio.start);
    }
}

/// Returns the folios of a window of absent pages that is read ahead, the largest of them of
/// 2^`order` pages: each begins at a multiple of its size, and ends within the window.
///
/// `page_cache_ra_order` of Linux 7.3. Pages 24 to 55 with order 4 are folios of 8, 16 and 8 pages.
pub(super) fn folios_of(window: Range<u64>, order: u32) -> impl Iterator<Item = Range<u64>> {
    debug_assert!(order < u64::BITS, "a folio of 2^{order} pages");
    let mut at = window.start;
    core::iter::from_fn(move || {
        let left = window.end.checked_sub(at).filter(|left| *left > 0)?;
        let size = order.min(at.trailing_zeros()).min(left.ilog2());
        let folio = at..at + (1 << size);
        at = folio.end;
        Some(folio)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bios of a recording of Linux 7.3 begin and end with these folios (`OF_A_FILE`).
    #[test]
    fn folios_are_aligned_and_end_with_the_window() {
        fn sizes(window: Range<u64>, order: u32) -> Vec<u64> {
            folios_of(window, order).map(|folio| folio.end - folio.start).collect()
        }
        assert_eq!(sizes(8..24, 2), [4, 4, 4, 4]);
        assert_eq!(sizes(24..56, 4), [8, 16, 8]);
        assert_eq!(sizes(121..128, 6), [1, 2, 4]);
        assert_eq!(sizes(0..8, 0), [1; 8]);
        assert_eq!(sizes(5..5, 3), [0; 0]);
    }

    #[test]
    fn a_page_is_in_its_folio_until_that_is_forgotten() {
        let mut folios = Folios::default();
        folios.add(8..16);
        assert_eq!([7, 8, 15, 16].map(|page| folios.of(page)), [7..8, 8..16, 8..16, 16..17]);
        folios.forget(12);
        assert_eq!(folios.of(8), 8..9);
    }
}
