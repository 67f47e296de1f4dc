//! The write buffer: units in the order of their arrival, cut into programs, and the flushes that
//! wait for them. Programs of the map stand in line with them, and take no room.

use super::map::Source;
use crate::medium::CommandId;
use std::collections::VecDeque;

/// A program that a die takes from the buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    /// Its number, in order.
    pub(super) number: u64,
    pub(super) units: Vec<Source>,
}

/// A program that no die has taken: so many units of data, or of the map.
#[derive(Clone, Copy, Debug)]
enum Queued {
    Data(usize),
    Map(u64),
}

/// The buffer.
#[derive(Debug)]
pub(super) struct Buffer {
    /// Units that it takes, and has.
    capacity: u64,
    used: u64,
    /// Units of that room for data that is on its way.
    promised: u64,
    /// Units of a whole program.
    row_units: usize,
    /// Units that no die has taken, of programs and after them of the next one.
    units: VecDeque<Source>,
    /// The programs that no die has taken.
    programs: VecDeque<Queued>,
    /// Units after the last program.
    rest: usize,
    /// Programs that a die has taken, since ever.
    taken: u64,
    /// The first program that has not ended, and for each from it on whether it has.
    first: u64,
    ended: VecDeque<bool>,
    /// Commands that wait until all programs before a number have ended.
    flushes: VecDeque<(u64, CommandId)>,
}

impl Buffer {
    /// Bytes for each unit at most, where each is a program of its own: the unit, its program, and
    /// whether that has ended. These are 8 + 16 + 1.
    pub(super) const PER_UNIT_BYTES: u64 =
        (size_of::<Source>() + size_of::<Queued>() + size_of::<bool>()) as u64;

    /// Returns an empty buffer for `capacity` units, which are programmed by `row_units`.
    pub(super) fn new(capacity: u64, row_units: usize) -> Self {
        debug_assert!(
            capacity >= row_units as u64,
            "a buffer of {capacity} units fills no program"
        );
        Self {
            capacity,
            used: 0,
            promised: 0,
            row_units,
            units: VecDeque::new(),
            programs: VecDeque::new(),
            rest: 0,
            taken: 0,
            first: 0,
            ended: VecDeque::new(),
            flushes: VecDeque::new(),
        }
    }

    /// Units that it takes.
    pub(super) const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Whether it has room for `units` more.
    pub(super) const fn has_room(&self, units: u64) -> bool {
        self.used + self.promised + units <= self.capacity
    }

    /// Units for which it has room.
    pub(super) const fn room(&self) -> u64 {
        self.capacity - self.used - self.promised
    }

    /// Units of data that is on its way.
    pub(super) const fn promised(&self) -> u64 {
        self.promised
    }

    /// Keeps room for `units` that are on their way.
    pub(super) fn promise(&mut self, units: u64) {
        debug_assert!(self.has_room(units), "the buffer has a limit");
        self.promised += units;
    }

    /// Notes that a unit is there for which it kept room.
    pub(super) fn arrive(&mut self) {
        debug_assert!(self.promised > 0, "what arrives has room");
        self.promised -= 1;
    }

    /// Whether a program waits for a die.
    pub(super) fn has_program(&self) -> bool {
        !self.programs.is_empty()
    }

    /// Takes a unit, for which it has room. Returns whether that completes a program.
    pub(super) fn put(&mut self, unit: u32) -> bool {
        debug_assert!(self.has_room(1), "the buffer has a limit");
        debug_assert!(self.rest < self.row_units, "a whole program is cut at once");
        self.used += 1;
        self.units.push_back(Source::buffer(unit));
        self.rest += 1;
        self.rest == self.row_units && self.cut()
    }

    /// Makes a program of the units after the last one. Returns whether there were any.
    pub(super) fn cut(&mut self) -> bool {
        let rest = core::mem::take(&mut self.rest);
        if rest > 0 {
            self.queue(Queued::Data(rest));
        }
        rest > 0
    }

    /// Lets a program wait for a die.
    fn queue(&mut self, program: Queued) {
        self.programs.push_back(program);
        self.ended.push_back(false);
    }

    /// Lets programs of `units` of the map wait for dies, and returns how many those are.
    pub(super) fn put_map(&mut self, units: u64) -> u64 {
        debug_assert!(units > 0, "a step of a flush writes something");
        let row = self.row_units as u64;
        let programs = units.div_ceil(row);
        (0..programs).for_each(|nth| self.queue(Queued::Map((units - nth * row).min(row))));
        programs
    }

    /// Returns the number of the first program that is not among the next `most` that wait.
    pub(super) fn number_after(&self, most: u64) -> u64 {
        self.taken + most.min(self.programs.len() as u64)
    }

    /// Whether a program before `number` waits for a die.
    pub(super) const fn has_program_before(&self, number: u64) -> bool {
        self.taken < number
    }

    /// Takes the next program if it is one of data.
    pub(super) fn take_program(&mut self) -> Option<Program> {
        let Queued::Data(units) = *self.programs.front()? else { return None };
        Some(Program { number: self.take_next(), units: self.units.drain(..units).collect() })
    }

    /// Takes the next program if it is one of the map. Returns its number and its units.
    pub(super) fn take_map_program(&mut self) -> Option<(u64, u64)> {
        let Queued::Map(units) = *self.programs.front()? else { return None };
        Some((self.take_next(), units))
    }

    /// Removes the next program, which a die takes, and returns its number.
    fn take_next(&mut self) -> u64 {
        let next = self.programs.pop_front();
        debug_assert!(next.is_some(), "a die takes a program that waits");
        self.taken += 1;
        self.taken - 1
    }

    /// Notes that the program `number` of `units` has ended: their room is free.
    pub(super) fn end(&mut self, number: u64, units: u32) {
        debug_assert!(u64::from(units) <= self.used, "a program frees only what the buffer has");
        debug_assert!((self.first..self.taken).contains(&number), "program {number} does not run");
        self.used -= u64::from(units);
        let at = usize::try_from(number - self.first).expect("programs should be few");
        self.ended[at] = true;
        while self.ended.front() == Some(&true) {
            self.ended.pop_front();
            self.first += 1;
        }
    }

    /// Lets `id` wait until all programs so far have ended. Returns whether it must.
    pub(super) fn wait(&mut self, id: CommandId) -> bool {
        let waits = !self.ended.is_empty();
        if waits {
            self.flushes.push_back((self.first + self.ended.len() as u64, id));
        }
        waits
    }

    /// Returns the next command whose wait is over.
    pub(super) fn next_flushed(&mut self) -> Option<CommandId> {
        let (before, id) = *self.flushes.front()?;
        (before <= self.first).then(|| self.flushes.pop_front())?;
        Some(id)
    }
}
