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

/// How often a reader lets itself be overtaken before it holds the word of its sector.
const OVERTAKEN_MAX: u32 = 8;
/// Bytes of a block that are fetched before they are copied: the processor goes on by itself from there.
const PREFETCH_BYTES: u64 = 512;

impl<M: Memory> Btt<M> {
    /// Reads one sector (`versions` S2). Its every instruction counts: with fewer of them the processor
    /// is at the next reads while the bytes of this one come.
    #[inline]
    pub(super) fn read_one(&self, lba: u64, to: &mut [u8]) -> Result<(), IoError> {
        self.in_range(lba, 1)?;
        let seen = self.observe(Versions::at(lba));
        let place = self.place(lba);
        let entry = self.entry_to_read(lba, place)?;
        self.copy_versioned(lba, place, seen, entry, to)
    }

    /// Reads sectors, and those again that were overtaken.
    pub(super) fn read_versioned<'a>(
        &self,
        mut sectors: impl ExactSizeIterator<Item = (u64, &'a mut [u8])>,
    ) -> Result<(), IoError> {
        while sectors.len() > 0 {
            self.read_batch(&mut sectors)?;
        }
        Ok(())
    }

    /// Reads some of `sectors`: what they need is fetched first, for all.
    fn read_batch<'a>(
        &self,
        sectors: &mut impl Iterator<Item = (u64, &'a mut [u8])>,
    ) -> Result<(), IoError> {
        // Values of one kind side by side: what was just stored is loaded as it was stored.
        let (mut lbas, mut to) = ([0; BATCH_MAX], <[&mut [u8]; BATCH_MAX]>::default());
        let mut count = 0;
        for (lba, bytes) in sectors.take(BATCH_MAX) {
            let place = self.place(lba);
            self.memory.prefetch(place.arena.map_at(place.lba), MAP_ENTRY_BYTES);
            (lbas[count], to[count]) = (lba, bytes);
            count += 1;
        }
        let mut failed = Ok(());
        let (mut seen, mut entries) = ([Observed::default(); BATCH_MAX], [MapEntry(0); BATCH_MAX]);
        let mut known = 0;
        for n in 0..count {
            let place = self.place(lbas[n]);
            seen[n] = self.observe(Versions::at(lbas[n]));
            match self.entry_to_read(lbas[n], place) {
                Ok(entry) => entries[n] = entry,
                Err(error) => {
                    failed = Err(error); // those before it are read
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

    /// Copies what a sector has, whose word was `seen` before its entry.
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

    /// Copies what a sector has that was written meanwhile: a few times as before, and then keeps writers
    /// away, so that it ends.
    #[cold]
    fn copy_overtaken(&self, lba: u64, to: &mut [u8]) -> Result<(), IoError> {
        let (place, at) = (self.place(lba), Versions::at(lba));
        for turn in 0.. {
            let seen = self.observe(at);
            let held = turn >= OVERTAKEN_MAX && self.try_lock(at, seen);
            let entry = self.entry_to_read(lba, place);
            let copied = entry.and_then(|entry| self.copy(place.arena, entry, to));
            if held {
                self.unlock(at, seen);
            }
            if held || self.is_unchanged(at, seen) {
                return self.judge(lba, copied, to);
            }
            self.memory.relax(turn);
        }
        unreachable!("a loop without an end")
    }

    /// Reads one sector as Linux does: publishes its block, and makes sure that it still is (`readers` R1).
    pub(super) fn read_published(
        &self,
        set: SetId,
        lba: u64,
        to: &mut [u8],
    ) -> Result<(), IoError> {
        let (place, arena) = (self.place(lba), self.spot(lba).arena);
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

    /// Copies what a sector with this entry reads as.
    #[inline]
    fn copy(&self, arena: &Arena, entry: MapEntry, to: &mut [u8]) -> Result<(), IoError> {
        // One branch, and no table of them: the processor goes on with the next sector while this entry comes.
        match entry.normal_block() {
            Some(block) => Ok(self.memory.read(arena.block_at(block), to)?),
            None => unwritten(entry, to),
        }
    }

    /// What copying said, unless the medium lost the block.
    #[inline]
    fn judge(&self, lba: u64, copied: Result<(), IoError>, to: &mut [u8]) -> Result<(), IoError> {
        if copied == Err(IoError::Media(MediaError::Bad)) {
            return self.read_lost(lba, to);
        }
        copied
    }

    /// Reads a sector whose block was lost, while nobody can write it: it may have another block by now, or
    /// the same one with other data. A sector that is lost is marked, so that it is known from now on; that
    /// it cannot be marked changes nothing for who reads it.
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

/// What a sector without bytes of its own reads as.
#[cold]
#[inline(never)]
fn unwritten(entry: MapEntry, to: &mut [u8]) -> Result<(), IoError> {
    if entry.state() == SectorState::Error {
        return Err(IoError::Lost);
    }
    to.fill(0);
    Ok(())
}
