//! The rounds in which flushes make the map durable, once their data is in flash.
//!
//! A flush whose data is in flash waits for a round that began after that. A round has
//! `flush-steps` steps, one after another. Each programs `flush-map` bytes. Flushes that wait while
//! a round is under way share the next one. So many writers that sync cost no more rounds than one.
//! A flush waits for no round if no data has been programmed since the last one.

use crate::medium::CommandId;

/// The flushes whose data is in flash.
#[derive(Debug, Default)]
pub(super) struct Flushes {
    /// Whether data was programmed since the last round began.
    stale: bool,
    /// Those that wait for the next round.
    next: Vec<CommandId>,
    /// Those of the round that is under way.
    current: Vec<CommandId>,
    /// Steps of that round that have not ended.
    steps: u16,
    /// Programs of its step that have not ended.
    programs: u64,
}

/// What comes after a program of the map has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// Other programs of the step.
    Programs,
    /// The next step.
    Step,
    /// The end of the round, and of these flushes.
    Round(Vec<CommandId>),
}

impl Flushes {
    /// Notes that data was programmed.
    pub(super) const fn soil(&mut self) {
        self.stale = true;
    }

    /// Lets `id` wait, unless the map is durable already. Returns whether it waits.
    pub(super) fn wait(&mut self, id: CommandId) -> bool {
        let runs = self.steps > 0;
        if self.stale {
            self.next.push(id);
        } else if runs {
            self.current.push(id);
        }
        self.stale || runs
    }

    /// Begins a round of `steps` if flushes wait for one and none is under way. Returns whether it
    /// did.
    pub(super) fn begin(&mut self, steps: u16) -> bool {
        debug_assert!(steps > 0, "a round has steps");
        if self.steps > 0 || self.next.is_empty() {
            return false;
        }
        debug_assert!(self.current.is_empty(), "flushes of a round end with it");
        core::mem::swap(&mut self.current, &mut self.next);
        self.stale = false;
        self.steps = steps;
        true
    }

    /// Notes that the next step has so many programs.
    pub(super) fn begin_step(&mut self, programs: u64) {
        debug_assert!(self.steps > 0 && self.programs == 0, "{self:?} has no step to begin");
        self.programs = programs;
    }

    /// Notes that a program of the map has ended.
    pub(super) fn end_program(&mut self) -> After {
        debug_assert!(self.steps > 0 && self.programs > 0, "{self:?} has no program of the map");
        self.programs -= 1;
        if self.programs > 0 {
            return After::Programs;
        }
        self.steps -= 1;
        match self.steps {
            0 => After::Round(core::mem::take(&mut self.current)),
            _ => After::Step,
        }
    }
}
