//! fio's random map: the blocks that a pass has used.
//!
//! A job that uses few blocks of a large region keeps a table of them, so that memory grows with
//! its I/Os. As soon as a map with a bit for each block is smaller than the table, it replaces the
//! table. A region of 1 TB in blocks of 4 KiB needs a table of 8 MiB after half a million I/Os, and
//! never more than the 32 MiB of its bits.

use super::prng::Prng;

const WORD: u64 = u64::BITS as u64;

/// The places of the smallest table.
const PLACES_MIN: usize = 64;

/// An empty place of a table: no block has this number.
const EMPTY: u64 = u64::MAX;

/// The blocks of a region, free or used.
#[derive(Clone, Debug)]
pub(super) struct RandomMap {
    blocks: u64,
    used: Used,
}

#[derive(Clone, Debug)]
enum Used {
    Few(Table),
    Many(Bits),
}

/// The used blocks, scattered over a power of two of places, of which at most half are in use. A
/// block is at the first empty place from its own on.
#[derive(Clone, Debug)]
struct Table {
    places: Vec<u64>,
    count: usize,
}

/// A set of free blocks, in levels of words: a bit of each level but the first says whether a word
/// of the level below has a free block.
#[derive(Clone, Debug)]
struct Bits {
    blocks: u64,
    levels: Vec<Vec<u64>>,
}

fn index(word: u64) -> usize {
    usize::try_from(word).expect("a map in memory")
}

impl RandomMap {
    /// Returns a map of `blocks`, all free. It takes at most a little more than a bit for each.
    pub(super) fn new(blocks: u64) -> Self {
        debug_assert!(blocks > 0, "a map without blocks");
        let used = match Table::new(PLACES_MIN, blocks) {
            Some(table) => Used::Few(table),
            None => Used::Many(Bits::new(blocks)),
        };
        Self { blocks, used }
    }

    /// Frees all blocks.
    pub(super) fn free_all(&mut self) {
        match &mut self.used {
            Used::Few(table) if table.count == 0 => {}
            Used::Many(bits) if Table::new(PLACES_MIN, self.blocks).is_none() => bits.free_all(),
            _ => *self = Self::new(self.blocks),
        }
    }

    /// Draws one of the first `among` blocks as fio does: if it is used, the next free one behind
    /// it, or from the start. Returns `None` if all are used, or if it is not one of the first.
    #[inline]
    pub(super) fn draw(&self, among: u64, prng: &mut Prng) -> Option<u64> {
        debug_assert!(among <= self.blocks, "{among} of {} blocks", self.blocks);
        let drawn = prng.below(among);
        let free = match &self.used {
            Used::Few(table) => {
                (drawn..self.blocks).chain(0..drawn).find(|block| !table.has(*block))
            }
            Used::Many(bits) => bits.free_from(drawn).or_else(|| bits.free_from(0)),
        };
        free.filter(|block| *block < among)
    }

    /// Uses up to `count` blocks from the free block `first` on, up to the first used one. Returns
    /// their number.
    #[inline]
    pub(super) fn take(&mut self, first: u64, count: u64) -> u64 {
        debug_assert!(count > 0 && self.is_free(first), "block {first} of {}", self.blocks);
        let mut taken = 0;
        while taken < count && first + taken < self.blocks && self.is_free(first + taken) {
            self.use_one(first + taken);
            taken += 1;
        }
        taken
    }

    #[inline]
    fn is_free(&self, block: u64) -> bool {
        match &self.used {
            Used::Few(table) => !table.has(block),
            Used::Many(bits) => bits.is_free(block),
        }
    }

    #[inline]
    fn use_one(&mut self, block: u64) {
        match &mut self.used {
            Used::Many(bits) => bits.use_one(block),
            Used::Few(table) => {
                table.insert(block);
                if table.is_full() {
                    self.grow();
                }
            }
        }
    }

    /// Replaces a full table by one that is twice as large, or by the bits of all blocks.
    #[cold]
    fn grow(&mut self) {
        let Used::Few(full) = &self.used else { return };
        let used = full.places.iter().filter(|block| **block != EMPTY);
        self.used = match Table::new(full.places.len() * 2, self.blocks) {
            Some(mut table) => {
                used.for_each(|block| table.insert(*block));
                Used::Few(table)
            }
            None => {
                let mut bits = Bits::new(self.blocks);
                used.for_each(|block| bits.use_one(*block));
                Used::Many(bits)
            }
        };
    }
}

impl Table {
    /// Returns an empty table, or `None` if the bits of `blocks` are no larger.
    fn new(places: usize, blocks: u64) -> Option<Self> {
        debug_assert!(places.is_power_of_two(), "{places} places");
        let bits = places as u64 * u64::from(u64::BITS);
        (bits < blocks).then(|| Self { places: vec![EMPTY; places], count: 0 })
    }

    const fn is_full(&self) -> bool {
        self.count * 2 >= self.places.len()
    }

    #[inline]
    fn has(&self, block: u64) -> bool {
        self.places[self.place(block)] == block
    }

    /// Adds a block that is not in the table, which is not full.
    #[inline]
    fn insert(&mut self, block: u64) {
        let place = self.place(block);
        debug_assert!(self.places[place] == EMPTY, "block {block} was used before");
        self.places[place] = block;
        self.count += 1;
    }

    /// Returns the place of a block, or the empty one where it belongs.
    #[inline]
    fn place(&self, block: u64) -> usize {
        // The high bits of the product depend on all bits of the block (Fibonacci hashing).
        let scattered = block.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let last = self.places.len() - 1;
        let mut place = index(scattered) & last;
        while self.places[place] != EMPTY && self.places[place] != block {
            place = (place + 1) & last;
        }
        place
    }
}

impl Bits {
    fn new(blocks: u64) -> Self {
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

    fn free_all(&mut self) {
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

    #[inline]
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
        // 300,000 blocks begin as a table, and become bits when the table has 4096 of 8192 places:
        // 8192 times 64 bits are more than 300,000.
        for blocks in [1, 2, 63, 64, 65, 4096, 4097, 300_000] {
            let mut map = RandomMap::new(blocks);
            let mut plain = vec![true; usize::try_from(blocks).unwrap()];
            for _ in 0..2000 {
                let mut same = prng.clone();
                let drawn = index(same.below(blocks));
                let found = (drawn..plain.len()).chain(0..drawn).find(|at| plain[*at]);
                assert_eq!(map.draw(blocks, &mut prng), found.map(|at| at as u64), "{blocks}");
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
        assert_eq!(map.draw(130, &mut Prng::new(1)), None);
        map.free_all();
        assert_eq!(map.take(129, 2), 1);
        assert_eq!((map.is_free(129), map.is_free(128)), (false, true));
    }

    #[test]
    fn a_free_block_beyond_those_of_its_kind_is_none() {
        // The only free block of the first ten is the second one. From the third one on, the next
        // free block is the eleventh.
        for blocks in [16, 300_000] {
            let mut map = RandomMap::new(blocks);
            map.take(0, 1);
            map.take(2, 8);
            let mut prng = Prng::new(1);
            for _ in 0..100 {
                let drawn = prng.clone().below(10);
                assert_eq!(map.draw(10, &mut prng), (drawn < 2).then_some(1), "{drawn}");
            }
        }
    }

    #[test]
    fn memory_grows_with_used_blocks_up_to_a_bit_for_each() {
        // 1 TB in blocks of 4 KiB. A table of 131,072 places is full with 65,536 blocks, and then
        // has 262,144 places.
        let blocks = 1_000_000_000_000 / 4096;
        let mut map = RandomMap::new(blocks);
        for block in 0..100_000 {
            assert_eq!(map.take(block * 2441, 1), 1);
        }
        let Used::Few(table) = &map.used else { panic!("100,000 of {blocks} blocks are few") };
        assert_eq!((table.count, table.places.len()), (100_000, 262_144));
        // A table of 512 places is full with 256 blocks. One of 1024 has as many bits as 65,536
        // blocks.
        let mut map = RandomMap::new(65_536);
        assert_eq!(map.take(100, 255), 255);
        assert!(matches!(map.used, Used::Few(_)));
        assert_eq!(map.take(355, 1), 1);
        assert!(matches!(map.used, Used::Many(_)));
        assert_eq!((map.is_free(355), map.is_free(356), map.is_free(99)), (false, true, true));
        map.free_all();
        assert!(matches!(map.used, Used::Few(_)) && map.is_free(355));
    }
}
