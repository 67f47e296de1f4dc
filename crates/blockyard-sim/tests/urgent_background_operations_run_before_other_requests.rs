//! A card with too many deferred background operations reports it, and the host lets them run
//! first.

use blockyard::time::Duration;
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::{Report, Simulation};

const DESIGNS: [&str; 4] = ["mmc-serial", "mmc-blkmq", "hsq", "cqe"];

/// `size` of random writes on a card on which 512 KiB are urgent, with this cost for each KiB.
fn writes(design: &str, size: &str, cost: &str, jobs: u8) -> Report {
    writes_by(design, size, cost, jobs, "hw")
}

/// Like [`writes`], with a controller with this busy detection.
fn writes_by(design: &str, size: &str, cost: &str, jobs: u8, busy: &str) -> Report {
    let job = format!(
        "--name=x --direct=1 --filename=/dev/mmcblk0 --size={size} --rw=randwrite --bs=4k \
         --numjobs={jobs}"
    );
    let jobs = parse_args(job.split_whitespace(), &NoSource).unwrap();
    let device = format!(
        "base = \"emmc-hs400-sprd\"\n[host]\nbusy-detect = \"{busy}\"\n[card.background]\nlevel = \"256KiB\"\nwork-per-kib = \"{cost}\""
    );
    let device = Device::parse("card", &device).unwrap();
    let design = Design::lookup(design).unwrap();
    Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap()
}

fn command(report: &Report, number: usize) -> u64 {
    report.family.mmc.as_ref().unwrap().commands[number]
}

#[test]
fn operations_run_whenever_half_a_mib_is_due() {
    for design in DESIGNS {
        // One write at a time: at most one write comes between the report and the operations.
        let report = writes(design, "4m", "100us", 1);
        let runs = command(&report, 8);
        assert!((7..=8).contains(&runs), "{design}: {runs}");
        // 512 KiB at 100 us per KiB.
        let pauses = Duration::from_us(51_200 * 7);
        assert!(report.span > pauses, "{design}: {:?}", report.span);
        let started = command(&report, 6);
        // A command queue is off during the operations.
        let expected = if design == "cqe" { runs..=3 * runs + 1 } else { runs..=runs };
        assert!(expected.contains(&started), "{design}: {started}");
    }
}

#[test]
fn many_writers_are_held_and_all_finish() {
    for design in DESIGNS {
        let report = writes(design, "1m", "100us", 8);
        let written = command(&report, 24) + command(&report, 25) + command(&report, 47);
        assert!(written > 1000, "{design}: {written}");
        let runs = command(&report, 8);
        assert!((13..=16).contains(&runs), "{design}: {runs}");
    }
}

#[test]
fn operations_are_interrupted_after_two_minutes() {
    // A controller that detects the end of busy itself does so for each command.
    let as_designed =
        [("mmc-serial", "cmd13"), ("mmc-blkmq", "cmd13"), ("hsq", "hw"), ("cqe", "hw")];
    for (design, busy) in as_designed {
        // All of the work would take 256 s; 120 s of it are enough for the remaining writes.
        let report = writes_by(design, "700k", "500ms", 1, busy);
        let seconds = report.span.as_ns() / 1_000_000_000;
        assert_eq!((seconds, command(&report, 8)), (120, 1), "{design}");
    }
}
