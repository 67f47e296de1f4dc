//! The data that a command transfers.

/// The data that a command transfers on the data lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// The direction of the data.
    pub direction: Direction,
    /// Bytes in a block.
    pub block_bytes: u16,
    /// Number of blocks, at least 1.
    pub blocks: u16,
}

impl Data {
    /// Returns the number of bytes.
    #[must_use]
    pub const fn bytes(&self) -> u32 {
        self.block_bytes as u32 * self.blocks as u32
    }
}

/// The sender of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The card.
    Read,
    /// The host.
    Write,
}
