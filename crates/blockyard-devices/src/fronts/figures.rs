//! A drive: what its front end and its medium did.

#![expect(clippy::float_arithmetic, reason = "means are for reading: nothing is ordered by them")]

use serde::{Serialize, Serializer};

use super::{DiskReport, DriveReport};
use crate::compare::{BusiestDisk, RunTotals};
use crate::load::{MediumLoad, Parts, Work, WrittenFigures};
use crate::medium::MediumCounts;
use blockyard_text::number::{approximate, approximate_sum, ratio, share_percent};

/// The figures of a drive, or of the drives of one host. Of several, shares of the time are those
/// of the busiest one, so an idle disk does not hide how busy another one is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DriveFigures {
    /// Commands for each doorbell: above 1 where a run posts several.
    pub commands_per_doorbell: f64,
    /// Interrupts for each command; 0 if all of its queues are polled.
    pub interrupts_per_command: f64,
    /// The share of the time in which the controller takes commands.
    pub controller_percent: f64,
    /// The share of the time in which the link is in use, in its busier direction.
    pub link_percent: f64,
    /// The share of the time in which the parts of the medium that work side by side are in use, as
    /// a mean over them.
    pub medium_percent: f64,
    /// The disk that the shares are of, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<BusiestDisk>,
    /// The counters of the medium, by name. Times are in nanoseconds. Of several disks, counts and
    /// times are sums, and a share is that of the busiest one.
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema_of_counters"))]
    #[serde(serialize_with = "by_name")]
    pub medium: MediumCounts,
    /// The share of the time for which the host's thread of a synchronous engine works on commands
    /// or waits for the medium. The explanation has it.
    #[serde(skip)]
    pub engine_percent: f64,
    /// Commands at the disk, on average.
    #[serde(skip)]
    pub at_device: f64,
    /// What an explanation needs to know of the medium; the explanation has it.
    #[serde(skip)]
    pub load: LoadFigures,
}

/// What the parts of a medium spent their time on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadFigures {
    /// Its parts of each kind, each before those that wait for it.
    pub parts: Vec<PartsFigures>,
    /// The share of the time for which writes waited for room in the medium's buffer or cache.
    pub buffer_full_percent: f64,
    /// The time that commands waited for their parts, as a share of the time of all commands at the
    /// device.
    pub waited_percent: f64,
    /// What flash wrote.
    pub written: Option<WrittenFigures>,
}

/// What parts that work side by side spent their time on.
#[derive(Clone, Debug, PartialEq)]
pub struct PartsFigures {
    /// The parts.
    pub parts: Parts,
    /// Their number.
    pub units: u32,
    /// The share of the time for which they were occupied, as a mean over them.
    pub percent: f64,
    /// The part of that share that each kind of work took, largest first; empty if the work has no
    /// kinds.
    pub work: Vec<(Work, f64)>,
}

fn by_name<S: Serializer>(counts: &MediumCounts, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(counts.iter().copied())
}

/// The schema of a medium's counters, with what each means ([every-counter-is-explained]).
#[cfg(feature = "schema")]
fn schema_of_counters(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    use crate::counters::counters;
    use schemars::json_schema;
    let mut properties = json_schema!({});
    for (_, of) in counters() {
        let name = of.name;
        let same = counters().filter(|(_, other)| other.name == name);
        let told = same.map(|(medium, of)| format!("{medium}: {}. {}", of.meaning, of.reading));
        let description = told.collect::<Vec<_>>().join(" ");
        let property =
            json_schema!({ "type": "integer", "minimum": 0, "description": description });
        properties.insert(name.to_owned(), property.into());
    }
    json_schema!({ "type": "object", "properties": properties, "additionalProperties": false })
}

impl DriveFigures {
    /// The figures of `drive` in a run with these `totals`.
    pub(super) fn new(drive: &DriveReport, totals: &RunTotals) -> Option<Self> {
        let span = approximate(totals.span.as_ns());
        let commands = approximate(drive.commands);
        let disks = u16::try_from(drive.disks.len()).expect("disks have numbers of 16 bits");
        let alone = (1..=disks).zip(&drive.disks).map(|(number, disk)| Self {
            commands_per_doorbell: ratio(commands, approximate(drive.doorbells)),
            interrupts_per_command: ratio(approximate(totals.interrupts), commands),
            disk: (disks > 1).then_some(BusiestDisk { number, disks }),
            ..Self::of_disk(disk, span)
        });
        let busiest = alone.reduce(Self::busier)?;
        Some(Self { medium: together(drive, busiest.medium), ..busiest })
    }

    /// The figures of one disk in a `span` of so many nanoseconds.
    fn of_disk(disk: &DiskReport, span: f64) -> Self {
        debug_assert!(disk.medium_use.units > 0, "a medium has a part");
        let held = approximate_sum(disk.held_ns);
        Self {
            commands_per_doorbell: 0.0,
            interrupts_per_command: 0.0,
            controller_percent: share_percent(disk.front_use.controller.as_ns(), span),
            link_percent: share_percent(disk.front_use.link.as_ns(), span),
            medium_percent: share_percent(disk.medium_use.used.as_ns(), span)
                / f64::from(disk.medium_use.units),
            disk: None,
            medium: disk.medium.clone(),
            engine_percent: share_percent(disk.engine_use.as_ns(), span),
            at_device: ratio(held, span),
            load: LoadFigures::new(&disk.medium_load, span, held),
        }
    }

    /// The one of two disks whose busiest part is in use for longer; of equals, the first.
    fn busier(self, other: Self) -> Self {
        if other.busiest_percent() > self.busiest_percent() { other } else { self }
    }

    /// The share of the time for which the part in use for longest is.
    fn busiest_percent(&self) -> f64 {
        let of_front = [self.controller_percent, self.link_percent, self.engine_percent];
        let parts = self.load.parts.iter().map(|parts| parts.percent);
        of_front.into_iter().chain(parts).fold(self.medium_percent, f64::max)
    }
}

/// The counters of all disks of `drive`: sums, but for a share, which is that of the `busiest`.
fn together(drive: &DriveReport, busiest: MediumCounts) -> MediumCounts {
    let each = busiest.into_iter().enumerate().map(|(at, (name, own))| {
        let sum = drive.disks.iter().map(|disk| disk.medium[at].1).sum();
        (name, if name.ends_with("_percent") { own } else { sum })
    });
    each.collect()
}

impl LoadFigures {
    /// The figures of `load` in a `span` of so many nanoseconds, in which commands were at the
    /// device for `held` together. What parts began before it may count: no share is above 100 %.
    fn new(load: &MediumLoad, span: f64, held: f64) -> Self {
        debug_assert!(span >= 0.0, "a span should not be negative");
        let parts = load.parts.iter().map(|of| {
            debug_assert!(of.units > 0, "{:?} are none", of.parts);
            let times =
                of.work.iter().map(|(work, time)| (work, share(time.as_ns(), span, of.units)));
            let mut work: Vec<_> = times.filter(|(_, percent)| *percent > 0.0).collect();
            work.sort_by(|a, b| b.1.total_cmp(&a.1));
            let percent = share(of.used.as_ns(), span, of.units);
            PartsFigures { parts: of.parts, units: of.units, percent, work }
        });
        let written = load.written.map(|written| WrittenFigures {
            past_cache_percent: share_percent(written.past_cache, approximate(written.units)),
            folded_percent: share_percent(written.folded, approximate(written.units)),
            collected_percent: share_percent(written.collected, approximate(written.units)),
        });
        Self {
            parts: parts.collect(),
            buffer_full_percent: share(load.buffer_full.as_ns(), span, 1),
            waited_percent: share_percent(load.waited.as_ns(), held).min(100.0),
            written,
        }
    }
}

/// The share of `units` that were in use for `ns` together, in percent of their time.
fn share(ns: u64, span: f64, units: u32) -> f64 {
    share_percent(ns, span * f64::from(units)).min(100.0)
}
