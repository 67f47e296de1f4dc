//! The page-mapped translation of flash: where each unit lies, and which blocks of a die have room.
//!
//! # Rules
//!
//! - **[row-at-once]** A program takes a row of a block, as many units as all planes of the die
//!   write together. A place of it without data stays empty until its block is erased.
//! - **[last-block-for-collection]** Only collection opens the last free block of a die, and writes
//!   to it until another one is free. So it can always go on.
//!
//! Cost-benefit collection moves data to blocks of its own. So data that is seldom overwritten
//! gathers there, instead of sharing blocks with new data again.

use super::closed::Closed;
use crate::flash::profile::{Choice, FlashProfile, RESERVE_BLOCKS};
use core::ops::Range;

/// A unit without data, or a place without a valid unit.
const NOWHERE: u32 = u32::MAX;
/// A unit that waits in the write buffer.
const BUFFERED: u32 = u32::MAX - 1;

/// Units of a word of [`Map::placed`].
const WORD_UNITS: usize = u64::BITS as usize;

/// A unit that a program writes, and where its data was when it was read. The place stays empty if
/// it has moved since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Source {
    unit: u32,
    from: u32,
}

impl Source {
    /// Returns the data of `unit` in the write buffer.
    pub(super) const fn buffer(unit: u32) -> Self {
        Self { unit, from: BUFFERED }
    }
}

/// The map.
#[derive(Debug)]
pub(super) struct Map {
    row_units: usize,
    block_units: usize,
    die_blocks: usize,
    /// The valid units of a die beyond which programs of the buffer go to others.
    die_units: usize,
    /// For each unit, its place.
    place_of: Vec<u32>,
    /// For each unit, a bit: whether it has a place.
    placed: Vec<u64>,
    /// For each place, its unit if it is valid.
    unit_at: Vec<u32>,
    /// For each block, its valid units.
    valid: Vec<u32>,
    /// For each row, whether it has data from before the run.
    old: Vec<bool>,
    closed: Closed,
    /// How collection chooses a block.
    choice: Choice,
    dies: Vec<Die>,
}

/// The blocks of a die.
#[derive(Debug)]
struct Die {
    free: Vec<u32>,
    /// The block that programs of the buffer fill, and the one for moved data if it has its own.
    open: Vec<Open>,
    /// Valid units of all blocks.
    valid: usize,
}

/// A block that programs fill.
#[derive(Debug)]
struct Open {
    block: u32,
    /// Places that are taken.
    taken: usize,
}

fn small(n: u64) -> usize {
    usize::try_from(n).expect("a map should fit in memory")
}

impl Map {
    /// Returns the map of a drive by `profile`, for the units that hold data, without any of it.
    pub(super) fn new(profile: &FlashProfile) -> Self {
        let block_units = small(profile.block_units());
        let die_blocks = small(profile.die_blocks());
        let dies = small(profile.all_dies());
        let units = small(profile.data_units());
        debug_assert!(dies > 0 && units > 0, "{units} units on {dies} dies");
        let blocks = dies * die_blocks;
        let die = |die| {
            let mut free: Vec<_> = (die * die_blocks..(die + 1) * die_blocks).map(number).collect();
            free.reverse();
            let mut open =
                || Open { block: free.pop().expect("a die should have blocks"), taken: 0 };
            let open = match profile.collection {
                Choice::Greedy => vec![open()],
                Choice::CostBenefit => vec![open(), open()],
            };
            Die { free, open, valid: 0 }
        };
        Self {
            row_units: small(profile.program_units()),
            block_units,
            die_blocks,
            die_units: block_units * (die_blocks - small(2 + RESERVE_BLOCKS)),
            place_of: vec![NOWHERE; units],
            placed: vec![0; units.div_ceil(WORD_UNITS)],
            unit_at: vec![NOWHERE; blocks * block_units],
            valid: vec![0; blocks],
            old: vec![false; blocks * small(profile.programs.into())],
            closed: Closed::new(dies, blocks, block_units),
            choice: profile.collection,
            dies: (0..dies).map(die).collect(),
        }
    }

    /// Returns how many units the map has.
    pub(super) fn units(&self) -> u64 {
        self.place_of.len() as u64
    }

    /// Returns how many units a row has.
    pub(super) fn row_units(&self) -> usize {
        self.row_units
    }

    /// Returns how many units a block has.
    pub(super) fn block_units(&self) -> usize {
        self.block_units
    }

    /// Returns the row of `unit` if it has a place in flash.
    pub(super) fn row_of(&self, unit: u32) -> Option<u32> {
        let place = Some(self.place_of[unit as usize]).filter(|place| *place < BUFFERED);
        place.map(|place| place / number(self.row_units))
    }

    /// Whether the data of `row` was there before the run.
    pub(super) fn is_old(&self, row: u32) -> bool {
        self.old[row as usize]
    }

    /// Notes that the run begins.
    pub(super) fn grow_old(&mut self) {
        self.old.fill(true);
    }

    /// Returns the die of `row`.
    pub(super) fn die_of_row(&self, row: u32) -> usize {
        self.die_of(row as usize * self.row_units)
    }

    fn die_of(&self, place: usize) -> usize {
        place / self.block_units / self.die_blocks
    }

    /// Notes that the buffer has the data of `unit`, and returns whether it had data of it before.
    pub(super) fn buffer(&mut self, unit: u32) -> bool {
        let combined = self.place_of[unit as usize] == BUFFERED;
        self.unmap(unit);
        self.place_of[unit as usize] = BUFFERED;
        combined
    }

    /// Forgets the data of those of `units` that are `discarded`, unless it is in the buffer: that
    /// has data once, and writes it. Units without a place cost next to nothing, 64 at a time.
    pub(super) fn discard(&mut self, units: Range<u32>, discarded: impl Fn(u32) -> bool) {
        debug_assert!(units.end as usize <= self.place_of.len(), "{units:?} are not all units");
        let mut unit = units.start as usize;
        while unit < units.end as usize {
            let ahead = self.placed[unit / WORD_UNITS] >> (unit % WORD_UNITS);
            if ahead & 1 == 1 && discarded(number(unit)) {
                self.unmap(number(unit));
            }
            // The next unit with a place in this word, or else the next word.
            let rest = (ahead >> 1).trailing_zeros() as usize + 1;
            unit += rest.min(WORD_UNITS - unit % WORD_UNITS);
        }
    }

    /// Forgets the data of `unit`.
    fn unmap(&mut self, unit: u32) {
        let place = core::mem::replace(&mut self.place_of[unit as usize], NOWHERE);
        if place >= BUFFERED {
            return;
        }
        let block = place / number(self.block_units);
        let die = self.die_of(place as usize);
        self.placed[unit as usize / WORD_UNITS] &= !bit(unit);
        self.unit_at[place as usize] = NOWHERE;
        self.dies[die].valid -= 1;
        let before = self.valid[block as usize];
        self.valid[block as usize] -= 1;
        if self.closed.contains(block) {
            self.closed.remove(die, block, before);
            self.closed.insert(die, block, before - 1);
        }
    }

    /// Whether a program of the buffer may take a row of `die` ([last-block-for-collection]).
    pub(super) fn has_room(&self, die: usize) -> bool {
        let Die { open, free, .. } = &self.dies[die];
        let open = open[0].taken < self.block_units && !free.is_empty();
        !self.is_full(die) && (open || !self.is_short(die))
    }

    /// Whether `die` has so many valid units that the rest must be left to collection.
    pub(super) fn is_full(&self, die: usize) -> bool {
        self.dies[die].valid >= self.die_units
    }

    /// Whether collection must free blocks of `die`.
    pub(super) fn is_short(&self, die: usize) -> bool {
        (self.dies[die].free.len() as u64) < RESERVE_BLOCKS
    }

    /// Puts `units` of the buffer, a row at most, on `die`, and returns their row ([row-at-once]).
    pub(super) fn program(&mut self, die: usize, units: &[Source]) -> u32 {
        self.put(die, 0, units).0
    }

    /// Puts `units` of a collected block, a row at most, on `die`. Returns their row, and how many
    /// of them were still valid. Cost-benefit collection has an open block of its own for them.
    pub(super) fn program_moved(&mut self, die: usize, units: &[Source]) -> (u32, u64) {
        let open = self.dies[die].open.len() - 1;
        self.put(die, open, units)
    }

    fn put(&mut self, die: usize, open: usize, units: &[Source]) -> (u32, u64) {
        debug_assert!(units.len() <= self.row_units, "a program should write a row at most");
        if self.dies[die].open[open].taken == self.block_units {
            self.open_block(die, open);
        }
        let at = &mut self.dies[die].open[open];
        debug_assert_eq!(at.taken % self.row_units, 0, "[row-at-once]");
        let open = at.block as usize;
        let first = open * self.block_units + at.taken;
        at.taken += self.row_units;
        self.old[first / self.row_units] = false;
        let mut placed = 0;
        for (place, source) in (first..).zip(units) {
            if self.place_of[source.unit as usize] == source.from {
                self.unmap(source.unit);
                debug_assert_eq!(self.unit_at[place], NOWHERE, "a place is written once");
                self.unit_at[place] = source.unit;
                self.place_of[source.unit as usize] = number(place);
                self.placed[source.unit as usize / WORD_UNITS] |= bit(source.unit);
                placed += 1;
            }
        }
        self.dies[die].valid += placed;
        self.valid[open] += number(placed);
        (number(first / self.row_units), placed as u64)
    }

    /// Opens another block in place of the full one at `open`.
    fn open_block(&mut self, die: usize, open: usize) {
        let at = &mut self.dies[die];
        debug_assert_eq!(at.open[open].taken, self.block_units, "only a full block is closed");
        let block = at.free.pop().expect("collection should keep a block free");
        let full = core::mem::replace(&mut at.open[open], Open { block, taken: 0 }).block;
        self.closed.insert(die, full, self.valid[full as usize]);
    }

    /// Takes the closed block of `die` that is collected next.
    pub(super) fn take_victim(&mut self, die: usize) -> u32 {
        let victim = match self.choice {
            Choice::Greedy => self.closed.take_least(die),
            Choice::CostBenefit => self.closed.take_best(die),
        };
        let victim = victim.expect("a block should be closed");
        debug_assert!(
            (self.valid[victim as usize] as usize) < self.block_units,
            "a die should have room for collection"
        );
        victim
    }

    /// Returns how many valid units `block` has.
    pub(super) fn valid(&self, block: u32) -> u32 {
        self.valid[block as usize]
    }

    /// Appends the valid units of the first row of `block` from `row` on that has any to `units`,
    /// and returns the row after it.
    pub(super) fn read_row(&self, block: u32, row: u32, units: &mut Vec<Source>) -> Option<u32> {
        let rows = number(self.block_units / self.row_units);
        debug_assert!(row <= rows, "row {row} of block {block}, which has {rows}");
        let before = units.len();
        for row in row..rows {
            let first = block as usize * self.block_units + row as usize * self.row_units;
            let places = (first..first + self.row_units).map(|place| (place, self.unit_at[place]));
            let valid = places.filter(|(_, unit)| *unit != NOWHERE);
            units.extend(valid.map(|(place, unit)| Source { unit, from: number(place) }));
            if units.len() > before {
                return Some(row + 1);
            }
        }
        None
    }

    /// Keeps those of `units` whose data has not moved or been overwritten.
    pub(super) fn retain_valid(&self, units: &mut Vec<Source>) {
        units.retain(|source| self.place_of[source.unit as usize] == source.from);
    }

    /// Returns `block` of `die` to the free ones.
    pub(super) fn erase(&mut self, die: usize, block: u32) {
        debug_assert_eq!(self.valid(block), 0, "valid data must not be erased");
        debug_assert_eq!(block as usize / self.die_blocks, die, "a block returns to its die");
        debug_assert!(!self.closed.contains(block), "block {block} was not taken for collection");
        self.dies[die].free.push(block);
    }
}

/// Returns the bit of `unit` in its word.
const fn bit(unit: u32) -> u64 {
    1 << (unit % u64::BITS)
}

fn number(n: usize) -> u32 {
    u32::try_from(n).expect("places should be below 2 to the 32")
}
