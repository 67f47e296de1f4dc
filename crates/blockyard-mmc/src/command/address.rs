//! Addresses: of a card, and within a card.

/// A card's relative address (RCA), which selects it. 0 is nobody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rca(pub u16);

impl Rca {
    /// As arguments have it: in the upper half.
    pub(super) const fn argument(self) -> u32 {
        (self.0 as u32) << 16
    }
}

/// What addresses in commands count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// Bytes: cards up to 2 GB.
    Bytes,
    /// Sectors of 512 bytes.
    Sectors,
}

impl Addressing {
    /// The address of `sector` as an argument; `None` where 32 bits cannot say it.
    #[must_use]
    pub fn argument(self, sector: u64) -> Option<u32> {
        match self {
            Self::Bytes => u32::try_from(sector.checked_mul(512)?).ok(),
            Self::Sectors => u32::try_from(sector).ok(),
        }
    }
}
