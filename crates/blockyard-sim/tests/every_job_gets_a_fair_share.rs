//! Jobs with the same demand get about the same share, in whatever order they start.

use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::Simulation;

const JOBS: u64 = 20;

/// Returns the I/Os that each of [`JOBS`] jobs has done in half a second, one at a time.
fn done(rw: &str, device: &str, design: &str) -> Vec<u64> {
    let line = format!(
        "--name=j --filename=/dev/mmcblk0 --direct=1 --rw={rw} --bs=4k --size=1g --time_based \
         --runtime=500ms --numjobs={JOBS}"
    );
    let jobs = parse_args(line.split_whitespace(), &NoSource).unwrap();
    let device = Device::lookup(device).unwrap();
    let design = Design::lookup(design).unwrap();
    let report = Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap();
    report.jobs.iter().map(|job| job.stats.measured().map(|of| of.ios).sum()).collect()
}

/// With `mq-none` on a card, the first two of twenty jobs once took the whole budget. A job whose
/// I/O had ended submitted the next one before the run that should send the other jobs' requests,
/// and got the budget that the completion had freed. The other jobs made no progress until the
/// first two had ended.
#[test]
fn each_of_twenty_jobs_on_a_card_gets_at_least_half_its_share() {
    for design in ["mq-none", "mq-deadline", "mq-kyber", "mmc-serial", "mmc-blkmq", "hsq", "cqe"] {
        for rw in ["read", "randread", "write", "randwrite"] {
            let done = done(rw, "emmc-hs400-sprd", design);
            let least = done.iter().min().unwrap();
            let all = done.iter().sum::<u64>();
            assert!(2 * least * JOBS >= all, "{design}, {rw}: {done:?}");
        }
    }
}
