//! Queue maps and polled hardware queues, from a job's `hipri` and a design's keys to the work of
//! each processor: no interrupts, and spins of whole polls. Expectations are computed from the
//! profile by hand.

use blockyard::bio::{Flags, Op};
use blockyard::time::Instant;
use blockyard::trace::{Action, Event, Sink};
use blockyard::unit::{CpuId, HctxId};
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{JobFile, NoSource, parse_bytes};
use blockyard_fio::measure::Measured;
use blockyard_sim::simulate::{Conditions, Report, Simulation, SimulationError};
use blockyard_trace::observe::{Observer, Work};
use std::collections::BTreeSet;

/// A device with a response time of 100 us, and a machine whose costs are easy to add up.
const DEVICE: &str = "base = \"null\"\n[null]\ncompletion = \"timer\"\ncompletion-time = \"100us\"\n\
                      depth = 64\n[cpu]\ncpus = 4\nsyscall = \"300ns\"\nsubmit = \"700ns\"\n\
                      tag = \"0ns\"\nmerge-try = \"15ns\"\ndispatch = \"400ns\"\ncomplete = \"500ns\"\n\
                      interrupt = \"800ns\"\nwakeup = \"700ns\"\ncontext-switch = \"1.2us\"\n\
                      poll = \"150ns\"\n";

/// Records the work done and the queue of each request.
#[derive(Debug, Default)]
struct Watch {
    interrupts: u64,
    looks: u64,
    /// Spins that ended between two polls of 150 ns.
    cut_spins: u64,
    /// Hardware queue, operation and polling of each issued request.
    issued: BTreeSet<(u16, Op, bool)>,
}

impl Sink for Watch {
    fn event(&mut self, event: &Event<'_>) {
        if event.action == Action::Issue {
            let HctxId(hctx) = event.hctx;
            self.issued.insert((hctx, event.op, event.flags.contains(Flags::POLLED)));
        }
    }
}

impl Observer for Watch {
    fn work_begins(&mut self, _cpu: CpuId, work: &Work, _now: Instant) {
        match work {
            Work::Complete { .. } | Work::Vector(_) => self.interrupts += 1,
            Work::Poll(_) => self.looks += 1,
            _ => {}
        }
    }

    fn polled(&mut self, _cpu: CpuId, since: Instant, until: Instant) {
        self.cut_spins += u64::from(!until.since(since).as_ns().is_multiple_of(150));
    }
}

fn jobs(text: &str) -> JobFile {
    let text = format!("[global]\ndirect=1\nfilename=/dev/a\nsize=1m\n{text}\n");
    parse_bytes("a.fio", text.as_bytes(), &NoSource).unwrap()
}

fn design(queue: &str) -> Design {
    Design::parse("my.toml", &format!("base = \"mq-none\"\n[queue]\n{queue}\n")).unwrap()
}

fn try_run(text: &str, device: &str, queue: &str) -> Result<(Report, Watch), SimulationError> {
    let jobs = jobs(text);
    let mut watch = Watch::default();
    let device = Device::parse("test", device).unwrap();
    let conditions = Conditions::new(3);
    let mut simulation =
        Simulation::observed(&jobs, &device, &design(queue), conditions, &mut watch)?;
    simulation.check_every_step();
    let report = simulation.finish()?;
    Ok((report, watch))
}

fn run(text: &str, device: &str, queue: &str) -> (Report, Watch) {
    try_run(text, device, queue).unwrap()
}

fn measured(report: &Report, job: usize) -> &Measured {
    report.jobs[job].stats.measured().next().unwrap()
}

const LONE: &str = "[a]\nrw=randread\nioengine=pvsync2\nnumjobs=1";

#[test]
fn a_polled_read_takes_the_device_time_up_to_the_next_look_and_no_interrupt() {
    let (report, watch) = run(&format!("{LONE}\nhipri"), DEVICE, "poll-queues = 1");
    // A bio, its attempt to merge, the driver, the call; then polls of 150 ns until one begins at
    // or after 100 us, that poll, and the end of the request. The first read also switches to the
    // job.
    let submit = 700 + 15 + 400 + 300;
    let spin = 100_000_u64.div_ceil(150) * 150;
    let latency = submit + spin + 150 + 500;
    let lat_ns = &measured(&report, 0).lat_ns;
    assert_eq!((lat_ns.min(), lat_ns.max()), (latency, latency + 1200));
    assert_eq!((watch.interrupts, watch.looks), (0, 256));
    // The processor of the job did no other work and was never idle.
    assert_eq!(report.totals.cpu, report.span);
    assert_eq!(report.totals.polling.as_ns(), 256 * spin);
    assert_eq!(report.jobs[0].stats.cpu_ns, report.span.as_ns());
    assert_eq!((report.totals.wakeups, report.totals.context_switches), (0, 1));
    assert_eq!(watch.issued, BTreeSet::from([(1, Op::Read, true)]));
}

#[test]
fn the_same_read_with_interrupts_takes_longer_and_uses_less_processor_time() {
    let (polled, _) = run(&format!("{LONE}\nhipri"), DEVICE, "poll-queues = 1");
    let (slept, watch) = run(LONE, DEVICE, "poll-queues = 1");
    // An interrupt, the end of the request and the wake-up replace the polls.
    let latency = 700 + 15 + 400 + 300 + 100_000 + 800 + 500 + 700;
    assert_eq!(measured(&slept, 0).lat_ns.min(), latency);
    assert!(measured(&polled, 0).lat_ns.min() < latency);
    assert!(slept.totals.cpu.as_ns() * 10 < polled.totals.cpu.as_ns());
    assert_eq!((watch.interrupts, watch.looks, slept.totals.polling.as_ns()), (256, 0, 0));
    assert_eq!(watch.issued, BTreeSet::from([(0, Op::Read, false)]));
}

#[test]
fn each_kind_of_io_uses_its_own_hardware_queues() {
    let device = DEVICE.replace("[null]\n", "[null]\nsubmit-queues = 2\n");
    let text = "[r]\nrw=randread\nnumjobs=4\n[w]\nrw=randwrite\nnumjobs=4\n\
                [p]\nrw=randrw\nioengine=io_uring\niodepth=4\nhipri\nnumjobs=4";
    assert_eq!(
        run(text, &device, "read-queues = 1\npoll-queues = 2").1.issued,
        BTreeSet::from([
            (0, Op::Write, false),
            (1, Op::Write, false),
            (2, Op::Read, false),
            (3, Op::Read, true),
            (3, Op::Write, true),
            (4, Op::Read, true),
            (4, Op::Write, true),
        ])
    );
    assert_eq!(
        run(text, &device, "hw-queues = 1\npoll-queues = 1").1.issued,
        BTreeSet::from([
            (0, Op::Write, false),
            (0, Op::Read, false),
            (1, Op::Read, true),
            (1, Op::Write, true)
        ])
    );
}

#[test]
fn a_job_that_neither_reads_nor_polls_is_not_affected_by_the_kinds() {
    let write = "[w]\nrw=randwrite\nioengine=libaio\niodepth=8\nnumjobs=4";
    let plain = run(write, DEVICE, "").0;
    let kinds = run(write, DEVICE, "read-queues = 2\npoll-queues = 3").0;
    assert_eq!((plain.hctxs, kinds.hctxs), (1, 6));
    assert_eq!(format!("{:?}", plain.jobs), format!("{:?}", kinds.jobs));
    assert_eq!(format!("{:?}", plain.totals), format!("{:?}", kinds.totals));
    let none = run(write, DEVICE, "read-queues = 0\npoll-queues = 0").0;
    assert_eq!(format!("{none:?}"), format!("{plain:?}"));
}

/// A completion wakes a job that waits for a tag, and on a polled queue only a poll finds
/// completions. If the job slept, no thread would poll.
#[test]
fn a_job_that_waits_for_a_tag_of_a_polled_queue_keeps_polling() {
    let device = DEVICE.replace("depth = 64", "depth = 4");
    let deep = "[a]\nrw=randread\nioengine=io_uring\niodepth=32\nhipri";
    let (report, watch) = run(deep, &device, "poll-queues = 1");
    assert_eq!(measured(&report, 0).ios, 256);
    assert!(report.totals.tag_waits > 0, "the depth of the job is eight times that of the queue");
    assert_eq!((watch.interrupts, report.totals.wakeups), (0, 0));
    assert_eq!(report.totals.cpu, report.span);
}

#[test]
fn one_poll_finds_the_completions_of_all_jobs() {
    let four = "[a]\nrw=randread\nioengine=io_uring\niodepth=4\nhipri\nnumjobs=4";
    for cpus in ["cpus_allowed=0", "cpus_allowed=0-1"] {
        let (report, watch) = run(&format!("{four}\n{cpus}"), DEVICE, "poll-queues = 1");
        let ios: u64 = (0..4).map(|job| measured(&report, job).ios).sum();
        assert_eq!((ios, watch.interrupts, report.totals.wakeups), (1024, 0, 0), "{cpus}");
        // One poll between any two steps of jobs, and the polls that find a completion: not one per
        // 150 ns.
        assert!(watch.looks <= 2 * ios, "{cpus}: {} looks", watch.looks);
        assert!(report.totals.events < 20 * ios, "{cpus}: {} events", report.totals.events);
    }
}

/// A job that is never idle shares a processor with a job that polls: both make progress.
#[test]
fn a_busy_neighbour_does_not_stop_a_processor_from_polling() {
    let device = DEVICE.replace("\"timer\"", "\"none\"");
    let text = "[busy]\nrw=randread\ncpus_allowed=0\nsize=64m\n\
                [poll]\nrw=randread\nioengine=io_uring\nhipri\ncpus_allowed=0";
    let (report, watch) = run(text, &device, "poll-queues = 1");
    assert_eq!((measured(&report, 0).ios, measured(&report, 1).ios), (16_384, 256));
    assert!(report.jobs[1].stats.ended < report.jobs[0].stats.ended, "while the other job ran");
    assert!(watch.looks >= 256);
}

#[test]
fn a_polling_job_on_a_design_without_polled_queues_is_refused_with_its_line() {
    fn refuse(queue: &str) -> String {
        let refused = try_run("[a]\nrw=randread\nioengine=io_uring\nhipri", DEVICE, queue);
        refused.map(drop).unwrap_err().to_string()
    }
    for queue in ["", "read-queues = 1", "poll-queues = 0"] {
        assert_eq!(
            refuse(queue),
            "a.fio:8: `hipri` polls for completions, and design `my.toml` has no hardware queue \
             that is polled: give it `poll-queues` in `[queue]`"
        );
    }
    assert_eq!(
        refuse("poll-queues = 5"),
        "my.toml:3: `poll-queues` is `5`, out of range (0 to 4): the device's machine has 4 CPUs"
    );
    assert_eq!(
        refuse("poll-queues = 1\nread-queues = 9"),
        "my.toml:4: `read-queues` is `9`, out of range (0 to 4): the device's machine has 4 CPUs"
    );
}

#[test]
fn measuring_that_begins_during_a_spin_counts_the_rest_of_it() {
    let ramp = "ramp_time=50us\nruntime=1ms\ntime_based\nhipri";
    let (report, _) = run(&format!("{LONE}\n{ramp}"), DEVICE, "poll-queues = 1");
    assert_eq!(report.totals.cpu, report.span);
    assert_eq!(report.jobs[0].stats.cpu_ns, report.span.as_ns());
}

/// A waiter that found no tag runs first when the next one is free.
#[test]
fn polling_jobs_that_share_a_tag_get_equal_shares() {
    let device = DEVICE.replace("depth = 64", "depth = 1");
    let text = "[a]\nrw=randread\nioengine=io_uring\nhipri\nnumjobs=2\ntime_based\nruntime=200ms";
    for cpus in ["cpus_allowed=0", "cpus_allowed=0-1", "numjobs=2"] {
        let (report, watch) = run(&format!("{text}\n{cpus}"), &device, "poll-queues = 1");
        let [first, second] = [0, 1].map(|job| measured(&report, job).ios);
        assert!(first.abs_diff(second) * 20 < first, "{cpus}: {first} and {second} I/Os");
        assert_eq!((watch.interrupts, watch.cut_spins), (0, 0), "{cpus}");
    }
}
