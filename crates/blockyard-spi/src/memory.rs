//! The seam to the caller's memory: a transfer asks for it block by block, so it need not be in one
//! piece.

use crate::frame::BLOCK_BYTES;

/// Memory that a transfer writes to the card.
pub trait Source {
    /// Returns block `at` of the transfer, [`BLOCK_BYTES`] long.
    fn block(&self, at: u32) -> &[u8];
}

/// Memory that a transfer reads into.
pub trait Sink {
    /// Returns block `at` of the transfer, [`BLOCK_BYTES`] long. After a damaged block, it is asked
    /// for again.
    fn block_mut(&mut self, at: u32) -> &mut [u8];
}

/// Panics if there is no such block.
impl Source for [u8] {
    fn block(&self, at: u32) -> &[u8] {
        self.as_chunks::<BLOCK_BYTES>().0[at as usize].as_slice()
    }
}

/// Panics if there is no such block.
impl Sink for [u8] {
    fn block_mut(&mut self, at: u32) -> &mut [u8] {
        self.as_chunks_mut::<BLOCK_BYTES>().0[at as usize].as_mut_slice()
    }
}
