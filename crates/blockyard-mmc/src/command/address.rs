//! The address of a card, and addresses within a card.

/// A card's relative address (RCA), which selects it. 0 selects no card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rca(pub u16);

impl Rca {
    /// Returns the address as an argument, in the upper half.
    pub(super) const fn argument(self) -> u32 {
        (self.0 as u32) << 16
    }
}

/// The unit of addresses in commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// Bytes: cards up to 2 GB.
    Bytes,
    /// Sectors of 512 bytes.
    Sectors,
}

impl Addressing {
    /// Returns the address of `sector` as an argument; `None` if it does not fit 32 bits.
    #[must_use]
    pub fn argument(self, sector: u64) -> Option<u32> {
        match self {
            Self::Bytes => u32::try_from(sector.checked_mul(512)?).ok(),
            Self::Sectors => u32::try_from(sector).ok(),
        }
    }
}
