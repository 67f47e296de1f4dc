//! Tables of persistent memory: the parts of the time of an I/O, and its counts.

use super::figures::PmemFigures;
use crate::tables::FigureTable;
use blockyard_text::number::{digits, exact_percent, nanoseconds};

/// The words above the table of times.
const PARTS: &str = "CPU time per I/O and its parts, utilisation of the memory channels:";

/// Returns the tables of `runs`, one under each design.
pub(crate) fn tables(runs: &[&PmemFigures]) -> Vec<FigureTable> {
    debug_assert!(!runs.is_empty(), "a table has a row");
    vec![parts(runs), counts(runs)]
}

fn parts(runs: &[&PmemFigures]) -> FigureTable {
    let mut table = FigureTable::new(PARTS);
    table.column("per I/O", runs, |of| nanoseconds(of.io_ns));
    table.column("path", runs, |of| exact_percent(of.percent.path));
    table.column("copy", runs, |of| exact_percent(of.percent.copy));
    table.column("readers", runs, |of| exact_percent(of.percent.tracking));
    table.column("locks", runs, |of| exact_percent(of.percent.locks));
    table.column("log", runs, |of| exact_percent(of.percent.log));
    table.column("map", runs, |of| exact_percent(of.percent.map));
    table.column("fences", runs, |of| exact_percent(of.percent.fences));
    table.column("channels", runs, |of| exact_percent(of.channels_percent));
    table
}

fn counts(runs: &[&PmemFigures]) -> FigureTable {
    let mut table = FigureTable::new("Counts per I/O:");
    table.column("fences", runs, |of| digits(of.fences));
    table.column("lines written back", runs, |of| digits(of.write_backs));
    table.column("lines fetched", runs, |of| digits(of.transfers));
    table.column("scans", runs, |of| digits(of.scans));
    table.column("lock wait", runs, |of| nanoseconds(of.lock_wait_ns));
    table
}
