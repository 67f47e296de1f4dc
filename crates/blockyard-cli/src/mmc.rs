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
    /// Of CMD13; `None` where nothing was written.
    status_per_write: Option<f64>,
    bus_busy_percent: f64,
    mean_bus_gap_ns: u64,
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
            status_per_write: figures.status_per_write,
            bus_busy_percent: figures.bus_busy_percent,
            mean_bus_gap_ns: figures.mean_bus_gap_ns,
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

/// Commands side by side: with more of them a line gets too long.
const BESIDE: usize = 8;

/// A column for each command that was sent under any design; several tables where there are many.
fn commands(rows: &[(&str, &MmcRow)]) -> String {
    let sent: BTreeSet<_> = rows.iter().flat_map(|(_, row)| row.commands.keys().copied()).collect();
    let sent: Vec<_> = sent.into_iter().collect();
    let mut groups: Vec<_> = sent.chunks(BESIDE).map(|group| commands_of(rows, group)).collect();
    if rows.iter().any(|(_, row)| row.status_per_write.is_some())
        && let Some(last) = groups.last_mut()
    {
        last.column(
            ("CMD13/write", Align::Right),
            rows.iter().map(|(_, row)| row.status_of_write()),
        );
    }
    groups.iter().map(Table::to_string).collect()
}

fn commands_of(rows: &[(&str, &MmcRow)], sent: &[Command]) -> Table {
    let names: Vec<_> = sent.iter().map(Command::to_string).collect();
    let numbers = names.iter().map(|name| (name.as_str(), Align::Right));
    let columns: Vec<_> = [("design", Align::Left)].into_iter().chain(numbers).collect();
    let mut table = Table::new(&columns);
    for (name, row) in rows {
        let count = |sent: &u64| count(approximate(*sent));
        let cell = |command| row.commands.get(command).map_or_else(|| "-".to_owned(), count);
        table.row([(*name).to_owned()].into_iter().chain(sent.iter().map(cell)));
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
    table
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
        let pair = |shares: Shares| share(shares.inside) + "/" + &share(shares.outside);
        format!(
            "\nMMC host:\n  \
               commands     : {commands}CMD13/write={}\n  \
               bus          : busy={}, gap={}\n  \
               bus busy/idle: map={}, unmap={}\n  \
               each I/O     : wake={}, awaited={}, ctx={}\n",
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
            status_per_write: (writes > 0).then_some(1.0),
            bus_busy_percent: 53.21,
            mean_bus_gap_ns: 18_853,
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
    fn programs_get_commands_by_name_and_null_where_nothing_was_written() {
        let object: Value = serde_json::to_value(row(7, 0)).unwrap();
        assert_eq!(object["commands"], serde_json::json!({ "CMD18": 7 }));
        assert_eq!(object["status_per_write"], Value::Null);
        let keys: Vec<_> = object.as_object().unwrap().keys().map(String::as_str).collect();
        let documented = [
            "awaited_wakeups_per_io",
            "bus_busy_percent",
            "commands",
            "map_percent",
            "mean_bus_gap_ns",
            "memory_percent",
            "status_per_write",
            "switches_per_io",
            "transfer_ns",
            "unmap_percent",
            "wakeups_per_io",
        ];
        assert_eq!(keys, documented);
    }
}
