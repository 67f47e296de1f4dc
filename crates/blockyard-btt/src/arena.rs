//! An arena in a memory: where its words are, found once when it is opened.

use super::address::{PostmapAba, PremapAba};
use super::container::Dialect;
use super::flog::{FlogEntry, FlogError, GroupBytes, SlotLayout, newest};
use super::info_block::{InfoBlock, InfoBytes, InfoError};
use super::layout::{FLOG_GROUP_BYTES, INFO_BYTES, Layout, MAP_ENTRY_BYTES};
use super::map_entry::MapEntry;
use super::memory::{MediaError, Memory};

/// Where an arena is, and how it is written.
#[derive(Clone, Copy, Debug)]
pub struct Arena {
    /// Its first byte in the memory.
    pub start: u64,
    /// The external LBA of its first sector.
    pub first_lba: u64,
    /// Where its parts are.
    pub layout: Layout,
    /// Where the second entries of its log are.
    pub slots: SlotLayout,
    /// How block numbers are written into its log.
    pub dialect: Dialect,
}

impl Arena {
    /// Where the map entry of a sector is.
    #[inline]
    #[must_use]
    pub const fn map_at(&self, lba: PremapAba) -> u64 {
        self.start + self.layout.mapoff + lba.0 as u64 * MAP_ENTRY_BYTES
    }

    /// Where the data of a block are.
    #[inline]
    #[must_use]
    pub const fn block_at(&self, block: PostmapAba) -> u64 {
        let offset = block.0 as u64 * self.layout.internal_lbasize as u64;
        self.start + self.layout.dataoff + offset
    }

    /// Where the log group of a lane is.
    #[inline]
    #[must_use]
    pub const fn group_at(&self, lane: u32) -> u64 {
        self.start + self.layout.flogoff + lane as u64 * FLOG_GROUP_BYTES
    }

    /// Where an entry of a lane is.
    #[inline]
    #[must_use]
    pub const fn entry_at(&self, lane: u32, slot: usize) -> u64 {
        self.group_at(lane) + self.slots.offset(slot)
    }

    /// Loads a map entry.
    ///
    /// # Errors
    ///
    /// Those of the medium.
    #[inline]
    pub fn load_map_entry<M: Memory>(
        &self,
        memory: &M,
        lba: PremapAba,
    ) -> Result<MapEntry, MediaError> {
        memory.load(self.map_at(lba)).map(MapEntry)
    }

    /// Whether the arena has this block.
    #[inline]
    #[must_use]
    pub const fn has_block(&self, block: PostmapAba) -> bool {
        block.0 < self.layout.internal_nlba
    }

    /// Reads the log group of a lane.
    ///
    /// # Errors
    ///
    /// Those of the medium.
    pub fn read_group<M: Memory>(&self, memory: &M, lane: u32) -> Result<GroupBytes, MediaError> {
        let mut bytes = [0; FLOG_GROUP_BYTES as usize];
        memory.read(self.group_at(lane), &mut bytes)?;
        Ok(bytes)
    }

    /// The newest entry of a log group, its slot, and whether the arena has what it names.
    ///
    /// # Errors
    ///
    /// There is none, or it names what does not exist.
    pub fn newest(&self, group: &GroupBytes) -> Result<(usize, FlogEntry), FlogError> {
        let entries = self.slots.entries(group);
        let slot = newest(&entries)?;
        let entry = entries[slot];
        for block in [entry.old_block(), entry.new_block()] {
            if !self.has_block(block) {
                return Err(FlogError::Block(block.0));
            }
        }
        if !entry.is_unused() && entry.lba >= self.layout.external_nlba {
            return Err(FlogError::Sector(entry.lba));
        }
        Ok((slot, entry))
    }
}

/// Reads the info block at `at`, of an arena with `room` bytes from there or from the one it is a copy of.
///
/// # Errors
///
/// Those of the medium; within, why it is none.
pub fn read_info<M: Memory>(
    memory: &M,
    at: u64,
    room: u64,
) -> Result<Result<InfoBlock, InfoError>, MediaError> {
    let mut bytes: InfoBytes = [0; INFO_BYTES as usize];
    memory.read(at, &mut bytes)?;
    Ok(InfoBlock::parse(&bytes, room))
}
