//! The capabilities of an export.

use core::ops::BitOr;

/// The capabilities of an export, sent as the transmission flags. A command or flag that is not
/// offered is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct ExportFlags(u16);

impl ExportFlags {
    /// No flag: the export takes only READ, and WRITE unless it is read-only.
    pub const NONE: Self = Self(0);
    /// The flags are valid. Always sent.
    pub(crate) const HAS_FLAGS: Self = Self(1 << 0);
    /// The export cannot be written.
    pub const READ_ONLY: Self = Self(1 << 1);
    /// The command FLUSH.
    pub const FLUSH: Self = Self(1 << 2);
    /// The flag FUA, which is then legal for every command.
    pub const FUA: Self = Self(1 << 3);
    /// The medium rotates: clients should schedule as for a hard disk.
    pub const ROTATIONAL: Self = Self(1 << 4);
    /// The command TRIM.
    pub const TRIM: Self = Self(1 << 5);
    /// The command WRITE_ZEROES, with the flag NO_HOLE.
    pub const WRITE_ZEROES: Self = Self(1 << 6);
    /// The flag DF. The handshake sets it if replies can be fragmented.
    pub(crate) const DF: Self = Self(1 << 7);
    /// A flush on one connection covers the writes that were answered on all connections.
    pub const CAN_MULTI_CONN: Self = Self(1 << 8);
    /// The command CACHE.
    pub const CACHE: Self = Self(1 << 10);
    /// The flag FAST_ZERO of WRITE_ZEROES.
    pub const FAST_ZERO: Self = Self(1 << 11);
    /// BLOCK_STATUS may name contexts. The handshake sets it if headers are extended and there are
    /// contexts.
    pub(crate) const BLOCK_STATUS_PAYLOAD: Self = Self(1 << 12);

    /// Returns whether all flags of `other` are set.
    #[must_use]
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the flags as the number on the wire.
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
