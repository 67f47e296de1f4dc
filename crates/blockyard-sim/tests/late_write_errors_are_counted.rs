//! Late write errors: the card's next response reports a page that cannot be programmed. A host
//! that requests the status after each write learns of the error and writes again. Any other host
//! has acknowledged the write by then, so the write is lost and counted.

use blockyard_devices::data::verify::Verify;
use blockyard_devices::profile::{Design, Device, FaultRules};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::{Conditions, Report, Simulation};

/// Two thousand random writes to different places, on a card on which one page in 50 fails.
fn writes(design: &str, early: bool, seed: u64) -> Report {
    let job = "--name=x --direct=1 --filename=/dev/mmcblk0 --size=256m --rw=randwrite --bs=4k \
               --numjobs=4 --number_ios=500 --continue_on_error=all";
    let jobs = parse_args(job.split_whitespace(), &NoSource).unwrap();
    let device = format!("base = \"emmc-hs400-sprd\"\n[card.write]\nearly = {early}\n");
    let faults = FaultRules::parse("faults.toml", "[card]\nprogram-one-in = 50\n").unwrap();
    let device = Device::parse("card", &device).unwrap();
    let design = Design::lookup(design).unwrap();
    let verify = Verify::default();
    let conditions =
        Conditions { faults: Some(&faults), verify: Some(&verify), ..Conditions::new(seed) };
    Simulation::under(&jobs, &device, &design, conditions).unwrap().finish().unwrap()
}

fn missing(report: &Report) -> u64 {
    report.verified.as_ref().unwrap().violation_count
}

fn lost(report: &Report) -> u64 {
    report.family.mmc.as_ref().unwrap().lost_writes
}

// [lost-write-fails-flush]
#[test]
fn each_missing_write_is_counted() {
    for design in ["hsq", "cqe"] {
        for early in [false, true] {
            for seed in 0..4 {
                let report = writes(design, early, seed);
                let missing = missing(&report);
                let lost = lost(&report);
                // No command follows the last write, so its error is never seen.
                assert!(missing <= lost + 1, "{design}: {missing} places, {lost} counted");
                // A command queue sees most errors in time, in responses during transfers.
                let least = if design == "hsq" { 10 } else { 0 };
                assert!(missing >= least, "{design}: {missing} of about 40 pages that failed");
            }
        }
    }
}

#[test]
fn each_counted_write_is_missing() {
    for seed in 0..4 {
        let report = writes("hsq", true, seed);
        let missing = missing(&report);
        let lost = lost(&report);
        // Two adjacent places count as one.
        assert!(lost <= missing + 3, "{missing} places, {lost} counted");
    }
}

#[test]
fn a_host_that_asks_after_each_write_loses_none() {
    for seed in 0..4 {
        let report = writes("mmc-blkmq", true, seed);
        assert_eq!((missing(&report), lost(&report)), (0, 0));
        let errors: u64 = report.jobs.iter().map(|job| job.stats.errors).sum();
        assert_eq!(errors, 0);
        let commands = report.family.mmc.unwrap().commands;
        let written = commands[24] + commands[25];
        assert!(written > 2010, "pages that failed were written again: {written} writes");
    }
}
