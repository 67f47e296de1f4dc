//! The cache of a disk: segments that follow what was read, and writes that were acknowledged.
//!
//! Of the acknowledged writes, the oldest go to the platters in one batch, and the next batch
//! begins when it has gone. A piece of a batch ends with its track. The sectors that follow it are
//! a piece of the same batch while that has room; otherwise they wait for their turn by their age.

use std::collections::{BTreeMap, BTreeSet};

/// A part of the cache with sectors in sequence.
#[derive(Clone, Copy, Debug)]
struct Segment {
    start: u64,
    end: u64,
    /// The number of its last use: the segment with the lowest goes first.
    used: u64,
}

impl Segment {
    fn holds(&self, sector: u64) -> bool {
        (self.start..self.end).contains(&sector)
    }
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

    /// Uses the sectors from `start` to `end` that are held, and returns where these end: `start`
    /// if the first one is not held.
    pub(super) fn held(&mut self, start: u64, end: u64) -> u64 {
        debug_assert!(start < end, "a read has a sector");
        self.uses += 1;
        self.segments.iter_mut().find(|segment| segment.holds(start)).map_or(start, |segment| {
            segment.used = self.uses;
            segment.end.min(end)
        })
    }

    /// Returns the end of the segment that holds `sector`. This does not count as a use, so it does
    /// not decide which segment is replaced next.
    pub(super) fn end_of(&self, sector: u64) -> Option<u64> {
        self.segments.iter().find(|segment| segment.holds(sector)).map(|segment| segment.end)
    }

    /// Keeps the sectors from `start` to `end`. They lengthen the segment that they continue, which
    /// keeps its last sectors; or they replace the segment that was used longest ago.
    pub(super) fn keep(&mut self, start: u64, end: u64) {
        if self.segment == 0 || start >= end {
            return;
        }
        self.uses += 1;
        // The first sectors of what a head has read may have left their segment since.
        let continued = |segment: &Segment| start <= segment.end && segment.start <= end;
        let oldest = || (0..self.segments.len()).min_by_key(|&at| self.segments[at].used);
        let mut segment = Segment { start, end, used: self.uses };
        let slot = self.segments.iter().position(continued);
        if let Some(at) = slot {
            segment.start = start.min(self.segments[at].start);
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

/// Acknowledged writes in sequence.
#[derive(Clone, Copy, Debug)]
struct Range {
    end: u64,
    /// The number of its oldest write.
    since: u64,
}

/// A write of the batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batched {
    pub(super) start: u64,
    pub(super) end: u64,
}

/// Sectors that were acknowledged and are not on the platters.
#[derive(Debug)]
pub(super) struct WriteCache {
    /// Ranges by their first sectors. They neither overlap nor touch.
    ranges: BTreeMap<u64, Range>,
    /// The first sectors of those in the batch.
    batch: BTreeSet<u64>,
    /// Pieces for which the batch has room: parts of its writes behind the end of a track.
    room: usize,
    sectors: u64,
    capacity: u64,
    /// Writes that were added.
    added: u64,
}

impl WriteCache {
    /// Returns an empty cache of `capacity` sectors.
    pub(super) const fn new(capacity: u64) -> Self {
        Self {
            ranges: BTreeMap::new(),
            batch: BTreeSet::new(),
            room: 0,
            sectors: 0,
            capacity,
            added: 0,
        }
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

    /// Whether at least `percent` of it is in use.
    pub(super) const fn is_filled(&self, percent: u64) -> bool {
        self.sectors * 100 >= self.capacity * percent
    }

    /// Adds the sectors from `start` to `end`.
    pub(super) fn add(&mut self, start: u64, end: u64) {
        debug_assert!(start < end, "a write has a sector");
        self.added += 1;
        let mut first = start;
        let mut whole = Range { end, since: self.added };
        let mut in_batch = false;
        while let Some((&low, &range)) = self.ranges.range(..=whole.end).next_back() {
            if range.end < first {
                break;
            }
            in_batch |= self.take(low);
            first = first.min(low);
            whole = Range { end: whole.end.max(range.end), since: whole.since.min(range.since) };
        }
        self.put(first, whole, in_batch);
    }

    /// Removes the sectors from `start` to `end`.
    pub(super) fn remove(&mut self, start: u64, end: u64) {
        debug_assert!(start < end, "a write has a sector");
        while let Some((&low, &range)) = self.ranges.range(..end).next_back() {
            if range.end <= start {
                break;
            }
            let in_batch = self.take(low);
            if low < start {
                self.put(low, Range { end: start, ..range }, in_batch);
            }
            if end < range.end {
                // The rest belongs to this batch if it has room, and else to a later one.
                let follows = in_batch && self.room > 0;
                self.room -= usize::from(follows);
                self.put(end, range, follows);
            }
        }
    }

    /// Puts `range` in, and into the batch too if `in_batch`.
    fn put(&mut self, start: u64, range: Range, in_batch: bool) {
        debug_assert!(start < range.end, "{range:?} from {start} has a sector");
        self.sectors += range.end - start;
        self.ranges.insert(start, range);
        if in_batch {
            self.batch.insert(start);
        }
    }

    /// Takes out the range that begins at `start`. Returns whether it is in the batch.
    fn take(&mut self, start: u64) -> bool {
        let range = self.ranges.remove(&start).expect("a range is taken by its first sector");
        self.sectors -= range.end - start;
        self.batch.remove(&start)
    }

    /// Makes a batch of `count` pieces, of the oldest ranges, if there is none.
    pub(super) fn fill_batch(&mut self, count: u32) {
        debug_assert!(count > 0, "a batch has a write");
        if !self.batch.is_empty() {
            return;
        }
        let mut oldest: Vec<_> =
            self.ranges.iter().map(|(&start, range)| (range.since, start)).collect();
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count < oldest.len() {
            oldest.select_nth_unstable(count);
            oldest.truncate(count);
        }
        self.room = count - oldest.len();
        self.batch.extend(oldest.into_iter().map(|(_, start)| start));
    }

    /// Whether writes of the batch are left.
    pub(super) fn has_batch(&self) -> bool {
        !self.batch.is_empty()
    }

    /// Whether all sectors from `start` to `end` are here.
    pub(super) fn has(&self, start: u64, end: u64) -> bool {
        debug_assert!(start < end, "a read has a sector");
        self.ranges.range(..=start).next_back().is_some_and(|(_, range)| end <= range.end)
    }

    /// Returns the batch in the order of its sectors, from the first at or behind `from` around to
    /// the one before it.
    pub(super) fn sweep(&self, from: u64) -> impl Iterator<Item = Batched> + '_ {
        let starts = self.batch.range(from..).chain(self.batch.range(..from));
        starts.filter_map(|&start| Some(Batched { start, end: self.ranges.get(&start)?.end }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard::prng::Prng;

    fn swept(cache: &WriteCache, from: u64) -> Vec<(u64, u64)> {
        cache.sweep(from).map(|write| (write.start, write.end)).collect()
    }

    fn ranges(cache: &WriteCache) -> Vec<(u64, u64)> {
        cache.ranges.iter().map(|(&start, range)| (start, range.end)).collect()
    }

    #[test]
    fn a_segment_that_is_only_looked_at_is_replaced_as_if_it_was_not() {
        let mut cache = ReadCache::new(2, 100);
        cache.keep(0, 10);
        cache.keep(200, 210);
        assert_eq!([cache.end_of(5), cache.end_of(10)], [Some(10), None]);
        cache.keep(400, 410);
        assert_eq!([cache.end_of(5), cache.end_of(205)], [None, Some(210)]);
        // A read uses its segment, so the other one is replaced.
        assert_eq!(cache.held(200, 204), 204);
        cache.keep(600, 610);
        assert_eq!([cache.end_of(205), cache.end_of(405)], [Some(210), None]);
    }

    #[test]
    fn a_write_cache_holds_what_a_set_of_sectors_holds() {
        let mut prng = Prng::new(7);
        let mut cache = WriteCache::new(1_000);
        let mut set = BTreeSet::new();
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
            let held = ranges(&cache);
            let sectors = held.iter().flat_map(|&(start, end)| start..end);
            assert!(sectors.eq(set.iter().copied()), "{cache:?}");
            cache.fill_batch(3);
            let swept = swept(&cache, 30);
            assert!(swept.iter().all(|write| held.contains(write)), "{swept:?} of {cache:?}");
            assert_eq!(swept.is_empty(), held.is_empty());
            assert_eq!(cache.sectors, set.len() as u64);
            assert_eq!(cache.has(start, end), (start..end).all(|sector| set.contains(&sector)));
            assert!(held.windows(2).all(|two| two[0].1 < two[1].0), "{cache:?}");
        }
    }

    /// Of five writes, the three oldest are the first batch; the one that follows the second of
    /// them in sequence goes with it. One that comes later waits, as does what is left of the
    /// first.
    #[test]
    fn the_oldest_writes_are_a_batch_and_the_next_waits_for_its_end() {
        let mut cache = WriteCache::new(1_000);
        for start in [500, 100, 300, 108, 700] {
            cache.add(start, start + 8);
        }
        cache.fill_batch(3);
        assert_eq!(swept(&cache, 0), [(100, 116), (300, 308), (500, 508)]);
        assert_eq!(swept(&cache, 200), [(300, 308), (500, 508), (100, 116)]);
        cache.add(0, 8);
        cache.remove(500, 504);
        cache.fill_batch(3);
        assert_eq!(swept(&cache, 0), [(100, 116), (300, 308)]);
        cache.remove(100, 116);
        cache.remove(300, 308);
        // What is left of the first write is the oldest of all.
        cache.fill_batch(2);
        assert_eq!(swept(&cache, 0), [(504, 508), (700, 708)]);
    }

    /// Of two streams of 10 tracks of 1000 sectors, a batch of four pieces has three tracks of the
    /// first and one of the second. So the arm goes from one to the other twice in eight tracks;
    /// with one piece of each stream in a batch, it would after each track.
    #[test]
    fn a_batch_of_two_streams_has_tracks_in_sequence() {
        let mut cache = WriteCache::new(100_000);
        cache.add(0, 10_000);
        cache.add(50_000, 60_000);
        let mut from = 0;
        let pieces = [(); 8].map(|()| {
            cache.fill_batch(4);
            let (start, _) = swept(&cache, from)[0];
            from = start + 1_000;
            cache.remove(start, from);
            start / 1_000
        });
        assert_eq!(pieces, [0, 1, 2, 50, 51, 52, 53, 3]);
    }

    #[test]
    fn a_cache_is_filled_by_a_share_of_its_capacity() {
        let mut cache = WriteCache::new(16);
        assert!(cache.is_filled(0) && !cache.is_filled(1));
        cache.add(0, 8);
        assert!(cache.is_filled(50) && !cache.is_filled(51));
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
