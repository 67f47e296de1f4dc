//! Zeroing and discarding whole disks takes long where the lane's own thread does the work. Other
//! clients are answered meanwhile. They used to wait until the last of these requests had ended.

mod extended;
mod nbd;

use blockyard_pmem::{Durability, Image, ImageOptions, NewImage};
use blockyard_serve::{DiskConfig, Source};
use extended::Extended;
use nbd::{READ, Running, TRIM, ZEROES, disk, memory};
use std::io::{Read, Write};
use std::time::{Duration, Instant};

/// WRITE_ZEROES: leave the range allocated.
const NO_HOLE: u16 = 2;

/// One client zeroes the whole disk `times` times while another one reads.
fn whole_disks_of_zeroes(disk: DiskConfig, times: u64) {
    let running = Running::start(disk, |_| {});
    let mut zeroer = running.client();
    let mut reader = running.client();
    assert_eq!(zeroer.write(8192, &[7; 4096]), 0);
    let start = Instant::now();
    let mut headers = Vec::new();
    for cookie in 0..times {
        let len = u32::try_from(zeroer.bytes).unwrap();
        let mut header = nbd::header(ZEROES, cookie, 0, len);
        header[4..6].copy_from_slice(&NO_HOLE.to_be_bytes());
        headers.extend(header);
    }
    zeroer.stream.write_all(&headers).unwrap();
    let zeroed = std::thread::spawn(move || {
        for _ in 0..times {
            assert_eq!(zeroer.reply().unwrap().1, 0);
        }
        (zeroer, start.elapsed())
    });
    let mut slowest = Duration::ZERO;
    while !zeroed.is_finished() {
        let asked = Instant::now();
        assert_eq!(reader.call(READ, 0, 512), 0);
        reader.stream.read_exact(&mut [0; 512]).unwrap();
        slowest = slowest.max(asked.elapsed());
    }
    let (mut zeroer, all) = zeroed.join().unwrap();
    assert!(slowest < all / 3, "a read took {slowest:?} of {all:?}");
    assert_eq!(zeroer.read(8192, 4096), [0; 4096]);
    zeroer.bye();
    reader.bye();
    running.stop();
}

/// Checks [range-in-slices].
#[test]
fn zeroing_a_disk_in_memory_delays_nobody() {
    whole_disks_of_zeroes(memory((128 << 20) + 4096), 64);
}

/// Checks [range-in-slices].
#[test]
fn zeroing_a_btt_delays_nobody() {
    let path = nbd::path("btt");
    let container = blockyard_btt::Container::Namespace;
    let new = NewImage { bytes: 128 << 20, sector_bytes: 512, container };
    drop(Image::create(&path, &new, &ImageOptions::default()).unwrap());
    let durability = Durability::Process;
    let container = None;
    let force = false;
    let source = Source::Btt { path: path.clone(), durability, container, force };
    whole_disks_of_zeroes(disk(source), 128);
    std::fs::remove_file(path).unwrap();
}

/// A disk without data ends each part of a range at once. A lane did all billions of parts in one
/// turn ([turn-is-bounded]).
#[test]
fn a_range_of_exabytes_of_a_disk_without_data_delays_nobody() {
    let running = Running::start(disk(Source::Null { bytes: 1 << 62 }), |config| {
        config.patience = Duration::from_secs(1);
    });
    let mut client = Extended::connect(&running.socket);
    // Twice as many as the disk takes at a time.
    (0..64).for_each(|_| client.ask_for(TRIM, 0, 1 << 62));
    let mut reader = running.client();
    for _ in 0..100 {
        assert_eq!(reader.read(0, 3), [0; 3]);
    }
    drop(client);
    reader.bye();
    running.stop();
}
