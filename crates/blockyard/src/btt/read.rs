//! Reading sectors.

use super::address::PostmapAba;
use super::device::{Btt, Spot};
use super::error::IoError;
use super::lanes::SetId;
use super::layout::MAP_ENTRY_BYTES;
use super::map_entry::{MapEntry, SectorState};
use super::memory::{MediaError, Memory};
use super::policy::ReadTracking;
use super::readers::BlockId;
use super::versions::{Seen, Versions};
use super::worker::BATCH_MAX;

/// How often a reader lets itself be overtaken before it holds the word of its sector.
const OVERTAKEN_MAX: u32 = 8;
/// Bytes of a block that are fetched before they are copied: the processor goes on by itself from there.
const PREFETCH_BYTES: u64 = 512;

impl<M: Memory> Btt<M> {
    /// Whether readers publish what they read.
    pub(super) fn readers_publish(&self) -> bool {
        self.policy.tracking != ReadTracking::Versions
    }

    /// Reads sectors, and those again that were overtaken (`versions` S2).
    #[inline]
    pub(super) fn read_versioned<'a>(
        &self,
        mut sectors: impl ExactSizeIterator<Item = (u64, &'a mut [u8])>,
    ) -> Result<(), IoError> {
        if sectors.len() == 1
            && let Some((lba, to)) = sectors.next()
        {
            let seen = self.versions.see(Versions::at(lba));
            let entry = self.entry(self.spot(lba))?;
            return self.copy_versioned(lba, seen, entry, to);
        }
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
            let spot = self.spot(lba);
            self.memory.prefetch(self.arena(spot).map_at(spot.lba), MAP_ENTRY_BYTES);
            (lbas[count], to[count]) = (lba, bytes);
            count += 1;
        }
        let mut failed = Ok(());
        let (mut seen, mut entries) = ([Seen::default(); BATCH_MAX], [MapEntry(0); BATCH_MAX]);
        let mut known = 0;
        for n in 0..count {
            let spot = self.spot(lbas[n]);
            seen[n] = self.versions.see(Versions::at(lbas[n]));
            match self.entry(spot) {
                Ok(entry) => entries[n] = entry,
                Err(error) => {
                    failed = Err(error); // those before it are read
                    break;
                }
            }
            known += 1;
            if entries[n].state() == SectorState::Normal {
                let at = self.arena(spot).block_at(entries[n].block(spot.lba));
                self.memory.prefetch(at, u64::from(self.sector_bytes).min(PREFETCH_BYTES));
            }
        }
        for (n, to) in to.into_iter().enumerate().take(known) {
            self.copy_versioned(lbas[n], seen[n], entries[n], to)?;
        }
        failed
    }

    /// Copies what a sector has, whose word was `seen` before its entry.
    #[inline]
    fn copy_versioned(
        &self,
        lba: u64,
        seen: Seen,
        entry: MapEntry,
        to: &mut [u8],
    ) -> Result<(), IoError> {
        let copied = self.copy(self.spot(lba), entry, to);
        if self.versions.still(Versions::at(lba), seen) {
            return self.judge(lba, entry, copied);
        }
        self.copy_overtaken(lba, to)
    }

    /// Copies what a sector has that was written meanwhile: a few times as before, and then keeps writers
    /// away, so that it ends.
    #[cold]
    fn copy_overtaken(&self, lba: u64, to: &mut [u8]) -> Result<(), IoError> {
        let (spot, at) = (self.spot(lba), Versions::at(lba));
        for turn in 0.. {
            let seen = self.versions.see(at);
            let held = turn >= OVERTAKEN_MAX && self.versions.hold(at, seen);
            let read = self.entry(spot).map(|entry| (entry, self.copy(spot, entry, to)));
            if held {
                self.versions.leave(at, seen);
            }
            if held || self.versions.still(at, seen) {
                let (entry, copied) = read?;
                return self.judge(lba, entry, copied);
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
        let spot = self.spot(lba);
        let mut entry = self.entry(spot)?;
        while entry.state() == SectorState::Normal {
            self.readers.publish(set.0, BlockId::new(spot.arena, entry.block(spot.lba)));
            let again = self.entry(spot);
            if again == Ok(entry) {
                break;
            }
            self.readers.clear(set.0);
            entry = again?;
        }
        let copied = self.copy(spot, entry, to);
        self.readers.clear(set.0);
        self.judge(lba, entry, copied)
    }

    /// Copies what a sector with this entry reads as.
    #[inline]
    fn copy(&self, spot: Spot, entry: MapEntry, to: &mut [u8]) -> Result<(), IoError> {
        let block: PostmapAba = match entry.state() {
            SectorState::Normal => entry.block(spot.lba),
            SectorState::Error => return Err(IoError::Lost),
            SectorState::Initial | SectorState::Zero => {
                to.fill(0);
                return Ok(());
            }
        };
        Ok(self.memory.read(self.arena(spot).block_at(block), to)?)
    }

    /// What copying said; a sector that the medium lost is marked, so that it is known from now on.
    #[inline]
    fn judge(&self, lba: u64, entry: MapEntry, copied: Result<(), IoError>) -> Result<(), IoError> {
        if copied == Err(IoError::Media(MediaError::Bad)) {
            self.mark_lost(lba, entry);
        }
        copied
    }
}
