//! Published experiments, run again.
//!
//! An [`Experiment`] is data: tables of workloads under designs, beside what was published of them.
//! The published figures are transcribed in `reference/`, with their source and, for each, whether
//! the device's profile was fitted on it. [`experiments`] lists what there is, [`run`] runs one.
//!
//! # Rules
//!
//! - **E1.** Of what a change gave, nothing is in `reference/`: figures of designs without a
//!   published figure are predictions.
//! - **E2.** What the published figures leave open about a device is a [`Variant`] of its profile:
//!   fitted on the same figures, as near to them as the profile itself. A prediction has the range of
//!   all variants.

mod btt;
mod hsq;
mod mmc_double_buffer;
mod mmc_mq;
mod scsi;

use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread;

use crate::answer::Figures;
use crate::answer::number::approximate;
use crate::job::{NoSource, parse_args};
use crate::profile::{Design, Device};
use crate::simulate::{Simulation, SimulationError};

/// An experiment that was published.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// What it is asked for by.
    pub name: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// How it is run here, for the reader.
    pub about: &'static str,
    /// Its tables.
    pub tables: Vec<Table>,
}

/// Workloads under designs on one device.
#[derive(Clone, Debug)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// The built-in device that stands for the one measured.
    pub device: &'static str,
    /// What else that device may be (E2).
    pub variants: &'static [Variant],
    /// Its rows.
    pub workloads: Vec<Workload>,
    /// Built-in designs. The others are set against the first.
    pub designs: &'static [&'static str],
    /// Whose figures are taken off; `None`: figures are what was measured, not differences.
    pub less: Option<&'static str>,
    /// What is measured.
    pub unit: Unit,
    /// What was published, each a workload and a design of this table.
    pub published: Vec<Published>,
    /// What is counted beside.
    pub counters: &'static [Unit],
}

/// Another reading of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// What differs.
    pub name: &'static str,
    /// Its profile, TOML.
    pub text: &'static str,
}

/// A workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// By which the published figures know it.
    pub name: String,
    /// It, as options of fio.
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
    /// What it is to the model.
    pub basis: Basis,
}

/// What a published figure is to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The profile was fitted on it.
    Fitted,
    /// The profile was not fitted on it.
    Outcome,
}

/// What is measured, or counted, of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Thousand I/Os per second.
    Kiops,
    /// KiB per second.
    KibPerS,
    /// MiB per second.
    MibPerS,
    /// Seconds that the run takes.
    Seconds,
    /// Seconds that its jobs are asleep for I/O.
    SecondsAsleep,
    /// Load of the machine's processors, percent.
    CpuPercent,
    /// I/Os for each command.
    IosPerCommand,
    /// CMD13s for each command that writes.
    StatusPerWrite,
    /// Transactions, for each I/O, that an idle bus waits for because a thread has to be woken.
    AwaitedPerIo,
    /// Part of the time with a transaction on the bus, percent.
    BusPercent,
    /// Part of the time in which memory is unmapped with a transaction on the bus, percent.
    UnmapInside,
    /// The same without one.
    UnmapOutside,
    /// Part of an I/O's time on persistent memory in which data is copied, percent.
    CopyPercent,
    /// Fences for each I/O there.
    FencesPerIo,
    /// Looks through the words of all readers for each I/O there.
    ScansPerIo,
    /// Lines of shared words that come from other processors, for each I/O there.
    TransfersPerIo,
}

impl Unit {
    /// How `reference/` and tables write it.
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

    /// It, of `figures`; `None` where these have nothing of the kind.
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

/// What a workload comes to under a design.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Index of its table.
    pub table: usize,
    /// Index of its workload there.
    pub workload: usize,
    /// Its design.
    pub design: &'static str,
    /// The figure, in the unit of the table.
    pub ours: f64,
    /// Ours to that of the table's first design; least and most of the device and its variants. `None`
    /// for that design itself, and where figures are differences.
    pub ratio: Option<Ratio>,
    /// What was published; `None`: ours is a prediction.
    pub published: Option<Published>,
    /// The counters of the table.
    pub counters: Vec<Option<f64>>,
    /// The figure on each of the variants.
    pub on_variants: Vec<f64>,
}

impl Cell {
    /// By how many percent of what was published ours differs; `None` also where that is nothing.
    #[expect(clippy::float_arithmetic, reason = "for the reader: nothing is ordered by it")]
    #[must_use]
    pub fn difference_percent(&self) -> Option<f64> {
        let published = self.published.as_ref()?.figure;
        (published != 0.0).then(|| 100.0 * (self.ours - published) / published.abs())
    }
}

/// A figure to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// On the device.
    pub ours: f64,
    /// On that of its variants, or itself, where it is least.
    pub least: f64,
    /// Where it is most.
    pub most: f64,
}

/// The experiments there are, oldest first.
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

/// Those of the published figures in `text`, a file of `reference/`, that are in `unit` (E1).
///
/// # Panics
///
/// If a line is not as its head says: the files are our own.
fn published(text: &'static str, unit: Unit) -> Vec<Published> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let row = |line: &'static str| {
        let [workload, design, its_unit, figure, basis] = line.split(',').collect::<Vec<_>>()[..]
        else {
            panic!("five columns: {line}");
        };
        let basis = match basis {
            "fitted" => Basis::Fitted,
            "outcome" => Basis::Outcome,
            other => panic!("no basis: {other}"),
        };
        let figure = figure.parse().expect("a number");
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

    /// All that is to be simulated for it.
    fn runs(&self) -> impl Iterator<Item = Run<'_>> {
        let designs = || self.designs.iter().copied().chain(self.less);
        self.platforms().flat_map(move |device| {
            self.workloads.iter().flat_map(move |workload| {
                designs().map(move |design| Run { device, options: &workload.options, design })
            })
        })
    }
}

/// How many simulations [`run`] makes of `experiment`.
#[must_use]
pub fn runs(experiment: &Experiment) -> usize {
    distinct(experiment).len()
}

/// What is to be simulated, each once, with its index.
fn distinct(experiment: &Experiment) -> BTreeMap<Run<'_>, usize> {
    let runs: BTreeMap<_, _> =
        experiment.tables.iter().flat_map(Table::runs).map(|run| (run, 0)).collect();
    runs.into_keys().zip(0..).collect()
}

/// Runs `experiment`, all random draws from `seed`; `done` is told after each simulation. The cells,
/// by table, workload and design. Uses the processors there are; what it gives does not depend on how
/// many.
///
/// # Errors
///
/// The first [`SimulationError`].
///
/// # Panics
///
/// If a table names what is not built in, or has a workload that is none: the tables are our own.
pub fn run(
    experiment: &Experiment,
    seed: u64,
    done: &(dyn Fn() + Sync),
) -> Result<Vec<Cell>, SimulationError> {
    let runs = distinct(experiment);
    let list: Vec<_> = runs.keys().collect();
    let figures = each(&list, |run| {
        let figures = simulate(run, seed);
        done();
        figures
    });
    let figures = figures.into_iter().collect::<Result<Vec<_>, _>>()?;
    let of = |run: Run<'_>| &figures[runs[&run]];
    let tables = experiment.tables.iter().zip(0..);
    Ok(tables.flat_map(|(table, index)| cells(table, index, &of)).collect())
}

/// The cells of `table`, the one of that `index`, of figures that `of` finds.
#[expect(clippy::float_arithmetic, reason = "for the reader: nothing is ordered by it")]
fn cells<'a>(table: &Table, index: usize, of: &dyn Fn(Run<'_>) -> &'a Figures) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (workload, row) in (0..).zip(&table.workloads) {
        let figures = |device, design| of(Run { device, options: &row.options, design });
        let measured = |unit: Unit, device, design| {
            let of_design = |design| unit.of(figures(device, design));
            let taken_off = table.less.map_or(Some(0.0), of_design);
            of_design(design).zip(taken_off).map(|(figure, taken_off)| figure - taken_off)
        };
        for &design in table.designs {
            let figure = |device| {
                measured(table.unit, device, design).expect("a table measures what there is")
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
            let of_cell = |it: &&Published| it.workload == row.name && it.design == design;
            let device = Platform::Builtin(table.device);
            cells.push(Cell {
                table: index,
                workload,
                design,
                ours: figure(device),
                ratio,
                published: table.published.iter().find(of_cell).cloned(),
                counters: table
                    .counters
                    .iter()
                    .map(|unit| measured(*unit, device, design))
                    .collect(),
                on_variants: table.platforms().skip(1).map(figure).collect(),
            });
        }
    }
    cells
}

/// What `work` makes of each of `items`, in their order, on all processors.
fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<R>>> = items.iter().map(|_| Mutex::new(None)).collect();
    let worker = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { break };
            let result = work(item);
            *results[at].lock().expect("nobody fails holding it") = Some(result);
        }
    };
    thread::scope(|scope| {
        let others = thread::available_parallelism().map_or(1, usize::from).min(items.len());
        (1..others).for_each(|_| drop(scope.spawn(worker)));
        worker();
    });
    let result = |cell: Mutex<Option<R>>| {
        cell.into_inner().expect("nobody failed holding it").expect("every item was worked on")
    };
    results.into_iter().map(result).collect()
}

fn simulate(run: &Run<'_>, seed: u64) -> Result<Figures, SimulationError> {
    let device = match run.device {
        Platform::Builtin(name) => Device::lookup(name),
        Platform::Variant { name, text } => Device::parse(name, text),
    };
    let device = device.expect("it is our own");
    let design = Design::lookup(run.design).expect("it is built in");
    let jobs = parse_args(run.options.iter().map(String::as_str), &NoSource)?;
    let instances = jobs.jobs.iter().map(|job| job.numjobs).sum();
    Ok(Figures::of(&Simulation::new(&jobs, &device, &design, seed)?.finish()?, instances))
}

/// Options of fio, from one text.
fn options(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_has_what_it_names() {
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
    fn what_tables_share_is_simulated_once() {
        let mut experiment = scsi::experiment();
        let once = runs(&experiment);
        let again = experiment.tables.clone();
        experiment.tables.extend(again);
        assert_eq!(runs(&experiment), once);
    }
}
