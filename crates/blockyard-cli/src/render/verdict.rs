//! The table of each job and direction under each design.

use blockyard_answer::{Cell as Figures, Unsuited, Verdict};
use blockyard_text::number::{approximate, count, digits, mebibytes, time};

use super::colour;
use super::table::{Cell, Table};

/// A column: its name, whether it waits for room, and its cell.
type Column = (&'static str, bool, fn(&Figures) -> String);

const COLUMNS: [Column; 9] = [
    ("I/Os", true, |of| count(approximate(of.ios))),
    ("IOPS", false, |of| count(of.iops)),
    ("MiB/s", false, rate),
    ("mean", true, |of| time(of.mean_ns)),
    ("p50", false, |of| time(of.p50_ns)),
    ("p99", false, |of| time(of.p99_ns)),
    ("p99.9", true, |of| time(of.p99_9_ns)),
    ("max", false, |of| time(of.max_ns)),
    ("ratio", false, |of| digits(of.ratio.unwrap_or(f64::NAN))),
];

/// The bandwidth of a cell; syncs move no bytes.
pub(crate) fn rate(of: &Figures) -> String {
    if of.ios > 0 && of.bytes_per_s == 0 { "-".to_owned() } else { mebibytes(of.bytes_per_s) }
}

/// Returns the table in lines of at most `width`. It has all columns if they fit.
pub(crate) fn table(verdict: &Verdict, unsuited: &[Unsuited], width: usize) -> String {
    let all = with(verdict, unsuited, &COLUMNS);
    if all.full_width() <= width {
        return format!("{all:width$}");
    }
    let most: Vec<_> = COLUMNS.into_iter().filter(|(_, waits, _)| !waits).collect();
    format!("{:width$}", with(verdict, unsuited, &most))
}

fn with(verdict: &Verdict, unsuited: &[Unsuited], columns: &[Column]) -> Table {
    let alone = verdict.rows.len() == 1;
    let first = if alone { "design" } else { "" };
    let mut table = Table::of_numbers(first, columns.iter().map(|(name, ..)| *name));
    for row in &verdict.rows {
        if !alone {
            table.heading(format!("{}, {}", row.job, row.direction));
        }
        for of in &row.designs {
            let mut cells: Vec<Cell> = columns.iter().map(|(.., cell)| cell(of).into()).collect();
            if let Some(ratio) = cells.last_mut().filter(|_| of.ratio.is_some()) {
                ratio.style = colour::of(of.iops, row.designs.iter().map(|of| of.iops));
            }
            let indent = if alone { "" } else { "  " };
            let name = Cell::from(format!("{indent}{}", of.design));
            table.row([name].into_iter().chain(cells));
        }
    }
    for Unsuited { design, why } in unsuited {
        table.words(design.clone(), format!("n/a: {why}"));
    }
    table
}
