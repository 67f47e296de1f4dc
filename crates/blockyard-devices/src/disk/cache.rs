//! The cache of a disk: segments that follow what was read, and writes that were acknowledged.

use std::collections::BTreeMap;

/// A part of the cache with sectors in sequence.
#[derive(Clone, Copy, Debug)]
struct Segment {
    start: u64,
    end: u64,
    /// The number of its last use: the segment with the lowest goes first.
    used: u64,
}

/// Sectors that were read.
#[derive(Debug)]
pub(super) struct ReadCache {
    segments: Vec<Segment>,
    count: usize,
    /// Sectors of one segment.
    pub(super) segment: u64,
    uses: u64,
}

impl ReadCache {
    /// Returns an empty cache of `count` segments of `segment` sectors each.
    pub(super) fn new(count: u16, segment: u64) -> Self {
        debug_assert!(count > 0, "a cache has a segment, if an empty one");
        let count = usize::from(count);
        Self { segments: Vec::with_capacity(count), count, segment, uses: 0 }
    }

    /// Returns the end of the sectors from `start` on that are held, at most `end`.
    pub(super) fn held(&mut self, start: u64, end: u64) -> u64 {
        debug_assert!(start < end, "a read has a sector");
        self.uses += 1;
        let of_start = |segment: &&mut Segment| (segment.start..segment.end).contains(&start);
        self.segments.iter_mut().find(of_start).map_or(start, |segment| {
            segment.used = self.uses;
            segment.end.min(end)
        })
    }

    /// Keeps the sectors from `start` to `end`. They lengthen the segment that they continue, which
    /// keeps its last sectors; or they replace the segment that was used longest ago.
    pub(super) fn keep(&mut self, start: u64, end: u64) {
        if self.segment == 0 || start >= end {
            return;
        }
        self.uses += 1;
        let continued = |segment: &Segment| (segment.start..=segment.end).contains(&start);
        let oldest = || (0..self.segments.len()).min_by_key(|&at| self.segments[at].used);
        let mut segment = Segment { start, end, used: self.uses };
        let slot = self.segments.iter().position(continued);
        if let Some(at) = slot {
            segment.start = self.segments[at].start;
            segment.end = end.max(self.segments[at].end);
        }
        segment.start = segment.start.max(segment.end.saturating_sub(self.segment));
        debug_assert!(self.segments.len() <= self.count, "{} segments", self.segments.len());
        let is_full = self.segments.len() == self.count;
        match slot.or_else(|| is_full.then(oldest).flatten()) {
            Some(at) => self.segments[at] = segment,
            None => self.segments.push(segment),
        }
    }

    /// Forgets the segments that have one of the sectors from `start` to `end`.
    pub(super) fn forget(&mut self, start: u64, end: u64) {
        self.segments.retain(|segment| segment.end <= start || end <= segment.start);
    }
}

/// Sectors that were acknowledged and are not on the platters.
#[derive(Debug)]
pub(super) struct WriteCache {
    /// Ranges, each from its key to its value. They neither overlap nor touch.
    ranges: BTreeMap<u64, u64>,
    sectors: u64,
    capacity: u64,
}

impl WriteCache {
    /// Returns an empty cache of `capacity` sectors.
    pub(super) const fn new(capacity: u64) -> Self {
        Self { ranges: BTreeMap::new(), sectors: 0, capacity }
    }

    /// Whether there is such a cache.
    pub(super) const fn is_on(&self) -> bool {
        self.capacity > 0
    }

    pub(super) fn is_empty(&self) -> bool {
        debug_assert_eq!(self.ranges.is_empty(), self.sectors == 0);
        self.ranges.is_empty()
    }

    /// Whether `sectors` more have room, while `leaving` are on the way to the platters. A write
    /// that is larger than the cache has room once there is nothing else.
    pub(super) const fn has_room(&self, sectors: u64, leaving: u64) -> bool {
        let used = self.sectors + leaving;
        used == 0 || used + sectors <= self.capacity
    }

    /// Adds the sectors from `start` to `end`.
    pub(super) fn add(&mut self, start: u64, end: u64) {
        debug_assert!(start < end, "a write has a sector");
        let (mut first, mut last) = (start, end);
        while let Some((&low, &high)) = self.ranges.range(..=last).next_back() {
            if high < first {
                break;
            }
            self.ranges.remove(&low);
            self.sectors -= high - low;
            (first, last) = (first.min(low), last.max(high));
        }
        self.ranges.insert(first, last);
        self.sectors += last - first;
    }

    /// Removes the sectors from `start` to `end`.
    pub(super) fn remove(&mut self, start: u64, end: u64) {
        debug_assert!(start < end, "a write has a sector");
        while let Some((&low, &high)) = self.ranges.range(..end).next_back() {
            if high <= start {
                break;
            }
            self.ranges.remove(&low);
            self.sectors -= high.min(end) - low.max(start);
            for (low, high) in [(low, start.min(high)), (end.max(low), high)] {
                if low < high {
                    self.ranges.insert(low, high);
                }
            }
        }
    }

    /// Whether all sectors from `start` to `end` are here.
    pub(super) fn has(&self, start: u64, end: u64) -> bool {
        debug_assert!(start < end, "a read has a sector");
        self.ranges.range(..=start).next_back().is_some_and(|(_, &high)| end <= high)
    }

    /// Returns the ranges in the order of their sectors, from the first at or behind `from` around
    /// to the one before it.
    pub(super) fn sweep(&self, from: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.ranges
            .range(from..)
            .chain(self.ranges.range(..from))
            .map(|(&start, &end)| (start, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard::prng::Prng;
    use std::collections::BTreeSet;

    #[test]
    fn a_write_cache_holds_what_a_set_of_sectors_holds() {
        let mut prng = Prng::new(7);
        let (mut cache, mut set) = (WriteCache::new(1_000), BTreeSet::new());
        for _ in 0..20_000 {
            let start = prng.below(60);
            let end = start + 1 + prng.below(12);
            if prng.below(2) == 0 {
                cache.add(start, end);
                set.extend(start..end);
            } else {
                cache.remove(start, end);
                set.retain(|sector| !(start..end).contains(sector));
            }
            let swept: Vec<_> = cache.sweep(0).flat_map(|(start, end)| start..end).collect();
            assert!(swept.iter().copied().eq(set.iter().copied()), "{cache:?}");
            assert_eq!(cache.sectors, set.len() as u64);
            assert_eq!(cache.has(start, end), (start..end).all(|sector| set.contains(&sector)));
            let apart = cache.sweep(0).zip(cache.sweep(0).skip(1));
            assert!(apart.into_iter().all(|(one, next)| one.1 < next.0), "{cache:?}");
        }
    }

    #[test]
    fn a_segment_slides_along_its_stream_and_the_oldest_is_replaced() {
        let mut cache = ReadCache::new(2, 100);
        cache.keep(0, 60);
        cache.keep(60, 130);
        assert_eq!(cache.held(20, 50), 20, "the first 30 sectors have left");
        assert_eq!(cache.held(30, 500), 130);
        cache.keep(1_000, 1_010);
        cache.held(40, 41);
        cache.keep(2_000, 2_010);
        assert_eq!(cache.held(1_000, 1_010), 1_000, "it was used longest ago");
        assert_eq!(cache.held(100, 130), 130);
        cache.forget(129, 140);
        assert_eq!(cache.held(100, 130), 100);
    }

    #[test]
    fn a_write_has_room_beside_what_is_leaving() {
        let mut cache = WriteCache::new(16);
        assert!(cache.has_room(40, 0), "alone, a write of any size has room");
        cache.add(0, 8);
        assert!(cache.has_room(8, 0) && !cache.has_room(8, 1) && !cache.has_room(9, 0));
    }
}
