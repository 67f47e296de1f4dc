//! How many I/Os the simulator does per second of wall time: the SCSI job of the published
//! measurements (64 jobs of depth 64, 4 KiB, one region), 2 s of virtual time for each design.
//!
//! `cargo run --release -p blockyard-bench --bin simulator`

use blockyard_sim::job::{NoSource, parse_args};
use blockyard_sim::profile::{Design, Device};
use blockyard_sim::simulate::Simulation;
use std::time::Instant;

const DESIGNS: [&str; 5] =
    ["mq-none", "mq-deadline", "legacy-deadline", "mq-none-2017", "mq-deadline-2017"];

fn main() {
    let device = Device::lookup("srp").expect("a built-in device");
    println!("{:<8}  {:<18}  thousand simulated I/Os per second", "rw", "design");
    for rw in ["read", "randread"] {
        for name in DESIGNS {
            println!("{rw:<8}  {name:<18}  {}", thousands_per_second(rw, name, &device));
        }
    }
}

fn thousands_per_second(rw: &str, design: &str, device: &Device) -> u128 {
    let job = format!(
        "--name=scsi --filename=/dev/sda --direct=1 --ioengine=libaio --bs=4k --iodepth=64 \
         --numjobs=64 --group_reporting --time_based --runtime=2 --rw={rw}"
    );
    let jobs = parse_args(job.split_whitespace(), &NoSource).expect("a job of ours");
    let design = Design::lookup(design).expect("a built-in design");
    let begun = Instant::now();
    let simulation = Simulation::new(&jobs, device, &design, 1).expect("the job fits the device");
    let report = simulation.finish().expect("the job ends");
    let wall_ns = begun.elapsed().as_nanos().max(1);
    let ios: u64 =
        report.jobs.iter().flat_map(|job| job.stats.measured()).map(|measured| measured.ios).sum();
    u128::from(ios) * 1_000_000 / wall_ns
}
