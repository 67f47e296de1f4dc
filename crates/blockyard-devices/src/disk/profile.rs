//! A hard disk's mechanics: the table `[platters]`.
//!
//! Data sheets give the rates of the outer and the inner zone, three seek times and the speed of
//! the spindle. The sectors of a track and the number of cylinders follow from them and from the
//! capacity.

use super::Platters;
use super::evidence;
use crate::charges::{Charges, Resource};
use crate::counters::Counter;
use crate::load::Work;
use crate::medium::{MediumFamily, MediumWords};
use blockyard::limits::Limits;
use blockyard::prng::Prng;
use blockyard::time::Duration;
use blockyard::unit::SECTOR_BYTES;

use crate::reader::error::{Problem, ProfileError};
use crate::reader::table::{Table, table_of};
use crate::reader::value::{Bytes, Count, OneOf, Rate, Time};

/// Cylinders of a disk at most.
const CYLINDERS_MAX: u64 = 1 << 24;
/// Cylinders of a disk at least, so that its seeks differ.
const CYLINDERS_MIN: u64 = 16;
/// Sectors of a track at most.
const TRACK_SECTORS_MAX: u64 = 1 << 20;
/// Bytes of a sector on the platters at most.
const PHYSICAL_MAX: u64 = 65_536;
/// The longest seek, error, switch of heads or age.
const LONGEST: Duration = Duration::from_secs(60);
/// Commands among which a firmware chooses at most.
const WINDOW_MAX: u32 = 65_536;
/// Bytes of a stream in a row at most, which is as good as no bound.
const STREAM_MAX: u64 = 1 << 40;
/// Writes in a batch at most.
const BATCH_MAX: u32 = 1 << 24;

/// The figures of a hard disk's mechanics, its cache and its choice of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlattersProfile {
    /// Revolutions of the spindle per minute.
    pub(crate) rpm: u64,
    /// Surfaces with data, each with a head.
    pub heads: u16,
    /// Zones, each with the same number of cylinders and with tracks of one length.
    pub(crate) zones: u16,
    /// Bytes per second in sequence in the outermost zone, steps from track to track included.
    pub(crate) outer: u64,
    /// Bytes per second in sequence in the innermost zone.
    pub(crate) inner: u64,
    /// Cylinders that one head serves before the next head serves them on the way back. 1: cylinder
    /// by cylinder.
    pub(crate) band: u32,
    /// Time from one head to another.
    pub(crate) head_switch: Duration,
    /// Bytes of a sector on the platters: 4096 where those of commands are emulated. What a write
    /// covers a part of is read first, and written a turn later.
    pub(crate) physical_sector: u64,
    /// The seeks of reads.
    pub read: SeekProfile,
    /// The seeks of writes: they settle for longer.
    pub write: SeekProfile,
    /// The order of the commands that the disk holds.
    pub order: CommandOrder,
    /// What the firmware knows, in the order [`CommandOrder::Estimated`].
    pub(crate) estimate: EstimateProfile,
    /// A command that has waited for longer goes next. It has no effect in the order of arrival.
    pub(crate) age_max: Duration,
    /// Bytes of one stream of commands that the arm serves in a row while it can serve others. It
    /// has no effect in the order of arrival.
    pub(crate) stream_max: u64,
    /// Time from the arrival of a command that the cache does not answer until the arm can serve
    /// it.
    pub(crate) overhead: Duration,
    /// The cache.
    pub cache: DiskCacheProfile,
}

/// Times of seeks, settling included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeekProfile {
    /// To the next cylinder.
    pub(crate) track: Duration,
    /// The mean over all pairs of cylinders.
    pub(crate) average: Duration,
    /// From the outermost to the innermost cylinder.
    pub full: Duration,
}

/// The knowledge of a firmware that estimates how soon the head can begin a command.
///
/// The errors belong to a movement from one place to another. They are sums of four uniform draws,
/// nearly normal, with a mean of 0, and never exceed 3.47 standard deviations. A command on the
/// track under the head has no error: the servo marks show the firmware where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EstimateProfile {
    /// The standard deviation of the error of a seek's time.
    pub(crate) seek_error: Duration,
    /// The standard deviation of the error of the angle at which the head arrives, as a time.
    pub(crate) rotation_error: Duration,
    /// The standard deviation that the firmware takes its errors to have. It adds the chance that a
    /// sector is missed times a revolution. 0: it takes its estimate to be exact.
    pub(crate) expected_error: Duration,
    /// Commands among which the firmware chooses: the oldest ones.
    pub window: u32,
    /// Time by which a command is preferred for each second that it has waited. 0: none.
    pub(crate) age_credit: Duration,
}

impl EstimateProfile {
    /// The knowledge of the exact time of each command.
    pub(crate) const EXACT: Self = Self {
        seek_error: Duration::ZERO,
        rotation_error: Duration::ZERO,
        expected_error: Duration::ZERO,
        window: WINDOW_MAX,
        age_credit: Duration::ZERO,
    };
}

/// The cache of a hard disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskCacheProfile {
    /// Bytes for data that was read, and read ahead. 0: there is no such cache.
    pub read: u64,
    /// Parts of that cache, each of which follows one stream.
    pub segments: u16,
    /// When the head leaves a reader in sequence for other work.
    pub(crate) leaving: Leaving,
    /// Bytes that the head reads ahead of a reader in sequence before it leaves, at most a segment.
    pub(crate) ahead_least: u64,
    /// Bytes of writes that are acknowledged before they are on the platters. 0: there is no such
    /// cache.
    pub write: u64,
    /// Time without commands after which the disk writes to the platters what it has acknowledged.
    pub idle: Duration,
    /// The part of `write` that is in use when the disk begins to write to the platters without
    /// being idle, in percent.
    pub start: u64,
    /// Acknowledged writes that go to the platters in one sorted batch, the oldest first. Writes in
    /// sequence count as one, up to the end of a track.
    pub batch: u32,
    /// How such a batch takes turns with the commands that the arm can serve.
    pub(crate) turns: Turns,
}

/// When a head that reads ahead of a reader in sequence leaves for other work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// When it has read the least number of bytes.
    AtOnce,
    /// After that, as late as it can without being late for its sector: it reads while it would
    /// wait there.
    InTime,
}

/// How acknowledged writes that are to go to the platters take turns with commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turns {
    /// Commands go first; while others wait for room in the cache, one write goes for each.
    OneEach,
    /// A batch that has begun ends before any command. The next one begins when no command is held,
    /// or while others wait for room, after as many commands as a batch has writes.
    Batch,
    /// The one that the firmware expects the head to begin first goes, be it a command or a write
    /// of the batch. While others wait for room, no more commands go in a row than a batch has
    /// writes.
    Position,
}

const TURNS: &[(&str, Turns)] =
    &[("one-each", Turns::OneEach), ("batch", Turns::Batch), ("position", Turns::Position)];

const LEAVING: &[(&str, Leaving)] = &[("at-once", Leaving::AtOnce), ("in-time", Leaving::InTime)];

/// Which command of those that a disk holds goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandOrder {
    /// The one that came first.
    Arrival,
    /// The one that the head can begin first.
    Shortest,
    /// The one that the firmware expects the head to begin first.
    Estimated,
}

const ORDER: &[(&str, CommandOrder)] = &[
    ("arrival", CommandOrder::Arrival),
    ("shortest", CommandOrder::Shortest),
    ("estimated", CommandOrder::Estimated),
];

impl SeekProfile {
    /// Returns the time of a seek over a third of the cylinders, where the curve turns from a
    /// square root into a line; `None` if no such curve has these three times.
    ///
    /// The mean distance between two of many cylinders is a third of them, and distances `x` are as
    /// likely as `2 - 2x`. With them, the mean over the curve is a sum of 27 parts of `track`, 88
    /// of the time at a third and 20 of `full`, in 135.
    #[must_use]
    pub(crate) fn knee(&self) -> Option<Duration> {
        let ends = 27 * self.track.as_ns() + 20 * self.full.as_ns();
        let knee_ns = (135 * self.average.as_ns()).checked_sub(ends)? / 88;
        let rises = (self.track.as_ns()..self.full.as_ns()).contains(&knee_ns);
        rises.then_some(Duration::from_ns(knee_ns))
    }
}

impl PlattersProfile {
    /// Returns what the firmware knows in the order of this profile.
    #[must_use]
    pub(crate) const fn knowledge(&self) -> EstimateProfile {
        match self.order {
            CommandOrder::Estimated => self.estimate,
            CommandOrder::Arrival | CommandOrder::Shortest => EstimateProfile::EXACT,
        }
    }

    /// Returns the time of a revolution.
    #[must_use]
    pub(crate) const fn revolution(&self) -> Duration {
        Duration::from_ns(60_000_000_000 / self.rpm)
    }

    /// Returns the sectors of a track of `zone`, from 0 for the outermost. Tracks become shorter in
    /// even steps, and have whole sectors of the platters.
    #[must_use]
    pub(crate) fn track_sectors(&self, zone: u16) -> u64 {
        debug_assert!(zone < self.zones, "zone {zone} of {}", self.zones);
        let fall = u128::from(self.outer.saturating_sub(self.inner)) * u128::from(zone);
        let rate = u128::from(self.outer) - fall / u128::from((self.zones - 1).max(1));
        let track = self.revolution() + self.read.track.max(self.write.track);
        let sectors = rate * u128::from(track.as_ns()) / (1_000_000_000 * u128::from(SECTOR_BYTES));
        let sectors = u64::try_from(sectors).unwrap_or(u64::MAX);
        sectors - sectors % self.physical()
    }

    /// Returns the sectors of 512 bytes in one on the platters.
    #[must_use]
    pub(crate) const fn physical(&self) -> u64 {
        self.physical_sector / SECTOR_BYTES as u64
    }

    /// Returns the cylinders of each zone of a disk with `capacity` sectors: whole bands.
    #[must_use]
    pub(crate) fn zone_cylinders(&self, capacity: u64) -> u64 {
        let tracks: u64 = (0..self.zones).map(|zone| self.track_sectors(zone)).sum();
        let cylinders = capacity.div_ceil(tracks * u64::from(self.heads));
        cylinders.next_multiple_of(self.band.into())
    }

    /// Checks that a disk like this can have `capacity` sectors.
    pub(crate) fn agrees(&self, capacity: u64) -> Result<(), &'static str> {
        let zone = self.zone_cylinders(capacity);
        let cylinders = zone * u64::from(self.zones);
        if cylinders > CYLINDERS_MAX {
            return Err("this capacity needs more than 16777216 cylinders of `[platters]`");
        }
        let used = capacity / (self.track_sectors(0) * u64::from(self.heads));
        if used < CYLINDERS_MIN.max(u64::from(self.band) * u64::from(self.zones)) {
            return Err(
                "this capacity needs fewer than 16 cylinders of `[platters]`, or less than a band in each zone",
            );
        }
        Ok(())
    }
}

impl MediumFamily for PlattersProfile {
    type Medium = Platters;

    const TABLE: &'static str = "platters";
    const BASE: Option<&'static str> = Some("hdd-7200");
    const WORDS: MediumWords = evidence::WORDS;
    const COUNTERS: &'static [Counter] = evidence::COUNTERS;

    fn read(top: &Table<'_>) -> Result<Self, ProfileError> {
        platters(top)
    }

    fn rotates(&self) -> bool {
        true
    }

    fn write_cache(&self) -> bool {
        self.cache.write > 0
    }

    fn check(&self, top: &Table<'_>, limits: &Limits) -> Result<(), ProfileError> {
        let agrees = if limits.max_discard_sectors > 0 {
            Err("`[platters]` have nothing to discard: every sector has its place")
        } else {
            self.agrees(limits.capacity_sectors)
        };
        agrees.map_err(|words| top.wrong("limits", Problem::Contradiction(words)))
    }

    fn build(&self, capacity: u64, prng: Prng) -> Self::Medium {
        Platters::new(*self, capacity, prng)
    }
}

/// What each key of the table charges.
pub(crate) const CHARGES: Charges = &[
    ("rpm", &[Resource::Work(Work::Rotation)]),
    ("outer", &[Resource::Work(Work::Transfer)]),
    ("inner", &[Resource::Work(Work::Transfer)]),
    ("head-switch", &[Resource::Work(Work::Seeks)]),
];

/// What each key of the tables of seeks charges.
pub(crate) const SEEK_CHARGES: Charges = &[
    ("track", &[Resource::Work(Work::Seeks)]),
    ("average", &[Resource::Work(Work::Seeks)]),
    ("full", &[Resource::Work(Work::Seeks)]),
];

table_of!(PLATTERS, fn figures("platters") -> PlattersProfile {
    rpm: "rpm" need(Count(1_000..=30_000)),
    heads: "heads" need(Count(1..=64)),
    zones: "zones" need(Count(1..=256)),
    outer: "outer" need(Rate),
    inner: "inner" need(Rate),
    band: "band" need(Count(1..=65_536)),
    head_switch: "head-switch" need(Time),
    physical_sector: "physical-sector" take_or(Bytes(512..=PHYSICAL_MAX), 512),
    read: "read" by(read),
    write: "write" by(write),
    order: "order" take_or(OneOf(ORDER), CommandOrder::Shortest),
    estimate: "estimate" by(estimate),
    age_max: "age-max" need(Time),
    stream_max: "stream-max" take_or(Bytes(512..=STREAM_MAX), STREAM_MAX),
    overhead: "overhead" take_or(Time, Duration::ZERO),
    cache: "cache" by(cache),
});

table_of!(READ, fn read("platters.read") -> SeekProfile {
    track: "track" need(Time),
    average: "average" need(Time),
    full: "full" need(Time),
});

table_of!(WRITE, fn write("platters.write") -> SeekProfile {
    track: "track" need(Time),
    average: "average" need(Time),
    full: "full" need(Time),
});

table_of!(ESTIMATE, fn estimate("platters.estimate") -> EstimateProfile {
    seek_error: "seek-error" take_or(Time, EstimateProfile::EXACT.seek_error),
    rotation_error: "rotation-error" take_or(Time, EstimateProfile::EXACT.rotation_error),
    expected_error: "expected-error" take_or(Time, EstimateProfile::EXACT.expected_error),
    window: "window" take_or(Count(1..=WINDOW_MAX), EstimateProfile::EXACT.window),
    age_credit: "age-credit" take_or(Time, EstimateProfile::EXACT.age_credit),
});

table_of!(CACHE, fn cache("platters.cache") -> DiskCacheProfile {
    read: "read" need(Bytes(0..=1 << 34)),
    segments: "segments" need(Count(1..=1024)),
    leaving: "leaving" take_or(OneOf(LEAVING), Leaving::AtOnce),
    ahead_least: "ahead-least" take_or(Bytes(0..=1 << 34), 0),
    write: "write" need(Bytes(0..=1 << 34)),
    idle: "idle" need(Time),
    start: "start" take_or(Count(0..=100), 100),
    batch: "batch" take_or(Count(1..=BATCH_MAX), BATCH_MAX),
    turns: "turns" take_or(OneOf(TURNS), Turns::OneEach),
});

/// Reads the table `[platters]` of `parent`, and checks that there is such a disk.
pub(crate) fn platters(parent: &Table<'_>) -> Result<PlattersProfile, ProfileError> {
    let profile = figures(parent)?;
    let table = parent.table("platters", PLATTERS)?;
    if profile.inner > profile.outer {
        let words = "the inner zone of a disk is not faster than the outer one";
        return Err(table.wrong("inner", Problem::Contradiction(words)));
    }
    if !profile.physical_sector.is_power_of_two() {
        let words = "the size of a sector is a power of two";
        return Err(table.wrong("physical-sector", Problem::Contradiction(words)));
    }
    let longest = |seek: SeekProfile| seek.track.max(seek.average).max(seek.full);
    let EstimateProfile { seek_error, rotation_error, expected_error, age_credit, .. } =
        profile.estimate;
    let seeks = [profile.head_switch, longest(profile.read), longest(profile.write)];
    let choices =
        [profile.age_max, profile.overhead, seek_error, rotation_error, expected_error, age_credit];
    if seeks.into_iter().chain(choices).any(|time| time > LONGEST) {
        let words = "a seek, its error, a switch of heads or an age takes at most 60s";
        return Err(table.wrong("", Problem::Contradiction(words)));
    }
    for (key, seek) in [("read", profile.read), ("write", profile.write)] {
        if seek.knee().is_none() {
            let words = "no seek curve has these times: `average` lies between `track` and `full`, and \
                         nearer to a third of the way than to its ends";
            return Err(table.wrong(key, Problem::Contradiction(words)));
        }
    }
    let longest = profile.track_sectors(0);
    let shortest = profile.track_sectors(profile.zones - 1);
    if shortest < 8 || longest > TRACK_SECTORS_MAX {
        let words = "with these rates, a track has less than 4KiB or more than 512MiB";
        return Err(table.wrong("outer", Problem::Contradiction(words)));
    }
    Ok(profile)
}
