//! The order of commands: the next movement of the arm.
//!
//! Of the commands that a disk considers, the one goes next whose first sector the firmware expects
//! the head to reach first, over the seek and the rotation, less the credit for its age. Of two
//! that are equal, the older one goes. A command that has waited for longer than the profile's age
//! goes before all younger ones.
//!
//! Commands in sequence are nearest for as long as they come: a command elsewhere would wait until
//! it is too old. So a stream that has had its bytes in a row lets another command go first.
//!
//! The acknowledged writes of a batch go to the platters in a sweep: only those that follow the
//! last one in the order of sectors are considered, so that each has its turn. How they take turns
//! with the commands that wait for the arm is a choice of the profile.

use super::Held;
use super::cache::WriteCache;
use super::estimate::Estimate;
use crate::disk::profile::CommandOrder;
use blockyard::time::{Duration, Instant};
use core::ops::Range;

/// Acknowledged writes of a batch that the disk considers for one movement.
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
    /// When it begins before any command, by the firmware's estimate.
    Nearest,
    /// Before any command.
    Now,
}

/// Sectors by which commands of a stream may be apart or out of order: 1 MiB.
const NEAR: u64 = 2048;

/// Sectors by which commands of a stream may be left behind: 256 MiB, some seconds of a stream.
const BEHIND: u64 = 1 << 19;

/// Commands of one stream that the arm has served in a row.
///
/// A command belongs to it near its end, or if it was passed over: of two commands on the next
/// track, the second one may be reached first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Streak {
    first: u64,
    end: u64,
}

impl Streak {
    /// Returns where commands belong to it.
    fn near(&self) -> Range<u64> {
        let from = self.first.max(self.end.saturating_sub(BEHIND));
        from.saturating_sub(NEAR)..self.end + NEAR + 1
    }

    /// Adds a command from sector `start` to `end` that the arm serves.
    pub(super) fn add(&mut self, start: u64, end: u64) {
        debug_assert!(start < end, "a command has sectors");
        if !self.add_cached(start, end) {
            *self = Self { first: start, end };
        }
    }

    /// Adds a command that the cache answers, if it continues the streak. Returns whether it does.
    pub(super) fn add_cached(&mut self, start: u64, end: u64) -> bool {
        let continues = self.near().contains(&start);
        if continues {
            *self = Self { first: self.first.min(start), end: self.end.max(end) };
        }
        continues
    }

    /// Returns where commands would continue it if it has had `most` sectors or more.
    pub(super) fn spent(&self, most: u64) -> Range<u64> {
        if self.end - self.first < most { 0..0 } else { self.near() }
    }
}

/// What there is to choose from.
pub(super) struct Choices<'a> {
    pub(super) order: CommandOrder,
    pub(super) age_max: Duration,
    /// Sectors at which a command would continue a stream that has had its share in a row.
    pub(super) spent: Range<u64>,
    pub(super) estimate: &'a Estimate,
    /// Commands that the arm can serve, in the order of their arrival.
    pub(super) held: &'a [Held],
    pub(super) writes: &'a WriteCache,
    /// The first sector of the sweep.
    pub(super) sweep_from: u64,
    pub(super) destage: Destage,
}

impl Choices<'_> {
    /// Chooses what the arm does at `now`. `expected` returns the time after which the firmware
    /// expects the head at the start of a sector, in nanoseconds, and is told whether it is for a
    /// write.
    pub(super) fn choose(
        &self,
        now: Instant,
        expected: impl Fn(u64, bool) -> i64,
    ) -> Option<Choice> {
        match self.destage {
            Destage::Now => self.write(&expected).or_else(|| self.command(now, &expected)),
            Destage::WhenIdle => self.command(now, &expected).or_else(|| self.write(&expected)),
            Destage::Nearest => self.nearest(now, &expected),
            Destage::Never => self.command(now, &expected),
        }
    }

    /// Chooses the next write if the head is expected at it before it is at the next command, which
    /// has the credit for its age and is not overdue.
    fn nearest(&self, now: Instant, expected: impl Fn(u64, bool) -> i64) -> Option<Choice> {
        let command = self.command(now, &expected);
        let Some(Choice::Command { at, overdue: false }) = command else {
            return command.or_else(|| self.write(&expected));
        };
        let write = self.write(&expected);
        let goes_first = |write: &Choice| match *write {
            Choice::Destage { start, .. } => {
                expected(start, true) < self.time_of(&self.held[at], now, &expected)
            }
            Choice::Command { .. } => false,
        };
        write.filter(goes_first).or(command)
    }

    /// Returns the expected time of a command less the credit for its age.
    fn time_of(&self, held: &Held, now: Instant, expected: impl Fn(u64, bool) -> i64) -> i64 {
        expected(held.start, held.is_write) - self.estimate.credit(now.since(held.since))
    }

    fn write(&self, expected: impl Fn(u64, bool) -> i64) -> Option<Choice> {
        let window = match self.order {
            CommandOrder::Arrival => 1,
            CommandOrder::Shortest | CommandOrder::Estimated => SWEEP_WINDOW,
        };
        // The next writes in the order of sectors, and around: after sector 500, those to 510 and
        // 900 are considered before one to 490.
        let swept = self.writes.sweep(self.sweep_from).take(window);
        let next = swept.min_by_key(|write| expected(write.start, true))?;
        Some(Choice::Destage { start: next.start, end: next.end })
    }

    fn command(&self, now: Instant, expected: impl Fn(u64, bool) -> i64) -> Option<Choice> {
        debug_assert!(self.held.is_sorted_by_key(|held| held.since), "commands wait in order");
        // Too old to wait for commands that are nearer to the arm.
        let overdue = now.since(self.held.first()?.since) > self.age_max;
        if overdue || self.order == CommandOrder::Arrival {
            return Some(Choice::Command { at: 0, overdue });
        }
        // The shortest positioning goes first: a command 3 ms away after 2 ms of credit goes before
        // one that is 1.5 ms away without any.
        // One of the stream that has had its share goes if there is no other.
        let considered = self.held.iter().take(self.estimate.window());
        let times = considered.map(|held| {
            let continues = self.spent.contains(&held.start);
            (continues, self.time_of(held, now, &expected))
        });
        let (at, _) = times.enumerate().min_by_key(|&(_, key)| key)?;
        Some(Choice::Command { at, overdue: false })
    }
}
