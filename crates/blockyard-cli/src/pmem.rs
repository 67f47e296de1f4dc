//! What an I/O on persistent memory spends its time on, in answers.

use blockyard_sim::device::pmem::Part;
use blockyard_sim::why::PmemFigures;
use serde::Serialize;

use crate::human::{digits, nanoseconds};
use crate::table::{Align, Table};

/// The figures of one run; [`PmemFigures`] says what each is.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PmemRow {
    io_ns: f64,
    percent: Shares,
    fences: f64,
    write_backs: f64,
    scans: f64,
    transfers: f64,
    lock_wait_ns: f64,
    channels_percent: f64,
}

/// They add up to the whole.
#[derive(Clone, Copy, Debug, Serialize)]
struct Shares {
    path: f64,
    copy: f64,
    tracking: f64,
    locks: f64,
    log: f64,
    map: f64,
    fences: f64,
}

impl From<PmemFigures> for PmemRow {
    fn from(figures: PmemFigures) -> Self {
        Self {
            io_ns: figures.io_ns,
            percent: Shares {
                path: figures.path_percent(),
                copy: figures.percent(Part::Copy),
                tracking: figures.percent(Part::Tracking),
                locks: figures.percent(Part::Locks),
                log: figures.percent(Part::Log),
                map: figures.percent(Part::Map),
                fences: figures.percent(Part::Fences),
            },
            fences: figures.fences,
            write_backs: figures.write_backs,
            scans: figures.scans,
            transfers: figures.transfers,
            lock_wait_ns: figures.lock_wait_ns,
            channels_percent: figures.channels_percent,
        }
    }
}

const COLUMNS: &[(&str, Align)] = &[
    ("design", Align::Left),
    ("each I/O", Align::Right),
    ("path", Align::Right),
    ("copy", Align::Right),
    ("readers", Align::Right),
    ("locks", Align::Right),
    ("log", Align::Right),
    ("map", Align::Right),
    ("fences", Align::Right),
    ("channels", Align::Right),
];
const COUNTS: &[(&str, Align)] = &[
    ("design", Align::Left),
    ("fences", Align::Right),
    ("written back", Align::Right),
    ("fetched", Align::Right),
    ("looks", Align::Right),
    ("lock wait", Align::Right),
];

/// For people, those of each design, or of a single run that names none; empty where there are none.
pub(crate) fn text<'a>(of: impl Iterator<Item = (Option<&'a str>, &'a PmemRow)>) -> String {
    let rows: Vec<_> = of.collect();
    if rows.is_empty() {
        return String::new();
    }
    let (mut parts, mut counts) = (Table::new(COLUMNS), Table::new(COUNTS));
    for (name, row) in rows {
        let name = name.unwrap_or("-").to_owned();
        let share = |percent: f64| format!("{}%", digits(percent));
        let of = row.percent;
        let shares = [of.path, of.copy, of.tracking, of.locks, of.log, of.map, of.fences];
        let shares = shares.into_iter().chain([row.channels_percent]).map(share);
        parts.row([name.clone(), nanoseconds(row.io_ns)].into_iter().chain(shares));
        counts.row([
            name,
            digits(row.fences),
            digits(row.write_backs),
            digits(row.transfers),
            digits(row.scans),
            nanoseconds(row.lock_wait_ns),
        ]);
    }
    format!("\nWhat a processor spends an I/O on:\n{parts}\nCounted for each I/O:\n{counts}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn designs_are_set_side_by_side() {
        let row = PmemRow {
            io_ns: 1_340.0,
            percent: Shares {
                path: 52.2,
                copy: 35.8,
                tracking: 5.6,
                locks: 0.6,
                log: 0.0,
                map: 5.97,
                fences: 0.0,
            },
            fences: 2.0,
            write_backs: 3.0,
            scans: 0.5,
            transfers: 12.34,
            lock_wait_ns: 7.4,
            channels_percent: 97.6,
        };
        let expected = "
What a processor spends an I/O on:
design  each I/O   path   copy  readers  locks    log    map  fences  channels
btt       1.34us  52.2%  35.8%    5.60%  0.60%  0.00%  5.97%   0.00%     97.6%

Counted for each I/O:
design  fences  written back  fetched  looks  lock wait
btt       2.00          3.00     12.3   0.50        7ns
";
        assert_eq!(text([(Some("btt"), &row)].into_iter()), expected);
        assert_eq!(text([].into_iter()), "");
        let object = serde_json::to_value(&row).expect("it is plain");
        let keys: Vec<_> = object.as_object().expect("an object").keys().cloned().collect();
        let documented = [
            "channels_percent",
            "fences",
            "io_ns",
            "lock_wait_ns",
            "percent",
            "scans",
            "transfers",
            "write_backs",
        ];
        assert_eq!(keys, documented);
    }
}
