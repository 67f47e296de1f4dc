//! The memory for the map of a drive that cannot hold all of it: pages of the map, the least
//! recently used of which makes room.
//!
//! A page has the places of 4 MiB of the drive's addresses, not folded onto the simulated ones. A
//! set keeps eight pages.

use crate::flash::profile::UNIT_BYTES;
use core::ops::Range;

/// Units whose places are in a page of the map, of four bytes each.
const PAGE_UNITS: u64 = UNIT_BYTES / 4;
/// Pages of a set.
const WAYS: usize = 8;
/// No page.
const NONE: u64 = u64::MAX;

/// The memory.
#[derive(Debug)]
pub(super) struct MapMemory {
    /// The pages of each set, the last used first.
    sets: Vec<[u64; WAYS]>,
}

impl MapMemory {
    /// Returns an empty memory of `bytes`, a set at least.
    pub(super) fn new(bytes: u64) -> Self {
        let sets = usize::try_from(bytes / UNIT_BYTES).expect("a memory should fit") / WAYS;
        Self { sets: vec![[NONE; WAYS]; sets.max(1)] }
    }

    /// Returns the pages with the places of `units`.
    pub(super) fn pages(units: &Range<u64>) -> Range<u64> {
        units.start / PAGE_UNITS..units.end.div_ceil(PAGE_UNITS)
    }

    /// Returns the unit after those whose places are in one page with that of `unit`.
    pub(super) const fn end_of_page(unit: u64) -> u64 {
        (unit / PAGE_UNITS + 1) * PAGE_UNITS
    }

    /// Marks `page` as the last used. Returns whether it must be read from flash first.
    pub(super) fn misses(&mut self, page: u64) -> bool {
        debug_assert!(page != NONE, "the number of no page stands for a page");
        let at = usize::try_from(page % self.sets.len() as u64).expect("sets should be few");
        let set = &mut self.sets[at];
        let found = set.iter().position(|other| *other == page);
        set[..=found.unwrap_or(WAYS - 1)].rotate_right(1);
        set[0] = page;
        found.is_none()
    }
}
