//! The same I/Os in each format give the same simulation. The samples in `examples/traces` are the
//! output of the writers in these tests.

use crate::recorded;

use blockyard_devices::profile::{Design, Device};
use blockyard_sim::replay::{Map, Options, Pace, Replay};
use blockyard_sim::simulate::{Conditions, Report, Simulation};
use blockyard_trace::{Format, Source, Trace};
use recorded::{Io, blkparse, blktrace, database, iolog_v2, iolog_v3, msr, plain};
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

fn samples() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces")
}

fn open(bytes: impl AsRef<[u8]>) -> Trace {
    Trace::open(Source::memory("trace", bytes.as_ref())).unwrap_or_else(|error| panic!("{error}"))
}

fn simulate(trace: Trace, options: Options, device: &str, design: &str) -> Report {
    let device = Device::lookup(device).unwrap();
    let design = Design::lookup(design).unwrap();
    let replay = Replay::new(trace, options).unwrap();
    let jobs = replay.job_file(&device);
    let mut simulation = Simulation::under(
        &jobs,
        &device,
        &design,
        Conditions { replay: Some(&replay), ..Conditions::new(1) },
    )
    .unwrap();
    simulation.check_every_step();
    simulation.finish().unwrap()
}

#[test]
fn the_same_ios_give_the_same_simulation_in_every_format() {
    let ios = plain();
    let [one_cpu] = <[Vec<u8>; 1]>::try_from(blktrace(&ios, 1, false)).unwrap();
    let [big_endian] = <[Vec<u8>; 1]>::try_from(blktrace(&ios, 1, true)).unwrap();
    let traces: [(Format, Vec<u8>); 6] = [
        (Format::IologV2, iolog_v2(&ios).into()),
        (Format::IologV3, iolog_v3(&ios).into()),
        (Format::MsrCambridge, msr(&ios).into()),
        (Format::Blkparse, blkparse(&ios).into()),
        (Format::Blktrace, one_cpu),
        (Format::Blktrace, big_endian),
    ];
    for (device, design) in
        [("null", "mq-none"), ("srp", "mq-deadline"), ("srp", "legacy-deadline")]
    {
        let mut first: Option<String> = None;
        for (format, bytes) in &traces {
            let trace = open(bytes);
            assert_eq!(trace.summary().format, *format);
            assert_eq!(trace.summary().records, 120);
            let report = format!("{:?}", simulate(trace, Options::default(), device, design));
            let expected = first.get_or_insert_with(|| report.clone());
            assert!(*expected == report, "{format} on {device}:\n{expected}\n{report}");
        }
    }
}

#[test]
fn operations_and_flags_are_the_same_in_binary_and_text() {
    let ios = database();
    let expected: Vec<_> = ios
        .iter()
        .map(|io| {
            let offset = io.sector * 512;
            let len = io.sectors * 512;
            let at_ns = (io.at_us - ios[0].at_us) * 1000;
            let took_ns = Some(io.took_us * 1000);
            (at_ns, took_ns, io.cpu, io.pid, io.op, offset, len, io.flags)
        })
        .collect();
    let binary = samples().join("database.blktrace.0");
    let text = Source::memory("text", blkparse(&ios).as_bytes());
    for source in [text, Source::at(binary.to_str().unwrap()).unwrap()] {
        let trace = Trace::open(source).unwrap();
        let mut records = trace.records().unwrap();
        let next = || {
            let record = records.next().unwrap()?;
            let offset = record.offset_bytes;
            let len = record.len_bytes;
            let took_ns = record.took.map(|took| took.as_ns());
            let cpu = u32::from(record.cpu);
            Some((
                record.at.as_ns(),
                took_ns,
                cpu,
                record.pid,
                record.op,
                offset,
                len,
                record.flags,
            ))
        };
        assert_eq!(core::iter::from_fn(next).collect::<Vec<_>>(), expected);
    }
}

/// The samples, each with its name.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    let ios = database();
    let whole: Vec<Io> = ios.iter().map(|io| Io { at_us: io.at_us / 1000 * 1000, ..*io }).collect();
    let binary = <[Vec<u8>; 2]>::try_from(blktrace(&ios, 2, false));
    let [first, second] = binary.unwrap();
    vec![
        ("database.blktrace.0", first),
        ("database.blktrace.1", second),
        ("database.blkparse", blkparse(&ios).into()),
        ("database.v2.iolog", iolog_v2(&whole).into()),
        ("database.v3.iolog", iolog_v3(&ios).into()),
        ("database.csv", msr(&ios).into()),
    ]
}

/// With `BLOCKYARD_WRITE_SAMPLES` set, the samples are first written again, as needed after a
/// change to the writers.
#[test]
fn the_samples_are_up_to_date_and_replay_at_every_pace() {
    for (name, bytes) in files() {
        let path = samples().join(name);
        if env::var_os("BLOCKYARD_WRITE_SAMPLES").is_some() {
            fs::write(&path, &bytes).unwrap();
        }
        assert!(fs::read(&path).unwrap() == bytes, "{name} is not the writers' current output");
        let trace = Trace::open(Source::at(path.to_str().unwrap()).unwrap()).unwrap();
        assert_eq!(trace.summary().warnings, [], "{name}");
        let records = trace.summary().records;
        for pace in [Pace::Open, Pace::Think, Pace::Closed(4)] {
            let options = Options { pace, map: Some(Map::Wrap), ..Options::default() };
            let report = simulate(trace.clone(), options, "null", "mq-deadline");
            let stats = &report.jobs[0].stats;
            let done: u64 = stats.measured().map(|of| of.ios).sum();
            assert_eq!(done + stats.syncs(), records, "{name}, {pace:?}");
        }
    }
}

#[test]
fn blkparse_reads_the_binary_sample_as_we_do() {
    let prefix = samples().join("database");
    let printed = Command::new("blkparse").args(["-q", "-i"]).arg(&prefix).output();
    let Ok(printed) = printed else {
        assert!(std::env::var_os("CI").is_none(), "CI needs blkparse");
        println!("skipped: blkparse is not installed");
        return;
    };
    assert!(printed.status.success(), "{printed:?}");
    let text = String::from_utf8(printed.stdout).unwrap();
    let events: String =
        text.lines().filter(|l| l.starts_with("  8,0")).map(|l| format!("{l}\n")).collect();
    assert_eq!(events, blkparse(&database()));
}
