//! Recordings of Linux's block layer, and the simulator running the same job files.
//!
//! The head of a job file configures null_blk and its queue; `docs/TESTING.md` says how the
//! recordings were made.

pub(crate) mod archive;

use blockyard::bio::{Flags, Op};
use blockyard::trace::{Action, Event, Sink};
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_bytes};
use blockyard_sim::simulate::{Conditions, Simulation};
use blockyard_trace::observe::Observer;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

/// Writes events in the form of a recording, with the letters that [`comparable`] drops.
#[derive(Default)]
pub(crate) struct Recorder(pub(crate) Vec<String>);

impl Sink for Recorder {
    fn event(&mut self, event: &Event<'_>) {
        let Some(letter) = event.action.letter() else { return };
        let range = format!("{} {}+{}", kind(event), event.sector, event.sectors);
        self.0.push(match event.action {
            Action::Plug => "P".to_owned(),
            Action::Unplug { requests, .. } => format!("U {requests}"),
            Action::Split => {
                format!("X {range} / {}", event.sector + u64::from(event.sectors))
            }
            _ => format!("{letter} {range}"),
        });
    }
}

impl Observer for Recorder {}

fn kind(event: &Event<'_>) -> String {
    let preflush = if event.flags.contains(Flags::PREFLUSH) { "F" } else { "" };
    if event.op == Op::Flush {
        // Linux submits a flush as an empty write with a preflush, which ends as a write. blktrace
        // has one bit for preflush and flush.
        let of_submitter = if event.action.letter() == Some('C') { "W" } else { "FW" };
        return if preflush.is_empty() { of_submitter } else { "F" }.to_owned();
    }
    let fua = if event.flags.contains(Flags::FUA) { "F" } else { "" };
    let op = match event.op {
        Op::Read => "R",
        Op::Write => "W",
        Op::Discard => "D",
        _ => "N",
    };
    format!("{preflush}{op}{fua}")
}

/// Removes the letters of a recorded event that are not compared: `S` and `M` of its kind, and the
/// `N` of an event without a kind.
pub(crate) fn comparable(line: &str) -> String {
    let mut words = line.split(' ');
    let action = words.next().unwrap_or("");
    let kind = words.next().unwrap_or("");
    let kind = kind.trim_end_matches(['S', 'M']);
    let kept = [action].into_iter().chain((kind != "N").then_some(kind)).chain(words);
    kept.collect::<Vec<_>>().join(" ")
}

/// Settings of writeback and of the machine: their keys in `[cpu]` of a device, and their units.
const CPU: [(&str, &str, &str); 7] = [
    ("dirty_background_bytes", "dirty-background-bytes", "B"),
    ("dirty_bytes", "dirty-bytes", "B"),
    // 100 hundredths of a second are 1000 ms.
    ("dirty_expire_centisecs", "dirty-expire", "0ms"),
    ("dirty_writeback_centisecs", "dirty-writeback", "0ms"),
    ("page_copy_ns", "page-copy", "ns"),
    ("syscall_ns", "syscall", "ns"),
    ("insert_ns", "insert", "ns"),
];

/// The head of a job file: parameters of null_blk and of its queue, and settings of writeback and
/// of the machine.
pub(crate) struct Parameters(pub(crate) BTreeMap<String, u64>);

impl Parameters {
    pub(crate) fn of(job: &str) -> Self {
        let lines = job.lines().filter_map(|line| {
            ["; null_blk: ", "; queue: ", "; vm: ", "; cpu: "]
                .iter()
                .find_map(|head| line.strip_prefix(head))
        });
        let pairs = lines.flat_map(|line| line.split(' ')).map(|pair| {
            let (key, value) = pair.split_once('=').expect("a parameter should be KEY=VALUE");
            (key.to_owned(), value.parse().expect("the value of a parameter should be a number"))
        });
        Self(pairs.collect())
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    pub(crate) fn device(&self) -> Device {
        self.device_on(4)
    }

    /// Returns the device on a machine with this many processors.
    pub(crate) fn device_on(&self, cpus: u64) -> Device {
        let completion = ["none", "softirq", "timer"][usize::try_from(self.0["irqmode"]).unwrap()];
        let of_driver = self.0.get("max_sectors").copied().unwrap_or(255);
        let of_queue = self.0.get("max_sectors_kb").map_or(u64::MAX, |kib| kib * 2);
        let has_fua = self.has("cache_size") && self.0.get("fua") != Some(&0);
        let mut cpu = String::new();
        for (setting, key, unit) in CPU {
            if let Some(number) = self.0.get(setting) {
                cpu += &format!("{key} = \"{number}{unit}\"\n");
            }
        }
        let text = format!(
            "base = \"null\"\n\
             [limits]\nmax-sectors = {}\nwrite-cache = {}\nfua = {}\nrotational = {}\n\
             [null]\ncompletion = \"{completion}\"\ncompletion-time = \"{}ns\"\n\
             submit-queues = {}\ndepth = {}\n{}\
             [cpu]\ncpus = {cpus}\n{cpu}",
            of_driver.min(of_queue),
            self.has("cache_size"),
            has_fua,
            self.0.get("rotational") == Some(&1),
            self.0["completion_nsec"],
            self.0["submit_queues"],
            self.0["hw_queue_depth"],
            self.0.get("mbps").map_or(String::new(), |mib| bandwidth_limit(*mib)),
        );
        Device::parse("null_blk", &text).unwrap()
    }

    /// Returns the design of Linux 6.12, which made the recordings, with `scheduler`.
    pub(crate) fn design(&self, scheduler: &str) -> Design {
        self.design_on(if scheduler == "none" { "mq-none-6.12" } else { "mq-deadline-6.12" })
    }

    /// Returns the built-in design `base` with the parameters of the queue.
    pub(crate) fn design_on(&self, base: &str) -> Design {
        let mut queue = String::new();
        let mut deadline = String::new();
        let mut bfq = String::new();
        for (key, value) in &self.0 {
            match key.as_str() {
                "nr_requests" => queue += &format!("sched-depth = {value}\n"),
                "iosched/read_expire" => deadline += &format!("read-expire = \"{value}ms\"\n"),
                "iosched/write_expire" => deadline += &format!("write-expire = \"{value}ms\"\n"),
                "iosched/writes_starved" => deadline += &format!("writes-starved = {value}\n"),
                "iosched/fifo_batch" => deadline += &format!("fifo-batch = {value}\n"),
                "iosched/front_merges" => deadline += &format!("front-merges = {}\n", *value == 1),
                "iosched/low_latency" => bfq += &format!("low-latency = {}\n", *value == 1),
                "iosched/strict_guarantees" => {
                    bfq += &format!("strict-guarantees = {}\n", *value == 1);
                }
                "iosched/slice_idle" => bfq += &format!("slice-idle = \"{value}ms\"\n"),
                "iosched/timeout_sync" => bfq += &format!("timeout-sync = \"{value}ms\"\n"),
                "iosched/max_budget" => bfq += &format!("max-budget = {value}\n"),
                "iosched/back_seek_max" => bfq += &format!("back-seek-max = {value}\n"),
                "iosched/back_seek_penalty" => bfq += &format!("back-seek-penalty = {value}\n"),
                "iosched/fifo_expire_sync" => bfq += &format!("fifo-expire-sync = \"{value}ms\"\n"),
                "iosched/fifo_expire_async" => {
                    bfq += &format!("fifo-expire-async = \"{value}ms\"\n");
                }
                _ => {}
            }
        }
        let mut text = format!("base = \"{base}\"\n[queue]\n{queue}");
        if !deadline.is_empty() {
            text += &format!("[queue.deadline]\n{deadline}");
        }
        if !bfq.is_empty() {
            text += &format!("[queue.bfq]\n{bfq}");
        }
        Design::parse("6.12", &text).unwrap()
    }
}

/// Returns the line of a device for null_blk with `mbps`. Its budget, 1/50 of a second, is refilled
/// every 20 ms, and a request that does not fit waits for the next one; what was left is lost.
/// Requests have 124 KiB here: the largest with whole pages and at most 127 KiB. With 40 MiB a
/// second, the budget is 838,860 bytes: six requests of 126,976 bytes, 38,092,800 bytes a second.
fn bandwidth_limit(mib: u64) -> String {
    const TICKS: u64 = 50;
    const REQUEST: u64 = 124 << 10;
    let requests = (mib << 20) / TICKS / REQUEST;
    format!("bandwidth-limit = \"{}B/s\"\n", requests * REQUEST * TICKS)
}

/// A recording of Linux, of a job under a scheduler.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) folder: PathBuf,
    pub(crate) job: String,
    pub(crate) scheduler: String,
    /// The lines of the recording.
    pub(crate) events: Vec<String>,
}

impl Recording {
    /// Returns every recording of a folder of `tests`, by name.
    pub(crate) fn all(folder: &str) -> Vec<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
        let mut names = names(&folder);
        names.retain(|name| !name.ends_with(".fio"));
        let recording = |name: String| {
            let (job, scheduler) =
                name.rsplit_once('.').expect("a recording is called JOB.SCHEDULER");
            Self {
                job: job.to_owned(),
                scheduler: scheduler.to_owned(),
                events: read(&folder, &name).lines().map(comparable).collect(),
                folder: folder.clone(),
            }
        };
        names.into_iter().map(recording).collect()
    }

    pub(crate) fn name(&self) -> String {
        format!("{}.{}", self.job, self.scheduler)
    }

    fn job_file(&self) -> String {
        read(&self.folder, &format!("{}.fio", self.job))
    }

    pub(crate) fn parameters(&self) -> Parameters {
        Parameters::of(&self.job_file())
    }

    /// Returns the events of our block layer for the job.
    pub(crate) fn simulate(&self) -> Vec<String> {
        let parameters = self.parameters();
        let device = parameters.device();
        let design = parameters.design(&self.scheduler);
        let jobs = parse_bytes(&self.job, self.job_file().as_bytes(), &NoSource).unwrap();
        let mut recorder = Recorder::default();
        let simulation =
            Simulation::observed(&jobs, &device, &design, Conditions::new(1), &mut recorder);
        let finished = simulation.unwrap().finish();
        finished.unwrap_or_else(|error| panic!("{}: {error}", self.name()));
        recorder.0
    }

    /// Finds jobs of a folder without their recordings, and recordings under a scheduler that the
    /// job does not name.
    pub(crate) fn assert_complete(folder: &str) {
        let all = Self::all(folder);
        let recorded: BTreeSet<_> = all.iter().map(Self::name).collect();
        let folder = &all[0].folder;
        let mut named = BTreeSet::new();
        for name in names(folder) {
            let Some(job) = name.strip_suffix(".fio") else { continue };
            let text = read(folder, &name);
            let schedulers = text.lines().filter_map(|line| line.strip_prefix("; scheduler: "));
            named.extend(schedulers.map(|by| format!("{job}.{by}")));
        }
        assert_eq!(recorded, named);
    }
}

/// Returns the names of the files in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns the events of one order.
pub(crate) fn order<'a>(events: &'a [String], actions: &str) -> Vec<&'a str> {
    events
        .iter()
        .map(String::as_str)
        .filter(|event| event.starts_with(|c| actions.contains(c)))
        .collect()
}

/// The letters of the events that are counted: bios, cuts, merges, commands and completions.
const COUNTED: &str = "QXMFDC";

/// Returns the numbers of events of a recording or a run. A recording of a long job begins with
/// them.
pub(crate) fn counts(events: &[String]) -> BTreeMap<char, usize> {
    let mut counts = BTreeMap::new();
    for event in events {
        let letter = event.chars().next().unwrap();
        let recorded = event.split_once(' ').and_then(|(_, count)| count.parse().ok());
        *counts.entry(letter).or_default() += recorded.unwrap_or(1);
    }
    counts.retain(|letter, _| COUNTED.contains(*letter));
    counts
}

/// Returns the requests of a recording or run in the order of dispatch.
pub(crate) fn dispatched(events: &[String]) -> Vec<&str> {
    let mut requests = order(events, "D");
    requests.retain(|event| event.contains('+'));
    requests
}

/// Returns how many requests are not part of the longest sequence that both orders have.
pub(crate) fn displaced(ours: &[&str], theirs: &[&str]) -> usize {
    let mut places: BTreeMap<_, VecDeque<_>> = BTreeMap::new();
    for (at, request) in theirs.iter().enumerate() {
        places.entry(request).or_default().push_back(at);
    }
    // The place at which the best rising sequence of each length ends.
    let mut ends: Vec<usize> = Vec::new();
    for request in ours {
        let Some(at) = places.get_mut(request).and_then(VecDeque::pop_front) else { continue };
        let longer = ends.partition_point(|end| *end < at);
        match ends.get_mut(longer) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    ours.len().max(theirs.len()) - ends.len()
}
