//! A BTT beside the memory it lies on, a loop of the memory operations it cannot do without, Linux's
//! recipe, and libpmemblk where it is installed: random sectors of a file in shared memory, which is
//! treated as persistent.
#![allow(clippy::cast_possible_truncation, reason = "sizes are those of a benchmark")]
#![allow(clippy::float_arithmetic, reason = "this is a report")]

use blockyard_bench::pmemblk::Pmemblk;
use blockyard_btt::find::find;
use blockyard_btt::{Btt, Container, LaneChoice, Memory, OpenOptions, Policy, ReadTracking};
use blockyard_pmem::{Copying, Durability, Image, ImageMemory, ImageOptions, Mapped, NewImage};
use clap::Parser;
use core::sync::atomic::{AtomicBool, Ordering};
use std::fs::OpenOptions as FileOptions;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// A BTT beside the memory below it
#[derive(Parser)]
struct Arguments {
    /// Bytes of the file
    #[arg(long, default_value_t = 1 << 30)]
    bytes: u64,
    /// A folder in memory
    #[arg(long, default_value = "/dev/shm")]
    folder: PathBuf,
    /// How often each is measured, in turns
    #[arg(long, default_value_t = 5)]
    turns: usize,
    /// Milliseconds of one measurement
    #[arg(long, default_value_t = 200)]
    ms: u64,
    /// Most threads
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Bytes of a sector, one size after the other
    #[arg(long, default_values_t = [4096, 512])]
    sector: Vec<u32>,
    /// Only those whose name has this in it, beside the raw copy
    #[arg(long)]
    only: Option<String>,
    /// Only this: read, write or zero
    #[arg(long)]
    op: Option<String>,
}

/// What is done with random sectors.
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

/// The name of what all others are compared with.
const RAW: &str = "raw copy";
/// Sectors of a call that has several.
const MANY: usize = 8;

/// Does something to random sectors.
type Act<'a> = Box<dyn FnMut(&mut Sectors) + 'a>;
/// What was measured: nanoseconds of each turn, by name.
type Row = Vec<(&'static str, Vec<f64>)>;

/// One who does it: calls are made by one thread each.
trait Subject: Sync {
    fn name(&self) -> &'static str;
    /// Something that does `op` to the sectors it is given, for one thread.
    fn thread<'a>(&'a self, op: Op, number: usize) -> Option<Act<'a>>;
}

/// Random sectors, and the bytes for them.
struct Sectors {
    state: u64,
    count: u64,
    bytes: Vec<u8>,
    done: u64,
}

impl Sectors {
    #[inline]
    fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        ((u128::from(self.state) * u128::from(self.count)) >> 64) as u64
    }
}

/// The memory itself: the data area of the BTT.
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
        let (memory, data, sector) = (self.memory, self.data, self.sector as u64);
        Some(match op {
            Op::Read => Box::new(move |sectors| {
                let at = data + sectors.next() * sector;
                memory.read(at, &mut sectors.bytes[..sector as usize]).expect("it is read");
                sectors.done += 1;
            }),
            Op::Write => Box::new(move |sectors| {
                let at = data + sectors.next() * sector;
                memory.write(at, &sectors.bytes[..sector as usize]).expect("it is written");
                memory.fence().expect("it is durable");
                sectors.done += 1;
            }),
            Op::Zero => return None,
        })
    }
}

/// What a BTT cannot do without: for a read the map entry and the data; for a write data, fence, log, fence,
/// map, fence. No lock, nobody else looked at, no state kept but in memory. Its data are where the BTT has
/// its own, its map and its log `beside`.
struct Loop<'a> {
    below: Raw<'a>,
    beside: &'a Mapped,
}

/// Where in its file a bare loop's map begins: behind its log.
const LOOP_MAP: u64 = 1 << 19;

impl Subject for Loop<'_> {
    fn name(&self) -> &'static str {
        "bare loop"
    }
    fn thread<'a>(&'a self, op: Op, number: usize) -> Option<Act<'a>> {
        let (Raw { memory, data, sector }, beside) = (self.below, self.beside);
        let (sector, map, log) = (sector as u64, LOOP_MAP, number as u64 * 64);
        Some(match op {
            Op::Read => Box::new(move |sectors| {
                let lba = sectors.next();
                let block = beside.load(map + lba * 4).expect("it is read") & 0x3fff_ffff;
                let at = data + u64::from(block) * sector;
                memory.read(at, &mut sectors.bytes[..sector as usize]).expect("it is read");
                sectors.done += 1;
            }),
            Op::Write => {
                // A block of its own to begin with, which its map does not have.
                let mut free = number as u64 | 0xc000_0000;
                let mut slot = 0;
                Box::new(move |sectors| {
                    let lba = sectors.next();
                    let at = data + (free & 0x3fff_ffff) * sector;
                    memory.write(at, &sectors.bytes[..sector as usize]).expect("it is written");
                    memory.fence().expect("it is durable");
                    let old = beside.load(map + lba * 4).expect("it is read");
                    beside.store_long(log + slot, u64::from(old) << 32 | lba).expect("logged");
                    beside.store_long(log + slot + 8, 1 << 32 | free).expect("logged");
                    beside.write_back(log + slot, 16);
                    beside.fence().expect("it is durable");
                    beside.store(map + lba * 4, free as u32).expect("it is stored");
                    beside.write_back(map + lba * 4, 4);
                    beside.fence().expect("it is durable");
                    free = u64::from(old);
                    slot ^= 16;
                    sectors.done += 1;
                })
            }
            Op::Zero => return None,
        })
    }
}

/// A BTT of ours.
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
                worker.read(lba, &mut sectors.bytes[..sector]).expect("it is read");
                sectors.done += 1;
            }),
            (Op::Write, false) => Box::new(move |sectors| {
                let lba = sectors.next();
                worker.write(lba, &sectors.bytes[..sector]).expect("it is written");
                sectors.done += 1;
            }),
            (Op::Read, true) => Box::new(move |sectors| {
                let lbas: [u64; MANY] = core::array::from_fn(|_| sectors.next());
                let mut bytes = sectors.bytes.chunks_exact_mut(sector);
                let mut many = lbas.map(|lba| (lba, bytes.next().expect("there are as many")));
                worker.read_many(&mut many).expect("it is read");
                sectors.done += MANY as u64;
            }),
            (Op::Write, true) => Box::new(move |sectors| {
                let lbas: [u64; MANY] = core::array::from_fn(|_| sectors.next());
                let mut bytes = sectors.bytes.chunks_exact(sector);
                let many = lbas.map(|lba| (lba, bytes.next().expect("there are as many")));
                worker.write_many(&many).expect("it is written");
                sectors.done += MANY as u64;
            }),
            (Op::Zero, false) => Box::new(move |sectors| {
                let lba = sectors.next();
                worker.set_zero(lba, 1).expect("it is zeroed");
                sectors.done += 1;
            }),
            (Op::Zero, true) => return None,
        })
    }
}

/// libpmemblk, loaded where it is installed.
struct Theirs<'a> {
    pool: &'a Pmemblk,
    sector: usize,
}

impl Subject for Theirs<'_> {
    fn name(&self) -> &'static str {
        "libpmemblk"
    }
    fn thread<'a>(&'a self, op: Op, _: usize) -> Option<Act<'a>> {
        let (pool, sector) = (self.pool, self.sector);
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

/// Nanoseconds for one sector, by `threads` at once.
fn measure(
    subject: &dyn Subject,
    op: Op,
    threads: usize,
    sectors: u64,
    bytes: usize,
    ms: u64,
) -> Option<f64> {
    drop(subject.thread(op, 0)?);
    let (stop, barrier) = (&AtomicBool::new(false), &Barrier::new(threads + 1));
    let rate: f64 = std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads)
            .map(|number| {
                scope.spawn(move || {
                    let state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(number as u64 * 2 + 1);
                    let bytes = vec![number as u8 + 1; bytes * MANY];
                    let mut sectors = Sectors { state, count: sectors, bytes, done: 0 };
                    let mut act = subject.thread(op, number).expect("it can");
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
        all.into_iter().map(|one| one.join().expect("no panic")).sum()
    });
    Some(1e9 / rate)
}

fn main() {
    let arguments = Arguments::parse();
    // libpmemblk would synchronise a file otherwise.
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
    let btt = Image::create(path, &new, &options).expect("there is room");
    let mut worker = btt.worker();
    let zeroes = vec![1; sector as usize];
    (0..btt.sectors()).for_each(|lba| worker.write(lba, &zeroes).expect("it is written"));
}

fn compare(arguments: &Arguments, sector: u32) {
    let path = arguments.folder.join(format!("blockyard-bench-{}", std::process::id()));
    let theirs_path = path.with_extension("pool");
    let beside_path = path.with_extension("beside");
    image(&path, sector, arguments.bytes);
    let options = ImageOptions { durability: Durability::Memory, ..ImageOptions::default() };
    // Mapped once, as the raw copy's file is: a new mapping is slower for a while.
    let image = Image::identify(&path, &options).expect("it is there");
    image.memory.prefault().expect("the kernel knows how");
    let indexed = Policy { tracking: ReadTracking::Indexed, lanes: LaneChoice::Own { sets: 16 } };
    let open = |policy| {
        let options = OpenOptions { policy, ..OpenOptions::new(image.container) };
        Btt::open(&image.memory, &options).expect("it is whole")
    };
    let found = find(&image.memory, image.container, image.own_uuid).expect("it is there");
    let data = found[0].start + found[0].info.layout.dataoff;
    let ImageMemory::Mapped(mapped) = &image.memory else { unreachable!("memory is mapped") };
    let raw = Raw { memory: mapped, data, sector: sector as usize };
    // As many as the BTT has, so that nothing is written over its map.
    let sectors = u64::from(found[0].info.layout.external_nlba);
    let mut options = FileOptions::new();
    let beside = options.read(true).write(true).create(true).truncate(true).open(&beside_path);
    let beside = beside.expect("there is room");
    beside.set_len(LOOP_MAP + sectors * 4).expect("there is room");
    let beside = Mapped::new(beside, true, true, Copying::NonTemporal);
    let beside = beside.expect("it can be mapped");
    // The bare loop's blocks lie in no order; the first are free.
    let mut order: Vec<u32> = (0..sectors as u32 - 16).map(|n| n + 16).collect();
    let mut dice = Sectors { state: 7, count: 0, bytes: Vec::new(), done: 0 };
    for at in (1..order.len()).rev() {
        dice.count = at as u64 + 1;
        order.swap(at, dice.next() as usize);
    }
    for (lba, block) in order.iter().enumerate() {
        beside.store(LOOP_MAP + lba as u64 * 4, block | 0xc000_0000).expect("it is stored");
    }
    let sectors = order.len() as u64;
    let theirs = Pmemblk::create(&theirs_path, sector, arguments.bytes)
        .inspect_err(|why| eprintln!("libpmemblk is not compared: {why}"))
        .ok();
    if let Some(pool) = &theirs {
        (0..pool.sectors()).for_each(|lba| pool.write(lba, &vec![1; sector as usize]));
    }
    let bytes = sector as usize;
    let mut rows: Vec<(Op, usize, Row)> = Vec::new();
    for op in [Op::Read, Op::Write, Op::Zero] {
        if arguments.op.as_deref().is_some_and(|only| only != op.name()) {
            continue;
        }
        for threads in 1..=arguments.threads {
            let mut row: Row = Vec::new();
            let mut note = |name, ns: Option<f64>| {
                let Some(ns) = ns else { return };
                match row.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, all)) => all.push(ns),
                    None => row.push((name, vec![ns])),
                }
            };
            for _ in 0..arguments.turns {
                let run = |subject: &dyn Subject, sectors| {
                    let only = arguments.only.as_deref().unwrap_or("");
                    let name = subject.name();
                    let wanted = name.contains(only) || name == RAW;
                    let ns = || measure(subject, op, threads, sectors, bytes, arguments.ms);
                    (name, if wanted { ns() } else { None })
                };
                let (name, ns) = run(&raw, sectors);
                note(name, ns);
                let (name, ns) = run(&Loop { below: raw, beside: &beside }, sectors);
                note(name, ns);
                for (policy, name, many) in [
                    (Policy::DEFAULT, "blockyard", false),
                    (Policy::DEFAULT, "blockyard, 8 at once", true),
                    (indexed, "blockyard, indexed", false),
                    (Policy::LINUX, "Linux's recipe", false),
                ] {
                    let btt = open(policy);
                    let sectors = btt.sectors();
                    let (name, ns) = run(&Ours { btt: &btt, name, many }, sectors);
                    note(name, ns);
                }
                if let Some(pool) = &theirs {
                    let (name, ns) = run(&Theirs { pool, sector: bytes }, pool.sectors());
                    note(name, ns);
                }
            }
            rows.push((op, threads, row));
        }
    }
    print(sector, &mut rows);
    drop(theirs);
    for path in [path, theirs_path, beside_path] {
        let _ = std::fs::remove_file(path);
    }
}

/// A table: nanoseconds of wall time for a sector, median, and how many times as fast as raw.
fn print(sector: u32, rows: &mut [(Op, usize, Row)]) {
    println!(
        "\n{sector}-byte sectors at random: ns each (times the rate of a raw copy; least to most)"
    );
    for (op, threads, row) in rows {
        println!("\n{}, {threads} thread{}", op.name(), if *threads == 1 { "" } else { "s" });
        let mut raw = None;
        for (name, all) in row {
            all.sort_by(f64::total_cmp);
            let ns = all[all.len() / 2];
            let raw = *raw.get_or_insert(ns);
            let (least, most) = (raw / all[all.len() - 1], raw / all[0]);
            println!("  {name:22} {ns:8.1}   {:5.2} ({least:.2} to {most:.2})", raw / ns);
        }
    }
}
