//! Tables of drives: the front end and the medium.

use super::figures::DriveFigures;
use crate::tables::FigureTable;
use blockyard_text::number::{approximate, count, digits, exact_percent, time};

/// The words above the table of the medium.
const MEDIUM: &str = "The medium (sums over the run; docs/devices explains the counters):";

/// Returns the tables of `drives`, at least one, each under a design.
pub(crate) fn tables(drives: &[&DriveFigures]) -> Vec<FigureTable> {
    debug_assert!(!drives.is_empty(), "a table has a row");
    let mut front = FigureTable::new("The drive, and how much of it was in use:");
    front.column("commands per doorbell", drives, |of| digits(of.commands_per_doorbell));
    front.column("interrupts per command", drives, |of| digits(of.interrupts_per_command));
    front.column("controller", drives, |of| exact_percent(of.controller_percent));
    front.column("link", drives, |of| exact_percent(of.link_percent));
    front.column("medium", drives, |of| exact_percent(of.medium_percent));
    let mut medium = FigureTable::new(MEDIUM);
    for (at, (name, _)) in drives[0].medium.iter().enumerate() {
        medium.column(&heading(name), drives, |of| shown(name, of.medium[at].1));
    }
    vec![front, medium]
}

/// Returns the heading of a counter.
fn heading(name: &str) -> String {
    name.trim_end_matches("_ns").trim_end_matches("_percent").replace('_', " ")
}

/// Returns the amount of a counter, as its name says.
fn shown(name: &str, amount: u64) -> String {
    match name {
        _ if name.ends_with("_ns") => time(amount),
        _ if name.ends_with("_percent") => format!("{amount} %"),
        _ => count(approximate(amount)),
    }
}
