//! A Perfetto trace is consistent: every span ends, slices on one track do not overlap, counters
//! return to zero, and each event occurs as often as the statistics say.

mod folder;
mod traced;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use blockyard::stats::{Direction, Stage};
use blockyard::trace::{Action, Hold};
use blockyard_sim::simulate::Report;
use folder::Folder;
use serde_json::Value;
use traced::CASES;

/// One event of the trace.
struct Event {
    phase: char,
    track: (u64, u64),
    ns: u64,
    name: String,
    value: Value,
}

/// Converts microseconds to nanoseconds.
#[expect(clippy::float_arithmetic, reason = "serde_json reads a number with a point as a float")]
#[expect(clippy::cast_possible_truncation, reason = "a test runs for less than a second")]
#[expect(clippy::cast_sign_loss, reason = "no time is negative")]
fn ns(value: &Value) -> u64 {
    (value.as_f64().unwrap() * 1000.0).round() as u64
}

fn events(text: &str) -> Vec<Event> {
    let trace: Value = serde_json::from_str(text).unwrap();
    let event = |value: &Value| Event {
        phase: value["ph"].as_str().unwrap().chars().next().unwrap(),
        track: (value["pid"].as_u64().unwrap(), value["tid"].as_u64().unwrap_or(0)),
        ns: ns(&value["ts"]),
        name: value["name"].as_str().unwrap().to_owned(),
        value: value.clone(),
    };
    trace["traceEvents"].as_array().unwrap().iter().map(event).collect()
}

/// Returns the process numbers by name, without the design's prefix.
fn processes(events: &[Event]) -> BTreeMap<String, u64> {
    let named = events.iter().filter(|event| event.name == "process_name");
    let named = named.map(|event| {
        let name = event.value["args"]["name"].as_str().unwrap();
        (name.split_once(": ").unwrap().1.to_owned(), event.track.0)
    });
    named.collect()
}

/// Asserts that every begin has its end and that spans of one request do not overlap. Returns the
/// number and the total length in ns of the spans of each name.
fn spans(events: &[Event]) -> BTreeMap<&str, (u64, u64)> {
    let mut open: BTreeMap<u64, &Event> = BTreeMap::new();
    let mut ended: BTreeMap<u64, u64> = BTreeMap::new();
    let mut spans = BTreeMap::new();
    for event in events.iter().filter(|event| matches!(event.phase, 'b' | 'e')) {
        let id = event.value["id"].as_u64().unwrap();
        if event.phase == 'b' {
            assert!(ended.get(&id).is_none_or(|end| *end <= event.ns), "{}", event.value);
            assert!(open.insert(id, event).is_none(), "{}", event.value);
        } else {
            let begin = open.remove(&id).unwrap_or_else(|| panic!("no begin: {}", event.value));
            assert_eq!(begin.name, event.name);
            assert!(begin.ns <= event.ns, "{}", event.value);
            ended.insert(id, event.ns);
            let (count, sum) = spans.entry(begin.name.as_str()).or_insert((0, 0));
            (*count, *sum) = (*count + 1, *sum + event.ns - begin.ns);
        }
    }
    assert!(open.is_empty(), "without end: {:?}", open.keys());
    spans
}

/// Asserts that slices on one track do not overlap.
fn check_tracks(events: &[Event]) {
    let mut tracks: BTreeMap<(u64, u64), Vec<(u64, u64)>> = BTreeMap::new();
    for event in events.iter().filter(|event| event.phase == 'X') {
        let end = event.ns + ns(&event.value["dur"]);
        tracks.entry(event.track).or_default().push((event.ns, end));
    }
    for (track, mut slices) in tracks {
        slices.sort_unstable();
        for pair in slices.windows(2) {
            assert!(pair[0].1 <= pair[1].0, "{track:?}: {pair:?}");
        }
    }
}

/// Asserts that a command occupies its device slot from the instant at which a processor has issued
/// it.
fn check_begins(events: &[Event]) {
    let processes = processes(events);
    let [processors, slots] = ["processors", "device slots"].map(|name| {
        let process = processes[name];
        events.iter().filter(move |event| event.phase == 'X' && event.track.0 == process)
    });
    let ends: BTreeSet<u64> = processors.map(|event| event.ns + ns(&event.value["dur"])).collect();
    for command in slots {
        assert!(ends.contains(&command.ns), "{}", command.value);
    }
}

/// Asserts that a requeued request leaves the driver at the instant of its requeue.
fn check_requeues(events: &[Event]) {
    let [ends, requeues] = [('e', "in driver"), ('i', "requeue")].map(|(phase, name)| {
        events.iter().filter(move |event| event.phase == phase && event.name == name)
    });
    let ends: BTreeSet<u64> = ends.map(|event| event.ns).collect();
    for requeue in requeues {
        assert!(ends.contains(&requeue.ns), "{}", requeue.value);
    }
}

/// Returns the largest and the last value of each counter.
fn counters(events: &[Event]) -> BTreeMap<String, (u64, u64)> {
    let mut counters = BTreeMap::new();
    for event in events.iter().filter(|event| event.phase == 'C') {
        for (series, value) in event.value["args"].as_object().unwrap() {
            let value = value.as_u64().unwrap_or_else(|| panic!("negative: {}", event.value));
            let known = counters.entry(format!("{} {series}", event.name)).or_insert((0, 0));
            *known = (value.max(known.0), value);
        }
    }
    counters
}

fn is_named(events: &[Event], what: &str, track: (u64, u64)) -> bool {
    events.iter().any(|event| event.name == what && event.track == track)
}

fn check_names(events: &[Event]) {
    let mut tracks: Vec<_> = events.iter().map(|event| event.track).collect();
    tracks.sort_unstable();
    tracks.dedup();
    for track in tracks {
        assert!(is_named(events, "process_name", (track.0, 0)), "{track:?}");
        assert!(track.1 == 0 || is_named(events, "thread_name", track), "{track:?}");
    }
}

/// Asserts that each kind of instant occurs as often as the statistics say.
fn check_instants(events: &[Event], report: &Report) {
    let unplug = Action::Unplug { requests: 0, sleeping: false };
    let mut expected: BTreeMap<&str, u64> = BTreeMap::from([
        ("back merge", report.stages.count(Action::BackMerge)),
        ("front merge", report.stages.count(Action::FrontMerge)),
        ("join", report.stages.count(Action::Join)),
        ("split", report.stages.count(Action::Split)),
        ("sleep", report.stages.count(Action::Sleep)),
        ("unplug", report.stages.count(unplug)),
        ("requeue", report.stages.count(Action::Requeue)),
    ]);
    let instants = events.iter().filter(|event| event.phase == 'i');
    let is_hold = |event: &&Event| event.name.starts_with("hold: ");
    for event in instants.clone().filter(|event| !is_hold(event)) {
        let left = expected.get_mut(event.name.as_str());
        if let Some(left) = left {
            *left -= 1;
        } else {
            assert!(event.name.starts_with("refused: "), "{}", event.value);
        }
    }
    assert!(expected.values().all(|left| *left == 0), "not in the trace: {expected:?}");

    // A hold appears only if its reason differs from the previous one on its hardware queue.
    let mut last = BTreeMap::new();
    for hold in instants.clone().filter(is_hold) {
        let before = last.insert(hold.track, hold.name.as_str());
        assert_ne!(before, Some(hold.name.as_str()), "{}", hold.value);
    }
    for reason in Hold::ALL {
        let name = format!("hold: {}", reason.name());
        let told = instants.clone().any(|event| event.name == name);
        assert_eq!(told, report.stages.count(Action::Hold(reason)) > 0, "{name}");
    }
}

// [observed-in-time-order]
#[test]
fn traces_are_consistent_and_match_the_statistics() {
    let folder = Folder::new("sound");
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    for case in &CASES {
        let report = case.run(&folder.0, true, false);
        let text = fs::read_to_string(case.perfetto(&folder.0)).unwrap();
        let events = events(&text);
        check_names(&events);
        check_tracks(&events);
        check_begins(&events);
        check_requeues(&events);
        check_instants(&events, &report);

        let issued = report.stages.count(Action::Issue);
        let spans = spans(&events);
        assert_eq!(spans["in driver"].0, issued, "{}", case.name);
        let slots = processes(&events)["device slots"];
        let commands = events.iter().filter(|event| event.phase == 'X' && event.track.0 == slots);
        assert_eq!(commands.count() as u64, issued, "{}", case.name);
        if report.stages.count(Action::Requeue) == 0 {
            let ours = Direction::DATA
                .map(|direction| report.stages.times_ns(direction, Stage::InDriver).sum());
            assert_eq!(u128::from(spans["in driver"].1), ours.iter().sum(), "{}", case.name);
        }

        let counters = counters(&events);
        for (name, (_, last)) in &counters {
            assert!(*last == 0 || name.ends_with("submitted"), "{} {name}: {last}", case.name);
        }
        let submitted = counters.iter().filter(|(name, _)| name.ends_with("submitted"));
        let submitted = submitted.map(|(_, (_, last))| last).sum::<u64>();
        assert_eq!(submitted, report.stages.count(Action::Queue), "{}", case.name);
        if case.name == "random" {
            assert_eq!(counters["disk 0 in flight"].0, 62, "the LUN's depth");
        }
        for event in &events {
            *seen.entry(event.name.clone()).or_default() += 1;
        }
    }
    for name in ["staged", "held", "requeue", "back merge", "split", "spin", "run", "interrupt"] {
        assert!(seen.contains_key(name), "{name} never happens");
    }
}

/// A request in an elevator holds no driver tag. Without an elevator every request holds one.
#[test]
fn tag_counters_match_the_requests_that_hold_tags() {
    let folder = Folder::new("tags");
    for (name, shown_by) in [("elevator", "disk 0 in flight"), ("random", "disk 0 requests")] {
        let case = CASES.iter().find(|case| case.name == name).unwrap();
        case.run(&folder.0, true, false);
        let text = fs::read_to_string(case.perfetto(&folder.0)).unwrap();
        let mut now: BTreeMap<String, u64> = BTreeMap::new();
        let mut checked = 0;
        let events = events(&text);
        let counters: Vec<_> = events.iter().filter(|event| event.phase == 'C').collect();
        for (at, event) in counters.iter().enumerate() {
            for (series, value) in event.value["args"].as_object().unwrap() {
                now.insert(format!("{} {series}", event.name), value.as_u64().unwrap());
            }
            if counters.get(at + 1).is_some_and(|next| next.ns == event.ns) {
                continue; // more counters of this instant follow
            }
            let tags = now.iter().filter(|(name, _)| name.ends_with(" tags"));
            let tags: u64 = tags.map(|(_, value)| value).sum();
            // A counter that was not written yet is zero.
            let shown = now.get(shown_by).copied().unwrap_or_default();
            assert_eq!(tags, shown, "{name} at {} ns", event.ns);
            checked += 1;
        }
        assert!(checked > 100);
    }
}
