//! fio's JSON layout.

use crate::job::{ContinueOnError, Job};
use crate::measure::JobStats;
use crate::measure::depth::Classes;
use blockyard::stats::Histogram;
use blockyard_text::number::approximate;
use serde::{Serialize, Serializer};

use super::disk::Disk;
use super::options::{self, Options};
use super::priority::{self, OfPriority};
use super::targets::{self, SteadyJson};
use super::{
    BATCHES, Entry, Kind, LEVELS, Run, VERSION, bins, entries, latency_shares, ms, number,
    per_hundred_thousand, shares, tells_sync_percentiles,
};

/// An object whose keys keep their order.
struct Object<T>(Vec<(String, T)>);

impl<T: Serialize> Serialize for Object<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<T> FromIterator<(String, T)> for Object<T> {
    fn from_iter<I: IntoIterator<Item = (String, T)>>(all: I) -> Self {
        Self(all.into_iter().collect())
    }
}

/// fio's JSON of a run, followed by keys of `E`.
#[derive(Serialize)]
pub struct Json<E> {
    #[serde(rename = "fio version")]
    version: &'static str,
    timestamp: u64,
    timestamp_ms: u64,
    time: &'static str,
    #[serde(rename = "global options", skip_serializing_if = "Options::is_empty")]
    global: Options,
    jobs: Vec<OfJob>,
    disk_util: [Disk; 1],
    #[serde(flatten)]
    own: E,
}

#[derive(Serialize)]
struct OfJob {
    jobname: String,
    groupid: u32,
    error: u32,
    eta: u32,
    elapsed: u64,
    #[serde(rename = "job options")]
    options: Options,
    #[serde(flatten)]
    kinds: Object<OfKind>,
    sync: Sync,
    job_runtime: u64,
    usr_cpu: f64,
    sys_cpu: f64,
    ctx: u64,
    majf: u64,
    minf: u64,
    iodepth_level: Object<f64>,
    iodepth_submit: Object<f64>,
    iodepth_complete: Object<f64>,
    #[serde(flatten)]
    latency: Object<Object<f64>>,
    #[serde(flatten)]
    errors: Option<Errors>,
    latency_depth: u32,
    latency_target: u64,
    latency_percentile: f64,
    latency_window: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    steadystate: Option<SteadyJson>,
}

/// The errors of a job that continues after errors.
#[derive(Serialize)]
struct Errors {
    total_err: u64,
    first_error: u32,
}

#[derive(Serialize)]
struct OfKind {
    io_bytes: u64,
    io_kbytes: u64,
    bw_bytes: u64,
    bw: u64,
    iops: f64,
    runtime: u64,
    total_ios: u64,
    short_ios: u64,
    drop_ios: u64,
    slat_ns: Times,
    clat_ns: Times,
    lat_ns: Times,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    prios: Vec<Prio>,
    #[serde(flatten)]
    samples: Samples,
}

/// The latencies of the I/Os with a priority.
#[derive(Serialize)]
struct Prio {
    prioclass: u16,
    prio: u16,
    #[serde(flatten)]
    latency: Object<Times>,
}

/// fio's samples over time, with bandwidth in KiB per second.
#[derive(Serialize)]
struct Samples {
    bw_min: u64,
    bw_max: u64,
    bw_agg: f64,
    bw_mean: f64,
    bw_dev: f64,
    bw_samples: u64,
    iops_min: u64,
    iops_max: u64,
    iops_mean: f64,
    iops_stddev: f64,
    iops_samples: u64,
}

#[derive(Default, Serialize)]
struct Times {
    min: u64,
    max: u64,
    mean: f64,
    stddev: f64,
    #[serde(rename = "N")]
    count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    percentile: Option<Object<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bins: Option<Object<u64>>,
}

#[derive(Serialize)]
struct Sync {
    total_ios: u64,
    lat_ns: Times,
}

/// Returns the figures of `run` on `disk` in fio's JSON layout. With `bins` the format is fio's
/// `json+`, which has complete latency distributions. The keys of `own`, which fio lacks, come
/// last.
#[must_use]
pub fn json<E>(run: Run<'_>, disk: Disk, own: E, bins: bool) -> Json<E> {
    Json {
        version: VERSION,
        timestamp: 0,
        timestamp_ms: 0,
        time: "Thu Jan  1 00:00:00 1970",
        global: options::global(run.jobs),
        jobs: entries(run).iter().map(|entry| of_job(entry, bins)).collect(),
        disk_util: [disk],
        own,
    }
}

fn of_job(entry: &Entry<'_>, bins: bool) -> OfJob {
    let Entry { job, report, instances, .. } = entry;
    let stats = &report.stats;
    let depths = &stats.depths;
    let (user, system) = entry.cpu_percent();
    let target = job.targets.latency;
    OfJob {
        jobname: report.name.clone(),
        groupid: report.group,
        error: 0,
        eta: 0,
        elapsed: stats.ended.as_ns().div_ceil(1_000_000_000),
        options: options::of_job(job),
        kinds: entry
            .kinds
            .iter()
            .map(|(name, kind)| ((*name).to_owned(), of_kind(job, kind, bins)))
            .collect(),
        sync: syncs(job, stats, bins),
        job_runtime: ms(stats.runtime_ns()) * u64::from(*instances),
        usr_cpu: user,
        sys_cpu: system,
        ctx: stats.context_switches,
        majf: 0,
        minf: 0,
        iodepth_level: depths_of(LEVELS, &depths.level),
        iodepth_submit: depths_of(BATCHES, &depths.submit),
        iodepth_complete: depths_of(BATCHES, &depths.complete),
        latency: latency(&entry.lat_ns()),
        errors: (job.continue_on_error != ContinueOnError::default()).then(|| Errors {
            total_err: stats.errors,
            first_error: number::errno(stats.first_error),
        }),
        latency_depth: targets::depth(job, stats),
        latency_target: target.target_ns / 1000,
        latency_percentile: targets::percentile(job),
        latency_window: target.window_ns / 1000,
        steadystate: targets::steady_json(stats),
    }
}

fn depths_of(names: [&str; 7], classes: &Classes) -> Object<f64> {
    names.map(str::to_owned).into_iter().zip(shares(classes)).collect()
}

fn syncs(job: &Job, stats: &JobStats, bins: bool) -> Sync {
    let show = &job.reporting;
    let lat_ns = stats.sync_lat_ns.as_deref().map_or_else(Times::default, |values| {
        times_of(values, tells_sync_percentiles(show).then_some(&show.percentiles), bins)
    });
    Sync { total_ios: stats.syncs(), lat_ns }
}

fn of_kind(job: &Job, kind: &Kind, bins: bool) -> OfKind {
    let Kind { measured, runtime_ns, bandwidth, share_percent, iops } = kind;
    let show = &job.reporting;
    let [slat_ns, clat_ns, lat_ns] = [
        (show.disable_slat, show.slat_percentiles, &measured.slat_ns),
        (show.disable_clat, show.clat_percentiles, &measured.clat_ns),
        (show.disable_lat, show.lat_percentiles, &measured.lat_ns),
    ]
    .map(|(left_out, percentiles, values)| match left_out {
        true => Times::default(),
        false => times_of(values, percentiles.then_some(&show.percentiles), bins),
    });
    let percentiles = (show.lat_percentiles || show.clat_percentiles).then_some(&show.percentiles);
    OfKind {
        io_bytes: measured.bytes,
        io_kbytes: measured.bytes >> 10,
        bw_bytes: kind.bytes_per_s(),
        bw: kind.bytes_per_s() >> 10,
        iops: kind.iops_of_run(),
        runtime: ms(*runtime_ns),
        total_ios: measured.ios,
        short_ios: 0,
        drop_ios: 0,
        slat_ns,
        clat_ns,
        lat_ns,
        prios: {
            let (name, all) = priority::all(show, measured);
            let of = |of: OfPriority<'_>| Prio {
                prioclass: of.class,
                prio: of.level,
                latency: Object(vec![(
                    format!("{name}_ns"),
                    times_of(of.values, percentiles, bins),
                )]),
            };
            all.into_iter().map(of).collect()
        },
        samples: Samples {
            bw_min: bandwidth.min,
            bw_max: bandwidth.max,
            bw_agg: *share_percent,
            bw_mean: bandwidth.mean,
            bw_dev: bandwidth.deviation(),
            bw_samples: bandwidth.count,
            iops_min: iops.min,
            iops_max: iops.max,
            iops_mean: iops.mean,
            iops_stddev: iops.deviation(),
            iops_samples: iops.count,
        },
    }
}

/// Returns the summary of `values`, with `percentiles` if requested and there are values, and then
/// with bins if requested.
fn times_of(values: &Histogram, percentiles: Option<&Vec<f64>>, bins: bool) -> Times {
    let percentiles = percentiles.filter(|_| values.count() > 0);
    let bin = |(value, count): (u64, u64)| (value.to_string(), count);
    Times {
        min: values.min(),
        max: values.max(),
        mean: number::mean(values.sum(), values.count()),
        stddev: approximate(values.standard_deviation()),
        count: values.count(),
        percentile: percentiles.map(|wanted| percentiles_of(values, wanted)),
        bins: percentiles
            .filter(|_| bins)
            .map(|_| bins::bins(values).into_iter().map(bin).collect()),
    }
}

fn percentiles_of(values: &Histogram, percentiles: &[f64]) -> Object<u64> {
    let of = |percentile: &f64| {
        (format!("{percentile:.6}"), values.percentile(per_hundred_thousand(*percentile)))
    };
    percentiles.iter().map(of).collect()
}

/// `latency_ns`, `latency_us` and `latency_ms`.
fn latency(values: &Histogram) -> Object<Object<f64>> {
    let unit = |(unit, shares): (&str, _)| (format!("latency_{unit}"), Object(shares));
    latency_shares(values).into_iter().map(unit).collect()
}
