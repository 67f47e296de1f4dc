//! A map entry: the block of a sector, and whether the sector is read from it.
//!
//! Bit 31 alone means zero and bit 30 alone means error, as in the UEFI specification, Linux's code
//! and libpmemblk. The table in Linux's documentation has the two reversed.

use super::address::{PostmapAba, PremapAba};

/// The bits of the block number.
const BLOCK: u32 = 0x3fff_ffff;
/// Alone: the sector reads as zeroes. Together with `ERROR`: the sector is read from its block.
const ZERO: u32 = 0x8000_0000;
/// Alone: the sector is marked as lost.
const ERROR: u32 = 0x4000_0000;
const NORMAL: u32 = ZERO | ERROR;

/// The largest number of blocks in an arena, limited by the bits of a map entry.
pub const BLOCKS_MAX: u32 = BLOCK + 1;

/// A map entry as it is stored. See the [module](self).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapEntry(pub u32);

/// The way in which a sector is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectorState {
    /// Never written: reads as zeroes. Linux reads the block, which was zeroed when the BTT was
    /// formatted.
    Initial,
    /// Discarded or zeroed: reads as zeroes.
    Zero,
    /// Marked as lost: reads fail until the sector is written.
    Error,
    /// Read from its block.
    Normal,
}

impl MapEntry {
    /// Returns the entry of a sector that was written to `block`.
    #[must_use]
    pub const fn normal(block: PostmapAba) -> Self {
        debug_assert!(block.0 < BLOCKS_MAX, "block number without state bits");
        Self(NORMAL | block.0)
    }

    /// Returns this entry with its sector zeroed. The sector keeps its block.
    #[must_use]
    pub const fn zeroed(self, lba: PremapAba) -> Self {
        Self(ZERO | self.block(lba).0)
    }

    /// Returns this entry with its sector marked as lost. The sector keeps its block.
    #[must_use]
    pub(crate) const fn errored(self, lba: PremapAba) -> Self {
        Self(ERROR | self.block(lba).0)
    }

    /// The state of the sector.
    #[inline]
    #[must_use]
    pub const fn state(self) -> SectorState {
        match self.0 & NORMAL {
            0 => SectorState::Initial,
            ZERO => SectorState::Zero,
            ERROR => SectorState::Error,
            _ => SectorState::Normal,
        }
    }

    /// Returns the block that the sector is read from, or `None` if it has no data of its own.
    #[inline]
    #[must_use]
    pub(crate) const fn normal_block(self) -> Option<PostmapAba> {
        match self.0 & NORMAL {
            NORMAL => Some(PostmapAba(self.0 & BLOCK)),
            _ => None,
        }
    }

    /// Returns the block of sector `lba`, whose entry this is. Before the first write, its number
    /// is `lba`.
    #[inline]
    #[must_use]
    pub const fn block(self, lba: PremapAba) -> PostmapAba {
        debug_assert!(lba.0 < BLOCKS_MAX, "a sector number is also a block number");
        match self.state() {
            SectorState::Initial => PostmapAba(lba.0),
            _ => PostmapAba(self.0 & BLOCK),
        }
    }

    /// Returns the entry in the form that libpmemblk logs: an initial entry becomes a normal one.
    #[must_use]
    pub(crate) const fn explicit(self, lba: PremapAba) -> Self {
        match self.state() {
            SectorState::Initial => Self::normal(PostmapAba(lba.0)),
            _ => self,
        }
    }
}

/// Returns the block number in a log entry, without state bits.
#[must_use]
pub(super) const fn block_number(word: u32) -> PostmapAba {
    PostmapAba(word & BLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_31_is_zero_and_bit_30_is_error() {
        let lba = PremapAba(12);
        let states = [
            (0x0000_0000, SectorState::Initial, 12),
            (0x0000_0007, SectorState::Initial, 12),
            (0x8000_0007, SectorState::Zero, 7),
            (0x4000_0007, SectorState::Error, 7),
            (0xc000_0007, SectorState::Normal, 7),
        ];
        for (word, state, block) in states {
            assert_eq!(MapEntry(word).state(), state, "{word:#x}");
            assert_eq!(MapEntry(word).block(lba), PostmapAba(block), "{word:#x}");
        }
    }

    #[test]
    fn zero_and_error_keep_the_block() {
        let lba = PremapAba(3);
        assert_eq!(MapEntry(0).zeroed(lba), MapEntry(0x8000_0003));
        assert_eq!(MapEntry(0xc000_0009).errored(lba), MapEntry(0x4000_0009));
        assert_eq!(MapEntry(0).explicit(lba), MapEntry(0xc000_0003));
        assert_eq!(MapEntry(0x4000_0009).explicit(lba), MapEntry(0x4000_0009));
    }
}
