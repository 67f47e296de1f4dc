//! What a server says an export can do.

use core::ops::BitOr;

/// What a server says an export can do: the transmission flags. What is not offered is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct ExportFlags(u16);

impl ExportFlags {
    /// Nothing but reading and writing.
    pub const NONE: Self = Self(0);
    /// There are flags. Part of everything that is sent.
    pub(crate) const HAS_FLAGS: Self = Self(1 << 0);
    /// Nothing may be written.
    pub const READ_ONLY: Self = Self(1 << 1);
    /// FLUSH.
    pub const FLUSH: Self = Self(1 << 2);
    /// The flag FUA, which is then legal on every command.
    pub const FUA: Self = Self(1 << 3);
    /// Far jumps take long.
    pub const ROTATIONAL: Self = Self(1 << 4);
    /// TRIM.
    pub const TRIM: Self = Self(1 << 5);
    /// WRITE_ZEROES, with the flag NO_HOLE.
    pub const WRITE_ZEROES: Self = Self(1 << 6);
    /// The flag DF. Set by the handshake where replies can be fragmented.
    pub(crate) const DF: Self = Self(1 << 7);
    /// A flush on one connection covers what was answered on all others.
    pub const CAN_MULTI_CONN: Self = Self(1 << 8);
    /// CACHE.
    pub const CACHE: Self = Self(1 << 10);
    /// The flag FAST_ZERO of WRITE_ZEROES.
    pub const FAST_ZERO: Self = Self(1 << 11);
    /// BLOCK_STATUS may name contexts. Set by the handshake where headers are extended and there are
    /// contexts.
    pub(crate) const BLOCK_STATUS_PAYLOAD: Self = Self(1 << 12);

    /// Whether all of `other` is in this.
    #[must_use]
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flags as they are sent.
    #[must_use]
    pub fn number(self) -> u16 {
        self.0
    }
}

impl BitOr for ExportFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
