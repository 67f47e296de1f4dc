//! The answer of `whatif`: a table for people, a documented object for programs.
//!
//! As JSON it is one object; `blockyard whatif --help` says the same:
//!
//! ```text
//! {"job", "device", "seed", "designs": [...], "why"}
//! ```
//!
//! and each design, in the order asked for:
//!
//! ```text
//! {"name", "iops", "bytes_per_s", "lat_ns": {"mean", "p50", "p99", "p99.9"}, "cpu_percent",
//!  "commands", "ios_per_command", "device_busy_percent", "mean_idle_gap_ns", "wakeups_per_io",
//!  "ratio", "life_ns": {"for_tag", "staged", "held", "in_driver", "for_flush", "untaken"},
//!  "holds": {REASON: {"count", "per_io", "percent"}},
//!  "jobs_ns": {"alive", "thinking", "in_calls", "ready", "waiting", "pausing"},
//!  "mmc": {"commands": {"CMD13": COUNT, ...}, "queue_status", "status_per_write", "lost_writes", "doubtful_writes",
//!   "bus_busy_percent", "mean_bus_gap_ns", "unnoticed_ns", "memory_percent",
//!   "map_percent": {"inside", "outside"},
//!   "unmap_percent": {"inside", "outside"},
//!   "wakeups_per_io", "awaited_wakeups_per_io", "switches_per_io",
//!   "transfer_ns": {"work", "idle", "absent"}},
//!  "pmem": {"io_ns", "percent": {"path", "copy", "tracking", "locks", "log", "map", "fences"},
//!   "fences", "write_backs", "scans", "transfers", "lock_wait_ns", "channels_percent"},
//!  "faults": [{"name", "matched", "fired"}, ...],
//!  "verified": {"reads", "read_sectors", "writes", "flushes", "cached_sectors",
//!   "power_cuts": [{"at_ns", "lost_by_right", "lost_by_wrong"}, ...],
//!   "violation_count", "violations": [...]}}
//! ```
//!
//! `mmc` is there where the device is an MMC host's, `pmem` where it is persistent memory (counts and times
//! are of an I/O), `faults` where faults were asked for, `verified`
//! where that was. `queue_status` counts CMD13 with bit 15, which asks after the card's command queue
//! and is not among `commands`; `lost_writes` those writes that were reported as done before the card
//! said that they had failed, `doubtful_writes` those of which its answer got lost. Of `transfer_ns` the parts are from one transfer to the next: bus or card
//! at work, both idle though there is a request, no request. `memory_percent` is the share of the time in
//! which the card programmed pages or read ahead, seen on the bus or not; `unnoticed_ns` is the time in
//! which a transaction was over and nobody knew, as a fault lost its interrupt.
//!
//! Numbers are in the unit their name ends in; `null` stands for a ratio to nothing. Keys may be
//! added, never renamed. The fields of [`Report`] and [`Row`] say what each is.

use core::fmt::Write as _;
use std::io::Write;

use anstyle::{AnsiColor, Style};
use blockyard_sim::why::Figures;
use serde::Serialize;

use crate::cli::{Answer, OutputFormat};
use crate::extras::{self, Extras};
use crate::human::{approximate, count, digits, mebibytes, time};
use crate::life::{Holds, Life, holds, lives, reasons};
use crate::message::Failure;
use crate::spent::{self, Times};
use crate::table::{Align, Cell, Table};

/// What each design made of a job on a device.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    /// The job file, or `-`, or the names of the jobs.
    pub(crate) job: String,
    pub(crate) device: String,
    pub(crate) seed: u64,
    /// In the order asked for; ratios are to the first.
    pub(crate) designs: Vec<Row>,
    /// Where the difference comes from.
    pub(crate) why: String,
}

/// What one design made of the job.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) iops: f64,
    pub(crate) bytes_per_s: u64,
    pub(crate) lat_ns: Latency,
    /// Of all CPUs of the machine together.
    pub(crate) cpu_percent: f64,
    pub(crate) commands: u64,
    pub(crate) ios_per_command: f64,
    pub(crate) device_busy_percent: f64,
    pub(crate) mean_idle_gap_ns: u64,
    pub(crate) wakeups_per_io: f64,
    /// IOPS over those of the first design.
    pub(crate) ratio: f64,
    pub(crate) life_ns: Life,
    pub(crate) holds: Holds,
    /// What jobs spent their time on, all instances added up.
    pub(crate) jobs_ns: Times,
    /// Whether that is worth a table.
    #[serde(skip)]
    pub(crate) jobs_tell: bool,
    #[serde(flatten)]
    pub(crate) extras: Extras,
}

/// From submission to end, nanoseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Latency {
    pub(crate) mean: u64,
    pub(crate) p50: u64,
    pub(crate) p99: u64,
    #[serde(rename = "p99.9")]
    pub(crate) p99_9: u64,
}

const COLUMNS: &[(&str, Align)] = &[
    ("design", Align::Left),
    ("IOPS", Align::Right),
    ("MiB/s", Align::Right),
    ("p50", Align::Right),
    ("p99", Align::Right),
    ("p99.9", Align::Right),
    ("CPU %", Align::Right),
    ("wake/I/O", Align::Right),
    ("I/O/cmd", Align::Right),
    ("ratio", Align::Right),
];

/// What the device had of it.
const DEVICE_COLUMNS: &[(&str, Align)] = &[
    ("design", Align::Left),
    ("cmds", Align::Right),
    ("busy %", Align::Right),
    ("gap", Align::Right),
];

/// No line of the answer is longer where names are those of built-in designs.
const WIDTH: usize = 100;

impl Report {
    /// Writes the report in `format` as `answer` asks: to its file, or else to `out`.
    pub(crate) fn deliver(
        &self,
        format: OutputFormat,
        answer: &Answer,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let text = match format {
            OutputFormat::Normal => self.text(),
            OutputFormat::Json => self.json(),
        };
        answer.deliver(&text, out)
    }

    /// The report as JSON, with a line end.
    fn json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("names are strings");
        text.push('\n');
        text
    }

    /// The report for people, with escape sequences for a terminal.
    fn text(&self) -> String {
        let mut text = format!("{} on {}, seed {}\n\n", self.job, self.device, self.seed);
        let designs = || self.designs.iter().map(|row| (row.name.as_str(), row));
        let lives = lives(designs().map(|(name, row)| (name, &row.life_ns)));
        write!(
            text,
            "{}\nWhat the device had of it:\n{}\nWhere a request spends its life, on average:\n{lives}",
            self.table(),
            self.device_table()
        )
        .expect("a string takes everything");
        if let Some(reasons) = reasons(designs().map(|(name, row)| (name, &row.holds))) {
            write!(
                text,
                "\nWhat holds it back, times for each I/O and share of the time:\n{reasons}"
            )
            .expect("a string takes everything");
        }
        if self.designs.iter().any(|row| row.jobs_tell) {
            let jobs = spent::table(designs().map(|(name, row)| (name, &row.jobs_ns)));
            write!(text, "\nWhat jobs spend their time on, all of them together:\n{jobs}")
                .expect("a string takes everything");
        }
        text += &extras::text(designs().map(|(name, row)| (Some(name), &row.extras)));
        let why = wrapped(&self.why);
        write!(text, "\n{why}\nColumns are explained by `blockyard whatif --help`.\n")
            .expect("a string takes everything");
        text
    }

    fn table(&self) -> Table {
        let mut table = Table::new(COLUMNS);
        for row in &self.designs {
            let mut cells: Vec<Cell> = row.cells().map(Cell::from).into();
            if let Some(ratio) = cells.last_mut() {
                ratio.style = self.ratio_style(row.ratio);
            }
            table.row(cells);
        }
        table
    }

    fn device_table(&self) -> Table {
        let mut table = Table::new(DEVICE_COLUMNS);
        self.designs.iter().for_each(|row| table.row(row.device_cells()));
        table
    }

    /// Green for the best ratio, red for the worst, where they are not the same.
    fn ratio_style(&self, ratio: f64) -> Style {
        let ratios = || self.designs.iter().map(|row| row.ratio);
        let (best, worst) = (ratios().fold(ratio, f64::max), ratios().fold(ratio, f64::min));
        let colour = match ratio {
            _ if best <= worst => None,
            _ if ratio >= best => Some(AnsiColor::Green),
            _ if ratio <= worst => Some(AnsiColor::Red),
            _ => None,
        };
        Style::new().fg_color(colour.map(Into::into))
    }
}

/// `words` in lines of at most [`WIDTH`].
fn wrapped(words: &str) -> String {
    let mut lines = vec![String::new()];
    for word in words.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + word.chars().count() < WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

impl Row {
    /// The row of the design `name`, which made `figures` of the job where the first design made
    /// `first_iops`.
    #[expect(clippy::float_arithmetic, reason = "the ratio is the answer, and orders nothing")]
    pub(crate) fn new(name: &str, figures: &Figures, first_iops: f64) -> Self {
        Self {
            name: name.to_owned(),
            iops: figures.iops,
            bytes_per_s: figures.bytes_per_s,
            lat_ns: Latency {
                mean: figures.lat_ns.mean(),
                p50: figures.lat_ns.percentile(50_000),
                p99: figures.lat_ns.percentile(99_000),
                p99_9: figures.lat_ns.percentile(99_900),
            },
            cpu_percent: figures.cpu_percent,
            commands: figures.commands,
            ios_per_command: figures.ios_per_command,
            device_busy_percent: figures.device_busy_percent,
            mean_idle_gap_ns: figures.mean_idle_gap_ns,
            wakeups_per_io: figures.wakeups_per_io,
            ratio: if first_iops > 0.0 { figures.iops / first_iops } else { f64::NAN },
            life_ns: Life::of(figures),
            holds: holds(figures),
            jobs_ns: Times::of(&figures.spent),
            jobs_tell: spent::tells(&figures.spent, figures.one_at_a_time),
            extras: Extras::default(),
        }
    }

    /// A cell for each of [`COLUMNS`].
    fn cells(&self) -> [String; COLUMNS.len()] {
        [
            self.name.clone(),
            count(self.iops),
            mebibytes(self.bytes_per_s),
            time(self.lat_ns.p50),
            time(self.lat_ns.p99),
            time(self.lat_ns.p99_9),
            digits(self.cpu_percent),
            digits(self.wakeups_per_io),
            digits(self.ios_per_command),
            digits(self.ratio),
        ]
    }

    /// A cell for each of [`DEVICE_COLUMNS`].
    fn device_cells(&self) -> [String; DEVICE_COLUMNS.len()] {
        [
            self.name.clone(),
            count(approximate(self.commands)),
            digits(self.device_busy_percent),
            time(self.mean_idle_gap_ns),
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use blockyard_sim::profile::builtin_designs;
    use serde_json::Value;

    use super::*;
    use crate::life::Held;

    fn row(name: &str, iops: f64, ratio: f64) -> Row {
        Row {
            name: name.to_owned(),
            iops,
            bytes_per_s: 2_404_352_000,
            lat_ns: Latency { mean: 7_000_000, p50: 6_970_000, p99: 8_100_400, p99_9: 12_345_678 },
            cpu_percent: 41.27,
            commands: 1_151_234,
            ios_per_command: 5.1,
            device_busy_percent: 100.0,
            mean_idle_gap_ns: 0,
            wakeups_per_io: 0.031,
            ratio,
            life_ns: Life {
                for_tag: 0.0,
                staged: 1_000_000.0,
                held: 250_000.0,
                in_driver: 5_750_000.4,
                for_flush: 0.0,
                untaken: 3000.0,
            },
            holds: holds(),
            jobs_ns: Times::default(),
            jobs_tell: false,
            extras: Extras::default(),
        }
    }

    fn holds() -> Holds {
        let none = Held { count: 0, per_io: 0.0, percent: 0.0 };
        let held = |percent| Held { count: 7, per_io: 0.209, percent };
        Holds::from([
            ("budget", held(99.4)),
            ("device", none),
            ("host", none),
            ("leftovers", held(0.2)),
            ("order", none),
            ("quiesced", none),
            ("resource", none),
            ("tag", none),
        ])
    }

    fn report() -> Report {
        Report {
            job: "seq.fio".to_owned(),
            device: "srp".to_owned(),
            seed: 1,
            designs: vec![
                row("legacy-deadline", 587_000.0, 1.0),
                row("mq-deadline-2017", 155_000.0, 0.264),
                row("mq-deadline", 590_000.0, 1.005),
            ],
            why: "mq-deadline-2017 sends 1.11 I/Os per command, legacy-deadline 5.10.".to_owned(),
        }
    }

    fn answer(output: Option<PathBuf>) -> Answer {
        Answer { seed: 1, output }
    }

    #[test]
    fn people_get_an_aligned_table_and_the_reason() {
        let expected = "\
seq.fio on srp, seed 1

design            IOPS  MiB/s     p50     p99   p99.9  CPU %  wake/I/O  I/O/cmd  ratio
legacy-deadline   587k   2293  6.97ms  8.10ms  12.3ms   41.3      0.03     5.10   1.00
mq-deadline-2017  155k   2293  6.97ms  8.10ms  12.3ms   41.3      0.03     5.10   0.26
mq-deadline       590k   2293  6.97ms  8.10ms  12.3ms   41.3      0.03     5.10   1.00

What the device had of it:
design             cmds  busy %  gap
legacy-deadline   1.15M     100  0ns
mq-deadline-2017  1.15M     100  0ns
mq-deadline       1.15M     100  0ns

Where a request spends its life, on average:
design              life  for a tag       staged        held    in driver      untaken
legacy-deadline   7.00ms   0ns   0%  1.00ms  14%  250us   4%  5.75ms  82%  3.00us   0%
mq-deadline-2017  7.00ms   0ns   0%  1.00ms  14%  250us   4%  5.75ms  82%  3.00us   0%
mq-deadline       7.00ms   0ns   0%  1.00ms  14%  250us   4%  5.75ms  82%  3.00us   0%

What holds it back, times for each I/O and share of the time:
design               budget  leftovers
legacy-deadline   0.21  99%  0.21   0%
mq-deadline-2017  0.21  99%  0.21   0%
mq-deadline       0.21  99%  0.21   0%

mq-deadline-2017 sends 1.11 I/Os per command, legacy-deadline 5.10.
Columns are explained by `blockyard whatif --help`.
";
        let text = report().text();
        assert_eq!(anstream::adapter::strip_str(&text).to_string(), expected);
        assert!(
            text.contains("\u{1b}[32m1.00\u{1b}[0m") && text.contains("\u{1b}[31m0.26\u{1b}[0m")
        );
    }

    #[test]
    fn no_line_is_longer_than_a_hundred_columns() {
        let longest = builtin_designs().iter().map(|design| design.name).max_by_key(|n| n.len());
        let wide = Row {
            lat_ns: Latency { mean: 0, p50: 26_600_000, p99: 42_200_000, p99_9: 53_000_000 },
            bytes_per_s: 99_999 << 20,
            cpu_percent: 33.7,
            commands: 12_345_678,
            mean_idle_gap_ns: 443_000_000,
            life_ns: Life {
                for_tag: 22.22e6,
                staged: 22.22e6,
                held: 22.22e6,
                in_driver: 22.22e6,
                for_flush: 0.0,
                untaken: 22.22e6,
            },
            jobs_ns: Times {
                alive: 22_220_000,
                thinking: 22_220_000,
                in_calls: 22_220_000,
                ready: 22_220_000,
                waiting: 22_220_000,
                pausing: 22_220_000,
            },
            jobs_tell: true,
            extras: Extras {
                mmc: Some(crate::mmc::tests::row(99_999, 99_999)),
                ..Extras::default()
            },
            ..row(longest.unwrap(), 1_234_567.0, 123.0)
        };
        let why = "words of a reason ".repeat(30);
        let text = Report { designs: vec![wide], why, ..report() }.text();
        let text = anstream::adapter::strip_str(&text).to_string();
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(100), "{text}");
        assert!(longest > Some(90), "it is as wide as it may get: {text}");
    }

    #[test]
    fn designs_that_do_equally_well_are_not_coloured() {
        let equal = Report { designs: vec![row("a", 1.0, 1.0), row("b", 1.0, 1.0)], ..report() };
        assert!(!equal.text().contains('\u{1b}'));
    }

    #[test]
    fn programs_get_the_documented_object() {
        let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        let object: Value = serde_json::from_str(&report().json()).unwrap();
        assert_eq!(keys(&object), ["designs", "device", "job", "seed", "why"]);
        let row = &object["designs"][1];
        let fields = [
            "bytes_per_s",
            "commands",
            "cpu_percent",
            "device_busy_percent",
            "holds",
            "iops",
            "ios_per_command",
            "jobs_ns",
            "lat_ns",
            "life_ns",
            "mean_idle_gap_ns",
            "name",
            "ratio",
            "wakeups_per_io",
        ];
        assert_eq!(keys(row), fields);
        assert_eq!(keys(&row["lat_ns"]), ["mean", "p50", "p99", "p99.9"]);
        assert_eq!(
            keys(&row["life_ns"]),
            ["for_flush", "for_tag", "held", "in_driver", "staged", "untaken"]
        );
        assert_eq!(keys(&row["holds"]["budget"]), ["count", "per_io", "percent"]);
        let reasons =
            ["budget", "device", "host", "leftovers", "order", "quiesced", "resource", "tag"];
        assert_eq!(keys(&row["holds"]), reasons);
        assert_eq!(row["name"], "mq-deadline-2017");
        assert_eq!(row["lat_ns"]["p99.9"], 12_345_678);
        assert_eq!(row["ratio"], 0.264);
    }

    #[test]
    fn an_answer_goes_to_its_file_without_colours_or_else_to_the_output() {
        let file = std::env::temp_dir().join(format!("blockyard-report-{}", std::process::id()));
        let mut out = Vec::new();
        let to_file = answer(Some(file.clone()));
        report().deliver(OutputFormat::Normal, &to_file, &mut out).unwrap();
        assert!(out.is_empty());
        let written = fs::read_to_string(&file).unwrap();
        fs::remove_file(&file).unwrap();
        assert!(written.starts_with("seq.fio on srp, seed 1\n") && !written.contains('\u{1b}'));
        report().deliver(OutputFormat::Json, &answer(None), &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), report().json());
    }

    #[test]
    fn a_file_that_cannot_be_written_fails_the_run() {
        let nowhere = answer(Some("/no/such/folder/x".into()));
        let failed = report().deliver(OutputFormat::Json, &nowhere, &mut Vec::new());
        let failure = failed.unwrap_err();
        assert!(matches!(failure, Failure::Run(words) if words.starts_with("/no/such/folder/x: ")));
    }
}
