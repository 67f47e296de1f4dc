//! Measures the cost of writing a trace: runs the SCSI job of the published measurements (64 jobs of depth
//! 64, 4 KiB, one region) without a trace, with `--trace` and with `--blktrace`, in turns.
//!
//! `cargo run --release -p blockyard-bench --bin tracing [TURNS]`
//!
//! For each output it prints the additional time in percent of the run without a trace in the same turn
//! (median of TURNS turns, default 7), and the bytes written for each I/O. The files go to a folder of
//! their own in the system's temporary folder, and are removed.

use blockyard_bench::simulated::{SCSI, ios};
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::JobFile;
use blockyard_sim::simulate::{Conditions, Simulation};
use blockyard_trace::output::{Files, Recorder};
use core::error::Error;
use std::fs;
use std::path::Path;
use std::time::Instant;

const TURNS: usize = 7;
const DESIGNS: [&str; 3] = ["mq-none", "mq-deadline", "legacy-deadline"];

fn main() -> Result<(), Box<dyn Error>> {
    let turns = std::env::args().nth(1).map_or(Ok(TURNS), |turns| turns.parse())?;
    let folder = std::env::temp_dir().join(format!("blockyard-tracing-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let prefix = folder.join("trace");
    let outputs = [
        ("trace", Files { perfetto: Some(prefix.with_extension("json")), blktrace: None }),
        ("blktrace", Files { perfetto: None, blktrace: Some(prefix) }),
    ];
    println!(
        "{:<10}{:<18}{:<10}{:>12}{:>16}",
        "rw", "design", "output", "% more time", "bytes per I/O"
    );
    for rw in SCSI.ops {
        let jobs = SCSI.jobs(rw, "--time_based --runtime=1");
        for name in DESIGNS {
            let design = Design::lookup(name)?;
            for (output, files) in &outputs {
                let (more, bytes) = compare(&jobs, &design, files, &folder, turns)?;
                println!("{rw:<10}{name:<18}{output:<10}{more:>12}{bytes:>16}");
            }
        }
    }
    fs::remove_dir_all(&folder)?;
    Ok(())
}

/// Returns the additional time for writing `files`, in percent, and the bytes written for each I/O.
fn compare(
    jobs: &JobFile,
    design: &Design,
    files: &Files,
    folder: &Path,
    turns: usize,
) -> Result<(i128, u64), Box<dyn Error>> {
    let device = Device::lookup(SCSI.device)?;
    let mut more = Vec::new();
    let mut bytes_per_io = 0;
    for _ in 0..turns {
        let begun = Instant::now();
        let report = Simulation::new(jobs, &device, design, 1)?.finish()?;
        let without_ns = begun.elapsed().as_nanos();
        let begun = Instant::now();
        let mut recorder = Recorder::create(files)?;
        Simulation::observed(jobs, &device, design, Conditions::new(1), &mut recorder)?.finish()?;
        recorder.finish()?;
        let with_ns = begun.elapsed().as_nanos();
        more.push(i128::try_from(with_ns * 100 / without_ns)? - 100);
        bytes_per_io = bytes_in(folder)? / ios(&report).max(1);
    }
    more.sort_unstable();
    Ok((more[more.len() / 2], bytes_per_io))
}

/// Removes all files in `folder` and returns their total size in bytes.
fn bytes_in(folder: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        bytes += entry.metadata()?.len();
        fs::remove_file(entry.path())?;
    }
    Ok(bytes)
}
