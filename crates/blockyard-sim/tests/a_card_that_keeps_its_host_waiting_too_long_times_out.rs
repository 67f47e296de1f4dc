//! A host gives up a card that keeps it waiting for longer than its registers say that it may, looks how it
//! is, and tries again; one that takes long, and no longer than that, is waited for.

use blockyard::time::Duration;
use blockyard_sim::data::verify::Verify;
use blockyard_sim::job::{NoSource, parse_args};
use blockyard_sim::profile::{Design, Device};
use blockyard_sim::simulate::{Conditions, Simulation};

/// Writes in sequence on an eMMC device of which one page in 400 takes so much longer, in ms: how often
/// something failed on the bus, and how long all of it took. Nothing is lost.
fn stalled(design: &str, stall_ms: u64, early: bool) -> (u64, Duration) {
    let job = "--name=x --direct=1 --filename=/dev/mmcblk0 --size=8m --rw=write --bs=64k";
    let jobs = parse_args(job.split_whitespace(), &NoSource).unwrap();
    let device = format!(
        "base = \"emmc-hs400-sprd\"\n[card.write]\nearly = {early}\nbuffer = \"64KiB\"\n\
         [card.stall]\none-in-pages = 400\nleast = \"{stall_ms}ms\"\nmost = \"{stall_ms}ms\""
    );
    let device = Device::parse("card", &device).unwrap();
    let built_in = Design::lookup(design).unwrap();
    let verify = Verify::default();
    let conditions = Conditions { verify: Some(&verify), ..Conditions::new(2) };
    let mut simulation = Simulation::under(&jobs, &device, &built_in, conditions).unwrap();
    while simulation.advance(1000).unwrap() {}
    let mmc = simulation.world().host.driver.model().mmc().unwrap();
    let failures = mmc.counts().failures;
    let report = simulation.report();
    assert_eq!(report.verified.unwrap().violation_count, 0, "{design}");
    assert_eq!(report.jobs.iter().map(|job| job.stats.errors).sum::<u64>(), 0, "{design}");
    (failures, report.span)
}

/// 15 ms to the first data, 10 times that at most, 8 times that for a write.
const LIMIT_MS: u64 = 15 * 10 * 8;

#[test]
fn a_stall_within_the_limit_is_waited_for_and_a_longer_one_is_an_error() {
    // Busy after a write that is programmed before it ends, and between blocks of one that is not.
    for (design, early) in [("mmc-serial", true), ("hsq", false), ("hsq", true)] {
        let (failures, span) = stalled(design, LIMIT_MS - 50, early);
        assert_eq!(failures, 0, "{design}, early: {early}");
        assert!(span > Duration::from_ms(LIMIT_MS), "{design}: it was waited for");
        let (failures, _) = stalled(design, LIMIT_MS + 50, early);
        assert!(failures > 0, "{design}, early: {early}");
    }
}
