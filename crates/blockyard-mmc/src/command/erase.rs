//! The ways to erase: the argument of CMD38 (JESD84-B51 6.6.9 to 6.6.13; SD 4.3.5 and 4.3.6).

/// The erases of an eMMC device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MmcErase {
    /// Whole erase groups, which then read as erased.
    Erase,
    /// Blocks, which then read as erased.
    Trim,
    /// Blocks, which then read as anything; from 4.5 on.
    Discard,
    /// Whole erase groups, and every copy of them.
    SecureErase,
    /// Blocks are marked for a secure trim.
    SecureTrimMark,
    /// The marked blocks are erased with every copy of them.
    SecureTrim,
}

impl MmcErase {
    /// Returns the argument of CMD38.
    #[must_use]
    pub const fn argument(self) -> u32 {
        match self {
            Self::Erase => 0,
            Self::Trim => 1,
            Self::Discard => 3,
            Self::SecureErase => 0x8000_0000,
            Self::SecureTrimMark => 0x8000_0001,
            Self::SecureTrim => 0x8000_8000,
        }
    }

    /// Returns whether only whole erase groups can be named, not any blocks.
    #[must_use]
    pub const fn by_groups(self) -> bool {
        matches!(self, Self::Erase | Self::SecureErase)
    }
}

/// The erases of an SD card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SdErase {
    /// Blocks, which then read as erased.
    Erase,
    /// Blocks, which then read as anything; only if the SSR says so.
    Discard,
    /// The whole user area at once; only if the SSR says so.
    Full,
}

impl SdErase {
    /// Returns the argument of CMD38.
    #[must_use]
    pub const fn argument(self) -> u32 {
        match self {
            Self::Erase => 0,
            Self::Discard => 1,
            Self::Full => 2,
        }
    }
}
