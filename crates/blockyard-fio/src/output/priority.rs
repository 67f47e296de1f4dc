//! The latencies of I/Os by their priority, as fio prints them for jobs with I/Os of several
//! priorities.

use crate::job::Reporting;
use crate::measure::Measured;
use blockyard::stats::Histogram;

use super::number;
use super::spread::{extremes as extremes_of, percentiles_of};

/// One priority, and the latencies of its I/Os.
pub(super) struct OfPriority<'a> {
    pub(super) class: u16,
    pub(super) level: u16,
    pub(super) values: &'a Histogram,
}

/// Returns the name of the latency that is reported by priority, and its values; none unless there
/// are several priorities.
pub(super) fn all<'a>(
    show: &Reporting,
    measured: &'a Measured,
) -> (&'static str, Vec<OfPriority<'a>>) {
    let total = show.lat_percentiles;
    let mut of: Vec<_> = measured
        .by_priority
        .iter()
        .map(|(encoded, latencies)| OfPriority {
            class: encoded >> 13,
            level: encoded & 0x1fff,
            values: if total { &latencies.lat_ns } else { &latencies.clat_ns },
        })
        .collect();
    if of.len() < 2 {
        of.clear();
    }
    (if total { "lat" } else { "clat" }, of)
}

/// Writes the extremes of each priority.
pub(super) fn extremes(show: &Reporting, measured: &Measured) -> String {
    let (name, all) = all(show, measured);
    let line = |of: &OfPriority<'_>| {
        extremes_of(&format!("{name} prio {}/{}", of.class, of.level), of.values)
    };
    all.iter().map(line).collect()
}

/// Writes the percentiles of each priority, if percentiles are shown.
pub(super) fn percentiles(show: &Reporting, measured: &Measured) -> String {
    let (name, all) = all(show, measured);
    if !(show.clat_percentiles || show.lat_percentiles) || show.percentiles.is_empty() {
        return String::new();
    }
    let lines = |of: &OfPriority<'_>| {
        let share = number::percent(of.values.count().into(), measured.ios.into());
        let name = format!("{name} prio {}/{} ({share:.2}% of IOs)", of.class, of.level);
        percentiles_of(&name, of.values, &show.percentiles)
    };
    all.iter().map(lines).collect()
}
