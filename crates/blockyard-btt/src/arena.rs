//! An arena in a memory: the positions of its map entries, blocks and log entries.

use super::address::{PostmapAba, PremapAba};
use super::container::Dialect;
use super::flog::{FlogEntry, FlogError, GroupBytes, SlotLayout, newest};
use super::info_block::{InfoBlock, InfoError};
use super::layout::{FLOG_GROUP_BYTES, Layout, MAP_ENTRY_BYTES};
use super::map_entry::MapEntry;
use super::memory::{MediaError, Memory, read_array};

/// The position of an arena and the form of its log.
#[derive(Clone, Copy, Debug)]
pub struct Arena {
    /// Its first byte in the memory.
    pub start: u64,
    /// The external LBA of its first sector.
    pub first_lba: u64,
    /// The positions of its parts.
    pub layout: Layout,
    /// The position of the second entry in each log group.
    pub slots: SlotLayout,
    /// The form of block numbers in its log.
    pub dialect: Dialect,
}

impl Arena {
    /// The position of a sector's map entry.
    #[inline]
    #[must_use]
    pub const fn map_at(&self, lba: PremapAba) -> u64 {
        debug_assert!(lba.0 < self.layout.external_nlba, "sector of this arena");
        self.start + self.layout.mapoff + lba.0 as u64 * MAP_ENTRY_BYTES
    }

    /// The position of a block's data.
    #[inline]
    #[must_use]
    pub const fn block_at(&self, block: PostmapAba) -> u64 {
        debug_assert!(self.has_block(block), "block of this arena");
        let offset = block.0 as u64 * self.layout.internal_lbasize as u64;
        self.start + self.layout.dataoff + offset
    }

    /// The position of a lane's log group.
    #[inline]
    #[must_use]
    pub const fn group_at(&self, lane: u32) -> u64 {
        debug_assert!(lane < self.layout.nfree, "lane of this arena");
        self.start + self.layout.flogoff + lane as u64 * FLOG_GROUP_BYTES
    }

    /// The position of the log entry in slot `slot` (0 or 1) of a lane.
    #[inline]
    #[must_use]
    pub const fn entry_at(&self, lane: u32, slot: usize) -> u64 {
        self.group_at(lane) + self.slots.offset(slot)
    }

    /// Loads a map entry.
    ///
    /// # Errors
    ///
    /// Returns the medium's error.
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
    /// Returns the medium's error.
    pub fn read_group<M: Memory>(&self, memory: &M, lane: u32) -> Result<GroupBytes, MediaError> {
        read_array(memory, self.group_at(lane))
    }

    /// Returns the slot and the entry that is the newest one of a log group.
    ///
    /// # Errors
    ///
    /// The group has no newest entry, or the entry names a block or sector that the arena does not
    /// have.
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

/// Reads and parses the info block at `at`. The arena has `room` bytes from its first info block
/// on.
///
/// # Errors
///
/// The outer result is the medium's error; the inner one says why the bytes are not an info block.
pub fn read_info<M: Memory>(
    memory: &M,
    at: u64,
    room: u64,
) -> Result<Result<InfoBlock, InfoError>, MediaError> {
    Ok(InfoBlock::parse(&read_array(memory, at)?, room))
}
