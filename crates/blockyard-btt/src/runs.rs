//! The sectors that have data, found without reading the others.

use super::device::Btt;
use super::layout::MAP_ENTRY_BYTES;
use super::map_entry::{MapEntry, SectorState};
use super::memory::Memory;
use alloc::collections::{BTreeSet, VecDeque};
use core::num::NonZeroU64;
use core::ops::Range;

/// Map entries to read at once.
const PIECE: usize = 1024;

/// Runs of sectors with data. See [`Btt::runs`].
#[derive(Debug)]
pub struct Runs<'a, M> {
    btt: &'a Btt<M>,
    /// Runs that were found and not returned yet.
    found: VecDeque<Range<u64>>,
    /// The sectors whose entries were not looked at yet.
    left: Range<u64>,
}

impl<M: Memory> Btt<M> {
    /// Returns the runs of neighbouring sectors in `lbas` that have data, in order. All other
    /// sectors read as zeroes. Holes of the map are skipped ([`Memory::hole`]). A sector that
    /// cannot be read, or perhaps cannot, counts as data.
    ///
    /// Of sectors that are written meanwhile, nothing is promised.
    ///
    /// # Panics
    ///
    /// There are no such sectors.
    pub fn runs(&self, lbas: Range<u64>) -> Runs<'_, M> {
        assert!(lbas.end <= self.sectors, "sectors {lbas:?} of {}", self.sectors);
        Runs { btt: self, found: VecDeque::new(), left: lbas }
    }
}

impl<M: Memory> Runs<'_, M> {
    /// Looks at the next map entries of one arena: all those in a hole, or one piece.
    fn look(&mut self) {
        let first = self.left.start;
        let btt = self.btt;
        let place = btt.place(first);
        let in_arena = u64::from(place.arena.layout.external_nlba - place.lba.0);
        let left = in_arena.min(self.left.end - first);
        let at = place.arena.map_at(place.lba);
        let in_hole = NonZeroU64::new(btt.memory.hole(at) / MAP_ENTRY_BYTES);
        let count = left.min(in_hole.map_or(PIECE as u64, NonZeroU64::get));
        self.left.start += count;
        let lbas = first..self.left.start;
        debug_assert!(!lbas.is_empty(), "each look gets further");
        if in_hole.is_some() {
            let cut: BTreeSet<u64> = btt.unfinished().filter(|lba| lbas.contains(lba)).collect();
            return cut.into_iter().for_each(|lba| self.add(lba));
        }
        let mut bytes = [0; PIECE * MAP_ENTRY_BYTES as usize];
        let bytes = &mut bytes[..count as usize * MAP_ENTRY_BYTES as usize];
        if btt.memory.read(at, bytes).is_err() {
            return self.found.push_back(lbas); // reading the sectors tells which entries are lost
        }
        for (lba, entry) in lbas.zip(bytes.chunks_exact(4)) {
            let entry = MapEntry(u32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]));
            let place = btt.place(lba);
            let is_zeroes = matches!(entry.state(), SectorState::Initial | SectorState::Zero)
                && place.arena.has_block(entry.block(place.lba));
            if !is_zeroes || btt.unfinished().any(|cut| cut == lba) {
                self.add(lba);
            }
        }
    }

    /// Adds a sector to the runs.
    fn add(&mut self, lba: u64) {
        match self.found.back_mut() {
            Some(run) if run.end == lba => run.end += 1,
            _ => self.found.push_back(lba..lba + 1),
        }
    }
}

impl<M: Memory> Iterator for Runs<'_, M> {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        while self.found.is_empty() && !self.left.is_empty() {
            self.look();
        }
        self.found.pop_front()
    }
}
