//! Marking sectors as zero or lost. Their map entries change but they keep their blocks, so nothing
//! is logged.
//!
//! # Rules
//!
//! - **[zero-found-is-durable]** A call that finds all its sectors zeroed has nothing to do if
//!   those entries are durable: if no call that zeroes has a fence ahead of it.

use super::device::{Btt, Spot};
use super::error::IoError;
use super::layout::MAP_ENTRY_BYTES;
use super::map_entry::{MapEntry, SectorState};
use super::memory::Memory;
use super::readers::BlockId;
use super::sync::{Ordering, fence};
use super::touch::{Touch, Word};
use super::versions::Versions;

/// Map entries that are written back together when many are changed.
const ZERO_RUN: u64 = 256;

impl<M: Memory> Btt<M> {
    /// Zeroes `count` sectors from `lba` on without writing their data. The change is durable on
    /// return.
    ///
    /// # Errors
    ///
    /// See [`IoError`]. Any of the sectors may have been zeroed.
    pub fn set_zero(&self, lba: u64, count: u64) -> Result<(), IoError> {
        self.in_range(lba, count)?;
        if count <= ZERO_RUN && self.are_zero_for_good(lba, count)? {
            return Ok(());
        }
        self.memory.touched(Touch::Stored(Word::Zeroings));
        self.zeroings.begin();
        let mut next = lba;
        while next < lba + count {
            let end = (next + ZERO_RUN).min(lba + count);
            for lba in next..end {
                self.change(lba, |entry, spot| match entry.state() {
                    SectorState::Zero => Ok(None),
                    state => {
                        if state == SectorState::Error {
                            self.clear_bad_sector(entry, spot)?;
                        }
                        Ok(Some(entry.zeroed(spot.lba)))
                    }
                })?;
            }
            self.write_back_map(next, end);
            next = end;
        }
        self.memory.fence()?;
        self.memory.touched(Touch::Stored(Word::Zeroings));
        self.zeroings.end();
        Ok(())
    }

    /// Whether `count` sectors from `lba` on are zeroed already, durably ([zero-found-is-durable]).
    fn are_zero_for_good(&self, lba: u64, count: u64) -> Result<bool, IoError> {
        for lba in lba..lba + count {
            let spot = self.spot(lba);
            self.writable(spot)?;
            if self.entry(spot)?.state() != SectorState::Zero {
                return Ok(false);
            }
        }
        self.memory.touched(Touch::Loaded(Word::Zeroings));
        Ok(self.zeroings.are_fenced())
    }

    /// Marks a sector as lost: reading it fails until the sector is written or zeroed.
    ///
    /// # Errors
    ///
    /// See [`IoError`].
    pub fn set_error(&self, lba: u64) -> Result<(), IoError> {
        self.in_range(lba, 1)?;
        self.change(lba, |entry, spot| Ok(Some(entry.errored(spot.lba))))?;
        self.write_back_map(lba, lba + 1);
        Ok(self.memory.fence()?)
    }

    /// Zeroes the block of a sector that is marked as lost. Without the mark, the information that
    /// the block may be bad would be gone.
    #[cold]
    fn clear_bad_sector(&self, entry: MapEntry, spot: Spot) -> Result<(), IoError> {
        let arena = self.arena(spot);
        let block = entry.block(spot.lba);
        // The mark must be durable first: until then, a power cut may bring back the sector's old
        // state.
        self.memory.write_back(arena.map_at(spot.lba), MAP_ENTRY_BYTES);
        self.memory.fence()?;
        // A reader that loaded the entry before the mark detects the change
        // ([same-version-same-block]).
        fence(Ordering::SeqCst);
        if self.readers_publish() {
            self.wait_until_unread(BlockId::new(spot.arena, block));
        }
        self.zero_block(arena, block)?;
        Ok(self.memory.fence()?)
    }

    /// Changes the state of a sector, which keeps its block. Nothing is logged.
    pub(super) fn change(
        &self,
        lba: u64,
        mut new: impl FnMut(MapEntry, Spot) -> Result<Option<MapEntry>, IoError>,
    ) -> Result<(), IoError> {
        let spot = self.spot(lba);
        self.writable(spot)?;
        let at = Versions::at(lba);
        for turn in 0.. {
            let seen = self.observe(at);
            if self.try_lock(at, seen) {
                let changed = self.entry(spot).and_then(|entry| match new(entry, spot)? {
                    Some(new) => {
                        debug_assert_eq!(new.block(spot.lba), entry.block(spot.lba), "same block");
                        Ok(self.memory.store(self.arena(spot).map_at(spot.lba), new.0)?)
                    }
                    None => Ok(()),
                });
                self.unlock_new_version(at, seen);
                return changed;
            }
            self.memory.relax(turn);
        }
        unreachable!("an endless loop")
    }

    /// Writes back the map entries of the sectors from `first` to before `end`.
    pub(super) fn write_back_map(&self, first: u64, end: u64) {
        let mut next = first;
        while next < end {
            let spot = self.spot(next);
            let arena = self.arena(spot);
            let here = u64::from(arena.layout.external_nlba - spot.lba.0).min(end - next);
            debug_assert!(here > 0, "every arena has sectors");
            self.memory.write_back(arena.map_at(spot.lba), here * MAP_ENTRY_BYTES);
            next += here;
        }
    }
}
