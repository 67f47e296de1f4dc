//! The instants at which recorded I/Os are issued, compared with slow and obvious models. The
//! machine has no costs. The device takes the same time for every request and has room for all.

use crate::free;
use crate::recorded;

use blockyard::bio::Op;
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_fio::workload::{Generator, IoOp};
use blockyard_sim::replay::{Options, Pace, Replay};
use blockyard_sim::simulate::{Conditions, Report, Simulation};
use blockyard_trace::{Source, Trace};
use proptest::prelude::*;
use recorded::{Io, blkparse, iolog_v3};

/// Returns a device with this response time on a machine without costs.
fn device(answer_us: u64) -> Device {
    let costs = free::steps();
    let text = format!(
        "base = \"null\"\n[null]\ncompletion = \"timer\"\ncompletion-time = \"{answer_us}us\"\n\
         depth = 1024\n[cpu]\n{costs}"
    );
    Device::parse("free", &text).unwrap()
}

fn simulate(trace: &str, options: Options, device: &Device) -> Report {
    let trace = Trace::open(Source::memory("trace", trace.as_bytes())).unwrap();
    let replay = Replay::new(trace, options).unwrap();
    let jobs = replay.job_file(device);
    let design = Design::lookup("mq-none").unwrap();
    let simulation = Simulation::under(
        &jobs,
        device,
        &design,
        Conditions { replay: Some(&replay), ..Conditions::new(1) },
    )
    .unwrap();
    simulation.finish().unwrap()
}

fn at(pace: Pace, speed: &str) -> Options {
    Options { pace, speed: speed.parse().unwrap(), ..Options::default() }
}

/// I/Os of up to four processes in order of time. Each has its own place, so that none merge. Those
/// of a process are at the same instant, or so far apart that they belong to different calls.
fn ios() -> impl Strategy<Value = Vec<Io>> {
    let gap = prop_oneof![Just(0_u64), 6..30_u64, 6..500_u64];
    proptest::collection::vec((gap, 0..4_u32), 1..60).prop_map(|drawn| {
        let mut at_us = 0;
        let io = |(n, (gap, process)): (usize, (u64, u32))| {
            at_us += gap;
            let sector = n as u64 * 1000;
            let io = Io::new(at_us, Op::Read, sector, 8);
            Io { pid: 700 + process, cpu: process, took_us: 50, ..io }
        };
        drawn.into_iter().enumerate().map(io).collect()
    })
}

/// Returns the instant of each I/O's issue in us, if the I/O follows the same issue or completion
/// of its process after the same time as in the trace. All response times of the trace are 50 us.
fn thinking(ios: &[Io], answer_us: u64) -> Vec<u64> {
    let mut issued: Vec<u64> = Vec::new();
    let begin = ios[0].at_us;
    for (n, io) in ios.iter().enumerate() {
        // All earlier events of the process, in the trace and in the replay. If an issue and a
        // completion coincide in the trace, the I/O waits for the later one in the replay.
        let before = (0..n).filter(|other| ios[*other].pid == io.pid);
        let events = before.flat_map(|other| {
            let then = ios[other].at_us;
            let now = issued[other];
            [(then, now), (then + 50, now + answer_us)]
        });
        let past: Vec<_> = events.filter(|(then, _)| *then <= io.at_us).collect();
        let latest = past.iter().map(|(then, _)| *then).max();
        // All of these events must have happened, and the recorded time must have passed since the
        // latest one.
        let now = latest.map_or(io.at_us - begin, |latest| {
            let since = past.iter().map(|(_, now)| *now).max().unwrap();
            since + (io.at_us - latest)
        });
        issued.push(now);
    }
    issued
}

proptest! {
    #[test]
    fn an_open_loop_issues_at_the_recorded_instants(ios in ios()) {
        let report = simulate(&blkparse(&ios), at(Pace::Open, "1x"), &device(100));
        let late = report.late_ns.unwrap();
        prop_assert_eq!((late.count(), late.max()), (ios.len() as u64, 0));
        let last = ios.last().unwrap().at_us - ios[0].at_us;
        prop_assert_eq!(report.span.as_ns(), (last + 100) * 1000, "and none is early");
    }

    #[test]
    fn an_open_loop_runs_at_the_requested_speed(ios in ios()) {
        let report = simulate(&blkparse(&ios), at(Pace::Open, "0.5x"), &device(100));
        prop_assert_eq!(report.late_ns.unwrap().max(), 0);
        let last = ios.last().unwrap().at_us - ios[0].at_us;
        prop_assert_eq!(report.span.as_ns(), (2 * last + 100) * 1000);
    }

    #[test]
    fn think_time_is_kept_on_slower_and_faster_devices(
        ios in ios(),
        answer_us in prop_oneof![Just(5_u64), Just(50), Just(51), Just(400)],
    ) {
        let report = simulate(&blkparse(&ios), at(Pace::Think, "1x"), &device(answer_us));
        let issued = thinking(&ios, answer_us);
        let last = issued.iter().max().unwrap();
        prop_assert_eq!(report.span.as_ns(), (last + answer_us) * 1000);
        let recorded = ios.iter().map(|io| io.at_us - ios[0].at_us);
        let late: u64 = issued.iter().zip(recorded).map(|(now, then)| now.saturating_sub(then)).sum();
        prop_assert_eq!(report.late_ns.unwrap().sum(), u128::from(late) * 1000);
    }

    /// In a trace without completions, the time between issues is kept on any device.
    #[test]
    fn without_completions_think_time_is_the_time_between_issues(ios in ios()) {
        let report = simulate(&iolog_v3(&ios), at(Pace::Think, "1x"), &device(300));
        prop_assert_eq!(report.late_ns.unwrap().max(), 0);
        let last = ios.last().unwrap().at_us - ios[0].at_us;
        prop_assert_eq!(report.span.as_ns(), (last + 300) * 1000);
    }
}

/// A closed loop over a job's own I/Os behaves like the job.
#[test]
fn a_closed_loop_behaves_like_the_recorded_job() {
    for (device, design, options) in [
        ("null", "mq-none", "--rw=randread --iodepth=8 --size=4m"),
        ("srp", "mq-deadline", "--rw=randrw --iodepth=32 --size=8m --bsrange=4k-64k"),
        ("srp", "legacy-deadline", "--rw=read --iodepth=16 --size=8m --fsync=0"),
    ] {
        let args = format!("--name=x --direct=1 --ioengine=libaio --filename=/dev/a {options}");
        let jobs = parse_args(args.split_whitespace(), &NoSource).unwrap();
        let device = Device::lookup(device).unwrap();
        let design = Design::lookup(design).unwrap();
        let job = &jobs.jobs[0];
        let resolved = job.resolve(0, device.limits.capacity_sectors * 512).unwrap();
        let mut generator = Generator::new(job, 0, &resolved, 1);
        let generated = core::iter::from_fn(|| generator.next(None));
        let ios: Vec<_> = generated
            .map(|io| {
                let op = if io.op == IoOp::Read { Op::Read } else { Op::Write };
                Io::new(0, op, io.offset_bytes / 512, io.len_bytes / 512)
            })
            .collect();
        let replayed = simulate_on(&iolog_v3(&ios), job.depth(), &device, &design);
        let ran = Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap();
        fn figures(report: &Report) -> String {
            let stats = &report.jobs[0].stats;
            format!("{:?} {:?} {:?}", report.span, stats.ops.read, stats.ops.write)
        }
        assert_eq!(figures(&replayed), figures(&ran), "{options}");
    }
}

fn simulate_on(trace: &str, depth: u32, device: &Device, design: &Design) -> Report {
    let trace = Trace::open(Source::memory("trace", trace.as_bytes())).unwrap();
    let replay = Replay::new(trace, at(Pace::Closed(depth), "1x")).unwrap();
    let jobs = replay.job_file(device);
    Simulation::under(
        &jobs,
        device,
        design,
        Conditions { replay: Some(&replay), ..Conditions::new(1) },
    )
    .unwrap()
    .finish()
    .unwrap()
}

/// On a device faster than the recorded one, a process gets further and further ahead of its trace.
/// Obsolete instants used to stay in the heap, and each scheduled another one, so the number of
/// events grew with the square of the run's length. They are now skipped.
#[test]
fn a_process_ahead_of_its_trace_causes_no_more_events() {
    let ios: Vec<_> = (0..4000)
        .map(|n| Io { took_us: 900, ..Io::new(n * 1000, Op::Read, n * 1000, 8) })
        .collect();
    let report = simulate(&blkparse(&ios), at(Pace::Think, "1x"), &device(5));
    assert_eq!(report.span.as_ns(), (3999 * 105 + 5) * 1000);
    let events = report.totals.events;
    assert!(events < 10 * 4000, "{events}");
}

/// Reads of one process that take 100 us on a disk with room for one, recorded 50 us apart.
fn burst(count: u64) -> Vec<Io> {
    (0..count).map(|n| Io { took_us: 30, ..Io::new(n * 50, Op::Read, n * 1000, 8) }).collect()
}

/// A device that does one request after the other, each in 100 us, on a machine without costs.
fn slow() -> Device {
    let costs = free::steps();
    let text = format!(
        "base = \"null\"\n[null]\ncompletion = \"timer\"\ncompletion-time = \"100us\"\ndepth = 1\n[cpu]\n{costs}"
    );
    Device::parse("slow", &text).unwrap()
}

fn latencies(report: &Report) -> &blockyard::stats::Histogram {
    &report.jobs[0].stats.ops.read.as_deref().unwrap().lat_ns
}

/// Latency once counted from the issue, so that it left out how long an I/O had waited for its turn
/// to be issued: p99 of a replay at four times the speed was that of an idle disk. I/O number n is
/// due at 50 n us and ends at 100 (n + 1) us, so it takes 100 + 50 n us.
#[test]
fn latency_in_an_open_loop_counts_from_the_recorded_instant() {
    let report = simulate(&blkparse(&burst(40)), at(Pace::Open, "1x"), &slow());
    let lat = latencies(&report);
    assert_eq!((lat.min(), lat.max()), (100_000, (100 + 50 * 39) * 1000));
    let sum: u64 = (0..40).map(|n| (100 + 50 * n) * 1000).sum();
    assert_eq!((lat.count(), lat.sum()), (40, u128::from(sum)));
    // At half the speed, each is due when the one before has ended.
    let report = simulate(&blkparse(&burst(40)), at(Pace::Open, "0.5x"), &slow());
    assert_eq!((latencies(&report).min(), latencies(&report).max()), (100_000, 100_000));
}

/// With think time, an I/O is due when what it waits for has happened and the recorded pause has
/// passed. In the trace each read ends 20 us before the next. A slower disk delays all that follow,
/// and none of them is late.
#[test]
fn latency_with_think_time_counts_from_the_end_of_the_pause() {
    let report = simulate(&blkparse(&burst(40)), at(Pace::Think, "1x"), &slow());
    let lat = latencies(&report);
    assert_eq!((lat.min(), lat.max()), (100_000, 100_000));
    assert_eq!(report.span.as_ns(), (40 * 100 + 39 * 20) * 1000);
    // They are behind the trace all the same.
    assert_eq!(report.late_ns.unwrap().max(), 39 * 70 * 1000);
}

/// A closed loop has no instants: latency counts from the issue.
#[test]
fn latency_in_a_closed_loop_counts_from_the_issue() {
    let report = simulate(&blkparse(&burst(40)), at(Pace::Closed(1), "1x"), &slow());
    assert_eq!((latencies(&report).min(), latencies(&report).max()), (100_000, 100_000));
}
