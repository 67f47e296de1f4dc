//! The order of commands: the next movement of the arm.
//!
//! # Rules
//!
//! - **[shortest-positioning-first]** Of the commands that a disk holds, the one goes next whose
//!   first sector the head can reach first, over the seek and the rotation. Of two that are equal,
//!   the older one goes.
//! - **[age-is-bounded]** A command that has waited for longer than the profile's age goes before
//!   all younger ones.
//! - **[sweep-in-order]** Acknowledged writes go to the platters in a sweep: only those that follow
//!   the last one in the order of sectors are considered, so that each has its turn.
//! - **[turns-under-pressure]** While commands wait until acknowledged writes have gone, these take
//!   turns with the commands that wait for the arm. Otherwise, commands go first.

use super::Held;
use super::cache::WriteCache;
use crate::disk::profile::CommandOrder;
use blockyard::time::{Duration, Instant};

/// Acknowledged writes that the disk considers at once.
const SWEEP_WINDOW: usize = 32;

/// What the arm does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// The command at this place among the held ones.
    Command { at: usize, overdue: bool },
    /// The acknowledged write from this sector on.
    Destage { start: u64, end: u64 },
}

/// When acknowledged writes go to the platters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Destage {
    /// They wait.
    Never,
    /// When no command is held.
    WhenIdle,
    /// Before any command.
    Now,
}

/// What there is to choose from.
pub(super) struct Choices<'a> {
    pub(super) order: CommandOrder,
    pub(super) age_max: Duration,
    /// Commands in the order of their arrival.
    pub(super) held: &'a [Held],
    pub(super) writes: &'a WriteCache,
    /// The first sector of the sweep.
    pub(super) sweep_from: u64,
    pub(super) destage: Destage,
}

impl Choices<'_> {
    /// Chooses what the arm does at `now`. `position` returns how long the head takes to reach the
    /// start of a sector, and is told whether it is for a write.
    pub(super) fn choose(
        &self,
        now: Instant,
        position: impl Fn(u64, bool) -> Duration,
    ) -> Option<Choice> {
        match self.destage {
            Destage::Now => self.write(&position).or_else(|| self.command(now, &position)),
            Destage::WhenIdle => self.command(now, &position).or_else(|| self.write(&position)),
            Destage::Never => self.command(now, &position),
        }
    }

    fn write(&self, position: impl Fn(u64, bool) -> Duration) -> Option<Choice> {
        let window = match self.order {
            CommandOrder::Arrival => 1,
            CommandOrder::Shortest => SWEEP_WINDOW,
        };
        let swept = self.writes.sweep(self.sweep_from).take(window); // [sweep-in-order]
        let (start, end) = swept.min_by_key(|&(start, _)| position(start, true))?;
        Some(Choice::Destage { start, end })
    }

    fn command(&self, now: Instant, position: impl Fn(u64, bool) -> Duration) -> Option<Choice> {
        debug_assert!(self.held.is_sorted_by_key(|held| held.since), "commands wait in order");
        let overdue = now.since(self.held.first()?.since) > self.age_max; // [age-is-bounded]
        if overdue || self.order == CommandOrder::Arrival {
            return Some(Choice::Command { at: 0, overdue });
        }
        // [shortest-positioning-first]
        let times = self.held.iter().map(|held| position(held.start, held.is_write));
        let (at, _) = times.enumerate().min_by_key(|&(_, time)| time)?;
        Some(Choice::Command { at, overdue: false })
    }
}
