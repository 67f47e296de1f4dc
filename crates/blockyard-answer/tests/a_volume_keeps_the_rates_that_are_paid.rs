//! The limits of cloud volumes, as their provider states them, seen by jobs.

use blockyard_answer::Figures;
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::Simulation;

/// The IOPS and MiB per second of a job of 10 s at depth 32.
fn rates(device: &str, rw: &str, bs: &str) -> (u64, u64) {
    let args = format!(
        "--name=x --direct=1 --ioengine=libaio --iodepth=32 --size=10g --time_based --runtime=10 --rw={rw} --bs={bs}"
    );
    let jobs = parse_args(args.split_whitespace(), &NoSource).unwrap();
    let device = Device::parse("volume", device).unwrap();
    let design = Design::lookup("mq-none").unwrap();
    let report = Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap();
    let bytes = Figures::of(&report, 1).bytes;
    let block = if bs == "4k" { 4096 } else { 1 << 20 };
    (bytes / block / 10, (bytes >> 20) / 10)
}

/// Whether `rate` is `limit`, or a little more: a tenth of a second of credit in 10 s, and what
/// ends after them.
fn is_near(rate: u64, limit: u64) -> bool {
    (limit..=limit + limit / 30).contains(&rate)
}

#[test]
fn a_volume_has_the_io_rate_that_is_paid_and_not_more() {
    for rw in ["randread", "randwrite"] {
        let (iops, _) = rates("base = \"cloud-gp3\"", rw, "4k");
        assert!(is_near(iops, 3000), "{rw}: {iops}");
    }
}

#[test]
fn large_ios_meet_the_limit_of_bytes_first() {
    let (_, mib) = rates("base = \"cloud-gp3\"", "read", "1m");
    assert!(is_near(mib, 125), "{mib} MiB/s");
}

/// A volume of 300 I/Os per second with credit for a second above that: 1.1 s at 3000, and the rest
/// at 300.
#[test]
fn a_volume_falls_to_its_own_rate_when_its_credit_is_spent() {
    let (on_credit, _) = rates("base = \"cloud-gp2\"", "randread", "4k");
    assert!(is_near(on_credit, 3000), "{on_credit}");
    let (spent, _) = rates("base = \"cloud-gp2\"\n[volume.iops]\ncredit = 3000", "randread", "4k");
    assert!(is_near(spent, 600), "{spent}");
    let (none, _) = rates("base = \"cloud-gp2\"\n[volume.iops]\ncredit = 1", "randread", "4k");
    assert!(is_near(none, 300), "{none}");
}

#[test]
fn a_bucket_that_fills_faster_than_it_empties_is_refused() {
    let told = Device::parse("volume", "base = \"cloud-gp3\"\n[volume.iops]\nrate = 4000");
    let told = told.unwrap_err().to_string();
    assert!(
        told.starts_with("volume") && told.contains("`3000`, less than `rate`, `4000`"),
        "{told}"
    );
}
