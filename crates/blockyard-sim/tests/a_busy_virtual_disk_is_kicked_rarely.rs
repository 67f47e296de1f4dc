//! A guest kicks the host for a request only where the host's thread sleeps, and the thread bounds
//! the rate of requests.

use blockyard_devices::fronts::DriveReport;
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::Simulation;

fn random_reads(depth: u32) -> DriveReport {
    let args = format!(
        "--name=x --direct=1 --ioengine=libaio --iodepth={depth} --size=10g --time_based --runtime=100ms --rw=randread --bs=4k"
    );
    let jobs = parse_args(args.split_whitespace(), &NoSource).unwrap();
    // The thread needs 2 us for a request and 2 us for its answer.
    let device = "base = \"virtio-3dxpoint\"\n[virtio]\ninterval = \"2us\"\nanswer = \"2us\"";
    let device = Device::parse("disk", device).unwrap();
    let design = Design::lookup("mq-none").unwrap();
    let report = Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap();
    report.family.drive.unwrap()
}

#[test]
fn a_lone_request_costs_a_kick_and_many_cost_few() {
    let alone = random_reads(1);
    assert_eq!(alone.doorbells, alone.commands, "the host sleeps between two requests");
    let many = random_reads(64);
    assert!(many.doorbells * 100 < many.commands, "{many:?}");
}

#[test]
fn the_thread_of_the_host_bounds_the_rate() {
    let commands = random_reads(64).commands;
    // 100 ms, 4 us each, and up to 64 at the end.
    assert!((24_900..=25_100).contains(&commands), "{commands}");
}
