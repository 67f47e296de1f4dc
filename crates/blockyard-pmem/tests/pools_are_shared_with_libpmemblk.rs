//! libpmemblk 1.12 and this crate use the same pools: each reads and writes what the other one
//! wrote, and our pools pass libpmemblk's checker. Needs Python 3 and Debian's packages libpmemblk1
//! and pmdk-tools.

mod libpmemblk;

use blockyard_btt::arena::Arena;
use blockyard_btt::check::{self, Options, Report};
use blockyard_btt::find::find;
use blockyard_btt::flog::{GroupBytes, SlotLayout};
use blockyard_btt::repair::Plan;
use blockyard_btt::{Container, IoError, MapEntry, Policy};
use blockyard_pmem::{Image, ImageMemory, ImageOptions, NewImage};
use libpmemblk::{check, file, info, is_there, open, peer, sector, write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

#[test]
fn a_pool_of_libpmemblk_is_read_and_written_by_both() {
    if !is_there() {
        return;
    }
    for bytes in [512, 520, 1000, 4096] {
        let path = file(&format!("theirs-{bytes}.pool"));
        let size = 32 << 20;
        let said = peer(
            &path,
            bytes,
            &format!("create {size} write 5 65 write 6 66 write 5 67 zero 6 error 8"),
        );
        let btt = open(&path);
        assert_eq!(said, [format!("blocks {}", btt.sectors())]);
        let got = [5, 6, 7, 8].map(|lba| sector(&btt, lba));
        assert_eq!(got, [Ok(67), Ok(0), Ok(0), Err(IoError::Lost)]);
        for turn in 0..40 {
            write(&btt, 7, turn);
            write(&btt, 5, 100 + turn);
        }
        write(&btt, 8, 9);
        btt.set_zero(9, 1).expect("successful zeroing");
        btt.set_error(10).expect("successful marking as lost");
        drop(btt);
        check(&path);
        let said =
            peer(&path, bytes, "read 5 read 6 read 7 read 8 read 9 read 10 write 5 1 write 10 2");
        assert_eq!(said[1..], ["139", "0", "39", "9", "0", "Input/output error"]);
        check(&path);
        let btt = open(&path);
        let got = [5, 7, 10].map(|lba| sector(&btt, lba));
        assert_eq!(got, [Ok(1), Ok(39), Ok(2)]);
    }
}

#[test]
fn our_pool_passes_libpmemblks_check_and_is_used_by_both() {
    if !is_there() {
        return;
    }
    for bytes in [512, 520, 4096] {
        let path = file(&format!("ours-{bytes}.pool"));
        let new = NewImage { bytes: 32 << 20, sector_bytes: bytes, container: Container::Pool };
        let btt =
            Image::create(&path, &new, &ImageOptions::default()).expect("space on the test disk");
        let sectors = btt.sectors();
        drop(btt);
        check(&path);
        info(&path, bytes);
        let btt = open(&path);
        (0_u8..200).for_each(|n| write(&btt, u64::from(n) * 7, n + 1));
        drop(btt);
        check(&path);
        let said = peer(&path, bytes, "read 0 read 7 read 1393 read 1 write 0 77 write 1 78");
        assert_eq!(said, [&format!("blocks {sectors}"), "1", "2", "200", "0"]);
        check(&path);
        let btt = open(&path);
        assert_eq!([0, 1, 7].map(|lba| sector(&btt, lba)), [Ok(77), Ok(78), Ok(2)]);
    }
}

/// Returns a pool with sectors of 4096 bytes, of which 0 to 99 were written through many lanes,
/// some of them several times, and its only arena.
fn used(name: &str) -> (PathBuf, Arena) {
    let path = file(name);
    let new = NewImage { bytes: 32 << 20, sector_bytes: 4096, container: Container::Pool };
    let options = ImageOptions { policy: Policy::LINUX, ..ImageOptions::default() };
    let btt = Image::create(&path, &new, &options).expect("space on the test disk");
    for turn in 0..3 {
        let again = (0..100_u8).filter(|lba| lba % 3 >= turn);
        again.for_each(|lba| write(&btt, lba.into(), lba + 1));
    }
    drop(btt);
    let image = Image::identify(&path, &ImageOptions::default()).expect("a pool");
    let found = find(&image.memory, image.container, image.own_uuid).expect("pool with an arena");
    let start = found[0].start;
    let layout = found[0].info.layout;
    let slots = SlotLayout::Standard;
    (path, Arena { start, first_lba: 0, layout, slots, dialect: image.container.dialect() })
}

/// Damage that a repair corrects: its name, position and bytes.
type Damage = (&'static str, u64, Vec<u8>);

fn damages(arena: &Arena, image: &ImageMemory) -> Vec<Damage> {
    // A lane whose newest entry is the last write of its sector, and the slot of that entry.
    let lane = (0..arena.layout.nfree)
        .find(|&lane: &u32| {
            let (_, entry) =
                arena.newest(&read_group(arena, image, lane)).expect("an undamaged BTT");
            let has = arena.load_map_entry(image, entry.sector()).expect("successful read");
            !entry.is_unused() && has.block(entry.sector()) == entry.new_block()
        })
        .expect("a used lane");
    let (slot, entry) = arena.newest(&read_group(arena, image, lane)).expect("an undamaged BTT");
    let at = arena.entry_at(lane, slot);
    let older = arena.slots.entries(&read_group(arena, image, lane))[1 - slot].seq;
    let fresh = arena.entry_at(200, 0);
    let cut = MapEntry(entry.old_map).0.to_le_bytes().to_vec();
    vec![
        ("equal numbers", at + 12, number(older)),
        ("a number above 3", at + 12, number(9)),
        ("a sector that does not exist", at, vec![0xff; 4]),
        ("a block that does not exist", at + 8, vec![0xff; 4]),
        ("one entry, of number 3", fresh + 12, number(3)),
        ("no log of a lane", arena.group_at(200), vec![0; 64]),
        ("no log at all", arena.group_at(0), vec![0; 256 * 64]),
        ("a cut write", arena.map_at(entry.sector()), cut),
        ("a first info block", arena.start + 60, vec![0xee; 4]),
        ("a copy of the info block", arena.start + arena.layout.infooff + 60, vec![0xee; 4]),
    ]
}

fn read_group(arena: &Arena, image: &ImageMemory, lane: u32) -> GroupBytes {
    arena.read_group(image, lane).expect("successful read")
}

fn number(seq: u32) -> Vec<u8> {
    seq.to_le_bytes().to_vec()
}

/// A repaired pool passes libpmemblk's check, reads as before, and is used by both.
#[test]
fn a_pool_that_we_repaired_passes_libpmemblks_check() {
    if !is_there() {
        return;
    }
    let (good, arena) = used("repaired-good.pool");
    check(&good);
    let image = Image::identify(&good, &ImageOptions::default()).expect("a pool");
    let damages = damages(&arena, &image.memory);
    drop(image);
    let path = file("repaired.pool");
    for (name, at, to) in damages {
        std::fs::copy(&good, &path).expect("space on the test disk");
        let bytes = std::fs::OpenOptions::new().write(true).open(&path).expect("existing file");
        bytes.write_all_at(&to, at).expect("successful write");
        let image = Image::identify(&path, &ImageOptions::default()).expect("a pool");
        let options = Options { own_uuid: image.own_uuid, ..Options::new(Container::Pool) };
        let (report, plan) = checked(&image, &options);
        assert_ne!(report.findings(), [], "{name}");
        assert_ne!(plan.steps(), [], "{name}");
        plan.apply(&image.memory, &mut || {}).expect("successful write");
        assert_eq!(checked(&image, &options).0.findings(), [], "{name}");
        drop(image);
        println!("{name}");
        self::check(&path);
        let writes: String = (100..120).map(|lba| format!("write {lba} 7 ")).collect();
        let said = peer(&path, 4096, &format!("read 0 read 1 read 2 {writes} read 99 read 119"));
        assert_eq!(said[1..], ["1", "2", "3", "100", "7"], "{name}");
        self::check(&path);
        let btt = open(&path);
        (0..200_u8).for_each(|lba| write(&btt, lba.into(), lba));
        assert!((0..200_u8).all(|lba| sector(&btt, lba.into()) == Ok(lba)), "{name}");
        drop(btt);
        self::check(&path);
    }
}

fn checked(image: &Image, options: &check::Options) -> (Report, Plan) {
    check::check(&image.memory, options, &mut |_| {}).expect("successful read")
}

#[test]
fn an_unwritten_pool_of_libpmemblk_is_read_and_written_by_both() {
    if !is_there() {
        return;
    }
    for bytes in [512, 520, 4096] {
        let path = file(&format!("unwritten-{bytes}.pool"));
        let said = peer(&path, bytes, &format!("create {}", 32 << 20));
        let options = ImageOptions { read_only: true, ..ImageOptions::default() };
        let image = Image::identify(&path, &options).expect("a pool");
        assert!(image.unwritten.is_some(), "libpmemblk formats a pool at the first write");
        let btt = image.open(&options).expect("BTT opened for reading");
        assert_eq!(sector(&btt, btt.sectors() - 1), Ok(0));
        assert_eq!(said, [format!("blocks {}", btt.sectors())]);
        drop(btt);
        assert_eq!(peer(&path, bytes, "read 5"), [&*said[0], "0"], "the pool is unchanged");
        let btt = open(&path);
        write(&btt, 5, 50);
        drop(btt);
        check(&path);
        let said_later = peer(&path, bytes, "read 5 read 6 write 6 60");
        assert_eq!(said_later, [&*said[0], "50", "0"]);
        check(&path);
        assert_eq!(sector(&open(&path), 6), Ok(60));
    }
}
