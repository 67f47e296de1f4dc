//! The queues of UFS 4 share the commands that the device takes, while each queue of NVMe has its own.

use blockyard_sim::job::{NoSource, parse_args};
use blockyard_sim::profile::{Design, Device};
use blockyard_sim::simulate::Simulation;

/// Returns the random reads per second of four jobs on four processors, on the memory of `nvme-3dxpoint` behind `front`.
fn rate(front: &str) -> u64 {
    let text = format!("base = \"nvme-3dxpoint\"\n{front}\n[cpu]\ncpus = 4");
    let device = Device::parse("device", &text).unwrap();
    let options = "--name=x --direct=1 --rw=randread --bs=4k --size=1g --ioengine=libaio --iodepth=32 --numjobs=4 \
                   --cpus_allowed=0-3 --cpus_allowed_policy=split --time_based --runtime=50ms";
    let jobs = parse_args(options.split_whitespace(), &NoSource).unwrap();
    let design = Design::lookup("mq-none").unwrap();
    let report = Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap();
    let ios = report.jobs.iter().flat_map(|job| job.stats.measured()).map(|done| done.ios);
    ios.sum::<u64>() * 20
}

fn ufs(hw_queues: u16) -> String {
    format!(
        "[ufs]\nhw-queues = {hw_queues}\ndepth = 2\ndoorbell = \"0ns\"\ninterval = \"1us\"\n\
         command = \"1us\"\nlink = \"2GB/s\"\nframe = \"256B\"\nheader = \"16B\""
    )
}

#[test]
fn more_queues_are_not_more_commands() {
    let [one, four] = [1, 4].map(|hw_queues| rate(&ufs(hw_queues)));
    assert!(four.abs_diff(one) <= one / 10, "{four} a second with four queues, {one} with one");
    let own = rate("[nvme]\nhw-queues = 4\ndepth = 2");
    assert!(
        own > four * 2,
        "{own} a second where each queue has two commands, {four} with two in all"
    );
}
