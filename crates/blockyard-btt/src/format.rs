//! Writes an empty BTT.

use super::address::{PostmapAba, PremapAba};
use super::arena::Arena;
use super::container::Container;
use super::flog::SlotLayout;
use super::info_block::{InfoBlock, Uuid};
use super::layout::{INFO_BYTES, Layout, LayoutError, NFREE, arenas};
use super::map_entry::MapEntry;
use super::memory::{MediaError, Memory};
use alloc::vec::Vec;

/// The parameters of an empty BTT.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// The container of the BTT.
    pub container: Container,
    /// Bytes of a sector.
    pub sector_bytes: u32,
    /// The UUID of the BTT.
    pub uuid: Uuid,
    /// The UUID of the container, or nil if it has none.
    pub parent_uuid: Uuid,
    /// The memory holds only zeroes, like a new file. Otherwise every sector is marked as zero, so
    /// that old data cannot be read.
    pub blank: bool,
}

/// Why a BTT cannot be formatted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatError {
    /// The container does not support sectors of this size.
    SectorSize,
    /// An arena of this size is impossible.
    Layout(LayoutError),
    /// The medium failed.
    Media(MediaError),
}

impl core::fmt::Display for FormatError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::SectorSize => f.write_str(
                "a sector must have 512, 520, 528, 4096, 4104, 4160 or 4224 bytes, in a pool 1 to 1048576",
            ),
            Self::Layout(error) => error.fmt(f),
            Self::Media(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for FormatError {}

impl From<MediaError> for FormatError {
    fn from(error: MediaError) -> Self {
        Self::Media(error)
    }
}

impl Format {
    /// Returns the start and the info block of each arena in a container of `len` bytes.
    ///
    /// # Errors
    ///
    /// The container cannot hold such a BTT.
    pub fn plan(&self, len: u64) -> Result<Vec<(u64, InfoBlock)>, FormatError> {
        let internal =
            self.container.internal_lbasize(self.sector_bytes).ok_or(FormatError::SectorSize)?;
        let before = self.container.first_arena();
        let cut: Vec<_> = arenas(len.saturating_sub(before)).collect();
        let last = cut.len().checked_sub(1).ok_or(FormatError::Layout(LayoutError::TooSmall))?;
        let plan = cut.iter().enumerate().map(|(n, &(start, bytes))| {
            let layout = Layout::new(bytes, self.sector_bytes, internal, NFREE)?;
            let info = InfoBlock {
                uuid: self.uuid,
                parent_uuid: self.parent_uuid,
                error: false,
                version: self.container.version(),
                layout,
                nextoff: if n == last { 0 } else { bytes },
            };
            debug_assert!(internal >= self.sector_bytes, "a block holds a sector");
            Ok((before + start, info))
        });
        plan.collect::<Result<_, _>>().map_err(FormatError::Layout)
    }

    /// Writes the empty BTT. The first info block is written last, so an unfinished BTT is not
    /// found.
    ///
    /// # Errors
    ///
    /// The memory cannot hold such a BTT, or the medium failed.
    pub fn write<M: Memory>(&self, memory: &M) -> Result<(), FormatError> {
        let plan = self.plan(memory.len())?;
        if !self.blank {
            // Clear both info blocks of an old BTT: with one of them left, its log and map would be
            // used.
            for (start, info) in &plan {
                memory.zero(*start, INFO_BYTES)?;
                memory.zero(start + info.layout.infooff, INFO_BYTES)?;
            }
            memory.fence()?;
        }
        for (start, info) in plan.iter().rev() {
            self.arena(memory, *start, info)?;
        }
        Ok(())
    }

    fn arena<M: Memory>(&self, memory: &M, start: u64, info: &InfoBlock) -> Result<(), MediaError> {
        let layout = info.layout;
        debug_assert!(start.is_multiple_of(INFO_BYTES), "arenas start at whole pages");
        let dialect = self.container.dialect();
        let arena = Arena { start, first_lba: 0, layout, slots: SlotLayout::Standard, dialect };
        if !self.blank {
            memory.zero(start + layout.flogoff, layout.infooff - layout.flogoff)?;
            self.mark_zero(memory, &arena)?;
        }
        for lane in 0..layout.nfree {
            let first = dialect.first_entry(lane, PostmapAba(layout.external_nlba + lane));
            let at = arena.entry_at(lane, 0);
            for (word, at) in first.words().into_iter().zip([at, at + 8]) {
                memory.write(at, &word.to_le_bytes())?;
            }
        }
        memory.fence()?;
        let bytes = info.to_bytes();
        memory.write(start + layout.infooff, &bytes)?;
        memory.fence()?;
        memory.write(start, &bytes)?;
        memory.fence()
    }

    /// Marks every sector as zero.
    fn mark_zero<M: Memory>(&self, memory: &M, arena: &Arena) -> Result<(), MediaError> {
        const PIECE: usize = 1024;
        let mut piece = Vec::new();
        let sectors = arena.layout.external_nlba;
        for first in (0..sectors).step_by(PIECE) {
            piece.clear();
            for lba in (first..sectors).take(PIECE).map(PremapAba) {
                piece.extend_from_slice(&MapEntry::default().zeroed(lba).0.to_le_bytes());
            }
            memory.write(arena.map_at(PremapAba(first)), &piece)?;
        }
        Ok(())
    }
}
