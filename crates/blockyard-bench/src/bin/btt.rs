//! Compares a BTT with its raw memory, with a bare loop of the memory operations of a plain BTT,
//! with Linux's algorithm, and with libpmemblk where it is installed. All of them read, write or zero random
//! sectors of a file in shared memory, which is treated as persistent.
#![allow(clippy::cast_possible_truncation, reason = "sizes are those of a benchmark")]
#![allow(clippy::float_arithmetic, reason = "this is a report")]

use blockyard_bench::pmemblk::Pmemblk;
use blockyard_bench::turns::Turns;
use blockyard_bench::xorshift;
use blockyard_btt::find::find;
use blockyard_btt::{Btt, Container, LaneChoice, Memory, OpenOptions, Policy, ReadTracking};
use blockyard_pmem::{Copying, Durability, Image, ImageMemory, ImageOptions, Mapped, NewImage};
use clap::Parser;
use core::sync::atomic::{AtomicBool, Ordering};
use std::fs::OpenOptions as FileOptions;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Compares a BTT with the memory below it
#[derive(Parser)]
struct Arguments {
    /// Size of the file, in bytes
    #[arg(long, default_value_t = 1 << 30)]
    bytes: u64,
    /// Folder for the file, in memory
    #[arg(long, default_value = "/dev/shm")]
    folder: PathBuf,
    /// Measurements of each subject, taken in turns
    #[arg(long, default_value_t = 5)]
    turns: usize,
    /// Length of one measurement, in milliseconds
    #[arg(long, default_value_t = 200)]
    ms: u64,
    /// Largest number of threads
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Sector sizes to measure, in bytes
    #[arg(long, default_values_t = [4096, 512])]
    sector: Vec<u32>,
    /// Measure only subjects whose name contains this text, the raw copy and the bare loop
    #[arg(long)]
    only: Option<String>,
    /// Measure only this operation: read, write or zero
    #[arg(long)]
    op: Option<String>,
}

/// An operation on random sectors.
#[derive(Clone, Copy, PartialEq)]
enum Op {
    Read,
    Write,
    Zero,
}

impl Op {
    fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Zero => "zero",
        }
    }
}

/// The name of the subject that all others are compared with.
const RAW: &str = "raw copy";
/// The name of a second such subject.
const LOOP: &str = "bare loop";
/// The name of the subject that takes its place in zeroing, for which there is no bare loop.
const THEIRS: &str = "libpmemblk";
/// The sectors of a call that has several.
const MANY: usize = 8;

/// Does one operation on random sectors.
type Act<'a> = Box<dyn FnMut(&mut Sectors) + 'a>;
/// The results: nanoseconds of each turn, by subject.
type Row = Vec<(&'static str, Turns)>;

impl Arguments {
    /// Returns whether `subject` is compared. The references always are.
    fn wants(&self, subject: &dyn Subject) -> bool {
        let name = subject.name();
        name.contains(self.only.as_deref().unwrap_or("")) || name == RAW || name == LOOP
    }
}

fn add_turn(row: &mut Row, name: &'static str, ns: f64) {
    match row.iter_mut().find(|(known, _)| *known == name) {
        Some((_, turns)) => turns.push(ns),
        None => row.push((name, Turns::from_iter([ns]))),
    }
}

/// A subject of the comparison. Each thread makes calls of its own.
trait Subject: Sync {
    fn name(&self) -> &'static str;
    /// Returns a function that does `op` on given sectors, for one thread.
    fn thread<'a>(&'a self, op: Op, number: usize) -> Option<Act<'a>>;
}

/// Random sectors, and buffers for them.
struct Sectors {
    state: u64,
    count: u64,
    bytes: Vec<u8>,
    done: u64,
}

impl Sectors {
    #[inline]
    fn next(&mut self) -> u64 {
        ((u128::from(xorshift(&mut self.state)) * u128::from(self.count)) >> 64) as u64
    }
}

/// The raw memory: the data area of the BTT.
#[derive(Clone, Copy)]
struct Raw<'a> {
    memory: &'a Mapped,
    data: u64,
    sector: usize,
}

impl Subject for Raw<'_> {
    fn name(&self) -> &'static str {
        RAW
    }
    fn thread<'a>(&'a self, op: Op, _: usize) -> Option<Act<'a>> {
        let memory = self.memory;
        let data = self.data;
        let sector = self.sector as u64;
        Some(match op {
            Op::Read => Box::new(move |sectors| {
                let at = data + sectors.next() * sector;
                memory
                    .read(at, &mut sectors.bytes[..sector as usize])
                    .expect("read of memory without errors");
                sectors.done += 1;
            }),
            Op::Write => Box::new(move |sectors| {
                let at = data + sectors.next() * sector;
                memory
                    .write(at, &sectors.bytes[..sector as usize])
                    .expect("write to memory without errors");
                memory.fence().expect("fence on memory without errors");
                sectors.done += 1;
            }),
            Op::Zero => return None,
        })
    }
}

/// The memory operations of a plain BTT, one sector at a time: a read takes the map entry and the data; a write takes data,
/// fence, log, fence, map, fence. The loop has no lock and no state outside memory. Its data lie where the
/// BTT has its own; its map and its log are in `beside`.
struct Loop<'a> {
    below: Raw<'a>,
    beside: &'a Mapped,
}

/// The offset of a bare loop's map in its file: behind the log.
const LOOP_MAP: u64 = 1 << 19;

impl Subject for Loop<'_> {
    fn name(&self) -> &'static str {
        LOOP
    }
    fn thread<'a>(&'a self, op: Op, number: usize) -> Option<Act<'a>> {
        let Raw { memory, data, sector } = self.below;
        let beside = self.beside;
        let sector = sector as u64;
        let map = LOOP_MAP;
        let log = number as u64 * 64;
        Some(match op {
            Op::Read => Box::new(move |sectors| {
                let lba = sectors.next();
                let block = beside.load(map + lba * 4).expect("read of memory without errors")
                    & 0x3fff_ffff;
                let at = data + u64::from(block) * sector;
                memory
                    .read(at, &mut sectors.bytes[..sector as usize])
                    .expect("read of memory without errors");
                sectors.done += 1;
            }),
            Op::Write => {
                // The first free block, which no map entry names.
                let mut free = number as u64 | 0xc000_0000;
                let mut slot = 0;
                Box::new(move |sectors| {
                    let lba = sectors.next();
                    let at = data + (free & 0x3fff_ffff) * sector;
                    memory
                        .write(at, &sectors.bytes[..sector as usize])
                        .expect("write to memory without errors");
                    memory.fence().expect("fence on memory without errors");
                    let old = beside.load(map + lba * 4).expect("read of memory without errors");
                    beside
                        .store_long(log + slot, u64::from(old) << 32 | lba)
                        .expect("log entry in memory without errors");
                    beside
                        .store_long(log + slot + 8, 1 << 32 | free)
                        .expect("log entry in memory without errors");
                    beside.write_back(log + slot, 16);
                    beside.fence().expect("fence on memory without errors");
                    beside
                        .store(map + lba * 4, free as u32)
                        .expect("store to memory without errors");
                    beside.write_back(map + lba * 4, 4);
                    beside.fence().expect("fence on memory without errors");
                    free = u64::from(old);
                    slot ^= 16;
                    sectors.done += 1;
                })
            }
            Op::Zero => return None,
        })
    }
}

/// A BTT of this project.
struct Ours<'a> {
    btt: &'a Btt<&'a ImageMemory>,
    name: &'static str,
    many: bool,
}

impl Subject for Ours<'_> {
    fn name(&self) -> &'static str {
        self.name
    }
    fn thread<'a>(&'a self, op: Op, _: usize) -> Option<Act<'a>> {
        let mut worker = self.btt.worker();
        let sector = self.btt.sector_bytes() as usize;
        Some(match (op, self.many) {
            (Op::Read, false) => Box::new(move |sectors| {
                let lba = sectors.next();
                worker
                    .read(lba, &mut sectors.bytes[..sector])
                    .expect("read of memory without errors");
                sectors.done += 1;
            }),
            (Op::Write, false) => Box::new(move |sectors| {
                let lba = sectors.next();
                worker
                    .write(lba, &sectors.bytes[..sector])
                    .expect("write to memory without errors");
                sectors.done += 1;
            }),
            (Op::Read, true) => Box::new(move |sectors| {
                let lbas: [u64; MANY] = core::array::from_fn(|_| sectors.next());
                let mut bytes = sectors.bytes.chunks_exact_mut(sector);
                let mut many =
                    lbas.map(|lba| (lba, bytes.next().expect("a buffer for each sector")));
                worker.read_many(&mut many).expect("read of memory without errors");
                sectors.done += MANY as u64;
            }),
            (Op::Write, true) => Box::new(move |sectors| {
                let lbas: [u64; MANY] = core::array::from_fn(|_| sectors.next());
                let mut bytes = sectors.bytes.chunks_exact(sector);
                let many = lbas.map(|lba| (lba, bytes.next().expect("a buffer for each sector")));
                worker.write_many(&many).expect("write to memory without errors");
                sectors.done += MANY as u64;
            }),
            (Op::Zero, false) => Box::new(move |sectors| {
                let lba = sectors.next();
                worker.set_zero(lba, 1).expect("zeroing on memory without errors");
                sectors.done += 1;
            }),
            (Op::Zero, true) => return None,
        })
    }
}

/// libpmemblk, where it is installed.
struct Theirs<'a> {
    pool: &'a Pmemblk,
    sector: usize,
}

impl Subject for Theirs<'_> {
    fn name(&self) -> &'static str {
        THEIRS
    }
    fn thread<'a>(&'a self, op: Op, _: usize) -> Option<Act<'a>> {
        let pool = self.pool;
        let sector = self.sector;
        Some(Box::new(move |sectors| {
            let lba = sectors.next();
            let bytes = &mut sectors.bytes[..sector];
            match op {
                Op::Read => pool.read(lba, bytes),
                Op::Write => pool.write(lba, bytes),
                Op::Zero => pool.set_zero(lba),
            }
            sectors.done += 1;
        }))
    }
}

/// Nanoseconds for one sector with `threads` threads.
fn measure(
    subject: &dyn Subject,
    op: Op,
    threads: usize,
    sectors: u64,
    bytes: usize,
    ms: u64,
) -> Option<f64> {
    drop(subject.thread(op, 0)?);
    let stop = &AtomicBool::new(false);
    let barrier = &Barrier::new(threads + 1);
    let rate: f64 = std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads)
            .map(|number| {
                scope.spawn(move || {
                    let state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(number as u64 * 2 + 1);
                    let bytes = vec![number as u8 + 1; bytes * MANY];
                    let mut sectors = Sectors { state, count: sectors, bytes, done: 0 };
                    let mut act =
                        subject.thread(op, number).expect("operation that the subject supports");
                    (0..2000).for_each(|_| act(&mut sectors));
                    sectors.done = 0;
                    barrier.wait();
                    let begin = Instant::now();
                    while !stop.load(Ordering::Relaxed) {
                        (0..64).for_each(|_| act(&mut sectors));
                    }
                    sectors.done as f64 / begin.elapsed().as_secs_f64()
                })
            })
            .collect();
        barrier.wait();
        std::thread::sleep(Duration::from_millis(ms));
        stop.store(true, Ordering::Relaxed);
        all.into_iter().map(|one| one.join().expect("measuring thread")).sum()
    });
    Some(1e9 / rate)
}

fn main() {
    let arguments = Arguments::parse();
    // Otherwise libpmemblk would synchronise the file.
    // SAFETY: no other thread runs yet.
    unsafe { std::env::set_var("PMEM_IS_PMEM_FORCE", "1") };
    for &sector in &arguments.sector {
        compare(&arguments, sector);
    }
}

fn image(path: &Path, sector: u32, bytes: u64) {
    let _ = std::fs::remove_file(path);
    let new = NewImage { bytes, sector_bytes: sector, container: Container::Pool };
    let options = ImageOptions { durability: Durability::Memory, ..ImageOptions::default() };
    let btt = Image::create(path, &new, &options).expect("room for the file");
    let mut worker = btt.worker();
    let zeroes = vec![1; sector as usize];
    (0..btt.sectors())
        .for_each(|lba| worker.write(lba, &zeroes).expect("write to memory without errors"));
}

fn compare(arguments: &Arguments, sector: u32) {
    let path = arguments.folder.join(format!("blockyard-bench-{}", std::process::id()));
    let theirs_path = path.with_extension("pool");
    let beside_path = path.with_extension("beside");
    image(&path, sector, arguments.bytes);
    let options = ImageOptions { durability: Durability::Memory, ..ImageOptions::default() };
    // Mapped once, like the raw copy's file: a new mapping is slower for a while.
    let image = Image::identify(&path, &options).expect("BTT that this program created");
    image.memory.prefault().expect("kernel that can populate a mapping");
    let indexed = Policy { tracking: ReadTracking::Indexed, lanes: LaneChoice::Own { sets: 16 } };
    let found = find(&image.memory, image.container, image.own_uuid)
        .expect("BTT that this program created");
    let data = found[0].start + found[0].info.layout.dataoff;
    let ImageMemory::Mapped(mapped) = &image.memory else { unreachable!("memory is mapped") };
    let raw = Raw { memory: mapped, data, sector: sector as usize };
    // As many blocks as the BTT has, so that the loop does not overwrite its map.
    let sectors = u64::from(found[0].info.layout.external_nlba);
    let (beside, sectors) = loop_map(&beside_path, sectors);
    let theirs = Pmemblk::create(&theirs_path, sector, arguments.bytes)
        .inspect_err(|why| eprintln!("libpmemblk is not compared: {why}"))
        .ok();
    if let Some(pool) = &theirs {
        (0..pool.sectors()).for_each(|lba| pool.write(lba, &vec![1; sector as usize]));
    }
    let bytes = sector as usize;
    println!("\n{sector}-byte sectors at random. {LEGEND}");
    for op in [Op::Read, Op::Write, Op::Zero] {
        if arguments.op.as_deref().is_some_and(|only| only != op.name()) {
            continue;
        }
        for threads in 1..=arguments.threads {
            let mut row = Row::new();
            for _ in 0..arguments.turns {
                let mut run = |subject: &dyn Subject, sectors| {
                    if !arguments.wants(subject) {
                        return;
                    }
                    let ns = measure(subject, op, threads, sectors, bytes, arguments.ms);
                    if let Some(ns) = ns {
                        add_turn(&mut row, subject.name(), ns);
                    }
                };
                run(&raw, sectors);
                run(&Loop { below: raw, beside: &beside }, sectors);
                for (policy, name, many) in [
                    (Policy::DEFAULT, "blockyard", false),
                    (Policy::DEFAULT, "blockyard, 8 at once", true),
                    (indexed, "blockyard, indexed", false),
                    (Policy::LINUX, "Linux's recipe", false),
                ] {
                    let btt = open_with(&image, policy);
                    run(&Ours { btt: &btt, name, many }, btt.sectors());
                }
                if let Some(pool) = &theirs {
                    run(&Theirs { pool, sector: bytes }, pool.sectors());
                }
            }
            print(op, threads, &row);
        }
    }
    drop(theirs);
    for path in [path, theirs_path, beside_path] {
        let _ = std::fs::remove_file(path);
    }
}

/// Makes the map of the bare loop, in a file of its own, for a pool of `sectors`. Returns the map and its entries.
fn loop_map(path: &Path, sectors: u64) -> (Mapped, u64) {
    let mut options = FileOptions::new();
    let beside = options.read(true).write(true).create(true).truncate(true).open(path);
    let beside = beside.expect("room for the file");
    beside.set_len(LOOP_MAP + sectors * 4).expect("room for the file");
    let beside = Mapped::new(beside, true, true, Copying::NonTemporal);
    let beside = beside.expect("mapping of a file in memory");
    // The bare loop's blocks are in random order; the first ones are free.
    let mut order: Vec<u32> = (0..sectors as u32 - 16).map(|n| n + 16).collect();
    let mut dice = Sectors { state: 7, count: 0, bytes: Vec::new(), done: 0 };
    for at in (1..order.len()).rev() {
        dice.count = at as u64 + 1;
        order.swap(at, dice.next() as usize);
    }
    for (lba, block) in order.iter().enumerate() {
        beside
            .store(LOOP_MAP + lba as u64 * 4, block | 0xc000_0000)
            .expect("store to memory without errors");
    }
    (beside, order.len() as u64)
}

fn open_with(image: &Image, policy: Policy) -> Btt<&ImageMemory> {
    let options = OpenOptions { policy, ..OpenOptions::new(image.container) };
    Btt::open(&image.memory, &options).expect("BTT that this program created")
}

/// The columns of a table.
const LEGEND: &str = "Columns: ns of a sector; rate relative to the raw copy; rate relative to the bare loop, \
    in zeroing to libpmemblk.\nRates are those within a turn. Medians of the turns (least-most).";

/// Prints a table: a line for each subject.
fn print(op: Op, threads: usize, row: &Row) {
    println!("\n{}, {threads} thread{}", op.name(), if threads == 1 { "" } else { "s" });
    let of = |name| row.iter().find(|(known, _)| *known == name).map(|(_, turns)| turns);
    let references = [of(RAW), of(if op == Op::Zero { THEIRS } else { LOOP })];
    for (name, turns) in row {
        // Rates are the inverse of times.
        let rates = references.map(|other| {
            other.map_or_else(|| "-".to_owned(), |other| other.relative_to(turns).to_string())
        });
        println!("  {name:22} {:24} {:18} {}", format!("{turns:.1}"), rates[0], rates[1]);
    }
}
