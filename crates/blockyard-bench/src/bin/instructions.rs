//! Instructions per I/O, counted by valgrind's callgrind.
//!
//! Each case is run twice under callgrind, with [`FEW`] and with twice as many I/Os. The difference
//! of the two counts divided by [`FEW`] is the cost of an I/O: construction, start and exit of the
//! program are in both counts and cancel. The result is the same on every run of one binary, but
//! for disks of several threads: how many requests share a turn varies.
//!
//! The lane of a server runs alone under callgrind: its client is the parent process, at the other
//! end of the lane's standard input. So neither the client nor the kernel is in the counts.
//!
//! Without arguments the program prints a table of all cases. With the beginning of a name it
//! prints the cases of that name. It starts itself under `valgrind`, which must be installed, with
//! a case and a number of I/Os as arguments.

use blockyard::policy::Policies;
use blockyard::stats::StageStats;
use blockyard_bench::fleet::{Fleet, Size};
use blockyard_bench::simulated::{EMMC, SCSI, Workload};
use blockyard_bench::{IoLoop, Meter, disk, lane, xorshift};
use blockyard_devices::data::image::{Content, Image, Stamp};
use core::error::Error;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

/// A multiple of all instances of a workload, and of [`BATCH`].
const FEW: u64 = 19_200;
/// Sequential writes that become one request.
const BATCH: u32 = 8;
/// The length of an extent. As many sectors without data lie between two.
const EXTENT_SECTORS: u64 = 8;

/// One I/O, or one batch of them.
type Step = fn(&mut IoLoop);

struct Case {
    name: String,
    what: What,
}

enum What {
    /// The core alone.
    Core {
        policies: fn() -> Policies,
        /// Requests that wait in the elevator.
        held: u32,
        step: Step,
        ios_per_step: u32,
    },
    /// Random reads of a fleet of this size.
    Fleet { size: Size, policies: fn() -> Policies },
    /// Writes to random extents of the image of a disk that has so many with data.
    Extents(u32),
    /// Random reads with the meter of a server; `counts` says whether metrics are on.
    Metered { policies: fn() -> Policies, counts: bool },
    /// Random reads of a served disk in memory, from a client at this door.
    Lane { door: Door, policies: fn() -> Policies },
    /// Random reads of a disk of `blockyard-std` in memory, by two threads.
    Disk { calls: Calls, policies: fn() -> Policies },
    /// The simulator: a workload, its operation, and a design.
    Simulated(Workload, &'static str, &'static str),
}

/// How a thread reads from a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Calls {
    /// One blocking call after the other.
    Blocking,
    /// Futures in batches.
    Batches,
}

/// A client's way into a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    /// NBD over a socket.
    Nbd,
    /// Memory of this process.
    Memory,
}

const NONE: fn() -> Policies = || Policies::NONE;

fn cases() -> Vec<Case> {
    let core = [
        random_reads("none/random-read", NONE, 0),
        random_reads("mq-deadline/random-read", Policies::mq_deadline, 0),
        random_reads("mq-deadline/random-read/32-held", Policies::mq_deadline, 32),
        random_reads("mq-deadline/random-read/4096-held", Policies::mq_deadline, 4096),
        random_reads("kyber/random-read", Policies::mq_kyber, 0),
        random_reads("kyber/random-read/32-held", Policies::mq_kyber, 32),
        random_reads("bfq/random-read", Policies::mq_bfq, 0),
        random_reads("bfq/random-read/32-held", Policies::mq_bfq, 32),
        random_reads("adios/random-read", Policies::mq_adios, 0),
        random_reads("adios/random-read/32-held", Policies::mq_adios, 32),
        sequential_writes("none/sequential-write", NONE),
        sequential_writes("mq-deadline/sequential-write", Policies::mq_deadline),
        sequential_writes("kyber/sequential-write", Policies::mq_kyber),
        sequential_writes("bfq/sequential-write", Policies::mq_bfq),
        sequential_writes("adios/sequential-write", Policies::mq_adios),
    ];
    let metered = [
        ("none/random-read/meter-off", NONE, false),
        ("none/random-read/meter-on", NONE, true),
        ("mq-deadline/random-read/meter-off", Policies::mq_deadline as fn() -> Policies, false),
        ("mq-deadline/random-read/meter-on", Policies::mq_deadline, true),
    ];
    let metered = metered.into_iter().map(|(name, policies, counts)| Case {
        name: name.to_owned(),
        what: What::Metered { policies, counts },
    });
    let doors = [(Door::Nbd, "nbd"), (Door::Memory, "memory")];
    let designs = [("none", NONE), ("mq-deadline", Policies::mq_deadline as fn() -> Policies)];
    let lane = doors.into_iter().flat_map(|(door, name)| {
        designs.into_iter().map(move |(design, policies)| Case {
            name: format!("lane/{name}/{design}/random-read"),
            what: What::Lane { door, policies },
        })
    });
    let calls = [(Calls::Blocking, "blocking"), (Calls::Batches, "batches")];
    let disk = calls.into_iter().flat_map(|(calls, name)| {
        designs.into_iter().map(move |(design, policies)| Case {
            name: format!("disk/{name}/{design}/random-read"),
            what: What::Disk { calls, policies },
        })
    });
    core.into_iter()
        .chain(metered)
        .chain(lane)
        .chain(disk)
        .chain(scales())
        .chain(extents())
        .chain([SCSI, EMMC].into_iter().flat_map(simulated))
        .collect()
}

/// Something that grows: its name, its amounts, and the fleet with so much of it.
struct Growth(&'static str, [u16; 3], fn(u16) -> Size);

const GROWTH: [Growth; 5] = [
    Growth("depth", [32, 1024, 10_240], |depth| Size { depth, ..Size::ONE }),
    Growth("cpus", [1, 32, 1024], |cpus| Size { cpus, ..Size::ONE }),
    Growth("hctxs", [1, 32, 1024], |hctxs| Size { cpus: hctxs, hctxs, ..Size::ONE }),
    Growth("disks", [1, 16, 256], |disks| Size { disks, depth: 1024, ..Size::ONE }),
    Growth("waiters", [32, 1024, 10_240], |waiters| Size { waiters, ..Size::ONE }),
];

/// The core as one thing grows: `scale/WHAT/AMOUNT/DESIGN`.
fn scales() -> impl Iterator<Item = Case> {
    let designs = [
        ("none", NONE),
        ("mq-deadline", Policies::mq_deadline as fn() -> Policies),
        ("kyber", Policies::mq_kyber),
    ];
    let sizes = GROWTH.into_iter().flat_map(|Growth(what, amounts, size)| {
        amounts.map(|amount| (format!("scale/{what}/{amount}"), size(amount)))
    });
    sizes.flat_map(move |(name, size)| {
        designs.map(|(design, policies)| Case {
            name: format!("{name}/{design}"),
            what: What::Fleet { size, policies },
        })
    })
}

/// The record of a disk's data as its extents grow: `scale/extents/AMOUNT`.
fn extents() -> impl Iterator<Item = Case> {
    [32, 1024, 65_536]
        .into_iter()
        .map(|count| Case { name: format!("scale/extents/{count}"), what: What::Extents(count) })
}

fn random_reads(name: &str, policies: fn() -> Policies, held: u32) -> Case {
    let what = What::Core { policies, held, step: IoLoop::random_read, ios_per_step: 1 };
    Case { name: name.to_owned(), what }
}

fn sequential_writes(name: &str, policies: fn() -> Policies) -> Case {
    let step: Step = |io| io.sequential_writes(BATCH);
    let what = What::Core { policies, held: 0, step, ios_per_step: BATCH };
    Case { name: name.to_owned(), what }
}

fn simulated(workload: Workload) -> impl Iterator<Item = Case> {
    workload.designs.iter().flat_map(move |design| {
        workload.ops.iter().map(move |op| Case {
            name: format!("{}/{design}/{op}", workload.device),
            what: What::Simulated(workload, op, design),
        })
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    match args.as_slice() {
        [] => print_table(""),
        [prefix] => print_table(prefix),
        [name, count] => {
            let cases = cases();
            let case = cases.iter().find(|case| case.name == *name).ok_or("no such case")?;
            perform(case, count.parse()?)
        }
        _ => Err("usage: instructions [PREFIX | CASE COUNT]".into()),
    }
}

fn perform(case: &Case, ios: u64) -> Result<(), Box<dyn Error>> {
    match case.what {
        What::Core { policies, held, step, ios_per_step } => {
            let mut io = IoLoop::new(policies(), held);
            for _ in 0..ios / u64::from(ios_per_step) {
                step(&mut io);
            }
        }
        What::Metered { policies, counts } => {
            let meter = Meter(counts.then(|| Box::new(StageStats::watching(1, 1))));
            let mut io = IoLoop::with_sink(policies(), 0, meter);
            (0..ios).for_each(|_| io.random_read());
        }
        What::Fleet { size, policies } => {
            let mut fleet = Fleet::new(size, policies());
            (0..ios).for_each(|_| fleet.step());
        }
        What::Extents(count) => {
            let mut image = Image::new();
            let count = u64::from(count);
            (0..count).for_each(|number| write_extent(&mut image, number, number + 1));
            let mut state = 0x2545_f491_4f6c_dd1d;
            (0..ios).for_each(|io| {
                write_extent(&mut image, xorshift(&mut state) % count, count + 1 + io);
            });
        }
        // The client, in the parent process, decides the number of I/Os.
        What::Lane { door: Door::Nbd, policies } => lane::serve_standard_input(policies())?,
        What::Lane { door: Door::Memory, policies } => lane::read_in_memory(policies(), ios)?,
        What::Disk { calls: Calls::Blocking, policies } => disk::read_blocking(policies(), ios)?,
        What::Disk { calls: Calls::Batches, policies } => disk::read_batches(policies(), ios)?,
        What::Simulated(workload, op, design) => {
            let _ = workload.simulate(op, design, &workload.amount(ios));
        }
    }
    Ok(())
}

/// Writes an extent of an image. Between two extents is room for another, so that they never join.
fn write_extent(image: &mut Image, number: u64, stamp: u64) {
    let extent = number * 2 * EXTENT_SECTORS..(number * 2 + 1) * EXTENT_SECTORS;
    image.set(extent, Content::of(Stamp(stamp)));
}

fn print_table(prefix: &str) -> Result<(), Box<dyn Error>> {
    println!("{:<40}{:>12}", "case", "instr/io");
    for case in cases().iter().filter(|case| case.name.starts_with(prefix)) {
        let more = count(case, 2 * FEW)? - count(case, FEW)?;
        println!("{:<40}{:>12}", case.name, more.div_ceil(FEW));
    }
    Ok(())
}

/// The instructions of a whole run.
fn count(case: &Case, ios: u64) -> Result<u64, Box<dyn Error>> {
    let (ours, theirs) = UnixStream::pair()?;
    let child = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe()?)
        .args([&case.name, &ios.to_string()])
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("valgrind does not start: {error}"))?;
    if matches!(case.what, What::Lane { door: Door::Nbd, .. }) {
        lane::read(ours, ios)?;
    }
    let output = child.wait_with_output()?;
    let report = String::from_utf8_lossy(&output.stderr);
    let line = report.lines().find_map(|line| line.split("Collected : ").nth(1));
    let line = line.ok_or_else(|| format!("callgrind counted nothing: {report}"))?;
    Ok(line.trim().parse()?)
}
