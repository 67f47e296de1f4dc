//! Recordings of Linux 6.12 and 7.3, compared with replays of them and with runs of their jobs.
//!
//! `tests/kernels` has an archive for each kernel. A recording begins with the line `= NAME
//! DISPLACED COUNTS`: how many requests a second recording displaced, and whether it had the `same`
//! numbers of events or `other` ones. It has a line for each event: the microseconds since the last
//! event; its thread (0 for an interrupt, a number for one of fio's threads, `k` for a worker); and
//! the event, as in the other recordings. `docs/TESTING.md` says how they were made.
//!
//! A replay submits the recorded bios at the recorded instants. Where Linux repeats its order of
//! dispatch, the replay must have it too. Where it does not, the replay must be about as close to
//! the recording as the second recording is.

use crate::oracle;

use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_bytes};
use blockyard_sim::replay::{Options, Pace, Replay};
use blockyard_sim::simulate::{Conditions, Simulation};
use blockyard_trace::{Source, Trace};
use oracle::{Parameters, Recorder, archive, comparable, counts, dispatched, displaced};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The kernels: the folder of the recordings, and the end of the names of its designs.
const KERNELS: [(&str, &str); 2] = [("6.12", "-6.12"), ("7.3", "")];

/// The folders of the job files, and the beginning of the names of their recordings.
const JOBS: [(&str, &str); 4] = [
    ("null_blk_long", "long_"),
    ("null_blk_blocking", "blocking_"),
    ("kernels", ""),
    ("null_blk", ""),
];

/// Reasons, and the recordings whose order Linux repeats and a replay does not have. The list may
/// only shrink.
const DIFFERS: &[(&str, &[&str])] = &[
    (
        "a bio takes 6 us to the driver in the guest, and of 1 ms that add up from one command to \
         the next one, which decides how many bios merge before a command",
        &["6.12/lone-depth64-over32.kyber", "6.12/lone-depth64-over32.mq-deadline"],
    ),
    (
        "threads of one processor are one submitter in an open replay, and where one waits for a \
         tag, those after it wait too",
        &[
            "6.12/long_waiting16-depth4.mq-deadline",
            "6.12/long_waiting16-depth4.none",
            "6.12/long_waiting32-write-depth8.none",
            "6.12/long_waiting64-depth4.none",
            "6.12/long_waiting64-depth8.mq-deadline",
            "6.12/long_waiting64-depth8.none",
            "7.3/long_waiting16-depth4.mq-deadline",
            "7.3/long_waiting16-depth4.none",
            "7.3/long_waiting32-write-depth8.none",
            "7.3/long_waiting64-depth4.none",
            "7.3/long_waiting64-depth8.none",
        ],
    ),
    (
        "without a plug a worker dispatches a lone bio, and the worker takes the processor from fio \
         at instants that a replay does not know",
        &[
            "7.3/batch2.mq-deadline",
            "7.3/blocking_uring-depth8.mq-deadline",
            "7.3/full-depth1-nr64.mq-deadline",
            "7.3/full-depth2-nr64.mq-deadline",
            "7.3/full-depth4-nr64.mq-deadline",
            "7.3/full-depth8-nr64.mq-deadline",
            "7.3/full-descending.mq-deadline",
            "7.3/uring-batch2.mq-deadline",
        ],
    ),
];

/// Reasons, and the recordings whose counts Linux repeats and a run does not have. The list may
/// only shrink.
const COUNTS_DIFFER: &[(&str, &[&str])] = &[
    (
        "the speed of the guest decides how many bios merge",
        &[
            "6.12/lone-depth64-over32.kyber",
            "6.12/lone-depth64-over32.mq-deadline",
            "7.3/lone-depth64-over32.mq-deadline",
        ],
    ),
    (
        "without a plug a worker dispatches a lone bio, and in the guest it begins with lag: it ran \
         beside fio in the recording before",
        &[
            "7.3/blocking_full-depth8.mq-deadline",
            "7.3/depth8-inline.mq-deadline",
            "7.3/depth8-softirq.mq-deadline",
            "7.3/depth8-timer.mq-deadline",
            "7.3/full-depth1.mq-deadline",
            "7.3/full-depth2.mq-deadline",
            "7.3/full-depth4.mq-deadline",
            "7.3/full-depth8.mq-deadline",
            "7.3/full-no-front-merges.mq-deadline",
        ],
    ),
];

/// A recording of a kernel.
struct Recording {
    name: String,
    /// The job file.
    job: String,
    device: Device,
    design: Design,
    /// The events, in the form of the other recordings.
    events: Vec<String>,
    /// The recording as output of blkparse.
    trace: String,
    second: Second,
}

/// The second recording of a job.
#[derive(Clone, Copy)]
struct Second {
    displaced: usize,
    has_equal_counts: bool,
}

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// Returns the text of the job file of a recording.
fn job_file(job: &str) -> String {
    let place = JOBS.into_iter().find_map(|(folder, prefix)| {
        let file = tests().join(folder).join(format!("{}.fio", job.strip_prefix(prefix)?));
        file.exists().then_some(file)
    });
    fs::read_to_string(place.unwrap_or_else(|| panic!("no job file of {job}"))).unwrap()
}

/// Returns the events of a recording as output of blkparse.
fn trace_of(recorded: &str) -> String {
    const FIRST_PID: u32 = 700;
    let mut text = String::new();
    let mut at_us: u64 = 0;
    for (number, line) in recorded.lines().enumerate() {
        let [time, thread, event] = *line.splitn(3, ' ').collect::<Vec<_>>() else {
            panic!("no TIME THREAD EVENT: {line}")
        };
        at_us += time.parse::<u64>().unwrap();
        let pid = match thread {
            "0" => 0,
            "k" => FIRST_PID - 1,
            thread => FIRST_PID + thread.parse::<u32>().unwrap(),
        };
        let event = match *event.split(' ').collect::<Vec<_>>() {
            ["P", kind] => format!("P {kind} [fio]"),
            ["U", kind, requests] => format!("U {kind} [fio] {requests}"),
            [letter, kind, range, ..] => {
                let (sector, sectors) = range.split_once('+').expect("SECTOR+SECTORS");
                format!("{letter} {kind} {sector} + {sectors} [fio]")
            }
            _ => panic!("no event: {line}"),
        };
        let s = at_us / 1_000_000;
        let us = at_us % 1_000_000;
        text += &format!("259,0 0 {number} {s}.{us:06}000 {pid} {event}\n");
    }
    text
}

impl Recording {
    /// Returns all recordings of a kernel.
    fn all(kernel: &str, version: &str) -> Vec<Self> {
        let archive = fs::read(tests().join("kernels").join(format!("{kernel}.gz"))).unwrap();
        let text = archive::text(&archive);
        text.split("= ").skip(1).map(|recorded| Self::parse(kernel, version, recorded)).collect()
    }

    fn parse(kernel: &str, version: &str, recorded: &str) -> Self {
        let (head, events) = recorded.split_once('\n').expect("NAME DISPLACED COUNTS");
        let [name, displaced, counts] = *head.split(' ').collect::<Vec<_>>() else {
            panic!("no head: {head}")
        };
        let (job, scheduler) = name.rsplit_once('.').expect("JOB.SCHEDULER");
        let file = job_file(job);
        let parameters = Parameters::of(&file);
        let base = match scheduler {
            "none" => "mq-none",
            "kyber" => "mq-kyber",
            other => other,
        };
        let event = |line: &str| comparable(line.splitn(3, ' ').nth(2).unwrap());
        Self {
            device: parameters.device_on(parameters.0["submit_queues"]),
            design: parameters.design_on(&format!("{base}{version}")),
            events: events.lines().map(event).collect(),
            trace: trace_of(events),
            second: Second {
                displaced: displaced.parse().unwrap(),
                has_equal_counts: counts == "same",
            },
            name: format!("{kernel}/{name}"),
            job: file,
        }
    }

    /// Returns the events of our block layer for a replay.
    fn replay(&self) -> Vec<String> {
        let trace = Trace::open(Source::memory(&self.name, self.trace.as_bytes())).unwrap();
        let replay =
            Replay::new(trace, Options { pace: Pace::Open, ..Options::default() }).unwrap();
        let conditions = Conditions { replay: Some(&replay), ..Conditions::new(1) };
        self.events_of(&replay.job_file(&self.device), conditions)
    }

    /// Returns the events of our block layer for a run of the job.
    fn run(&self) -> Vec<String> {
        let jobs = parse_bytes(&self.name, self.job.as_bytes(), &NoSource).unwrap();
        self.events_of(&jobs, Conditions::new(1))
    }

    fn events_of(
        &self,
        jobs: &blockyard_fio::job::JobFile,
        conditions: Conditions<'_>,
    ) -> Vec<String> {
        let mut recorder = Recorder::default();
        let simulation =
            Simulation::observed(jobs, &self.device, &self.design, conditions, &mut recorder);
        let finished = simulation.unwrap().finish();
        finished.unwrap_or_else(|error| panic!("{}: {error}", self.name));
        recorder.0
    }
}

/// What a comparison found.
#[derive(Default)]
struct Found {
    /// Recordings whose order Linux repeats, and those of them whose replay has another one.
    repeated: usize,
    other_order: BTreeSet<String>,
    /// Of the others, what the replay displaces in percent of what the second recording does.
    percents: Vec<usize>,
    /// Recordings whose counts Linux repeats, and those of them whose run has other ones.
    counted: usize,
    other_counts: BTreeSet<String>,
}

fn compare(recording: &Recording, found: &mut Found) {
    let Recording { name, second, .. } = recording;
    let theirs = dispatched(&recording.events);
    let moved = displaced(&dispatched(&recording.replay()), &theirs);
    if second.displaced == 0 && second.has_equal_counts {
        found.repeated += 1;
        if moved > 0 {
            found.other_order.insert(name.clone());
        }
    } else if let Some(percent) = (moved * 100).checked_div(second.displaced) {
        found.percents.push(percent);
    }
    let run = counts(&recording.run());
    let recorded = counts(&recording.events);
    if second.has_equal_counts {
        found.counted += 1;
        if run != recorded {
            found.other_counts.insert(name.clone());
        }
    }
    if moved > 0 || run != recorded {
        let all = theirs.len();
        let linux = second.displaced;
        println!(
            "{name}: {moved} of {all} displaced, Linux {linux}; run {run:?}, Linux {recorded:?}"
        );
    }
}

/// Returns the recordings of a kernel in a list.
fn listed(list: &[(&str, &[&str])], kernel: &str) -> BTreeSet<String> {
    let names = list.iter().flat_map(|(_, names)| *names).map(|name| (*name).to_owned());
    names.filter(|name| name.split_once('/').is_some_and(|(of, _)| of == kernel)).collect()
}

#[test]
fn replays_and_runs_agree_with_the_recordings_of_two_kernels() {
    for (kernel, version) in KERNELS {
        let mut found = Found::default();
        for recording in Recording::all(kernel, version) {
            compare(&recording, &mut found);
        }
        let Found { repeated, mut percents, counted, other_order, other_counts } = found;
        percents.sort_unstable();
        let median = percents[percents.len() / 2];
        let identical = repeated - other_order.len();
        let agreeing = counted - other_counts.len();
        println!(
            "{kernel}: replays identical {identical} of {repeated}, median of the others \
             {median} %; runs with equal counts {agreeing} of {counted}"
        );
        // The lists are exact, so that whoever repairs a difference shortens them.
        assert_eq!(other_order, listed(DIFFERS, kernel), "{kernel}: order of replays");
        assert_eq!(other_counts, listed(COUNTS_DIFFER, kernel), "{kernel}: counts of runs");
        assert!(repeated >= 109 && counted >= 118, "{kernel}: {repeated} and {counted}");
        assert!(median <= 120, "{kernel}: {median} %");
        assert!(agreeing * 100 >= counted * 90, "{kernel}: {agreeing} of {counted}");
    }
}

/// The recorded instants and threads are those of the trace that is replayed.
#[test]
fn a_recording_becomes_output_of_blkparse() {
    let recorded = "0 1 Q WS 0+8\n3 1 P N\n2 1 U N 1\n1 k D WS 0+8\n999996 0 C WS 0+8\n";
    let expected = "259,0 0 0 0.000000000 701 Q WS 0 + 8 [fio]\n\
                    259,0 0 1 0.000003000 701 P N [fio]\n\
                    259,0 0 2 0.000005000 701 U N [fio] 1\n\
                    259,0 0 3 0.000006000 699 D WS 0 + 8 [fio]\n\
                    259,0 0 4 1.000002000 0 C WS 0 + 8 [fio]\n";
    assert_eq!(trace_of(recorded), expected);
}
