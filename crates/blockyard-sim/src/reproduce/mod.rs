//! Reproductions of published experiments.
//!
//! An [`Experiment`] is data: tables of workloads under designs, with the figures that were published.
//! The published figures are transcribed in `reference/`, with their source and, for each, whether
//! the device's profile was fitted to it. Figures measured after a change are not in `reference/`: a design
//! without a published figure is a prediction. [`experiments`] lists the experiments, [`run`] runs one and
//! returns the answer, a [`Reproduction`].
//!
//! The published figures do not determine a device completely. A [`Variant`] is another profile that fits them
//! as closely. A prediction covers the range of all variants.

mod btt;
mod hsq;
mod mmc_double_buffer;
mod mmc_mq;
mod scsi;

use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread;

use serde::{Serialize, Serializer};

use crate::answer::Figures;
use crate::answer::number::approximate;
use crate::job::{NoSource, parse_args};
use crate::profile::{Design, Device};
use crate::simulate::{Simulation, SimulationError};

/// A published experiment.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Its name on the command line.
    pub name: &'static str,
    /// The publication.
    pub source: &'static str,
    /// How it is run here, for the reader.
    pub about: &'static str,
    /// Its tables.
    pub tables: Vec<Table>,
}

/// Workloads under designs on one device.
#[derive(Clone, Debug)]
pub struct Table {
    /// The title of the table.
    pub title: String,
    /// The built-in device that stands for the one measured.
    pub device: &'static str,
    /// Other profiles that the device may have had.
    pub variants: &'static [Variant],
    /// Its rows.
    pub workloads: Vec<Workload>,
    /// Built-in designs. The first is the baseline for the others.
    pub designs: &'static [&'static str],
    /// The design whose figures are subtracted; `None` if the figures are not differences.
    pub less: Option<&'static str>,
    /// The unit of its figures.
    pub unit: Unit,
    /// The published figures, each for a workload and a design of this table.
    pub published: Vec<Published>,
    /// Further units that are shown.
    pub counters: &'static [Unit],
}

/// Another profile that the published figures allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// The difference from the device.
    pub name: &'static str,
    /// Its profile, TOML.
    pub text: &'static str,
}

/// A workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its name in the published figures.
    pub name: String,
    /// Its options for fio.
    pub options: Vec<String>,
}

/// A published figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// Name of its workload.
    pub workload: &'static str,
    /// Name of its design.
    pub design: &'static str,
    /// The figure, in the unit of its table.
    pub figure: f64,
    /// The relation of the model to the figure.
    pub basis: Basis,
}

/// The relation of the model to a published figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// The profile was fitted to it.
    Fitted,
    /// The profile was not fitted to it.
    Outcome,
    /// There is none.
    Prediction,
}

impl Basis {
    /// Its name in `reference/`, in tables and in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fitted => "fitted",
            Self::Outcome => "outcome",
            Self::Prediction => "prediction",
        }
    }
}

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Thousand I/Os per second.
    Kiops,
    /// KiB per second.
    KibPerS,
    /// MiB per second.
    MibPerS,
    /// The time of the run in seconds.
    Seconds,
    /// The time in seconds that its jobs sleep, waiting for I/O.
    SecondsAsleep,
    /// Load of the machine's processors, percent.
    CpuPercent,
    /// I/Os for each command.
    IosPerCommand,
    /// CMD13s for each command that writes.
    StatusPerWrite,
    /// Transactions per I/O for which an idle bus waits because a thread must be woken.
    AwaitedPerIo,
    /// Share of the time with a transaction on the bus, percent.
    BusPercent,
    /// Share of the time in which memory is unmapped during a transaction on the bus, percent.
    UnmapInside,
    /// Share of the time in which memory is unmapped while the bus is idle, percent.
    UnmapOutside,
    /// Share of an I/O's time on persistent memory in which data is copied, percent.
    CopyPercent,
    /// Fences per I/O on persistent memory.
    FencesPerIo,
    /// Scans of the words of all readers, per I/O on persistent memory.
    ScansPerIo,
    /// Lines of shared words fetched from other processors, per I/O on persistent memory.
    TransfersPerIo,
}

impl Unit {
    /// Its name in `reference/` and in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kiops => "kIOPS",
            Self::KibPerS => "KiB/s",
            Self::MibPerS => "MiB/s",
            Self::Seconds => "s",
            Self::SecondsAsleep => "s asleep",
            Self::CpuPercent => "CPU %",
            Self::IosPerCommand => "I/O/cmd",
            Self::StatusPerWrite => "CMD13/write",
            Self::AwaitedPerIo => "awaited",
            Self::BusPercent => "bus %",
            Self::UnmapInside => "unmap in %",
            Self::UnmapOutside => "unmap out %",
            Self::CopyPercent => "copy %",
            Self::FencesPerIo => "fences",
            Self::ScansPerIo => "looks",
            Self::TransfersPerIo => "fetched",
        }
    }

    /// Returns the value in `figures`; `None` if they have no such figure.
    #[expect(clippy::float_arithmetic, reason = "for the reader: nothing is ordered by it")]
    #[must_use]
    pub fn of(self, figures: &Figures) -> Option<f64> {
        let per_s = |bytes: f64| figures.iops * bytes;
        let io_bytes = || approximate(figures.bytes) / approximate(figures.ios);
        let (host, memory) = (figures.mmc.as_ref(), figures.pmem.as_ref());
        match self {
            Self::Kiops => Some(figures.iops / 1e3),
            Self::KibPerS => Some(per_s(io_bytes() / 1024.0)),
            Self::MibPerS => Some(per_s(io_bytes() / (1024.0 * 1024.0))),
            Self::Seconds => Some(approximate(figures.ios) / figures.iops),
            Self::SecondsAsleep => Some(approximate(figures.jobs_ns.waiting) / 1e9),
            Self::CpuPercent => Some(figures.cpu_percent),
            Self::IosPerCommand => Some(figures.ios_per_command),
            Self::StatusPerWrite => host?.status_per_write,
            Self::AwaitedPerIo => Some(host?.awaited_wakeups_per_io),
            Self::BusPercent => Some(host?.bus_busy_percent),
            Self::UnmapInside => Some(host?.unmap_percent.inside),
            Self::UnmapOutside => Some(host?.unmap_percent.outside),
            Self::CopyPercent => Some(memory?.percent.copy),
            Self::FencesPerIo => Some(memory?.fences),
            Self::ScansPerIo => Some(memory?.scans),
            Self::TransfersPerIo => Some(memory?.transfers),
        }
    }
}

impl Serialize for Unit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.name().serialize(serializer)
    }
}

/// Our figures beside the published ones.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reproduction {
    /// Name of the experiment.
    pub experiment: &'static str,
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
    /// The unit of the figure.
    pub unit: Unit,
    /// The published figure; `None` if ours is a prediction.
    pub published: Option<f64>,
    /// Our figure.
    pub ours: f64,
    /// Its difference from the published figure in percent of that; `None` if that is 0 or not published.
    pub difference_percent: Option<f64>,
    /// Relative to the table's first design, over the device and its variants. `None` for that design
    /// itself, and if figures are differences.
    pub ratio: Option<Ratio>,
    /// The relation of the model to the published figure.
    pub basis: Basis,
    /// The counters of the table, by the names of their units; `None` where a run has no such figure.
    pub counters: BTreeMap<&'static str, Option<f64>>,
    /// The figure on each variant of the device.
    pub on_variants: BTreeMap<&'static str, f64>,
}

/// A figure relative to another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// On the device.
    pub ours: f64,
    /// The smallest value over the device and its variants.
    pub least: f64,
    /// The largest value over the device and its variants.
    pub most: f64,
}

/// All experiments, oldest first.
#[must_use]
pub fn experiments() -> Vec<Experiment> {
    vec![
        mmc_double_buffer::experiment(),
        btt::experiment(),
        mmc_mq::experiment(),
        scsi::experiment(),
        hsq::experiment(),
    ]
}

/// Returns the published figures in `text`, a file of `reference/`, that have the unit `unit`.
///
/// # Panics
///
/// Panics if a line is malformed; the files are built in.
fn published(text: &'static str, unit: Unit) -> Vec<Published> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let row = |line: &'static str| {
        let [workload, design, its_unit, figure, basis] = line.split(',').collect::<Vec<_>>()[..]
        else {
            panic!("five columns: {line}");
        };
        let is_it = |it: &Basis| it.name() == basis;
        let basis = [Basis::Fitted, Basis::Outcome].into_iter().find(is_it);
        let basis = basis.expect("a published figure should have a basis");
        let figure = figure.parse().expect("a published figure should be a number");
        (its_unit == unit.name()).then_some(Published { workload, design, figure, basis })
    };
    lines.skip(1).filter_map(row).collect()
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
    Variant { name: &'static str, text: &'static str },
}

impl Table {
    /// Its device, then the variants.
    fn platforms(&self) -> impl Iterator<Item = Platform> + '_ {
        let variants = self.variants.iter();
        let variants = variants.map(|&Variant { name, text }| Platform::Variant { name, text });
        [Platform::Builtin(self.device)].into_iter().chain(variants)
    }

    /// Every simulation that the table needs.
    fn runs(&self) -> impl Iterator<Item = Run<'_>> {
        let designs = || self.designs.iter().copied().chain(self.less);
        self.platforms().flat_map(move |device| {
            self.workloads.iter().flat_map(move |workload| {
                designs().map(move |design| Run { device, options: &workload.options, design })
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

/// Runs `experiment` on all CPUs, with all random draws from `seed`. Calls `done` after each simulation. The
/// result does not depend on the number of CPUs.
///
/// # Errors
///
/// The first [`SimulationError`].
///
/// # Panics
///
/// Panics if a table names a device or design that is not built in, or has an invalid workload; the tables are
/// built in.
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
        let figures = |device, design| of(Run { device, options: &workload.options, design });
        let measured = |unit: Unit, device, design| {
            let of_design = |design| unit.of(figures(device, design));
            let taken_off = table.less.map_or(Some(0.0), of_design);
            of_design(design).zip(taken_off).map(|(figure, taken_off)| figure - taken_off)
        };
        for &design in table.designs {
            let figure = |device| {
                measured(table.unit, device, design)
                    .expect("every run of a table should have figures in its unit")
            };
            let first = |device| measured(table.unit, device, table.designs[0]);
            let ratios = || {
                let ratio = |device| first(device).map(|first| figure(device) / first);
                table.platforms().filter_map(ratio)
            };
            let compares = design != table.designs[0] && table.less.is_none();
            let ratio = ratios().next().filter(|_| compares).map(|ours| Ratio {
                ours,
                least: ratios().fold(ours, f64::min),
                most: ratios().fold(ours, f64::max),
            });
            let of_cell = |it: &&Published| it.workload == workload.name && it.design == design;
            let published = table.published.iter().find(of_cell);
            let device = Platform::Builtin(table.device);
            let ours = figure(device);
            let counter = |unit: &Unit| (unit.name(), measured(*unit, device, design));
            let names = table.variants.iter().map(|variant| variant.name);
            cells.push(Cell {
                table: table.title.clone(),
                device: table.device,
                workload: workload.name.clone(),
                design,
                less: table.less,
                unit: table.unit,
                published: published.map(|it| it.figure),
                ours,
                difference_percent: published
                    .filter(|it| it.figure != 0.0)
                    .map(|it| 100.0 * (ours - it.figure) / it.figure.abs()),
                ratio,
                basis: published.map_or(Basis::Prediction, |it| it.basis),
                counters: table.counters.iter().map(counter).collect(),
                on_variants: names.zip(table.platforms().skip(1).map(figure)).collect(),
            });
        }
    }
    cells
}

/// Calls `work` for each of `items` on all CPUs, and returns the results in the order of the items.
fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<R>>> = items.iter().map(|_| Mutex::new(None)).collect();
    let worker = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { break };
            let result = work(item);
            *results[at].lock().expect("no worker panics while it stores a result") = Some(result);
        }
    };
    thread::scope(|scope| {
        let others = thread::available_parallelism().map_or(1, usize::from).min(items.len());
        (1..others).for_each(|_| drop(scope.spawn(worker)));
        worker();
    });
    let result = |cell: Mutex<Option<R>>| {
        cell.into_inner().expect("no worker panicked").expect("every item should have a result")
    };
    results.into_iter().map(result).collect()
}

fn simulate(run: &Run<'_>, seed: u64) -> Result<Figures, SimulationError> {
    let device = match run.device {
        Platform::Builtin(name) => Device::lookup(name),
        Platform::Variant { name, text } => Device::parse(name, text),
    };
    let device = device.expect("a built-in device or variant should be valid");
    let design = Design::lookup(run.design).expect("the design should be built in");
    let jobs = parse_args(run.options.iter().map(String::as_str), &NoSource)?;
    let instances = jobs.jobs.iter().map(|job| job.numjobs).sum();
    Ok(Figures::of(&Simulation::new(&jobs, &device, &design, seed)?.finish()?, instances))
}

/// Splits `text` at spaces into options for fio.
fn options(text: &str) -> Vec<String> {
    assert!(text.starts_with("--"), "{text} has no options");
    text.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_a_table_names_exists() {
        for experiment in experiments() {
            for table in &experiment.tables {
                let of = format!("{}: {}", experiment.name, table.title);
                assert!(Device::lookup(table.device).is_ok(), "{of}");
                for design in table.designs.iter().chain(&table.less) {
                    assert!(Design::lookup(design).is_ok(), "{of}: {design}");
                }
                for Variant { name, text } in table.variants {
                    assert!(Device::parse(name, text).is_ok(), "{of}: {name}");
                }
                for workload in &table.workloads {
                    let options = workload.options.iter().map(String::as_str);
                    assert!(parse_args(options, &NoSource).is_ok(), "{of}: {}", workload.name);
                }
                for published in &table.published {
                    let is_its = |workload: &Workload| workload.name == published.workload;
                    assert!(table.workloads.iter().any(is_its), "{of}: {}", published.workload);
                    assert!(
                        table.designs.contains(&published.design),
                        "{of}: {}",
                        published.design
                    );
                }
            }
        }
    }

    #[test]
    fn every_published_figure_is_in_a_table() {
        let figures = |experiment: &str| {
            let all = experiments();
            let found = all.iter().find(|it| it.name == experiment).unwrap();
            found.tables.iter().map(|table| table.published.len()).sum::<usize>()
        };
        // Both readings of the workload have the same figures.
        assert_eq!(figures("scsi"), 2 * 12);
        assert_eq!(figures("mmc-mq"), 6 * 13 + 3);
        assert_eq!(figures("hsq"), 8);
        assert_eq!(figures("mmc-double-buffer"), 2 * 6 * 13);
    }

    #[test]
    fn runs_that_tables_share_are_simulated_once() {
        let mut experiment = scsi::experiment();
        let once = runs(&experiment);
        let again = experiment.tables.clone();
        experiment.tables.extend(again);
        assert_eq!(runs(&experiment), once);
    }
}
