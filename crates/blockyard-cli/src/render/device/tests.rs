use blockyard_answer::{
    CommandCounts, DriveFigures, Figures, HostFigures, LoadFigures, Overlapped, PmemFigures,
    PmemParts, TransferCounts, TransferTimes, Woken,
};
use serde_json::Value;

use super::super::samples;
use super::*;

/// Returns the text about runs with such figures, each with the name of its design if it is shown.
fn text(rows: &[(Option<&str>, FamilyFigures)], width: usize) -> String {
    let outcomes: Vec<_> = rows.iter().map(|(_, family)| outcome(family)).collect();
    let named: Vec<_> = rows.iter().map(|(name, _)| *name).zip(&outcomes).collect();
    hosts(&named, width)
}

fn outcome(family: &FamilyFigures) -> Outcome {
    let figures = Figures { family: family.clone(), ..samples::figures(100.0) };
    Outcome { figures, ..samples::outcome("of-samples", 100.0, 1.0) }
}

fn of_drive(drive: DriveFigures) -> FamilyFigures {
    FamilyFigures { drive: Some(drive), ..FamilyFigures::default() }
}

fn of_memory(memory: PmemFigures) -> FamilyFigures {
    FamilyFigures { pmem: Some(memory), ..FamilyFigures::default() }
}

fn of_host(host: HostFigures) -> FamilyFigures {
    FamilyFigures { mmc: Some(host), ..FamilyFigures::default() }
}

/// As [`text`], of MMC hosts.
fn of_hosts(rows: &[(Option<&str>, &HostFigures)], width: usize) -> String {
    let rows: Vec<_> = rows.iter().map(|(name, host)| (*name, of_host((*host).clone()))).collect();
    text(&rows, width)
}

#[test]
fn runs_on_a_device_without_figures_of_its_own_add_nothing() {
    let none = FamilyFigures::default();
    assert_eq!(text(&[(Some("a"), none.clone()), (Some("b"), none.clone())], 80), "");
    assert_eq!(text(&[(None, none)], 80), "");
}

#[test]
fn a_single_run_is_named_by_its_design() {
    let drive = DriveFigures {
        commands_per_doorbell: 1.0,
        interrupts_per_command: 1.0,
        controller_percent: 10.0,
        link_percent: 20.0,
        medium_percent: 30.0,
        medium: vec![("seeks", 7)],
        engine_percent: 0.0,
        at_device: 1.0,
        disk: None,
        load: LoadFigures::default(),
    };
    let text = text(&[(None, of_drive(drive))], 80);
    let rows: Vec<_> = text.lines().filter(|line| line.starts_with("of-samples ")).collect();
    assert!(rows.len() == 2 && rows[1].ends_with(" 7"), "{text}");
}

#[test]
fn drives_are_shown_below_each_other() {
    let figures = DriveFigures {
        commands_per_doorbell: 1.5,
        interrupts_per_command: 0.25,
        controller_percent: 70.0,
        link_percent: 61.04,
        medium_percent: 99.0,
        engine_percent: 0.0,
        at_device: 1.0,
        disk: None,
        load: LoadFigures::default(),
        medium: vec![("units_read", 1_200), ("channel_wait_ns", 1_500), ("amplified_percent", 137)],
    };
    let expected = "
The drive, and how much of it was in use:
            commands   interrupts
design  per doorbell  per command  controller    link  medium
none            1.50         0.25      70.0 %  61.0 %  99.0 %

The medium (sums over the run; docs/devices explains the counters):
                    channel
design  units read     wait  amplified
none         1.20k  1.50 us      137 %
";
    assert_eq!(text(&[(Some("none"), of_drive(figures))], 80), expected);
    assert_eq!(text(&[], 80), "");
}

#[test]
fn memories_are_shown_below_each_other() {
    let parts = PmemParts {
        path: 52.2,
        copy: 35.8,
        tracking: 5.6,
        locks: 0.6,
        log: 0.0,
        map: 5.97,
        fences: 0.0,
    };
    let figures = PmemFigures {
        io_ns: 1_340.0,
        parts_ns: PmemParts::default(),
        percent: parts,
        fences: 2.0,
        write_backs: 3.0,
        scans: 0.5,
        transfers: 12.34,
        lock_wait_ns: 7.4,
        channels_percent: 97.6,
    };
    let expected = "
CPU time per I/O and its parts, utilisation of the memory channels:
design  per I/O    path    copy  readers   locks     log     map  fences  channels
btt     1.34 us  52.2 %  35.8 %   5.60 %  0.60 %  0.00 %  5.97 %  0.00 %    97.6 %

Counts per I/O:
                       lines    lines
design  fences  written back  fetched  scans  lock wait
btt       2.00          3.00     12.3   0.50       7 ns
";
    assert_eq!(text(&[(Some("btt"), of_memory(figures))], 100), expected);
}

/// Returns a host that sent these numbers of CMD18s, and of CMD25s with a CMD13 each.
pub(in crate::render) fn figures(reads: u64, writes: u64) -> HostFigures {
    let mut commands = [0; 64];
    commands[18] = reads;
    (commands[13], commands[25]) = (writes, writes);
    HostFigures {
        commands: CommandCounts(commands),
        queue_status: 0,
        status_per_write: (writes > 0).then_some(1.0),
        lost_writes: 0,
        doubtful_writes: 0,
        bus_busy_percent: 53.21,
        mean_bus_gap_ns: 18_853,
        unnoticed_ns: 0,
        absent_percent: 0.0,
        memory_percent: 0.0,
        map_percent: Overlapped { inside: 2.49, outside: 0.0 },
        unmap_percent: Overlapped { inside: 0.0, outside: 11.23 },
        wakeups_per_io: 3.96,
        woken_per_io: Woken {
            interrupts: 2.0,
            between_processors: 1.5,
            thread: 1.98,
            worker: 0.98,
            jobs: 1.0,
        },
        awaited_wakeups_per_io: 1.98,
        switches_per_io: 0.97,
        transfer_ns: TransferTimes { work: 43e3, idle: 37e3, ..TransferTimes::default() },
        per_transfer: TransferCounts::default(),
    }
}

#[test]
fn hosts_are_shown_below_each_other() {
    let some = figures(0, 81_263);
    let others = figures(7, 0);
    let rows = [(Some("mmc-blkmq"), &some), (Some("b"), &others)];
    let expected = "
Commands on the bus:
design     CMD13  CMD18  CMD25  CMD13/write
mmc-blkmq  81.3k      -  81.3k         1.00
b              -      7      -            -

The host (bus % is the time with a transaction; busy % above includes a busy card):
                               map,      map,    unmap,    unmap,    awaited
design     bus %  bus gap  bus busy  bus idle  bus busy  bus idle  wakes/I/O
mmc-blkmq   53.2  18.9 us    2.49 %    0.00 %    0.00 %    11.2 %       1.98
b           53.2  18.9 us    2.49 %    0.00 %    0.00 %    11.2 %       1.98

Interrupts, and the threads that are woken, for each I/O:
                       between  driver's  driver's         context
design     interrupts     CPUs    thread    worker  jobs  switches
mmc-blkmq        2.00     1.50      1.98      0.98  1.00      0.97
b                2.00     1.50      1.98      0.98  1.00      0.97
";
    assert_eq!(of_hosts(&rows, 100), expected);
    let read_only = of_hosts(&[(Some("b"), &others)], 100);
    assert!(!read_only.contains("write"), "{read_only}");
    assert_eq!(of_hosts(&[], 100), "");
}

#[test]
fn many_commands_continue_below_each_other() {
    let mut commands = [0; 64];
    commands[..20].fill(99_999);
    let all = HostFigures { commands: CommandCounts(commands), ..figures(1, 1) };
    let text = of_hosts(&[(Some("mq-deadline-2017-patched"), &all)], 100);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let heads = text.lines().filter(|line| line.starts_with("design") && line.contains("CMD"));
    let told: Vec<_> = heads.flat_map(|line| line.split_whitespace().skip(1)).collect();
    let numbers = (0..20).map(|number| format!("CMD{number}")).chain(["CMD13/write".to_owned()]);
    assert_eq!(told, numbers.collect::<Vec<_>>());
}

#[test]
fn a_single_run_has_lines_of_its_own() {
    let expected = "
MMC host:
  commands     : CMD13=1.20k, CMD18=7, CMD25=1.20k, CMD13/write=1.00
  bus          : busy=53.2 %, gap=18.9 us
  bus busy/idle: map=2.49 % / 0.00 %, unmap=0.00 % / 11.2 %
  per I/O      : interrupts=2.00, between CPUs=1.50, ctx=0.97
  wakes/I/O    : all=3.96 (thread=1.98, worker=0.98, jobs=1.00), awaited=1.98
";
    assert_eq!(of_hosts(&[(None, &figures(7, 1200))], 100), expected);
}

#[test]
fn time_after_lost_interrupts_is_shown_only_if_there_is_any() {
    let good = figures(7, 0);
    let lossy = HostFigures { unnoticed_ns: 10_000_000_000, ..good.clone() };
    let both = of_hosts(&[(Some("a"), &good), (Some("b"), &lossy)], 100);
    let (host, _) = both.split_once("\n\nInterrupts").unwrap();
    let ends: Vec<_> = host.lines().rev().take(3).collect();
    let is_last = |(line, end): (&&str, &str)| line.ends_with(end);
    assert!(ends.iter().zip(["  10.0 s", "   0 ns", "unnoticed"]).all(is_last), "{both}");
    let alone = of_hosts(&[(None, &lossy)], 100);
    assert!(alone.contains("gap=18.9 us, unnoticed=10.0 s\n"), "{alone}");
    let none = of_hosts(&[(None, &good)], 100) + &of_hosts(&[(Some("a"), &good)], 100);
    assert!(!none.contains("unnoticed"), "{none}");
}

#[test]
fn queue_status_and_lost_writes_are_shown_only_if_there_are_any() {
    let plain = figures(0, 1200);
    let queue = HostFigures {
        queue_status: 18,
        status_per_write: Some(0.0),
        lost_writes: 3,
        doubtful_writes: 1,
        ..plain.clone()
    };
    let rows = [(Some("mmc-blkmq"), &plain), (Some("cqe"), &queue)];
    let expected = "
Commands on the bus:
design     CMD13  CMD25  CMD13/QSR  CMD13/write  lost writes  in doubt
mmc-blkmq  1.20k  1.20k          -         1.00            -         -
cqe        1.20k  1.20k         18         0.00            3         1
";
    let told = of_hosts(&rows, 100);
    assert!(told.starts_with(expected), "{told}");
    let alone = of_hosts(&[(None, &queue)], 100);
    assert!(alone.contains("CMD25=1.20k, CMD13/QSR=18, CMD13/write=0.00\n"), "{alone}");
    assert!(alone.ends_with("\n  lost writes  : 3\n  in doubt     : 1\n"), "{alone}");
}

#[test]
fn json_names_commands_and_is_null_if_nothing_was_written() {
    let object: Value = serde_json::to_value(figures(7, 0)).unwrap();
    assert_eq!(object["commands"], serde_json::json!({ "CMD18": 7 }));
    assert_eq!(object["status_per_write"], Value::Null);
}
