//! A map entry: which block a sector has, and whether its bytes are to be read from there.
//!
//! Bit 31 alone is zero and bit 30 alone is error, as UEFI, Linux's code and libpmemblk have them; the
//! table in Linux's document has the two the wrong way round.

use super::address::{PostmapAba, PremapAba};

/// Bits that hold a block's number.
const BLOCK: u32 = 0x3fff_ffff;
/// Alone: the sector reads as zeroes. With `ERROR`: it reads from its block.
const ZERO: u32 = 0x8000_0000;
/// Alone: the sector was lost.
const ERROR: u32 = 0x4000_0000;
const NORMAL: u32 = ZERO | ERROR;

/// Most blocks an arena can have: what a map entry can number.
pub const BLOCKS_MAX: u32 = BLOCK + 1;

/// An entry as it is stored. See the [module](self).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapEntry(pub u32);

/// How a sector is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectorState {
    /// Never written. Read as zeroes; Linux reads the block, which was zeroed when formatted.
    Initial,
    /// Zeroes: discarded, or written with zeroes.
    Zero,
    /// Lost: reads fail until it is written.
    Error,
    /// From its block.
    Normal,
}

impl MapEntry {
    /// A written sector's.
    #[must_use]
    pub const fn normal(block: PostmapAba) -> Self {
        Self(NORMAL | block.0)
    }

    /// What this entry becomes when its sector is zeroed; the block stays the sector's own.
    #[must_use]
    pub const fn zeroed(self, lba: PremapAba) -> Self {
        Self(ZERO | self.block(lba).0)
    }

    /// What this entry becomes when its sector is lost.
    #[must_use]
    pub const fn errored(self, lba: PremapAba) -> Self {
        Self(ERROR | self.block(lba).0)
    }

    /// How the sector is to be read.
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

    /// The block that the sector is to be read from, if it is.
    #[inline]
    #[must_use]
    pub const fn normal_block(self) -> Option<PostmapAba> {
        match self.0 & NORMAL {
            NORMAL => Some(PostmapAba(self.0 & BLOCK)),
            _ => None,
        }
    }

    /// The block that sector `lba`, whose entry this is, has: its own number before the first write.
    #[inline]
    #[must_use]
    pub const fn block(self, lba: PremapAba) -> PostmapAba {
        match self.state() {
            SectorState::Initial => PostmapAba(lba.0),
            _ => PostmapAba(self.0 & BLOCK),
        }
    }

    /// As libpmemblk writes an entry into its log: an initial one as a normal one.
    #[must_use]
    pub const fn explicit(self, lba: PremapAba) -> Self {
        match self.state() {
            SectorState::Initial => Self::normal(PostmapAba(lba.0)),
            _ => self,
        }
    }
}

/// A block's number from a log entry, which may carry state bits.
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
