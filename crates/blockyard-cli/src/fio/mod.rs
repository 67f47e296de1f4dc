//! A run as fio would report it: [`json()`] in its JSON layout, [`text()`] for people.
//!
//! What has no counterpart here is there all the same, so that programs made for fio's output find
//! the keys they look for:
//!
//! - always zero: page faults, samples of bandwidth and IOPS over time, short and dropped I/Os, the
//!   distribution of depths, latency of syncs, and the clock (`timestamp`, `time`);
//! - all processor time of a job counts as system time;
//! - `job options` are the principal ones as they were understood, not as they were written.
//!
//! As in fio, an I/O of a synchronous engine has no submission latency of its own.

mod json;
mod number;
mod text;

pub(crate) use json::json;
pub(crate) use text::text;

use blockyard::stats::Histogram;
use blockyard_sim::job::{Job, JobFile, Op, UnifiedReporting};
use blockyard_sim::measure::{Measured, per_second};
use blockyard_sim::simulate::{JobReport, Report};

/// What fio reports as one: an instance, or a group of them.
struct Entry<'a> {
    job: &'a Job,
    report: &'a JobReport,
    /// Instances in it.
    instances: u32,
    /// By fio's names, in fio's order.
    kinds: Vec<(&'static str, Kind)>,
}

/// What an entry did of one kind of I/O.
struct Kind {
    measured: Measured,
    runtime_ns: u64,
}

const OPS: [(&str, Op); 3] = [("read", Op::Read), ("write", Op::Write), ("trim", Op::Trim)];

/// The entries of `report`, the run of `jobs`.
fn entries<'a>(jobs: &'a JobFile, report: &'a Report) -> Vec<Entry<'a>> {
    let entry = |(at, of): (usize, &'a JobReport)| {
        let job = &jobs.jobs[of.job];
        let next = report.jobs.get(at + 1).map_or(jobs.jobs.len(), |next| next.job);
        let together = if job.group_reporting { &jobs.jobs[of.job..next] } else { &[] };
        let instances = together.iter().map(|job| job.numjobs).sum::<u32>().max(1);
        Entry { job, report: of, instances, kinds: kinds(job, of) }
    };
    report.jobs.iter().enumerate().map(entry).collect()
}

fn kinds(job: &Job, report: &JobReport) -> Vec<(&'static str, Kind)> {
    let runtime_ns = report.stats.runtime_ns();
    let of = |op| {
        let measured = report.stats.ops.of(op).as_deref().map_or_else(Measured::default, |all| {
            if job.engine.is_async() { all.clone() } else { without_submission(all) }
        });
        let runtime_ns = if measured.ios > 0 { runtime_ns } else { 0 };
        Kind { measured, runtime_ns }
    };
    let apart = OPS.map(|(name, op)| (name, of(op)));
    if job.reporting.unified == UnifiedReporting::None {
        return apart.into();
    }
    let mut mixed = Kind { measured: Measured::default(), runtime_ns };
    for (_, kind) in &apart {
        add(&mut mixed.measured, &kind.measured);
    }
    let keep = job.reporting.unified == UnifiedReporting::Both;
    apart.into_iter().filter(|_| keep).chain([("mixed", mixed)]).collect()
}

/// The same with the whole latency as completion latency.
fn without_submission(all: &Measured) -> Measured {
    Measured { slat_ns: Histogram::new(), clat_ns: all.lat_ns.clone(), ..all.clone() }
}

fn add(to: &mut Measured, more: &Measured) {
    to.ios += more.ios;
    to.bytes += more.bytes;
    to.slat_ns.merge(&more.slat_ns);
    to.clat_ns.merge(&more.clat_ns);
    to.lat_ns.merge(&more.lat_ns);
}

impl Entry<'_> {
    /// Latencies of all its I/Os.
    fn lat_ns(&self) -> Histogram {
        let mut all = Histogram::new();
        self.report.stats.measured().for_each(|measured| all.merge(&measured.lat_ns));
        all
    }

    /// Processor time for each instance, in percent of its run.
    fn cpu_percent(&self) -> f64 {
        let run_ns = u128::from(self.report.stats.runtime_ns()) * u128::from(self.instances);
        number::percent(u128::from(self.report.stats.cpu_ns), run_ns)
    }
}

impl Kind {
    fn bytes_per_s(&self) -> u64 {
        if self.runtime_ns == 0 { 0 } else { per_second(self.measured.bytes, self.runtime_ns) }
    }

    fn iops(&self) -> f64 {
        number::per_second(self.measured.ios, self.runtime_ns)
    }
}

/// Milliseconds, at least 1 of anything.
const fn ms(ns: u64) -> u64 {
    ns.div_ceil(1_000_000)
}

/// A percentile as a histogram wants it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::float_arithmetic,
    reason = "a percentage of 0 to 100"
)]
fn per_hundred_thousand(percentile: f64) -> u32 {
    (percentile * 1000.0).round() as u32
}

/// The shares of what `values` recorded in each of fio's ranges of latency, by unit: the name of
/// each range and its percentage, to the thousandth.
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

/// The part of what `values` recorded that is at most `bound`.
fn share_up_to(values: &Histogram, bound: u64) -> u32 {
    if values.count() == 0 || values.min() > bound {
        return 0;
    }
    let (mut within, mut beyond) = (0, Histogram::WHOLE + 1);
    while beyond - within > 1 {
        let middle = within.midpoint(beyond);
        if values.percentile(middle) <= bound { within = middle } else { beyond = middle }
    }
    within
}

/// Names and upper bounds in nanoseconds of fio's ranges of latency, by unit.
fn latency_ranges() -> [(&'static str, Vec<(String, u64)>); 3] {
    const STEPS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];
    let unit = |ns: u64| -> Vec<_> {
        let bound = |step: &u64| {
            // A range ends with its name, but for the first, which is below 2, and the last.
            let end = if matches!(step, 2 | 1000) { step * ns } else { (step + 1) * ns };
            (step.to_string(), end - 1)
        };
        STEPS.iter().map(bound).collect()
    };
    let mut ms = unit(1_000_000);
    ms.extend([("2000".to_owned(), 1_999_999_999), (">=2000".to_owned(), u64::MAX)]);
    [("ns", unit(1)), ("us", unit(1000)), ("ms", ms)]
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
        let near = |share: f64, of: f64| (share - 100.0 * of / 13.0).abs() < 0.01;
        assert!(near(shares[0], 2.0), "0 and 1 are below 2 ns: {shares:?}");
        assert!(near(shares[1], 2.0), "2 and 4 are at most 4 ns: {shares:?}");
        assert!(near(shares[10], 2.0), "1000 and 1999 ns are below 2 us: {shares:?}");
        assert!(near(*shares.last().unwrap(), 1.0), "5 s: {shares:?}");
        assert!((shares.iter().sum::<f64>() - 100.0).abs() < 0.01);
    }
}
