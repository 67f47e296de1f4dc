//! The data that a command transfers.

/// What a command transfers on the data lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Who sends.
    pub direction: Direction,
    /// Bytes of a block.
    pub block_bytes: u16,
    /// Number of blocks, at least 1.
    pub blocks: u16,
}

impl Data {
    /// Bytes in all.
    #[must_use]
    pub const fn bytes(&self) -> u32 {
        self.block_bytes as u32 * self.blocks as u32
    }
}

/// Who sends data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The card.
    Read,
    /// The host.
    Write,
}
