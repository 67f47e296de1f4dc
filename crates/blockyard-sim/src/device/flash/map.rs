//! The page-mapped translation of flash: where each unit lies, and the collection of blocks.
//!
//! Collection is greedy: it moves the valid units of the block with the fewest, within a die.

use crate::profile::{FlashProfile, RESERVE_BLOCKS, UNIT_BYTES};
use crate::workload::Prng;

/// A unit or a place that is nowhere.
const NOWHERE: u32 = u32::MAX;

/// What a placement on a die cost beyond its own program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Collected {
    /// Valid units that were moved.
    pub(super) moved: u64,
    /// Blocks that were erased.
    pub(super) erased: u64,
}

/// The map.
#[derive(Debug)]
pub(super) struct Map {
    block_units: usize,
    die_blocks: usize,
    /// For each unit, its place.
    place_of: Vec<u32>,
    /// For each place, its unit if it is valid.
    unit_at: Vec<u32>,
    /// For each block, its valid units.
    valid: Vec<u32>,
    dies: Vec<Die>,
}

/// The blocks of a die.
#[derive(Debug)]
struct Die {
    free: Vec<u32>,
    open: u32,
    /// Places of the open block that are taken.
    taken: usize,
    /// Valid units of all blocks.
    valid: usize,
}

impl Map {
    /// Returns the map of a drive in the state that `profile` gives, as `prng` draws its overwrites.
    pub(super) fn new(profile: &FlashProfile, prng: &mut Prng) -> Self {
        let small = |n: u64| usize::try_from(n).expect("a map should fit in memory");
        let (block_units, die_blocks) = (small(profile.block_units()), small(profile.die_blocks()));
        let (dies, units) = (small(profile.all_dies()), small(profile.simulated / UNIT_BYTES));
        let blocks = dies * die_blocks;
        let number = |n: usize| u32::try_from(n).expect("places should be below 2 to the 32");
        let die = |die| {
            let mut free: Vec<_> =
                (die * die_blocks..(die + 1) * die_blocks).map(number).rev().collect();
            let open = free.pop().expect("a die should have blocks");
            Die { free, open, taken: 0, valid: 0 }
        };
        let mut map = Self {
            block_units,
            die_blocks,
            place_of: vec![NOWHERE; units],
            unit_at: vec![NOWHERE; blocks * block_units],
            valid: vec![0; blocks],
            dies: (0..dies).map(die).collect(),
        };
        let filled = units * usize::from(profile.fill) / 100;
        let stripe = small(profile.program_units());
        for unit in 0..filled {
            let die = map.with_room(unit / stripe % dies);
            map.put(die, number(unit));
        }
        let overwrites = filled * usize::from(profile.overwritten) / 100;
        for nth in 0..overwrites {
            let unit = prng.below(filled as u64);
            let die = map.with_room(nth / stripe % dies);
            map.put(die, u32::try_from(unit).expect("a unit should be a u32"));
        }
        map
    }

    /// Returns how many units the map has.
    pub(super) fn units(&self) -> u64 {
        self.place_of.len() as u64
    }

    /// Returns the place of `unit`, if it holds data.
    pub(super) fn place(&self, unit: u32) -> Option<u32> {
        Some(self.place_of[unit as usize]).filter(|place| *place != NOWHERE)
    }

    /// Returns the die of `place`.
    pub(super) fn die_of(&self, place: u32) -> usize {
        place as usize / self.block_units / self.die_blocks
    }

    /// Returns the first die from `die` on, in turn, that keeps enough spare for collection after one more program.
    pub(super) fn with_room(&self, die: usize) -> usize {
        let most = (self.die_blocks - 3) * self.block_units;
        let dies = self.dies.len();
        let mut turn = (0..dies).map(|nth| (die + nth) % dies);
        turn.find(|die| self.dies[*die].valid < most).expect("the spare should leave room on a die")
    }

    /// Forgets the data of `unit`.
    pub(super) fn unmap(&mut self, unit: u32) {
        let place = core::mem::replace(&mut self.place_of[unit as usize], NOWHERE);
        if place != NOWHERE {
            self.unit_at[place as usize] = NOWHERE;
            self.valid[place as usize / self.block_units] -= 1;
            let die = self.die_of(place);
            self.dies[die].valid -= 1;
        }
    }

    /// Puts `unit` on `die`, collecting blocks first if few are free.
    pub(super) fn put(&mut self, die: usize, unit: u32) -> Collected {
        debug_assert!(die < self.dies.len(), "a die should be one of the map's");
        self.unmap(unit);
        let mut collected = Collected::default();
        while self.dies[die].taken == self.block_units
            && (self.dies[die].free.len() as u64) < RESERVE_BLOCKS
        {
            collected.moved += self.collect(die);
            collected.erased += 1;
        }
        self.append(die, unit);
        collected
    }

    /// Leaves one place of `die` without data, to fill up a program.
    pub(super) fn pad(&mut self, die: usize) {
        let die = &mut self.dies[die];
        die.taken = (die.taken + 1).min(self.block_units);
    }

    fn append(&mut self, die: usize, unit: u32) {
        let at = &mut self.dies[die];
        if at.taken == self.block_units {
            at.open = at.free.pop().expect("collection should keep a block free");
            at.taken = 0;
        }
        let place = at.open as usize * self.block_units + at.taken;
        at.taken += 1;
        debug_assert_eq!(self.unit_at[place], NOWHERE, "a place is written once between erases");
        self.unit_at[place] = unit;
        self.place_of[unit as usize] = u32::try_from(place).expect("a place should be a u32");
        at.valid += 1;
        self.valid[at.open as usize] += 1;
    }

    /// Empties the closed block of `die` with the fewest valid units, and returns how many it moved.
    fn collect(&mut self, die: usize) -> u64 {
        let blocks = die * self.die_blocks..(die + 1) * self.die_blocks;
        // Neither a free block nor an empty closed one has a valid unit: only the list distinguishes them.
        let Die { free, open, .. } = &self.dies[die];
        let closed =
            blocks.filter(|b| *b != *open as usize && !free.iter().any(|f| *f as usize == *b));
        let victim =
            closed.min_by_key(|block| self.valid[*block]).expect("a block should be closed");
        let moved = self.valid[victim];
        debug_assert!((moved as usize) < self.block_units, "a die has room for collection");
        for place in victim * self.block_units..(victim + 1) * self.block_units {
            let unit = core::mem::replace(&mut self.unit_at[place], NOWHERE);
            if unit != NOWHERE {
                self.append(die, unit);
            }
        }
        self.valid[victim] = 0;
        self.dies[die].valid -= moved as usize;
        self.dies[die].free.push(u32::try_from(victim).expect("a block should be a u32"));
        moved.into()
    }
}
