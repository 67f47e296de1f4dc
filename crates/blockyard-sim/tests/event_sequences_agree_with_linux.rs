//! The events of the block layer for a job, compared with recordings of Linux on null_blk.
//!
//! `tests/null_blk` holds job files, and recordings of the events that blktrace saw when fio ran
//! them; `docs/TESTING.md` says how they were made. These tests run the same job files in the
//! simulator, on a device with the parameters in the head of the file, under today's designs.
//!
//! Three orders must agree, including the sectors of each event: that of submission (`Q`, `X`, `M`,
//! `F`, `G`, `P`, `U` with its number of requests, `I`), that of dispatch (`D`) and that of
//! completion (`C`). All counts then agree too. The interleaving of the three is not compared, as
//! it depends on the speed of the processor. `S` is not compared either, as Linux 6.12 does not
//! trace that a submitter sleeps for a tag. [`DIFFERS`] lists each order that cannot agree, with
//! the reason. It must differ: an order that agrees must be removed from the list.
//!
//! Each recording with plugs is also replayed as a trace: the requests that are dispatched must be
//! the recorded ones.

use crate::oracle;

use blockyard_sim::replay::{Options, Pace, Replay};
use blockyard_sim::simulate::{Conditions, Simulation};
use blockyard_trace::{Source, Trace, Warning};
use oracle::{Recorder, Recording, comparable, order};
use std::collections::BTreeMap;

/// The folder of the recordings.
const FOLDER: &str = "null_blk";
/// The folder of recordings of a driver that may sleep (`blocking=1`).
const BLOCKING: &str = "null_blk_blocking";

/// The known differences: the job, or one recording of it; the orders that differ; and the reason.
const DIFFERS: &[(&str, &[&str], &str)] = &[
    ("sync-trim.none", &["submission"], "the ioctl sleeps with its plug, and a worker issues"),
    ("full-batch-none", &["submission"], "Linux traces Q before a sleep for a tag; we do after it"),
];

/// The orders to compare, with the actions of each.
const ORDERS: [(&str, &str); 3] =
    [("submission", "QXMFGPUI"), ("dispatch", "D"), ("completion", "C")];

/// Returns a recording of a device that takes `answer_us` as output of blkparse, for a replay: one
/// thread's events, 2 us apart. What follows a completion is no thread's. `plugs`: with `P` and
/// `U`.
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
fn replay(recording: &Recording, trace: &str, pace: Pace) -> Vec<String> {
    let parameters = recording.parameters();
    let device = parameters.device();
    let design = parameters.design(&recording.scheduler);
    let trace = Trace::open(Source::memory(&recording.job, trace.as_bytes())).unwrap();
    let replay = Replay::new(trace, Options { pace, ..Options::default() }).unwrap();
    let jobs = replay.job_file(&device);
    let mut recorder = Recorder::default();
    let conditions = Conditions { replay: Some(&replay), ..Conditions::new(1) };
    let simulation = Simulation::observed(&jobs, &device, &design, conditions, &mut recorder);
    let finished = simulation.unwrap().finish();
    finished.unwrap_or_else(|error| panic!("{}: {error}", recording.name()));
    recorder.0
}

/// Returns the orders that differ between us and Linux, each with its first difference.
fn differences(ours: &[String], theirs: &[String]) -> Vec<(&'static str, String)> {
    let difference = |(name, actions)| {
        let ours = order(ours, actions);
        let theirs = order(theirs, actions);
        let at = (0..ours.len().max(theirs.len())).find(|at| ours.get(*at) != theirs.get(*at))?;
        let ours = ours.get(at);
        let theirs = theirs.get(at);
        Some((name, format!("event {at}: Linux has {theirs:?}, we have {ours:?}")))
    };
    ORDERS.into_iter().filter_map(difference).collect()
}

/// A driver that may sleep makes no difference, as since Linux 6.10.
#[test]
fn each_job_is_submitted_dispatched_and_completed_as_linux_did() {
    let mut wrong = Vec::new();
    for recording in [FOLDER, BLOCKING].into_iter().flat_map(Recording::all) {
        let name = recording.name();
        let listed = DIFFERS.iter().filter(|(of, ..)| *of == recording.job || *of == name);
        let listed: Vec<_> = listed.flat_map(|(_, orders, _)| orders.iter().copied()).collect();
        let found = differences(&recording.simulate(), &recording.events);
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

/// A replay of a recording makes the recorded requests: what a thread had plugged is plugged again.
/// Without plugs in the trace, threads and times tell the same calls.
#[test]
fn a_replayed_recording_makes_the_recorded_requests() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for recording in Recording::all(FOLDER) {
        let theirs = &recording.events;
        if !theirs.iter().any(|event| event == "P") {
            continue;
        }
        let name = recording.name();
        let answer_us = recording.parameters().0["completion_nsec"] / 1000;
        for (plugs, pace) in [
            (true, Pace::Open),
            (true, Pace::Think),
            (true, Pace::Closed(256)),
            (false, Pace::Open),
        ] {
            let has_syncs = recording.job.starts_with("cache") && matches!(pace, Pace::Closed(_));
            if has_syncs || (!plugs && name == "full-depth8.none") {
                // A closed loop does not wait for a sync. Linux traces Q before a sleep for a tag.
                continue;
            }
            let ours = replay(&recording, &trace(theirs, answer_us, plugs), pace);
            let ours = order(&ours, "D");
            let theirs = order(theirs, "D");
            compared += 1;
            if ours != theirs {
                let ours = ours.len();
                let theirs = theirs.len();
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
    let recording = Recording::all(FOLDER).into_iter().find(|of| of.job == "batch64").unwrap();
    fn warnings(plugs: bool, recording_events: &[String]) -> Vec<Warning> {
        let trace = trace(recording_events, 10_000, plugs);
        Trace::open(Source::memory("trace", trace.as_bytes())).unwrap().summary().warnings.clone()
    }
    assert_eq!(warnings(true, &recording.events), []);
    assert_eq!(warnings(false, &recording.events), [Warning::Calls]);
}

#[test]
fn each_job_has_the_recordings_it_names() {
    for folder in [FOLDER, BLOCKING] {
        Recording::assert_complete(folder);
    }
}

/// The comparison sees a missing, additional, changed or reordered event, and ignores how the
/// orders interleave.
#[test]
fn the_comparison_sees_each_kind_of_difference() {
    fn events(text: &str) -> Vec<String> {
        text.lines().map(comparable).collect()
    }
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
