//! The numbers of commands that a job costs on an SD card, compared with Linux's on an emulated
//! card.
//!
//! `tests/emulated_card` holds job files. `linux-6.12` and `linux-6.1` have a line for each job and
//! scheduler: how many requests blktrace saw dispatched in two recordings; `docs/TESTING.md` says
//! how they were made. An emulated card has no times like a real one, so only the numbers are
//! compared.

use crate::oracle;

use blockyard_devices::profile::{Design, Device, Override};
use blockyard_fio::job::{NoSource, parse_args, parse_bytes};
use blockyard_sim::simulate::{Conditions, Simulation};
use oracle::{Recorder, order};
use std::fs;
use std::path::Path;

/// The design of each kernel.
const KERNELS: [(&str, &str); 2] = [("6.12", "mmc-blkmq-6.12"), ("6.1", "mmc-blkmq-4.16")];

/// What differs: the kernel, the job, the scheduler (`""`: all), and the reason.
const DIFFERS: &[(&str, &str, &str, &str)] = &[
    ("6.12", "write-4jobs", "none", REFUSED),
    ("6.1", "write-4jobs", "none", REFUSED),
    ("6.1", "read-depth32", "none", DIRECT),
    ("6.1", "write-depth32", "none", DIRECT),
    ("6.1", "write-uring32", "none", DIRECT),
    ("6.1", "write-batch8", "none", DIRECT),
    ("6.1", "read-depth32", "mq-deadline", WORKER),
    ("6.1", "write-batch8", "mq-deadline", WORKER),
];
const REFUSED: &str =
    "without a scheduler, what the driver refuses waits where nothing merges; here it may merge";
const DIRECT: &str =
    "without a scheduler, a submitter calls the driver itself and sleeps there, also before 6.6";
const WORKER: &str = "when the worker starts decides, which Linux does not repeat either";

/// The numbers of requests in two recordings of a job under a scheduler.
struct Line<'a> {
    job: &'a str,
    scheduler: &'a str,
    recorded: [usize; 2],
}

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/emulated_card")
}

fn line(line: &str) -> Line<'_> {
    let words: Vec<_> = line.split(' ').collect();
    let &[job, scheduler, first, second] = words.as_slice() else { panic!("{line}: four words") };
    Line { job, scheduler, recorded: [first, second].map(|count| count.parse().unwrap()) }
}

/// Returns how many requests are dispatched for `job` under `design` with `scheduler`.
fn dispatched(job: &str, scheduler: &str, design: &str) -> usize {
    let text = fs::read(folder().join(format!("{job}.fio"))).unwrap();
    let jobs = parse_bytes(job, &text, &NoSource).unwrap();
    let device = Device::parse("card", "base = \"sd-hs\"\n[cpu]\ncpus = 2\n").unwrap();
    let text = format!("base = \"{design}\"\n[queue]\nelevator = \"{scheduler}\"\n");
    let design = Design::parse("kernel", &text).unwrap();
    let mut recorder = Recorder::default();
    let conditions = Conditions::new(1);
    let simulation = Simulation::observed(&jobs, &device, &design, conditions, &mut recorder);
    simulation.unwrap().finish().unwrap();
    order(&recorder.0, "D").len()
}

#[test]
fn a_job_costs_as_many_commands_as_under_linux() {
    let mut wrong = Vec::new();
    for (kernel, design) in KERNELS {
        let lines = fs::read_to_string(folder().join(format!("linux-{kernel}"))).unwrap();
        for Line { job, scheduler, recorded: [first, second] } in lines.lines().map(line) {
            let ours = dispatched(job, scheduler, design);
            let agrees = (first.min(second)..=first.max(second)).contains(&ours);
            let differs = DIFFERS.iter().find(|of| (of.0, of.1, of.2) == (kernel, job, scheduler));
            let what = format!("{kernel}, {job}, {scheduler}: {first} and {second}, ours {ours}");
            println!("{what}{}", differs.map_or("", |_| "  (differs)"));
            if agrees == differs.is_some() {
                wrong.push(what);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the commands that 128 sequential writes of 4 KiB become on `sd-hs` with two processors,
/// with these further options.
fn commands_of_writes(options: &str) -> u64 {
    let values = [("cpu.cpus", "2"), ("card.deterministic", "true")];
    let overrides = values.map(|(key, value)| Override { key: key.into(), value: value.into() });
    let device = Device::lookup_with("sd-hs", &overrides).unwrap();
    let design = Design::lookup("mmc-blkmq").unwrap();
    let line = "--name=x --filename=/dev/mmcblk0 --direct=1 --rw=write --bs=4k --size=512k \
                --ioengine=libaio --iodepth=32";
    let line = line.split_whitespace().chain(options.split_whitespace());
    let jobs = parse_args(line, &NoSource).unwrap();
    let report = Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap();
    let commands = report.family.mmc.unwrap().commands;
    commands[24] + commands[25]
}

/// The pace of the submitter against the time of a command decides how many lone writes merge. The
/// card needs 1 ms to close a write, 0.2 ms for its command, and 0.16 ms of bus for 4 KiB at 25
/// MB/s: 1.5 to 1.9 ms for 2 to 4 writes. At 1200 a second, 2 of them come meanwhile, up to 4 with
/// the gaps between commands: 32 to 64 commands. (40 were said of Linux 7.3 in a guest.) Without a
/// pace 32 writes are in three requests, one on the bus, one that waits for it, and one that grows:
/// 12 commands.
#[test]
fn a_slow_submitter_makes_more_commands_of_its_writes() {
    let [fast, slow] = ["", "--rate_iops=1200"].map(commands_of_writes);
    println!("without a pace {fast} commands, at 1200 a second {slow}");
    assert!((10..=14).contains(&fast), "{fast}");
    assert!((32..=64).contains(&slow), "{slow}");
}
