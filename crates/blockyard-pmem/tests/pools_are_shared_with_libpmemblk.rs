//! libpmemblk 1.12 and this crate use the same pools: each reads and writes what the other one wrote, and our pools pass
//! libpmemblk's checker. Needs Python 3 and Debian's packages libpmemblk1 and pmdk-tools.

use blockyard_btt::arena::Arena;
use blockyard_btt::check::{self, Options};
use blockyard_btt::find::find;
use blockyard_btt::flog::SlotLayout;
use blockyard_btt::{Btt, Container, IoError, MapEntry, Policy};
use blockyard_pmem::{Image, ImageMemory, ImageOptions, NewImage};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Calls libpmemblk: `create SIZE`, then `write LBA BYTE`, `zero LBA`, `error LBA`, and `read LBA`, which prints the
/// byte that fills the sector, or the error.
const PEER: &str = r#"
import ctypes, os, sys
lib = ctypes.CDLL("libpmemblk.so.1", use_errno=True)
for name in ("pmemblk_create", "pmemblk_open"):
    getattr(lib, name).restype = ctypes.c_void_p
lib.pmemblk_errormsg.restype = ctypes.c_char_p
lib.pmemblk_create.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_uint]
lib.pmemblk_open.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
for name in ("pmemblk_read", "pmemblk_write"):
    getattr(lib, name).argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_longlong]
for name in ("pmemblk_set_zero", "pmemblk_set_error"):
    getattr(lib, name).argtypes = [ctypes.c_void_p, ctypes.c_longlong]
lib.pmemblk_close.argtypes = [ctypes.c_void_p]
lib.pmemblk_nblock.argtypes = [ctypes.c_void_p]
lib.pmemblk_nblock.restype = ctypes.c_size_t
path, bytes_, calls = sys.argv[1].encode(), int(sys.argv[2]), sys.argv[3:]
if calls[0] == "create":
    pool = lib.pmemblk_create(path, bytes_, int(calls[1]), 0o600)
    calls = calls[2:]
else:
    pool = lib.pmemblk_open(path, bytes_)
if not pool:
    sys.exit(lib.pmemblk_errormsg().decode())
print("blocks", lib.pmemblk_nblock(pool))
while calls:
    call, lba, calls = calls[0], int(calls[1]), calls[2:]
    if call == "write":
        byte, calls = int(calls[0]), calls[1:]
        assert lib.pmemblk_write(pool, bytes([byte]) * bytes_, lba) == 0
    elif call == "zero":
        assert lib.pmemblk_set_zero(pool, lba) == 0
    elif call == "error":
        assert lib.pmemblk_set_error(pool, lba) == 0
    else:
        sector = ctypes.create_string_buffer(bytes_)
        if lib.pmemblk_read(pool, sector, lba) == 0:
            assert len(set(sector.raw)) == 1, "a mix"
            print(sector.raw[0])
        else:
            print(os.strerror(ctypes.get_errno()))
lib.pmemblk_close(pool)
"#;

fn peer(path: &Path, sector_bytes: u32, calls: &str) -> Vec<String> {
    let out = Command::new("python3")
        .args(["-c", PEER])
        .arg(path)
        .arg(sector_bytes.to_string())
        .args(calls.split_whitespace())
        .output()
        .expect("python3 runs");
    let words = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "libpmemblk ({calls}): {words}");
    String::from_utf8_lossy(&out.stdout).lines().map(String::from).collect()
}

fn is_there() -> bool {
    let load = "import ctypes; ctypes.CDLL('libpmemblk.so.1')";
    let there = |command: &mut Command| command.output().is_ok_and(|out| out.status.success());
    let all = there(Command::new("python3").args(["-c", load]))
        && Command::new("pmempool").arg("--version").output().is_ok();
    assert!(
        all || std::env::var_os("CI").is_none(),
        "libpmemblk1, pmdk-tools and python3 are needed"
    );
    if !all {
        eprintln!("skipped: libpmemblk1, pmdk-tools or python3 is not installed");
    }
    all
}

/// Returns the path of a file that does not exist yet.
fn file(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_file(&path);
    path
}

fn check(path: &Path) {
    let out = Command::new("pmempool")
        .arg("check")
        .arg("-v")
        .arg(path)
        .output()
        .expect("a program that starts");
    let words = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success() && words.contains("consistent"), "pmempool check: {words}");
    assert!(!words.contains("not consistent"), "pmempool check: {words}");
}

fn sector(btt: &Btt<ImageMemory>, lba: u64) -> Result<u8, IoError> {
    let mut bytes = vec![0xee; btt.sector_bytes() as usize];
    btt.read(lba, &mut bytes)?;
    assert!(bytes.iter().all(|&byte| byte == bytes[0]), "a mix in sector {lba}");
    Ok(bytes[0])
}

fn write(btt: &Btt<ImageMemory>, lba: u64, byte: u8) {
    btt.write(lba, &vec![byte; btt.sector_bytes() as usize]).expect("successful write");
}

fn open(path: &Path) -> Btt<ImageMemory> {
    let options = ImageOptions::default();
    Image::identify(path, &options).expect("a pool").open(&options).expect("an undamaged BTT")
}

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

/// Returns a pool with sectors of 4096 bytes, of which 0 to 99 were written through many lanes, some of them several
/// times, and its only arena.
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
    let (start, layout) = (found[0].start, found[0].info.layout);
    let slots = SlotLayout::Standard;
    (path, Arena { start, first_lba: 0, layout, slots, dialect: image.container.dialect() })
}

/// Damage that a repair corrects: its name, position and bytes.
type Damage = (&'static str, u64, Vec<u8>);

fn damages(arena: &Arena, image: &ImageMemory) -> Vec<Damage> {
    // A lane whose newest entry is the last write of its sector, and the slot of that entry.
    let group = |lane| arena.read_group(image, lane).expect("successful read");
    let used = |&lane: &u32| {
        let (_, entry) = arena.newest(&group(lane)).expect("an undamaged BTT");
        let has = arena.load_map_entry(image, entry.sector()).expect("successful read");
        !entry.is_unused() && has.block(entry.sector()) == entry.new_block()
    };
    let lane = (0..arena.layout.nfree).find(used).expect("a used lane");
    let (slot, entry) = arena.newest(&group(lane)).expect("an undamaged BTT");
    let at = arena.entry_at(lane, slot);
    let number = |seq: u32| seq.to_le_bytes().to_vec();
    let older = arena.slots.entries(&group(lane))[1 - slot].seq;
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
        let checked =
            || check::check(&image.memory, &options, &mut |_| {}).expect("successful read");
        let (report, plan) = checked();
        assert_ne!(report.findings(), [], "{name}");
        assert_ne!(plan.steps(), [], "{name}");
        plan.apply(&image.memory, &mut || {}).expect("successful write");
        assert_eq!(checked().0.findings(), [], "{name}");
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
