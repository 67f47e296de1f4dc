//! The events of the block layer for a job, compared with recordings of Linux on null_blk.
//!
//! `tests/null_blk` holds job files, and recordings of the events that blktrace saw when fio ran them;
//! `docs/TESTING.md` says how they were made. These tests run the same job files in the simulator, on a
//! device with the parameters in the head of the file, under today's designs.
//!
//! Three orders must agree, including the sectors of each event: that of submission (`Q`, `X`, `M`, `F`,
//! `G`, `P`, `U` with its number of requests, `I`), that of dispatch (`D`) and that of completion (`C`).
//! All counts then agree too. The interleaving of the three is not compared, as it depends on the speed
//! of the processor. `S` is not compared either, as Linux 6.12 does not trace that a submitter sleeps for
//! a tag. [`DIFFERS`] lists each order that cannot agree, with the reason. It must differ: an order that
//! agrees must be removed from the list.
//!
//! Each recording with plugs is also replayed as a trace: the requests that are dispatched must be the recorded ones.

use blockyard::bio::{Flags, Op};
use blockyard::trace::{Action, Event, Sink};
use blockyard_sim::job::{NoSource, parse_bytes};
use blockyard_sim::observe::Observer;
use blockyard_sim::profile::{Design, Device};
use blockyard_sim::replay::{Options, Pace, Replay, Source, Trace, Warning};
use blockyard_sim::simulate::{Conditions, Simulation};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The known differences: the job, or one recording of it; the orders that differ; and the reason.
const DIFFERS: &[(&str, &[&str], &str)] = &[
    (
        "cache-sync",
        ALL,
        "a write with O_SYNC to a block device ends with a flush; ours is only FUA",
    ),
    ("cache-sync-fua", ALL, "as `cache-sync`: Linux does this for O_DSYNC too"),
    ("sync-trim.none", &["submission"], "the ioctl sleeps with its plug, and a worker issues"),
    ("full-batch-none", &["submission"], "Linux traces Q before a sleep for a tag; we do after it"),
];
const ALL: &[&str] = &["submission", "dispatch", "completion"];

/// The orders to compare, with the actions of each.
const ORDERS: [(&str, &str); 3] =
    [("submission", "QXMFGPUI"), ("dispatch", "D"), ("completion", "C")];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/null_blk")
}

fn read(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Writes events in the form of a recording, with the letters that [`comparable`] drops.
#[derive(Default)]
struct Recorder(Vec<String>);

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
        // Linux submits a flush as an empty write with a preflush, which ends as a write. blktrace has one bit for
        // preflush and flush.
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

/// Removes the letters of a recorded event that are not compared: `S` and `M` of its kind, and the `N` of
/// an event without a kind.
fn comparable(line: &str) -> String {
    let mut words = line.split(' ');
    let (action, kind) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let kind = kind.trim_end_matches(['S', 'M']);
    let kept = [action].into_iter().chain((kind != "N").then_some(kind)).chain(words);
    kept.collect::<Vec<_>>().join(" ")
}

/// The head of a job file: parameters of null_blk and of its queue.
struct Parameters(BTreeMap<String, u64>);

impl Parameters {
    fn of(job: &str) -> Self {
        let lines = job.lines().filter_map(|line| {
            line.strip_prefix("; null_blk: ").or_else(|| line.strip_prefix("; queue: "))
        });
        let pairs = lines.flat_map(|line| line.split(' ')).map(|pair| {
            let (key, value) = pair.split_once('=').expect("a parameter should be KEY=VALUE");
            (key.to_owned(), value.parse().expect("the value of a parameter should be a number"))
        });
        Self(pairs.collect())
    }

    fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    fn device(&self) -> Device {
        let completion = ["none", "softirq", "timer"][usize::try_from(self.0["irqmode"]).unwrap()];
        let of_driver = self.0.get("max_sectors").copied().unwrap_or(255);
        let of_queue = self.0.get("max_sectors_kb").map_or(u64::MAX, |kib| kib * 2);
        let text = format!(
            "base = \"null\"\n\
             [limits]\nmax-sectors = {}\nwrite-cache = {}\nfua = {}\n\
             [null]\ncompletion = \"{completion}\"\ncompletion-time = \"{}ns\"\n\
             submit-queues = {}\ndepth = {}\n\
             [cpu]\ncpus = 4\n",
            of_driver.min(of_queue),
            self.has("cache_size"),
            self.has("cache_size"),
            self.0["completion_nsec"],
            self.0["submit_queues"],
            self.0["hw_queue_depth"],
        );
        Device::parse("null_blk", &text).unwrap()
    }

    /// Returns today's design with `scheduler`.
    fn design(&self, scheduler: &str) -> Design {
        let base = if scheduler == "none" { "mq-none" } else { scheduler };
        let (mut queue, mut deadline) = (String::new(), String::new());
        for (key, value) in &self.0 {
            match key.as_str() {
                "nr_requests" => queue += &format!("sched-depth = {value}\n"),
                "iosched/read_expire" => deadline += &format!("read-expire = \"{value}ms\"\n"),
                "iosched/write_expire" => deadline += &format!("write-expire = \"{value}ms\"\n"),
                "iosched/writes_starved" => deadline += &format!("writes-starved = {value}\n"),
                "iosched/fifo_batch" => deadline += &format!("fifo-batch = {value}\n"),
                "iosched/front_merges" => deadline += &format!("front-merges = {}\n", *value == 1),
                _ => {}
            }
        }
        let mut text = format!("base = \"{base}\"\n[queue]\n{queue}");
        if !deadline.is_empty() {
            text += &format!("[queue.deadline]\n{deadline}");
        }
        Design::parse("today", &text).unwrap()
    }
}

/// Returns the events of our block layer for a job.
fn simulate(job: &str, scheduler: &str) -> Vec<String> {
    let text = read(&format!("{job}.fio"));
    let parameters = Parameters::of(&text);
    let (device, design) = (parameters.device(), parameters.design(scheduler));
    let jobs = parse_bytes(job, text.as_bytes(), &NoSource).unwrap();
    let mut recorder = Recorder::default();
    let simulation =
        Simulation::observed(&jobs, &device, &design, Conditions::new(1), &mut recorder);
    simulation.unwrap().finish().unwrap_or_else(|error| panic!("{job}.{scheduler}: {error}"));
    recorder.0
}

/// Returns a recording of a device that takes `answer_us` as output of blkparse, for a replay: one thread's events, 2 us
/// apart. What follows a completion is no thread's. `plugs`: with `P` and `U`.
fn trace(events: &[String], answer_us: u64, plugs: bool) -> String {
    let mut text = String::new();
    let mut at_us = 0;
    let mut dispatched = BTreeMap::new();
    for (number, event) in events.iter().enumerate() {
        at_us += 2;
        let words: Vec<_> = event.split(' ').collect();
        match *words.as_slice() {
            ["D", _, range] => _ = dispatched.insert(range, at_us),
            ["C", _, range] => at_us = at_us.max(dispatched[range] + answer_us),
            _ => {}
        }
        let rest = match *words.as_slice() {
            ["P"] if plugs => "P N [fio]".to_owned(),
            ["U", requests] if plugs => format!("U N [fio] {requests}"),
            [letter @ ("Q" | "I" | "D"), kind, range] => {
                let (sector, sectors) = range.split_once('+').expect("a range is SECTOR+SECTORS");
                format!("{letter} {kind} {sector} + {sectors} [fio]")
            }
            _ => continue,
        };
        let after_completion = number > 0 && events[number - 1].starts_with('C');
        let pid = if event.starts_with('D') && after_completion { 0 } else { 700 };
        let at = format!("{}.{:06}000", at_us / 1_000_000, at_us % 1_000_000);
        text += &format!("259,0 0 {number} {at} {pid} {rest}\n");
    }
    text
}

/// Returns the events of our block layer for a replay of such a trace.
fn replay(job: &str, scheduler: &str, trace: &str, pace: Pace) -> Vec<String> {
    let parameters = Parameters::of(&read(&format!("{job}.fio")));
    let (device, design) = (parameters.device(), parameters.design(scheduler));
    let trace = Trace::open(Source::memory(job, trace.as_bytes())).unwrap();
    let replay = Replay::new(trace, Options { pace, ..Options::default() }).unwrap();
    let jobs = replay.job_file(&device);
    let mut recorder = Recorder::default();
    let conditions = Conditions { replay: Some(&replay), ..Conditions::new(1) };
    let simulation = Simulation::observed(&jobs, &device, &design, conditions, &mut recorder);
    simulation.unwrap().finish().unwrap_or_else(|error| panic!("{job}.{scheduler}: {error}"));
    recorder.0
}

/// Returns the events of one order.
fn order<'a>(events: &'a [String], actions: &str) -> Vec<&'a str> {
    events
        .iter()
        .map(String::as_str)
        .filter(|event| event.starts_with(|c| actions.contains(c)))
        .collect()
}

/// Returns the orders that differ between us and Linux, each with its first difference.
fn differences(ours: &[String], theirs: &[String]) -> Vec<(&'static str, String)> {
    let difference = |(name, actions)| {
        let (ours, theirs) = (order(ours, actions), order(theirs, actions));
        let at = (0..ours.len().max(theirs.len())).find(|at| ours.get(*at) != theirs.get(*at))?;
        let (ours, theirs) = (ours.get(at), theirs.get(at));
        Some((name, format!("event {at}: Linux has {theirs:?}, we have {ours:?}")))
    };
    ORDERS.into_iter().filter_map(difference).collect()
}

/// Returns every recording: job, scheduler and events.
fn recordings() -> Vec<(String, String, Vec<String>)> {
    let mut names: Vec<_> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.ends_with(".fio"))
        .collect();
    names.sort();
    let recording = |name: String| {
        let (job, scheduler) = name.rsplit_once('.').expect("a recording is called JOB.SCHEDULER");
        let events = read(&name).lines().map(comparable).collect();
        (job.to_owned(), scheduler.to_owned(), events)
    };
    names.into_iter().map(recording).collect()
}

#[test]
fn each_job_is_submitted_dispatched_and_completed_as_linux_did() {
    let mut wrong = Vec::new();
    for (job, scheduler, theirs) in recordings() {
        let name = format!("{job}.{scheduler}");
        let listed = DIFFERS.iter().filter(|(of, ..)| *of == job || *of == name);
        let listed: Vec<_> = listed.flat_map(|(_, orders, _)| orders.iter().copied()).collect();
        let found = differences(&simulate(&job, &scheduler), &theirs);
        for order in &listed {
            if !found.iter().any(|(differs, _)| differs == order) {
                wrong.push(format!("{name}: {order} agrees: remove it from `DIFFERS`"));
            }
        }
        let unlisted = found.iter().filter(|(order, _)| !listed.contains(order));
        wrong.extend(unlisted.map(|(order, difference)| format!("{name}: {order}, {difference}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A replay of a recording makes the recorded requests: what a thread had plugged is plugged again. Without plugs in the
/// trace, threads and times tell the same calls.
#[test]
fn a_replayed_recording_makes_the_recorded_requests() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for (job, scheduler, theirs) in recordings() {
        if !theirs.iter().any(|event| event == "P") {
            continue;
        }
        let name = format!("{job}.{scheduler}");
        let parameters = Parameters::of(&read(&format!("{job}.fio")));
        let answer_us = parameters.0["completion_nsec"] / 1000;
        for (plugs, pace) in [
            (true, Pace::Open),
            (true, Pace::Think),
            (true, Pace::Closed(256)),
            (false, Pace::Open),
        ] {
            let has_syncs = job.starts_with("cache") && matches!(pace, Pace::Closed(_));
            if has_syncs || (!plugs && name == "full-depth8.none") {
                continue; // A closed loop does not wait for a sync. Linux traces Q before a sleep for a tag.
            }
            let ours = replay(&job, &scheduler, &trace(&theirs, answer_us, plugs), pace);
            let (ours, theirs) = (order(&ours, "D"), order(&theirs, "D"));
            compared += 1;
            if ours != theirs {
                let (ours, theirs) = (ours.len(), theirs.len());
                wrong.push(format!(
                    "{name} ({pace:?}, plugs {plugs}): {ours} for {theirs} requests"
                ));
            }
        }
    }
    assert!(compared > 100, "{compared}");
    assert!(wrong.is_empty(), "{} of {compared}: {}", wrong.len(), wrong.join("\n"));
}

#[test]
fn assumed_calls_are_told() {
    let (_, _, events) = recordings().into_iter().find(|(job, ..)| job == "batch64").unwrap();
    let warnings = |plugs| {
        let trace = trace(&events, 10_000, plugs);
        Trace::open(Source::memory("trace", trace.as_bytes())).unwrap().summary().warnings.clone()
    };
    assert_eq!(warnings(true), []);
    assert_eq!(warnings(false), [Warning::Calls]);
}

/// Finds jobs without their recordings, and recordings under a scheduler that the job does not name.
#[test]
fn each_job_has_the_recordings_it_names() {
    let recorded: BTreeSet<_> = recordings().into_iter().map(|(job, by, _)| (job, by)).collect();
    let mut named = BTreeSet::new();
    for entry in fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(job) = name.strip_suffix(".fio") else { continue };
        let text = read(&name);
        let schedulers = text.lines().filter_map(|line| line.strip_prefix("; scheduler: "));
        named.extend(schedulers.map(|by| (job.to_owned(), by.to_owned())));
    }
    assert_eq!(recorded, named);
}

/// The comparison sees a missing, additional, changed or reordered event, and ignores how the orders
/// interleave.
#[test]
fn the_comparison_sees_each_kind_of_difference() {
    let events = |text: &str| -> Vec<String> { text.lines().map(comparable).collect() };
    let theirs = events("Q WS 0+8\nG WS 0+8\nQ R 8+8\nD WS 0+8\nD R 8+8\nC WS 0+8");
    let interleaved = events("Q W 0+8\nG W 0+8\nD W 0+8\nQ R 8+8\nC W 0+8\nD R 8+8");
    assert_eq!(differences(&interleaved, &theirs), []);
    for other in [
        "Q W 0+8\nG W 0+8\nQ R 8+8\nD W 0+8\nD R 8+8",
        "Q W 0+8\nG W 0+8\nQ R 8+8\nD W 0+8\nD R 8+8\nC W 0+8\nC R 8+8",
        "Q W 0+8\nG W 0+8\nQ R 8+8\nD W 0+16\nD R 8+8\nC W 0+8",
        "Q W 0+8\nG W 0+8\nQ R 8+8\nD R 8+8\nD W 0+8\nC W 0+8",
        "Q WF 0+8\nG W 0+8\nQ R 8+8\nD W 0+8\nD R 8+8\nC W 0+8",
    ] {
        assert!(!differences(&events(other), &theirs).is_empty(), "{other}");
    }
}
