//! Sets of pages as extents: their memory grows with the number of gaps, not with that of pages.

use core::ops::Range;
use std::collections::BTreeMap;

/// A set of pages.
#[derive(Clone, Debug, Default)]
pub struct Extents {
    /// The end of each extent by its first page. Extents neither overlap nor touch.
    ends: BTreeMap<u64, u64>,
    pages: u64,
}

impl Extents {
    /// Returns the number of pages.
    #[must_use]
    pub const fn pages(&self) -> u64 {
        self.pages
    }

    /// Whether `page` is in the set.
    #[must_use]
    pub fn contains(&self, page: u64) -> bool {
        self.ends.range(..=page).next_back().is_some_and(|(_, end)| page < *end)
    }

    /// Returns the first page that is not before `page`.
    #[must_use]
    pub(crate) fn first_from(&self, page: u64) -> Option<u64> {
        if self.contains(page) {
            return Some(page);
        }
        self.ends.range(page..).next().map(|(start, _)| *start)
    }

    /// Returns the number of extents.
    pub(crate) fn runs(&self) -> u64 {
        u64::try_from(self.ends.len()).unwrap_or(u64::MAX)
    }

    /// Returns the first page behind the extent of `page`, if `page` is in one.
    pub(crate) fn end_of(&self, page: u64) -> Option<u64> {
        self.extent_of(page).map(|extent| extent.end)
    }

    /// Returns the extent of `page`, if it is in one.
    pub(crate) fn extent_of(&self, page: u64) -> Option<Range<u64>> {
        let before = self.ends.range(..=page).next_back();
        before.map(|(start, end)| *start..*end).filter(|extent| extent.contains(&page))
    }

    /// Returns the extents within `range`, cut to it.
    #[must_use]
    pub fn within(&self, range: &Range<u64>) -> Self {
        let mut cut = Self::default();
        let before = self.ends.range(..range.start).next_back();
        for (start, end) in before.into_iter().chain(self.ends.range(range.clone())) {
            let part = (*start).max(range.start)..(*end).min(range.end);
            if part.start < part.end {
                cut.pages += part.end - part.start;
                cut.ends.insert(part.start, part.end);
            }
        }
        cut
    }

    /// Returns the range from the first page to behind the last one; an empty one without pages.
    pub(crate) fn span(&self) -> Range<u64> {
        let first = self.ends.first_key_value();
        let last = self.ends.last_key_value();
        first.zip(last).map_or(0..0, |(first, last)| *first.0..*last.1)
    }

    /// Adds `page`. Returns whether it was not in the set.
    pub fn insert(&mut self, page: u64) -> bool {
        let before = self.ends.range_mut(..=page).next_back();
        let joined = match before {
            Some((_, end)) if page < *end => return false,
            // The extent before grows: 3..5 and page 5 are 3..6.
            Some((start, end)) if *end == page => {
                *end = page + 1;
                *start
            }
            _ => {
                self.ends.insert(page, page + 1);
                page
            }
        };
        // It may now touch the one behind it.
        if let Some(end) = self.ends.remove(&(page + 1)) {
            self.ends.insert(joined, end);
        }
        self.pages += 1;
        true
    }

    /// Removes `page`. Returns whether it was in the set.
    pub fn remove(&mut self, page: u64) -> bool {
        let Some((&start, &end)) = self.ends.range(..=page).next_back() else { return false };
        if page >= end {
            return false;
        }
        // Without page 5, 3..9 is 3..5 and 6..9.
        if start == page {
            self.ends.remove(&start);
        } else {
            self.ends.insert(start, page);
        }
        if page + 1 < end {
            self.ends.insert(page + 1, end);
        }
        debug_assert!(self.pages > 0, "page {page} of an empty set");
        self.pages -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn neighbours_are_one_extent() {
        let mut set = Extents::default();
        for page in [4, 6, 5, 9, 5] {
            set.insert(page);
        }
        assert_eq!(set.ends, BTreeMap::from([(4, 7), (9, 10)]));
        assert!(set.remove(5) && !set.remove(5));
        assert_eq!(set.ends, BTreeMap::from([(4, 5), (6, 7), (9, 10)]));
        assert_eq!(set.within(&(6..9)).ends, BTreeMap::from([(6, 7)]));
        assert_eq!((set.pages(), set.first_from(5), set.first_from(10)), (3, Some(6), None));
        assert_eq!((set.runs(), set.end_of(6), set.end_of(7)), (3, Some(7), None));
        assert_eq!(
            (set.span(), set.within(&(5..9)).span(), Extents::default().span()),
            (4..10, 6..7, 0..0)
        );
    }

    proptest! {
        #[test]
        fn extents_are_a_set(operations in prop::collection::vec((any::<bool>(), 0..40_u64), 1..120)) {
            let mut set = Extents::default();
            let mut oracle = BTreeSet::new();
            for (adds, page) in operations {
                let changed = if adds { oracle.insert(page) } else { oracle.remove(&page) };
                prop_assert_eq!(if adds { set.insert(page) } else { set.remove(page) }, changed);
                prop_assert_eq!(set.pages(), oracle.len() as u64);
                prop_assert_eq!(set.first_from(page), oracle.range(page..).next().copied());
                prop_assert_eq!(set.contains(page), oracle.contains(&page));
                let cut = set.within(&(page..page + 9));
                prop_assert_eq!(cut.pages(), oracle.range(page..page + 9).count() as u64);
                prop_assert_eq!(cut.first_from(0), oracle.range(page..page + 9).next().copied());
                let ends: Vec<_> = set.ends.iter().collect();
                prop_assert!(ends.windows(2).all(|pair| pair[0].1 < pair[1].0));
            }
        }
    }
}
