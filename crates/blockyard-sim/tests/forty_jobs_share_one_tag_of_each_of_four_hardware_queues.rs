//! The reproducer of Linux 5266caaf5660 under every design: one tag for each of four hardware
//! queues, and forty jobs of random 4 KiB reads and writes.
//!
//! In Linux a submitter registered for a tag just after its tag had come free, and the run hung
//! within half an hour. [sleeper-implies-tag-in-use] of `blockyard::tag` excludes that; the core's
//! `tests/bugs_linux_had.rs` has the other faults of this kind. Here each job does its I/Os in
//! virtual time, with completions later, right after the call and within it, and with a tag for
//! each hardware queue or one tag for all.

use blockyard_devices::profile::{Design, Device, builtin_designs};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::Simulation;

const IOS: u64 = 100;

fn device(completion: &str, shared_tags: bool) -> Device {
    let text = format!(
        "base = \"null\"\n[null]\ncompletion = \"{completion}\"\ncompletion-time = \"20us\"\n\
         submit-queues = 4\ndepth = 1\nshared-tags = {shared_tags}\n[cpu]\ncpus = 8\n"
    );
    Device::parse("four queues of depth one", &text).unwrap()
}

#[test]
fn forty_jobs_share_one_tag_of_each_of_four_hardware_queues() {
    let options = format!(
        "--name=j --direct=1 --filename=/dev/a --rw=randrw --bs=4k --size=1g --numjobs=40 \
         --ioengine=libaio --iodepth=4 --number_ios={IOS}"
    );
    let jobs = parse_args(options.split_whitespace(), &NoSource).unwrap();
    let designs = builtin_designs().iter().map(|builtin| Design::lookup(builtin.name).unwrap());
    // The other designs are for MMC hosts and for persistent memory.
    for design in designs.filter(|design| design.host.is_none() && design.btt.is_none()) {
        for completion in ["none", "softirq", "timer"] {
            for shared_tags in [false, true] {
                let device = device(completion, shared_tags);
                let report = Simulation::new(&jobs, &device, &design, 1).unwrap().finish();
                let what = format!("{}, {completion}, shared: {shared_tags}", design.name);
                let report = report.unwrap_or_else(|error| panic!("{what}: {error}"));
                let ios = report.jobs.iter().flat_map(|job| job.stats.measured());
                assert_eq!(ios.map(|measured| measured.ios).sum::<u64>(), 40 * IOS, "{what}");
            }
        }
    }
}
