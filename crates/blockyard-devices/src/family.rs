//! A device family: what its folder gives to the rest of the crate.
//!
//! A family has a [`FamilyProfile`], its figures as a file states them, and a [`FamilyModel`], the
//! device that the figures build. [`families`](crate::families) lists all of them in one place.
//! If runs on it have figures of their own, these are [`RunFigures`] and [`Explained`]; a part of
//! the device that limits runs is a [`LimitingPart`].
//!
//! Every method with a usual answer has it here, so that a simple family states only what it is:
//! its tables, its queues and its model.

use crate::activity::Activity;
use crate::btt::BttDesign;
use crate::cache::CacheProfile;
use crate::charges::Resource;
use crate::compare::{BusiestDisk, RunLoad, RunTotals};
use crate::data::event::ReportsData;
use crate::reader::error::ProfileError;
use crate::reader::table::Table;
use crate::tables::FigureTable;
use crate::terms::{Completion, DeviceEvent, Dispatch, Events};
use blockyard::limits::Limits;
use blockyard::prng::Prng;
use blockyard::time::{Duration, Instant};
use blockyard_mmc::block::Unsupported;
use blockyard_mmc::policy::HostPolicy;
use blockyard_text::number::percent;
use core::convert::Infallible;
use core::fmt;

/// The keys of the table `[limits]`.
pub(crate) const LIMITS: &[&str] = &[
    "capacity",
    "logical-block",
    "max-sectors",
    "max-hw-sectors",
    "max-segments",
    "max-discard-sectors",
    "max-discard-segments",
    "max-write-zeroes-sectors",
    "chunk-sectors",
    "virt-boundary",
    "write-cache",
    "fua",
    "rotational",
];

/// The hardware queues and the disks of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queues {
    /// Hardware queues.
    pub hctxs: u16,
    /// Driver tags of one hardware queue, or of all of them if they are shared.
    pub depth: u16,
    /// Disks.
    pub disks: u16,
    /// Whether each disk has so many tags of its own. Otherwise the disks share them.
    pub(crate) own_tags: bool,
    /// Whether all hardware queues share one set of tags.
    pub shared: bool,
    /// The commands of a SCSI disk, SATA, USB and UFS included; `None`: the disk is no SCSI disk.
    pub(crate) scsi_depth: Option<u16>,
}

/// The decisions of a machine and of a design about a device that is built.
#[derive(Clone, Debug)]
pub(crate) struct Setup<'a> {
    /// The limits of a request; the capacity is that of one disk.
    pub(crate) limits: &'a Limits,
    /// The costs of a volatile cache, if the device's file states them.
    pub(crate) cache: Option<CacheProfile>,
    /// Processors of the machine.
    pub(crate) cpus: u16,
    /// Hardware queues in use.
    pub(crate) hctxs: u16,
    /// Of these, the last ones, which processors poll.
    pub(crate) polled: u16,
    /// The policy of an MMC host; `None`: that of its usual driver.
    pub(crate) host: Option<HostPolicy>,
    /// Whether an MMC host's driver unmaps the memory of each request.
    pub(crate) unmaps: bool,
    /// Whether the cache of an SD card is turned on, if it has one.
    pub(crate) sd_cache: bool,
    /// The block translation table over persistent memory.
    pub(crate) btt: Option<&'a BttDesign>,
    /// The device's random draws.
    pub(crate) draws: Prng,
}

/// A host that cannot work by the policy of a design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoHost {
    /// The policy.
    pub(crate) policy: HostPolicy,
    /// What the host or the card lacks.
    pub(crate) why: Unsupported,
}

/// The figures of a device.
pub(crate) trait FamilyProfile: Copy {
    /// The model that the figures build.
    type Model: FamilyModel;
    /// The figures of a run that only such devices have; [`Infallible`] if there are none.
    type Figures;
    /// The parts that only such devices have and that limit runs; [`Infallible`] if there are none.
    type Limit;

    /// The tables of a file that only this family has.
    const TABLES: &'static [&'static str];
    /// Those of them that make a file one of this family.
    const SIGNS: &'static [&'static str] = Self::TABLES;
    /// The name of its signs in messages.
    const SIGN_WORDS: &'static str;

    /// Returns, for each of its tables, the built-in device that is most likely the base of a file
    /// with it. The first one counts. Without one, a file is shown the usual base.
    fn bases() -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }

    /// Reads the figures from `top`, or else from its base.
    fn read(top: &Table<'_>) -> Result<Self, ProfileError>;

    /// The kind of device in a noun phrase, for messages.
    fn kind(&self) -> &'static str;

    /// The condition of a rule of udev for its disks.
    fn disk_condition(&self) -> &'static str;

    /// Its hardware queues under the policy of a design for MMC hosts.
    fn queues(&self, host: Option<HostPolicy>) -> Queues;

    /// Builds an idle device.
    fn build(&self, setup: Setup<'_>) -> Result<Self::Model, NoHost>;

    /// The tables that only a device like this one has.
    fn tables(&self) -> Vec<&'static str> {
        Self::TABLES.to_vec()
    }

    /// Returns the device with `disks` disks; `None` if it is always one disk.
    fn with_disks(self, disks: u16) -> Option<Self> {
        (disks == 1).then_some(self)
    }

    /// Returns the limits for a file that does not state them, from those of any device.
    fn usual_limits(&self, of_any: Limits) -> Limits {
        of_any
    }

    /// Whether it has a volatile write cache for its queue, if it takes FUA writes or not.
    fn write_cache(&self, fua: bool) -> bool {
        let _ = fua;
        false
    }

    /// Checks that a device like this can have `limits`. `top` is its file, for the place of an
    /// error.
    fn check(&self, top: &Table<'_>, limits: &Limits) -> Result<(), ProfileError> {
        let _ = (top, limits);
        Ok(())
    }

    /// The commands that it takes at once; `None` if no one number says it: of several queues, only
    /// some may be in use.
    fn commands_max(&self) -> Option<u32> {
        None
    }

    /// Whether the number of its commands and the time of each explain a rate (Little's law). A
    /// driver that holds requests back, or a device that ends them within the call, is explained by
    /// other figures.
    fn is_explained_by_commands(&self) -> bool {
        false
    }

    /// Returns the part of the device that limits a run of this `load`, if it is used up, or the
    /// pace of the jobs although such a part is full at times. `figures` are those of the run.
    fn limit(&self, figures: Option<&Self::Figures>, load: &RunLoad) -> Option<Limit<Self::Limit>> {
        let _ = (figures, load);
        None
    }

    /// Returns the part of the device or its host that limits a run, if the run is limited neither
    /// by [`Self::limit`] nor by its depth, a lock or the processors.
    fn last_limit(&self, figures: Option<&Self::Figures>, load: &RunLoad) -> Option<Self::Limit> {
        let _ = (figures, load);
        None
    }
}

/// A modelled device.
pub(crate) trait FamilyModel: ReportsData {
    /// The times at which the device had commands.
    fn activity(&self) -> &Activity;

    /// As [`Self::activity`], to change them.
    fn activity_mut(&mut self) -> &mut Activity;

    /// Starts the commands that were handed over since the last call, at `at`.
    fn start(&mut self, at: Instant, events: &mut Events) {
        let _ = (at, events);
    }

    /// Handles an event of the device that is due at `now`.
    fn event(&mut self, event: DeviceEvent, now: Instant, events: &mut Events) {
        let _ = (now, events);
        unreachable!("{event:?} of a device that schedules no events")
    }

    /// The way in which its hardware queues are dispatched.
    fn dispatch(&self) -> Dispatch {
        Dispatch::Direct
    }

    /// The way in which it completes requests of a hardware queue that is not polled.
    fn completion(&self) -> Completion {
        Completion::Interrupt
    }

    /// Whether requests complete only in [`Self::event`], one at most in each.
    fn completes_one_by_one(&self) -> bool {
        false
    }

    /// Starts measuring at `now`, and forgets earlier activity.
    fn forget(&mut self, now: Instant) {
        self.activity_mut().forget(now);
    }

    /// The time until `now` in which it had work.
    fn busy(&self, now: Instant) -> Duration {
        let _ = now;
        self.activity().busy()
    }

    /// The mean time between two periods of work.
    fn mean_gap(&self) -> Duration {
        self.activity().mean_gap()
    }

    /// Takes the time that the calling processor spent in the device since the last call.
    fn take_spent(&mut self) -> Duration {
        Duration::ZERO
    }

    /// Keeps the data of writes from now on, if such a device keeps its own. `draws` decides what a
    /// loss of power leaves.
    fn keep_data(&mut self, draws: Prng) {
        let _ = draws;
    }
}

/// The limit of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit<P> {
    /// A part of the device or of its host.
    Part(P),
    /// The pace of the jobs, although a part of the device is full at times.
    Jobs,
}

impl<P> Limit<P> {
    /// Returns the limit with its part as a part of another type.
    pub(crate) fn map<Q>(self, of: impl FnOnce(P) -> Q) -> Limit<Q> {
        match self {
            Self::Part(part) => Limit::Part(of(part)),
            Self::Jobs => Limit::Jobs,
        }
    }
}

/// Figures of a run that only devices of one family have. They come from what a model counted.
/// `high` is another run, of the same device.
pub(crate) trait RunFigures: Explained + Sized {
    /// The model of a device of the family.
    type Model;
    /// What it counts.
    type Report;
    /// The facts behind a difference; [`Infallible`] if there are none.
    type Evidence;

    /// Returns what `model` counted until `now`.
    fn report(model: &Self::Model, now: Instant) -> Self::Report;

    /// Returns the figures of a run with this `report` and these `totals`, if there are any.
    fn of(report: &Self::Report, totals: &RunTotals) -> Option<Self>;

    /// Returns the tables of `runs`, at least one, in the order in which people read them.
    fn tables(runs: &[&Self]) -> Vec<FigureTable>;

    /// Explains the rates of two runs by something else than their commands.
    fn whole_difference(&self, high: &Self) -> Option<Self::Evidence> {
        let _ = high;
        None
    }

    /// Explains why the rates of commands of two runs differ, along with their limits.
    fn command_rates(&self, high: &Self) -> Option<Self::Evidence> {
        let _ = high;
        None
    }

    /// Names the idle times of two runs, the one of the design `names[0]` and `high` of `names[1]`,
    /// if these differ and say more than the rates.
    fn idle_times(&self, names: [&str; 2], high: &Self) -> Option<Self::Evidence> {
        let _ = (names, high);
        None
    }

    /// Says what the I/Os of `design` spend their time on, for a device whose I/Os a processor does
    /// within the call: no request of it waits in a queue.
    fn time_in_calls(&self, design: &str) -> Option<Self::Evidence> {
        let _ = design;
        None
    }
}

/// What the figures of a single run tell. A family overrides what it has.
pub trait Explained {
    /// Returns the figures of a single run in fio's style, if the family has such lines.
    fn lines(&self) -> Option<String> {
        None
    }

    /// The disk that the figures are of, if they are those of the busiest of several disks.
    fn busiest_disk(&self) -> Option<BusiestDisk> {
        None
    }

    /// The commands at that disk, on average.
    fn at_busiest_disk(&self) -> Option<f64> {
        None
    }

    /// The resources of the family that the commands of a run of this `load` spend their time on.
    fn resources(&self, load: &RunLoad) -> Vec<Resource> {
        let _ = load;
        Vec::new()
    }

    /// The CPU time of an I/O that is spent in a device whose I/Os a processor does, in
    /// nanoseconds.
    fn in_calls_ns(&self) -> f64 {
        0.0
    }
}

/// The figures of a family without any.
pub(crate) struct NoFigures;

impl Explained for NoFigures {}

/// A part of a device or of its host that limits a run. It is shown as a clause that says how the
/// part is the bottleneck.
pub trait LimitingPart: fmt::Display {
    /// Whether each of several disks has this part of its own.
    fn is_of_disk(&self) -> bool {
        false
    }

    /// Whether an answer that says why the rates of commands differ has thereby stated this limit.
    fn is_told_by_command_rates(&self) -> bool {
        false
    }

    /// Returns the resources whose time limits a run of this `load`.
    fn resources(&self, load: &RunLoad) -> Vec<Resource>;
}

/// The clause of a link to a device that is in use for this share of the time.
pub(crate) fn link(percent_used: f64) -> String {
    debug_assert!(percent_used >= 0.0, "a link in use for {percent_used} % of the time");
    format!("the link to the device is the bottleneck ({} in use)", percent(percent_used))
}

impl LimitingPart for Infallible {
    fn resources(&self, _load: &RunLoad) -> Vec<Resource> {
        match *self {}
    }
}
