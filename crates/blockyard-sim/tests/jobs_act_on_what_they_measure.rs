//! Jobs that search for a depth, end in a steady state, or end the run below a rate; and other
//! options that shape when I/O is issued. Each expectation follows from the job and the profile by
//! hand.

use blockyard::stats::Histogram;
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{JobFile, NoSource, Op, parse_args, parse_bytes};
use blockyard_fio::measure::JobStats;
use blockyard_sim::simulate::{Conditions, Report, Simulation, SimulationError};

const MS: u64 = 1_000_000;

/// Room in the elevator, if there is one, for all I/Os that a small device does not take.
const PATIENT: &str = "[queue]\nsched-depth = 64\n";

/// A disk of 1 GiB that takes `depth` I/Os at a time, and a millisecond for each.
fn device(depth: u32) -> Device {
    let text = format!(
        "base = \"null\"\n[limits]\ncapacity = \"1GiB\"\n[null]\ncompletion = \"timer\"\n\
         completion-time = \"1ms\"\nsubmit-queues = 1\ndepth = {depth}\n"
    );
    Device::parse("test", &text).unwrap()
}

fn args(options: &str) -> JobFile {
    parse_args(format!("--name=j {options}").split_whitespace(), &NoSource).unwrap()
}

fn try_run(jobs: &JobFile, depth: u32, design: &str) -> Result<Report, SimulationError> {
    let design = Design::parse("test", &format!("base = \"{design}\"\n{PATIENT}")).unwrap();
    Simulation::under(jobs, &device(depth), &design, Conditions::new(7))?.finish()
}

fn run(options: &str, depth: u32) -> Report {
    try_run(&args(&format!("--direct=1 {options}")), depth, "mq-none").unwrap()
}

fn error(options: &str) -> String {
    try_run(&args(&format!("--direct=1 {options}")), 64, "mq-none").unwrap_err().to_string()
}

/// The span of a run in whole milliseconds.
fn ms(report: &Report) -> u64 {
    report.span.as_ns() / MS
}

/// An I/O that is due in 10 ms waits for the one in flight if the job itself submits, as fio's job
/// does before it sleeps. Other threads would submit it in time.
#[test]
fn offloaded_io_is_issued_when_it_is_due() {
    fn device(mode: &str) -> u64 {
        let options = "--ioengine=libaio --iodepth=8 --rate_iops=2000 --number_ios=2";
        run(&format!("{options} --io_submit_mode={mode}"), 64).span.as_ns() / 100_000
    }
    // Inline, the job waits for the first I/O, 1 ms, and then for the half millisecond by which it
    // was ahead.
    assert_eq!(device("inline"), 25, "due after 0.5 ms, issued after 1.5 ms");
    assert_eq!(device("offload"), 15, "due and issued after 0.5 ms");
}

/// Of 2 I/Os on a device that takes one at a time, the first ends after 1 ms and the second after
/// 2 ms. At depth 2 the second fills the depth, and fio 3.33 then waits for one I/O, and after that
/// for the other (`io_getevents` with 1 and 1). At depth 3 it waits for both at once (2).
#[test]
fn a_job_whose_last_io_fills_its_depth_waits_for_one_io_first() {
    let latencies = [2, 3].map(|depth| {
        let options = format!("--rw=randread --ioengine=libaio --iodepth={depth} --number_ios=2");
        let jobs = args(&format!("--direct=1 {options}"));
        let report = try_run(&jobs, 1, "mq-deadline").unwrap();
        let read = report.jobs[0].stats.ops.read.as_deref().unwrap();
        [read.lat_ns.min(), read.lat_ns.max()].map(|ns| ns / MS)
    });
    assert_eq!(latencies, [[1, 2], [2, 2]]);
}

/// Four I/Os fit into the device. A fifth waits for one of them, and takes two milliseconds.
#[test]
fn a_latency_target_finds_the_depth_that_keeps_it() {
    for percentile in ["100", "90"] {
        let options = format!(
            "--rw=randread --ioengine=libaio --iodepth=64 --norandommap --latency_target=1500 \
             --latency_window=100ms --latency_percentile={percentile} --time_based --runtime=60"
        );
        let report = run(&options, 4);
        let stats = &report.jobs[0].stats;
        assert_eq!(stats.depth_found, Some(4), "{percentile} %");
        let measured = stats.ops.read.as_deref().unwrap();
        assert!(measured.lat_ns.percentile(99_000) <= 1500 * 1000, "without the search");
        let windows = stats.runtime_ns() / (100 * MS);
        assert_eq!(windows, 1, "only the last window is reported");
    }
}

#[test]
fn a_target_that_no_depth_keeps_ends_the_run() {
    let error = error("--latency_target=500 --latency_window=10ms --ioengine=libaio --iodepth=4");
    assert!(error.contains("longer than the 500 us"), "{error}");
}

/// The device always takes the same time. The samples of the third, fourth and fifth second are the
/// first window.
#[test]
fn a_job_ends_when_it_is_steady() {
    for criterion in ["iops:1%", "bw_slope:0.5%", "lat:2%"] {
        let options = format!(
            "--rw=randread --time_based --runtime=60 --ss={criterion} --ss_dur=3 --ss_ramp=2"
        );
        let report = run(&options, 64);
        let steady = report.jobs[0].stats.steady.as_deref().unwrap();
        assert!(steady.attained, "{criterion}");
        assert_eq!(ms(&report) / 100, 50, "{criterion}");
        assert!(steady.samples.iter().all(|sample| (980..=1000).contains(&sample.iops)));
    }
}

#[test]
fn a_job_that_is_not_steady_runs_to_its_end() {
    let options = "--rw=randread --time_based --runtime=4 --ss=iops:1% --ss_dur=5";
    let report = run(options, 64);
    let steady = report.jobs[0].stats.steady.as_deref().unwrap();
    assert!(!steady.attained, "the window is longer than the job");
    assert_eq!(ms(&report) / 100, 40);
}

#[test]
fn a_job_below_its_least_rate_ends_the_run() {
    let job = "--rw=randread --time_based --runtime=10 --bs=4k";
    let low = error(&format!("{job} --rate_iops_min=1500"));
    assert!(low.contains("I/Os per second, below rate_iops_min=1500"), "{low}");
    assert!(low.contains("at 3."), "two seconds to settle, and a cycle of one: {low}");
    let low = error(&format!("{job} --rate_min=5m --rate_cycle=2000"));
    assert!(low.contains("B/s, below rate_min=5242880") && low.contains("at 4."), "{low}");
    assert_eq!(ms(&run(&format!("{job} --rate_iops_min=900 --ratemin=3m"), 64)) / 100, 100);
    let late = error(&format!("{job} --max_latency=900"));
    assert!(late.contains("longer than the 900 us"), "{late}");
    assert_eq!(ms(&run(&format!("{job} --max_latency=2ms"), 64)) / 100, 100);
}

/// Returns the mean of `values` in microseconds.
fn mean_us(values: &Histogram) -> u64 {
    u64::try_from(values.sum() / u128::from(values.count().max(1)) / 1000).unwrap()
}

/// The device takes one I/O at a time, so that the others wait in the elevator, which prefers the
/// first class.
#[test]
fn single_ios_may_have_a_priority() {
    let job = "--direct=1 --rw=randread --ioengine=libaio --iodepth=32 --number_ios=2000";
    fn latencies(options: &str, design: &str, job: &str) -> (u64, u64, u64) {
        let report = try_run(&args(&format!("{job} {options}")), 1, design).unwrap();
        let measured = report.jobs[0].stats.ops.read.clone().unwrap();
        let [others, first] = [0, 1].map(|class| &measured.by_priority[&(class << 13)].lat_ns);
        (first.count(), mean_us(first), mean_us(others))
    }
    let (share, first, others) = latencies("--cmdprio_percentage=10", "mq-deadline", job);
    assert!(share.abs_diff(200) < 60, "10 % of 2000: {share}");
    assert!(first < 4000, "at most some of its own class before it: {first} us");
    assert!(others > 30_000, "31 before it, and the first class: {others} us");
    let (_, first, others) = latencies("--cmdprio_percentage=10", "mq-none", job);
    assert!(first.abs_diff(others) < others / 5, "no elevator: {first} and {others} us");
    let lengths = "--bssplit=4k/50:8k/50 --cmdprio_bssplit=8k/100";
    let (share, first, others) = latencies(lengths, "mq-deadline", job);
    assert!(share.abs_diff(1000) < 120, "half of 2000: {share}");
    assert!(first < others, "{first} and {others} us");
}

/// A call of libaio that reads through the page cache returns when the page has been read.
#[test]
fn buffered_reads_of_libaio_wait_in_their_calls() {
    let job = "--rw=randread --ioengine=libaio --iodepth=8 --number_ios=16";
    let report = try_run(&args(job), 64, "mq-none").unwrap();
    assert_eq!(ms(&report), 16, "one read after the other");
    let measured = report.jobs[0].stats.ops.read.as_deref().unwrap();
    assert_eq!(measured.slat_ns.percentile(50_000) / MS, 1, "the call waits");
    assert_eq!(ms(&run(job, 64)), 2, "direct, eight at a time");
}

/// Two jobs of 600 MiB do not fit the disk, unless both use the same file.
#[test]
fn files_with_one_name_are_one_file() {
    fn run(format: &str) -> Result<(), String> {
        let text = format!(
            "[global]\ndirect=1\nsize=600m\nnumber_ios=4\nfilename_format={format}\n[a]\n[b]\nrw=write\n"
        );
        let jobs = parse_bytes("f", text.as_bytes(), &NoSource).unwrap();
        try_run(&jobs, 64, "mq-none").map(drop).map_err(|error| error.to_string())
    }
    assert_eq!(run("shared.$filenum"), Ok(()));
    assert_eq!(run("shared.$jobnum"), Ok(()), "instances are counted in each job");
    let apart = run("$jobname.$filenum").unwrap_err();
    assert!(apart.contains("do not fit the device"), "{apart}");
}

#[test]
fn verify_checks_the_data_and_changes_no_figure() {
    let job = "--rw=randrw --ioengine=libaio --iodepth=8 --size=4m";
    let plain = run(job, 64);
    let checked = run(&format!("{job} --verify=crc32c"), 64);
    assert!(plain.verified.is_none() && checked.verified.is_some());
    fn figures(report: &Report) -> (blockyard::time::Duration, Option<u128>, Option<u128>) {
        let [reads, writes] = [Op::Read, Op::Write]
            .map(|op| report.jobs[0].stats.ops.of(op).as_ref().map(|of| of.lat_ns.sum()));
        (report.span, reads, writes)
    }
    assert_eq!(figures(&plain), figures(&checked));
}

/// Runs a job file on a disk that takes 64 I/Os at a time. Returns the I/Os and the runtime of each
/// job, in ms.
fn counts_and_times(text: &str) -> Vec<(u64, u64)> {
    let global = "[global]\ndirect=1\nrw=randread\nsize=64m\n";
    let jobs = parse_bytes("jobs", format!("{global}{text}").as_bytes(), &NoSource).unwrap();
    let report = try_run(&jobs, 64, "mq-none").unwrap();
    fn of_job(stats: &JobStats) -> (u64, u64) {
        (stats.ops.read.as_deref().map_or(0, |reads| reads.ios), stats.runtime_ns() / MS)
    }
    report.jobs.iter().map(|job| of_job(&job.stats)).collect()
}

/// The lone reader of the flow issues an I/O each millisecond. The other, which could issue eight,
/// issues three.
#[test]
fn jobs_of_a_flow_issue_io_in_the_proportion_of_their_weights() {
    fn pair(fast: &str, slow: &str) -> Vec<(u64, u64)> {
        let fast = format!("[fast]\nioengine=libaio\niodepth=8\n{fast}\n");
        counts_and_times(&format!("{fast}[slow]\n{slow}\n"))
    }
    let both = "time_based\nruntime=1s\n";
    let free = pair(both, both);
    assert!(free[0].0 > 7 * free[1].0, "without a flow: {free:?}");
    let [(fast, _), (slow, ms)] = pair(&format!("{both}flow=3"), &format!("{both}flow=1"))[..]
    else {
        panic!("two jobs must be reported")
    };
    assert!(fast.abs_diff(3 * slow) <= 4, "{fast} and {slow}");
    assert!((990..=1001).contains(&slow) && ms <= 1001, "{slow} in {ms} ms");
    let apart = pair(&format!("{both}flow=3\nflow_id=1"), &format!("{both}flow=1\nflow_id=2"));
    assert_eq!(apart, free, "a job that is alone in its flow does not wait");
    let left = pair("number_ios=2000\nflow=1", "number_ios=100\nflow=1");
    assert!(left[0].1.abs_diff(338) <= 3, "100 I/Os in 100 ms, then 8 a ms: {left:?}");
}

/// A job with a tenth of the I/Os is ahead after one. Where it then sleeps for 50 ms, the other
/// waits for it after nine.
#[test]
fn a_job_that_is_ahead_of_its_flow_pauses() {
    let counts = |pause: &str| {
        let both = "time_based\nruntime=1s\n";
        let text = format!("[tenth]\n{both}flow=1\n{pause}\n[other]\n{both}flow=9\n");
        let counts = counts_and_times(&text);
        (counts[0].0, counts[1].0)
    };
    let (tenth, other) = counts("");
    assert!(other >= 990 && tenth.abs_diff(other / 9) <= 2, "{tenth} and {other}");
    let (tenth, other) = counts("flow_sleep=50ms");
    assert!((18..=42).contains(&tenth), "one or two in each 51 to 53 ms: {tenth}");
    assert!(other.abs_diff(9 * tenth) <= 18, "{tenth} and {other}");
}

/// `exitall` ends the jobs of its group, those that run, or those that come later, too.
#[test]
fn the_end_of_a_job_ends_the_jobs_that_it_names() {
    fn ends(what: &str) -> impl Iterator<Item = u64> {
        let first = format!("[first]\nnumber_ios=10\nexitall\n{what}\n");
        let others = "[group]\nnumber_ios=100\n[running]\nnew_group\nnumber_ios=100\n\
                      [later]\nstonewall\nnumber_ios=100\n";
        counts_and_times(&format!("{first}{others}")).into_iter().map(|(ios, _)| ios)
    }
    let short = |ios: &u64| (10..=12).contains(ios);
    for (what, ended) in [
        ("exit_what=group", [true, false, false]),
        ("", [true, false, false]),
        ("exit_what=stonewall", [true, true, false]),
        ("exit_what=all", [true, true, true]),
    ] {
        let counts: Vec<_> = ends(what).skip(1).collect();
        let of_later = counts[2];
        assert_eq!(counts.iter().map(short).collect::<Vec<_>>()[..2], ended[..2], "{what}");
        assert_eq!(of_later, if ended[2] { 0 } else { 100 }, "{what}: {counts:?}");
    }
}
