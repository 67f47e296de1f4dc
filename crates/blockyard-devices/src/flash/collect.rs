//! Collection of one die: it moves the valid units of a block, step by step, and erases it.
//!
//! Moved units fill whole rows: those left over from one block wait for units of the next one. A
//! block is erased when all its units have moved. So every block with an invalid unit frees space.
//!
//! On a die that is short of free blocks, collection moves as many units for each row of the buffer
//! as the last block cost for each row that it freed. So writes slow down evenly, instead of
//! stopping until a block is free.
//!
//! # Rules
//!
//! - **[real-erase]** A block of the map may be smaller than a block of the real flash. An erase
//!   takes time, the whole time of a real one, each time that so many programs as a real block has
//!   could begin anew, and no time in between.

use super::map::{Map, Source};
use crate::flash::profile::FlashProfile;
use blockyard::time::Duration;

/// What collection does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Reads a row, of which so many units are valid.
    Read(u32),
    /// Programs a row of these units.
    Program(Vec<Source>),
    /// Erases a block.
    Erase(u32),
}

/// The collection of a die.
#[derive(Debug, Default)]
pub(super) struct Collection {
    /// The block that is read, and its next row.
    victim: Option<(u32, u32)>,
    /// Units that were read, and wait for a program.
    gathered: Vec<Source>,
    /// Blocks that were read in whole, two at most.
    drained: Vec<u32>,
    /// Whether data that was read is on its way out of the die.
    moving: bool,
    /// Units to move before the next program of the buffer.
    owed: usize,
    /// Valid units of the last block that was taken.
    valid: usize,
    /// Programs that erases made room for since the last one that took time ([real-erase]).
    erased: u64,
}

impl Collection {
    /// Returns the idle collection of the die with this number. The dies, which share the load,
    /// come to their next erases one after the other.
    pub(super) fn of_die(die: u64, profile: &FlashProfile) -> Self {
        let erased = die * u64::from(profile.programs) % profile.erase_programs();
        Self { erased, ..Self::default() }
    }

    /// Returns how long the next erase takes ([real-erase]).
    pub(super) fn time_of_erase(&mut self, profile: &FlashProfile) -> Duration {
        debug_assert!(
            self.erased < profile.erase_programs(),
            "[real-erase]: {} programs wait for an erase",
            self.erased
        );
        let erased = self.erased + u64::from(profile.programs);
        self.erased = erased % profile.erase_programs();
        Duration::from_ns(profile.erase.as_ns() * (erased / profile.erase_programs()))
    }

    /// Whether it must go on before the die takes a program of the buffer.
    pub(super) fn owes(&self) -> bool {
        self.owed > 0
    }

    /// Notes that the die takes a program of the buffer while it is short of free blocks.
    pub(super) fn owe(&mut self, map: &Map) {
        debug_assert!(self.valid < map.block_units(), "a block should free space");
        self.owed += map.row_units() * self.valid / (map.block_units() - self.valid);
    }

    /// Returns the next step, if the die is short of free blocks and a step can begin.
    pub(super) fn next_step(&mut self, map: &mut Map, die: usize) -> Option<Step> {
        if !map.is_short(die) {
            self.owed = 0;
            return None;
        }
        if self.moving {
            return None;
        }
        map.retain_valid(&mut self.gathered);
        loop {
            let gathered = self.gathered.len();
            // Whole rows are moved: two blocks that together do not fill a row are the exception.
            if gathered >= map.row_units() || (gathered > 0 && self.drained.len() == 2) {
                let row = gathered.min(map.row_units());
                self.owed = self.owed.saturating_sub(row);
                return Some(Step::Program(self.gathered.drain(..row).collect()));
            }
            if let Some(at) = self.drained.iter().position(|block| map.valid(*block) == 0) {
                return Some(Step::Erase(self.drained.remove(at)));
            }
            debug_assert!(self.drained.len() < 2, "two drained blocks should have gathered units");
            let (block, row) = self.victim.unwrap_or_else(|| (map.take_victim(die), 0));
            if row == 0 {
                self.valid = map.valid(block) as usize;
            }
            if let Some(next) = map.read_row(block, row, &mut self.gathered) {
                self.victim = Some((block, next));
                self.moving = true;
                let units = self.gathered.len() - gathered;
                return Some(Step::Read(u32::try_from(units).expect("a row should be small")));
            }
            self.victim = None;
            self.drained.push(block);
        }
    }

    /// Whether data that was read is on its way out of the die.
    pub(super) const fn is_moving(&self) -> bool {
        self.moving
    }

    /// Notes that the data which was read has left the die.
    pub(super) fn moved(&mut self) {
        debug_assert!(self.moving, "collection should have read data");
        self.moving = false;
    }
}
