//! Locks that several processors want: each queue has its own, and a processor that waits for one is busy meanwhile.

use blockyard::time::Duration;
use blockyard_sim::job::{NoSource, parse_args};
use blockyard_sim::profile::{Design, Device};
use blockyard_sim::simulate::{Report, Simulation};

/// Runs fio's `options` for 2 ms of virtual time on disks that complete at once.
fn run(disks: u16, design: &str, options: &str) -> Report {
    let device = Device::lookup("null").unwrap().with_disks(disks).unwrap();
    let all = format!(
        "--direct=1 --rw=randread --bs=4k --ioengine=io_uring --iodepth=8 --time_based --runtime=2ms {options}"
    );
    let jobs = parse_args(all.split_whitespace(), &NoSource).unwrap();
    let design = Design::lookup(design).unwrap();
    Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap()
}

fn ios(report: &Report) -> u64 {
    report.jobs.iter().flat_map(|job| job.stats.measured()).map(|of| of.ios).sum()
}

/// [lock-before-work] Once there was one lock for all disks of a host.
#[test]
fn two_disks_do_not_wait_for_the_locks_of_each_other() {
    for design in ["legacy-deadline", "mq-deadline"] {
        let apart = run(2, design, "--name=a --filename=/dev/a --name=b --filename=/dev/b");
        let together = run(2, design, "--name=a --filename=/dev/a --numjobs=2");
        assert_eq!(apart.totals.spinning, Duration::ZERO, "{design}");
        assert!(together.totals.spinning > Duration::ZERO, "{design}");
    }
}

/// One job does its I/O on both disks in turn, and so waits for both locks.
#[test]
fn a_job_on_two_disks_waits_for_the_jobs_of_both() {
    let own = "--name=a --filename=/dev/a --name=b --filename=/dev/b";
    let third = " --name=c --filename=/dev/a:/dev/b";
    let all = run(2, "legacy-deadline", &format!("{own}{third}"));
    assert!(all.totals.spinning > Duration::ZERO);
    let of_third: u64 = all.jobs[2].stats.measured().map(|of| of.ios).sum();
    assert!(of_third > 0 && of_third < ios(&run(2, "legacy-deadline", third)), "{of_third}");
}
