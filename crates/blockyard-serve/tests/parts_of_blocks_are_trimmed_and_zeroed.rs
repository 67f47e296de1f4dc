//! A client may trim and zero parts of minimum blocks. TRIM got EINVAL, and QEMU 10 then failed a
//! discard.

mod nbd;

use blockyard_btt::Container;
use blockyard_pmem::{Durability, Image, ImageOptions, NewImage};
use blockyard_serve::Source;
use core::sync::atomic::{AtomicBool, Ordering};
use nbd::{FLUSH, READ, Random, Running, TRIM, ZEROES, disk, path};
use std::path::PathBuf;

const EINVAL: u32 = 22;

/// Starts a server of a BTT with two lanes.
fn served(sector_bytes: u32, durability: Durability) -> (Running, PathBuf) {
    let path = path("parts");
    let new = NewImage { bytes: 32 << 20, sector_bytes, container: Container::Namespace };
    drop(Image::create(&path, &new, &ImageOptions::default()).unwrap());
    let source = Source::Btt { path: path.clone(), durability, container: None, force: false };
    (Running::start(disk(source), |config| config.lanes = 2), path)
}

/// Zeroes have an effect on all of their bytes, TRIM on the whole blocks. No other byte changes.
///
/// Checks [rest-of-sector-kept].
#[test]
fn a_table_trims_whole_sectors_and_zeroes_any_bytes() {
    // A sector of 4160 bytes has 4096 bytes of data.
    for (sector_bytes, block, durability) in [
        (4096, 4096, Durability::Process),
        (4096, 4096, Durability::Disk),
        (4160, 4096, Durability::Process),
        (512, 512, Durability::Disk),
    ] {
        let (running, path) = served(sector_bytes, durability);
        let mut client = running.client();
        let bytes = 8 * block;
        let mut random = Random(u64::from(sector_bytes));
        assert_eq!(client.call(READ, 1, 512), EINVAL, "reads have whole sectors");
        for round in 0..200 {
            let data: Vec<u8> = (0..bytes).map(|at| u8::try_from(at % 251).unwrap() | 1).collect();
            assert_eq!(client.write(0, &data), 0);
            let from = random.below(bytes - 1);
            let reach = if round % 2 == 0 { 2 * block } else { bytes };
            let len = 1 + random.below(reach.min(bytes - from));
            for (kind, start, end) in [
                (TRIM, from.next_multiple_of(block), (from + len) / block * block),
                (ZEROES, from, from + len),
            ] {
                let asked = u32::try_from(len).unwrap();
                assert_eq!(client.call(kind, from, asked), 0, "{kind}: {len} at {from}");
                let mut expected = data.clone();
                if start < end {
                    let [start, end] = [start, end].map(|at| usize::try_from(at).unwrap());
                    expected[start..end].fill(0);
                }
                let found = client.read(0, data.len());
                assert!(found == expected, "{kind}: {len} at {from}, sectors of {sector_bytes}");
            }
        }
        assert_eq!(client.call(FLUSH, 0, 0), 0);
        client.bye();
        running.stop();
        std::fs::remove_file(path).unwrap();
    }
}

/// A client zeroes the middle of sectors that another one writes, by another lane. The ends keep
/// the last write.
///
/// Checks [rest-of-sector-kept].
#[test]
fn zeroes_within_a_sector_undo_no_write_of_another_lane() {
    for (durability, rounds) in [(Durability::Process, 8000), (Durability::Disk, 400)] {
        let (running, path) = served(4096, durability);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let mut zeroing = running.client();
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(zeroing.call(ZEROES, 4096 + 1000, 100), 0);
                }
                zeroing.bye();
            });
            let mut client = running.client();
            let undone = (0..rounds).find(|round| {
                let byte = u8::try_from(round % 255 + 1).unwrap();
                let error = client.write(4096, &[byte; 4096]);
                let found = client.read(4096, 4096);
                error != 0 || found[..1000].iter().chain(&found[1100..]).any(|one| *one != byte)
            });
            // Before anything panics: the scope waits for both.
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(undone, None, "{durability:?}: the write of this round was undone");
            client.bye();
        });
        running.stop();
        std::fs::remove_file(path).unwrap();
    }
}
