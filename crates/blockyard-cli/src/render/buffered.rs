//! Tables of buffered writes: the owners of their time, their way to the device, and the limits on
//! dirty pages.

use blockyard_answer::{BufferedFigures, CallFigures, JobFigures, Outcome, SavedDesign};
use blockyard_text::number::{approximate, count, digits, share_percent, size, time};

use super::share;
use super::table::Table;
use super::wrap::wrapped;

/// The words above the tables.
const CALLS: &str =
    "Writes through the page cache and syncs: mean of a call, and shares of its time:";
const WRITES: &str = "The device, for each byte and each write of the jobs:";

/// The buffered writes of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffered<'a> {
    /// The name of the design.
    pub(crate) design: &'a str,
    pub(crate) jobs: &'a [JobFigures],
    pub(crate) figures: &'a BufferedFigures,
}

impl<'a> Buffered<'a> {
    /// Returns those of `outcome`, if its jobs write through the page cache.
    pub(crate) fn of(outcome: &'a Outcome) -> Option<Self> {
        let figures = outcome.figures.buffered.as_ref()?;
        Some(Self { design: &outcome.name, jobs: &outcome.jobs, figures })
    }

    /// Returns those of a saved run, with its name.
    pub(crate) fn of_saved(design: &'a str, saved: &'a SavedDesign) -> Option<Self> {
        Some(Self { design, jobs: &saved.jobs, figures: saved.buffered.as_ref()? })
    }

    /// Returns the calls of the job `name`, all instances together.
    fn calls(&self, name: &str) -> CallFigures {
        let of_job = self.jobs.iter().filter(|job| job.name == name);
        CallFigures::together(of_job.filter_map(|job| job.calls_ns.as_ref()))
    }
}

/// Returns the tables of `runs`, in lines of at most `width`. The text is empty if there are none.
pub(crate) fn text(runs: &[Buffered<'_>], width: usize) -> String {
    let Some(first) = runs.first() else { return String::new() };
    format!(
        "\n{}\n{:width$}\n{WRITES}\n{:width$}\n{}\n",
        wrapped(CALLS, width),
        calls(runs),
        writes(runs),
        wrapped(&limits(first.figures), width)
    )
}

/// Returns the names of the jobs that write through the page cache, each once.
fn jobs<'a>(runs: &[Buffered<'a>]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for job in runs.iter().flat_map(|run| run.jobs).filter(|job| job.calls_ns.is_some()) {
        if !names.contains(&job.name.as_str()) {
            names.push(&job.name);
        }
    }
    names
}

/// Whether a part of the time of calls is at least half a percent.
fn is_shown(calls: &CallFigures, part: usize) -> bool {
    let (_, ns) = calls.parts()[part];
    ns > 0 && share_percent(ns, approximate(calls.total())) >= 0.5
}

/// Returns the table of calls, with a row for each job and run. A part that is below half a percent
/// everywhere has no column.
fn calls(runs: &[Buffered<'_>]) -> Table {
    let jobs = jobs(runs);
    let rows: Vec<Vec<_>> =
        jobs.iter().map(|job| runs.iter().map(|run| run.calls(job)).collect()).collect();
    let parts = CallFigures::default().parts();
    let used: Vec<usize> = (0..parts.len())
        .filter(|part| rows.iter().flatten().any(|of| is_shown(of, *part)))
        .collect();
    let names = used.iter().map(|part| parts[*part].0);
    let is_alone = jobs.len() == 1;
    let head = if is_alone { "design" } else { "" };
    let mut table = Table::of_numbers(head, ["calls", "mean"].into_iter().chain(names));
    for (job, of_job) in jobs.iter().zip(&rows) {
        if !is_alone {
            table.heading((*job).to_owned());
        }
        for (run, calls) in runs.iter().zip(of_job) {
            let indent = if is_alone { "" } else { "  " };
            let total = calls.total();
            let mut cells = vec![format!("{indent}{}", run.design)];
            cells.push(count(approximate(calls.calls)));
            cells.push(time(total / calls.calls.max(1)));
            cells.extend(used.iter().map(|part| share(calls.parts()[*part].1, total)));
            table.row(cells);
        }
    }
    table
}

fn writes(runs: &[Buffered<'_>]) -> Table {
    let columns = ["bytes/byte", "writes/write", "flushes/write", "page reads/write", "left dirty"];
    let mut table = Table::of_numbers("design", columns);
    for Buffered { design, figures, .. } in runs {
        table.row([
            (*design).to_owned(),
            digits(figures.device_bytes_per_byte),
            digits(figures.device_writes_per_write),
            digits(figures.device_flushes_per_write),
            digits(figures.page_reads_per_write),
            size(approximate(figures.left_dirty_bytes)),
        ]);
    }
    table
}

/// Says which limits on dirty pages the machine has.
fn limits(figures: &BufferedFigures) -> String {
    let bytes = [figures.memory_bytes, figures.background_limit_bytes, figures.hard_limit_bytes];
    let [memory, background, hard] = bytes.map(|bytes| size(approximate(bytes)));
    format!(
        "The kernel writes dirty pages back above {background}, and slows writers down before {hard} \
         are dirty, in {memory} of memory."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    const CALLS: CallFigures = CallFigures {
        calls: 4,
        page_reads: 3,
        in_memory: 100_000,
        page_read: 300_000,
        throttled: 0,
        writeback: 400_000,
        flush: 1_200_000,
        journal: 0,
        not_reaped: 9_000,
    };

    fn job(name: &str, calls_ns: Option<CallFigures>) -> JobFigures {
        JobFigures { calls_ns, ..samples::job(name) }
    }

    /// Two instances of one job have 8 calls in 4 ms and 18 us: 5, 15, 20 and 60 %. Pauses and the
    /// 0.4 % that are not reaped have no column.
    #[test]
    fn shares_add_up_to_the_time_of_calls() {
        let figures = BufferedFigures {
            device_bytes_per_byte: 1.78,
            device_writes_per_write: 0.75,
            device_flushes_per_write: 0.75,
            page_reads_per_write: 0.75,
            left_dirty_bytes: 8192,
            memory_bytes: 8 << 30,
            background_limit_bytes: (8 << 30) / 10,
            hard_limit_bytes: (8 << 30) / 5,
            ..BufferedFigures::default()
        };
        let jobs = [job("log", Some(CALLS)), job("log", Some(CALLS)), job("direct", None)];
        let run = Buffered { design: "mq-none", jobs: &jobs, figures: &figures };
        let expected = "
Writes through the page cache and syncs: mean of a call, and shares of its time:
design   calls    mean  in memory  page read  writeback  flush
mq-none      8  502 us        5 %       15 %       20 %   60 %

The device, for each byte and each write of the jobs:
                                                         page
design   bytes/byte  writes/write  flushes/write  reads/write  left dirty
mq-none        1.78          0.75           0.75         0.75    8.00 KiB

The kernel writes dirty pages back above 819 MiB, and slows writers down before
1.60 GiB are dirty, in 8.00 GiB of memory.
";
        assert_eq!(text(&[run], 80), expected);
        assert_eq!(text(&[], 80), "");
        let two = [job("log", Some(CALLS)), job("copy", Some(CALLS))];
        let text = text(&[Buffered { jobs: &two, ..run }], 80);
        assert!(text.contains("\nlog\n  mq-none") && text.contains("\ncopy\n  mq-none"), "{text}");
    }
}
