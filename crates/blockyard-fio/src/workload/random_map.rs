//! fio's random map: the blocks that a pass has not used yet.

use super::prng::Prng;

const WORD: u64 = u64::BITS as u64;

/// A set of blocks, in levels of words: a bit of each level but the first says whether a word of
/// the level below has a free block.
#[derive(Clone, Debug)]
pub(super) struct RandomMap {
    blocks: u64,
    /// The free blocks, and whether words of the level below have any.
    levels: Vec<Vec<u64>>,
}

fn index(word: u64) -> usize {
    usize::try_from(word).expect("a map in memory")
}

impl RandomMap {
    /// Returns a map of `blocks`, all free. It takes about an eighth of a byte for each.
    pub(super) fn new(blocks: u64) -> Self {
        debug_assert!(blocks > 0, "a map without blocks");
        let mut map = Self { blocks, levels: Vec::new() };
        let mut bits = blocks;
        loop {
            let words = bits.div_ceil(WORD);
            map.levels.push(vec![0; index(words)]);
            if words == 1 {
                break;
            }
            bits = words;
        }
        map.free_all();
        map
    }

    /// Frees all blocks.
    pub(super) fn free_all(&mut self) {
        let mut bits = self.blocks;
        for level in &mut self.levels {
            level.fill(u64::MAX);
            let last = bits % WORD;
            if let Some(word) = level.last_mut().filter(|_| last > 0) {
                *word = (1 << last) - 1;
            }
            bits = level.len() as u64;
        }
    }

    /// Draws a free block as fio does: if the one that was drawn is used, the next free one behind
    /// it, or from the start. Returns `None` if all are used.
    pub(super) fn draw(&self, prng: &mut Prng) -> Option<u64> {
        let drawn = prng.below(self.blocks);
        self.free_from(drawn).or_else(|| self.free_from(0))
    }

    /// Uses up to `count` blocks from the free block `first` on, up to the first used one. Returns
    /// their number.
    pub(super) fn take(&mut self, first: u64, count: u64) -> u64 {
        debug_assert!(count > 0 && self.is_free(first), "block {first} of {}", self.blocks);
        let mut taken = 0;
        while taken < count && first + taken < self.blocks && self.is_free(first + taken) {
            self.use_one(first + taken);
            taken += 1;
        }
        taken
    }

    fn is_free(&self, block: u64) -> bool {
        self.levels[0][index(block / WORD)] >> (block % WORD) & 1 == 1
    }

    fn use_one(&mut self, block: u64) {
        let mut bit = block;
        for level in &mut self.levels {
            let word = &mut level[index(bit / WORD)];
            *word &= !(1 << (bit % WORD));
            if *word != 0 {
                break;
            }
            bit /= WORD;
        }
    }

    /// Returns the first free block from `block` on.
    fn free_from(&self, block: u64) -> Option<u64> {
        let mut bit = block;
        for (height, level) in self.levels.iter().enumerate() {
            let word = index(bit / WORD);
            let shift = bit % WORD;
            let rest = level.get(word).map_or(0, |bits| bits >> shift);
            if rest != 0 {
                let mut found = bit + u64::from(rest.trailing_zeros());
                for below in self.levels[..height].iter().rev() {
                    found = found * WORD + u64::from(below[index(found)].trailing_zeros());
                }
                return Some(found);
            }
            bit = bit / WORD + 1; // the words behind this one
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_is_the_next_free_block_as_of_a_plain_list() {
        let mut prng = Prng::new(3);
        for blocks in [1, 2, 63, 64, 65, 4096, 4097, 300_000] {
            let mut map = RandomMap::new(blocks);
            let mut plain = vec![true; usize::try_from(blocks).unwrap()];
            for _ in 0..2000 {
                let mut same = prng.clone();
                let drawn = index(same.below(blocks));
                let found = (drawn..plain.len()).chain(0..drawn).find(|at| plain[*at]);
                assert_eq!(map.draw(&mut prng), found.map(|at| at as u64), "{blocks}");
                let Some(first) = found else { break };
                let count = 1 + prng.below(100);
                let mut expected = 0;
                for free in plain[first..].iter_mut().take(index(count)).take_while(|free| **free) {
                    *free = false;
                    expected += 1;
                }
                assert_eq!(map.take(first as u64, count), expected, "{blocks}");
            }
        }
    }

    #[test]
    fn a_full_map_has_no_block_until_all_are_free() {
        let mut map = RandomMap::new(130);
        assert_eq!(map.take(0, 1000), 130);
        assert_eq!(map.draw(&mut Prng::new(1)), None);
        map.free_all();
        assert_eq!(map.take(129, 2), 1);
        assert_eq!(map.free_from(129), None);
        assert_eq!(map.free_from(0), Some(0));
    }
}
