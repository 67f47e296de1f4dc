//! fio's JSON layout.

use blockyard::stats::{Direction, Histogram, Stage};
use blockyard::status::Status;
use blockyard::trace::Action;
use blockyard_sim::job::{ContinueOnError, Job, JobFile, Mix};
use blockyard_sim::simulate::Report;
use serde::{Serialize, Serializer};

use super::{Entry, Kind, entries, latency_shares, ms, number, per_hundred_thousand};
use crate::faults::FaultRow;
use crate::human::approximate;
use crate::verify::VerifiedRow;

/// Names and values in an order that counts.
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

#[derive(Serialize)]
struct Whole<'a> {
    #[serde(rename = "fio version")]
    version: String,
    timestamp: u64,
    timestamp_ms: u64,
    time: &'static str,
    jobs: Vec<OfJob>,
    disk_util: [Disk; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    faults: Option<&'a [FaultRow]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<&'a VerifiedRow>,
}

#[derive(Serialize)]
struct OfJob {
    jobname: String,
    groupid: u32,
    error: u32,
    eta: u32,
    elapsed: u64,
    #[serde(rename = "job options")]
    options: Object<String>,
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
    latency_target: u32,
    latency_percentile: f64,
    latency_window: u32,
}

/// Of a job that goes on after errors.
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
    #[serde(flatten)]
    samples: Samples,
}

/// fio's samples over time, of which none are taken here.
#[derive(Default, Serialize)]
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
}

#[derive(Serialize)]
struct Sync {
    total_ios: u64,
    lat_ns: Times,
}

#[derive(Serialize)]
struct Disk {
    name: String,
    read_ios: u64,
    write_ios: u64,
    read_merges: u64,
    write_merges: u64,
    read_ticks: u64,
    write_ticks: u64,
    in_queue: u64,
    util: f64,
}

/// `report`, the run of `jobs` on the device called `device`, with a line end. What fio does not
/// have, `faults` and `verified`, comes last.
pub(crate) fn json(
    jobs: &JobFile,
    device: &str,
    report: &Report,
    faults: Option<&[FaultRow]>,
    verified: Option<&VerifiedRow>,
) -> String {
    let whole = Whole {
        version: concat!("blockyard-", env!("CARGO_PKG_VERSION")).to_owned(),
        timestamp: 0,
        timestamp_ms: 0,
        time: "Thu Jan  1 00:00:00 1970",
        jobs: entries(jobs, report).iter().map(of_job).collect(),
        disk_util: [disk(device, report)],
        faults,
        verified,
    };
    serde_json::to_string_pretty(&whole).expect("names are strings") + "\n"
}

fn of_job(entry: &Entry<'_>) -> OfJob {
    let Entry { job, report, instances, .. } = entry;
    let stats = &report.stats;
    OfJob {
        jobname: report.name.clone(),
        groupid: report.group,
        error: 0,
        eta: 0,
        elapsed: stats.ended.as_ns().div_ceil(1_000_000_000),
        options: options(job),
        kinds: entry
            .kinds
            .iter()
            .map(|(name, kind)| ((*name).to_owned(), of_kind(job, kind)))
            .collect(),
        sync: Sync { total_ios: stats.syncs, lat_ns: Times::default() },
        job_runtime: ms(stats.runtime_ns()) * u64::from(*instances),
        usr_cpu: 0.0,
        sys_cpu: entry.cpu_percent(),
        ctx: stats.context_switches,
        majf: 0,
        minf: 0,
        iodepth_level: zeros(&["1", "2", "4", "8", "16", "32", ">=64"]),
        iodepth_submit: zeros(&["0", "4", "8", "16", "32", "64", ">=64"]),
        iodepth_complete: zeros(&["0", "4", "8", "16", "32", "64", ">=64"]),
        latency: latency(&entry.lat_ns()),
        errors: (job.continue_on_error != ContinueOnError::default()).then(|| Errors {
            total_err: stats.errors,
            first_error: number::errno(stats.first_error),
        }),
        latency_depth: job.depth(),
        latency_target: 0,
        latency_percentile: 100.0,
        latency_window: 0,
    }
}

fn zeros(names: &[&str]) -> Object<f64> {
    names.iter().map(|name| ((*name).to_owned(), 0.0)).collect()
}

/// The options that most decide what was measured.
fn options(job: &Job) -> Object<String> {
    let name = match job.pattern.mix {
        Mix::Read => "read",
        Mix::Write => "write",
        Mix::Trim => "trim",
        Mix::ReadWrite => "rw",
        Mix::TrimWrite => "trimwrite",
    };
    let random = if job.pattern.random { "rand" } else { "" };
    [
        ("name", job.name.clone()),
        ("ioengine", job.engine.name().to_owned()),
        ("rw", format!("{random}{name}")),
        ("iodepth", job.iodepth.to_string()),
        ("numjobs", job.numjobs.to_string()),
        ("direct", "1".to_owned()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

fn of_kind(job: &Job, kind: &Kind) -> OfKind {
    let Kind { measured, runtime_ns } = kind;
    let reporting = &job.reporting;
    let times = |left_out: bool, percentiles: bool, values: &Histogram| {
        if left_out {
            return Times::default();
        }
        Times {
            percentile: (percentiles && values.count() > 0)
                .then(|| percentiles_of(values, &reporting.percentiles)),
            ..times_of(values)
        }
    };
    OfKind {
        io_bytes: measured.bytes,
        io_kbytes: measured.bytes >> 10,
        bw_bytes: kind.bytes_per_s(),
        bw: kind.bytes_per_s() >> 10,
        iops: kind.iops(),
        runtime: ms(*runtime_ns),
        total_ios: measured.ios,
        short_ios: 0,
        drop_ios: 0,
        slat_ns: times(reporting.disable_slat, reporting.slat_percentiles, &measured.slat_ns),
        clat_ns: times(reporting.disable_clat, reporting.clat_percentiles, &measured.clat_ns),
        lat_ns: times(reporting.disable_lat, reporting.lat_percentiles, &measured.lat_ns),
        samples: Samples::default(),
    }
}

fn times_of(values: &Histogram) -> Times {
    Times {
        min: values.min(),
        max: values.max(),
        mean: number::mean(values.sum(), values.count()),
        stddev: approximate(values.standard_deviation()),
        count: values.count(),
        percentile: None,
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

/// What Linux would count of the disk.
fn disk(device: &str, report: &Report) -> Disk {
    let stages = &report.stages;
    let [(read_ios, read_merges, read_ticks), (write_ios, write_merges, write_ticks)] =
        Direction::ALL.map(|direction| {
            let count = |action| stages.count_of(direction, action);
            let merges = count(Action::BackMerge) + count(Action::FrontMerge) + count(Action::Join);
            let waited_ns = stages.times_ns(direction, Stage::Total).sum();
            let ticks = u64::try_from(waited_ns / 1_000_000).unwrap_or(u64::MAX);
            (count(Action::Complete(Status::Ok)), merges, ticks)
        });
    let busy = number::percent(report.device_busy.as_ns().into(), report.span.as_ns().into());
    Disk {
        name: device.to_owned(),
        read_ios,
        write_ios,
        read_merges,
        write_merges,
        read_ticks,
        write_ticks,
        in_queue: read_ticks.saturating_add(write_ticks),
        util: busy,
    }
}
