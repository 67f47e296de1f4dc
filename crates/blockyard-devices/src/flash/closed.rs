//! The closed blocks of each die, by the number of their valid units and by their age.
//!
//! The age of a block counts the changes of closed blocks since its own last one: a unit of it was
//! overwritten, or it was closed.
//!
//! Among blocks with as many valid units, cost-benefit collection prefers the oldest. So a choice
//! compares at most one block for each number of units that a block has.

/// No block.
const NONE: u32 = u32::MAX;
/// The neighbour of a block that is in no list.
const UNLISTED: u32 = u32::MAX - 1;

/// The lists: one for each die and number of valid units, in the order of their last changes. A
/// change takes constant time.
#[derive(Debug)]
pub(super) struct Closed {
    /// Lists of a die.
    lists: usize,
    /// For each list, its oldest and its youngest block.
    ends: Vec<(u32, u32)>,
    /// For each block, the older and the younger one beside it in its list.
    links: Vec<(u32, u32)>,
    /// For each block, the changes before its last one.
    changed: Vec<u64>,
    changes: u64,
    /// For each die, a number of valid units below which all its lists are empty.
    least: Vec<usize>,
}

impl Closed {
    /// Returns empty lists for `blocks` of up to `block_units` on `dies`.
    pub(super) fn new(dies: usize, blocks: usize, block_units: usize) -> Self {
        debug_assert!(blocks.is_multiple_of(dies), "each die has as many of {blocks} blocks");
        debug_assert!(blocks < UNLISTED as usize, "numbers of blocks stand for blocks");
        let lists = block_units + 1;
        Self {
            lists,
            ends: vec![(NONE, NONE); dies * lists],
            links: vec![(UNLISTED, NONE); blocks],
            changed: vec![0; blocks],
            changes: 0,
            least: vec![lists; dies],
        }
    }

    /// Whether `block` is closed.
    pub(super) fn contains(&self, block: u32) -> bool {
        self.links[block as usize].0 != UNLISTED
    }

    /// Adds `block` of `die`, which has `valid` units, as the youngest.
    pub(super) fn insert(&mut self, die: usize, block: u32, valid: u32) {
        debug_assert!(!self.contains(block), "block {block} was closed before");
        let valid = valid as usize;
        debug_assert!(valid < self.lists, "a block has a limit of units");
        let ends = &mut self.ends[die * self.lists + valid];
        let older = core::mem::replace(&mut ends.1, block);
        self.links[block as usize] = (older, NONE);
        match older {
            NONE => ends.0 = block,
            older => self.links[older as usize].1 = block,
        }
        self.changed[block as usize] = self.changes;
        self.changes += 1;
        self.least[die] = self.least[die].min(valid);
    }

    /// Removes `block` of `die`, which has `valid` units.
    pub(super) fn remove(&mut self, die: usize, block: u32, valid: u32) {
        debug_assert!(self.contains(block), "block {block} should be closed");
        debug_assert!((valid as usize) < self.lists, "block {block} has {valid} valid units");
        let (older, younger) =
            core::mem::replace(&mut self.links[block as usize], (UNLISTED, NONE));
        let ends = &mut self.ends[die * self.lists + valid as usize];
        match older {
            NONE => ends.0 = younger,
            older => self.links[older as usize].1 = younger,
        }
        match younger {
            NONE => ends.1 = older,
            younger => self.links[younger as usize].0 = older,
        }
    }

    /// Removes a block of `die` with the fewest valid units, the last one that came to have so
    /// many, and returns it.
    pub(super) fn take_least(&mut self, die: usize) -> Option<u32> {
        let (valid, (_, block)) = self.filled(die).next()?;
        self.least[die] = valid;
        self.take(die, block, valid)
    }

    /// Removes the block of `die` with the greatest benefit for its cost, and returns it: age (1 -
    /// u) / 2u, where u is the share of its units that is valid. A block without valid units costs
    /// nothing. Of blocks with the same u only the oldest is compared.
    pub(super) fn take_best(&mut self, die: usize) -> Option<u32> {
        let (least, _) = self.filled(die).next()?;
        self.least[die] = least;
        let better = |one: (usize, (u32, u32)), other: (usize, (u32, u32))| {
            let (benefit, cost) = self.score(one.0, one.1.0);
            let (other_benefit, other_cost) = self.score(other.0, other.1.0);
            if benefit * other_cost >= other_benefit * cost { one } else { other }
        };
        let (valid, (block, _)) = self.filled(die).reduce(better)?;
        self.take(die, block, valid)
    }

    /// Returns the benefit of `block`, which has `valid` units, and its cost: both in proportion to
    /// those of other blocks.
    fn score(&self, valid: usize, block: u32) -> (u128, u128) {
        let age = u128::from(self.changes - self.changed[block as usize]);
        let all = self.lists - 1;
        (age * (all - valid) as u128, valid as u128)
    }

    /// Returns the numbers of valid units that blocks of `die` have, from the fewest on, each with
    /// its oldest and its youngest block.
    fn filled(&self, die: usize) -> impl Iterator<Item = (usize, (u32, u32))> {
        let ends = &self.ends[die * self.lists..(die + 1) * self.lists];
        let lists = self.least[die]..self.lists;
        lists.map(|valid| (valid, ends[valid])).filter(|(_, (oldest, _))| *oldest != NONE)
    }

    fn take(&mut self, die: usize, block: u32, valid: usize) -> Option<u32> {
        self.remove(die, block, u32::try_from(valid).expect("a block should have few units"));
        Some(block)
    }
}
