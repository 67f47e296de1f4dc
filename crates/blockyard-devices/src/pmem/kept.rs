//! Checks that reads return the last writes, through the table and its recovery.
//!
//! The data consists of marks: each written sector gets the number of the write and its own number.
//! Data that is read, or found after a loss of power, is compared with the last write and reported
//! as [`DataEvent`]s.

use crate::data::event::{DataEvent, Place};
use blockyard::prng::Prng;
use blockyard::unit::{DriverTag, SECTOR_BYTES};
use core::ops::Range;
use std::collections::{BTreeMap, VecDeque};

/// The last write of each sector, and the data events to report.
#[derive(Debug)]
pub(super) struct Kept {
    /// The last write of each sector.
    last: BTreeMap<u64, u64>,
    writes: u64,
    /// Data events of requests that were not pulled yet.
    pending: VecDeque<DataEvent<Place>>,
    data_events: VecDeque<DataEvent<Place>>,
    /// The draws that decide what a loss of power leaves.
    pub(super) draws: Prng,
}

/// The content of a sector that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sight {
    /// The last write to it.
    Right,
    /// The last write to another sector.
    Of(u64),
    /// A mix of writes, or an older write.
    Wrong,
}

const WORD: usize = 8;

impl Kept {
    pub(super) fn new(draws: Prng) -> Self {
        Self {
            last: BTreeMap::new(),
            writes: 0,
            pending: VecDeque::new(),
            data_events: VecDeque::new(),
            draws,
        }
    }

    /// Fills `data` for a new write to the sectors from `first` on.
    pub(super) fn write(&mut self, tag: DriverTag, first: u64, data: &mut [u8]) {
        debug_assert!(data.len().is_multiple_of(SECTOR_BYTES as usize), "{} bytes", data.len());
        debug_assert!(!data.is_empty(), "a write of nothing to sector {first}");
        self.writes += 1;
        let mark = self.writes;
        for (sector, bytes) in (first..).zip(data.chunks_exact_mut(SECTOR_BYTES as usize)) {
            let words = [mark, sector].map(u64::to_le_bytes);
            let of_pair = bytes.chunks_exact_mut(WORD).zip(words.iter().cycle());
            of_pair.for_each(|(bytes, word)| bytes.copy_from_slice(word));
            self.last.insert(sector, mark);
        }
        let sectors = first..first + (data.len() / SECTOR_BYTES as usize) as u64;
        let place = Place { tag, from: 0 };
        self.pending.push_back(DataEvent::Received { place, sectors: sectors.clone(), page: mark });
        self.pending.push_back(DataEvent::Certain { page: mark, sectors });
    }

    /// Checks `data`, which a request has read from the sectors from `first` on.
    pub(super) fn read(&mut self, tag: DriverTag, first: u64, data: &[u8]) {
        for (from, bytes) in (0..).zip(data.chunks_exact(SECTOR_BYTES as usize)) {
            let sector = first + u64::from(from);
            let of = match self.see(sector, bytes) {
                Sight::Right => sector,
                Sight::Of(other) => other,
                Sight::Wrong => continue,
            };
            let place = Place { tag, from };
            self.pending.push_back(DataEvent::Sent { place, sectors: of..of + 1 });
        }
    }

    /// Records that these sectors became zeroes.
    pub(super) fn erase(&mut self, sectors: Range<u64>) {
        for sector in sectors.clone() {
            self.last.remove(&sector);
        }
        self.pending.push_back(DataEvent::Erased { sectors, certain: true });
    }

    /// Returns the kind of the content `bytes` of `sector`.
    fn see(&self, sector: u64, bytes: &[u8]) -> Sight {
        let mut words = bytes.chunks_exact(WORD).map(|word| {
            u64::from_le_bytes(word.try_into().expect("a chunk should have eight bytes"))
        });
        let mut word = || words.next().expect("a sector should have two words");
        let mark = word();
        let of = word();
        let whole = words.zip([mark, of].into_iter().cycle()).all(|(word, like)| word == like);
        if !whole {
            return Sight::Wrong;
        }
        match (mark, of) {
            (0, 0) if self.last_mark(sector) == 0 => Sight::Right,
            _ if of == sector && mark == self.last_mark(sector) => Sight::Right,
            _ if of != sector && mark > 0 && mark == self.last_mark(of) => Sight::Of(of),
            _ => Sight::Wrong,
        }
    }

    /// Returns the mark of the last write to `sector`, 0 without one.
    fn last_mark(&self, sector: u64) -> u64 {
        self.last.get(&sector).copied().unwrap_or(0)
    }

    /// Reads every written sector by `read`, after a loss of power. Reports each sector that does
    /// not hold its last write as lost.
    pub(super) fn look_at_survivors(
        &mut self,
        unit: u64,
        mut read: impl FnMut(Range<u64>, &mut [u8]) -> bool,
    ) {
        let mut bytes = vec![
            0;
            usize::try_from(unit).expect("the sectors of a block should fit usize")
                * SECTOR_BYTES as usize
        ];
        let mut lost = Vec::new();
        let mut next = 0;
        for &sector in self.last.keys() {
            if sector < next {
                continue;
            }
            let first = sector / unit * unit;
            next = first + unit;
            let there = read(first..next, &mut bytes);
            for (sector, bytes) in (first..next).zip(bytes.chunks_exact(SECTOR_BYTES as usize)) {
                if !there || self.see(sector, bytes) != Sight::Right {
                    lost.push(sector);
                }
            }
        }
        let erased = |sector| DataEvent::Erased { sectors: sector..sector + 1, certain: true };
        self.data_events.extend(lost.into_iter().map(erased));
    }

    /// Releases the data events of the requests that were pulled.
    pub(super) fn pulled(&mut self) {
        self.data_events.append(&mut self.pending);
    }

    /// Returns the next event to report.
    pub(super) fn next_data_event(&mut self) -> Option<DataEvent<Place>> {
        self.data_events.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_written_last_and_whole_is_right() {
        let mut kept = Kept::new(Prng::new(1));
        let tag = DriverTag(0);
        let mut one = vec![0; 1024];
        let mut two = vec![0; 1024];
        assert_eq!(kept.see(5, &one[..512]), Sight::Right, "a sector that was never written");
        kept.write(tag, 4, &mut one);
        kept.write(tag, 4, &mut two);
        assert_eq!(kept.see(4, &two[..512]), Sight::Right);
        assert_eq!(kept.see(4, &one[..512]), Sight::Wrong, "the write before");
        assert_eq!(kept.see(4, &two[512..]), Sight::Of(5), "its neighbour");
        two[300] ^= 1;
        assert_eq!(kept.see(4, &two[..512]), Sight::Wrong, "torn");
        assert_eq!(kept.see(4, &[0; 512]), Sight::Wrong, "lost");
    }
}
