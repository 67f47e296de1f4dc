//! More threads than a device has tags: each of them gets its turn, wherever it runs.

use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::Simulation;

/// 64 writers and a reader on a disk with 32 commands. The reader gets a tag after the writers that
/// wait with it, which is well below a second: a waiter that found no tag runs before others, and
/// on an idle processor. A write takes half a turn, 4 ms, as the cache is full: 64 of them are a
/// quarter of a second, so the reader does some 120 reads in 30 s.
#[test]
fn a_reader_beside_more_writers_than_tags_is_served() {
    let device = Device::lookup("hdd-7200").unwrap();
    let jobs = "--name=global --direct=1 --time_based --runtime=30s --bs=4k --size=1g --ioengine=psync \
                --name=reader --rw=randread --name=flood --rw=randwrite --numjobs=64 --group_reporting";
    let jobs = parse_args(jobs.split_whitespace(), &NoSource).unwrap();
    let [none, deadline] = ["mq-none", "mq-deadline"].map(|design| {
        let design = Design::lookup(design).unwrap();
        let report = Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap();
        let reads = report.jobs[0].stats.ops.read.as_ref().unwrap();
        (reads.ios, reads.lat_ns.max() / 1_000_000)
    });
    for (ios, max_ms) in [none, deadline] {
        assert!(ios > 100 && max_ms < 1500, "{ios} reads, each within {max_ms} ms");
    }
}
