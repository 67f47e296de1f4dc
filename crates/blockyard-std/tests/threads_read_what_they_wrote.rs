//! Threads write, zero and read their own stripes of one disk at random, with borrowed and with
//! owned memory, and compare each read with a model. A stripe is no multiple of a sector where the
//! disk takes any byte.

mod common;

use blockyard::limits::Limits;
use blockyard::policy::Policies;
use blockyard_std::{Buffer, Disk, Options};
use common::{Random, Scratch, quick, slow};

const BYTES: u64 = 1 << 20;
const THREADS: u64 = 4;

/// The bytes of thread `own`, in pieces of `unit` bytes.
fn work(disk: &Disk, own: u64, unit: u64, rounds: u32) {
    let mut random = Random(own + 1);
    let stripe = BYTES / THREADS / unit * unit;
    let start = own * stripe;
    let mut model = vec![0; usize::try_from(stripe).unwrap()];
    for round in 0..rounds {
        let from = random.below(stripe / unit) * unit;
        let most = (stripe - from).min(40_000 / unit * unit);
        let len = (1 + random.below(most / unit)) * unit;
        let at = usize::try_from(from).unwrap();
        let range = at..at + usize::try_from(len).unwrap();
        let place = start + from;
        let fill = u8::try_from(round % 251).unwrap();
        match random.below(6) {
            0 => {
                model[range.clone()].fill(fill);
                disk.write_at(&model[range], place).unwrap();
            }
            1 => {
                model[range.clone()].fill(fill);
                let (result, back) = disk.write(model[range.clone()].to_vec(), place).wait();
                assert_eq!((result, &back[..]), (Ok(()), &model[range]));
            }
            2 => {
                model[range.clone()].fill(0);
                disk.write_zeroes(place, len).unwrap();
            }
            3 => {
                let (result, read) = disk.read(Buffer::new(range.len()), place).wait();
                assert_eq!(result, Ok(()));
                assert!(read[..] == model[range], "thread {own} at {from}, {len} bytes");
            }
            _ => {
                let mut read = vec![0xEE; range.len()];
                disk.read_at(&mut read, place).unwrap();
                assert!(read == model[range], "thread {own} at {from}, {len} bytes");
            }
        }
    }
    let mut read = vec![0; model.len()];
    disk.read_at(&mut read, start).unwrap();
    assert!(read == model, "thread {own}");
}

fn check(disk: Disk, unit: u64) {
    std::thread::scope(|scope| {
        for own in 0..THREADS {
            let disk = disk.clone();
            scope.spawn(move || work(&disk, own, unit, 400));
        }
    });
    let report = disk.shutdown().unwrap();
    assert_eq!((report.ok(), report.stats.in_flight), (Ok(()), 0));
    assert!(report.stats.reads.ended > 400 && report.stats.writes.bytes > 1 << 20);
}

#[test]
fn of_a_disk_in_memory() {
    for policies in [Policies::NONE, Policies::mq_deadline()] {
        check(Options::new().policies(policies).depth(3).memory(BYTES).unwrap(), 1);
    }
    check(Disk::memory(BYTES).unwrap(), 4096);
}

#[test]
fn of_a_file_with_and_without_the_page_cache() {
    let scratch = Scratch::new("threads", BYTES);
    check(Options::new().buffered().file(&scratch.0).unwrap(), 777);
    std::fs::File::create(&scratch.0).unwrap().set_len(BYTES).unwrap();
    check(Disk::file(&scratch.0).unwrap(), 777);
    std::fs::File::create(&scratch.0).unwrap().set_len(BYTES).unwrap();
    check(Options::new().depth(2).file(&scratch.0).unwrap(), 4096);
}

#[test]
fn of_a_device_of_their_own() {
    let wires = quick();
    let limits = Limits { max_write_zeroes_sectors: 32, ..Limits::new(BYTES / 512) };
    check(slow(Options::new(), limits, &wires), 512);
    let mut got = wires.lock().unwrap();
    assert!(got.got.len() > 1000);
    got.got.clear();
}

/// A write of parts of blocks that is longer than any spare buffer of a disk.
#[test]
fn of_a_long_write() {
    let scratch = Scratch::new("long", 80 << 20);
    let disk = Disk::file(&scratch.0).unwrap();
    let long: Vec<_> = (0..70_u32 << 20).map(|at| at.to_le_bytes()[at as usize % 4]).collect();
    disk.write_at(&long, 777).unwrap();
    let (result, back) = disk.read(vec![0; long.len()], 777).wait();
    assert_eq!(result, Ok(()));
    assert!(back == long);
}

/// What one disk wrote to a file is there for the next.
#[test]
fn in_the_life_before() {
    let scratch = Scratch::new("lives", BYTES);
    let disk = Disk::file(&scratch.0).unwrap();
    assert!(Disk::file(&scratch.0).is_err(), "two disks must not write to one file");
    disk.write_at(b"remember", 100_001).unwrap();
    disk.shutdown().unwrap().ok().unwrap();
    let mut read = [0; 10];
    Disk::file(&scratch.0).unwrap().read_at(&mut read, 100_000).unwrap();
    assert_eq!(&read, b"\0remember\0");
}
