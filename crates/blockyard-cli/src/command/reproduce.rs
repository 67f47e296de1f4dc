//! `reproduce`: our figures beside those of published experiments.

use std::io::Write;

use blockyard_sim::answer::number::digits;
use blockyard_sim::reproduce::{
    self, Cell, Experiment, Ratio, Reproduction, Table as Published, run, runs,
};
use clap::ValueEnum;

use crate::cli::{self, OutputFormat, Reproduce};
use crate::message::Failure;
use crate::progress::tally;
use crate::render::json;
use crate::render::table::{Align, Table};

/// The maximum number of workloads in a table with a line for each cell. Longer tables have a column for each design.
const LONG: usize = 16;

pub(super) fn reproduce(args: &Reproduce, out: &mut dyn Write) -> Result<(), Failure> {
    let Some(asked) = args.experiment else { return args.answer.deliver(&listed(), out) };
    let experiment = named(asked);
    let line = tally("runs", runs(&experiment));
    let answer = run(&experiment, args.answer.seed, &|| line.bar().inc(1))?;
    drop(line);
    let text = match args.output_format {
        OutputFormat::Normal => text(&experiment, &answer),
        OutputFormat::Json => json(&answer),
    };
    args.answer.deliver(&text, out)
}

/// Returns the experiment that was `asked` for.
fn named(asked: cli::Experiment) -> Experiment {
    let value = asked.to_possible_value().expect("every experiment should have a name");
    let mut all = reproduce::experiments().into_iter();
    all.find(|experiment| experiment.name == value.get_name())
        .expect("a named experiment should exist")
}

/// Lists the experiments, one per line.
fn listed() -> String {
    let mut table = Table::of_words(&["experiment", "what it is"]);
    for experiment in cli::Experiment::value_variants() {
        if let Some(value) = experiment.to_possible_value() {
            let help = value.get_help().map(ToString::to_string).unwrap_or_default();
            table.row([value.get_name().to_owned(), help]);
        }
    }
    table.to_string()
}

const LEGEND: &str = "
fitted: the device's profile was fitted to the published figure; outcome: it was not; prediction: no
measurement of this design is among the published figures used here. A change is relative to the first
design; its range, in brackets, covers what the published figures leave open about the device.
";

fn text(experiment: &Experiment, answer: &Reproduction) -> String {
    let mut text = format!("{}, seed {}\n{}\n", answer.source, answer.seed, answer.about);
    let mut cells = answer.cells.as_slice();
    for table in &experiment.tables {
        let of_table;
        (of_table, cells) = cells.split_at(table.workloads.len() * table.designs.len());
        let laid_out = if table.workloads.len() > LONG { grid } else { list };
        text += &format!("\n{}, on {}, {}:\n\n", table.title, table.device, table.unit.name());
        text += &laid_out(table, of_table).to_string();
    }
    text + LEGEND
}

/// Returns a table with a line for each cell.
fn list(table: &Published, cells: &[Cell]) -> Table {
    let mut columns = vec![
        ("workload", Align::Left),
        ("design", Align::Left),
        ("published", Align::Right),
        ("ours", Align::Right),
        (differs_name(table), Align::Right),
        ("change %", Align::Right),
    ];
    columns.extend(table.counters.iter().map(|unit| (unit.name(), Align::Right)));
    columns.push(("basis", Align::Left));
    let mut lines = Table::new(&columns);
    for cell in cells {
        let mut line = vec![
            cell.workload.clone(),
            cell.design.to_owned(),
            published(table, cell),
            figure(table, cell.ours),
            differs(table, cell),
            change(cell),
        ];
        line.extend(
            table.counters.iter().map(|unit| or_dash(cell.counters[unit.name()].map(digits))),
        );
        line.push(cell.basis.name().to_owned());
        lines.row(line);
    }
    lines
}

/// Returns a table with a line for each workload and its designs side by side.
fn grid(table: &Published, cells: &[Cell]) -> Table {
    let (first, others) = table.designs.split_first().expect("a table should have a design");
    let is_compared = !table.published.is_empty();
    let mut columns =
        if is_compared { vec!["published", first, differs_name(table)] } else { vec![*first] };
    for design in others {
        columns.push(design);
        if table.less.is_none() {
            columns.push("change %");
        }
    }
    let mut lines = Table::of_numbers("workload", columns);
    for of_workload in cells.chunk_by(|a, b| a.workload == b.workload) {
        let mut line = vec![of_workload[0].workload.clone()];
        for cell in of_workload {
            let compares = is_compared && cell.design == *first;
            if compares {
                line.push(published(table, cell));
            }
            line.push(figure(table, cell.ours));
            if compares {
                line.push(differs(table, cell));
            }
            if cell.design != *first && table.less.is_none() {
                line.push(change(cell));
            }
        }
        lines.row(line);
    }
    lines
}

/// Formats a figure of `table` with four digits or more. A difference has a sign and one decimal.
fn figure(table: &Published, value: f64) -> String {
    if table.less.is_some() {
        return percent(value);
    }
    let decimals = match value.abs() {
        _ if !value.is_finite() => return "-".to_owned(),
        size if size < 9.9995 => 3,
        size if size < 99.995 => 2,
        size if size < 999.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

fn published(table: &Published, cell: &Cell) -> String {
    or_dash(cell.published.map(|published| figure(table, published)))
}

/// Formats our deviation from the published figure, in percent of it. For a difference, in the table's unit.
#[expect(clippy::float_arithmetic, reason = "for the reader only: nothing is ordered by it")]
fn differs(table: &Published, cell: &Cell) -> String {
    if table.less.is_none() {
        return or_dash(cell.difference_percent.map(percent));
    }
    or_dash(cell.published.map(|published| figure(table, cell.ours - published)))
}

const fn differs_name(table: &Published) -> &'static str {
    if table.less.is_some() { "differs" } else { "differs %" }
}

/// Formats a number with a sign and one decimal.
fn percent(value: f64) -> String {
    let text = format!("{value:+.1}");
    if matches!(text.as_str(), "+0.0" | "-0.0") { "0.0".to_owned() } else { text }
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

/// Formats the change by the cell's design, with the range over the device's variants.
#[expect(clippy::float_arithmetic, reason = "for the reader only: nothing is ordered by it")]
fn change(cell: &Cell) -> String {
    let Some(Ratio { ours, least, most }) = cell.ratio else { return "-".to_owned() };
    let [ours, least, most] = [ours, least, most].map(|ratio| percent(100.0 * (ratio - 1.0)));
    if least == most { ours } else { format!("{ours} [{least}, {most}]") }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use blockyard_sim::reproduce::{Basis, Published as Figure, Unit, Workload};

    use super::*;

    fn table(less: Option<&'static str>) -> Published {
        let figure = Figure { workload: "read", design: "a", figure: 100.0, basis: Basis::Outcome };
        Published {
            title: "Rates".to_owned(),
            device: "null",
            variants: &[],
            workloads: vec![Workload { name: "read".to_owned(), options: Vec::new() }],
            designs: &["a", "b"],
            less,
            unit: Unit::KibPerS,
            published: vec![figure],
            counters: &[Unit::IosPerCommand],
        }
    }

    fn cells(table: &Published) -> [Cell; 2] {
        let ratio = Ratio { ours: 1.5, least: 1.0, most: 1.75 };
        let cell = |design, ours, published: Option<f64>, ratio| Cell {
            table: table.title.clone(),
            device: table.device,
            workload: table.workloads[0].name.clone(),
            design,
            less: table.less,
            unit: table.unit,
            published,
            ours,
            difference_percent: published.map(|_| -2.0),
            ratio,
            basis: published.map_or(Basis::Prediction, |_| Basis::Outcome),
            counters: [(Unit::IosPerCommand.name(), Some(2.0))].into(),
            on_variants: BTreeMap::new(),
        };
        [cell("a", 98.0, Some(100.0), None), cell("b", 147.0, None, Some(ratio))]
    }

    #[test]
    fn a_list_has_a_line_for_each_design() {
        let table = table(None);
        let cells = cells(&table);
        assert_eq!(
            list(&table, &cells).to_string(),
            "workload  design  published   ours  differs %            change %  I/O/cmd  basis\n\
             read      a           100.0  98.00       -2.0                   -     2.00  outcome\n\
             read      b               -  147.0          -  +50.0 [0.0, +75.0]     2.00  prediction\n"
        );
    }

    #[test]
    fn a_grid_has_a_column_for_each_design() {
        let table = table(None);
        let cells = cells(&table);
        assert_eq!(
            grid(&table, &cells).to_string(),
            "workload  published      a  differs %      b            change %\n\
             read          100.0  98.00       -2.0  147.0  +50.0 [0.0, +75.0]\n"
        );
    }

    #[test]
    fn differences_have_signs_and_differ_by_an_amount() {
        let table = table(Some("c"));
        let mut cells = cells(&table);
        cells[1].ratio = None;
        assert_eq!(
            grid(&table, &cells).to_string(),
            "workload  published      a  differs       b\n\
             read         +100.0  +98.0     -2.0  +147.0\n"
        );
    }
}
