//! `reproduce`: simulated figures compared with those of published experiments.

use std::io::Write;

use blockyard_answer::reproduce;
use blockyard_answer::reproduce::{
    Against, Basis, Cell, Experiment, Range, Reproduction, Table as Published, Tolerance, Variant,
    Verdict, run, runs,
};
use blockyard_text::number::digits;
use clap::ValueEnum;

use crate::cli::{self, OutputFormat, Reproduce};
use crate::message::Failure;
use crate::progress::tally;
use crate::render::json;
use crate::render::table::{Align, Table};

/// The maximum number of workloads in a table with a line for each cell. Longer tables have a
/// column for each design.
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
fitted: the device's profile was fitted to the published figure; outcome: it was not; blind: it was published
after the change, and nobody had compared it when the prediction was made; repaired: the same, but the model was
changed since, so ours is no prediction; unpublished: there is nothing to compare ours with, which is today's; what
was predicted there is in PREDICTIONS.md. A change is relative to the first design; a range, in brackets, covers
all readings. before and after are published; predicted is kept as it was, ours is today's. hit: within the
tolerance; in range: the published figure lies between the figures of two readings that are older than the
outcome; miss: neither. met on: the device, or the number of the reading, that comes closest to the published
figure, if it is within the tolerance: so a miss can be met on a reading added since, or on the one at the end of
the range.
";

fn text(experiment: &Experiment, answer: &Reproduction) -> String {
    let mut text = format!("{}, seed {}\n{}\n", answer.source, answer.seed, answer.about);
    let mut cells = answer.cells.as_slice();
    for table in &experiment.tables {
        let of_table;
        (of_table, cells) = cells.split_at(table.workloads.len() * table.designs.len());
        let laid_out = if is_long(table) { grid } else { list };
        text += &format!("\n{}, on {}, {}:\n\n", table.title, table.device, table.unit_name());
        text += &laid_out(table, of_table).to_string();
        text += &outcomes(table, of_table);
    }
    text + LEGEND
}

const fn is_long(table: &Published) -> bool {
    table.workloads.len() > LONG
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
        line.extend(counters(table, cell));
        line.push(cell.basis.name().to_owned());
        lines.row(line);
    }
    lines
}

/// Returns the outcomes of a table, design by design, with their predictions, and how many of them
/// agree.
fn outcomes(table: &Published, cells: &[Cell]) -> String {
    let mut text = String::new();
    for design in table.designs {
        let of_design = cells.iter().filter(|it| it.design == *design && it.basis.is_after());
        let of_design: Vec<_> = of_design.collect();
        if of_design.is_empty() {
            continue;
        }
        text += &format!(
            "\nOutcome of {design}: {} predictions and {} of today's figures {}{}.\n",
            hits(&of_design, |cell| cell.predicted_verdict),
            hits(&of_design, |cell| cell.verdict),
            tolerance(table),
            by_direction(table, &of_design),
        );
        if !table.variants.is_empty() {
            text += &met(table, &of_design);
        }
        text.push('\n');
        text += &outcome(table, &of_design).to_string();
    }
    if !text.is_empty() {
        text += &variants(table);
    }
    text
}

/// The hits among the verdicts that there are, such as `3 of 4`.
fn hits(of_design: &[&Cell], verdict: impl Fn(&Cell) -> Option<Verdict>) -> String {
    let verdicts: Vec<_> = of_design.iter().filter_map(|cell| verdict(cell)).collect();
    let hits = verdicts.iter().filter(|it| **it == Verdict::Hit).count();
    format!("{hits} of {}", verdicts.len())
}

/// Returns today's hits of reads and of writes, such as `: reads 0 of 39, writes 20 of 39`, if
/// there are both.
fn by_direction(table: &Published, cells: &[&Cell]) -> String {
    let [reads, writes] = ["read", "write"].map(|direction| {
        let moves = |cell: &&&Cell| direction_of(table, cell) == Some(direction);
        let of_direction: Vec<_> = cells.iter().filter(moves).copied().collect();
        (!of_direction.is_empty()).then(|| hits(&of_direction, |cell| cell.verdict))
    });
    match (reads, writes) {
        (Some(reads), Some(writes)) => format!(": reads {reads}, writes {writes}"),
        _ => String::new(),
    }
}

/// Returns the direction of the workload of `cell`; `None` if it moves data both ways.
fn direction_of(table: &Published, cell: &Cell) -> Option<&'static str> {
    let workload = table.workloads.iter().find(|it| it.name == cell.workload)?;
    match workload.options.iter().find_map(|option| option.strip_prefix("--rw="))? {
        "read" | "randread" => Some("read"),
        "write" | "randwrite" => Some("write"),
        _ => None,
    }
}

/// Whether the figure of `cell` on the device or variant with this name agrees with the published
/// one.
fn agrees_on(table: &Published, cell: &Cell, name: &str) -> bool {
    let ours = if name == table.device { cell.ours } else { cell.on_variants[name] };
    cell.published.is_some_and(|published| table.tolerance.agrees(ours, published))
}

/// Says how many of `cells` agree with the published figure on the device or on one of its
/// readings, how many of these only on one that was added since the outcome, and how many on the
/// one with the most; and how many more lie within the range.
fn met(table: &Published, cells: &[&Cell]) -> String {
    let variants = table.variants.iter();
    let names: Vec<_> =
        [table.device].into_iter().chain(variants.clone().map(|of| of.name)).collect();
    let added: Vec<_> = variants.filter(|of| of.since_outcome).map(|of| of.name).collect();
    let all = cells.iter().filter(|cell| cell.met_on.is_some()).count();
    let by_older = |cell: &&&Cell| {
        names.iter().any(|name| !added.contains(name) && agrees_on(table, cell, name))
    };
    let since = all - cells.iter().filter(by_older).count();
    let counts: Vec<_> = names
        .iter()
        .map(|name| cells.iter().filter(|cell| agrees_on(table, cell, name)).count())
        .collect();
    let most = counts.iter().max().copied().unwrap_or_default();
    let at = counts.iter().position(|count| *count == most).unwrap_or_default();
    let one = if at == 0 { "the device".to_owned() } else { format!("reading {at}") };
    let within = |cell: &&&Cell| cell.met_on.is_none() && cell.verdict == Some(Verdict::InRange);
    let between = cells.iter().filter(within).count();
    let added = match added.as_slice() {
        [] => String::new(),
        _ => format!(", {since} only by readings added since the outcome"),
    };
    format!(
        "Met by the device or a reading: {all}{added}; by one alone at most {most}, {one}. Between \
         readings: {between} more.\n"
    )
}

/// Returns a table with a line for each outcome. A table with a column for each design has no room
/// for its counters, so they are here.
fn outcome(table: &Published, cells: &[&Cell]) -> Table {
    let mut columns = vec![
        ("workload", Align::Left),
        ("before", Align::Right),
        ("after", Align::Right),
        ("predicted", Align::Right),
        (off_name(table), Align::Right),
        ("", Align::Left),
        ("ours", Align::Right),
        (off_name(table), Align::Right),
        ("", Align::Left),
    ];
    if !table.variants.is_empty() {
        columns.push(("met on", Align::Left));
    }
    if is_long(table) {
        columns.extend(table.counters.iter().map(|unit| (unit.name(), Align::Right)));
    }
    let mut lines = Table::new(&columns);
    cells.iter().for_each(|cell| lines.row(outcome_line(table, cell)));
    lines
}

/// Formats the line of an outcome.
fn outcome_line(table: &Published, cell: &Cell) -> Vec<String> {
    let published = cell.published.expect("an outcome is published");
    let range = |Range { ours, least, most }| match least == most {
        true => figure(table, ours),
        false => {
            format!("{} [{}, {}]", figure(table, ours), figure(table, least), figure(table, most))
        }
    };
    let mut line = vec![
        cell.workload.clone(),
        or_dash(cell.published_before.map(|it| figure(table, it))),
        figure(table, published),
        or_dash(cell.predicted.map(range)),
        or_dash(cell.predicted.map(|it| off(table, published, it.ours))),
        verdict_name(cell.predicted_verdict),
        figure(table, cell.ours),
        off(table, published, cell.ours),
        verdict_name(cell.verdict),
    ];
    if !table.variants.is_empty() {
        line.push(met_on(table, cell));
    }
    if is_long(table) {
        line.extend(counters(table, cell));
    }
    line
}

/// The name of a verdict, or a dash.
fn verdict_name(verdict: Option<Verdict>) -> String {
    or_dash(verdict.map(|it| it.name().to_owned()))
}

/// The distance of our figure from the published one, in percent of it or in points.
#[expect(clippy::float_arithmetic, reason = "for the reader only: nothing is ordered by it")]
fn off(table: &Published, published: f64, ours: f64) -> String {
    match table.against {
        Against::Nothing => percent(100.0 * (ours - published) / published),
        Against::Less(_) | Against::Gain(_) => percent(ours - published),
    }
}

/// Formats the device or the number of its variant that meets the published figure best; `-` if
/// none does.
fn met_on(table: &Published, cell: &Cell) -> String {
    let words = cell.met_on.map(|name| {
        match table.variants.iter().position(|variant| variant.name == name) {
            Some(at) => (at + 1).to_string(),
            None => "device".to_owned(),
        }
    });
    or_dash(words)
}

/// Returns the numbered variants of the device of a table.
fn variants(table: &Published) -> String {
    if table.variants.is_empty() {
        return String::new();
    }
    let line = |(at, variant): (usize, &Variant)| {
        let added = if variant.since_outcome { " (added since the outcome)" } else { "" };
        format!("  {}  {}{added}\n", at + 1, variant.name)
    };
    let lines: String = table.variants.iter().enumerate().map(line).collect();
    format!(
        "\nReadings of {}, that is, other devices that its figures from before allow:\n{lines}",
        table.device
    )
}

fn counters(table: &Published, cell: &Cell) -> impl Iterator<Item = String> {
    table.counters.iter().map(|unit| or_dash(cell.counters[unit.name()].map(digits)))
}

fn tolerance(table: &Published) -> String {
    match table.tolerance {
        Tolerance::Percent(percent) => format!("are within {percent} %"),
        Tolerance::Units(units) => {
            let points = table.against != Against::Nothing && table.unit_name().contains('%');
            format!("are within {units} {}", if points { "points" } else { table.unit_name() })
        }
        Tolerance::AtLeast => "are at least as published".to_owned(),
    }
}

fn off_name(table: &Published) -> &'static str {
    if table.against == Against::Nothing { "off %" } else { "off" }
}

/// Returns a table with a line for each workload and its designs side by side.
fn grid(table: &Published, cells: &[Cell]) -> Table {
    let (first, others) = table.designs.split_first().expect("a table should have a design");
    let is_compared =
        cells.iter().any(|cell| cell.basis != Basis::Unpublished && cell.design == *first);
    let mut columns =
        if is_compared { vec!["published", first, differs_name(table)] } else { vec![*first] };
    for design in others {
        columns.push(design);
        if table.against == Against::Nothing {
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
            if cell.design != *first && table.against == Against::Nothing {
                line.push(change(cell));
            }
        }
        lines.row(line);
    }
    lines
}

/// Formats a figure of `table` with four digits or more. A difference has a sign and one decimal.
fn figure(table: &Published, value: f64) -> String {
    if table.against != Against::Nothing {
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

/// Formats our deviation from the published figure, in percent of it. For a difference, in the
/// table's unit.
#[expect(clippy::float_arithmetic, reason = "for the reader only: nothing is ordered by it")]
fn differs(table: &Published, cell: &Cell) -> String {
    if table.against == Against::Nothing {
        return or_dash(cell.difference_percent.map(percent));
    }
    or_dash(cell.published.map(|published| figure(table, cell.ours - published)))
}

fn differs_name(table: &Published) -> &'static str {
    if table.against != Against::Nothing { "differs" } else { "differs %" }
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
    let Some(Range { ours, least, most }) = cell.ratio else { return "-".to_owned() };
    let [ours, least, most] = [ours, least, most].map(|ratio| percent(100.0 * (ratio - 1.0)));
    if least == most { ours } else { format!("{ours} [{least}, {most}]") }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use blockyard_answer::reproduce::{Published as Figure, Unit, Workload};

    use super::*;

    fn table(against: Against) -> Published {
        let basis = Basis::Outcome;
        let predicted = None;
        let figure = Figure { workload: "read", design: "a", figure: 100.0, basis, predicted };
        Published {
            title: "Rates".to_owned(),
            device: "null",
            variants: &[],
            workloads: vec![Workload { name: "read".to_owned(), options: Vec::new() }],
            designs: &["a", "b"],
            against,
            unit: Unit::KibPerS,
            tolerance: Tolerance::Percent(5.0),
            before: &[],
            published: vec![figure],
            counters: &[Unit::IosPerCommand],
        }
    }

    fn cell(
        table: &Published,
        design: &'static str,
        ours: f64,
        published: Option<f64>,
        ratio: Option<Range>,
    ) -> Cell {
        Cell {
            table: table.title.clone(),
            device: table.device,
            workload: table.workloads[0].name.clone(),
            design,
            less: None,
            gain_over: None,
            unit: table.unit_name(),
            published,
            published_before: None,
            predicted: None,
            predicted_verdict: None,
            ours,
            verdict: None,
            met_on: None,
            tolerance: table.tolerance,
            difference_percent: published.map(|_| -2.0),
            ratio,
            basis: published.map_or(Basis::Unpublished, |_| Basis::Outcome),
            counters: [(Unit::IosPerCommand.name(), Some(2.0))].into(),
            on_variants: BTreeMap::new(),
        }
    }

    fn cells(table: &Published) -> [Cell; 2] {
        let ratio = Range { ours: 1.5, least: 1.0, most: 1.75 };
        [cell(table, "a", 98.0, Some(100.0), None), cell(table, "b", 147.0, None, Some(ratio))]
    }

    #[test]
    fn a_list_has_a_line_for_each_design() {
        let table = table(Against::Nothing);
        let cells = cells(&table);
        assert_eq!(
            list(&table, &cells).to_string(),
            "workload  design  published   ours  differs %            change %  I/O/cmd  basis\n\
             read      a           100.0  98.00       -2.0                   -     2.00  outcome\n\
             read      b               -  147.0          -  +50.0 [0.0, +75.0]     2.00  unpublished\n"
        );
    }

    #[test]
    fn a_grid_has_a_column_for_each_design() {
        let table = table(Against::Nothing);
        let cells = cells(&table);
        assert_eq!(
            grid(&table, &cells).to_string(),
            "workload  published      a  differs %      b            change %\n\
             read          100.0  98.00       -2.0  147.0  +50.0 [0.0, +75.0]\n"
        );
    }

    #[test]
    fn differences_have_signs_and_differ_by_an_amount() {
        let table = table(Against::Less("c"));
        let mut cells = cells(&table);
        cells[1].ratio = None;
        assert_eq!(
            grid(&table, &cells).to_string(),
            "workload  published      a  differs       b\n\
             read         +100.0  +98.0     -2.0  +147.0\n"
        );
    }

    #[test]
    fn an_outcome_stands_beside_what_was_predicted_and_todays_figure() {
        let table = table(Against::Nothing);
        let mut cells = cells(&table);
        let blind = &mut cells[1];
        (blind.basis, blind.published, blind.published_before) =
            (Basis::Blind, Some(140.0), Some(100.0));
        blind.predicted = Some(Range { ours: 154.0, least: 139.0, most: 160.0 });
        (blind.predicted_verdict, blind.verdict) = (Some(Verdict::InRange), Some(Verdict::Hit));
        let text = "\n\
            Outcome of b: 0 of 1 predictions and 1 of 1 of today's figures are within 5 %.\n\n\
            workload  before  after             predicted  off %             ours  off %\n\
            read       100.0  140.0  154.0 [139.0, 160.0]  +10.0  in range  147.0   +5.0  hit\n";
        assert_eq!(outcomes(&table, &cells), text);
        assert_eq!(outcomes(&table, &cells[..1]), "", "without outcomes");
    }

    const READINGS: &[Variant] = &[
        Variant { name: "old", since_outcome: false, text: "", designs: &[] },
        Variant { name: "new", since_outcome: true, text: "", designs: &[] },
    ];

    /// Of two reads and a write of 100, within 5 % each, the device has the write, the old reading
    /// one read, and the one that was added since both reads. No one has all three.
    #[test]
    fn hits_are_told_by_direction_and_by_the_age_of_readings() {
        let mut table = table(Against::Nothing);
        table.variants = READINGS;
        table.workloads = ["--rw=randread", "--rw=read", "--rw=write"]
            .map(|option| Workload { name: option.to_owned(), options: vec![option.to_owned()] })
            .into();
        let figures = [(50.0, 96.0, 104.0), (50.0, 60.0, 104.0), (100.0, 60.0, 60.0)];
        let mut cells = Vec::new();
        for (at, (ours, old, new)) in figures.into_iter().enumerate() {
            let mut cell = cell(&table, "b", ours, Some(100.0), None);
            cell.workload.clone_from(&table.workloads[at].name);
            cell.basis = Basis::Blind;
            cell.on_variants = [("old", old), ("new", new)].into();
            cell.met_on = Some(if ours == 100.0 { "null" } else { "new" });
            cell.verdict = Some(if ours == 100.0 { Verdict::Hit } else { Verdict::Miss });
            cells.push(cell);
        }
        let text = outcomes(&table, &cells);
        let head: Vec<_> = text.lines().skip(1).take(2).collect();
        assert_eq!(
            head,
            [
                "Outcome of b: 0 of 0 predictions and 1 of 3 of today's figures are within 5 %: \
                 reads 0 of 2, writes 1 of 1.",
                "Met by the device or a reading: 3, 1 only by readings added since the outcome; by one \
                 alone at most 2, reading 2. Between readings: 0 more.",
            ]
        );
        let tail = "  1  old\n  2  new (added since the outcome)\n";
        assert!(text.ends_with(tail), "{text}");
    }
}
