//! Actors that a caller adds to a world: they wake, submit bios of their own, wait for tags and
//! learn of the ends of their bios. Such an actor is neither a job nor a worker. Expectations are
//! computed from the times of the device by hand.

use blockyard::bio::Bio;
use blockyard::status::{Status, SubmitError};
use blockyard::time::{Duration, Instant};
use blockyard::trace::Action;
use blockyard::unit::{CpuId, QueueId};
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_bytes};
use blockyard_sim::simulate::{Report, Simulation};
use blockyard_sim::world::{Actor, World};
use blockyard_trace::observe::ActorId;
use std::sync::{Arc, Mutex};

/// What an actor has seen.
#[derive(Debug, Default)]
struct Seen {
    /// When it acted.
    acts: Vec<Instant>,
    refusals: u64,
    /// The number of each bio that ended, and when.
    ends: Vec<(u32, Instant)>,
}

/// Reads 4 KiB every millisecond, and a refused read again as soon as it is woken for it.
#[derive(Debug)]
struct Scrubber {
    id: ActorId,
    seen: Arc<Mutex<Seen>>,
    reads: u32,
    next_at: Instant,
    is_refused: bool,
}

const PERIOD: Duration = Duration::from_us(1000);
/// The processor time of a step of the actor, apart from that of the queue.
const OWN_COST: Duration = Duration::from_ns(250);

impl Actor for Scrubber {
    fn act(&mut self, world: &mut World<'_>, _cpu: CpuId) -> Duration {
        let now = world.now();
        self.seen.lock().unwrap().acts.push(now);
        let is_due = now >= self.next_at;
        if is_due {
            self.next_at = self.next_at + PERIOD;
            world.wake_actor_at(self.id, self.next_at);
        }
        if !is_due && !self.is_refused {
            return OWN_COST;
        }
        let bio = Bio::read(u64::from(self.reads) * 8, 8, u64::from(self.reads));
        let submitted = world.submit_for_actor(self.id, QueueId(0), bio);
        self.is_refused = submitted == Err(SubmitError::NoTag);
        let mut seen = self.seen.lock().unwrap();
        match submitted {
            Ok(cost) => {
                self.reads += 1;
                OWN_COST + cost
            }
            Err(reason) => {
                assert_eq!(reason, SubmitError::NoTag);
                seen.refusals += 1;
                OWN_COST
            }
        }
    }

    fn on_bio_end(&mut self, world: &mut World<'_>, number: u32, status: Status) -> bool {
        assert_eq!(status, Status::Ok);
        self.seen.lock().unwrap().ends.push((number, world.now()));
        false
    }
}

/// Runs a job that reads 4 KiB at random for 10 ms on `device` under `design`. A scrubber begins at
/// `begin`, if there is one.
fn run(device: &str, design: &str, begin: Option<Instant>) -> (Report, Seen) {
    run_for("10ms", device, design, begin)
}

/// As [`run`], for another time.
fn run_for(runtime: &str, device: &str, design: &str, begin: Option<Instant>) -> (Report, Seen) {
    let job = format!(
        "[a]\nrw=randread\ndirect=1\nfilename=/dev/a\nsize=1m\ntime_based\nruntime={runtime}\n"
    );
    let jobs = parse_bytes("a.fio", job.as_bytes(), &NoSource).unwrap();
    let device = Device::parse("test", device).unwrap();
    let design = Design::lookup(design).unwrap();
    let mut simulation = Simulation::new(&jobs, &device, &design, 3).unwrap();
    simulation.check_every_step();
    let seen = Arc::new(Mutex::new(Seen::default()));
    if let Some(begin) = begin {
        let seen = Arc::clone(&seen);
        simulation.add_actor(CpuId(1), begin, |id| {
            Box::new(Scrubber { id, seen, reads: 0, next_at: begin, is_refused: false })
        });
    }
    let report = simulation.finish().unwrap();
    let seen = core::mem::take(&mut *seen.lock().unwrap());
    (report, seen)
}

fn ios_of_job(report: &Report) -> u64 {
    report.jobs[0].stats.measured().map(|measured| measured.ios).sum()
}

fn at_us(us: u64) -> Instant {
    Instant::from_ns(us * 1000)
}

/// A device that takes 100 us, without the number of its tags.
const TIMER: &str =
    "base = \"null\"\n[null]\ncompletion = \"timer\"\ncompletion-time = \"100us\"\n";

/// The scrubber would read for ever, and the run ends with its job.
#[test]
fn an_actor_wakes_periodically_submits_and_counts_its_ends() {
    let (report, seen) = run(&format!("{TIMER}depth = 64\n"), "mq-none", Some(at_us(500)));
    // At 0.5 ms, 1.5 ms and so on up to 9.5 ms.
    let expected: Vec<_> = (0..10).map(|tick| at_us(500 + tick * 1000)).collect();
    assert_eq!(seen.acts, expected);
    assert_eq!(seen.refusals, 0);
    let numbers: Vec<_> = seen.ends.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (0..10).collect::<Vec<_>>());
    for ((_, end), act) in seen.ends.iter().zip(&seen.acts) {
        let took = end.since(*act);
        // The device, and the processor's time before and after it.
        assert!(took > Duration::from_us(100) && took < Duration::from_us(110), "{took:?}");
    }
    assert!(report.span >= Duration::from_us(10_000) && report.span < Duration::from_us(10_200));
    // The requests of both; the job counts only its own.
    assert_eq!(report.stages.count(Action::Issue), ios_of_job(&report) + 10);
}

#[test]
fn an_actor_that_gets_no_tag_is_woken_for_one_and_does_not_starve() {
    let (report, seen) = run(&format!("{TIMER}depth = 1\n"), "mq-none", Some(at_us(500)));
    // The job always has the only tag when the actor wants it.
    assert!(seen.refusals >= 9, "{}", seen.refusals);
    assert!(seen.ends.len() >= 9, "{:?}", seen.ends);
    assert_eq!(report.stages.count(Action::Issue), ios_of_job(&report) + seen.ends.len() as u64);
}

/// The only tag is taken for 10 ms at a time, so that the timer wakes the actor ten times while it
/// waits. It registers once.
#[test]
fn an_actor_that_is_refused_again_while_it_waits_waits_once() {
    let slow = "base = \"null\"\n[null]\ncompletion = \"timer\"\ncompletion-time = \"10ms\"\n";
    let (_, seen) = run_for("300ms", &format!("{slow}depth = 1\n"), "mq-none", Some(at_us(500)));
    assert!(seen.refusals > 100, "{}", seen.refusals);
    assert!(seen.ends.len() >= 10, "{:?}", seen.ends);
}

/// Persistent memory ends a bio within the call that submits it, while the actor still acts.
#[test]
fn an_actor_learns_of_an_end_within_its_own_call() {
    let (_, seen) = run("base = \"pmem-dram\"\n", "pmem-raw", Some(at_us(500)));
    let acts: Vec<_> = seen.acts.iter().copied().take(10).collect();
    let ends: Vec<_> = seen.ends.iter().map(|(_, at)| *at).take(10).collect();
    assert_eq!(ends, acts);
}

/// An actor that never acts changes nothing.
#[test]
fn a_run_with_an_actor_that_sleeps_is_the_run_without_it() {
    let device = format!("{TIMER}depth = 64\n");
    let (alone, _) = run(&device, "mq-none", None);
    let (together, seen) = run(&device, "mq-none", Some(at_us(60_000_000)));
    assert_eq!(seen.acts, []);
    assert_eq!((alone.span, alone.totals.events), (together.span, together.totals.events));
    assert_eq!(ios_of_job(&alone), ios_of_job(&together));
}
