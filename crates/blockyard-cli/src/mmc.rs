//! What an MMC host did with its bus, in answers.

use core::fmt::{self, Write as _};
use std::collections::{BTreeMap, BTreeSet};

use blockyard_sim::why::{Beside, HostFigures};
use serde::{Serialize, Serializer};

use crate::human::{approximate, count, digits, time};
use crate::table::{Align, Table};

/// A command by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Command(usize);

/// How the columns name CMD13 with bit 15, which reads the queue status register.
const QUEUE_STATUS: &str = "CMD13/QSR";

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CMD{}", self.0)
    }
}

impl Serialize for Command {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The figures of one run; [`HostFigures`] says what each is.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct MmcRow {
    /// Those that were sent.
    commands: BTreeMap<Command, u64>,
    /// Of CMD13 with bit 15, which are not among them.
    queue_status: u64,
    /// Of CMD13; `None` where nothing was written.
    status_per_write: Option<f64>,
    /// Reported as done, and failed later.
    lost_writes: u64,
    /// Reported as done, and perhaps failed.
    doubtful_writes: u64,
    bus_busy_percent: f64,
    mean_bus_gap_ns: u64,
    unnoticed_ns: u64,
    memory_percent: f64,
    map_percent: Shares,
    unmap_percent: Shares,
    wakeups_per_io: f64,
    awaited_wakeups_per_io: f64,
    switches_per_io: f64,
    transfer_ns: TransferTimes,
}

/// Of the time, with a transaction on the bus and without.
#[derive(Clone, Copy, Debug, Serialize)]
struct Shares {
    inside: f64,
    outside: f64,
}

/// From one transfer to the next.
#[derive(Clone, Copy, Debug, Serialize)]
struct TransferTimes {
    work: f64,
    idle: f64,
    absent: f64,
}

impl From<Beside> for Shares {
    fn from(Beside { inside_percent, outside_percent }: Beside) -> Self {
        Self { inside: inside_percent, outside: outside_percent }
    }
}

impl From<HostFigures> for MmcRow {
    fn from(figures: HostFigures) -> Self {
        let sent = figures.commands.into_iter().enumerate().filter(|(_, count)| *count > 0);
        let transfer = figures.transfer;
        Self {
            commands: sent.map(|(number, count)| (Command(number), count)).collect(),
            queue_status: figures.queue_status,
            status_per_write: figures.status_per_write,
            lost_writes: figures.lost_writes,
            doubtful_writes: figures.doubtful_writes,
            bus_busy_percent: figures.bus_busy_percent,
            mean_bus_gap_ns: figures.mean_bus_gap_ns,
            unnoticed_ns: figures.unnoticed_ns,
            memory_percent: figures.memory_percent,
            map_percent: figures.map.into(),
            unmap_percent: figures.unmap.into(),
            wakeups_per_io: figures.wakeups_per_io,
            awaited_wakeups_per_io: figures.awaited_wakeups_per_io,
            switches_per_io: figures.switches_per_io,
            transfer_ns: TransferTimes {
                work: transfer.work_ns,
                idle: transfer.idle_ns,
                absent: transfer.absent_ns,
            },
        }
    }
}

/// What the host did.
const COLUMNS: &[(&str, Align)] = &[
    ("design", Align::Left),
    ("bus %", Align::Right),
    ("bus gap", Align::Right),
    ("map in", Align::Right),
    ("map out", Align::Right),
    ("unmap in", Align::Right),
    ("unmap out", Align::Right),
    ("awaited", Align::Right),
    ("ctx/I/O", Align::Right),
];

/// For people, those of each design, or of a single run that names none; empty where there are none.
pub(crate) fn text<'a>(of: impl Iterator<Item = (Option<&'a str>, &'a MmcRow)>) -> String {
    let rows: Vec<_> = of.collect();
    match rows[..] {
        [] => String::new(),
        [(None, row)] => row.lines(),
        _ => {
            let named: Vec<_> = rows.iter().map(|(name, row)| (name.unwrap_or(""), *row)).collect();
            format!(
                "\nWhat the bus carried, by number of the command:\n{}\n\
                 What the host did (bus: a transaction is on it; busy % and gap above count a busy card too):\n{}",
                commands(&named),
                host(&named)
            )
        }
    }
}

/// Columns side by side: with more of them a line gets too long.
const BESIDE: usize = 8;

/// A column of numbers of every design.
type Column = (String, Vec<String>);

/// A column for each command that was sent under any design, and behind them what else is told of any;
/// several tables where there are many.
fn commands(rows: &[(&str, &MmcRow)]) -> String {
    let sent: BTreeSet<_> = rows.iter().flat_map(|(_, row)| row.commands.keys().copied()).collect();
    let of = |name: String, cell: &dyn Fn(&MmcRow) -> String| -> Column {
        (name, rows.iter().map(|(_, row)| cell(row)).collect())
    };
    let count_of = |row: &MmcRow, command| number(row.commands.get(command).copied().unwrap_or(0));
    let mut columns: Vec<Column> =
        sent.iter().map(|command| of(command.to_string(), &|row| count_of(row, command))).collect();
    let mut tell = |name: &str, is_told: fn(&MmcRow) -> bool, cell: fn(&MmcRow) -> String| {
        if rows.iter().any(|(_, row)| is_told(row)) {
            columns.push(of(name.to_owned(), &cell));
        }
    };
    tell(QUEUE_STATUS, |row| row.queue_status > 0, |row| number(row.queue_status));
    tell("CMD13/write", |row| row.status_per_write.is_some(), MmcRow::status_of_write);
    tell("lost writes", |row| row.lost_writes > 0, |row| number(row.lost_writes));
    tell("in doubt", |row| row.doubtful_writes > 0, |row| number(row.doubtful_writes));
    columns.chunks(BESIDE).map(|group| table_of(rows, group).to_string()).collect()
}

fn table_of(rows: &[(&str, &MmcRow)], columns: &[Column]) -> Table {
    let mut table = Table::new(&[("design", Align::Left)]);
    rows.iter().for_each(|(name, _)| table.row([(*name).to_owned()]));
    for (name, cells) in columns {
        table.column((name, Align::Right), cells.iter().cloned());
    }
    table
}

fn host(rows: &[(&str, &MmcRow)]) -> Table {
    let mut table = Table::new(COLUMNS);
    for (name, row) in rows {
        table.row([
            (*name).to_owned(),
            digits(row.bus_busy_percent),
            time(row.mean_bus_gap_ns),
            share(row.map_percent.inside),
            share(row.map_percent.outside),
            share(row.unmap_percent.inside),
            share(row.unmap_percent.outside),
            digits(row.awaited_wakeups_per_io),
            digits(row.switches_per_io),
        ]);
    }
    if rows.iter().any(|(_, row)| row.unnoticed_ns > 0) {
        let cells = rows.iter().map(|(_, row)| time(row.unnoticed_ns));
        table.column(("unnoticed", Align::Right), cells);
    }
    table
}

/// Of how often something happened; a dash where it did not.
fn number(times: u64) -> String {
    if times == 0 { "-".to_owned() } else { count(approximate(times)) }
}

fn share(percent: f64) -> String {
    digits(percent) + "%"
}

impl MmcRow {
    fn status_of_write(&self) -> String {
        self.status_per_write.map_or_else(|| "-".to_owned(), digits)
    }

    /// Those of a single run, in the manner of fio.
    fn lines(&self) -> String {
        let mut commands = String::new();
        for (command, sent) in &self.commands {
            write!(commands, "{command}={}, ", count(approximate(*sent)))
                .expect("a string takes everything");
        }
        let unnoticed = match self.unnoticed_ns {
            0 => String::new(),
            ns => format!(", unnoticed={}", time(ns)),
        };
        if self.queue_status > 0 {
            write!(commands, "{QUEUE_STATUS}={}, ", number(self.queue_status))
                .expect("a string takes everything");
        }
        let line = |name, writes| match writes {
            0 => String::new(),
            _ => format!("  {name:13}: {writes}\n"),
        };
        let lost = line("lost writes", self.lost_writes) + &line("in doubt", self.doubtful_writes);
        let pair = |shares: Shares| share(shares.inside) + "/" + &share(shares.outside);
        format!(
            "\nMMC host:\n  \
               commands     : {commands}CMD13/write={}\n  \
               bus          : busy={}, gap={}{unnoticed}\n  \
               bus busy/idle: map={}, unmap={}\n  \
               each I/O     : wake={}, awaited={}, ctx={}\n{lost}",
            self.status_of_write(),
            share(self.bus_busy_percent),
            time(self.mean_bus_gap_ns),
            pair(self.map_percent),
            pair(self.unmap_percent),
            digits(self.wakeups_per_io),
            digits(self.awaited_wakeups_per_io),
            digits(self.switches_per_io),
        )
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use blockyard_sim::why::Transfer;
    use serde_json::Value;

    use super::*;

    /// A host that sent CMD18 so often, and the others for each of so many writes.
    pub(crate) fn row(reads: u64, writes: u64) -> MmcRow {
        let mut commands = [0; 64];
        commands[18] = reads;
        (commands[13], commands[25]) = (writes, writes);
        let beside = |inside_percent, outside_percent| Beside { inside_percent, outside_percent };
        MmcRow::from(HostFigures {
            commands,
            queue_status: 0,
            status_per_write: (writes > 0).then_some(1.0),
            lost_writes: 0,
            doubtful_writes: 0,
            bus_busy_percent: 53.21,
            mean_bus_gap_ns: 18_853,
            unnoticed_ns: 0,
            absent_percent: 0.0,
            memory_percent: 0.0,
            map: beside(2.49, 0.0),
            unmap: beside(0.0, 11.23),
            wakeups_per_io: 3.96,
            awaited_wakeups_per_io: 1.98,
            switches_per_io: 0.97,
            transfer: Transfer { work_ns: 43e3, idle_ns: 37e3, ..Transfer::default() },
        })
    }

    #[test]
    fn designs_are_set_side_by_side() {
        let (some, others) = (row(0, 81_263), row(7, 0));
        let rows = [(Some("mmc-blkmq"), &some), (Some("b"), &others)];
        let expected = "
What the bus carried, by number of the command:
design     CMD13  CMD18  CMD25  CMD13/write
mmc-blkmq  81.3k      -  81.3k         1.00
b              -      7      -            -

What the host did (bus: a transaction is on it; busy % and gap above count a busy card too):
design     bus %  bus gap  map in  map out  unmap in  unmap out  awaited  ctx/I/O
mmc-blkmq   53.2   18.9us   2.49%    0.00%     0.00%      11.2%     1.98     0.97
b           53.2   18.9us   2.49%    0.00%     0.00%      11.2%     1.98     0.97
";
        assert_eq!(text(rows.into_iter()), expected);
        let read_only = text([(Some("b"), &others)].into_iter());
        assert!(!read_only.contains("write"), "{read_only}");
        assert_eq!(text([].into_iter()), "");
    }

    #[test]
    fn many_commands_are_told_below_each_other() {
        let all = MmcRow {
            commands: (0..20).map(|number| (Command(number), 99_999)).collect(),
            ..row(1, 1)
        };
        let text = text([(Some("mq-deadline-2017-patched"), &all)].into_iter());
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
  bus          : busy=53.2%, gap=18.9us
  bus busy/idle: map=2.49%/0.00%, unmap=0.00%/11.2%
  each I/O     : wake=3.96, awaited=1.98, ctx=0.97
";
        assert_eq!(text([(None, &row(7, 1200))].into_iter()), expected);
    }

    #[test]
    fn what_lost_interrupts_hid_is_told_only_where_there_were_any() {
        let (good, lossy) = (row(7, 0), MmcRow { unnoticed_ns: 10_000_000_000, ..row(7, 0) });
        let both = text([(Some("a"), &good), (Some("b"), &lossy)].into_iter());
        let ends: Vec<_> = both.lines().filter_map(|line| line.split_whitespace().last()).collect();
        assert_eq!(ends[ends.len() - 3..], ["unnoticed", "0ns", "10.0s"], "{both}");
        let alone = text([(None, &lossy)].into_iter());
        assert!(alone.contains("gap=18.9us, unnoticed=10.0s\n"), "{alone}");
        let none = text([(None, &good)].into_iter()) + &text([(Some("a"), &good)].into_iter());
        assert!(!none.contains("unnoticed"), "{none}");
    }

    #[test]
    fn questions_after_a_queue_and_writes_that_were_lost_are_told_where_there_are_any() {
        let plain = row(0, 1200);
        let queue = MmcRow {
            queue_status: 18,
            status_per_write: Some(0.0),
            lost_writes: 3,
            doubtful_writes: 1,
            ..plain.clone()
        };
        let rows = [(Some("mmc-blkmq"), &plain), (Some("cqe"), &queue)];
        let expected = "
What the bus carried, by number of the command:
design     CMD13  CMD25  CMD13/QSR  CMD13/write  lost writes  in doubt
mmc-blkmq  1.20k  1.20k          -         1.00            -         -
cqe        1.20k  1.20k         18         0.00            3         1
";
        let told = text(rows.into_iter());
        assert!(told.starts_with(expected), "{told}");
        let alone = text([(None, &queue)].into_iter());
        assert!(alone.contains("CMD25=1.20k, CMD13/QSR=18, CMD13/write=0.00\n"), "{alone}");
        assert!(alone.ends_with("\n  lost writes  : 3\n  in doubt     : 1\n"), "{alone}");
    }

    #[test]
    fn programs_get_commands_by_name_and_null_where_nothing_was_written() {
        let object: Value = serde_json::to_value(row(7, 0)).unwrap();
        assert_eq!(object["commands"], serde_json::json!({ "CMD18": 7 }));
        assert_eq!(object["status_per_write"], Value::Null);
        let keys: Vec<_> = object.as_object().unwrap().keys().map(String::as_str).collect();
        let documented = [
            "awaited_wakeups_per_io",
            "bus_busy_percent",
            "commands",
            "doubtful_writes",
            "lost_writes",
            "map_percent",
            "mean_bus_gap_ns",
            "memory_percent",
            "queue_status",
            "status_per_write",
            "switches_per_io",
            "transfer_ns",
            "unmap_percent",
            "unnoticed_ns",
            "wakeups_per_io",
        ];
        assert_eq!(keys, documented);
    }
}
