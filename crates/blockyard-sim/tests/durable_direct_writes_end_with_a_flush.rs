//! A direct write with `O_SYNC` or `O_DSYNC` to a block device ends with a flush in Linux up to
//! 7.3, although it is durable already, if its call waits for it.

use blockyard::bio::Op;
use blockyard::trace::{Action, Event, Sink};
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::{Conditions, Report, Simulation};
use blockyard_trace::observe::Observer;

/// Counts the writes and flushes that the driver gets.
#[derive(Default)]
struct Issued {
    writes: u64,
    flushes: u64,
}

impl Sink for Issued {
    fn event(&mut self, event: &Event<'_>) {
        match event.op {
            _ if event.action != Action::Issue => {}
            Op::Write => self.writes += 1,
            Op::Flush => self.flushes += 1,
            _ => {}
        }
    }
}

impl Observer for Issued {}

/// Runs 64 writes on a device whose commands take 100 us, with `limits`, under a design of `keys`.
fn run(job: &str, limits: &str, keys: &str) -> (Report, [u64; 2]) {
    let common = "--name=j --direct=1 --filename=/dev/nullb0 --rw=write --bs=4k --size=256k";
    let jobs = parse_args(common.split(' ').chain(job.split(' ')), &NoSource).unwrap();
    let device = format!(
        "base = \"null\"\n[limits]\n{limits}\n[null]\ncompletion = \"timer\"\n\
         completion-time = \"100us\"\n"
    );
    let device = Device::parse("disk", &device).unwrap();
    let design = format!("base = \"mq-deadline\"\n[queue]\n{keys}\n");
    let design = Design::parse("design", &design).unwrap();
    let mut issued = Issued::default();
    let conditions = Conditions { checked: true, ..Conditions::new(1) };
    let simulation =
        Simulation::observed(&jobs, &device, &design, conditions, &mut issued).unwrap();
    let report = simulation.finish().unwrap();
    (report, [issued.writes, issued.flushes])
}

const FUA: &str = "write-cache = true\nfua = true";
const CACHE: &str = "write-cache = true\nfua = false";
const NO_CACHE: &str = "write-cache = false";

/// As recorded on Linux 6.12.117 and 7.3.4: 64 writes with FUA and 64 flushes. Without FUA the
/// queue follows each write with a flush, and its call does so again: 128. Asynchronous engines
/// leave out the second one, and without a volatile cache, or the flags, there is nothing to flush.
#[test]
fn a_call_that_waits_for_a_durable_write_flushes_before_it_returns() {
    for (job, limits, flushes) in [
        ("--sync=1", FUA, 64),
        ("--sync=dsync", FUA, 64),
        ("--sync=dsync --ioengine=pvsync2", FUA, 64),
        ("--sync=1", CACHE, 128),
        ("--sync=1", NO_CACHE, 0),
        ("--sync=0", FUA, 0),
        ("--sync=1 --ioengine=libaio", FUA, 0),
        ("--sync=1 --ioengine=io_uring --iodepth=4", FUA, 0),
        ("--sync=1 --ioengine=libaio", CACHE, 64),
    ] {
        assert_eq!(run(job, limits, "").1, [64, flushes], "{job}, {limits}");
    }
}

/// A change that is queued for Linux 7.4 leaves out the flush of the call.
#[test]
fn a_design_that_flushes_as_needed_leaves_the_second_flush_out() {
    let needed = "sync-flush = \"needed\"";
    assert_eq!(run("--sync=1", FUA, needed).1, [64, 0]);
    assert_eq!(run("--sync=1", CACHE, needed).1, [64, 64]);
}

/// Both commands of a call take 100 us, and its latency covers both: 200 us and the time of the
/// processor, which is less than 20 us.
#[test]
fn the_latency_of_a_durable_write_covers_its_flush() {
    for (keys, us) in [("", 200), ("sync-flush = \"needed\"", 100)] {
        let (report, _) = run("--sync=1", FUA, keys);
        let writes = report.jobs[0].stats.measured().next().unwrap();
        let mean_us = writes.lat_ns.mean() / 1000;
        assert!((us..us + 20).contains(&mean_us), "{mean_us} us under {keys}");
        assert_eq!(writes.lat_ns.count(), 64);
    }
}
