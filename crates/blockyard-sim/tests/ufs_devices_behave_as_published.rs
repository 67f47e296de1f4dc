//! UFS devices: what their makers state, and what the queues of UFS 4 share.

use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::Simulation;

/// Returns the I/Os per second of a job with these options of fio.
fn rate(device: &Device, options: &str) -> u64 {
    let options = format!("--name=x --direct=1 --ioengine=libaio --time_based {options}");
    let jobs = parse_args(options.split_whitespace(), &NoSource).unwrap();
    let design = Design::lookup("mq-none").unwrap();
    let report = Simulation::new(&jobs, device, &design, 1).unwrap().finish().unwrap();
    let stats = report.jobs.iter().map(|job| &job.stats);
    stats
        .map(|stats| {
            let ios: u64 = stats.measured().map(|measured| measured.ios).sum();
            ios * 1_000_000_000 / stats.runtime_ns()
        })
        .sum()
}

/// The memory of `nvme-3dxpoint` behind `front`, on four processors.
fn behind(front: &str) -> Device {
    let text = format!("base = \"nvme-3dxpoint\"\n{front}\n[cpu]\ncpus = 4");
    Device::parse("device", &text).unwrap()
}

fn ufs(hw_queues: u16) -> Device {
    behind(&format!(
        "[ufs]\nhw-queues = {hw_queues}\ndepth = 2\ndoorbell = \"0ns\"\ninterval = \"1us\"\n\
         command = \"1us\"\nlink = \"2GB/s\"\nframe = \"256B\"\nheader = \"16B\""
    ))
}

/// The queues of UFS 4 share the commands that the device takes, while each queue of NVMe has its
/// own.
#[test]
fn more_queues_are_not_more_commands() {
    let job = "--rw=randread --bs=4k --size=1g --iodepth=32 --numjobs=4 --cpus_allowed=0-3 \
               --cpus_allowed_policy=split --runtime=50ms";
    let [one, four] = [1, 4].map(|hw_queues| rate(&ufs(hw_queues), job));
    assert!(four.abs_diff(one) <= one / 10, "{four} a second with four queues, {one} with one");
    let own = rate(&behind("[nvme]\nhw-queues = 4\ndepth = 2"), job);
    assert!(
        own > four * 2,
        "{own} a second with two commands for each queue, {four} with two in all"
    );
}

/// Samsung states 2100 and 1200 MB/s in sequence for its UFS 3.1 of 512 GB, and 100 thousand random
/// reads a second; for UFS 4.0, 4200 and 2800 MB/s. No rate of reads in sequence is fitted: it is
/// what the link carries.
#[test]
fn phones_reach_the_rates_of_their_makers() {
    for (name, read, write) in [("ufs-3", 2100, 1200), ("ufs-4", 4200, 2800)] {
        let device = Device::lookup(name).unwrap();
        for (op, published) in [("read", read), ("write", write)] {
            let job = format!("--rw={op} --bs=512k --size=20g --iodepth=16 --runtime=500ms");
            let mb = rate(&device, &job) * 524_288 / 1_000_000;
            assert!(mb.abs_diff(published) * 100 <= published * 6, "{name}: {op} of {mb} MB/s");
        }
    }
    let random = "--rw=randread --bs=4k --size=20g --iodepth=32 --runtime=500ms";
    let reads = rate(&Device::lookup("ufs-3").unwrap(), random);
    assert!(reads.abs_diff(100_000) <= 5_000, "{reads} random reads a second");
}

/// Past the write booster, a phone writes at the rate of its flash: a third of that before it.
#[test]
fn a_phone_slows_down_when_its_write_booster_is_full() {
    let small = "base = \"ufs-3\"\n[flash]\nslc = \"256MiB\"";
    let device = Device::parse("device", small).unwrap();
    let job = "--rw=write --bs=512k --size=20g --iodepth=16 --ramp_time=1s --runtime=1s";
    let mb = rate(&device, job) * 524_288 / 1_000_000;
    assert!((350..=450).contains(&mb), "{mb} MB/s past the booster, 410 without one (eUFS 3.0)");
}
