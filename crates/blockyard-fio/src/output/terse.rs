//! fio's terse format, version 3: a line of fields separated by semicolons for each entry.
//!
//! Times are in microseconds and rates in KiB per second. Like fio, it omits trims.

#![expect(clippy::float_arithmetic, reason = "for a report: nothing is ordered by it")]

use crate::job::Reporting;
use blockyard::stats::Histogram;
use blockyard_text::number::approximate;

use super::disk::Disk;
use super::{
    Entry, Kind, Run, VERSION, entries, latency_shares, ms, number, per_hundred_thousand,
    shown_shares,
};

/// The number of percentiles, which fio fills up with zeroes.
const PERCENTILES: usize = 20;

/// Formats the figures of `run` on `disk`.
#[must_use]
pub fn terse(run: Run<'_>, disk: &Disk) -> String {
    let disk = of_disk(disk);
    entries(run).iter().map(|entry| of_entry(entry, &disk).join(";") + "\n").collect()
}

fn of_entry(entry: &Entry<'_>, disk: &[String]) -> Vec<String> {
    let Entry { job, report, .. } = entry;
    let stats = &report.stats;
    let mut fields: Vec<String> = ["3", VERSION, &report.name].map(str::to_owned).into();
    fields.extend([report.group.to_string(), "0".to_owned()]);
    for (_, kind) in entry.kinds.iter().filter(|(name, _)| *name != "trim") {
        fields.extend(of_kind(&job.reporting, kind));
    }
    let (user, system) = entry.cpu_percent();
    fields.extend([user, system].map(|percent| format!("{percent:.6}%")));
    fields.extend([stats.context_switches, 0, 0].map(|count| count.to_string()));
    fields.extend(shown_shares(&stats.depths.level).map(|share| format!("{share:.1}%")));
    let [(_, ns), (_, us), (_, ms)] = latency_shares(&entry.lat_ns());
    let below_us: f64 = ns.iter().map(|(_, share)| share).sum();
    let mut ranges: Vec<_> = us.into_iter().chain(ms).map(|(_, share)| share).collect();
    ranges[0] += below_us; // up to 2 us
    fields.extend(ranges.iter().map(|share| format!("{share:.2}%")));
    fields.extend_from_slice(disk);
    fields.extend(job.description.clone());
    fields
}

fn of_kind(show: &Reporting, kind: &Kind) -> Vec<String> {
    let Kind { measured, runtime_ns, bandwidth, .. } = kind;
    let mut fields = vec![
        (measured.bytes >> 10).to_string(),
        (kind.bytes_per_s() >> 10).to_string(),
        format!("{:.0}", kind.iops_of_run().trunc()),
        ms(*runtime_ns).to_string(),
    ];
    fields.extend(times(&measured.slat_ns, show.disable_slat));
    fields.extend(times(&measured.clat_ns, show.disable_clat));
    let of = match (show.lat_percentiles, show.clat_percentiles) {
        (true, _) => Some(&measured.lat_ns),
        (false, true) => Some(&measured.clat_ns),
        (false, false) => None,
    };
    fields.extend(percentiles(of, &show.percentiles));
    fields.extend(times(&measured.lat_ns, show.disable_lat));
    fields.extend([
        bandwidth.min.to_string(),
        bandwidth.max.to_string(),
        format!("{:.6}%", kind.share_percent),
        format!("{:.6}", bandwidth.mean),
        format!("{:.6}", bandwidth.deviation()),
    ]);
    fields
}

/// The fields of a distribution: smallest, largest, mean and deviation.
fn times(ns: &Histogram, left_out: bool) -> [String; 4] {
    if left_out {
        return times(&Histogram::new(), false);
    }
    [
        (ns.min() / 1000).to_string(),
        (ns.max() / 1000).to_string(),
        format!("{:.6}", number::mean(ns.sum(), ns.count()) / 1e3),
        format!("{:.6}", approximate(ns.standard_deviation()) / 1e3),
    ]
}

fn percentiles(ns: Option<&Histogram>, wanted: &[f64]) -> [String; PERCENTILES] {
    core::array::from_fn(|at| match (ns, wanted.get(at)) {
        (Some(ns), Some(percentile)) => {
            let value = ns.percentile(per_hundred_thousand(*percentile));
            format!("{percentile:.6}%={}", value / 1000)
        }
        _ => "0%=0".to_owned(),
    })
}

fn of_disk(disk: &Disk) -> Vec<String> {
    let Disk { name, read_ios, write_ios, read_merges, write_merges, .. } = disk;
    let counts = [
        read_ios,
        write_ios,
        read_merges,
        write_merges,
        &disk.read_ticks,
        &disk.write_ticks,
        &disk.in_queue,
    ];
    let mut fields = vec![name.clone()];
    fields.extend(counts.map(u64::to_string));
    fields.push(format!("{:.2}%", disk.util));
    fields
}
