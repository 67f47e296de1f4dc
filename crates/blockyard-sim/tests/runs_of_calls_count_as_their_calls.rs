//! Runs of equal calls ([run-is-its-calls]): a job that writes within dirty pages is simulated
//! without an event for each call. An observer looks at each call, so a simulation with one makes
//! no runs, and is the reference: both reports are equal to the last digit.

use blockyard::prng::Prng;
use blockyard::trace::{Event, Sink};
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_bytes};
use blockyard_sim::simulate::{Conditions, Simulation};
use blockyard_trace::observe::Observer;

/// An observer that looks at nothing.
#[derive(Debug)]
struct Blind;

impl Sink for Blind {
    fn event(&mut self, _event: &Event<'_>) {}
}

impl Observer for Blind {}

/// A drawn simulation.
#[derive(Debug)]
struct Plan {
    device: &'static str,
    design: &'static str,
    cpus: u32,
    /// Keys of the machine.
    keys: &'static str,
    jobs: String,
}

/// Limits within a few milliseconds' writes, so that flushers write and writers pause.
const TIGHT: &str = "dirty-background-bytes = \"512KiB\"\ndirty-bytes = \"2MiB\"\n\
                     dirty-expire = \"60ms\"\ndirty-writeback = \"20ms\"\n";

impl Plan {
    fn new(prng: &mut Prng) -> Self {
        let mut jobs = "[global]\nruntime=50ms\nbwavgtime=10\niopsavgtime=7\n".to_owned();
        for job in 0..prng.pick(&[1, 1, 1, 1, 2, 3]) {
            if job > 0 && prng.below(2) == 0 {
                jobs += "[direct]\nrw=randwrite\nbs=4k\nsize=1m\ndirect=1\nrate_iops=3k\n";
                continue;
            }
            // Most draws of each option are plain, so that most jobs have runs.
            let lines = [
                prng.pick(&["rw=write", "rw=randwrite", "rw=randrw\nrwmixread=2", "rw=write:64k"]),
                prng.pick(&["bs=4k", "bs=4k", "bs=4k", "bs=512", "bs=3k", "bsrange=1k-4k"]),
                prng.pick(&["size=64k", "size=1m\nnrfiles=3", "size=300k\nnrfiles=2"]),
                prng.pick(&["loops=3", "loops=20", "time_based", "number_ios=900\ntime_based"]),
                prng.pick(&["", "invalidate=0", "invalidate=0", "invalidate=0"]),
                prng.pick(&[
                    "",
                    "",
                    "",
                    "fdatasync=37",
                    "startdelay=7ms",
                    "ramp_time=20ms",
                    "pre_read=1",
                ]),
                prng.pick(&["", "", "", "", "thinktime=1ms\nthinktime_blocks=50", "rate=80m"]),
                prng.pick(&["", "", "", "", "iodepth=4\nioengine=libaio", "numjobs=2"]),
                prng.pick(&["", "", "", "", "max_latency=1s", "flow=2"]),
            ];
            jobs += &format!("[job{job}]\n{}\n", lines.join("\n"));
        }
        let devices = ["nvme-tlc", "hdd-7200", "sata-ssd", "null", "emmc-51-large", "pmem-dram"];
        let device = prng.pick(&devices);
        let designs = ["mq-none", "mq-none", "mq-none", "mq-kyber", "mq-deadline"];
        let design = if device == "pmem-dram" { "pmem-raw" } else { prng.pick(&designs) };
        Self {
            device,
            design,
            cpus: prng.pick(&[1, 2, 4]),
            keys: prng.pick(&["", "", TIGHT]),
            jobs,
        }
    }

    /// Returns the report in words, and the number of calls in runs.
    fn run(&self, observer: Option<&mut dyn Observer>) -> (String, u64) {
        let jobs = parse_bytes("f.fio", self.jobs.as_bytes(), &NoSource).expect("a job file");
        let keys =
            format!("base = \"{}\"\n[cpu]\ncpus = {}\n{}", self.device, self.cpus, self.keys);
        let device = Device::parse("f.toml", &keys).expect("a device");
        let design = Design::lookup(self.design).expect("a design");
        let conditions = Conditions::new(7);
        let made = match observer {
            Some(observer) => Simulation::observed(&jobs, &device, &design, conditions, observer),
            None => Simulation::under(&jobs, &device, &design, conditions),
        };
        let mut simulation = made.unwrap_or_else(|error| panic!("{self:?}: {error}"));
        while simulation.advance(997).unwrap_or_else(|error| panic!("{self:?}: {error}")) {}
        (format!("{:?}", simulation.report()), simulation.world().calls_in_runs())
    }
}

#[test]
fn a_run_of_calls_counts_as_its_calls_one_by_one() {
    let mut with_runs = 0;
    let mut calls = 0;
    for seed in 0..120 {
        let plan = Plan::new(&mut Prng::new(seed));
        let (reference, none) = plan.run(Some(&mut Blind));
        let (report, in_runs) = plan.run(None);
        assert_eq!(none, 0, "an observed simulation makes no runs");
        assert!(reference == report, "seed {seed} with {in_runs} calls in runs: {plan:?}");
        with_runs += u32::from(in_runs > 0);
        calls += in_runs;
    }
    println!("{calls} calls in runs in {with_runs} of 120 simulations");
    assert!(with_runs > 20 && calls > 100_000, "{calls} calls in {with_runs} simulations");
}

/// The job writes its 256 pages ten times. The first pass makes them dirty, and the 2304 other
/// calls change nothing. A call is outside a run if it is the first one after a sample of the run,
/// or after 997 events: in 3.2 ms that is far less than one of twenty.
#[test]
fn calls_that_write_to_dirty_pages_are_in_runs() {
    let jobs = "[w]\nioengine=sync\nrw=write\nbs=4k\nsize=1m\nloops=10\ninvalidate=0\n";
    let jobs = jobs.to_owned();
    let plan = Plan { device: "nvme-tlc", design: "mq-none", cpus: 2, keys: "", jobs };
    let (_, calls) = plan.run(None);
    println!("{calls} of 2304 calls that write to dirty pages were made in runs");
    assert!((2189..=2304).contains(&calls), "{calls}");
}
