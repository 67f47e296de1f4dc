//! The swarm of buffered writes: one seed draws a machine, a device and jobs that write through the
//! page cache and sync, and checkers watch the bios and the calls. `BLOCKYARD_SWARM_SEED` and
//! `BLOCKYARD_SWARM_SEEDS` work as in the swarm.
//!
//! The checkers know the pages of each call, as jobs write sequentially, each in its own region.
//! After a sync, a loss of power must leave what was written: so at the end of each sync, each page
//! of the job must have been written back since its last write, and a flush must follow.

use blockyard::bio::Op as BioOp;
use blockyard::prng::Prng;
use blockyard::time::Instant;
use blockyard::trace::{Action, Event, Sink};
use blockyard::unit::CpuId;
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, Op, parse_bytes};
use blockyard_sim::simulate::{Conditions, Report, Simulation};
use blockyard_trace::observe::{Observer, Work};
use core::cell::RefCell;
use core::hash::BuildHasher;
use core::ops::Range;
use std::collections::BTreeMap;
use std::hash::RandomState;

const PAGE: u64 = 4096;
/// The distance from the region of one job to the next one, bytes.
const REGION: u64 = 4 << 20;

/// A fault in what the checkers see, which they must notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// A page is written back twice.
    WriteTwice,
    /// The writeback of a page is lost, as if it were not dirty.
    LoseDirtyBit,
    /// A sync ends when the write before it does.
    EndSyncEarly,
    /// A flush is not sent.
    LoseFlush,
    /// The device is a thousand times as slow, so that a writer waits far longer than it should.
    StickWriter,
}

/// The flaws, and the checker that must notice each.
const CANARIES: [(Flaw, &str); 5] = [
    (Flaw::WriteTwice, "[page-written-once]"),
    (Flaw::LoseDirtyBit, "[synced-is-durable]"),
    (Flaw::EndSyncEarly, "[synced-is-durable]"),
    (Flaw::LoseFlush, "[synced-is-durable]"),
    (Flaw::StickWriter, "[writer-resumes]"),
];

/// What a job does behind so many writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Syncs {
    Never,
    Every(&'static str, u64),
    /// In each write, by `O_DSYNC`.
    Within,
}

#[derive(Clone, Debug)]
struct JobPlan {
    block: u64,
    blocks: u64,
    loops: u64,
    syncs: Syncs,
    more: &'static str,
}

impl JobPlan {
    fn new(prng: &mut Prng) -> Self {
        Self {
            block: prng.pick(&[512, 2300, 4096, 12_288, 65_536]),
            blocks: 1 + prng.below(40),
            loops: prng.pick(&[1, 1, 3]),
            syncs: match prng.below(4) {
                0 => Syncs::Never,
                1 => Syncs::Within,
                _ => Syncs::Every(prng.pick(&["fsync", "fdatasync"]), prng.pick(&[1, 2, 7])),
            },
            more: prng.pick(&["", "end_fsync=1", "thinktime=2ms", "startdelay=3ms"]),
        }
    }
}

#[derive(Clone, Debug)]
struct Plan {
    design: &'static str,
    has_cache: bool,
    has_fua: bool,
    cpus: u64,
    service_us: u64,
    depth: u64,
    max_sectors: u64,
    max_segments: u64,
    /// The limits on dirty pages are these and half of them.
    hard_pages: u64,
    jobs: Vec<JobPlan>,
}

impl Plan {
    fn new(seed: u64) -> Self {
        let mut prng = Prng::new(seed);
        let has_cache = prng.below(2) == 0;
        Self {
            design: prng.pick(&["mq-none", "mq-deadline", "mq-kyber", "mq-none-6.12"]),
            has_cache,
            has_fua: has_cache && prng.below(2) == 0,
            cpus: prng.pick(&[1, 2, 4]),
            service_us: prng.pick(&[20, 100, 500]),
            depth: prng.pick(&[1, 4, 32]),
            max_sectors: prng.pick(&[8, 64, 254, 2048]),
            max_segments: prng.pick(&[1, 16, 128]),
            hard_pages: prng.pick(&[32, 128, 1024]),
            jobs: (0..=prng.below(3)).map(|_| JobPlan::new(&mut prng)).collect(),
        }
    }

    /// Returns the device, whose commands take `slow` times as long.
    fn device(&self, slow: u64) -> String {
        format!(
            "base = \"null\"\n[limits]\nmax-sectors = {}\nmax-segments = {}\n\
             write-cache = {}\nfua = {}\n[null]\ncompletion = \"timer\"\n\
             completion-time = \"{}us\"\nsubmit-queues = 1\ndepth = {}\n\
             [cpu]\ncpus = {}\ndirty-background-bytes = \"{}KiB\"\ndirty-bytes = \"{}KiB\"\n",
            self.max_sectors,
            self.max_segments,
            self.has_cache,
            self.has_fua,
            self.service_us * slow,
            self.depth,
            self.cpus,
            self.hard_pages * 2,
            self.hard_pages * 4,
        )
    }

    /// Returns how long a write may take: as long as all pages below the limit do one after
    /// another, five times, and pauses of 200 ms, five times as well.
    fn write_max_ns(&self) -> u64 {
        5 * self.hard_pages * self.service_us * 1000 + 1_000_000_000
    }

    fn text(&self) -> String {
        let mut text = "[global]\nioengine=sync\nrw=write\nfilename=/dev/a\n".to_owned();
        for (number, job) in (0..).zip(&self.jobs) {
            let JobPlan { block, blocks, loops, syncs, more } = job;
            let size = block * blocks;
            let offset = number * REGION;
            text += &format!("[j{number}]\nbs={block}\nsize={size}\noffset={offset}\n");
            text += &format!("loops={loops}\n{more}\n");
            text += &match syncs {
                Syncs::Never => String::new(),
                Syncs::Every(call, writes) => format!("{call}={writes}\n"),
                Syncs::Within => "sync=dsync\n".to_owned(),
            };
        }
        text
    }
}

/// What is known of a page of the disk. Steps are counted from 1.
#[derive(Clone, Copy, Debug, Default)]
struct Page {
    /// The writes to it that have ended, and the step before which the last one began.
    writes: u64,
    written_from: u64,
    /// The bios that wrote it back, and the step of the one in flight.
    bios: u64,
    in_flight: Option<u64>,
    /// When the last bio that has ended was submitted, and when it ended.
    clean_from: u64,
    ended: u64,
}

/// Watches the bios of a run.
struct Watch {
    flaw: Option<Flaw>,
    /// The number of the event.
    step: u64,
    pages: BTreeMap<u64, Page>,
    /// The pages that the call of each job writes.
    calls: Vec<Range<u64>>,
    /// The step at which a flush was sent, and that of the last one that has ended.
    flushing: Option<u64>,
    flushed: u64,
    /// Writes that were seen.
    chances: u64,
    /// Whether a job has taken a step.
    stepped: bool,
    /// The first violation.
    violation: Option<String>,
}

impl Watch {
    fn new(plan: &Plan, flaw: Option<Flaw>) -> Self {
        let calls = (0..plan.jobs.len()).map(|job| pages_of(plan, job, 0)).collect();
        Self {
            flaw,
            step: 1,
            pages: BTreeMap::new(),
            calls,
            flushing: None,
            flushed: 0,
            chances: 0,
            stepped: false,
            violation: None,
        }
    }

    /// Whether `flaw` strikes now: at the fifth chance.
    fn strikes(&mut self, flaw: Flaw) -> bool {
        if self.flaw != Some(flaw) {
            return false;
        }
        self.chances += 1;
        self.chances == 5
    }

    /// [page-written-once]: a page is written back by one bio at a time, and once for each write.
    fn queued(&mut self, number: u64) {
        let is_written = self.calls.iter().filter(|call| call.contains(&number)).count();
        let page = self.pages.entry(number).or_default();
        page.bios += 1;
        let writes = page.writes + u64::try_from(is_written).unwrap();
        let is_once = page.bios <= writes && page.in_flight.is_none();
        page.in_flight = Some(self.step);
        if !is_once {
            let what = format!("[page-written-once] page {number} of {writes} writes: {page:?}");
            self.violation.get_or_insert(what);
        }
    }

    fn ended(&mut self, number: u64) {
        let page = self.pages.entry(number).or_default();
        if let Some(from) = page.in_flight.take() {
            page.clean_from = from;
            page.ended = self.step;
        }
    }

    /// Notes that a write of `job` has ended, which began after the step `from`.
    fn wrote(&mut self, job: usize, from: u64, next: Range<u64>) {
        for number in core::mem::replace(&mut self.calls[job], next) {
            let page = self.pages.entry(number).or_default();
            page.writes += 1;
            page.written_from = from;
        }
    }

    /// [synced-is-durable]: what a job has written is on the disk, and no volatile cache has it.
    fn check_durable(&mut self, pages: Range<u64>, has_cache: bool) {
        for (number, page) in self.pages.range(pages) {
            let is_clean = page.clean_from > page.written_from;
            let is_flushed = !has_cache || self.flushed > page.ended;
            if !(is_clean && is_flushed) {
                let flushed = self.flushed;
                let what =
                    format!("[synced-is-durable] page {number}, flushed at {flushed}: {page:?}");
                self.violation.get_or_insert(what);
            }
        }
    }
}

impl Watch {
    fn see(&mut self, event: &Event<'_>) {
        self.step += 1;
        let first = event.sector * 512 / PAGE;
        let pages = first..first + u64::from(event.sectors) * 512 / PAGE;
        match (event.action, event.op) {
            (Action::Queue, BioOp::Write) if !self.strikes(Flaw::LoseDirtyBit) => {
                let turns = if self.strikes(Flaw::WriteTwice) { 2 } else { 1 };
                for _ in 0..turns {
                    pages.clone().for_each(|page| self.queued(page));
                }
            }
            (Action::Complete(_), BioOp::Write) => pages.for_each(|page| self.ended(page)),
            (Action::Issue, BioOp::Flush) => self.flushing = Some(self.step),
            (Action::Complete(_), BioOp::Flush) => {
                let sent = self.flushing.take().expect("a flush that ends was sent");
                if !self.strikes(Flaw::LoseFlush) {
                    self.flushed = sent;
                }
            }
            _ => {}
        }
    }
}

/// The observer of a run: a watch that the test keeps.
struct Seen<'a>(&'a RefCell<Watch>);

impl Sink for Seen<'_> {
    fn event(&mut self, event: &Event<'_>) {
        self.0.borrow_mut().see(event);
    }
}

impl Observer for Seen<'_> {
    fn work_begins(&mut self, _cpu: CpuId, work: &Work, _now: Instant) {
        self.0.borrow_mut().stepped |= matches!(work, Work::Step(_));
    }
}

/// Returns the pages of a job's write with this number, from 0.
fn pages_of(plan: &Plan, job: usize, number: u64) -> Range<u64> {
    let JobPlan { block, blocks, loops, .. } = plan.jobs[job];
    if number >= blocks * loops {
        return 0..0;
    }
    let begin = job as u64 * REGION + number % blocks * block;
    begin / PAGE..(begin + block).div_ceil(PAGE)
}

/// Returns the writes and the syncs of a job that have ended.
fn calls(report: &Report, job: usize) -> [u64; 2] {
    let stats = &report.jobs[job].stats;
    let writes = stats.ops.of(Op::Write).as_deref().map_or(0, |writes| writes.ios);
    [writes, stats.sync_lat_ns.as_ref().map_or(0, |syncs| syncs.count())]
}

/// Runs one seed. Returns the syncs and the bios of writeback.
fn run(seed: u64, flaw: Option<Flaw>) -> Result<[u64; 2], String> {
    let plan = Plan::new(seed);
    let jobs = parse_bytes("swarm", plan.text().as_bytes(), &NoSource).unwrap();
    let slow = if flaw == Some(Flaw::StickWriter) { 1000 } else { 1 };
    let device = Device::parse("swarm", &plan.device(slow)).unwrap();
    let design = Design::lookup(plan.design).unwrap();
    let watch = RefCell::new(Watch::new(&plan, flaw));
    let conditions = Conditions::new(seed);
    let mut simulation =
        Simulation::observed(&jobs, &device, &design, conditions, Seen(&watch)).unwrap();
    let mut ended = vec![[0; 2]; plan.jobs.len()];
    // The step before which the call of each job began.
    let mut began = vec![0; plan.jobs.len()];
    loop {
        let before = watch.borrow().step;
        watch.borrow_mut().stepped = false;
        let goes_on = simulation.advance(1).map_err(|error| format!("[writer-resumes] {error}"))?;
        if watch.borrow().stepped || !goes_on {
            let report = simulation.report();
            for (job, ended) in ended.iter_mut().enumerate() {
                let now = calls(&report, job);
                if now != *ended {
                    follow(&plan, &mut watch.borrow_mut(), job, [*ended, now], began[job]);
                    began[job] = before;
                    *ended = now;
                }
            }
        }
        if let Some(violation) = watch.borrow_mut().violation.take() {
            return Err(violation);
        }
        if !goes_on {
            break;
        }
    }
    let report = simulation.report();
    for job in &report.jobs {
        // [writer-resumes]: a write that must wait for writeback goes on.
        let longest = job.stats.ops.of(Op::Write).as_deref().map_or(0, |ops| ops.lat_ns.max());
        if longest > plan.write_max_ns() {
            return Err(format!("[writer-resumes] a write took {longest} ns"));
        }
    }
    let mut watch = watch.borrow_mut();
    // Whoever closes a disk last writes all of its pages.
    watch.check_durable(0..u64::MAX, false);
    let bios = watch.pages.values().map(|page| page.bios).sum();
    let syncs = ended.iter().map(|[_, syncs]| syncs).sum();
    watch.violation.take().map_or(Ok([syncs, bios]), Err)
}

/// Follows the calls of a job that have ended: at most a sync, and then writes.
fn follow(plan: &Plan, watch: &mut Watch, job: usize, [before, now]: [[u64; 2]; 2], began: u64) {
    let region = job as u64 * REGION / PAGE..(job as u64 + 1) * REGION / PAGE;
    if now[1] > before[1] {
        watch.check_durable(region.clone(), plan.has_cache);
    }
    for number in before[0]..now[0] {
        let next = pages_of(plan, job, number + 1);
        watch.wrote(job, began, next);
        match plan.jobs[job].syncs {
            Syncs::Within => watch.check_durable(pages_of(plan, job, number), plan.has_cache),
            Syncs::Every(..) if watch.flaw == Some(Flaw::EndSyncEarly) => {
                watch.check_durable(region.clone(), plan.has_cache);
            }
            _ => {}
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text}")))
}

/// Runs seeds until `is_over`, and says what they did.
fn run_all(seeds: impl Iterator<Item = u64>, is_over: impl Fn() -> bool) -> [u64; 3] {
    let mut total = [0; 3];
    for seed in seeds {
        match run(seed, None) {
            Ok([syncs, pages]) => {
                total = [total[0] + 1, total[1] + syncs, total[2] + pages];
            }
            Err(what) => panic!("seed {seed}: {what}\n{:#?}", Plan::new(seed)),
        }
        if is_over() {
            break;
        }
    }
    println!("{} seeds: {} syncs, {} pages written back", total[0], total[1], total[2]);
    total
}

#[test]
fn what_is_synced_is_durable_and_no_page_is_written_for_nothing() {
    if let Some(seed) = number("BLOCKYARD_SWARM_SEED") {
        run_all(seed..seed + 1, || false);
        return;
    }
    let count = number("BLOCKYARD_SWARM_SEEDS").unwrap_or(60);
    let [_, syncs, pages] = run_all(0..count, || false);
    assert!(count < 60 || (syncs > 900 && pages > 9000), "{syncs} syncs and {pages} pages");
}

/// Runs for the number of seconds in `BLOCKYARD_SWARM_SOAK`; 0 means until a seed fails. Does
/// nothing if it is not set.
#[test]
fn fresh_seeds_pass_for_the_requested_time() {
    let Some(seconds) = number("BLOCKYARD_SWARM_SOAK") else { return };
    let began = std::time::Instant::now();
    let fresh = RandomState::new().hash_one(0) >> 32;
    run_all(fresh.., || seconds > 0 && began.elapsed().as_secs() >= seconds);
}

#[test]
fn each_flaw_is_caught_by_its_checker() {
    for (flaw, checker) in CANARIES {
        let mut caught = 0;
        for seed in 0..40 {
            if let Err(what) = run(seed, Some(flaw)) {
                assert!(what.starts_with(checker), "{flaw:?} at seed {seed}: {what}");
                caught += 1;
            }
        }
        println!("{flaw:?}: {checker} at {caught} of 40 seeds");
        assert!(caught > 0, "{flaw:?} was not caught");
    }
}
