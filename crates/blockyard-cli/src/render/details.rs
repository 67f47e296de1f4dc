//! The tables of an answer about whole runs: `whatif --details`.

use blockyard_answer::{Answer, Outcome};
use blockyard_text::number::{approximate, count, digits, mebibytes, time};

use super::table::{Cell, Table};
use super::{bfq, colour, device, job_time, life, locks};

const COLUMNS: [&str; 9] =
    ["IOPS", "MiB/s", "p50", "p99", "p99.9", "CPU %", "wakes/I/O", "I/Os/cmd", "ratio"];

const DEVICE_COLUMNS: [&str; 3] = ["commands", "busy %", "mean gap"];

/// Formats the tables of `answer` about whole runs, in lines of at most `width`.
pub(super) fn text(answer: &Answer, width: usize) -> String {
    let designs = answer.designs.iter().map(|of| (of.name.as_str(), &of.figures));
    let mut text = format!(
        "All jobs together:\n{:width$}\nDevice utilisation:\n{:width$}\nWhere requests spend their time, on \
         average:\n{:width$}",
        figures(answer),
        utilisation(answer),
        life::lives(designs.clone().map(|(name, figures)| (name, &figures.life_ns))),
    );
    if let Some(holds) = life::holds(designs.clone().map(|(name, figures)| (name, &figures.holds)))
    {
        text += &format!(
            "\nHolds of hardware queues, times per I/O and share of the time:\n{holds:width$}"
        );
    }
    let under_bfq = answer.designs.iter();
    let under_bfq = under_bfq.filter_map(|of| Some((of.name.as_str(), of.bfq.as_ref()?)));
    text += &bfq::text(&under_bfq.collect::<Vec<_>>(), width);
    text += &locks::text(designs.clone().map(|(name, figures)| (name, &figures.locks[..])), width);
    if designs.clone().any(|(_, of)| job_time::is_shown(&of.jobs_ns, of.one_at_a_time)) {
        let jobs = job_time::table(designs.clone().map(|(name, figures)| (name, &figures.jobs_ns)));
        text += &format!("\nTime of jobs, all jobs together:\n{jobs:width$}");
    }
    let named: Vec<_> = answer.designs.iter().map(|of| (Some(of.name.as_str()), of)).collect();
    text + &device::hosts(&named, width)
}

fn figures(answer: &Answer) -> Table {
    let mut table = Table::of_numbers("design", COLUMNS);
    for of in &answer.designs {
        let mut cells: Vec<Cell> = cells(of).map(Cell::from).into();
        if let Some(ratio) = cells.last_mut() {
            ratio.style = colour::of(of.ratio, answer.designs.iter().map(|of| of.ratio));
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

#[cfg(test)]
mod tests {
    use blockyard_answer::{Figures, JobTime, Latency, Life};
    use blockyard_devices::profile::builtin_designs;

    use super::super::samples::{answer, figures, outcome, plain};
    use super::*;

    #[test]
    fn people_get_aligned_tables() {
        let expected = "\
All jobs together:
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

Holds of hardware queues, times per I/O and share of the time:
design                budget   leftovers
legacy-deadline   0.21  99 %  0.21   0 %
mq-deadline-2017  0.21  99 %  0.21   0 %
mq-deadline       0.21  99 %  0.21   0 %
";
        let text = text(&answer(), 100);
        assert_eq!(plain(&text), expected);
        assert!(
            text.contains("\u{1b}[32m1.00\u{1b}[0m") && text.contains("\u{1b}[31m0.26\u{1b}[0m")
        );
    }

    #[test]
    fn no_line_is_longer_than_the_width() {
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
                paced: 0,
            },
            family: blockyard_answer::FamilyFigures {
                mmc: Some(crate::render::device::tests::figures(99_999, 99_999)),
                ..Default::default()
            },
            ..figures(1_234_567.0)
        };
        let wide = Outcome { figures: wide, ..outcome(longest, 1_234_567.0, 123.0) };
        let answer = Answer { designs: vec![wide], ..answer() };
        for width in [80, 100, 120] {
            let text = plain(&text(&answer, width));
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(width), "{text}");
            assert!(longest > Some(width - 20), "it is as wide as it may get: {text}");
        }
    }

    #[test]
    fn equal_designs_are_not_coloured() {
        let designs = vec![outcome("a", 1.0, 1.0), outcome("b", 1.0, 1.0)];
        assert!(!text(&Answer { designs, ..answer() }, 100).contains('\u{1b}'));
    }
}
