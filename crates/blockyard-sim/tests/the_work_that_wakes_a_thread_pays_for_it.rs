//! The cost of wake-ups on an MMC host: the work that wakes a thread pays for the wake-up. The next
//! work on that processor once paid instead, even a job minutes later, and a thread that was woken
//! for a run of its hardware queue found no work. Both faults hid one wake-up per request from the
//! latency.

use blockyard::time::{Duration, Instant};
use blockyard::trace::{Event, Sink};
use blockyard::unit::CpuId;
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::{Conditions, Report, Simulation};
use blockyard_trace::observe::{Observer, Work};

/// The time that processors spent, by kind of work.
#[derive(Debug, Default)]
struct Spent {
    begun: Option<(usize, Instant)>,
    times: [Duration; KINDS.len()],
}

const KINDS: [&str; 6] = ["job", "completion", "run", "interrupt", "timer", "thread"];

fn kind(work: &Work) -> usize {
    match work {
        Work::Step(_) | Work::Copy(_) | Work::Poll(_) | Work::Actor(_) => 0,
        Work::Complete { .. } | Work::Vector(_) => 1,
        Work::Run { .. } => 2,
        Work::Interrupt => 3,
        Work::Timer => 4,
        Work::MmcDriver(_) | Work::MmcDriverStep(..) => 5,
    }
}

impl Sink for Spent {
    fn event(&mut self, _event: &Event) {}
}

impl Observer for Spent {
    fn work_begins(&mut self, _cpu: CpuId, work: &Work, now: Instant) {
        self.begun = Some((kind(work), now));
    }

    fn work_ends(&mut self, end: Instant) {
        let (kind, from) = self.begun.take().expect("work that ends should have begun");
        self.times[kind] += end.since(from);
    }
}

/// Runs 200 I/Os of one job, one at a time, on a machine with this cost of a wake-up.
fn run(rw: &str, design: &str, card: &str, wakeup: &str) -> (Report, [Duration; KINDS.len()]) {
    let device = format!(
        "base = \"emmc-hs400-sprd\"\n[host]\nbusy-detect = \"cmd13\"\n[cpu]\nwakeup = \"{wakeup}\"\n{card}"
    );
    let device = Device::parse("emmc", &device).unwrap();
    let design = format!("base = \"{design}\"\n[host]\nbusy-detect = \"cmd13\"\n");
    let design = Design::parse("asks", &design).unwrap();
    let job = format!("--name=x --direct=1 --size=1g --bs=4k --io_size=800k --rw={rw}");
    let jobs = parse_args(job.split(' '), &NoSource).unwrap();
    let conditions = Conditions::new(1);
    let mut spent = Spent::default();
    let simulation = Simulation::observed(&jobs, &device, &design, conditions, &mut spent).unwrap();
    (simulation.finish().unwrap(), spent.times)
}

const DESIGNS: [&str; 5] =
    ["mmc-serial", "mmc-double-buffer-full", "mmc-mq-step4", "mmc-mq-step15", "mmc-blkmq-4.16"];

#[test]
fn a_more_expensive_wake_up_adds_exactly_its_cost_per_wake_up() {
    for design in DESIGNS {
        for rw in ["randread", "randwrite"] {
            let (free, _) = run(rw, design, "", "0us");
            let (dear, _) = run(rw, design, "", "7us");
            assert!(
                dear.totals.wakeups >= 600,
                "{design} {rw}: wake-ups of the thread and the job"
            );
            assert_eq!(free.totals.wakeups, dear.totals.wakeups, "{design} {rw}");
            let more = dear.totals.cpu - free.totals.cpu;
            assert_eq!(more, Duration::from_us(7 * dear.totals.wakeups), "{design} {rw}");
        }
    }
}

#[test]
fn the_job_pays_for_the_dispatching_thread_and_the_interrupt_for_the_next_thread() {
    let (_, free) = run("randread", "mmc-serial", "", "0us");
    let (_, dear) = run("randread", "mmc-serial", "", "7us");
    let more: Vec<_> = (0..KINDS.len()).map(|kind| (dear[kind] - free[kind]).as_ns()).collect();
    // The job wakes the thread for each read, the interrupt at its end, and the completion the job.
    let each = 200 * 7000;
    assert_eq!(more, [each, each, 0, each, 0, 0], "{KINDS:?}");
}

#[test]
fn a_status_command_to_a_busy_card_wakes_its_thread_twice() {
    // The response wakes the thread, and so does the timer at the end of the pause.
    fn asked(program: &str) -> (u64, u64, Duration) {
        let card = format!("[card.write]\nprogram = \"{program}\"\nearly = false\n");
        let (report, times) = run("randwrite", "mmc-serial", &card, "2us");
        let host = report.family.mmc.unwrap();
        (host.commands[13], report.totals.wakeups, times[4])
    }
    let short = asked("300us");
    let long = asked("2ms");
    let questions = long.0 - short.0;
    assert!(questions >= 200, "{questions}");
    assert_eq!(long.1 - short.1, 2 * questions);
    // An interrupt of 3 us, and 2 us for the wake-up.
    assert_eq!(long.2 - short.2, Duration::from_us(5 * questions));
}
