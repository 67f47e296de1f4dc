//! The human-readable answer of `whatif`.

use anstyle::{AnsiColor, Style};
use blockyard_sim::answer::number::{approximate, count, digits, mebibytes, time};
use blockyard_sim::answer::{Answer, Outcome};

use super::table::{Cell, Table, WIDTH};
use super::{certainty, device, job_time, life};

const COLUMNS: [&str; 9] =
    ["IOPS", "MiB/s", "p50", "p99", "p99.9", "CPU %", "wakes/I/O", "I/Os/cmd", "ratio"];

const DEVICE_COLUMNS: [&str; 3] = ["commands", "busy %", "mean gap"];

/// Formats `answer` with escape sequences for a terminal. `command` is the job for fio.
pub(crate) fn text(answer: &Answer, command: &str) -> String {
    let designs = || answer.designs.iter().map(|of| (of.name.as_str(), &of.figures));
    let mut text = format!(
        "{} on {}, seed {}\n{}\n\n{}\nDevice utilisation:\n{}\nWhere requests spend their time, on \
         average:\n{}",
        answer.job,
        answer.device,
        answer.seed,
        wrapped(&certainty::rests(answer.rests)),
        figures(answer),
        utilisation(answer),
        life::lives(designs().map(|(name, figures)| (name, &figures.life_ns))),
    );
    if let Some(holds) = life::holds(designs().map(|(name, figures)| (name, &figures.holds))) {
        text +=
            &format!("\nWhat holds hardware queues, times per I/O and share of the time:\n{holds}");
    }
    if designs().any(|(_, of)| job_time::is_shown(&of.jobs_ns, of.one_at_a_time)) {
        let jobs = job_time::table(designs().map(|(name, figures)| (name, &figures.jobs_ns)));
        text += &format!("\nWhat jobs spend their time on, all jobs together:\n{jobs}");
    }
    let named: Vec<_> = answer.designs.iter().map(|of| (Some(of.name.as_str()), of)).collect();
    text += &device::text(&named);
    let why = wrapped(&answer.why);
    let sure: Vec<_> = certainty::lines(answer, command).iter().map(|line| wrapped(line)).collect();
    if !sure.is_empty() {
        text += &format!("\n{}\n", sure.join("\n"));
    }
    text + &format!("\n{why}\n`blockyard whatif --help` explains the columns.\n")
}

fn figures(answer: &Answer) -> Table {
    let mut table = Table::of_numbers("design", COLUMNS);
    for of in &answer.designs {
        let mut cells: Vec<Cell> = cells(of).map(Cell::from).into();
        if let Some(ratio) = cells.last_mut() {
            ratio.style = ratio_style(answer, of.ratio);
        }
        table.row(cells);
    }
    table
}

/// Returns the name of the design and a cell for each of [`COLUMNS`].
fn cells(of: &Outcome) -> [String; 1 + COLUMNS.len()] {
    let figures = &of.figures;
    [
        of.name.clone(),
        count(figures.iops),
        mebibytes(figures.bytes_per_s),
        time(figures.lat_ns.p50),
        time(figures.lat_ns.p99),
        time(figures.lat_ns.p99_9),
        digits(figures.cpu_percent),
        digits(figures.wakeups_per_io),
        digits(figures.ios_per_command),
        digits(of.ratio),
    ]
}

fn utilisation(answer: &Answer) -> Table {
    let mut table = Table::of_numbers("design", DEVICE_COLUMNS);
    for Outcome { name, figures, .. } in &answer.designs {
        table.row([
            name.clone(),
            count(approximate(figures.commands)),
            digits(figures.device_busy_percent),
            time(figures.mean_idle_gap_ns),
        ]);
    }
    table
}

/// Returns green for the best ratio and red for the worst, unless all are the same.
fn ratio_style(answer: &Answer, ratio: f64) -> Style {
    let ratios = || answer.designs.iter().map(|of| of.ratio);
    let (best, worst) = (ratios().fold(ratio, f64::max), ratios().fold(ratio, f64::min));
    let colour = match ratio {
        _ if best <= worst => None,
        _ if ratio >= best => Some(AnsiColor::Green),
        _ if ratio <= worst => Some(AnsiColor::Red),
        _ => None,
    };
    Style::new().fg_color(colour.map(Into::into))
}

/// Breaks `text` into lines of at most [`WIDTH`]. A number and its unit stay together.
fn wrapped(text: &str) -> String {
    let is_unit = |word: &str| {
        let letters =
            word.trim_end_matches(|letter: char| !letter.is_alphabetic() && letter != '%');
        ["%", "ns", "us", "ms", "s"].contains(&letters)
    };
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match words.last_mut().filter(|_| is_unit(word)) {
            Some(number) => *number += &format!(" {word}"),
            None => words.push(word.to_owned()),
        }
    }
    let mut lines = vec![String::new()];
    for word in words {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(&word),
            Some(line) if line.chars().count() + word.chars().count() < WIDTH => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use blockyard::trace::Hold;
    use blockyard_sim::answer::certainty::Rests;
    use blockyard_sim::answer::{
        Explanation, Factor, Figures, Held, Holds, JobTime, Latency, Life,
    };
    use blockyard_sim::measure::series::Series;
    use blockyard_sim::profile::builtin_designs;

    use super::*;

    fn figures(iops: f64) -> Figures {
        let lat_ns = Latency {
            mean: 7_000_000,
            p50: 6_970_000,
            p99: 8_100_400,
            p99_9: 12_345_678,
            ..Latency::default()
        };
        let life_ns = Life {
            queued: 1_000_000.0,
            dequeued: 250_000.0,
            in_driver: 5_750_000.4,
            not_reaped: 3000.0,
            ..Life::default()
        };
        Figures {
            ios: 0,
            bytes: 0,
            iops,
            read_bytes: 0,
            written_bytes: 0,
            bytes_per_s: 2_404_352_000,
            lat_ns,
            cpu_percent: 41.27,
            jobs_cpu_percent: 0.0,
            spinning_percent: 0.0,
            polling_percent: 0.0,
            commands: 1_151_234,
            ios_per_command: 5.1,
            commands_per_s: 0.0,
            at_device: 0.0,
            command_ns: 0.0,
            device_busy_percent: 100.0,
            mean_idle_gap_ns: 0,
            wakeups_per_io: 0.031,
            runs_per_io: 0.0,
            refusals_per_io: 0.0,
            dequeued_percent: 0.0,
            jobs_ns: JobTime::default(),
            one_at_a_time: false,
            life_ns,
            holds: holds(),
            mmc: None,
            pmem: None,
        }
    }

    fn holds() -> Holds {
        let held = |percent| Held { count: 7, per_io: 0.209, percent };
        [(Hold::Budget, held(99.4)), (Hold::Leftovers, held(0.2))].into_iter().collect()
    }

    fn outcome(name: &str, iops: f64, ratio: f64) -> Outcome {
        Outcome {
            name: name.to_owned(),
            ratio,
            figures: figures(iops),
            jobs: Vec::new(),
            series: Series::default(),
            late_ns: None,
            faults: None,
            verified: None,
        }
    }

    fn answer() -> Answer {
        Answer {
            job: "seq.fio".to_owned(),
            device: "srp".to_owned(),
            rests: Rests { fitted: 9, stated: 4, assumed: 20, varied: 18 },
            seed: 1,
            designs: vec![
                outcome("legacy-deadline", 587_000.0, 1.0),
                outcome("mq-deadline-2017", 155_000.0, 0.264),
                outcome("mq-deadline", 590_000.0, 1.005),
            ],
            explanation: Explanation {
                low: "mq-deadline-2017".to_owned(),
                high: Some("legacy-deadline".to_owned()),
                factor: Factor::Merging,
                share: 0.264,
                evidence: Vec::new(),
            },
            why: "mq-deadline-2017 reaches 26 % of legacy-deadline's IOPS.".to_owned(),
            seeds: None,
            readings: None,
        }
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn people_get_aligned_tables_and_the_reason() {
        let expected = "\
seq.fio on srp, seed 1
Of 33 figures of the device: 9 fitted to measurements, 4 stated by documents, 20 assumed.

design            IOPS  MiB/s      p50      p99    p99.9  CPU %  wakes/I/O  I/Os/cmd  ratio
legacy-deadline   587k   2293  6.97 ms  8.10 ms  12.3 ms   41.3       0.03      5.10   1.00
mq-deadline-2017  155k   2293  6.97 ms  8.10 ms  12.3 ms   41.3       0.03      5.10   0.26
mq-deadline       590k   2293  6.97 ms  8.10 ms  12.3 ms   41.3       0.03      5.10   1.00

Device utilisation:
design            commands  busy %  mean gap
legacy-deadline      1.15M     100      0 ns
mq-deadline-2017     1.15M     100      0 ns
mq-deadline          1.15M     100      0 ns

Where requests spend their time, on average:
                             waiting                    dequeued,         in the     completed,
design              total  for a tag         queued    not issued         driver     not reaped
legacy-deadline   7.00 ms          -  1.00 ms  14 %  250 us   4 %  5.75 ms  82 %  3.00 us   0 %
mq-deadline-2017  7.00 ms          -  1.00 ms  14 %  250 us   4 %  5.75 ms  82 %  3.00 us   0 %
mq-deadline       7.00 ms          -  1.00 ms  14 %  250 us   4 %  5.75 ms  82 %  3.00 us   0 %

What holds hardware queues, times per I/O and share of the time:
design                budget   leftovers
legacy-deadline   0.21  99 %  0.21   0 %
mq-deadline-2017  0.21  99 %  0.21   0 %
mq-deadline       0.21  99 %  0.21   0 %

No assumed figure was varied. --readings 32 says whether they decide the ranking.

mq-deadline-2017 reaches 26 % of legacy-deadline's IOPS.
`blockyard whatif --help` explains the columns.
";
        let text = text(&answer(), "fio seq.fio");
        assert_eq!(plain(&text), expected);
        assert!(
            text.contains("\u{1b}[32m1.00\u{1b}[0m") && text.contains("\u{1b}[31m0.26\u{1b}[0m")
        );
    }

    #[test]
    fn no_line_is_longer_than_a_hundred_columns() {
        let names = builtin_designs().iter().map(|design| design.name);
        let longest = names.max_by_key(|name| name.len()).expect("an answer should have designs");
        let part = 22.22e6;
        let wide = Figures {
            lat_ns: Latency {
                p50: 26_600_000,
                p99: 42_200_000,
                p99_9: 53_000_000,
                ..Latency::default()
            },
            bytes_per_s: 99_999 << 20,
            cpu_percent: 33.7,
            commands: 12_345_678,
            mean_idle_gap_ns: 443_000_000,
            life_ns: Life {
                waiting_for_tag: part,
                queued: part,
                dequeued: part,
                in_driver: part,
                waiting_for_flush: part,
                not_reaped: part,
            },
            jobs_ns: JobTime {
                alive: 22_220_000,
                thinking: 22_220_000,
                in_calls: 22_220_000,
                ready: 22_220_000,
                waiting: 22_220_000,
                pausing: 22_220_000,
            },
            mmc: Some(crate::render::mmc::tests::figures(99_999, 99_999)),
            ..figures(1_234_567.0)
        };
        let wide = Outcome { figures: wide, ..outcome(longest, 1_234_567.0, 123.0) };
        let why = "words of a reason ".repeat(30);
        let text = plain(&text(&Answer { designs: vec![wide], why, ..answer() }, "fio x"));
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(100), "{text}");
        assert!(longest > Some(90), "it is as wide as it may get: {text}");
    }

    #[test]
    fn equal_designs_are_not_coloured() {
        let designs = vec![outcome("a", 1.0, 1.0), outcome("b", 1.0, 1.0)];
        assert!(!text(&Answer { designs, ..answer() }, "fio x").contains('\u{1b}'));
    }
}
