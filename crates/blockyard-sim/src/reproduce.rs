//! Published experiments, run again.
//!
//! The published figures are data: `reference/` holds our transcription of each, its source and,
//! for every cell, whether the device's profile was fitted on it. [`cells`] lists what there is to
//! run of the SCSI experiment, [`run`] runs it.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::thread;

use blockyard::time::Duration;

use crate::job::{NoSource, parse_args};
use crate::profile::{Design, Device};
use crate::simulate::{Simulation, SimulationError};
use crate::why::Figures;

/// Where the figures of the SCSI experiment were published.
pub const SCSI_SOURCE: &str =
    "\"blk-mq-sched: improve SCSI-MQ performance\", version 2, Ming Lei, August 2017";

/// The device that stands for the one measured.
pub const SCSI_DEVICE: &str = "srp";

const SCSI_BEFORE: &str = include_str!("../reference/scsi-2017-before.csv");
const OPS: [&str; 4] = ["read", "randread", "write", "randwrite"];
/// Designs that have no published figure here.
const PREDICTED: [&str; 4] =
    ["mq-none-2017-patched", "mq-deadline-2017-patched", "mq-none", "mq-deadline"];
const JOBS: u32 = 64;

/// What the 64 jobs work on, which was not published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// All of them on the whole disk.
    Shared,
    /// Each on a part of its own.
    Own,
}

impl Region {
    /// Both readings.
    pub const ALL: [Self; 2] = [Self::Shared, Self::Own];
}

/// What a published figure is to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The profile was fitted on it.
    Fitted,
    /// The profile was not fitted on it.
    Outcome,
}

/// A published figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// Thousand I/Os per second.
    pub kiops: u32,
    /// What it is to the model.
    pub basis: Basis,
}

/// One workload under one design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// How the workload is read.
    pub region: Region,
    /// fio's `rw`.
    pub op: &'static str,
    /// A built-in design.
    pub design: &'static str,
    /// What was measured; `None`: ours is a prediction.
    pub published: Option<Published>,
}

/// For how long each cell runs, in virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Until measuring begins.
    pub ramp: Duration,
    /// From then on.
    pub runtime: Duration,
}

impl Default for Span {
    fn default() -> Self {
        Self { ramp: Duration::from_ms(500), runtime: Duration::from_ms(2000) }
    }
}

/// Every cell of the SCSI experiment: by reading, then by workload, the published designs first.
#[must_use]
pub fn cells() -> Vec<Cell> {
    let table = published();
    let mut cells = Vec::new();
    for region in Region::ALL {
        for op in OPS {
            let of_op = table.iter().filter(|row| row.1 == op);
            cells.extend(of_op.map(|&(design, _, published)| Cell {
                region,
                op,
                design,
                published: Some(published),
            }));
            let cell = |design| Cell { region, op, design, published: None };
            cells.extend(PREDICTED.map(cell));
        }
    }
    cells
}

/// The rows of the published table: design, workload, figure.
fn published() -> Vec<(&'static str, &'static str, Published)> {
    let lines = SCSI_BEFORE.lines().filter(|line| !line.starts_with('#')).skip(1);
    let row = |line: &'static str| {
        let [design, op, kiops, basis] = line.split(',').collect::<Vec<_>>()[..] else {
            panic!("four columns: {line}");
        };
        let kiops = kiops.parse().expect("a number of thousand I/Os");
        let basis = if basis == "fitted" { Basis::Fitted } else { Basis::Outcome };
        (design, op, Published { kiops, basis })
    };
    lines.map(row).collect()
}

/// Runs `cells` for `span` each on the device they were published for, all random draws from
/// `seed`; `done` is told after each. Uses the processors there are; what it gives does not depend
/// on how many.
///
/// # Errors
///
/// The first [`SimulationError`], in the order of `cells`.
///
/// # Panics
///
/// If a cell names no built-in design.
pub fn run(
    cells: &[Cell],
    span: Span,
    seed: u64,
    done: &(dyn Fn() + Sync),
) -> Result<Vec<Figures>, SimulationError> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<_>>> = cells.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(cell) = cells.get(at) else { break };
            let result = run_cell(cell, span, seed);
            *results[at].lock().expect("nobody fails holding it") = Some(result);
            done();
        }
    };
    thread::scope(|scope| {
        let others = thread::available_parallelism().map_or(1, usize::from).min(cells.len());
        (1..others).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    let result = |cell: Mutex<Option<_>>| {
        cell.into_inner().expect("nobody failed holding it").expect("every cell was run")
    };
    results.into_iter().map(result).collect()
}

fn run_cell(cell: &Cell, span: Span, seed: u64) -> Result<Figures, SimulationError> {
    let device = Device::lookup(SCSI_DEVICE).expect("it is built in");
    let design = Design::lookup(cell.design).expect("it is built in");
    let us = |span: Duration| span.as_ns() / 1000;
    let [rw, ramp, runtime, jobs] = [
        format!("--rw={}", cell.op),
        format!("--ramp_time={}us", us(span.ramp)),
        format!("--runtime={}us", us(span.runtime)),
        format!("--numjobs={JOBS}"),
    ];
    let region = match cell.region {
        Region::Shared => "--filename=/dev/sda",
        Region::Own => "--size=8g",
    };
    let fixed = ["--name=scsi", "--ioengine=libaio", "--direct=1", "--bs=4k", "--iodepth=64"];
    let reported = ["--time_based", "--group_reporting", region, &rw, &ramp, &runtime, &jobs];
    let jobs = parse_args(fixed.into_iter().chain(reported), &NoSource)?;
    Ok(Figures::of(&Simulation::new(&jobs, &device, &design, seed)?.finish()?, JOBS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_table_has_a_figure_for_each_workload_of_three_designs() {
        let table = published();
        assert_eq!(table.len(), 12);
        let fitted = table.iter().filter(|row| row.2.basis == Basis::Fitted).count();
        assert_eq!(fitted, 6);
        assert_eq!(cells().len(), 2 * 4 * (3 + PREDICTED.len()));
        assert!(cells().iter().all(|cell| Design::lookup(cell.design).is_ok()));
    }
}
