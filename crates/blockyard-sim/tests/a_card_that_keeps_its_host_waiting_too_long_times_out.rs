//! A host gives up on a card that is busy for longer than its registers allow, checks its state,
//! and tries again. The host waits for a card that is busy for a long time within that limit.

use blockyard::time::Duration;
use blockyard_devices::data::verify::Verify;
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::{Conditions, Simulation};

/// Sequential writes on an eMMC device on which one page in 400 takes `stall_ms` longer. Returns
/// the number of failures on the bus and the duration of the run. No data is lost.
fn stalled(design: &str, stall_ms: u64, early: bool) -> (u64, Duration) {
    let job = "--name=x --direct=1 --filename=/dev/mmcblk0 --size=8m --rw=write --bs=64k";
    let jobs = parse_args(job.split_whitespace(), &NoSource).unwrap();
    let device = format!(
        "base = \"emmc-hs400-sprd\"\n[card.write]\nearly = {early}\nbuffer = \"64KiB\"\n\
         [card.stall]\none-in-pages = 400\nlength = \"{stall_ms}ms\""
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

/// 15 ms to the first data, at most 10 times that, and 8 times that for a write.
const LIMIT_MS: u64 = 15 * 10 * 8;

#[test]
fn the_host_waits_for_a_stall_within_the_limit_and_a_longer_one_is_an_error() {
    // Busy after a write that is programmed before it ends, or between the blocks of an early one.
    for (design, early) in [("mmc-serial", true), ("hsq", false), ("hsq", true)] {
        let (failures, span) = stalled(design, LIMIT_MS - 50, early);
        assert_eq!(failures, 0, "{design}, early: {early}");
        assert!(span > Duration::from_ms(LIMIT_MS), "{design}: the host waited for the card");
        let (failures, _) = stalled(design, LIMIT_MS + 50, early);
        assert!(failures > 0, "{design}, early: {early}");
    }
}
