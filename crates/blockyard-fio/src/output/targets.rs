//! The targets of jobs in a report: the depth that keeps a latency, and the steady state.

#![expect(clippy::float_arithmetic, reason = "for a report: nothing is ordered by it")]

use crate::job::{Job, Steady};
use crate::measure::JobStats;
use crate::measure::steady::SteadyWatch;
use blockyard_text::number::approximate;
use serde::Serialize;

use super::number;

/// Returns the depth that a job had, or that its search has found.
pub(super) fn depth(job: &Job, stats: &JobStats) -> u32 {
    stats.depth_found.unwrap_or_else(|| job.depth())
}

/// Returns the percentage of I/Os that must meet the latency target.
pub(super) fn percentile(job: &Job) -> f64 {
    f64::from(job.targets.latency.share) / 1000.0
}

/// Writes the latency target, with times in us, as fio does for all jobs.
pub(super) fn latency(job: &Job, stats: &JobStats) -> String {
    let target = job.targets.latency;
    format!(
        "     latency   : target={}, window={}, percentile={:.2}%, depth={}\n",
        target.target_ns / 1000,
        target.window_ns / 1000,
        percentile(job),
        depth(job, stats),
    )
}

/// The steady state in fio's JSON.
#[derive(Serialize)]
pub(super) struct SteadyJson {
    ss: String,
    duration: u64,
    attained: u8,
    criterion: String,
    max_deviation: f64,
    slope: f64,
    data: Data,
}

#[derive(Serialize)]
struct Data {
    bw_mean: u64,
    iops_mean: u64,
    iops: Vec<u64>,
    bw: Vec<u64>,
}

/// Returns the steady state of a job that looks for one, with bandwidth in bytes per second.
pub(super) fn steady_json(stats: &JobStats) -> Option<SteadyJson> {
    let watch = stats.steady.as_deref()?;
    let (worst, criterion) = worst(watch);
    let slope = watch.criterion.slope;
    let iops: Vec<_> = watch.samples.iter().map(|sample| sample.iops).collect();
    let bw: Vec<_> = watch.samples.iter().map(|sample| sample.bytes_per_s).collect();
    let percent = if watch.criterion.percent { "%" } else { "" };
    let limit = approximate(watch.criterion.limit_millionths) / 1e6;
    Some(SteadyJson {
        ss: format!("{}:{limit:.6}{percent}", name(watch)),
        duration: watch.options.window_ns / 1_000_000_000,
        attained: watch.attained.into(),
        criterion: format!("{criterion:.6}{percent}"),
        max_deviation: if slope { 0.0 } else { worst },
        slope: if slope { worst } else { 0.0 },
        data: Data { bw_mean: mean(&bw), iops_mean: mean(&iops), iops, bw },
    })
}

/// Writes the steady state of a job that looks for one.
pub(super) fn steady(stats: &JobStats) -> String {
    let Some(watch) = stats.steady.as_deref() else { return String::new() };
    let rates: Vec<_> = watch.samples.iter().map(|sample| sample.bytes_per_s).collect();
    let bandwidth = approximate(mean(&rates));
    let iops = mean(&watch.samples.iter().map(|sample| sample.iops).collect::<Vec<_>>());
    let figure = match watch.criterion.of {
        Steady::Iops => "iops",
        Steady::Bandwidth => "bw",
        Steady::Latency => "lat",
    };
    format!(
        "  steadystate  : attained={}, bw={}B/s ({}B/s), iops={iops}, {figure} {}={:.3}{}\n",
        if watch.attained { "yes" } else { "no" },
        number::binary(bandwidth),
        number::decimal(bandwidth),
        if watch.criterion.slope { "slope" } else { "mean dev" },
        worst(watch).1,
        if watch.criterion.percent { "%" } else { "" },
    )
}

const fn name(watch: &SteadyWatch) -> &'static str {
    match (watch.criterion.of, watch.criterion.slope) {
        (Steady::Iops, false) => "iops",
        (Steady::Iops, true) => "iops_slope",
        (Steady::Bandwidth, false) => "bw",
        (Steady::Bandwidth, true) => "bw_slope",
        (Steady::Latency, false) => "lat",
        (Steady::Latency, true) => "lat_slope",
    }
}

fn mean(values: &[u64]) -> u64 {
    let count = u64::try_from(values.len()).unwrap_or(u64::MAX);
    values.iter().sum::<u64>().checked_div(count).unwrap_or(0)
}

/// Returns the worst deviation or the slope: by itself, and as the limit counts it.
fn worst(watch: &SteadyWatch) -> (f64, f64) {
    let Some(worst) = watch.worst() else { return (0.0, 0.0) };
    let value = number::mean(worst.numerator, u64::try_from(worst.denominator).unwrap_or(u64::MAX));
    let values = watch.samples.iter().map(|sample| match watch.criterion.of {
        Steady::Iops => sample.iops,
        Steady::Bandwidth => sample.bytes_per_s,
        Steady::Latency => sample.latency_ns,
    });
    let mean = approximate(mean(&values.collect::<Vec<_>>()));
    match watch.criterion.percent {
        true if mean > 0.0 => (value, 100.0 * value / mean),
        true => (value, 0.0),
        false => (value, value),
    }
}
