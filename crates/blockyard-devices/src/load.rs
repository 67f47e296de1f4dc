//! The load on the parts of a medium, and the waits of writes for them: why a drive is as fast as
//! it is.
//!
//! A buffer or cache counts as full while a write waits for room in it. That of flash does until no
//! program of its buffer waits for a die: between two writes of a host that has one in flight, dies
//! are no less busy.

use blockyard::time::{Duration, Instant};
use serde::Serialize;

/// Parts of a medium that work side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Parts {
    /// All that the medium has.
    Medium,
    /// The dies of flash.
    Dies,
    /// The channels to the dies of flash.
    Channels,
    /// The head of a hard disk.
    Head,
    /// The limit of a volume's I/Os per second.
    IosLimit,
    /// The limit of a volume's bytes per second.
    BytesLimit,
    /// What of flash carries out discards, one at a time.
    Discards,
}

/// A kind of work of parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Flash reads data of commands, again where it has errors.
    Reads,
    /// Flash reads pages of the map.
    MapReads,
    /// Flash programs the map, for flushes.
    MapPrograms,
    /// Flash programs data of the host, without a cache of single-level cells.
    Programs,
    /// Flash programs data of the host into the cache of single-level cells.
    CachePrograms,
    /// Flash programs data of the host past the cache of single-level cells, because that is full.
    PastCache,
    /// Flash reads and programs data again that lies in the cache of single-level cells, because
    /// writes wait for room in it.
    Folding,
    /// Flash does the same because the host is idle. No command waits for this work to begin.
    IdleFolding,
    /// Flash moves valid data out of blocks, to erase them.
    Collection,
    /// Flash erases blocks.
    Erases,
    /// The head of a disk moves to another track.
    Seeks,
    /// The head of a disk waits on its track until the sector comes round.
    Rotation,
    /// Sectors pass the head of a disk.
    Transfer,
    /// A volume serves what its baseline rate allows.
    BaselineRate,
    /// A volume serves more than that, on burst credit.
    BurstCredit,
}

impl Work {
    /// All kinds.
    pub const ALL: [Self; 15] = [
        Self::Reads,
        Self::MapReads,
        Self::MapPrograms,
        Self::Programs,
        Self::CachePrograms,
        Self::PastCache,
        Self::Folding,
        Self::IdleFolding,
        Self::Collection,
        Self::Erases,
        Self::Seeks,
        Self::Rotation,
        Self::Transfer,
        Self::BaselineRate,
        Self::BurstCredit,
    ];
}

/// The time of each kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkTimes([Duration; Work::ALL.len()]);

impl WorkTimes {
    /// No work.
    pub const NONE: Self = Self([Duration::ZERO; Work::ALL.len()]);

    /// Adds `time` of `work`.
    pub fn add(&mut self, work: Work, time: Duration) {
        self.0[work as usize] += time;
    }

    /// Adds all times of `other`.
    pub fn merge(&mut self, other: &Self) {
        other.iter().for_each(|(work, time)| self.add(work, time));
    }

    /// Returns each kind of work with its time.
    pub fn iter(&self) -> impl Iterator<Item = (Work, Duration)> {
        Work::ALL.into_iter().zip(self.0)
    }

    /// Returns the time of all work.
    #[must_use]
    pub(crate) fn total(&self) -> Duration {
        self.0.into_iter().fold(Duration::ZERO, |sum, time| sum + time)
    }
}

/// What parts that work side by side did, of all parts together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartsLoad {
    /// The parts.
    pub parts: Parts,
    /// Their number, at least one.
    pub units: u32,
    /// The time for which they were occupied, with what they waited for meanwhile.
    pub used: Duration,
    /// The same by kind of work, if it has kinds.
    pub work: WorkTimes,
}

impl PartsLoad {
    /// Returns the load of `units` parts whose work has kinds.
    pub(super) fn of_work(parts: Parts, units: u32, work: WorkTimes) -> Self {
        debug_assert!(units > 0, "{parts:?} are at least one");
        Self { parts, units, used: work.total(), work }
    }

    /// Returns the load of `units` parts whose work has no kinds.
    pub(super) const fn of_time(parts: Parts, units: u32, used: Duration) -> Self {
        debug_assert!(units > 0, "time is that of a part at least");
        Self { parts, units, used, work: WorkTimes::NONE }
    }
}

/// Where flash put what left its buffer, in units, and what it wrote besides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Units that left the buffer.
    pub units: u64,
    /// Those of them that went past the full cache of single-level cells.
    pub past_cache: u64,
    /// Units that were folded out of that cache because it was full.
    pub folded: u64,
    /// Units that collection moved.
    pub collected: u64,
}

/// What a medium did since it last forgot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MediumLoad {
    /// Its parts of each kind, each before those that wait for it.
    pub parts: Vec<PartsLoad>,
    /// The time for which its buffer or cache was full: writes waited for room in it.
    pub buffer_full: Duration,
    /// The time that commands waited for their parts, over all commands: the reads of a command
    /// that wait side by side each count.
    pub waited: Duration,
    /// What it wrote, if it is flash.
    pub written: Option<Written>,
}

/// What flash wrote, in percent of the data that left its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WrittenFigures {
    /// Data that went past the full cache of single-level cells.
    pub past_cache_percent: f64,
    /// Data that was folded out of that cache, programmed again, because it was full.
    pub folded_percent: f64,
    /// Data that collection moved.
    pub collected_percent: f64,
}

/// How the medium of a drive limits a design.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MediumLimit {
    /// The parts of it that are occupied most.
    pub parts: Parts,
    /// The share of the time for which they are, as a mean over them; for flash and disks with the
    /// waits of their work, for flash without what it folds in idle time.
    pub percent: f64,
    /// What takes much of their time.
    pub cause: MediumCause,
    /// The part of that share that each kind of work takes, if at least 1 %, largest first.
    pub work: Vec<(Work, f64)>,
    /// The share of the time for which writes wait for room in the medium's buffer or cache.
    pub buffer_full_percent: f64,
    /// The share of the time of commands for which they wait for dies, if there are many more
    /// commands than dies and that is most of it.
    pub queued_percent: Option<f64>,
    /// What flash writes.
    pub written: Option<WrittenFigures>,
}

/// What takes much of the time of a medium's parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MediumCause {
    /// The commands of the host.
    Commands,
    /// The cache of single-level cells is full: data bypasses it, or is folded to make room.
    FullCache,
    /// Collection moves data and erases blocks to make room.
    Collection,
}

/// Measures for how long something lasts: a full buffer, or work that is done one piece at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lasting {
    is_on: bool,
    since: Instant,
    time: Duration,
}

impl Lasting {
    /// Returns the measure of something that has not begun.
    pub(super) const fn new() -> Self {
        Self { is_on: false, since: Instant::ZERO, time: Duration::ZERO }
    }

    /// Notes what happened until `now`: whether there is reason for it then, and whether it goes on
    /// without one. Call this after each call on the medium.
    pub(super) fn note(&mut self, reason: bool, goes_on: bool, now: Instant) {
        debug_assert!(self.since <= now, "the instants of calls on a medium should not fall");
        if self.is_on {
            self.time += now.since(self.since);
        }
        self.since = now;
        self.is_on = reason || (self.is_on && goes_on);
    }

    /// Returns the time for which it lasted until the last note.
    pub(super) const fn time(&self) -> Duration {
        self.time
    }

    /// Starts counting again.
    pub(super) const fn forget(&mut self) {
        self.time = Duration::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_us(us)
    }

    #[test]
    fn a_full_buffer_begins_with_a_write_that_waits_and_lasts_as_long_as_the_medium_says() {
        let mut lasting = Lasting::new();
        lasting.note(false, true, at(10));
        lasting.note(true, true, at(20));
        assert_eq!(lasting.time(), Duration::ZERO, "programs that wait alone fill nothing");
        lasting.note(false, true, at(50));
        lasting.note(false, false, at(70));
        lasting.note(false, true, at(100));
        assert_eq!(lasting.time(), Duration::from_us(50));
        lasting.forget();
        lasting.note(true, false, at(110));
        lasting.note(false, false, at(115));
        assert_eq!(lasting.time(), Duration::from_us(5));
    }

    #[test]
    fn work_is_added_by_its_kind() {
        let mut one = WorkTimes::NONE;
        let mut other = WorkTimes::NONE;
        for (at, work) in Work::ALL.into_iter().enumerate() {
            assert_eq!(work as usize, at, "{work:?} has another place in the list");
        }
        one.add(Work::Seeks, Duration::from_us(3));
        other.add(Work::Seeks, Duration::from_us(4));
        other.add(Work::Reads, Duration::from_us(5));
        one.merge(&other);
        let seen: Vec<_> = one.iter().filter(|(_, time)| *time > Duration::ZERO).collect();
        let expected = [(Work::Reads, Duration::from_us(5)), (Work::Seeks, Duration::from_us(7))];
        assert_eq!((seen.as_slice(), one.total()), (expected.as_slice(), Duration::from_us(12)));
    }
}
