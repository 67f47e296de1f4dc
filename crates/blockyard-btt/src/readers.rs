//! The read tracking table (RTT): which blocks are being read, where readers publish them.
//!
//! # Rules (model-checked in `tests/btt_readers_model.rs`)
//!
//! - **R1.** A reader publishes the block, and then looks at the map entry again; a writer changes the map
//!   entry, and then looks at what is published before it writes the block that the sector lost. Between
//!   the two of each lies a sequentially consistent fence, so that one of them sees the other: no reader
//!   copies a block that is being written. With less, each may miss the other.
//! - **R2.** A block that nobody was seen to read after its sector lost it, nobody reads ever after, until a
//!   sector gets it again.

use super::address::PostmapAba;
use super::padded::Padded;
use super::sync::{AtomicU64, Ordering, fence};
use alloc::boxed::Box;

/// A block of a device: its arena and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockId(u64);

impl BlockId {
    /// Block `block` of arena `arena`.
    #[must_use]
    pub const fn new(arena: usize, block: PostmapAba) -> Self {
        // Never 0, which is nobody's.
        Self((arena as u64) << 32 | 1 << 31 | block.0 as u64)
    }
}

/// The table. Each place in it has one user at a time.
#[derive(Debug)]
pub struct Readers {
    words: Words,
}

#[derive(Debug)]
enum Words {
    /// A word a line.
    Padded(Box<[Padded<AtomicU64>]>),
    /// Eight words a line.
    Dense(Box<[AtomicU64]>),
}

impl Readers {
    /// A table of `places`, each in a cache line of its own or not.
    #[must_use]
    pub fn new(places: u32, padded: bool) -> Self {
        let words = if padded {
            Words::Padded((0..places).map(|_| Padded::default()).collect())
        } else {
            Words::Dense((0..places).map(|_| AtomicU64::default()).collect())
        };
        Self { words }
    }

    fn place(&self, place: u32) -> &AtomicU64 {
        match &self.words {
            Words::Padded(words) => &words[place as usize].0,
            Words::Dense(words) => &words[place as usize],
        }
    }

    /// Publishes that `block` is about to be read (R1): the map entry is to be looked at after.
    #[inline]
    pub fn publish(&self, place: u32, block: BlockId) {
        self.place(place).store(block.0, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Publishes that nothing is read.
    #[inline]
    pub fn clear(&self, place: u32) {
        self.place(place).store(0, Ordering::Release);
    }

    /// Calls `read` with each block that is being read (R1). Blocks that sectors lost before this call, and
    /// that it does not name, nobody reads (R2).
    #[inline]
    pub fn each(&self, mut read: impl FnMut(BlockId)) {
        fence(Ordering::SeqCst);
        let mut look = |word: &AtomicU64| match word.load(Ordering::Acquire) {
            0 => {}
            block => read(BlockId(block)),
        };
        match &self.words {
            Words::Padded(words) => words.iter().for_each(|word| look(&word.0)),
            Words::Dense(words) => words.iter().for_each(look),
        }
    }

    /// Whether `block` is being read.
    #[must_use]
    pub fn reads(&self, block: BlockId) -> bool {
        let mut found = false;
        self.each(|read| found |= read == block);
        found
    }
}
