//! The device families. A new family is a folder, and a line in the list at the end of this file.

use crate::activity::Activity;
use crate::compare::{RunLoad, RunTotals};
use crate::data::event::{DataEvent, Place, ReportsData};
use crate::family::{
    Explained, FamilyModel, FamilyProfile, Limit, LimitingPart, NoFigures, NoHost, Queues,
    RunFigures, Setup,
};
use crate::reader::error::ProfileError;
use crate::reader::table::Table;
use crate::tables::FigureTable;
use crate::terms::{Completion, DeviceEvent, Dispatch, Events};
use blockyard::driver::{Device, Driver};
use blockyard::limits::Limits;
use blockyard::prng::Prng;
use blockyard::time::{Duration, Instant};
use blockyard_mmc::policy::HostPolicy;
use core::convert::Infallible;
use core::fmt;
use serde::Serialize;
use std::sync::LazyLock;

/// A family, for the reader of a file.
pub(crate) struct Listed {
    /// The tables that only this family has.
    pub tables: &'static [&'static str],
    /// Those of them that make a file one of this family.
    pub(crate) signs: &'static [&'static str],
    /// The name of its signs in messages.
    pub(crate) sign_words: &'static str,
    /// For each of its tables, the device that is most likely the base of a file with it.
    pub(crate) bases: fn() -> Vec<(&'static str, &'static str)>,
    /// Reads a device of the family.
    pub read: fn(&Table<'_>) -> Result<DeviceModel, ProfileError>,
}

/// The keys at the top of a device's file.
pub(crate) static KEYS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let of_all = ["title", "base", "processors", "limits", "cache"];
    let of_families = FAMILIES.iter().flat_map(|family| family.tables).copied();
    of_all.into_iter().chain(of_families).chain(["cpu"]).collect()
});

/// For each table, the device that is most likely the base of a file with it; others are drives of
/// flash.
pub(crate) static USUAL_BASES: LazyLock<Vec<(&'static str, &'static str)>> =
    LazyLock::new(|| FAMILIES.iter().rev().flat_map(|family| (family.bases)()).collect());

/// The tables of each family. A device has those of one family.
pub fn family_tables() -> impl Iterator<Item = &'static [&'static str]> {
    FAMILIES.iter().map(|family| family.tables)
}

/// Defines [`DeviceModel`] and [`Model`], which hand each call to the family of a device. They are
/// enums rather than objects, so that the calls for each request are direct.
///
/// A line has the profile and the model of a family. Behind them stand the figures, the limits and
/// the evidence that only this family has, if it has any: the figures with their name in answers,
/// and with the report that they come from.
macro_rules! families {
    ($(
        $(#[doc = $doc:literal])+
        $(#[cfg($cfg:meta)])?
        $name:ident($profile:ty => $model:ty
            $(, figures $(#[doc = $of_figures:literal])+ $(#[cfg($figures_cfg:meta)])? $field:ident: $report:ty => $figures:ty)?
            $(, limits $(#[cfg($limits_cfg:meta)])? $limit:ty)?
            $(, evidence $(#[cfg($evidence_cfg:meta)])? $evidence:ty)?
        ),
    )+) => {
        /// The figures of a device, by its family.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(clippy::large_enum_variant, reason = "there are one or two of them at a time")]
        pub enum DeviceModel {
            $($(#[doc = $doc])+ $(#[cfg($cfg)])? $name($profile),)+
        }

        /// A modelled device. Every call compares the tag of this enum, so the tag must not be
        /// merged into those of the variants; [`Stack`](crate::stack::Stack) does the same.
        #[derive(Debug)]
        #[repr(u8)]
        pub enum Model {
            $($(#[doc = $doc])+ $(#[cfg($cfg)])? $name($model),)+
            /// A device that records the calls made on it.
            #[cfg(test)]
            Probe(crate::probe::Probe),
        }

        /// All families.
        pub(crate) const FAMILIES: &[Listed] = &[$($(#[cfg($cfg)])? Listed {
            tables: <$profile as FamilyProfile>::TABLES,
            signs: <$profile as FamilyProfile>::SIGNS,
            sign_words: <$profile as FamilyProfile>::SIGN_WORDS,
            bases: <$profile as FamilyProfile>::bases,
            read: |top| <$profile as FamilyProfile>::read(top).map(DeviceModel::$name),
        },)+];

        impl DeviceModel {
            /// The kind of device in a noun phrase, for messages.
            #[must_use]
            pub fn kind(&self) -> &'static str {
                match self { $($(#[cfg($cfg)])? Self::$name(of) => FamilyProfile::kind(of),)+ }
            }

            /// The condition of a rule of udev for its disks, which goes by their names in Linux.
            #[must_use]
            pub fn disk_condition(&self) -> &'static str {
                match self { $($(#[cfg($cfg)])? Self::$name(of) => FamilyProfile::disk_condition(of),)+ }
            }

            /// Its hardware queues under the policy of a design for MMC hosts.
            #[must_use]
            pub fn queues(&self, host: Option<HostPolicy>) -> Queues {
                match self { $($(#[cfg($cfg)])? Self::$name(of) => FamilyProfile::queues(of, host),)+ }
            }

            /// Builds an idle device.
            ///
            /// # Errors
            ///
            /// [`NoHost`] if an MMC host cannot work by the policy of the design.
            pub(crate) fn build(&self, setup: Setup<'_>) -> Result<Model, NoHost> {
                Ok(match self {
                    $($(#[cfg($cfg)])? Self::$name(of) => Model::$name(FamilyProfile::build(of, setup)?.into()),)+
                })
            }

            /// The commands that it takes at once; `None` if no one number says it: of several
            /// queues, only some may be in use.
            #[must_use]
            pub fn commands_max(&self) -> Option<u32> {
                match self { $($(#[cfg($cfg)])? Self::$name(of) => FamilyProfile::commands_max(of),)+ }
            }

            /// Whether the number of its commands and the time of each explain a rate (Little's
            /// law).
            #[must_use]
            pub fn is_explained_by_commands(&self) -> bool {
                match self { $($(#[cfg($cfg)])? Self::$name(of) => FamilyProfile::is_explained_by_commands(of),)+ }
            }

            /// Returns the part of the device that limits a run of this load, if it is used up.
            /// Such a part comes before the depth of the queue: that fills up because the part is
            /// slow.
            #[must_use]
            pub fn limit(&self, figures: &FamilyFigures, load: &RunLoad) -> Option<Limit<FamilyLimit>> {
                match self {
                    $($(#[cfg($cfg)])? Self::$name(of) => {
                        let own = None$(.or(figures.$field.as_ref()))?;
                        Some(FamilyProfile::limit(of, own, load)?.map(FamilyLimit::from))
                    })+
                }
            }

            /// Returns the part of the device or its host that limits a run, if the run is limited
            /// neither by [`Self::limit`] nor by its depth, a lock or the processors.
            #[must_use]
            pub fn last_limit(&self, figures: &FamilyFigures, load: &RunLoad) -> Option<FamilyLimit> {
                match self {
                    $($(#[cfg($cfg)])? Self::$name(of) => {
                        let own = None$(.or(figures.$field.as_ref()))?;
                        FamilyProfile::last_limit(of, own, load).map(FamilyLimit::from)
                    })+
                }
            }

            /// The tables that only a device like this one has.
            pub(crate) fn tables(&self) -> Vec<&'static str> {
                match self { $($(#[cfg($cfg)])? Self::$name(of) => FamilyProfile::tables(of),)+ }
            }

            /// Returns the device with `disks` disks; `None` if it is always one disk.
            pub(crate) fn with_disks(self, disks: u16) -> Option<Self> {
                match self {
                    $($(#[cfg($cfg)])? Self::$name(of) => FamilyProfile::with_disks(of, disks).map(Self::$name),)+
                }
            }

            /// Returns the limits for a file that does not state them, from those of any device.
            pub(crate) fn usual_limits(&self, of_any: Limits) -> Limits {
                match self { $($(#[cfg($cfg)])? Self::$name(of) => FamilyProfile::usual_limits(of, of_any),)+ }
            }

            /// Whether it has a volatile write cache for its queue, if it takes FUA writes or not.
            pub(crate) fn write_cache(&self, fua: bool) -> bool {
                match self { $($(#[cfg($cfg)])? Self::$name(of) => FamilyProfile::write_cache(of, fua),)+ }
            }

            /// Checks that a device like this can have `limits`.
            pub(crate) fn check(&self, top: &Table<'_>, limits: &Limits) -> Result<(), ProfileError> {
                match self { $($(#[cfg($cfg)])? Self::$name(of) => FamilyProfile::check(of, top, limits),)+ }
            }
        }

        families!(@model $($(#[cfg($cfg)])? $name)+ #[cfg(test)] Probe);

        explanations! {
            figures {$($(
                $(#[doc = $of_figures])+ $(#[cfg($figures_cfg)])? $field: $name($report => $figures),
            )?)+}
            limits {$($($(#[cfg($limits_cfg)])? $name($limit),)?)+}
            evidence {$($($(#[cfg($evidence_cfg)])? $name($evidence),)?)+}
        }
    };
    (@model $($(#[cfg($cfg:meta)])? $name:ident)+) => {
        impl Model {
            /// Starts the commands that were handed over since the last call, at `at`.
            pub fn start(&mut self, at: Instant, events: &mut Events) {
                match self { $($(#[cfg($cfg)])? Self::$name(of) => of.start(at, events),)+ }
            }

            /// Handles an event of the device that is due.
            ///
            /// # Panics
            ///
            /// Panics if this device never scheduled an event.
            pub fn event(&mut self, event: DeviceEvent, now: Instant, events: &mut Events) {
                match self { $($(#[cfg($cfg)])? Self::$name(of) => of.event(event, now, events),)+ }
            }

            /// Returns the way in which the hardware queues of this device are dispatched.
            #[must_use]
            pub fn dispatch(&self) -> Dispatch {
                match self { $($(#[cfg($cfg)])? Self::$name(of) => of.dispatch(),)+ }
            }

            /// Returns the way in which this device completes requests of a hardware queue that is
            /// not polled.
            #[must_use]
            pub fn completion(&self) -> Completion {
                match self { $($(#[cfg($cfg)])? Self::$name(of) => of.completion(),)+ }
            }

            /// Whether requests complete only in [`Self::event`], one at most in each: then none is
            /// left for the work that handles a completion. A drive may announce several in one
            /// event.
            #[must_use]
            pub(crate) fn completes_one_by_one(&self) -> bool {
                match self { $($(#[cfg($cfg)])? Self::$name(of) => of.completes_one_by_one(),)+ }
            }

            /// Starts measuring at `now`, and forgets earlier activity.
            pub fn forget_activity(&mut self, now: Instant) {
                match self { $($(#[cfg($cfg)])? Self::$name(of) => of.forget(now),)+ }
            }

            /// Returns the time until `now` in which this device had work.
            #[must_use]
            pub fn busy(&self, now: Instant) -> Duration {
                match self { $($(#[cfg($cfg)])? Self::$name(of) => of.busy(now),)+ }
            }

            /// Returns the mean time between two periods of work.
            #[must_use]
            pub fn mean_gap(&self) -> Duration {
                match self { $($(#[cfg($cfg)])? Self::$name(of) => of.mean_gap(),)+ }
            }

            /// The sum over time of outstanding commands, in command-nanoseconds.
            #[must_use]
            pub fn held_ns(&self) -> u128 {
                self.activity().held_ns()
            }

            /// Takes the time that the calling processor spent in the device since the last call,
            /// apart from the costs of the path.
            #[inline]
            pub fn take_spent(&mut self) -> Duration {
                match self { $($(#[cfg($cfg)])? Self::$name(of) => of.take_spent(),)+ }
            }

            /// Keeps the data of writes from now on, if such a device keeps its own. `draws`
            /// decides what a loss of power leaves.
            pub fn keep_data(&mut self, draws: Prng) {
                match self { $($(#[cfg($cfg)])? Self::$name(of) => of.keep_data(draws),)+ }
            }

            fn activity(&self) -> &Activity {
                match self { $($(#[cfg($cfg)])? Self::$name(of) => of.activity(),)+ }
            }
        }

        impl Driver for Model {
            blockyard::pass_on!(
                Self::{$($(#[cfg($cfg)])? $name),+}:
                take_budget, return_budget, prepare, unprepare, queue_rq, commit, timed_out, finish
            );
        }

        impl Device for Model {
            blockyard::pass_on!(Self::{$($(#[cfg($cfg)])? $name),+}: next_finished, poll_at);
        }

        impl ReportsData for Model {
            fn keeps_data(&self) -> bool {
                match self { $($(#[cfg($cfg)])? Self::$name(of) => of.keeps_data(),)+ }
            }

            fn advance_data(&mut self, now: Instant) {
                match self { $($(#[cfg($cfg)])? Self::$name(of) => of.advance_data(now),)+ }
            }

            fn next_data_event(&mut self) -> Option<DataEvent<Place>> {
                match self { $($(#[cfg($cfg)])? Self::$name(of) => of.next_data_event(),)+ }
            }
        }
    };
}

/// Defines what the families have together of figures, limits and evidence, from the lists that
/// [`families`] makes of its own.
macro_rules! explanations {
    (
        figures {$($(#[doc = $doc:literal])+ $(#[cfg($cfg:meta)])? $field:ident: $name:ident($report:ty => $figures:ty),)+}
        limits {$($(#[cfg($limit_cfg:meta)])? $limited:ident($limit:ty),)+}
        evidence {$($(#[cfg($evidence_cfg:meta)])? $explained:ident($evidence:ty),)+}
    ) => {
        /// The counts of a run of a family's own; nothing if the family has no counts.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct FamilyReport {
            $($(#[doc = $doc])+ $(#[cfg($cfg)])? pub $field: Option<$report>,)+
        }

        /// The figures of a run of a family's own.
        #[derive(Clone, Debug, Default, PartialEq, Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub struct FamilyFigures {
            $(
                $(#[doc = $doc])+
                $(#[cfg($cfg)])?
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $field: Option<$figures>,
            )+
        }

        impl FamilyFigures {
            /// The figures of a run with these `totals`.
            #[must_use]
            pub fn of(report: &FamilyReport, totals: &RunTotals) -> Self {
                Self {
                    $($(#[cfg($cfg)])? $field: report.$field.as_ref().and_then(|of| RunFigures::of(of, totals)),)+
                }
            }

            /// The figures of the family that the device is of.
            #[must_use]
            pub fn own(&self) -> &dyn Explained {
                $($(#[cfg($cfg)])? if let Some(figures) = &self.$field {
                    return figures;
                })+
                &NoFigures
            }

            /// Returns the tables of runs on one device, in the order in which people read them. A
            /// family without figures of its own has none.
            #[must_use]
            pub fn tables(runs: &[&Self]) -> Vec<FigureTable> {
                let mut tables = Vec::new();
                $($(#[cfg($cfg)])? {
                    let own: Vec<_> = runs.iter().filter_map(|of| of.$field.as_ref()).collect();
                    if !own.is_empty() {
                        tables.extend(RunFigures::tables(&own));
                    }
                })+
                tables
            }

            /// Explains the rates of two runs by something else than their commands, if their
            /// family does.
            #[must_use]
            pub fn whole_difference(&self, high: &Self) -> Option<FamilyEvidence> {
                $($(#[cfg($cfg)])? if let Some(low) = &self.$field {
                    return low.whole_difference(high.$field.as_ref()?).map(Into::into);
                })+
                None
            }

            /// Explains why the rates of commands of two runs differ, along with their limits.
            #[must_use]
            pub fn command_rates(&self, high: &Self) -> Option<FamilyEvidence> {
                $($(#[cfg($cfg)])? if let Some(low) = &self.$field {
                    return low.command_rates(high.$field.as_ref()?).map(Into::into);
                })+
                None
            }

            /// Names the idle times of two runs, the one of the design `names[0]` and `high` of
            /// `names[1]`, if these differ and say more than the rates.
            #[must_use]
            pub fn idle_times(&self, names: [&str; 2], high: &Self) -> Option<FamilyEvidence> {
                $($(#[cfg($cfg)])? if let Some(low) = &self.$field {
                    return low.idle_times(names, high.$field.as_ref()?).map(Into::into);
                })+
                None
            }

            /// Says what the I/Os of a design spend their time on, for a device whose I/Os a
            /// processor does within the call: no request of it waits in a queue.
            #[must_use]
            pub fn time_in_calls(&self, design: &str) -> Option<FamilyEvidence> {
                $($(#[cfg($cfg)])? if let Some(of) = &self.$field {
                    return of.time_in_calls(design).map(Into::into);
                })+
                None
            }
        }

        impl Model {
            /// What the device counted until `now` of its family's own.
            #[must_use]
            pub fn report(&self, now: Instant) -> FamilyReport {
                let mut report = FamilyReport::default();
                match self {
                    $($(#[cfg($cfg)])? Self::$name(of) => {
                        report.$field = Some(<$figures as RunFigures>::report(of, now));
                    })+
                    _ => {}
                }
                report
            }
        }

        /// A part of a device or of its host that limits a run, by the family of the device.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(untagged)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum FamilyLimit {
            $(
                /// Of a device of this family.
                $(#[cfg($limit_cfg)])?
                $limited($limit),
            )+
        }

        /// A clause that says how the part is the bottleneck.
        impl fmt::Display for FamilyLimit {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.part().fmt(f)
            }
        }

        $($(#[cfg($limit_cfg)])? impl From<$limit> for FamilyLimit {
            fn from(limit: $limit) -> Self {
                Self::$limited(limit)
            }
        })+

        impl From<Infallible> for FamilyLimit {
            fn from(no: Infallible) -> Self {
                match no {}
            }
        }

        impl FamilyLimit {
            /// The part.
            #[must_use]
            pub fn part(&self) -> &dyn LimitingPart {
                match self { $($(#[cfg($limit_cfg)])? Self::$limited(part) => part,)+ }
            }
        }

        /// A fact of a family behind a difference. Times are in nanoseconds.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(untagged)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum FamilyEvidence {
            $(
                /// Of devices of this family.
                $(#[cfg($evidence_cfg)])?
                $explained($evidence),
            )+
        }

        $($(#[cfg($evidence_cfg)])? impl From<$evidence> for FamilyEvidence {
            fn from(evidence: $evidence) -> Self {
                Self::$explained(evidence)
            }
        })+

        impl From<Infallible> for FamilyEvidence {
            fn from(no: Infallible) -> Self {
                match no {}
            }
        }

        /// The evidence as a sentence, or as several.
        impl fmt::Display for FamilyEvidence {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self { $($(#[cfg($evidence_cfg)])? Self::$explained(of) => of.fmt(f),)+ }
            }
        }
    };
}

families! {
    /// A device that only completes requests: `[null]`.
    Null(crate::null::profile::NullProfile => crate::null::Null),
    /// A SCSI host with its target: `[hba]`.
    Hba(crate::scsi::profile::HbaProfile => crate::scsi::Hba,
        limits crate::scsi::evidence::HbaLimit),
    /// An eMMC device or SD card behind its host: `[card]` and `[host]`.
    Mmc(crate::mmc::profile::MmcProfile => Box<crate::mmc::host::MmcHost>,
        figures
        /// The MMC host, if the device is one.
        mmc: crate::mmc::host::HostReport => crate::mmc::figures::HostFigures,
        limits crate::mmc::evidence::MmcLimit,
        evidence crate::mmc::evidence::MmcEvidence),
    /// Memory that keeps its bytes: `[pmem]`.
    Pmem(crate::pmem::profile::PmemProfile => Box<crate::pmem::Pmem>,
        figures
        /// What processors spent I/Os on, if the device is persistent memory.
        pmem: crate::pmem::PmemReport => crate::pmem::figures::PmemFigures,
        evidence crate::pmem::evidence::PmemEvidence),
    /// A drive: the tables of a front end and of a medium.
    Drive(crate::fronts::profile::DriveProfile => Box<crate::fronts::Drive>,
        figures
        /// What the drive did, if the device is one.
        drive: crate::fronts::DriveReport => crate::fronts::figures::DriveFigures,
        limits crate::fronts::evidence::DriveLimit),
    /// The example of a family.
    #[cfg(test)]
    Fixed(crate::fixed::FixedProfile => crate::fixed::Fixed,
        figures
        /// The number of commands.
        #[cfg(test)]
        fixed: u64 => crate::fixed::FixedFigures,
        limits #[cfg(test)] crate::fixed::FixedLimit,
        evidence #[cfg(test)] crate::fixed::FixedEvidence),
}
