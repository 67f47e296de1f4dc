//! The seam between the front end of a drive and its medium.
//!
//! A front end begins each [`Access`] at the instant at which the command, and the data of a write,
//! have reached the drive. A medium that fetches knows of a write as soon as its command is there,
//! and asks for the data when it has room. The medium schedules events of its own, and reports each
//! command that has ended. It may hold a command for as long as it likes, and commands end in any
//! order. The front end carries the data of a read to the host afterwards. The instants of all
//! calls on a medium do not fall.

use super::load::{MediumCause, MediumLimit, MediumLoad, Parts, Work};
use crate::counters::Counter;
use crate::reader::error::ProfileError;
use crate::reader::table::Table;
use blockyard::bio::Op;
use blockyard::limits::Limits;
use blockyard::prng::Prng;
use blockyard::time::{Duration, Instant};
use blockyard::unit::HctxId;
use core::fmt::Debug;
use std::collections::VecDeque;

/// A medium.
pub trait Medium: Debug + Send {
    /// Begins command `id` at `now`.
    fn begin(&mut self, id: CommandId, access: Access, now: Instant, events: &mut MediumEvents);

    /// Whether it asks for the data of writes when it has room, where the front end can fetch it.
    fn fetches(&self) -> bool {
        false
    }

    /// Begins command `id` at `now`, which is a write whose data is in the host's memory. A medium
    /// that does not fetch has no such writes.
    fn announce(&mut self, id: CommandId, access: Access, now: Instant, events: &mut MediumEvents) {
        debug_assert!(access.op == Op::Write && !self.fetches(), "{access:?} brings its data");
        self.begin(id, access, now, events);
    }

    /// Returns the next sectors that it wants of a write that was announced, after each of the
    /// calls on it.
    fn next_wanted(&mut self) -> Option<Wanted> {
        None
    }

    /// Notes that the first of the sectors that it wanted and does not have are there.
    fn arrived(&mut self, wanted: Wanted, now: Instant, events: &mut MediumEvents) {
        let _ = (now, events);
        debug_assert!(false, "{wanted:?} was not wanted");
    }

    /// Handles an event of its own that is due at `now`.
    fn event(&mut self, event: MediumEvent, now: Instant, events: &mut MediumEvents);

    /// Returns the next command that has ended, after each of the calls above.
    fn next_ended(&mut self) -> Option<CommandId>;

    /// Returns what it did since the last call of [`Self::forget`].
    fn counts(&self) -> MediumCounts;

    /// Returns how much of it was in use since then.
    fn used(&self) -> MediumUse;

    /// Returns what its parts spent their time on since then, and for how long writes waited for
    /// them.
    fn load(&self) -> MediumLoad;

    /// Starts counting again.
    fn forget(&mut self);
}

/// The figures of a medium.
pub(crate) trait MediumFamily: Copy {
    /// The medium that the figures build.
    type Medium: Medium + 'static;

    /// The table of a file that has them.
    const TABLE: &'static str;
    /// The built-in device that is most likely the base of a file with the table, unless it is the
    /// usual one.
    const BASE: Option<&'static str> = None;

    /// The words of its evidence.
    const WORDS: MediumWords;
    /// The counters that it counts, in their order ([every-counter-is-explained]).
    const COUNTERS: &'static [Counter];

    /// Reads the figures from `top`, or else from its base.
    fn read(top: &Table<'_>) -> Result<Self, ProfileError>;

    /// Whether it rotates.
    fn rotates(&self) -> bool {
        false
    }

    /// Whether it acknowledges writes before they are durable.
    fn write_cache(&self) -> bool {
        false
    }

    /// Checks that a drive with it can have `limits`. `top` is its file, for the place of an error.
    fn check(&self, top: &Table<'_>, limits: &Limits) -> Result<(), ProfileError> {
        let _ = (top, limits);
        Ok(())
    }

    /// Builds an idle medium with `capacity` sectors.
    fn build(&self, capacity: u64, prng: Prng) -> Self::Medium;
}

/// The words for the parts and the work of a medium. No other medium has such parts or such work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MediumWords {
    /// The place for data of writes that have been acknowledged.
    pub(crate) room: &'static str,
    /// Each kind of parts as the subject of "the bottleneck", with its verb.
    pub(crate) parts: &'static [(Parts, &'static str)],
    /// Each kind of work, and why there is such work.
    pub(crate) work: &'static [(Work, &'static str, MediumCause)],
    /// What it says of the cause of a limit.
    pub(crate) of_cause: fn(&MediumLimit) -> CauseWords,
}

/// The words for what takes much of the time of a medium. Usually that is the commands, and there
/// are none.
#[derive(Clone, Debug, Default)]
pub(crate) struct CauseWords {
    /// The subject of "the bottleneck", with its verb, if it is work that no command asks for.
    pub(crate) subject: Option<&'static str>,
    /// The parts that a share counts, where the subject does not say it.
    pub(crate) units: &'static str,
    /// What the cause does to the data that is written.
    pub(crate) moved: Option<String>,
}

/// The front end's number of a command, dense from 0. A number is used again when its command has
/// ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandId(pub u32);

/// Sectors of a write that a medium fetches from the host's memory, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The write.
    pub id: CommandId,
    /// How many sectors.
    pub sectors: u32,
}

/// What a command asks of a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The operation. Flushes, discards and zeroed ranges are accesses too.
    pub op: Op,
    /// The first sector, of 512 bytes.
    pub start: u64,
    /// The number of sectors; 0 for a flush.
    pub sectors: u32,
    /// Whether a write is durable when it ends, in spite of a volatile cache.
    pub fua: bool,
    /// The hardware queue by which it came.
    pub queue: HctxId,
}

/// An event that a medium scheduled, by a number of its own below 2 to the 31.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediumEvent(pub u32);

/// Events that a medium wants scheduled.
pub(crate) type MediumEvents = VecDeque<(Instant, MediumEvent)>;

/// Counters of a medium that explain a result. A name has words with underscores; the amount is a
/// time in nanoseconds if it ends in `_ns`, and a share if it ends in `_percent`. A medium always
/// has the same names, in the same order, and [`counters`](super::counters::counters) explains them
/// ([every-counter-is-explained]).
pub(crate) type MediumCounts = Vec<(&'static str, u64)>;

/// How much of a medium was in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediumUse {
    /// The time for which its parts worked, of all parts together.
    pub used: Duration,
    /// Parts that work side by side, at least one.
    pub units: u32,
}
