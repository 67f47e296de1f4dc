//! Recordings of Linux 6.12 and 7.3 writing through the page cache, or directly to files, compared
//! with runs of the jobs.
//!
//! `tests/buffered` has the jobs, and an archive for each kernel. A recording begins with the line
//! `= JOB.PLACE.SCHEDULER.1`; a second one of the same job, with `.2`, is there where it differs.
//! `ci/oracle/recording.py` and `pack.py` explain the lines. PLACE is `raw`, `ext4` or `xfs`.
//!
//! On a file system the sectors of bios are not compared, but their kinds, sizes and order, and not
//! what mounting has left to be read of its metadata.
//!
//! A run must be as close to the first recording as the goals below say, or as the second one is.

use crate::oracle;

use blockyard::bio::Flags;
use blockyard::trace::{Action, Event, Sink};
use blockyard_devices::profile::FileSystem;
use blockyard_fio::job::{NoSource, Op, parse_bytes};
use blockyard_fio::measure::JobReport;
use blockyard_sim::simulate::{Conditions, Report, Simulation};
use blockyard_trace::observe::Observer;
use core::cell::Cell;
use oracle::{Parameters, Recorder, archive, displaced};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::rc::Rc;

/// The kernels: the name of the archive, and the end of the names of its designs.
const KERNELS: [(&str, &str); 2] = [("6.12", "-6.12"), ("7.3", "")];

/// The places of files that are modelled.
const PLACES: &[&str] = &["raw", "ext4", "xfs"];

/// Goals in 1000: how far merges, requests, and the level and pace of a writer may be off.
const MERGES: u64 = 20;
const REQUESTS: u64 = 30;
const LEVEL: u64 = 100;
const PACE: u64 = 100;
/// How far the share of a writer may be off, in points of 100.
const SHARE: u64 = 5;

/// The number of events from one sample of the dirty pages to the next.
const EVENTS: u64 = 500;

/// Reasons, and what a run misses, as `JOB.PLACE.SCHEDULER FIGURE`: under both kernels, if none is
/// named. The list may only shrink.
const MISSED: &[(&str, &[&str])] = &[
    (
        "the offsets are drawn by another generator than fio's, and which of them are neighbours \
         decides about merges",
        &[
            "mixed-buffered.raw.none bios",
            "mixed-buffered.raw.none merges",
            "partial-2300-random.raw.none bios",
            "partial-2300-random.raw.none merges",
            "partial-512.raw.none bios",
            "partial-512.raw.none merges",
            "partial-512.raw.none requests",
            "rand-end-fsync.raw.mq-deadline bios",
            "rand-end-fsync.raw.none bios",
            "partial-512.ext4.none bios",
            "partial-512.ext4.none requests",
            "rand-end-fsync.ext4.mq-deadline bios",
            "rand-end-fsync.ext4.none bios",
            "rand-fdatasync4.raw.mq-deadline bios",
            "rand-fdatasync4.raw.none bios",
        ],
    ),
    (
        "in Linux 7.3 a store to a mapping makes a whole large folio dirty",
        &[
            "7.3/mmap-fsync.raw.none bios",
            "7.3/mmap-fsync.raw.none merges",
            "7.3/mmap-fsync.raw.none requests",
        ],
    ),
    (
        "several direct writes in flight split a preallocated extent into more than the inode has \
         room for",
        &[
            "6.12/direct-libaio.ext4.none bios",
            "6.12/direct-libaio.ext4.none merges",
            "direct-uring.ext4.none bios",
            "direct-uring.ext4.none merges",
        ],
    ),
    (
        "the recording has a flush and what a new ext4 writes in the background",
        &[
            "6.12/direct-overwrite-dsync.ext4.none bios",
            "6.12/direct-overwrite-dsync.ext4.none flushes",
            "6.12/direct-overwrite-dsync.ext4.none merges",
            "6.12/direct-overwrite-dsync.ext4.none requests",
        ],
    ),
    (
        "both jobs begin at the same instant here, and share commits; in the recordings the second \
         one begins 0.4 ms later, and they take turns (startdelay=410us does the same here)",
        &[
            "two-syncers.ext4.mq-deadline FUA",
            "two-syncers.ext4.mq-deadline bios",
            "two-syncers.ext4.mq-deadline flushes",
            "two-syncers.ext4.mq-deadline merges",
            "two-syncers.ext4.mq-deadline requests",
            "two-syncers.ext4.none FUA",
            "two-syncers.ext4.none bios",
            "two-syncers.ext4.none flushes",
            "two-syncers.ext4.none merges",
            "two-syncers.ext4.none requests",
        ],
    ),
    (
        "pages that are not neighbours in memory end a bio of 256 segments early there",
        &[
            "6.12/end-fsync-64k.ext4.mq-deadline bios",
            "6.12/end-fsync-64k.ext4.mq-deadline requests",
        ],
    ),
    (
        "a record of XFS has one sector more or less",
        &[
            "etcd-growing.xfs.none bios",
            "etcd.xfs.mq-deadline bios",
            "etcd.xfs.none bios",
            "etcd-no-cache.xfs.none bios",
        ],
    ),
    (
        "the recordings have what a new ext4 writes in the background, and what its end writes",
        &[
            "sync-file-range.ext4.none FUA",
            "sync-file-range.ext4.none bios",
            "sync-file-range.ext4.none flushes",
            "sync-file-range.ext4.none merges",
            "sync-file-range.ext4.none requests",
            "expire.ext4.none bios",
            "expire.ext4.none merges",
        ],
    ),
    (
        "whether the flusher writes a page or the close of the disk depends on time",
        &["background.raw.none flags", "throttled-two.raw.none flags"],
    ),
    (
        "timers end in slots of 32 ms, which begin at another instant of the job there: the last look \
         of 6.12 is at 5.11 s, just before the job ends, and here at 5.12 s (startdelay=4ms does the \
         same here). 7.3 writes 1645 and 1643 pages by their age, and here 1639",
        &["expire.raw.none flags"],
    ),
    (
        "reads for which a call waits (submit_bio_wait) have the flag there: direct ones of a block \
         device, of XFS in 7.3, and those of a page of which XFS writes a part; here no read has it",
        &[
            "7.3/direct-meets.xfs.none flags",
            "direct-meets-raw.raw.none flags",
            "etcd-overwrite.xfs.none flags",
        ],
    ),
    (
        "after some 17 calls the flusher there has had its share of the only processor, and then \
         takes several calls together; here it always comes before the next call",
        &["7.3/uncached.ext4.none bios", "7.3/uncached.raw.none requests"],
    ),
];

/// A recording, or the same facts of a run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Traced {
    /// The bios and the requests, in order: `WF 0+8`.
    bios: Vec<String>,
    /// The reads and writes among the bios, with `S` if somebody waits for them: `WFS 0+8`.
    awaited: Vec<String>,
    requests: Vec<String>,
    merges: u64,
    /// Samples: microseconds since the first bio, and pages that are dirty or under writeback.
    levels: Vec<(u64, u64)>,
    /// The milliseconds and the written bytes of each job.
    jobs: Vec<(u64, u64)>,
}

impl Traced {
    fn parse(text: &str) -> Self {
        let mut traced = Self::default();
        // The bios and requests that read metadata. Six bios in four requests are two merges.
        let mut of_mount = (0, 0);
        for line in text.lines() {
            match *line.split(' ').collect::<Vec<_>>() {
                ["M", merges] => traced.merges = merges.parse().unwrap(),
                ["L", us, pages] => {
                    traced.levels.push((us.parse().unwrap(), pages.parse().unwrap()))
                }
                ["J", ms, bytes] => traced.jobs.push((ms.parse().unwrap(), bytes.parse().unwrap())),
                [letter, kind, range, count] => {
                    let is_bio = letter == "Q";
                    if kind.starts_with('R') && kind.contains('M') {
                        let count: u64 = count.parse().unwrap();
                        *(if is_bio { &mut of_mount.0 } else { &mut of_mount.1 }) += count;
                        continue;
                    }
                    let count = count.parse().unwrap();
                    if is_bio && !kind.starts_with("FWS") && kind != "FW" {
                        let kind = kind.replace(['M', 'A'], "");
                        traced.awaited.extend(unfolded(&kind, range, count));
                    }
                    let kind = kind.trim_end_matches(['S', 'M', 'A']);
                    let all = if is_bio { &mut traced.bios } else { &mut traced.requests };
                    all.extend(unfolded(kind, range, count));
                }
                _ => panic!("no line of a recording: {line}"),
            }
        }
        traced.merges -= of_mount.0 - of_mount.1;
        traced
    }

    /// Returns the number of requests of a kind: `F` is a flush, and `WF` a write with FUA.
    fn requests_of(&self, kind: &str) -> u64 {
        let of_kind =
            self.requests.iter().filter(|request| request.split(' ').next() == Some(kind));
        u64::try_from(of_kind.count()).unwrap()
    }

    fn all_requests(&self) -> u64 {
        u64::try_from(self.requests.len()).unwrap()
    }

    /// Returns the mean level between 0.5 s after the first bio and the end of the first job.
    fn level(&self) -> u64 {
        let end_us = self.jobs.iter().map(|(ms, _)| ms * 1000).min().unwrap_or(0);
        let samples: Vec<_> =
            self.levels.iter().filter(|(us, _)| (500_000..end_us).contains(us)).collect();
        samples.iter().map(|(_, pages)| pages).sum::<u64>() / u64::try_from(samples.len()).unwrap()
    }

    /// Returns the time of the slowest job in milliseconds.
    fn pace(&self) -> u64 {
        self.jobs.iter().map(|(ms, _)| *ms).max().unwrap()
    }

    /// Returns the first job's share of the pace of both, in points of 100.
    fn share(&self) -> u64 {
        let [first, second] = [0, 1].map(|at| self.jobs[at].1 / self.jobs[at].0);
        first * 100 / (first + second)
    }
}

/// Returns the events of a line. Its kind is without letters that are not compared: metadata (`M`)
/// and read ahead (`A`), and for most figures synchronous (`S`).
fn unfolded(kind: &str, range: &str, count: u64) -> Vec<String> {
    let (sector, sectors) = range.split_once('+').expect("SECTOR+SECTORS");
    let [sector, sectors]: [u64; 2] = [sector, sectors].map(|number| number.parse().unwrap());
    (0..count).map(|at| format!("{kind} {}+{sectors}", sector + at * sectors)).collect()
}

/// Both recordings of a job under a scheduler.
struct Recording {
    /// `KERNEL/JOB.PLACE.SCHEDULER`.
    name: String,
    job: String,
    /// `raw`, or the name of a file system.
    place: String,
    design: String,
    first: Traced,
    second: Option<Traced>,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/buffered")
}

impl Recording {
    /// Returns all recordings of a kernel at places that are modelled.
    fn all(kernel: &str, version: &str) -> Vec<Self> {
        let archive = fs::read(folder().join(format!("{kernel}.gz"))).unwrap();
        let mut found: Vec<Self> = Vec::new();
        for recorded in archive::text(&archive).split("= ").skip(1) {
            let (head, lines) = recorded.split_once('\n').expect("JOB.PLACE.SCHEDULER.TURN");
            let [job, place, scheduler, turn] = *head.split('.').collect::<Vec<_>>() else {
                panic!("no head: {head}")
            };
            if !PLACES.contains(&place) {
                continue;
            }
            let traced = Traced::parse(lines);
            if turn == "2" {
                found.last_mut().expect("the first comes first").second = Some(traced);
                continue;
            }
            let base = if scheduler == "none" { "mq-none" } else { scheduler };
            found.push(Self {
                name: format!("{kernel}/{job}.{place}.{scheduler}"),
                job: fs::read_to_string(folder().join(format!("{job}.fio"))).unwrap(),
                place: place.to_owned(),
                design: format!("{base}{version}"),
                first: traced,
                second: None,
            });
        }
        found
    }

    fn has_option(&self, option: &str) -> bool {
        self.job.lines().any(|line| line.starts_with(option))
    }

    /// Whether the jobs sync, so that they decide about all writeback.
    fn syncs(&self) -> bool {
        ["fsync", "fdatasync", "end_fsync", "sync", "sync_file_range"]
            .iter()
            .any(|option| self.has_option(&format!("{option}=")))
    }

    /// Runs the job on the device of the recording. An error is a job that is refused.
    fn run(&self) -> Result<Traced, String> {
        let file_system = FileSystem::lookup(&self.place).ok();
        let name = if file_system.is_some() { "" } else { "[global]\nfilename=/dev/nullb0\n" };
        let text = format!("{name}{}", self.job);
        let jobs =
            parse_bytes("job", text.as_bytes(), &NoSource).map_err(|error| error.to_string())?;
        let parameters = Parameters::of(&self.job);
        let design = parameters.design_on(&self.design);
        let device = parameters.device_on(1);
        let mut watch = Watch::default();
        let written_back = Rc::clone(&watch.written_back);
        let conditions = Conditions { file_system: file_system.as_ref(), ..Conditions::new(1) };
        let mut simulation = Simulation::observed(&jobs, &device, &design, conditions, &mut watch)
            .map_err(|error| error.to_string())?;
        let mut levels = Vec::new();
        while simulation.advance(EVENTS).unwrap_or_else(|error| panic!("{}: {error}", self.name)) {
            let written: u64 = jobs_of(&simulation.report()).iter().map(|(_, bytes)| bytes).sum();
            let dirty = written.saturating_sub(written_back.get());
            levels.push((simulation.world().now().as_ns() / 1000, dirty / 4096));
        }
        let jobs = jobs_of(&simulation.report());
        drop(simulation);
        Ok(watch.traced(levels, jobs))
    }

    /// Returns what a run misses, each as `NAME FIGURE`.
    fn missed(&self) -> BTreeSet<String> {
        let name = &self.name;
        let run = match self.run() {
            Ok(run) => run,
            Err(reason) => {
                println!("{name} is refused: {reason}");
                return BTreeSet::from([format!("{name} refused")]);
            }
        };
        let figures = self.figures(&run);
        let mut missed = BTreeSet::new();
        for Figure { name: figure, ours, linux, second, goal } in figures {
            let limit = goal.max(linux.abs_diff(second));
            let is_missed = ours.abs_diff(linux) > limit;
            if is_missed || !self.syncs() {
                println!("{name} {figure}: {ours}, Linux {linux} and {second}, limit {limit}");
            }
            if is_missed {
                missed.insert(format!("{name} {figure}"));
            }
        }
        missed
    }

    /// Returns how many bios are not part of the longest sequence that both have. Where there are
    /// several jobs, only the order within the region of each one is compared.
    fn moved(&self, ours: &[String], theirs: &[String]) -> u64 {
        let offsets = self.job.lines().filter_map(|line| line.strip_prefix("offset="));
        let begins: Vec<_> = offsets.map(sector_of).collect();
        let [ours, theirs] = [ours, theirs].map(|bios| {
            let mut bios: Vec<_> = bios.iter().map(String::as_str).collect();
            if self.place == "raw" {
                bios.sort_by_key(|bio| region(&begins, bio));
                return bios.into_iter().map(str::to_owned).collect();
            }
            bios.into_iter().map(without_sector).collect::<Vec<_>>()
        });
        let [ours, theirs] = [&ours, &theirs].map(|bios| bios.iter().map(String::as_str).collect());
        let [ours, theirs]: [Vec<&str>; 2] = [ours, theirs];
        u64::try_from(displaced(&ours, &theirs)).unwrap()
    }

    /// Returns the figures that are compared.
    fn figures(&self, run: &Traced) -> Vec<Figure> {
        let first = &self.first;
        let second = self.second.as_ref().unwrap_or(first);
        let all = [run, first, second];
        let bios = all.map(|traced| self.moved(&traced.bios, &first.bios));
        // Those whose place is right, but not whether somebody waits for them.
        let awaited = all.map(|traced| self.moved(&traced.awaited, &first.awaited));
        let flags = [0, 1, 2].map(|at| awaited[at].saturating_sub(bios[at]));
        let mut figures = vec![
            Figure::exact("bios", bios),
            Figure::exact("flags", flags),
            Figure::near("merges", all.map(|traced| traced.merges), MERGES),
        ];
        if self.syncs() {
            figures.extend([
                Figure::exact("flushes", all.map(|traced| traced.requests_of("F"))),
                Figure::exact("FUA", all.map(|traced| traced.requests_of("WF"))),
                Figure::near("requests", all.map(Traced::all_requests), REQUESTS),
            ]);
        } else if self.job.contains(" mbps=") {
            figures.push(Figure::near("level", all.map(Traced::level), LEVEL));
            figures.push(Figure::near("pace", all.map(Traced::pace), PACE));
            if first.jobs.len() == 2 {
                let shares = all.map(Traced::share);
                figures.push(Figure { goal: SHARE, ..Figure::exact("share", shares) });
            }
        }
        figures
    }
}

/// A figure of a run and of both recordings.
struct Figure {
    name: &'static str,
    ours: u64,
    linux: u64,
    second: u64,
    /// How far ours may be off.
    goal: u64,
}

impl Figure {
    fn exact(name: &'static str, [ours, linux, second]: [u64; 3]) -> Self {
        Self { name, ours, linux, second, goal: 0 }
    }

    /// Returns a figure that may be off by `goal` in 1000.
    fn near(name: &'static str, all: [u64; 3], goal: u64) -> Self {
        Self { goal: all[1] * goal / 1000, ..Self::exact(name, all) }
    }
}

/// Returns a bio such as `W 8+16` as `W 16`.
fn without_sector(bio: &str) -> String {
    let (kind, range) = bio.split_once(' ').expect("KIND RANGE");
    format!("{kind} {}", range.split_once('+').expect("SECTOR+SECTORS").1)
}

/// Returns the sector at an offset such as `64m` or `128k`.
fn sector_of(offset: &str) -> u64 {
    match offset.strip_suffix('k') {
        Some(kib) => kib.parse::<u64>().unwrap() << 1,
        None => offset.trim_end_matches('m').parse::<u64>().unwrap() << 11,
    }
}

/// Returns the number of the region in which a bio such as `W 0+8` is: a flush is before all.
fn region(begins: &[u64], bio: &str) -> usize {
    let (kind, range) = bio.split_once(' ').expect("KIND RANGE");
    let sector: u64 = range.split_once('+').expect("SECTOR+SECTORS").0.parse().unwrap();
    let is_flush = kind.starts_with('F');
    if begins.is_empty() || is_flush {
        return 0;
    }
    begins.iter().filter(|begin| **begin <= sector).count()
}

/// The events of a run, and the bytes of the writes that have ended.
#[derive(Default)]
struct Watch {
    recorder: Recorder,
    awaited: Vec<String>,
    /// The bytes that the device has written, which the run reads, too.
    written_back: Rc<Cell<u64>>,
}

impl Sink for Watch {
    fn event(&mut self, event: &Event<'_>) {
        self.recorder.event(event);
        let is_bio = event.action == Action::Queue && event.op != blockyard::bio::Op::Flush;
        if let Some(last) = self.recorder.0.last().filter(|_| is_bio) {
            let (kind, range) = without_letter(last).split_once(' ').expect("KIND RANGE");
            let letter = if event.flags.contains(Flags::SYNC) { "S" } else { "" };
            self.awaited.push(format!("{kind}{letter} {range}"));
        }
        if event.action.letter() == Some('C') && event.op == blockyard::bio::Op::Write {
            self.written_back.update(|bytes| bytes + u64::from(event.sectors) * 512);
        }
    }
}

impl Observer for Watch {}

impl Watch {
    fn traced(&self, levels: Vec<(u64, u64)>, jobs: Vec<(u64, u64)>) -> Traced {
        let events = &self.recorder.0;
        let merges =
            events.iter().filter(|event| event.starts_with("M ") || event.starts_with("F "));
        Traced {
            bios: behind("Q ", events),
            awaited: self.awaited.clone(),
            requests: behind("D ", events),
            merges: u64::try_from(merges.count()).unwrap(),
            levels,
            jobs,
        }
    }
}

/// Returns an event such as `Q W 0+8` as `W 0+8`.
fn without_letter(event: &str) -> &str {
    event.split_once(' ').expect("LETTER KIND RANGE").1
}

/// Returns the events with a letter, without it.
fn behind(letter: &str, events: &[String]) -> Vec<String> {
    events.iter().filter_map(|event| event.strip_prefix(letter)).map(str::to_owned).collect()
}

/// Returns the milliseconds and the written bytes of each job.
fn jobs_of(report: &Report) -> Vec<(u64, u64)> {
    let of = |job: &JobReport| {
        let bytes = job.stats.ops.of(Op::Write).as_deref().map_or(0, |writes| writes.bytes);
        (job.stats.runtime_ns() / 1_000_000, bytes)
    };
    report.jobs.iter().map(of).collect()
}

#[test]
fn runs_that_write_through_the_page_cache_agree_with_linux() {
    let mut missed = BTreeSet::new();
    for (kernel, version) in KERNELS {
        let recordings = Recording::all(kernel, version);
        println!("{kernel}: {} recordings", recordings.len());
        assert!(recordings.len() >= 24, "{kernel}");
        missed.extend(recordings.iter().flat_map(Recording::missed));
    }
    // An entry without a kernel is one for each of them.
    let entries = MISSED.iter().flat_map(|(_, names)| *names);
    let of_kernels = entries.flat_map(|name| match name.contains('/') {
        true => vec![(*name).to_owned()],
        false => KERNELS.map(|(kernel, _)| format!("{kernel}/{name}")).into(),
    });
    let listed: BTreeSet<_> = of_kernels.collect();
    let [new, gone] = [missed.difference(&listed), listed.difference(&missed)].map(Vec::from_iter);
    assert!(new.is_empty() && gone.is_empty(), "missed: {new:#?}; no longer missed: {gone:#?}");
}
