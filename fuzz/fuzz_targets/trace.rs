//! Reads any bytes as a trace. The result is records in the order of time, the same ones each time, or an
//! error that names the file. Nothing panics. An accepted trace is replayed at every pace.
#![no_main]

use blockyard_devices::profile::{Design, Device};
use blockyard_sim::replay::{Map, Options, Pace, Replay};
use blockyard_trace::{Source, Trace};
use blockyard_sim::simulate::{Conditions, Simulation};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

/// The file name in errors.
const NAME: &str = "trace";
/// The longest trace that is replayed, in records: a run costs far more than reading.
const REPLAYED_MAX: u64 = 300;

static DEVICE: LazyLock<Device> =
    LazyLock::new(|| Device::lookup("null").expect("built-in profile"));
static DESIGN: LazyLock<Design> =
    LazyLock::new(|| Design::lookup("mq-none").expect("built-in profile"));

fuzz_target!(|bytes: &[u8]| {
    let trace = match Trace::open(Source::memory(NAME, bytes)) {
        Ok(trace) => trace,
        Err(error) => return assert!(error.to_string().starts_with(NAME), "{error}"),
    };
    let mut records = trace.records().expect("records of a trace that was read before");
    let (mut count, mut last) = (0, None);
    while let Some(record) = records.next().expect("records of a trace that was read before") {
        assert!(last.is_none_or(|last| last <= record.at), "{record:?}");
        (count, last) = (count + 1, Some(record.at));
    }
    assert_eq!(count, trace.summary().records);
    if count > REPLAYED_MAX {
        return;
    }
    for pace in [Pace::Open, Pace::Think, Pace::Closed(3)] {
        replay(trace.clone(), Options { pace, map: Some(Map::Wrap), ..Options::default() });
    }
});

fn replay(trace: Trace, options: Options) {
    let expected: u64 = trace.summary().records;
    let Ok(replay) = Replay::new(trace, options) else { return };
    let jobs = replay.job_file(&DEVICE);
    let Ok(simulation) = Simulation::under(
        &jobs,
        &DEVICE,
        &DESIGN,
        Conditions { replay: Some(&replay), ..Conditions::new(1) },
    ) else {
        return;
    };
    let report = simulation.finish().expect("a replay on a device that accepted the trace");
    let stats = &report.jobs[0].stats;
    let done: u64 = stats.measured().map(|measured| measured.ios).sum();
    assert_eq!(done + stats.syncs(), expected);
}
