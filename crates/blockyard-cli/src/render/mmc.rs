//! The use of an MMC host's bus.

use std::collections::BTreeSet;

use blockyard_answer::{HostFigures, Overlapped};
use blockyard_text::number::{approximate, count, digits, exact_percent, time};

use super::table::Table;
use super::wrap::wrapped;

/// The column name of CMD13 with bit 15, which reads the queue status register.
const QUEUE_STATUS: &str = "CMD13/QSR";

/// The words above the table of the host.
const HOST: &str =
    "The host (bus % is the time with a transaction; busy % above includes a busy card):";

const COLUMNS: [&str; 7] = [
    "bus %",
    "bus gap",
    "map, bus busy",
    "map, bus idle",
    "unmap, bus busy",
    "unmap, bus idle",
    "awaited wakes/I/O",
];

/// Returns the tables of each design, or the lines of a single unnamed run. The text is empty if
/// there are none.
pub(super) fn text(rows: &[(Option<&str>, &HostFigures)], width: usize) -> String {
    match rows {
        [] => String::new(),
        [(None, figures)] => lines(figures),
        _ => {
            let named: Vec<_> = rows.iter().map(|(name, of)| (name.unwrap_or(""), *of)).collect();
            format!(
                "\nCommands on the bus:\n{:width$}\n{}\n{:width$}\nInterrupts, and the threads that are \
                 woken, for each I/O:\n{:width$}",
                commands(&named),
                wrapped(HOST, width),
                host(&named),
                woken(&named)
            )
        }
    }
}

/// Returns a column for each command that any design sent, and then one for each other count that
/// any design has.
fn commands(rows: &[(&str, &HostFigures)]) -> Table {
    let mut table = Table::of_words(&["design"]);
    rows.iter().for_each(|(name, _)| table.row([(*name).to_owned()]));
    let sent: BTreeSet<_> = rows
        .iter()
        .flat_map(|(_, figures)| figures.commands.sent().map(|(command, _)| command))
        .collect();
    for command in sent {
        column(&mut table, rows, &command.to_string(), &|figures| {
            number(figures.commands.of(command))
        });
    }
    if rows.iter().any(|(_, figures)| figures.queue_status > 0) {
        column(&mut table, rows, QUEUE_STATUS, &|figures| number(figures.queue_status));
    }
    if rows.iter().any(|(_, figures)| figures.status_per_write.is_some()) {
        column(&mut table, rows, "CMD13/write", &status_per_write);
    }
    if rows.iter().any(|(_, figures)| figures.lost_writes > 0) {
        column(&mut table, rows, "lost writes", &|figures| number(figures.lost_writes));
    }
    if rows.iter().any(|(_, figures)| figures.doubtful_writes > 0) {
        column(&mut table, rows, "in doubt", &|figures| number(figures.doubtful_writes));
    }
    table
}

/// Adds a column with a cell for each host.
fn column(
    table: &mut Table,
    rows: &[(&str, &HostFigures)],
    name: &str,
    cell: &dyn Fn(&HostFigures) -> String,
) {
    table.column(name, rows.iter().map(|(_, figures)| cell(figures)));
}

fn host(rows: &[(&str, &HostFigures)]) -> Table {
    let mut table = Table::of_numbers("design", COLUMNS);
    for (name, figures) in rows {
        table.row([
            (*name).to_owned(),
            digits(figures.bus_busy_percent),
            time(figures.mean_bus_gap_ns),
            exact_percent(figures.map_percent.inside),
            exact_percent(figures.map_percent.outside),
            exact_percent(figures.unmap_percent.inside),
            exact_percent(figures.unmap_percent.outside),
            digits(figures.awaited_wakeups_per_io),
        ]);
    }
    if rows.iter().any(|(_, figures)| figures.unnoticed_ns > 0) {
        let cells = rows.iter().map(|(_, figures)| time(figures.unnoticed_ns));
        table.column("unnoticed", cells);
    }
    table
}

fn woken(rows: &[(&str, &HostFigures)]) -> Table {
    let heads = ["interrupts", "driver's thread", "driver's worker", "jobs", "context switches"];
    let mut table = Table::of_numbers("design", heads);
    for (name, figures) in rows {
        let woken = &figures.woken_per_io;
        let counts =
            [woken.interrupts, woken.thread, woken.worker, woken.jobs, figures.switches_per_io];
        table.row([(*name).to_owned()].into_iter().chain(counts.map(digits)));
    }
    table
}

/// Formats a count, with a dash for zero.
fn number(times: u64) -> String {
    if times == 0 { "-".to_owned() } else { count(approximate(times)) }
}

fn status_per_write(figures: &HostFigures) -> String {
    figures.status_per_write.map_or_else(|| "-".to_owned(), digits)
}

/// Returns the figures of a single run, in fio's style.
fn lines(figures: &HostFigures) -> String {
    let sent = figures.commands.sent();
    let mut commands: String =
        sent.map(|(command, sent)| format!("{command}={}, ", count(approximate(sent)))).collect();
    if figures.queue_status > 0 {
        commands += &format!("{QUEUE_STATUS}={}, ", number(figures.queue_status));
    }
    let unnoticed = match figures.unnoticed_ns {
        0 => String::new(),
        ns => format!(", unnoticed={}", time(ns)),
    };
    let lost =
        line("lost writes", figures.lost_writes) + &line("in doubt", figures.doubtful_writes);
    format!(
        "\nMMC host:\n  \
           commands     : {commands}CMD13/write={}\n  \
           bus          : busy={}, gap={}{unnoticed}\n  \
           bus busy/idle: map={}, unmap={}\n  \
           per I/O      : interrupts={}, wakes={} (thread={}, worker={}, jobs={}), awaited \
             wakes={}, ctx={}\n{lost}",
        status_per_write(figures),
        exact_percent(figures.bus_busy_percent),
        time(figures.mean_bus_gap_ns),
        pair(figures.map_percent),
        pair(figures.unmap_percent),
        digits(figures.woken_per_io.interrupts),
        digits(figures.wakeups_per_io),
        digits(figures.woken_per_io.thread),
        digits(figures.woken_per_io.worker),
        digits(figures.woken_per_io.jobs),
        digits(figures.awaited_wakeups_per_io),
        digits(figures.switches_per_io),
    )
}

/// The part of a time in which the bus is busy, and the part in which it is idle.
fn pair(of: Overlapped) -> String {
    exact_percent(of.inside) + " / " + &exact_percent(of.outside)
}

/// A line with a number of writes, if there are any.
fn line(name: &str, writes: u64) -> String {
    match writes {
        0 => String::new(),
        _ => format!("  {name:13}: {writes}\n"),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use blockyard_answer::{CommandCounts, TransferCounts, TransferTimes, Woken};
    use serde_json::Value;

    use super::*;

    /// Returns a host that sent these numbers of CMD18s, and of CMD25s with a CMD13 each.
    pub(in crate::render) fn figures(reads: u64, writes: u64) -> HostFigures {
        let mut commands = [0; 64];
        commands[18] = reads;
        (commands[13], commands[25]) = (writes, writes);
        HostFigures {
            commands: CommandCounts(commands),
            queue_status: 0,
            status_per_write: (writes > 0).then_some(1.0),
            lost_writes: 0,
            doubtful_writes: 0,
            bus_busy_percent: 53.21,
            mean_bus_gap_ns: 18_853,
            unnoticed_ns: 0,
            absent_percent: 0.0,
            memory_percent: 0.0,
            map_percent: Overlapped { inside: 2.49, outside: 0.0 },
            unmap_percent: Overlapped { inside: 0.0, outside: 11.23 },
            wakeups_per_io: 3.96,
            woken_per_io: Woken { interrupts: 2.0, thread: 1.98, worker: 0.98, jobs: 1.0 },
            awaited_wakeups_per_io: 1.98,
            switches_per_io: 0.97,
            transfer_ns: TransferTimes { work: 43e3, idle: 37e3, ..TransferTimes::default() },
            per_transfer: TransferCounts::default(),
        }
    }

    #[test]
    fn designs_are_shown_below_each_other() {
        let some = figures(0, 81_263);
        let others = figures(7, 0);
        let rows = [(Some("mmc-blkmq"), &some), (Some("b"), &others)];
        let expected = "
Commands on the bus:
design     CMD13  CMD18  CMD25  CMD13/write
mmc-blkmq  81.3k      -  81.3k         1.00
b              -      7      -            -

The host (bus % is the time with a transaction; busy % above includes a busy card):
                               map,      map,    unmap,    unmap,    awaited
design     bus %  bus gap  bus busy  bus idle  bus busy  bus idle  wakes/I/O
mmc-blkmq   53.2  18.9 us    2.49 %    0.00 %    0.00 %    11.2 %       1.98
b           53.2  18.9 us    2.49 %    0.00 %    0.00 %    11.2 %       1.98

Interrupts, and the threads that are woken, for each I/O:
                       driver's  driver's         context
design     interrupts    thread    worker  jobs  switches
mmc-blkmq        2.00      1.98      0.98  1.00      0.97
b                2.00      1.98      0.98  1.00      0.97
";
        assert_eq!(text(&rows, 100), expected);
        let read_only = text(&[(Some("b"), &others)], 100);
        assert!(!read_only.contains("write"), "{read_only}");
        assert_eq!(text(&[], 100), "");
    }

    #[test]
    fn many_commands_continue_below_each_other() {
        let mut commands = [0; 64];
        commands[..20].fill(99_999);
        let all = HostFigures { commands: CommandCounts(commands), ..figures(1, 1) };
        let text = text(&[(Some("mq-deadline-2017-patched"), &all)], 100);
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        let heads = text.lines().filter(|line| line.starts_with("design") && line.contains("CMD"));
        let told: Vec<_> = heads.flat_map(|line| line.split_whitespace().skip(1)).collect();
        let numbers =
            (0..20).map(|number| format!("CMD{number}")).chain(["CMD13/write".to_owned()]);
        assert_eq!(told, numbers.collect::<Vec<_>>());
    }

    #[test]
    fn a_single_run_has_lines_of_its_own() {
        let expected = "
MMC host:
  commands     : CMD13=1.20k, CMD18=7, CMD25=1.20k, CMD13/write=1.00
  bus          : busy=53.2 %, gap=18.9 us
  bus busy/idle: map=2.49 % / 0.00 %, unmap=0.00 % / 11.2 %
  per I/O      : interrupts=2.00, wakes=3.96 (thread=1.98, worker=0.98, jobs=1.00), awaited wakes=1.98, ctx=0.97
";
        assert_eq!(text(&[(None, &figures(7, 1200))], 100), expected);
    }

    #[test]
    fn time_after_lost_interrupts_is_shown_only_if_there_is_any() {
        let good = figures(7, 0);
        let lossy = HostFigures { unnoticed_ns: 10_000_000_000, ..good.clone() };
        let both = text(&[(Some("a"), &good), (Some("b"), &lossy)], 100);
        let (host, _) = both.split_once("\n\nInterrupts").unwrap();
        let ends: Vec<_> = host.lines().rev().take(3).collect();
        let is_last = |(line, end): (&&str, &str)| line.ends_with(end);
        assert!(ends.iter().zip(["  10.0 s", "   0 ns", "unnoticed"]).all(is_last), "{both}");
        let alone = text(&[(None, &lossy)], 100);
        assert!(alone.contains("gap=18.9 us, unnoticed=10.0 s\n"), "{alone}");
        let none = text(&[(None, &good)], 100) + &text(&[(Some("a"), &good)], 100);
        assert!(!none.contains("unnoticed"), "{none}");
    }

    #[test]
    fn queue_status_and_lost_writes_are_shown_only_if_there_are_any() {
        let plain = figures(0, 1200);
        let queue = HostFigures {
            queue_status: 18,
            status_per_write: Some(0.0),
            lost_writes: 3,
            doubtful_writes: 1,
            ..plain.clone()
        };
        let rows = [(Some("mmc-blkmq"), &plain), (Some("cqe"), &queue)];
        let expected = "
Commands on the bus:
design     CMD13  CMD25  CMD13/QSR  CMD13/write  lost writes  in doubt
mmc-blkmq  1.20k  1.20k          -         1.00            -         -
cqe        1.20k  1.20k         18         0.00            3         1
";
        let told = text(&rows, 100);
        assert!(told.starts_with(expected), "{told}");
        let alone = text(&[(None, &queue)], 100);
        assert!(alone.contains("CMD25=1.20k, CMD13/QSR=18, CMD13/write=0.00\n"), "{alone}");
        assert!(alone.ends_with("\n  lost writes  : 3\n  in doubt     : 1\n"), "{alone}");
    }

    #[test]
    fn json_names_commands_and_is_null_if_nothing_was_written() {
        let object: Value = serde_json::to_value(figures(7, 0)).unwrap();
        assert_eq!(object["commands"], serde_json::json!({ "CMD18": 7 }));
        assert_eq!(object["status_per_write"], Value::Null);
    }
}
