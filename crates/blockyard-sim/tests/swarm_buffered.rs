//! The swarm of buffered writes: one seed draws a machine, a device and jobs that write through the
//! page cache and sync, and checkers watch the bios and the calls. `BLOCKYARD_SWARM_SEED` and
//! `BLOCKYARD_SWARM_SEEDS` work as in the swarm.
//!
//! The checkers know the pages of each call, as jobs write sequentially, each in its own region.
//! After a sync, a loss of power must leave what was written: so at the end of each sync, each page
//! of the job must have been written back since its last write, and a flush must follow. On a file
//! system, a commit of the journal must have the blocks and the length that these pages need
//! (`journal.rs`). What is durable stays so: this holds for a cut at any later time.
//!
//! Power is also cut at intervals, and the data that is left on the device is checked: writes that
//! were flushed are there, and others may be gone.

#[path = "swarm_buffered/journal.rs"]
mod journal;

use blockyard::bio::{Flags, Op as BioOp};
use blockyard::prng::Prng;
use blockyard::time::{Duration, Instant};
use blockyard::trace::{Action, Event, Sink};
use blockyard::unit::CpuId;
use blockyard_devices::data::verify::Verify;
use blockyard_devices::profile::{Design, Device, FaultRules, FileSystem};
use blockyard_fio::job::{NoSource, Op, parse_bytes};
use blockyard_sim::simulate::{Conditions, Report, Simulation};
use blockyard_trace::observe::{Observer, Work};
use core::cell::RefCell;
use core::hash::BuildHasher;
use core::ops::Range;
use journal::Journal;
use std::collections::BTreeMap;
use std::hash::RandomState;

const PAGE: u64 = 4096;
/// The distance from the region of one job to the next one, bytes.
const REGION: u64 = 4 << 20;
/// The sectors of the disk, 64 MiB, and of its journal, which is in the middle and has an eighth.
const DISK: u64 = 131_072;
const JOURNAL: Range<u64> = DISK / 2..DISK / 2 + DISK / 8;

/// A fault in what the checkers see, or of the device, which they must notice.
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
    /// The record of a commit reaches the device before a block of the commit.
    EarlyRecord,
    /// A block of a commit is not written.
    LoseJournalBlock,
    /// The record of a commit does not reach the device.
    LoseRecord,
    /// The device says that it has written, and has not.
    LoseWrite,
}

/// The flaws, and the checker that must notice each.
const CANARIES: [(Flaw, &str); 9] = [
    (Flaw::WriteTwice, "[page-written-once]"),
    (Flaw::LoseDirtyBit, "[synced-is-durable]"),
    (Flaw::EndSyncEarly, "[synced-is-durable]"),
    (Flaw::LoseFlush, "[synced-is-durable]"),
    (Flaw::StickWriter, "[writer-resumes]"),
    (Flaw::EarlyRecord, "[record-after-body]"),
    (Flaw::LoseJournalBlock, "[journal-in-one-piece]"),
    (Flaw::LoseRecord, "[promised-is-committed]"),
    (Flaw::LoseWrite, "[durable-write-survives]"),
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
    /// The file system, if there is one.
    file_system: Option<&'static str>,
    /// The file before the jobs begin: new with its blocks, new and empty, or written.
    file: &'static str,
    cut_every: Duration,
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

/// The default: a file has its blocks and its length before the jobs begin.
const PREALLOCATED: &str = "";
/// The option that gives a file its data before the jobs begin.
const WRITTEN: &str = "overwrite=1";

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
            file_system: prng.pick(&[None, Some("ext4"), Some("xfs")]),
            file: prng.pick(&[PREALLOCATED, "fallocate=none", "fallocate=keep", WRITTEN]),
            cut_every: Duration::from_us(prng.pick(&[300, 2000, 17_000])),
        }
    }

    /// Returns the device, whose commands take `slow` times as long.
    fn device(&self, slow: u64) -> String {
        format!(
            "base = \"null\"\n[limits]\ncapacity = \"64MiB\"\nmax-sectors = {}\nmax-segments = {}\n\
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
        let mut text = "[global]\nioengine=sync\nrw=write\n".to_owned();
        text += &match self.file_system {
            None => "filename=/dev/a\n".to_owned(),
            Some(_) => format!("filename=a\n{}\n", self.file),
        };
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
    /// When a bio last ended with which the file needs a commit: the first one of the page, or the
    /// first one since the file became longer by a write to it.
    needs_commit: Option<u64>,
    /// The step before which the write began that made the file longer, up to that bio.
    longer_from: Option<u64>,
}

/// Watches the bios of a run.
struct Watch {
    flaw: Option<Flaw>,
    /// The number of the event.
    step: u64,
    pages: BTreeMap<u64, Page>,
    /// The bytes that the call of each job writes.
    calls: Vec<Range<u64>>,
    /// The length of the file as far as calls that have ended made it, bytes.
    len: u64,
    /// Whether first writes need commits: the files do not have their data.
    is_new: bool,
    /// Whether writes make the file longer: it does not have its length before.
    grows: bool,
    has_files: bool,
    journal: Option<Journal>,
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
        let calls = (0..plan.jobs.len()).map(|job| bytes_of(plan, job, 0)).collect();
        // Without a volatile cache, the queue takes the flags off by which a record is known.
        let is_watched = plan.file_system.is_some() && plan.has_cache;
        let journal = is_watched.then(|| Journal::new(JOURNAL, plan.has_fua));
        Self {
            flaw,
            step: 1,
            pages: BTreeMap::new(),
            calls,
            len: 0,
            is_new: plan.file != WRITTEN,
            grows: plan.file != WRITTEN && plan.file != PREALLOCATED,
            has_files: plan.file_system.is_some(),
            journal,
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
        let is_written = self.calls.iter().filter(|call| pages(call).contains(&number)).count();
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
            let is_longer = page.longer_from.take_if(|longer| from > *longer).is_some();
            if page.ended == 0 || is_longer {
                page.needs_commit = Some(self.step);
            }
            page.clean_from = from;
            page.ended = self.step;
        }
    }

    /// Notes that a write of `job` has ended, which began after the step `from`. The next one
    /// writes the bytes `next`.
    fn wrote(&mut self, job: usize, from: u64, next: Range<u64>) {
        let call = core::mem::replace(&mut self.calls[job], next);
        let others = self.calls.iter().enumerate().filter(|(other, _)| *other != job);
        // Another call may have made the file as long already.
        let len = others.map(|(_, call)| call.end).fold(self.len, u64::max);
        self.len = self.len.max(call.end);
        for number in pages(&call) {
            let page = self.pages.entry(number).or_default();
            page.writes += 1;
            page.written_from = from;
            // A bio that was submitted during the call may have found the new length.
            let is_last = pages(&call).end == number + 1;
            let submitted = page.in_flight.unwrap_or(page.clean_from);
            if self.grows && is_last && call.end > len && submitted <= from {
                page.longer_from = Some(from);
            }
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

    /// [promised-is-committed]: the journal has the blocks and the length that the pages need.
    fn check_committed(&mut self, pages: Range<u64>) {
        let Some(journal) = self.journal.as_ref().filter(|_| self.is_new) else { return };
        let missing = self
            .pages
            .range(pages)
            .find(|(_, page)| page.needs_commit.is_some_and(|at| !journal.is_committed_since(at)));
        if let Some((number, page)) = missing {
            let what = format!("[promised-is-committed] page {number}, {page:?}: {journal:?}");
            self.violation.get_or_insert(what);
        }
    }
}

impl Watch {
    /// Sees an event of the journal.
    fn see_journal(&mut self, event: &Event<'_>) {
        let Some(journal) = &self.journal else { return };
        let is_block = journal.has_blocks_in_flight();
        let sectors = event.sector..event.sector + u64::from(event.sectors);
        let is_record = event.flags.contains(Flags::PREFLUSH | Flags::FUA);
        let loses_block =
            event.action == Action::Queue && !is_record && self.strikes(Flaw::LoseJournalBlock);
        let is_end = matches!(event.action, Action::Complete(_));
        let loses_end = is_end
            && if is_block {
                self.strikes(Flaw::EarlyRecord)
            } else {
                self.strikes(Flaw::LoseRecord)
            };
        let step = self.step;
        let journal = self.journal.as_mut().expect("a journal has events");
        let seen = match event.action {
            Action::Queue if !loses_block => journal.queued(sectors, is_record, step),
            Action::Issue => journal.issued(&sectors),
            Action::Complete(_) if !loses_end => {
                journal.ended(&sectors, step);
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(what) = seen {
            self.violation.get_or_insert(what);
        }
    }

    fn see(&mut self, event: &Event<'_>) {
        self.step += 1;
        if event.op == BioOp::Write && self.has_files && JOURNAL.contains(&event.sector) {
            self.see_journal(event);
            return;
        }
        // A request of 254 sectors ends within page 31, which then ends with the next request.
        let end = event.sector + u64::from(event.sectors);
        let pages = event.sector * 512 / PAGE..end * 512 / PAGE;
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
                if let Some(journal) = &mut self.journal {
                    journal.flushed(sent);
                }
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

/// Returns the bytes of a job's write with this number, from 0.
fn bytes_of(plan: &Plan, job: usize, number: u64) -> Range<u64> {
    let JobPlan { block, blocks, loops, .. } = plan.jobs[job];
    if number >= blocks * loops {
        return 0..0;
    }
    let begin = job as u64 * REGION + number % blocks * block;
    begin..begin + block
}

/// Returns the pages of `bytes`.
const fn pages(bytes: &Range<u64>) -> Range<u64> {
    bytes.start / PAGE..bytes.end.div_ceil(PAGE)
}

/// Returns the writes and the syncs of a job that have ended.
fn calls(report: &Report, job: usize) -> [u64; 2] {
    let stats = &report.jobs[job].stats;
    let writes = stats.ops.of(Op::Write).as_deref().map_or(0, |writes| writes.ios);
    [writes, stats.sync_lat_ns.as_ref().map_or(0, |syncs| syncs.count())]
}

/// Runs one seed. Returns the syncs, the bios of writeback, the commits of the journal and the
/// power cuts.
fn run(seed: u64, flaw: Option<Flaw>) -> Result<[u64; 4], String> {
    let plan = Plan::new(seed);
    let jobs = parse_bytes("swarm", plan.text().as_bytes(), &NoSource).unwrap();
    let slow = if flaw == Some(Flaw::StickWriter) { 1000 } else { 1 };
    let device = Device::parse("swarm", &plan.device(slow)).unwrap();
    let design = Design::lookup(plan.design).unwrap();
    let watch = RefCell::new(Watch::new(&plan, flaw));
    let file_system = plan.file_system.map(|name| FileSystem::lookup(name).unwrap());
    let lost_write = "[[rule]]\nop = \"write\"\nfirst = 5\nlast = 5\nlost-write = true\n";
    let faults = FaultRules::parse("swarm", lost_write).unwrap();
    // On a slow device, the cuts would take most of the time.
    let power_cut_every = (flaw != Some(Flaw::StickWriter)).then_some(plan.cut_every);
    let verify = Verify { power_cut_every, ..Verify::default() };
    let conditions = Conditions {
        file_system: file_system.as_ref(),
        faults: (flaw == Some(Flaw::LoseWrite)).then_some(&faults),
        verify: Some(&verify),
        ..Conditions::new(seed)
    };
    let mut seen = Seen(&watch);
    let mut simulation =
        Simulation::observed(&jobs, &device, &design, conditions, &mut seen).unwrap();
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
    check_writers(&plan, &report)?;
    let mut watch = watch.borrow_mut();
    // Whoever closes a disk last writes all of its pages. Closing a file writes nothing.
    if plan.file_system.is_none() {
        watch.check_durable(0..u64::MAX, false);
    }
    // [durable-write-survives]: the data on the device is right, at the end and after each cut.
    let verified = report.verified.expect("the run is verified");
    if let Some(wrong) = verified.violations.first() {
        return Err(format!("[durable-write-survives] {wrong}"));
    }
    let bios = watch.pages.values().map(|page| page.bios).sum();
    let syncs = ended.iter().map(|[_, syncs]| syncs).sum();
    let commits = watch.journal.as_ref().map_or(0, |journal| journal.commits);
    let cuts = verified.power_cuts.len() as u64;
    watch.violation.take().map_or(Ok([syncs, bios, commits, cuts]), Err)
}

/// Checks [writer-resumes]: a write that must wait for writeback goes on.
fn check_writers(plan: &Plan, report: &Report) -> Result<(), String> {
    for job in &report.jobs {
        let longest = job.stats.ops.of(Op::Write).as_deref().map_or(0, |ops| ops.lat_ns.max());
        if longest > plan.write_max_ns() {
            return Err(format!("[writer-resumes] a write took {longest} ns"));
        }
    }
    Ok(())
}

/// Follows the calls of a job that have ended: at most a sync, and then writes.
fn follow(plan: &Plan, watch: &mut Watch, job: usize, [before, now]: [[u64; 2]; 2], began: u64) {
    let region = job as u64 * REGION / PAGE..(job as u64 + 1) * REGION / PAGE;
    if now[1] > before[1] {
        watch.check_durable(region.clone(), plan.has_cache);
        watch.check_committed(region.clone());
    }
    for number in before[0]..now[0] {
        watch.wrote(job, began, bytes_of(plan, job, number + 1));
        match plan.jobs[job].syncs {
            Syncs::Within => {
                let written = pages(&bytes_of(plan, job, number));
                watch.check_durable(written.clone(), plan.has_cache);
                watch.check_committed(written);
            }
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

/// Runs seeds until `is_over`, and says what they did: the seeds, and the sums of [`run`].
fn run_all(seeds: impl Iterator<Item = u64>, is_over: impl Fn() -> bool) -> [u64; 5] {
    let mut total = [0; 5];
    for seed in seeds {
        match run(seed, None) {
            Ok([syncs, pages, commits, cuts]) => {
                let one = [1, syncs, pages, commits, cuts];
                total.iter_mut().zip(one).for_each(|(sum, count)| *sum += count);
            }
            Err(what) => panic!("seed {seed}: {what}\n{:#?}", Plan::new(seed)),
        }
        if is_over() {
            break;
        }
    }
    let [seeds, syncs, pages, commits, cuts] = total;
    println!(
        "{seeds} seeds: {syncs} syncs, {pages} pages written back, {commits} commits, {cuts} power cuts"
    );
    total
}

#[test]
fn what_is_synced_is_durable_and_no_page_is_written_for_nothing() {
    if let Some(seed) = number("BLOCKYARD_SWARM_SEED") {
        run_all(seed..seed + 1, || false);
        return;
    }
    let count = number("BLOCKYARD_SWARM_SEEDS").unwrap_or(60);
    let [_, syncs, pages, commits, cuts] = run_all(0..count, || false);
    assert!(count < 60 || (syncs > 900 && pages > 9000), "{syncs} syncs and {pages} pages");
    assert!(count < 60 || (commits > 100 && cuts > 1000), "{commits} commits and {cuts} cuts");
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
