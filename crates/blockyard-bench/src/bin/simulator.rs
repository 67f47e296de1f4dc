//! Measures thousand simulated I/Os per second of wall time for each design of three published jobs.
//!
//! `cargo run --release -p blockyard-bench --bin simulator [TURNS]`
//!
//! The table has the median of TURNS turns (default 3), with the least and the most.
#![allow(clippy::float_arithmetic, reason = "this is a report")]

use blockyard_bench::simulated::{EMMC, PMEM, SCSI, Workload};
use blockyard_bench::turns::Turns;
use core::error::Error;
use std::time::Instant;

const TURNS: u32 = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let turns = std::env::args().nth(1).map_or(Ok(TURNS), |turns| turns.parse())?;
    println!("thousand simulated I/Os per second");
    for workload in [SCSI, EMMC, PMEM] {
        let Workload { device, ops, designs, .. } = workload;
        println!("\n| {device} | {} |\n|---|{}", ops.join(" | "), "--:|".repeat(ops.len()));
        for design in designs {
            let cells: Vec<_> = ops
                .iter()
                .map(|op: &&str| {
                    let rates = (0..turns).map(|_| thousands_per_second(&workload, op, design));
                    format!("{:.0}", rates.collect::<Turns>())
                })
                .collect();
            println!("| `{design}` | {} |", cells.join(" | "));
        }
    }
    Ok(())
}

fn thousands_per_second(workload: &Workload, op: &str, design: &str) -> f64 {
    let begun = Instant::now();
    let ios = workload.simulate(op, design, workload.timed);
    ios as f64 / 1e3 / begun.elapsed().as_secs_f64()
}
