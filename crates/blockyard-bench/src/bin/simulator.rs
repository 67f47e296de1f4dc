//! Measures simulated I/Os per second of wall time for each design of three published jobs.
//!
//! `cargo run --release -p blockyard-bench --bin simulator [TURNS]`
//!
//! The fastest of TURNS turns (default 3) counts, because other work on the machine only slows a turn down.

use blockyard_bench::simulated::{EMMC, PMEM, SCSI, Workload};
use core::error::Error;
use std::time::Instant;

const TURNS: u32 = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let turns = std::env::args().nth(1).map_or(Ok(TURNS), |turns| turns.parse())?;
    println!("thousand simulated I/Os per second");
    for workload in [SCSI, EMMC, PMEM] {
        println!("\n{:<18}{}", workload.device, row(workload.ops.iter().copied()));
        for design in workload.designs {
            let rate = |op: &&str| fastest(turns, &workload, op, design).to_string();
            println!("{design:<18}{}", row(workload.ops.iter().map(rate)));
        }
    }
    Ok(())
}

fn row(cells: impl Iterator<Item = impl AsRef<str>>) -> String {
    cells.map(|cell| format!("{:>11}", cell.as_ref())).collect()
}

fn fastest(turns: u32, workload: &Workload, op: &str, design: &str) -> u128 {
    let rates = (0..turns).map(|_| thousands_per_second(workload, op, design));
    rates.max().unwrap_or_default()
}

fn thousands_per_second(workload: &Workload, op: &str, design: &str) -> u128 {
    let begun = Instant::now();
    let ios = workload.simulate(op, design, workload.timed);
    u128::from(ios) * 1_000_000 / begun.elapsed().as_nanos().max(1)
}
