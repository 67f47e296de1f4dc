//! A drive: what its front end and its medium did.

#![expect(clippy::float_arithmetic, reason = "means are for reading: nothing is ordered by them")]

use serde::{Serialize, Serializer};

use blockyard_devices::load::{MediumLoad, Parts, Work};
use blockyard_devices::medium::MediumCounts;
use blockyard_sim::simulate::Report;
use blockyard_text::number::{approximate, approximate_sum, ratio, share_percent};

/// The figures of a drive.
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
    /// The counters of the medium, by name. Times are in nanoseconds.
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema_of_counters"))]
    #[serde(serialize_with = "by_name")]
    pub medium: MediumCounts,
    /// The share of the time for which the host's thread of a synchronous engine works on commands
    /// or waits for the medium. The explanation has it.
    #[serde(skip)]
    pub engine_percent: f64,
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
    pub(crate) buffer_full_percent: f64,
    /// The time that commands waited for their parts, as a share of the time of all commands at the
    /// device.
    pub(crate) waited_percent: f64,
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

/// What flash wrote, in percent of the data that left its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WrittenFigures {
    /// Data that went past the full cache of single-level cells.
    pub(crate) past_cache_percent: f64,
    /// Data that was folded out of that cache, programmed again, because it was full.
    pub(crate) folded_percent: f64,
    /// Data that collection moved.
    pub collected_percent: f64,
}

fn by_name<S: Serializer>(counts: &MediumCounts, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(counts.iter().copied())
}

/// The schema of a medium's counters, with what each means ([every-counter-is-explained]).
#[cfg(feature = "schema")]
fn schema_of_counters(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    use blockyard_devices::counters::{COUNTERS, Counter};
    use schemars::json_schema;
    let mut properties = json_schema!({});
    for Counter { name, .. } in COUNTERS {
        let same = COUNTERS.iter().filter(|other| other.name == *name);
        let told = same.map(|of| format!("{}: {}. {}", of.medium, of.meaning, of.reading));
        let description = told.collect::<Vec<_>>().join(" ");
        let property =
            json_schema!({ "type": "integer", "minimum": 0, "description": description });
        properties.insert((*name).to_owned(), property.into());
    }
    json_schema!({ "type": "object", "properties": properties, "additionalProperties": false })
}

impl DriveFigures {
    /// The figures of `report` if its device is a drive.
    #[must_use]
    pub fn of(report: &Report) -> Option<Self> {
        let drive = report.drive.as_ref()?;
        let span = approximate(report.span.as_ns());
        let commands = approximate(drive.commands);
        let held = approximate_sum(report.commands_held_ns);
        debug_assert!(drive.medium_use.units > 0, "a medium has a part");
        Some(Self {
            commands_per_doorbell: ratio(commands, approximate(drive.doorbells)),
            interrupts_per_command: ratio(approximate(report.totals.interrupts), commands),
            controller_percent: share_percent(drive.front_use.controller.as_ns(), span),
            link_percent: share_percent(drive.front_use.link.as_ns(), span),
            medium_percent: share_percent(drive.medium_use.used.as_ns(), span)
                / f64::from(drive.medium_use.units),
            medium: drive.medium.clone(),
            engine_percent: share_percent(drive.engine_use.as_ns(), span),
            load: LoadFigures::new(&drive.medium_load, span, held),
        })
    }
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
