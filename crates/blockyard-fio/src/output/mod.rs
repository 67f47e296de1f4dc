//! fio's layouts of a run's figures: [`json()`] in fio's JSON layout, [`terse()`] as lines of
//! fields, and [`text()`] for people; [`log`] writes files over time.
//!
//! Keys without a counterpart in a simulation are still present for programs that read fio's
//! output:
//!
//! - always zero: page faults, short and dropped I/Os, and the clock (`timestamp`, `time`);
//! - CPU time of a job counts as system time, except for `thinktime_spin`;
//! - `job options` are the options as written, and the principal ones as parsed.
//!
//! As in fio, an I/O of a synchronous engine has no separate submission latency.

mod bins;
mod disk;
mod json;
pub mod log;
mod number;
mod options;
mod priority;
mod rates;
mod spread;
mod targets;
mod terse;
mod text;

pub use disk::{Disk, Side};
pub use json::{Json, json};
pub use terse::terse;
pub use text::text;

use std::collections::BTreeMap;

use crate::job::{Job, JobFile, Op, Reporting, UnifiedReporting};
use crate::measure::depth::Classes;
use crate::measure::{JobReport, Measured, per_second};
use blockyard::stats::Histogram;

use rates::Rates;

/// The figures of a run.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The jobs.
    pub jobs: &'a JobFile,
    /// An entry for each instance, or for each job that reports as a group, in the order of the
    /// file.
    pub entries: &'a [JobReport],
}

/// An entry of a report: an instance, or a group of them.
struct Entry<'a> {
    job: &'a Job,
    report: &'a JobReport,
    /// The instances of the entry.
    instances: u32,
    /// The kinds of I/O under fio's names, in fio's order.
    kinds: Vec<(&'static str, Kind)>,
}

/// An entry's I/Os of one kind.
struct Kind {
    measured: Measured,
    runtime_ns: u64,
    /// Samples in KiB per second.
    bandwidth: Rates,
    /// The mean of these samples, in percent of the bandwidth of the whole group.
    share_percent: f64,
    /// Samples in I/Os per second.
    iops: Rates,
}

const OPS: [(&str, Op); 3] = [("read", Op::Read), ("write", Op::Write), ("trim", Op::Trim)];

/// Returns the entries of `run`.
fn entries(run: Run<'_>) -> Vec<Entry<'_>> {
    let jobs = &run.jobs.jobs;
    let mut entries = Vec::with_capacity(run.entries.len());
    for (at, report) in run.entries.iter().enumerate() {
        let job = &jobs[report.job];
        let next = run.entries.get(at + 1).map_or(jobs.len(), |next| next.job);
        let together = if job.group_reporting { &jobs[report.job..next] } else { &[] };
        let instances = together.iter().map(|job| job.numjobs).sum::<u32>().max(1);
        entries.push(Entry { job, report, instances, kinds: kinds(job, report) });
    }
    share_groups(&mut entries);
    entries
}

/// Sets [`Kind::share_percent`].
fn share_groups(entries: &mut [Entry<'_>]) {
    let mut groups: BTreeMap<(u32, &str), (u64, u64)> = BTreeMap::new();
    for entry in &*entries {
        for (name, kind) in &entry.kinds {
            let (bytes, runtime_ns) = groups.entry((entry.report.group, name)).or_default();
            *bytes += kind.measured.bytes;
            *runtime_ns = kind.runtime_ns.max(*runtime_ns);
        }
    }
    for entry in entries {
        for (name, kind) in &mut entry.kinds {
            let (bytes, runtime_ns) = groups[&(entry.report.group, *name)];
            let share = kind.bandwidth.share_percent(number::per_second(bytes, runtime_ns));
            kind.share_percent = share;
        }
    }
}

fn kinds(job: &Job, report: &JobReport) -> Vec<(&'static str, Kind)> {
    let runtime_ns = report.stats.runtime_ns();
    let apart = OPS.map(|(name, op)| {
        let measured = report.stats.ops.of(op).as_deref().map_or_else(Measured::default, |all| {
            if job.engine.is_async() { all.clone() } else { without_submission(all) }
        });
        let runtime_ns = if measured.ios > 0 { runtime_ns } else { 0 };
        (name, Kind::new(measured, runtime_ns))
    });
    if job.reporting.unified == UnifiedReporting::None {
        return apart.into();
    }
    let mut mixed = Measured::default();
    for (_, kind) in &apart {
        mixed.add(&kind.measured);
        mixed.bandwidth.extend(&kind.measured.bandwidth);
        mixed.iops.extend(&kind.measured.iops);
    }
    let mixed = Kind::new(mixed, runtime_ns);
    let keep = job.reporting.unified == UnifiedReporting::Both;
    apart.into_iter().filter(|_| keep).chain([("mixed", mixed)]).collect()
}

/// Returns the measurements with the total latency as completion latency.
fn without_submission(all: &Measured) -> Measured {
    Measured { slat_ns: Histogram::new(), clat_ns: all.lat_ns.clone(), ..all.clone() }
}

impl Entry<'_> {
    /// Returns the latencies of all I/Os of the entry.
    fn lat_ns(&self) -> Histogram {
        let mut all = Histogram::new();
        self.report.stats.measured().for_each(|measured| all.merge(&measured.lat_ns));
        all
    }

    /// Returns the user and the system time of each instance, in percent of its run.
    fn cpu_percent(&self) -> (f64, f64) {
        let stats = &self.report.stats;
        let run_ns = u128::from(stats.runtime_ns()) * u128::from(self.instances);
        let user_ns = stats.spent.thinking.as_ns();
        let system_ns = stats.cpu_ns.saturating_sub(user_ns);
        [user_ns, system_ns].map(|ns| number::percent(u128::from(ns), run_ns)).into()
    }
}

impl Kind {
    fn new(measured: Measured, runtime_ns: u64) -> Self {
        let bandwidth = Rates::of(&measured.bandwidth);
        let iops = Rates::of(&measured.iops);
        Self { measured, runtime_ns, bandwidth, share_percent: 0.0, iops }
    }

    fn bytes_per_s(&self) -> u64 {
        if self.runtime_ns == 0 { 0 } else { per_second(self.measured.bytes, self.runtime_ns) }
    }

    fn iops_of_run(&self) -> f64 {
        number::per_second(self.measured.ios, self.runtime_ns)
    }
}

/// Returns `ns` in milliseconds, rounded up.
const fn ms(ns: u64) -> u64 {
    ns.div_ceil(1_000_000)
}

/// Returns a percentile in the unit of histograms.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::float_arithmetic,
    reason = "a percentage of 0 to 100"
)]
fn per_hundred_thousand(percentile: f64) -> u32 {
    (percentile * 1000.0).round() as u32
}

/// The output's replacement for fio's version.
const VERSION: &str = concat!("blockyard-", env!("CARGO_PKG_VERSION"));

/// The names of fio's classes of depths.
const LEVELS: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];
/// The names of fio's classes of I/Os submitted or completed at a time.
const BATCHES: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];

/// Returns the percentage in each class.
fn shares(classes: &Classes) -> [f64; 7] {
    let all = classes.iter().sum::<u64>().into();
    classes.map(|count| number::percent(count.into(), all))
}

/// Returns the percentages for display with one decimal. A class that is not empty never shows as
/// 0.
fn shown_shares(classes: &Classes) -> [f64; 7] {
    shares(classes).map(|share| if share > 0.0 { share.max(0.1) } else { share })
}

/// Returns whether percentiles of syncs are shown, which is so if those of any latency are.
const fn tells_sync_percentiles(show: &Reporting) -> bool {
    (show.clat_percentiles && !show.disable_clat) || (show.lat_percentiles && !show.disable_lat)
}

/// Returns the share of `values` in each of fio's latency ranges, by unit: the range's name and its
/// percentage, to the thousandth.
fn latency_shares(values: &Histogram) -> [(&'static str, Vec<(String, f64)>); 3] {
    let mut below = 0;
    latency_ranges().map(|(unit, ranges)| {
        let share = |(name, bound)| {
            let up_to = share_up_to(values, bound);
            let share = number::percent((up_to - below).into(), Histogram::WHOLE.into());
            below = up_to;
            (name, share)
        };
        (unit, ranges.into_iter().map(share).collect())
    })
}

/// Returns the share of `values` that is at most `bound`.
fn share_up_to(values: &Histogram, bound: u64) -> u32 {
    if values.count() == 0 || values.min() > bound {
        return 0;
    }
    let mut within = 0;
    let mut beyond = Histogram::WHOLE + 1;
    while beyond - within > 1 {
        let middle = within.midpoint(beyond);
        if values.percentile(middle) <= bound { within = middle } else { beyond = middle }
    }
    within
}

/// The names of fio's latency ranges and their upper bounds in ns, by unit.
fn latency_ranges() -> [(&'static str, Vec<(String, u64)>); 3] {
    let mut ms = steps_of(1_000_000);
    ms.extend([("2000".to_owned(), 1_999_999_999), (">=2000".to_owned(), u64::MAX)]);
    [("ns", steps_of(1)), ("us", steps_of(1000)), ("ms", ms)]
}

/// The ranges in a unit of `ns` nanoseconds: their names and last values.
fn steps_of(ns: u64) -> Vec<(String, u64)> {
    const STEPS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];
    let bound = |step: &u64| {
        // A range's name is its end, except for the first range, which is below 2, and the
        // last.
        let end = if matches!(step, 2 | 1000) { step * ns } else { (step + 1) * ns };
        (step.to_string(), end - 1)
    };
    STEPS.iter().map(bound).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_latency_falls_into_one_range() {
        let mut values = Histogram::new();
        for ns in [0, 1, 2, 4, 5, 10, 999, 1000, 1999, 2000, 999_999, 1_000_000, 5_000_000_000] {
            values.record(ns);
        }
        let by_unit = latency_shares(&values);
        let shares: Vec<f64> = by_unit.into_iter().flat_map(|(_, all)| all).map(|s| s.1).collect();
        for (share, of, values) in [
            (shares[0], 2.0, "0 and 1 are below 2 ns"),
            (shares[1], 2.0, "2 and 4 are at most 4 ns"),
            (shares[10], 2.0, "1000 and 1999 ns are below 2 us"),
            (*shares.last().unwrap(), 1.0, "5 s"),
        ] {
            assert!((share - 100.0 * of / 13.0).abs() < 0.01, "{values}: {shares:?}");
        }
        assert!((shares.iter().sum::<f64>() - 100.0).abs() < 0.01);
    }
}
