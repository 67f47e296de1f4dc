//! When jobs begin, pause and end follows fio's rules for options that are often read otherwise.
//!
//! The expected numbers are those of fio 3.33 with its null engine, rounded where a wake-up of fio
//! may come a few milliseconds late. The device here takes a few microseconds for each I/O.

use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, Op, parse_bytes};
use blockyard_fio::measure::JobStats;
use blockyard_sim::simulate::{Report, Simulation, SimulationError};

const DEVICE: &str = "base = \"null\"\n[limits]\ncapacity = \"1GiB\"\n";

/// Runs a job file of one line, where `|` ends a line.
fn run_on(device: &Device, jobs: &str) -> Result<Report, SimulationError> {
    let text = format!("[global]|ioengine=null|filename=x|{jobs}").replace('|', "\n");
    let jobs = parse_bytes("f", text.as_bytes(), &NoSource).unwrap();
    Simulation::new(&jobs, device, &Design::lookup("mq-none").unwrap(), 7)?.finish()
}

fn try_run(jobs: &str) -> Result<Report, SimulationError> {
    run_on(&Device::parse("test", DEVICE).unwrap(), jobs)
}

fn run(jobs: &str) -> Report {
    try_run(jobs).unwrap()
}

/// The reads and writes of a job.
fn ios(stats: &JobStats) -> (u64, u64) {
    let [reads, writes] =
        [Op::Read, Op::Write].map(|op| stats.ops.of(op).as_deref().map_or(0, |done| done.ios));
    (reads, writes)
}

/// The reads and writes of the only job.
fn both(jobs: &str) -> (u64, u64) {
    ios(&run(jobs).jobs[0].stats)
}

/// The reads of each job, and the tenths of a second of the run, rounded.
fn reads_and_tenths(jobs: &str) -> (Vec<u64>, u64) {
    let report = run(jobs);
    let reads = report.jobs.iter().map(|job| ios(&job.stats).0).collect::<Vec<_>>();
    (reads, (report.span.as_ns() + 50_000_000) / 100_000_000)
}

fn is_near(ours: u64, fio: u64) -> bool {
    ours.abs_diff(fio) <= 1 + fio / 50
}

/// fio 3.33 with psync, each of whose calls was made to last 20 ms: three reads and 63 ms, and one
/// read and 22 ms. With four in flight, what has begun before the end ends after it.
#[test]
fn no_io_begins_when_the_time_of_its_job_is_over() {
    let slow = format!("{DEVICE}[null]\ncompletion = \"timer\"\ncompletion-time = \"20ms\"\n");
    let slow = Device::parse("test", &slow).unwrap();
    for (job, reads, ms) in [
        ("runtime=55ms", 3, 60),
        ("runtime=1ms", 1, 20),
        ("runtime=55ms|ioengine=libaio|iodepth=4", 12, 60),
    ] {
        let job = format!("rw=randread|bs=4k|size=1g|time_based|direct=1|[a]|{job}");
        let report = run_on(&slow, &job).unwrap();
        let seen = (ios(&report.jobs[0].stats).0, report.span.as_ns() / 1_000_000);
        assert_eq!(seen, (reads, ms), "{job}");
    }
}

const PACED: &str = "size=1g|time_based|rate_iops=100|";

/// fio 3.33: `r` ends after 1010 ms, with 101 I/Os, although only its own section has `exitall`,
/// and even with `exitall=0`. A job that has not begun by then never does.
#[test]
fn any_end_of_a_job_counts_for_exitall_in_another_section() {
    for exitall in ["exitall", "exitall=0"] {
        let (reads, tenths) =
            reads_and_tenths(&format!("{PACED}[w]|runtime=1|[r]|runtime=2|{exitall}"));
        assert!(is_near(reads[1], 101), "{exitall}: {reads:?}");
        assert_eq!(tenths, 10, "{exitall}");
    }
    let late = format!("{PACED}[w]|runtime=1|exitall|[d]|startdelay=3|runtime=1");
    assert_eq!(reads_and_tenths(&late), (vec![100, 0], 10));
    // `exit_what` is that of the job that ends: `w` ends its group, in which `r` is not.
    let apart = format!("{PACED}[w]|runtime=1|[r]|new_group|runtime=2|exitall|exit_what=all");
    assert_eq!(reads_and_tenths(&apart).1, 20);
}

/// fio 3.33: the elapsed seconds less one are 4, 3 and 4, and in the second job file c has run
/// beside a.
#[test]
fn a_start_delay_counts_from_the_start_of_the_run_and_holds_up_nobody() {
    let wall = "rate=4m|[a]|size=12m|[b]|stonewall|startdelay=2|size=4m";
    assert_eq!(reads_and_tenths(wall), (vec![3072, 1024], 40));
    for (jobs, reads, tenths) in [
        ("[a]|runtime=2|[b]|stonewall|startdelay=1|runtime=1|[c]|runtime=2", [200, 100, 200], 30),
        ("[a]|runtime=1|[c]|startdelay=3|runtime=1|[b]|stonewall|runtime=1", [100, 100, 100], 40),
    ] {
        let ours = reads_and_tenths(&format!("{PACED}{jobs}"));
        assert_eq!(ours, (reads.to_vec(), tenths), "{jobs}");
    }
}

/// fio 3.33: 2001 reads and no write, and only writes.
#[test]
fn a_rate_leaves_a_mix_of_one_direction_alone() {
    let mix = "rw=randrw|size=1g|time_based|runtime=2|[a]";
    let (reads, writes) = both(&format!("{mix}|rwmixread=100|rate_iops=1000"));
    assert!(is_near(reads, 2001) && writes == 0, "{reads} and {writes}");
    let (reads, writes) = both(&format!("{mix}|rwmixread=0|rate=4m"));
    assert!(reads == 0 && is_near(writes, 2048), "{reads} and {writes}");
}

/// fio 3.33: 30 I/Os with the line, one for each pause.
#[test]
fn a_number_of_blocks_counts_beside_a_period_if_it_is_written() {
    let period =
        "size=1g|time_based|runtime=3|rate_iops=1000|thinktime=100ms|thinktime_iotime=500ms";
    let (reads, _) = both(&format!("{period}|[a]|thinktime_blocks=1"));
    assert!(is_near(reads, 30), "{reads}");
    // The period alone: five pauses of 100 ms, and the rate makes up for them.
    assert!(both(&format!("{period}|[a]")).0 > 2500);
}

/// fio 3.33: 150 I/Os behind the ramp time, and 300 with two loops. `io_size` counts from the
/// start: 800 KiB are 200 I/Os, half of which are in the ramp time.
#[test]
fn a_number_of_ios_counts_from_the_end_of_the_ramp_time() {
    let ramp = "rw=read|size=1g|rate_iops=100|ramp_time=1|[a]";
    for (limit, fio) in
        [("number_ios=150", 150), ("number_ios=150|loops=2", 300), ("io_size=800k", 100)]
    {
        let (reads, _) = both(&format!("{ramp}|{limit}"));
        assert!(reads.abs_diff(fio) <= 2, "{limit}: {reads}");
    }
}

/// fio 3.33 and 3.42: `iodepth_low=0` is the default, a full queue: 98.5 % of I/Os are at depth 16.
/// A queue that empties first leaves dies idle.
#[test]
fn a_low_depth_of_0_is_the_depth() {
    let device = Device::lookup("nvme-tlc").unwrap();
    let deep = "ioengine=libaio|direct=1|rw=randread|size=4m|iodepth=16|[a]|";
    let [zero, none, one] = ["iodepth_low=0", "", "iodepth_low=1"]
        .map(|line| run_on(&device, &format!("{deep}{line}")).unwrap().span.as_ns());
    assert_eq!(zero, none);
    assert!(one > none + none / 5, "{one} and {none} ns");
}

/// fio 3.33: 225 reads and 225 writes. The last I/O before a pause is a read or a write, and only
/// its direction makes up for nothing.
#[test]
fn a_pause_is_forgiven_to_the_direction_before_it() {
    let pauses = "size=1g|rate_iops=200|time_based|runtime=2|thinktime=200ms|thinktime_blocks=50";
    let job = format!("{pauses}|rate_ignore_thinktime=1|[a]");
    let (reads, writes) = both(&format!("{job}|rw=rw"));
    assert!(reads.abs_diff(225) <= 10 && writes.abs_diff(225) <= 10, "{reads} and {writes}");
    let (reads, _) = both(&format!("{job}|rw=read"));
    assert!(is_near(reads, 244), "{reads}");
}

/// Virtual time has 2^64 ns, or 18,446,744,073 s. A pause behind it never ended, and nor did the
/// run.
#[test]
fn a_pause_beyond_the_end_of_time_ends_the_run() {
    let late = "[a]|size=1g|startdelay=18446744000|thinktime=100s|number_ios=9";
    let error = try_run(late).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("beyond the end of virtual time"), "{error}");
}
