//! fio's human-readable summary.

#![expect(clippy::float_arithmetic, reason = "for the eye only: nothing is ordered by it")]

use crate::job::{ContinueOnError, Job};
use crate::measure::JobStats;
use crate::measure::depth::Depths;
use blockyard::stats::Histogram;
use blockyard_text::number::approximate;

use super::spread::{extremes, percentiles_of};
use super::{
    BATCHES, Entry, Kind, LEVELS, Run, entries, latency_shares, ms, number, priority, shown_shares,
    targets, tells_sync_percentiles,
};

/// Formats the figures of `run`. After fio's line about the processor comes what `own` returns for
/// an entry: nothing, or lines that fio lacks.
#[must_use]
pub fn text(run: Run<'_>, own: impl Fn(&JobStats) -> String) -> String {
    let entries = entries(run);
    let mut text: String = entries.iter().map(|entry| of_entry(entry, &own)).collect();
    let groups = entries.last().map_or(0, |last| last.report.group + 1);
    for group in 0..groups {
        let of_group: Vec<_> = entries.iter().filter(|e| e.report.group == group).collect();
        text += &status_of(group, &of_group);
    }
    text
}

fn of_entry(entry: &Entry<'_>, own: impl Fn(&JobStats) -> String) -> String {
    let Entry { job, report, instances, .. } = entry;
    let mut text = format!("{}: (groupid={}, jobs={instances})\n", report.name, report.group);
    for (name, kind) in entry.kinds.iter().filter(|(_, kind)| kind.measured.ios > 0) {
        text += &of_kind(job, name, kind);
    }
    text += &syncs(job, &report.stats);
    text += &ranges(&entry.lat_ns());
    let switches = report.stats.context_switches;
    let (user, system) = entry.cpu_percent();
    text += &format!(
        "  cpu          : usr={user:.2}%, sys={system:.2}%, ctx={switches}, majf=0, minf=0\n"
    );
    text += &own(&report.stats);
    text += &depths(&report.stats.depths);
    let total = |name| {
        let kind = entry.kinds.iter().find(|(known, _)| *known == name);
        kind.map_or(0, |(_, kind)| kind.measured.ios)
    };
    let [read, write, trim] = ["read", "write", "trim"].map(total);
    let syncs = report.stats.syncs();
    text += &format!(
        "     issued rwts: total={read},{write},{trim},{syncs} short=0,0,0,0 dropped=0,0,0,0\n"
    );
    text += &targets::latency(job, &report.stats);
    text += &targets::steady(&report.stats);
    if job.continue_on_error != ContinueOnError::default() {
        let stats = &report.stats;
        let total = stats.errors;
        let first = number::errno(stats.first_error);
        let words = stats.first_error.map_or_else(|| "Success".to_owned(), |how| how.to_string());
        text += &format!("     errors    : total={total}, first_error={first}/<{words}>\n");
    }
    text
}

fn of_kind(job: &Job, name: &str, kind: &Kind) -> String {
    let Kind { measured, runtime_ns, .. } = kind;
    let rate = kind.bytes_per_s();
    let mut text = format!(
        "  {name}: IOPS={}, BW={}B/s ({}B/s)({}B/{}msec)\n",
        number::decimal(kind.iops_of_run()),
        number::binary(approximate(rate)),
        number::decimal(approximate(rate)),
        number::binary(approximate(measured.bytes)),
        ms(*runtime_ns),
    );
    let show = &job.reporting;
    let latencies = [
        ("slat", &measured.slat_ns, show.disable_slat, show.slat_percentiles),
        ("clat", &measured.clat_ns, show.disable_clat, show.clat_percentiles),
        ("lat", &measured.lat_ns, show.disable_lat, show.lat_percentiles),
    ];
    let latencies = latencies.map(|(name, values, left_out, percentiles)| {
        (name, values, !left_out && values.count() > 0, percentiles)
    });
    for (name, values, shown, _) in latencies {
        text += &if shown { extremes(name, values) } else { String::new() };
    }
    text += &priority::extremes(show, measured);
    for (name, values, shown, percentiles) in latencies {
        let wanted = shown && percentiles && !show.percentiles.is_empty();
        text +=
            &if wanted { percentiles_of(name, values, &show.percentiles) } else { String::new() };
    }
    text += &priority::percentiles(show, measured);
    text + &samples(kind)
}

/// Writes the rates over time, if there are samples.
fn samples(kind: &Kind) -> String {
    let Kind { bandwidth, iops, share_percent, .. } = kind;
    let mut text = String::new();
    if bandwidth.count > 0 {
        let (unit, name) = if bandwidth.min >= 1 << 20 { (1024, "MiB/s") } else { (1, "KiB/s") };
        text += &format!(
            "   bw (  {name}): min={:>5}, max={:>5}, per={share_percent:.2}%, avg={:.2}, stdev={:.2}, samples={}\n",
            bandwidth.min / unit,
            bandwidth.max / unit,
            bandwidth.mean / approximate(unit),
            bandwidth.deviation() / approximate(unit),
            bandwidth.count,
        );
    }
    if iops.count > 0 {
        text += &format!(
            "   iops        : min={:>5}, max={:>5}, avg={:.2}, stdev={:.2}, samples={}\n",
            iops.min,
            iops.max,
            iops.mean,
            iops.deviation(),
            iops.count,
        );
    }
    text
}

/// Writes the latency of syncs, if there were any.
fn syncs(job: &Job, stats: &JobStats) -> String {
    let Some(values) = &stats.sync_lat_ns else { return String::new() };
    let show = &job.reporting;
    let mut text = "  fsync/fdatasync/sync_file_range:\n".to_owned() + &extremes("sync", values);
    if tells_sync_percentiles(show) && !show.percentiles.is_empty() {
        text += &percentiles_of("sync", values, &show.percentiles);
    }
    text
}

fn depths(depths: &Depths) -> String {
    [
        ("  IO depths    ", LEVELS, &depths.level),
        ("     submit    ", BATCHES, &depths.submit),
        ("     complete  ", BATCHES, &depths.complete),
    ]
    .map(|(title, names, classes)| {
        let share = |(name, share): (&str, f64)| format!("{name}={share:.1}%");
        let shares: Vec<_> = names.into_iter().zip(shown_shares(classes)).map(share).collect();
        format!("{title}: {}\n", shares.join(", "))
    })
    .concat()
}

/// Writes the share of I/Os in each latency range.
fn ranges(values: &Histogram) -> String {
    let mut text = String::new();
    for (unit, shares) in latency_shares(values) {
        let shown = shares.iter().filter(|(_, share)| *share > 0.0);
        let shown: Vec<_> = shown.map(|(name, share)| format!("{name}={share:.2}%")).collect();
        if !shown.is_empty() {
            // fio spells out its units: nsec, usec, msec.
            text += &format!("  lat ({unit}ec)   : {}\n", shown.join(", "));
        }
    }
    text
}

/// Writes fio's lines about a reporting group.
fn status_of(group: u32, entries: &[&Entry<'_>]) -> String {
    let mut text = format!("\nRun status group {group} (all jobs):\n");
    for name in ["read", "write", "trim", "mixed"] {
        let kinds: Vec<&Kind> = entries
            .iter()
            .flat_map(|entry| &entry.kinds)
            .filter(|(known, kind)| *known == name && kind.measured.ios > 0)
            .map(|(_, kind)| kind)
            .collect();
        if !kinds.is_empty() {
            text += &status_line(name, &kinds);
        }
    }
    text
}

fn status_line(name: &str, kinds: &[&Kind]) -> String {
    let rates: Vec<_> = kinds.iter().map(|kind| kind.bytes_per_s()).collect();
    let runs: Vec<_> = kinds.iter().map(|kind| ms(kind.runtime_ns)).collect();
    let [slowest, shortest] = [&rates, &runs].map(|all| all.iter().copied().min().unwrap_or(0));
    let [fastest, longest] = [&rates, &runs].map(|all| all.iter().copied().max().unwrap_or(0));
    let bytes: u64 = kinds.iter().map(|kind| kind.measured.bytes).sum();
    let rate = number::per_second(bytes, longest.max(1) * 1_000_000);
    let [slow, fast] = [slowest, fastest].map(approximate);
    format!(
        "{:>7}: bw={}B/s ({}B/s), {}B/s-{}B/s ({}B/s-{}B/s), io={}B ({}B), run={shortest}-{longest}msec\n",
        name.to_uppercase(),
        number::binary(rate),
        number::decimal(rate),
        number::binary(slow),
        number::binary(fast),
        number::decimal(slow),
        number::decimal(fast),
        number::binary(approximate(bytes)),
        number::decimal(approximate(bytes)),
    )
}
