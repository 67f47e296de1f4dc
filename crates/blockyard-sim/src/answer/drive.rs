//! A drive: what its front end and its medium did.

#![expect(clippy::float_arithmetic, reason = "means are for reading: nothing is ordered by them")]

use serde::{Serialize, Serializer};

use super::number::{approximate, ratio};
use crate::device::medium::MediumCounts;
use crate::simulate::Report;

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
    /// The share of the time in which the parts of the medium that work side by side are in use, as a mean over them.
    pub medium_percent: f64,
    /// The counters of the medium, by name. Times are in nanoseconds.
    #[cfg_attr(feature = "schema", schemars(with = "std::collections::BTreeMap<String, u64>"))]
    #[serde(serialize_with = "by_name")]
    pub medium: MediumCounts,
}

fn by_name<S: Serializer>(counts: &MediumCounts, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(counts.iter().copied())
}

impl DriveFigures {
    /// The figures of `report` if its device is a drive.
    #[must_use]
    pub fn of(report: &Report) -> Option<Self> {
        let drive = report.drive.as_ref()?;
        let span = approximate(report.span.as_ns());
        let percent = |ns: u64| ratio(100.0 * approximate(ns), span);
        let commands = approximate(drive.commands);
        debug_assert!(drive.medium_use.units > 0, "a medium has a part");
        Some(Self {
            commands_per_doorbell: ratio(commands, approximate(drive.doorbells)),
            interrupts_per_command: ratio(approximate(report.totals.interrupts), commands),
            controller_percent: percent(drive.front_use.controller.as_ns()),
            link_percent: percent(drive.front_use.link.as_ns()),
            medium_percent: percent(drive.medium_use.used.as_ns())
                / f64::from(drive.medium_use.units),
            medium: drive.medium.clone(),
        })
    }
}
