//! Reading sectors.

use super::arena::Arena;
use super::device::{Btt, Place};
use super::error::IoError;
use super::lanes::SetId;
use super::layout::MAP_ENTRY_BYTES;
use super::map_entry::{MapEntry, SectorState};
use super::memory::{MediaError, Memory};
use super::pending::BATCH_MAX;
use super::readers::BlockId;
use super::versions::{Observed, Versions};

/// How often a reader may be overtaken by a writer before it locks the word of its sector.
const OVERTAKEN_MAX: u32 = 8;
/// Bytes of a block to prefetch. The processor's own prefetching continues from there.
const PREFETCH_BYTES: u64 = 512;

impl<M: Memory> Btt<M> {
    /// Reads one sector ([same-version-same-block]). Every instruction here counts: with fewer of
    /// them the processor reaches the next reads while the bytes of this one arrive.
    #[inline]
    pub(super) fn read_one(&self, lba: u64, to: &mut [u8]) -> Result<(), IoError> {
        debug_assert_eq!(to.len(), self.sector_bytes as usize, "one sector");
        self.in_range(lba, 1)?;
        let seen = self.observe(Versions::at(lba));
        let place = self.place(lba);
        let entry = self.entry_to_read(lba, place)?;
        self.copy_versioned(lba, place, seen, entry, to)
    }

    /// Reads sectors, and reads a sector again if a writer overtook it.
    pub(super) fn read_versioned<'a>(
        &self,
        mut sectors: impl ExactSizeIterator<Item = (u64, &'a mut [u8])>,
    ) -> Result<(), IoError> {
        debug_assert!(!self.readers_publish(), "a design with versions");
        while sectors.len() > 0 {
            self.read_batch(&mut sectors)?;
        }
        Ok(())
    }

    /// Reads some of `sectors`, after prefetching the map entries and blocks of all of them.
    fn read_batch<'a>(
        &self,
        sectors: &mut impl Iterator<Item = (u64, &'a mut [u8])>,
    ) -> Result<(), IoError> {
        // Arrays by kind: a value that was just stored is loaded with the same width.
        let mut lbas = [0; BATCH_MAX];
        let mut to = <[&mut [u8]; BATCH_MAX]>::default();
        let mut count = 0;
        for (lba, bytes) in sectors.take(BATCH_MAX) {
            let place = self.place(lba);
            self.memory.prefetch(place.arena.map_at(place.lba), MAP_ENTRY_BYTES);
            (lbas[count], to[count]) = (lba, bytes);
            count += 1;
        }
        debug_assert!(count > 0, "a batch has sectors");
        let mut failed = Ok(());
        let mut seen = [Observed::default(); BATCH_MAX];
        let mut entries = [MapEntry::default(); BATCH_MAX];
        let mut known = 0;
        for n in 0..count {
            let place = self.place(lbas[n]);
            seen[n] = self.observe(Versions::at(lbas[n]));
            match self.entry_to_read(lbas[n], place) {
                Ok(entry) => entries[n] = entry,
                Err(error) => {
                    failed = Err(error); // the sectors before it are still read
                    break;
                }
            }
            known += 1;
            if let Some(block) = entries[n].normal_block() {
                let at = place.arena.block_at(block);
                self.memory.prefetch(at, u64::from(self.sector_bytes).min(PREFETCH_BYTES));
            }
        }
        for (n, to) in to.into_iter().enumerate().take(known) {
            self.copy_versioned(lbas[n], self.place(lbas[n]), seen[n], entries[n], to)?;
        }
        failed
    }

    /// Copies a sector whose word was `seen` before its entry was loaded.
    #[inline]
    fn copy_versioned(
        &self,
        lba: u64,
        place: Place<'_>,
        seen: Observed,
        entry: MapEntry,
        to: &mut [u8],
    ) -> Result<(), IoError> {
        let copied = self.copy(place.arena, entry, to);
        if self.is_unchanged(Versions::at(lba), seen) {
            return self.judge(lba, copied, to);
        }
        self.copy_overtaken(lba, to)
    }

    /// Copies a sector that was written meanwhile. After a few more attempts, this locks the word,
    /// so that the copy ends.
    #[cold]
    fn copy_overtaken(&self, lba: u64, to: &mut [u8]) -> Result<(), IoError> {
        let place = self.place(lba);
        let at = Versions::at(lba);
        for turn in 0.. {
            let seen = self.observe(at);
            let locked = turn >= OVERTAKEN_MAX && self.try_lock(at, seen);
            let entry = self.entry_to_read(lba, place);
            let copied = entry.and_then(|entry| self.copy(place.arena, entry, to));
            if locked {
                self.unlock(at, seen);
            }
            if locked || self.is_unchanged(at, seen) {
                return self.judge(lba, copied, to);
            }
            self.memory.relax(turn);
        }
        unreachable!("an endless loop")
    }

    /// Reads one sector as Linux does: publishes its block, and then checks that the sector still
    /// has the block ([reader-or-writer-sees]).
    pub(super) fn read_published(
        &self,
        set: SetId,
        lba: u64,
        to: &mut [u8],
    ) -> Result<(), IoError> {
        debug_assert!(self.readers_publish(), "a design with a read tracking table");
        let place = self.place(lba);
        let arena = self.spot(lba).arena;
        let mut entry = self.entry_to_read(lba, place)?;
        while let Some(block) = entry.normal_block() {
            self.publish(set, BlockId::new(arena, block));
            let again = self.entry_to_read(lba, place);
            if again == Ok(entry) {
                break;
            }
            self.clear(set);
            entry = again?;
        }
        let copied = self.copy(place.arena, entry, to);
        self.clear(set);
        self.judge(lba, copied, to)
    }

    /// Copies the data of a sector with this entry.
    #[inline]
    fn copy(&self, arena: &Arena, entry: MapEntry, to: &mut [u8]) -> Result<(), IoError> {
        debug_assert!(to.len() <= arena.layout.internal_lbasize as usize, "bytes of one block");
        // One branch, not a jump table: the processor continues with the next sector while this
        // entry loads.
        match entry.normal_block() {
            Some(block) => Ok(self.memory.read(arena.block_at(block), to)?),
            None => unwritten(entry, to),
        }
    }

    /// Returns the result of copying, unless the medium lost the block.
    #[inline]
    fn judge(&self, lba: u64, copied: Result<(), IoError>, to: &mut [u8]) -> Result<(), IoError> {
        if copied == Err(IoError::Media(MediaError::Bad)) {
            return self.read_lost(lba, to);
        }
        copied
    }

    /// Reads a sector whose block the medium lost, while nobody can write it: the sector may have
    /// another block by now, or new data. A sector that is really lost is marked, so that the loss
    /// stays known. If the mark fails, the reader's result is the same.
    #[cold]
    fn read_lost(&self, lba: u64, to: &mut [u8]) -> Result<(), IoError> {
        let bad = Err(IoError::Media(MediaError::Bad));
        let mut copied = bad;
        let marked = self.change(lba, |entry, spot| {
            copied = self.copy(self.arena(spot), entry, to);
            Ok((copied == bad).then(|| entry.errored(spot.lba)))
        });
        if marked.is_ok() && copied == bad {
            self.write_back_map(lba, lba + 1);
            let _ = self.memory.fence();
        }
        copied
    }
}

/// Reads a sector without data of its own.
#[cold]
#[inline(never)]
fn unwritten(entry: MapEntry, to: &mut [u8]) -> Result<(), IoError> {
    if entry.state() == SectorState::Error {
        return Err(IoError::Lost);
    }
    to.fill(0);
    Ok(())
}
