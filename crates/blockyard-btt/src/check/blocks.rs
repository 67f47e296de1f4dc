//! The blocks of an arena that have an owner: a bit for each block.

use alloc::vec;
use alloc::vec::Vec;

const WORD: u32 = u64::BITS;

/// A set of block numbers.
#[derive(Debug)]
pub(super) struct Blocks {
    words: Vec<u64>,
    len: u32,
}

impl Blocks {
    /// Returns an empty set that can hold `len` blocks.
    pub(super) fn new(len: u32) -> Self {
        Self { words: vec![0; len.div_ceil(WORD) as usize], len }
    }

    /// Adds a block. Returns whether it is new.
    pub(super) fn put(&mut self, block: u32) -> bool {
        debug_assert!(block < self.len, "block of the arena");
        let word = &mut self.words[(block / WORD) as usize];
        let bit = 1 << (block % WORD);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// Adds the blocks from `first` to before `end` if all of them are new. Returns whether they
    /// are.
    pub(super) fn put_run(&mut self, first: u32, end: u32) -> bool {
        debug_assert!(first <= end, "an ordered range of blocks");
        if end > self.len || !words_of(first, end).all(|(word, bits)| self.words[word] & bits == 0)
        {
            return false;
        }
        words_of(first, end).for_each(|(word, bits)| self.words[word] |= bits);
        true
    }

    /// Whether the set contains a block.
    pub(super) fn has(&self, block: u32) -> bool {
        debug_assert!(block < self.len, "block of the arena");
        self.words[(block / WORD) as usize] & 1 << (block % WORD) != 0
    }

    /// Returns the blocks that the set does not contain, in order.
    pub(super) fn missing(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.words).filter(|&(_, &word)| word != u64::MAX).flat_map(|(n, &word)| {
            let all = n * WORD..(n * WORD + WORD).min(self.len);
            all.filter(move |block| word & 1 << (block % WORD) == 0)
        })
    }
}

/// Returns the words that hold the blocks from `first` to before `end`, with their bits in each
/// word.
fn words_of(first: u32, end: u32) -> impl Iterator<Item = (usize, u64)> {
    (first / WORD..end.div_ceil(WORD))
        .map(move |word| (word as usize, bits_below(word, end) & !bits_below(word, first)))
}

fn bits_below(word: u32, block: u32) -> u64 {
    match block.saturating_sub(word * WORD) {
        count @ 0..WORD => (1_u64 << count) - 1,
        _ => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard::prng::Prng;
    use std::collections::BTreeSet;

    #[test]
    fn blocks_behave_like_a_set() {
        let mut prng = Prng::new(1);
        for _ in 0..200 {
            let len = 1 + prng.below(300) as u32;
            let mut blocks = Blocks::new(len);
            let mut set = BTreeSet::new();
            for _ in 0..20 {
                let first = prng.below(u64::from(len)) as u32;
                let end = first + prng.below(u64::from(len - first) + 1) as u32;
                if prng.below(2) == 0 {
                    assert_eq!(blocks.put(first), set.insert(first));
                } else if set.range(first..end).next().is_none() {
                    assert!(blocks.put_run(first, end), "{first}..{end} of {len}");
                    set.extend(first..end);
                } else {
                    assert!(!blocks.put_run(first, end), "{first}..{end} of {len}");
                }
                assert!((0..len).all(|block| blocks.has(block) == set.contains(&block)));
                assert!(blocks.missing().eq((0..len).filter(|block| !set.contains(block))));
            }
            assert!(!blocks.put_run(0, len + 1), "a run beyond the end");
        }
    }
}
