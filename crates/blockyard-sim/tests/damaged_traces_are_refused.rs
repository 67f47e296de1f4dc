//! A damaged trace is either read to its end or refused with the place of the damage. The parser
//! never panics.

use crate::recorded;

use blockyard::bio::{Flags, Op};
use blockyard_devices::profile::{Design, Device};
use blockyard_sim::replay::{Map, Options, Pace, Replay, ReplayError};
use blockyard_sim::simulate::{Conditions, Simulation};
use blockyard_trace::{Source, Trace, TraceError, Warning};
use proptest::prelude::*;
use recorded::{Io, blkparse, blktrace, database, iolog_v2, iolog_v3, msr, plain};

fn open(bytes: &[u8]) -> Result<Trace, TraceError> {
    Trace::open(Source::memory("t", bytes))
}

fn fault(text: &str) -> String {
    open(text.as_bytes()).unwrap_err().to_string()
}

/// Replaces line `number` of `text`, counted from 1, by `other`.
fn with_line(text: &str, number: usize, other: &str) -> String {
    let line =
        |(at, line): (usize, &str)| format!("{}\n", if at + 1 == number { other } else { line });
    text.lines().enumerate().map(line).collect()
}

fn formats() -> Vec<Vec<u8>> {
    let ios = database();
    let binary = blktrace(&ios, 2, false);
    let texts = [iolog_v2(&plain()), iolog_v3(&ios), msr(&ios), blkparse(&ios)];
    texts.into_iter().map(String::into_bytes).chain(binary).collect()
}

#[test]
fn an_error_names_the_line_and_what_was_expected() {
    let ios = database();
    let v3 = iolog_v3(&ios);
    let csv = msr(&ios);
    let text = blkparse(&ios);
    for (damaged, message) in [
        (
            with_line(&v3, 9, "31 /dev/a raed 0 4096"),
            "t:9: unknown action `raed`: did you mean `read`?",
        ),
        (
            with_line(&v3, 9, "31 /dev/b read 0 4096"),
            "t:9: I/O to `/dev/b`, which no earlier line has added",
        ),
        (with_line(&v3, 9, "31 /dev/a read 0 8"), "t:9: length 8: expected bytes"),
        (with_line(&csv, 7, "1,2,3"), "t:7: expected `Timestamp,Hostname"),
        (
            with_line(&csv, 7, "1171610000,web,0,Read,0,4096,100"),
            "t:7: timestamp 1171610000: expected ticks of 100 ns since 1601, as Windows counts \
             file times, this looks like seconds since 1970",
        ),
        (
            with_line(&csv, 7, "128166372000000000,web,0,Red,0,4096,1"),
            "t:7: unknown type `Red`: did you mean `Read`?",
        ),
        (
            with_line(&text, 5, "  8,0 0 12 0.5 700 Q R 8 + 8 [db]"),
            "t:5: time: `0.5` is not seconds with nine decimals",
        ),
        (
            with_line(&text, 5, "  8,0 0 12 0.500000000 700 Q Z 8 + 8 [db]"),
            "t:5: operation: `Z` is not",
        ),
        (format!("{v3}\0\n"), "not text"),
        (format!("{v3}{}\n", "x".repeat(5000)), "the line is longer than 4096 bytes"),
        (
            "fio version 4 iolog\n".to_owned(),
            "t: a fio iolog has version 4: the supported versions are 2 and 3",
        ),
        ("[job]\nrw=read\n".to_owned(), "t: not a trace of a known format"),
        ("fio version 3 iolog\n0 a add\n".to_owned(), "t: no I/O in this trace"),
    ] {
        let error = fault(&damaged);
        assert!(error.contains(message), "{error}\nis not\n{message}");
    }
}

#[test]
fn an_error_in_a_binary_trace_names_the_byte() {
    let [whole] = <[Vec<u8>; 1]>::try_from(blktrace(&plain(), 1, false)).unwrap();
    // Three notices with names of 3, 4 and 5 bytes come first.
    let first = 3 * 48 + "db\0log\0scan\0".len();
    fn error(bytes: &[u8]) -> String {
        open(bytes).unwrap_err().to_string()
    }
    assert_eq!(
        error(&whole[..first + 20]),
        format!("t: byte {first}: the record needs 48 bytes, and the file ends after 20")
    );
    let mut damaged = whole.clone();
    damaged[first] = 9;
    assert!(error(&damaged).starts_with(&format!("t: byte {first}: blktrace has version 9")));
    damaged[first + 1] = 0;
    assert!(
        error(&damaged).starts_with(&format!("t: byte {first}: no blktrace record begins here"))
    );
    let other_order = [&whole[..first], &blktrace(&plain(), 1, true)[0]].concat();
    // It once said that no blktrace record begins here, of a record that only has its bytes in the
    // other order.
    let expected = format!(
        "t: byte {first}: this blktrace record has the other byte order than those before it"
    );
    assert!(error(&other_order).starts_with(&expected), "{}", error(&other_order));
}

// [records-in-time-order]
#[test]
fn slight_disorder_is_sorted_and_more_is_refused() {
    let ios = plain();
    let sorted = msr(&ios);
    let mut lines: Vec<_> = sorted.lines().map(|line| format!("{line}\n")).collect();
    lines.swap(10, 90);
    let trace = open(lines.concat().as_bytes()).unwrap();
    let [Warning::Moved { entries, .. }] = trace.summary().warnings[..] else {
        panic!("{:?}", trace.summary().warnings)
    };
    assert_eq!(entries, 80, "all entries after the early one, up to its place");
    let long: Vec<_> = (0..5000).map(|n| Io { at_us: n + 1, ..ios[0] }).collect();
    let late = msr(&long) + msr(&[Io { at_us: 0, ..ios[0] }]).as_str();
    let error = fault(&late);
    assert!(error.starts_with("t:5001: ") && error.contains("sort the trace by time"), "{error}");
}

#[test]
fn numbers_that_are_probably_in_another_unit_give_a_warning() {
    fn warnings(ios: &[Io]) -> Vec<Warning> {
        open(blkparse(ios).as_bytes()).unwrap().summary().warnings.clone()
    }
    let bytes: Vec<_> = (0..100)
        .map(|n| Io {
            sector: n * 4096,
            sectors: 4096,
            ..Io::new(n * 1000, blockyard::bio::Op::Read, 0, 0)
        })
        .collect();
    assert_eq!(warnings(&bytes), [Warning::Coarse { disk: 0 }]);
    assert_eq!(warnings(&bytes[..10]), [], "too few records to judge");
    let slow = [Io { took_us: 601_000_000, ..plain()[0] }];
    assert!(matches!(warnings(&slow)[..], [Warning::LongAnswer(_)]));
}

/// Whether a trace may lack its writes with FUA.
fn may_lack_fua(text: &str) -> bool {
    open(text.as_bytes()).unwrap().summary().warnings.contains(&Warning::NoFua)
}

/// Linux from 7.2 on and blktrace 1.2 lose the events of requests with FUA. The driver's flush
/// before such a write stays.
#[test]
fn flushes_without_a_write_with_fua_give_a_warning() {
    let all = database();
    let mut lossy = all.clone();
    lossy.retain(|io| !io.flags.contains(Flags::FUA));
    assert!(lossy.len() < all.len() && lossy.iter().any(|io| io.op == Op::Flush));
    assert!(!may_lack_fua(&blkparse(&all)));
    assert!(may_lack_fua(&blkparse(&lossy)));
    assert!(!may_lack_fua(&iolog_v3(&lossy)), "fio's logs lose nothing");
    let read = "8,0 0 1 0.000000000 7 Q R 8 + 8 [fio]\n";
    assert!(!may_lack_fua(read));
    assert!(may_lack_fua(&format!("{read}8,0 0 2 0.000001000 7 D FN [fio]\n")));
}

#[test]
fn without_queued_bios_the_dispatched_requests_are_replayed() {
    let text = blkparse(&database());
    let dispatched: String = text
        .lines()
        .filter(|line| !line.contains("  Q "))
        .map(|line| format!("{line}\n"))
        .collect();
    let queued = open(text.as_bytes()).unwrap();
    let dispatched = open(dispatched.as_bytes()).unwrap();
    assert_eq!(dispatched.summary().warnings, [Warning::Dispatches]);
    assert_eq!(dispatched.summary().records, queued.summary().records);
    assert_eq!(dispatched.summary().timed, queued.summary().timed);
}

#[test]
fn a_trace_that_does_not_fit_the_device_is_refused_before_it_runs() {
    let device = |text: &str| Device::parse("d", &format!("base = \"null\"\n{text}")).unwrap();
    fn refused(trace: &str, device: &Device, options: Options) -> ReplayError {
        let trace = open(trace.as_bytes()).unwrap();
        let error = Replay::new(trace, options).and_then(|replay| replay.player(device).map(drop));
        error.unwrap_err()
    }
    let all = Options::default;
    let small = device("[limits]\ncapacity = \"1MiB\"\n");
    let error = refused(&iolog_v3(&plain()), &small, all());
    let ReplayError::BeyondDevice { end_bytes, device_bytes, .. } = &error else {
        panic!("{error}")
    };
    let end = plain().iter().map(|io| (io.sector + u64::from(io.sectors)) * 512).max().unwrap();
    assert_eq!((*end_bytes, *device_bytes), (end, 1 << 20));
    let wrapped = Options { map: Some(Map::Wrap), ..all() };
    let trace = open(iolog_v3(&plain()).as_bytes()).unwrap();
    assert!(Replay::new(trace, wrapped).unwrap().player(&small).is_ok());
    let two = msr(&plain()) + &msr(&plain()).replace(",web,0,", ",web,1,");
    let null = device("");
    let error = refused(&two, &null, all()).to_string();
    assert!(error.contains("2 disks (0 = web.0, 1 = web.1), but the device has 1"), "{error}");
    let other = Options { disk: Some("web.2".to_owned()), ..all() };
    assert!(refused(&two, &null, other).to_string().contains("no disk `web.2`"));
    for disk in ["web.1", "1"] {
        let one = Options { disk: Some(disk.to_owned()), ..all() };
        let replay = Replay::new(open(two.as_bytes()).unwrap(), one).unwrap();
        let jobs = replay.job_file(&null);
        let design = Design::lookup("mq-none").unwrap();
        let run = Simulation::under(
            &jobs,
            &null,
            &design,
            Conditions { replay: Some(&replay), ..Conditions::new(1) },
        )
        .unwrap()
        .finish()
        .unwrap();
        let ios: u64 = run.jobs[0].stats.measured().map(|measured| measured.ios).sum();
        assert_eq!(ios, 120, "{disk}");
    }
    let whole = device("[limits]\nmax-discard-sectors = 0\n");
    assert!(matches!(
        refused(&iolog_v3(&database()), &whole, all()),
        ReplayError::NoDiscard { discards: 4, .. }
    ));
}

proptest! {
    /// Replaces, removes, doubles or truncates bytes ([bad-trace-is-an-error]).
    #[test]
    fn a_damaged_trace_is_an_error_or_still_valid(
        format in 0..6_usize,
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 1..8),
    ) {
        let mut bytes = formats()[format].clone();
        for (at, value, edit) in edits {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            match edit {
                0 => bytes[at] = value,
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, value),
                _ => bytes.truncate(at),
            }
        }
        match open(&bytes) {
            Err(error) => prop_assert!(error.to_string().starts_with("t"), "{}", error),
            Ok(trace) => {
                let mut records = trace.records().unwrap();
                let mut count = 0;
                while let Some(record) = records.next().unwrap() {
                    prop_assert_eq!(record.offset_bytes % 512 + u64::from(record.len_bytes % 512), 0);
                    count += 1;
                }
                prop_assert_eq!(count, trace.summary().records);
            }
        }
    }

    /// Every I/O of a trace is issued and ends, at every pace and on every device.
    #[test]
    fn every_record_ends_once(pace in 0..3_u8, device in 0..2_u8, seed: u64) {
        let pace = [Pace::Open, Pace::Think, Pace::Closed(1 + (seed % 40) as u32)][usize::from(pace)];
        let device = Device::lookup(["null", "srp"][usize::from(device)]).unwrap();
        let design = Design::lookup("mq-deadline-2017").unwrap();
        let kept = |n: u64| seed >> (n % 64) & 1 == 0;
        let ios: Vec<_> = database().into_iter().zip(0..).filter(|(_, n)| kept(*n)).collect();
        let reads = |io: &Io| io.op == blockyard::bio::Op::Read;
        let ios: Vec<_> = ios.into_iter().map(|(io, _)| io).filter(reads).collect();
        prop_assume!(!ios.is_empty());
        let options = Options { pace, map: Some(Map::Scale), ..Options::default() };
        let replay = Replay::new(open(blkparse(&ios).as_bytes()).unwrap(), options).unwrap();
        let jobs = replay.job_file(&device);
        let mut simulation = Simulation::under(&jobs, &device, &design, Conditions { replay: Some(&replay), ..Conditions::new(seed) }).unwrap();
        simulation.check_every_step();
        let report = simulation.finish().unwrap();
        let done: u64 = report.jobs[0].stats.measured().map(|measured| measured.ios).sum();
        prop_assert_eq!(done, ios.len() as u64);
    }
}
