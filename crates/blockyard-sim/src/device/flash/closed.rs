//! The closed blocks of each die, by the number of their valid units. Each call takes constant time, over many calls.

/// No block.
const NONE: u32 = u32::MAX;
/// The neighbour of a block that is in no list.
const UNLISTED: u32 = u32::MAX - 1;

/// The lists: one for each die and number of valid units.
#[derive(Debug)]
pub(super) struct Closed {
    /// Lists of a die.
    lists: usize,
    /// For each list, its first block.
    first: Vec<u32>,
    /// For each block, those before and after it in its list.
    links: Vec<(u32, u32)>,
    /// For each die, a number of valid units below which all its lists are empty.
    least: Vec<usize>,
}

impl Closed {
    /// Returns empty lists for `blocks` of up to `block_units` on `dies`.
    pub(super) fn new(dies: usize, blocks: usize, block_units: usize) -> Self {
        let lists = block_units + 1;
        Self {
            lists,
            first: vec![NONE; dies * lists],
            links: vec![(UNLISTED, NONE); blocks],
            least: vec![lists; dies],
        }
    }

    /// Whether `block` is closed.
    pub(super) fn contains(&self, block: u32) -> bool {
        self.links[block as usize].0 != UNLISTED
    }

    /// Adds `block` of `die`, which has `valid` units.
    pub(super) fn insert(&mut self, die: usize, block: u32, valid: u32) {
        debug_assert!(!self.contains(block), "block {block} was closed before");
        let valid = valid as usize;
        debug_assert!(valid < self.lists, "a block has a limit of units");
        let first = core::mem::replace(&mut self.first[die * self.lists + valid], block);
        self.links[block as usize] = (NONE, first);
        if first != NONE {
            self.links[first as usize].0 = block;
        }
        self.least[die] = self.least[die].min(valid);
    }

    /// Removes `block` of `die`, which has `valid` units.
    pub(super) fn remove(&mut self, die: usize, block: u32, valid: u32) {
        debug_assert!(self.contains(block), "block {block} should be closed");
        let (before, after) = core::mem::replace(&mut self.links[block as usize], (UNLISTED, NONE));
        match before {
            NONE => self.first[die * self.lists + valid as usize] = after,
            before => self.links[before as usize].1 = after,
        }
        if after != NONE {
            self.links[after as usize].0 = before;
        }
    }

    /// Removes a block of `die` with the fewest valid units, the last one that came to have so many, and returns it.
    pub(super) fn take_least(&mut self, die: usize) -> Option<u32> {
        let lists = &self.first[die * self.lists..(die + 1) * self.lists];
        let valid = (self.least[die]..self.lists).find(|valid| lists[*valid] != NONE)?;
        let block = lists[valid];
        self.least[die] = valid;
        self.remove(die, block, u32::try_from(valid).expect("a block should have few units"));
        Some(block)
    }
}
