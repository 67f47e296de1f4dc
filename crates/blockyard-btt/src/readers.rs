//! The read tracking table (RTT): readers publish in it which blocks they read.
//!
//! # Rules (model-checked in `tests/readers_model.rs`)
//!
//! - **[reader-or-writer-sees]** A reader publishes its block and then loads the map entry again. A
//!   writer changes the map entry and then scans the table before it writes the freed block. Each
//!   has a sequentially consistent fence between the two steps, so that one sees the other, and no
//!   reader copies a block that is being written. With a weaker fence, each may miss the other.
//!
//! A freed block that a scan did not find stays unread until a sector gets it again.

use super::address::PostmapAba;
use super::padded::Padded;
use super::sync::{AtomicU64, Ordering, fence};
use alloc::boxed::Box;

/// A block of a device: its arena and its number in that arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockId(u64);

impl BlockId {
    /// Names block `block` of arena `arena`.
    #[must_use]
    pub const fn new(arena: usize, block: PostmapAba) -> Self {
        debug_assert!(block.0 < 1 << 31, "block number without state bits");
        // Never 0, which means that nothing is read.
        Self((arena as u64) << 32 | 1 << 31 | block.0 as u64)
    }
}

/// The table. Each of its words has one user at a time.
#[derive(Debug)]
pub struct Readers {
    words: Words,
}

#[derive(Debug)]
enum Words {
    /// One word per cache line.
    Padded(Box<[Padded<AtomicU64>]>),
    /// Eight words per cache line.
    Dense(Box<[AtomicU64]>),
}

impl Readers {
    /// Returns a table of `places` words, each in a cache line of its own if `padded`.
    #[must_use]
    pub fn new(places: u32, padded: bool) -> Self {
        debug_assert!(places > 0, "a device has at least one set of lanes");
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

    /// Publishes that `block` is about to be read. Load the map entry again after this
    /// ([reader-or-writer-sees]).
    #[inline]
    pub fn publish(&self, place: u32, block: BlockId) {
        debug_assert_eq!(
            self.place(place).load(Ordering::Relaxed),
            0,
            "a reader reads one block at a time"
        );
        self.place(place).store(block.0, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Publishes that nothing is being read.
    #[inline]
    pub fn clear(&self, place: u32) {
        self.place(place).store(0, Ordering::Release);
    }

    /// Calls `read` with each block that is being read ([reader-or-writer-sees]). Nobody reads a
    /// block that was freed before this call and is not among them.
    #[inline]
    pub fn each(&self, mut read: impl FnMut(BlockId)) {
        fence(Ordering::SeqCst);
        match &self.words {
            Words::Padded(words) => words.iter().for_each(|word| report_block(&mut read, &word.0)),
            Words::Dense(words) => words.iter().for_each(|word| report_block(&mut read, word)),
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

fn report_block(read: &mut impl FnMut(BlockId), word: &AtomicU64) {
    match word.load(Ordering::Acquire) {
        0 => {}
        block => read(BlockId(block)),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn each_place_tells_the_block_that_its_user_reads() {
        for padded in [false, true] {
            let readers = Readers::new(3, padded);
            (0..3).for_each(|place| readers.publish(place, block(place)));
            assert_eq!(blocks_read(&readers), [block(0), block(1), block(2)]);
            readers.clear(1);
            assert_eq!(blocks_read(&readers), [block(0), block(2)]);
            assert!(readers.reads(block(2)) && !readers.reads(block(1)));
        }
    }

    fn blocks_read(readers: &Readers) -> Vec<BlockId> {
        let mut read = Vec::new();
        readers.each(|block| read.push(block));
        read
    }

    fn block(n: u32) -> BlockId {
        BlockId::new(2, PostmapAba(n))
    }
}
