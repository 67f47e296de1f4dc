//! `blkparse` and `btt` read files that `--blktrace` wrote without a complaint, and their counts
//! equal ours.
//!
//! Without these tools (Debian's package `blktrace`) the test is skipped, except in CI (`CI` is
//! set), where they are required.

mod folder;
mod traced;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output};

use blockyard::stats::{Direction, Stage, StageStats};
use blockyard::status::Status;
use blockyard::trace::Action;
use folder::Folder;
use traced::CASES;

fn is_missing(tool: &str) -> bool {
    let missing = Command::new(tool).arg("-V").output().is_err();
    if missing {
        assert!(std::env::var_os("CI").is_none(), "CI requires {tool}");
        eprintln!("skipped: {tool} is not installed");
    }
    missing
}

/// Returns the standard output of `tool` in `folder`. Standard error may only name the files that
/// it reads.
fn output(tool: &str, args: &[&str], folder: &Path) -> String {
    let command = Command::new(tool).args(args).current_dir(folder).output();
    let Output { status, stdout, stderr } = command.unwrap();
    let complaints = String::from_utf8(stderr).unwrap();
    let complaints: Vec<_> =
        complaints.lines().filter(|line| !line.starts_with("Input file ")).collect();
    assert!(status.success() && complaints.is_empty(), "{tool} {args:?}: {complaints:?}");
    String::from_utf8(stdout).unwrap()
}

fn count(stages: &StageStats, actions: &[Action]) -> u64 {
    actions.iter().map(|action| stages.count(*action)).sum()
}

/// Returns our own counts by blktrace's action letters.
fn counted(stages: &StageStats) -> BTreeMap<&'static str, u64> {
    let unplug = Action::Unplug { requests: 0, sleeping: false };
    BTreeMap::from([
        ("Q", count(stages, &[Action::Queue])),
        ("X", count(stages, &[Action::Split])),
        ("M", count(stages, &[Action::BackMerge, Action::Join])),
        ("F", count(stages, &[Action::FrontMerge])),
        ("G", count(stages, &[Action::GetRequest])),
        ("S", count(stages, &[Action::Sleep])),
        ("P", count(stages, &[Action::Plug])),
        ("U", count(stages, &[unplug])),
        ("I", count(stages, &[Action::Insert])),
        ("D", count(stages, &[Action::Issue])),
        ("C", completions(stages)),
        ("R", count(stages, &[Action::Requeue])),
    ])
}

/// Returns the number of completions with any status.
fn completions(stages: &StageStats) -> u64 {
    [
        Status::Ok,
        Status::IoError,
        Status::Medium,
        Status::Timeout,
        Status::NoSpace,
        Status::NotSupported,
        Status::Gone,
    ]
    .map(|status| stages.count(Action::Complete(status)))
    .iter()
    .sum()
}

/// Returns the event lines of blkparse's output as words: device, processor, number, time, process,
/// action, kind, and more.
fn events(text: &str) -> Vec<Vec<&str>> {
    let is_event = |words: &Vec<&str>| words.first().is_some_and(|first| first.starts_with("8,"));
    text.lines().map(|line| line.split_whitespace().collect()).filter(is_event).collect()
}

#[test]
fn blkparse_counts_what_we_count() {
    if is_missing("blkparse") {
        return;
    }
    let folder = Folder::new("blkparse");
    let mut seen = BTreeMap::new();
    for case in &CASES {
        let report = case.run(&folder.0, false, true);
        let text = output("blkparse", &["-i", case.name], &folder.0);
        assert!(text.contains("Skips: 0 forward"), "{}: {text}", case.name);
        let mut theirs = BTreeMap::new();
        for words in events(&text) {
            // blkparse has its own letter for an unplug by a sleeping submitter.
            let letter = if words[5] == "UT" { "U" } else { words[5] };
            *theirs.entry(letter.to_owned()).or_insert(0) += 1;
        }
        for (letter, ours) in counted(&report.stages) {
            assert_eq!(theirs.remove(letter).unwrap_or(0), ours, "{}: {letter}", case.name);
            *seen.entry(letter).or_insert(0) += ours;
        }
        assert!(theirs.is_empty(), "{}: {theirs:?}", case.name);
    }
    assert!(seen.values().all(|count| *count > 0), "every action should occur: {seen:?}");
}

/// Each record states its category, by which blkparse can filter.
#[test]
fn records_are_in_the_categories_that_blkparse_filters_by() {
    if is_missing("blkparse") {
        return;
    }
    let folder = Folder::new("blkparse-filters");
    let case = CASES.iter().find(|case| case.name == "refused").unwrap();
    case.run(&folder.0, false, true);
    let letters = |category: &str| {
        let text = output("blkparse", &["-i", case.name, "-a", category], &folder.0);
        let letters: BTreeSet<_> = events(&text).iter().map(|words| words[5].to_owned()).collect();
        letters.into_iter().collect::<String>()
    };
    assert_eq!(letters("issue"), "D");
    assert_eq!(letters("complete"), "C");
    assert_eq!(letters("requeue"), "R");
    assert_eq!(letters("queue"), "GIPQSU");
    assert_eq!(letters("sync"), "CDGIQRS");
    // A plug has no operation. Its 0 is that of reads, for Linux as well.
    assert_eq!([letters("read"), letters("discard")], ["PU", ""]);
}

fn shown(folder: &Folder, name: &str) -> String {
    let case = CASES.iter().find(|case| case.name == name).unwrap();
    case.run(&folder.0, false, true);
    output("blkparse", &["-i", name], &folder.0)
}

#[test]
fn blkparse_shows_processes_splits_and_errors() {
    if is_missing("blkparse") {
        return;
    }
    let folder = Folder::new("blkparse-shows");
    let text = shown(&folder, "elevator");
    let all = events(&text);
    let first = all[0].clone();
    assert_eq!(first[..7], ["8,0", "0", "1", "0.000000000", "1000", "Q", "R"]);
    let of_first: Vec<_> = all.iter().filter(|words| words.get(7) == Some(&first[7])).collect();
    let letters: String = of_first.iter().map(|words| words[5]).collect();
    assert_eq!(letters, "QGIDC", "a lone read under mq-deadline");
    assert_eq!(of_first.last().unwrap().last(), Some(&"[0]"), "without error");
    assert!(of_first.iter().take(3).all(|words| words.last() == Some(&"[job]")), "{text}");

    let text = shown(&folder, "split");
    let split = events(&text).into_iter().find(|words| words[5] == "X").unwrap();
    let [from, slash, rest] = split[7..10] else { panic!("{split:?}") };
    let sectors: u64 = rest.parse::<u64>().unwrap() - from.parse::<u64>().unwrap();
    assert_eq!(
        (split[6], slash, sectors),
        ("WS", "/", 1024),
        "the part should be as long as the device allows"
    );

    let text = shown(&folder, "plugged");
    let requests = events(&text)
        .iter()
        .filter(|words| matches!(words[5], "U" | "UT"))
        .map(|words| words.last().unwrap().parse::<u64>().unwrap())
        .sum::<u64>();
    let got = events(&text).iter().filter(|words| words[5] == "G").count() as u64;
    // Calls of one or two I/Os pass no plug.
    assert!(0 < requests && requests < got, "{requests} of {got} requests pass a plug");

    let text = shown(&folder, "refused");
    for disk in ["8,0", "8,16"] {
        assert!(events(&text).iter().any(|words| words[0] == disk), "{disk}");
    }
}

/// Returns the mean in ns and the count of `phase` from btt's first table.
fn phase(btt: &str, phase: &str) -> (u64, u64) {
    let row = btt.lines().find(|line| line.starts_with(phase)).unwrap_or_else(|| panic!("{btt}"));
    let words: Vec<_> = row.split_whitespace().collect();
    let (seconds, ns) = words[2].split_once('.').unwrap();
    let ns = seconds.parse::<u64>().unwrap() * 1_000_000_000 + ns.parse::<u64>().unwrap();
    (ns, words[4].parse().unwrap())
}

#[test]
fn btt_measures_the_same_times() {
    if is_missing("blkparse") || is_missing("btt") {
        return;
    }
    let folder = Folder::new("btt");
    // Without merges and requeues each I/O is one request and passes each stage once.
    for case in CASES.iter().filter(|case| ["random", "elevator"].contains(&case.name)) {
        let report = case.run(&folder.0, false, true);
        let binary = format!("{}.bin", case.name);
        output("blkparse", &["-i", case.name, "-d", &binary, "-O"], &folder.0);
        let btt = output("btt", &["-i", &binary], &folder.0);
        for (theirs, ours) in [("D2C", Stage::InDriver), ("Q2C", Stage::Total)] {
            let (mean, count) = phase(&btt, theirs);
            assert_eq!(
                count,
                report.stages.times_ns(Direction::Read, ours).count(),
                "{} {theirs}",
                case.name
            );
            assert!(
                mean.abs_diff(report.stages.times_ns(Direction::Read, ours).mean()) <= 1,
                "{} {theirs}: {mean}",
                case.name
            );
        }
        if case.name == "elevator" {
            let (mean, count) = phase(&btt, "I2D");
            let waited = report.stages.times_ns(Direction::Read, Stage::Staged).sum()
                + report.stages.times_ns(Direction::Read, Stage::Held).sum();
            let waited = u64::try_from(waited / u128::from(count)).unwrap();
            assert!(mean.abs_diff(waited) <= 1, "I2D: {mean}, ours {waited}");
        }
    }
}
