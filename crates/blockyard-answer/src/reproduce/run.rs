//! The run of an experiment: each simulation once, and its figures beside the published ones.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    Against, Basis, Experiment, Published, Range, Table, Tolerance, Unit, Variant, Verdict,
};
use crate::Figures;
use crate::parallel::each;
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::{Simulation, SimulationError};

/// Our figures beside the published ones.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reproduction {
    /// Name of the experiment.
    pub(crate) experiment: &'static str,
    /// The publication.
    pub source: &'static str,
    /// How it is run here, for the reader.
    pub about: &'static str,
    /// The seed of all random draws.
    pub seed: u64,
    /// The figures by table, workload and design.
    pub cells: Vec<Cell>,
}

/// The figure of a workload under a design.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// Title of its table.
    pub table: String,
    /// The device of its table.
    pub device: &'static str,
    /// Name of its workload.
    pub workload: String,
    /// Its design.
    pub design: &'static str,
    /// The design whose figure is subtracted; `None` if the figure is not a difference.
    pub less: Option<&'static str>,
    /// The design over which the figure is the gain in percent; `None` if it is no gain.
    pub gain_over: Option<&'static str>,
    /// The unit of the figure.
    pub unit: &'static str,
    /// The published figure, if there is one.
    pub published: Option<f64>,
    /// The figure that was published for the design before the change, if the published figure is
    /// an outcome of it.
    pub published_before: Option<f64>,
    /// What the model predicted before the published figure was known.
    pub predicted: Option<Range>,
    /// What became of that prediction.
    pub predicted_verdict: Option<Verdict>,
    /// Our figure today.
    pub ours: f64,
    /// How our figure of today compares with the published one, with the readings that are older
    /// than the outcome.
    pub verdict: Option<Verdict>,
    /// The device, or that of its variants, whose figure comes closest to the published one, if one
    /// agrees with it.
    pub met_on: Option<&'static str>,
    /// The tolerance of both verdicts.
    pub tolerance: Tolerance,
    /// Its difference from the published figure in percent of that; `None` if that is 0 or not
    /// published.
    pub difference_percent: Option<f64>,
    /// Relative to the table's first design, over the device and its variants. `None` for that
    /// design itself, and if figures are differences.
    pub ratio: Option<Range>,
    /// The relation of the model to the published figure.
    pub basis: Basis,
    /// The counters of the table, by the names of their units; `None` where a run has no such
    /// figure.
    pub counters: BTreeMap<&'static str, Option<f64>>,
    /// The figure on each variant of the device.
    pub on_variants: BTreeMap<&'static str, f64>,
}

/// A simulation: a profile, a workload, a design.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Run<'a> {
    device: Platform,
    options: &'a [String],
    design: &'static str,
}

/// A device, or a variant of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Platform {
    Builtin(&'static str),
    Variant(Variant),
}

impl Platform {
    /// Whether it was added when the outcome was known.
    const fn is_since_outcome(self) -> bool {
        matches!(self, Self::Variant(Variant { since_outcome: true, .. }))
    }

    /// The TOML of the design in the place of `design`, if there is one.
    fn instead_of(self, design: &str) -> Option<&'static str> {
        let Self::Variant(Variant { designs, .. }) = self else { return None };
        designs.iter().find_map(|(name, text)| (*name == design).then_some(*text))
    }
}

impl Table {
    /// Its device, then the variants.
    fn platforms(&self) -> impl Iterator<Item = Platform> + '_ {
        let variants = self.variants.iter();
        let variants = variants.copied().map(Platform::Variant);
        [Platform::Builtin(self.device)].into_iter().chain(variants)
    }

    /// Every simulation that the table needs.
    fn runs(&self) -> impl Iterator<Item = Run<'_>> {
        self.platforms().flat_map(move |device| {
            self.workloads.iter().flat_map(move |workload| {
                let designs = self.designs.iter().copied().chain(self.against.design());
                designs.map(move |design| Run { device, options: &workload.options, design })
            })
        })
    }
}

/// Returns the number of simulations that [`run`] makes for `experiment`.
#[must_use]
pub fn runs(experiment: &Experiment) -> usize {
    distinct(experiment).len()
}

/// Every simulation that `experiment` needs, once, with its index.
fn distinct(experiment: &Experiment) -> BTreeMap<Run<'_>, usize> {
    let runs: BTreeMap<_, _> =
        experiment.tables.iter().flat_map(Table::runs).map(|run| (run, 0)).collect();
    assert!(!runs.is_empty(), "an experiment has a run");
    runs.into_keys().zip(0..).collect()
}

/// Runs `experiment` on all CPUs, with all random draws from `seed`. Calls `done` after each
/// simulation. The result does not depend on the number of CPUs.
///
/// # Errors
///
/// The first [`SimulationError`].
///
/// # Panics
///
/// Panics if a table names a device or design that is not built in, or has an invalid workload; the
/// tables are built in.
pub fn run(
    experiment: &Experiment,
    seed: u64,
    done: &(dyn Fn() + Sync),
) -> Result<Reproduction, SimulationError> {
    let runs = distinct(experiment);
    let list: Vec<_> = runs.keys().collect();
    let figures = each(&list, |run| {
        let figures = simulate(run, seed);
        done();
        figures
    });
    let figures = figures.into_iter().collect::<Result<Vec<_>, _>>()?;
    let of = |run: Run<'_>| &figures[runs[&run]];
    debug_assert_eq!(figures.len(), runs.len(), "every run has figures");
    let Experiment { name, source, about, ref tables } = *experiment;
    let cells = tables.iter().flat_map(|table| cells(table, &of)).collect();
    Ok(Reproduction { experiment: name, source, about, seed, cells })
}

/// Returns the cells of `table` from the figures that `of` finds.
#[expect(clippy::float_arithmetic, reason = "for the reader: nothing is ordered by it")]
fn cells<'a>(table: &Table, of: &dyn Fn(Run<'_>) -> &'a Figures) -> Vec<Cell> {
    assert!(!table.designs.is_empty(), "a table has a design to compare with");
    let mut cells = Vec::new();
    for workload in &table.workloads {
        let options = &workload.options;
        let published = |design| {
            let is_it = |it: &&Published| it.workload == workload.name && it.design == design;
            table.published.iter().find(is_it)
        };
        for &design in table.designs {
            let figure = |device| {
                measured(table, of, Run { device, options, design })
                    .expect("every run of a table should have figures in its unit")
            };
            let compares = design != table.designs[0] && table.against == Against::Nothing;
            let ratio = |device| {
                let first = Run { device, options, design: table.designs[0] };
                measured(table, of, first).filter(|_| compares).map(|it| figure(device) / it)
            };
            let device = Platform::Builtin(table.device);
            let ours = over(table.platforms().map(figure)).expect("the device has a figure");
            let counter = |unit: &Unit| (unit.name(), unit.of(of(Run { device, options, design })));
            let names = table.variants.iter().map(|variant| variant.name);
            let of_cell = published(design);
            let is_after = of_cell.is_some_and(|it| it.basis.is_after());
            let before = table.before(design).and_then(published).filter(|_| is_after);
            let predicted = of_cell.and_then(|it| it.predicted);
            let verdict = |it: Range| of_cell.map(|of| table.tolerance.verdict(it, of.figure));
            let (less, gain_over) = match table.against {
                Against::Nothing => (None, None),
                Against::Less(other) => (Some(other), None),
                Against::Gain(other) => (None, Some(other)),
            };
            cells.push(Cell {
                table: table.title.clone(),
                device: table.device,
                workload: workload.name.clone(),
                design,
                less,
                gain_over,
                unit: table.unit_name(),
                published: of_cell.map(|it| it.figure),
                published_before: before.map(|it| it.figure),
                predicted,
                predicted_verdict: predicted.and_then(verdict),
                ours: ours.ours,
                verdict: over(table.platforms().filter(|of| !of.is_since_outcome()).map(figure))
                    .and_then(verdict),
                met_on: of_cell.and_then(|it| {
                    let figures = table.platforms().map(figure);
                    let names = [table.device].into_iter().chain(names.clone());
                    closest(names.zip(figures), table.tolerance, it.figure)
                }),
                tolerance: table.tolerance,
                difference_percent: of_cell
                    .filter(|it| it.figure != 0.0)
                    .map(|it| 100.0 * (ours.ours - it.figure) / it.figure.abs()),
                ratio: over(table.platforms().filter_map(ratio)),
                basis: of_cell.map_or(Basis::Unpublished, |it| it.basis),
                counters: table.counters.iter().map(counter).collect(),
                on_variants: names.zip(table.platforms().skip(1).map(figure)).collect(),
            });
        }
    }
    cells
}

/// The figure of a run in the unit of its table, relative to what the table is against.
#[expect(clippy::float_arithmetic, reason = "for the reader: nothing is ordered by it")]
fn measured<'a>(table: &Table, of: &dyn Fn(Run<'_>) -> &'a Figures, run: Run<'_>) -> Option<f64> {
    let figure = table.unit.of(of(run))?;
    let other = table.against.design().map(|design| table.unit.of(of(Run { design, ..run })));
    Some(match table.against {
        Against::Nothing => figure,
        Against::Less(_) => figure - other??,
        Against::Gain(_) => 100.0 * (figure / other?? - 1.0),
    })
}

/// The name of the closest of `figures` that agrees with the `published` one, the first of several.
#[expect(clippy::float_arithmetic, reason = "for the reader: nothing is ordered by it")]
fn closest<'a>(
    figures: impl Iterator<Item = (&'a str, f64)>,
    tolerance: Tolerance,
    published: f64,
) -> Option<&'a str> {
    let agreeing = figures.filter(|(_, ours)| tolerance.agrees(*ours, published));
    agreeing
        .min_by(|(_, a), (_, b)| (a - published).abs().total_cmp(&(b - published).abs()))
        .map(|(name, _)| name)
}

/// The first of `values`, which is that of the device, with their range.
fn over(mut values: impl Iterator<Item = f64>) -> Option<Range> {
    let ours = values.next()?;
    let range = Range { ours, least: ours, most: ours };
    Some(values.fold(range, |range, value| Range {
        least: range.least.min(value),
        most: range.most.max(value),
        ..range
    }))
}

fn simulate(run: &Run<'_>, seed: u64) -> Result<Figures, SimulationError> {
    let device = match run.device {
        Platform::Builtin(name) => Device::lookup(name),
        Platform::Variant(Variant { name, text, .. }) => Device::parse(name, text),
    };
    let device = device.expect("a built-in device or variant should be valid");
    let design = match run.device.instead_of(run.design) {
        Some(text) => Design::parse(run.design, text),
        None => Design::lookup(run.design),
    };
    let design = design.expect("a built-in design, or the one in its place, should be valid");
    let jobs = parse_args(run.options.iter().map(String::as_str), &NoSource)?;
    let instances = jobs.jobs.iter().map(|job| job.numjobs).sum();
    Ok(Figures::of(&Simulation::new(&jobs, &device, &design, seed)?.finish()?, instances))
}
