//! The latency of syncs in answers: rows, goals, sentences, pages, comparisons.
//!
//! A new user asked whether a hard disk is fast enough for a log with `fdatasync=1`. The answer
//! showed the latency of the writes, 582 us, while each commit took 173 ms, and the goal
//! `log.p99<10ms` was met. A job waits for its syncs: every place that shows or judges latencies
//! has them now.

mod folder;

use std::fs;
use std::process::Command;

use folder::Folder;
use serde_json::Value;

const LOG: &str = "[global]\ndirect=1\nsize=64m\nruntime=10\ntime_based\n\
                   [log]\nrw=write\nbs=4k\nfdatasync=1\nrate_iops=10\n\
                   [reader]\nrw=randread\nbs=4k\nrate_iops=50\n";

/// Returns what a command prints, which must end with this exit code.
fn said(args: &[&str], code: i32) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_blockyard"));
    let output = command.args(args).env_remove("COLUMNS").output().expect("the program runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {errors}");
    String::from_utf8(output.stdout).expect("text")
}

fn json(args: &[&str]) -> Value {
    let args = [args, &["--output-format=json"]].concat();
    serde_json::from_str(&said(&args, 0)).expect("an answer")
}

fn disk(job: &str) -> [&str; 6] {
    [
        "whatif",
        job,
        "--device=hdd-7200",
        "--scheduler=none,mq-deadline",
        "--readings=0",
        "--seeds=1",
    ]
}

#[test]
fn syncs_have_a_row_a_sentence_and_goals() {
    let folder = Folder::new("syncs");
    let job = folder.file("log.fio", LOG);
    let text = said(&disk(&job), 0);
    assert!(
        text.lines().nth(1).is_some_and(|line| line.starts_with("log waits for its syncs: ")),
        "{text}"
    );
    assert!(text.contains("\nlog, sync\n"), "{text}");
    let answer = json(&disk(&job));
    let rows = answer["verdict"]["rows"].as_array().expect("rows");
    let names = rows.iter().map(|row| (row["job"].as_str(), row["direction"].as_str()));
    let [log, reader] = [Some("log"), Some("reader")];
    assert_eq!(
        names.collect::<Vec<_>>(),
        [(log, Some("sync")), (log, Some("write")), (reader, Some("read"))]
    );
    // A disk of 7200 rpm turns in 8.33 ms, and a sync waits for half a turn on average; a write
    // only reaches the cache.
    let syncs = &rows[0]["designs"][0];
    let writes = &rows[1]["designs"][0];
    assert!(syncs["p50_ns"].as_u64() > Some(4_160_000), "{syncs}");
    assert!(writes["p50_ns"].as_u64() < Some(1_000_000), "{writes}");
    assert_eq!(syncs["ios"], writes["ios"], "a sync for each write");
    assert_eq!(syncs["bytes_per_s"], 0);

    let met = [&disk(&job)[..], &["--goal=log.write.p99<8ms", "--check"]].concat();
    said(&met, 0);
    for goal in ["--goal=log.p99<8ms", "--goal=log.sync.p99<8ms", "--goal=log.sync.mean<=8ms"] {
        let missed = [&disk(&job)[..], &[goal, "--check"]].concat();
        assert!(said(&missed, 1).contains("\nNo design meets the goal.\n"), "{goal}");
    }
    let none = [&disk(&job)[..], &["--goal=reader.sync.p99<8ms"]].concat();
    said(&none, 2);
}

#[test]
fn durable_writes_are_syncs() {
    let folder = Folder::new("durable");
    for sync in ["sync=1", "sync=dsync", "sync=sync"] {
        let job = LOG.replace("fdatasync=1", sync);
        let job = folder.file("log.fio", &job);
        let answer = json(&disk(&job));
        let rows = [0, 1].map(|at| &answer["verdict"]["rows"][at]);
        assert_eq!(rows.map(|row| &row["direction"]), ["sync", "write"]);
        let [of_sync, of_write] = rows.map(|row| row["designs"][0]["p50_ns"].as_u64());
        assert_eq!(of_sync, of_write, "{sync}: a write waits until it is durable");
        assert!(of_sync > Some(4_000_000), "{sync}: {of_sync:?}");
    }
}

#[test]
fn pages_and_comparisons_have_syncs() {
    let folder = Folder::new("sync-pages");
    let job = folder.file("log.fio", LOG);
    let saved = [folder.path("a.json"), folder.path("b.json")];
    for (file, device) in saved.iter().zip(["hdd-7200", "nvme-tlc"]) {
        let device = format!("--device={device}");
        let output = format!("--output={file}");
        said(&["whatif", &job, &device, "--scheduler=none", "--output-format=json", &output], 0);
    }
    let text = said(&["compare", &saved[0], &saved[1]], 0);
    assert!(text.contains("\nlog, sync\n"), "{text}");
    let html = folder.path("page.html");
    said(&[&disk(&job)[..], &["--html", &html]].concat(), 0);
    let page = fs::read_to_string(html).expect("a page");
    assert!(page.contains("<h3>log, sync</h3>"), "a chart of syncs");
    assert!(page.contains("log waits for its syncs"), "the sentence");
}
