//! A page that cannot be programmed shows in the card's next response. Who asks after each write hears of
//! it and writes again. Who does not has told by then that the write is done: it is lost, and counted.

use blockyard_sim::data::verify::Verify;
use blockyard_sim::job::{NoSource, parse_args};
use blockyard_sim::profile::{Design, Device, FaultRules};
use blockyard_sim::simulate::{Conditions, Report, Simulation};

/// Two thousand random writes, each to a place of its own, on a card of which one page in 50 fails.
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
    report.mmc.as_ref().unwrap().lost_writes
}

#[test]
fn each_place_that_misses_its_data_is_a_write_that_was_counted() {
    for design in ["hsq", "cqe"] {
        for early in [false, true] {
            for seed in 0..4 {
                let report = writes(design, early, seed);
                let (missing, lost) = (missing(&report), lost(&report));
                // After the last write of all nothing is sent, so that nobody hears of it.
                assert!(missing <= lost + 1, "{design}: {missing} places, {lost} counted");
                // A command queue hears of most in time, from responses that come beside data.
                let least = if design == "hsq" { 10 } else { 0 };
                assert!(missing >= least, "{design}: {missing} of about 40 pages that failed");
            }
        }
    }
}

#[test]
fn of_writes_one_by_one_no_more_are_counted_than_are_missing() {
    for seed in 0..4 {
        let report = writes("hsq", true, seed);
        let (missing, lost) = (missing(&report), lost(&report));
        // Two places side by side are one.
        assert!(lost <= missing + 3, "{missing} places, {lost} counted");
    }
}

#[test]
fn who_asks_after_each_write_loses_none() {
    for seed in 0..4 {
        let report = writes("mmc-blkmq", true, seed);
        assert_eq!((missing(&report), lost(&report)), (0, 0));
        let errors: u64 = report.jobs.iter().map(|job| job.stats.errors).sum();
        assert_eq!(errors, 0);
        let commands = report.mmc.unwrap().commands;
        let written = commands[24] + commands[25];
        assert!(written > 2010, "pages that failed were written again: {written}");
    }
}
