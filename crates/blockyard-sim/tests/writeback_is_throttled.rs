//! Whole simulations in which writeback is throttled (`wbt-latency`), and the same without.
//!
//! The limits are those of recordings of Linux 6.12 and 7.3 on a null device of 64 commands with a
//! write cache, which throttles by default.

use crate::free;

use blockyard::bio::{Flags, Op};
use blockyard::time::Instant;
use blockyard::trace::{Action, Event, Sink};
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{self as fio, NoSource, parse_bytes};
use blockyard_sim::simulate::{Conditions, Report, Simulation};
use blockyard_trace::observe::Observer;

/// Counts the requests of one operation and with these flags between their first bio and their end.
struct InFlight {
    op: Op,
    flags: Flags,
    now: u32,
    /// Each new maximum, and when it was reached.
    records: Vec<(Instant, u32)>,
}

impl Sink for InFlight {
    fn event(&mut self, event: &Event<'_>) {
        if event.op != self.op || !event.flags.contains(self.flags) {
            return;
        }
        match event.action {
            Action::GetRequest => self.now += 1,
            Action::Complete(_) | Action::Join => self.now -= 1,
            _ => {}
        }
        if self.now > self.most() {
            self.records.push((event.at, self.now));
        }
    }
}

impl Observer for InFlight {}

impl InFlight {
    const fn of(op: Op, flags: Flags) -> Self {
        Self { op, flags, now: 0, records: Vec::new() }
    }

    fn most(&self) -> u32 {
        self.records.last().map_or(0, |record| record.1)
    }

    /// The most requests within the first 100 ms after the first one, before any window has ended.
    fn most_in_first_window(&self) -> u32 {
        let first = self.records[0].0;
        let within = self.records.iter().filter(|(at, _)| at.since(first).as_ns() < 100_000_000);
        within.map(|record| record.1).max().unwrap_or(0)
    }
}

/// A device of 64 commands of 100 us each and of `bandwidth` bytes a second, on a machine that
/// begins to write back at 2 MiB of dirty pages. A request has 4 pages, so that there are many.
fn device(bandwidth: u64, dirty_bytes: &str) -> Device {
    let free = free::steps();
    let text = format!(
        "base = \"null\"\n[limits]\nmax-sectors = 32\nwrite-cache = true\nmax-discard-sectors = 2048\n\
         [null]\ncompletion = \"timer\"\ncompletion-time = \"100us\"\nsubmit-queues = 1\ndepth = 64\n\
         bandwidth-limit = \"{bandwidth}B/s\"\n\
         [cpu]\ncpus = 2\npage-copy = \"1us\"\ndirty-background-bytes = \"2MiB\"\n\
         dirty-bytes = \"{dirty_bytes}\"\n{free}"
    );
    Device::parse("test", &text).unwrap()
}

fn run(job: &str, device: &Device, wbt: &str, kind: (Op, Flags)) -> (Report, InFlight) {
    run_under("mq-none", job, device, wbt, kind)
}

fn run_under(
    base: &str,
    job: &str,
    device: &Device,
    wbt: &str,
    kind: (Op, Flags),
) -> (Report, InFlight) {
    let text = format!("[global]\nioengine=sync\nfilename=/dev/a\n{job}");
    let jobs = parse_bytes("f.fio", text.as_bytes(), &NoSource).unwrap();
    let design = format!("base = \"{base}\"\nqueue.wbt-latency = \"{wbt}\"\n");
    let design = Design::parse("design", &design).unwrap();
    let mut in_flight = InFlight::of(kind.0, kind.1);
    let conditions = Conditions { checked: true, ..Conditions::new(1) };
    let mut simulation =
        Simulation::observed(&jobs, device, &design, conditions, &mut in_flight).unwrap();
    simulation.check_every_step();
    let report = simulation.finish().unwrap();
    (report, in_flight)
}

fn ios(report: &Report, job: usize, op: fio::Op) -> u64 {
    report.jobs[job].stats.ops.of(op).as_deref().unwrap().ios
}

const MIB: u64 = 1 << 20;
/// Writes of the flusher; what is dirty at the end is written by the close of the disk.
const FLUSHER: (Op, Flags) = (Op::Write, Flags::BACKGROUND);
const SYNCS: (Op, Flags) = (Op::Write, Flags::SYNC);
const DISCARDS: (Op, Flags) = (Op::Discard, Flags::NONE);

/// The flusher has 4 requests in flight in the first window of 100 ms. There are only writes, so
/// the depth rises from 16 to 31 and to 48, three quarters of 64, and the limit of the background
/// is a quarter of it: 12. So it was on Linux 7.3. Without the throttle there are as many as there
/// are tags.
#[test]
fn a_flusher_has_few_requests_in_flight() {
    let job = "[w]\nrw=write\nbs=4k\nsize=16m\nrate_iops=4000\n";
    let device = device(200 * MIB, "64MiB");
    let (_, throttled) = run(job, &device, "default", FLUSHER);
    assert_eq!((throttled.most_in_first_window(), throttled.most()), (4, 12));
    let (_, free) = run(job, &device, "off", FLUSHER);
    assert_eq!(free.most(), 64);
}

/// A writer that is too fast pauses, and its disk may then have as many requests in flight as for a
/// sync: 16 at first, and 48 with writes alone, as on Linux 7.3. The device is as busy as before.
#[test]
fn a_disk_whose_writers_pause_is_throttled_less() {
    let job = "[w]\nrw=write\nbs=64k\nsize=64m\n";
    let device = device(40 * MIB, "8MiB");
    let (throttled, places) = run(job, &device, "default", FLUSHER);
    assert_eq!(places.most(), 48);
    let (free, places) = run(job, &device, "off", FLUSHER);
    assert_eq!(places.most(), 64);
    let [throttled, free] = [throttled, free].map(|report| report.span.as_ns() / 10_000_000);
    assert!(throttled.abs_diff(free) <= free / 50, "{throttled} and {free} x 10 ms");
}

/// The writeback of a sync has 16 places, and 31 after a window of 100 ms with writes alone: so
/// many as in the recordings of a sync of 32 MiB.
#[test]
fn a_sync_has_more_places_than_the_background() {
    let job = "[w]\nrw=randwrite\nbs=4k\nsize=32m\nio_size=2m\nend_fsync=1\nrandseed=3\n";
    // 512 pages of 4 KiB, at 10 MiB a second: 200 ms.
    let (_, places) = run(job, &device(10 * MIB, "64MiB"), "default", SYNCS);
    assert_eq!((places.most_in_first_window(), places.most()), (16, 31));
}

/// Direct writes are not throttled: 64 are in flight, whatever the design says, and no answer
/// changes.
#[test]
fn direct_writes_are_not_throttled() {
    let job = "direct=1\nioengine=libaio\niodepth=64\n[w]\nrw=randwrite\nbs=4k\nsize=8m\n";
    let device = device(200 * MIB, "64MiB");
    let [throttled, free] = ["default", "off"].map(|wbt| run(job, &device, wbt, SYNCS));
    assert_eq!([throttled.1.most(), free.1.most()], [64, 64]);
    assert_eq!(throttled.0.span, free.0.span);
    assert_eq!(throttled.0.totals.events, free.0.totals.events);
}

/// Four discards at a time, of jobs that each wait for theirs.
#[test]
fn discards_have_four_places() {
    let job = "direct=1\n[t]\nrw=trim\nbs=64k\nsize=1m\nnumjobs=9\noffset_increment=1m\n";
    let device = device(200 * MIB, "64MiB");
    let [throttled, free] = ["default", "off"].map(|wbt| run(job, &device, wbt, DISCARDS));
    assert_eq!([throttled.1.most(), free.1.most()], [4, 9]);
}

/// A hard disk with a writer that fills the cache and a reader of random pages. The disk takes 32
/// commands, and mq-deadline holds 64. Without a throttle the flusher fills the disk, and a read
/// waits in the scheduler until one of its commands has ended. A throttle leaves 8 commands to
/// reads, because writeback has three quarters of the 32. So the reader does much more, and the
/// writer pays for it.
#[test]
fn a_reader_beside_a_copy_on_a_hard_disk_is_faster_with_a_throttle() {
    let text = "base = \"hdd-7200\"\n[cpu]\ndirty-background-bytes = \"16MiB\"\n\
                dirty-bytes = \"64MiB\"\n";
    let disk = Device::parse("disk", text).unwrap();
    let job = "runtime=3\ntime_based=1\nsize=40g\n[copy]\nrw=write\nbs=1m\n\
               [reader]\nrw=randread\nbs=4k\noffset=200g\n";
    let [throttled, free] =
        ["default", "off"].map(|wbt| run_under("mq-deadline", job, &disk, wbt, FLUSHER));
    assert_eq!(throttled.1.most(), 24);
    assert!(free.1.most() > 32, "{}", free.1.most());
    let [more, fewer] = [&throttled, &free].map(|run| ios(&run.0, 1, fio::Op::Read));
    assert!(2 * more > 3 * fewer, "{more} reads with a throttle, {fewer} without");
    let [less, most] = [&throttled, &free].map(|run| ios(&run.0, 0, fio::Op::Write));
    assert!(less < most, "{less} MiB with a throttle, {most} without");
}
