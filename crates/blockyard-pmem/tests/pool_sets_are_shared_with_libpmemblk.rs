//! libpmemblk 1.12 and this crate use the same pool sets: each opens, reads and writes what the
//! other one created. Sets that do not fit their parts are refused. Needs Python 3 and Debian's
//! packages libpmemblk1 and pmdk-tools.

mod libpmemblk;

use blockyard_btt::{Btt, Container};
use blockyard_pmem::{Durability, Image, ImageError, ImageMemory, ImageOptions, PoolSetError};
use libpmemblk::{check, is_there, peer, sector, write};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The sizes of three parts, the last of which has no complete page at its end.
const SIZES: [u64; 3] = [5 << 20, 20 << 20, (3 << 20) + 1000];
const EACH: [Durability; 4] =
    [Durability::Process, Durability::Memory, Durability::Calls, Durability::Disk];
/// The number of sectors that are looked at, some of them in each part.
const LOOKED_AT: u64 = 40;

/// Tests run one by one, because a process that one of them starts has the locked files of all
/// until it is a program.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An empty folder with a pool set.
struct Set(PathBuf);

impl Set {
    fn new(name: &str, options: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("set-{name}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("space on the test disk");
        let set = Self(folder);
        let parts = SIZES.iter().zip(0..);
        let lines = parts.map(|(bytes, n)| format!("{bytes} {}\n", set.part(n).display()));
        set.write(&format!("# A set of three parts.\n{options}{}", lines.collect::<String>()));
        set
    }

    fn path(&self) -> PathBuf {
        self.0.join("pool.set")
    }

    fn part(&self, nth: usize) -> PathBuf {
        self.0.join(format!("part{nth}"))
    }

    fn write(&self, lines: &str) {
        fs::write(self.path(), format!("PMEMPOOLSET\n{lines}")).expect("space on the test disk");
    }

    fn create(&self, bytes: u32, options: &ImageOptions) -> Result<Btt<ImageMemory>, ImageError> {
        Image::create_in(&self.path(), bytes, Container::Pool, options)
    }

    fn open(&self, durability: Durability) -> Result<Btt<ImageMemory>, ImageError> {
        let options = ImageOptions { durability, ..ImageOptions::default() };
        Image::identify(&self.path(), &options)?.open(&options)
    }
}

impl Drop for Set {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

/// The sectors that are looked at.
fn looked_at(sectors: u64) -> impl Iterator<Item = (u64, u8)> {
    (0..LOOKED_AT).map(move |n| n * (sectors - 1) / (LOOKED_AT - 1)).zip(1..)
}

/// Writes sectors here, reads them there, writes others there, and reads those here.
fn exchange(set: &Set, bytes: u32, durability: Durability) {
    let btt = set.open(durability).expect("a pool set");
    let sectors = btt.sectors();
    for (lba, byte) in looked_at(sectors) {
        write(&btt, lba, byte);
    }
    btt.flush().expect("successful flush");
    drop(btt);
    check(&set.path());
    let calls =
        looked_at(sectors).map(|(lba, byte)| format!("read {lba} write {lba} {} ", byte + 100));
    let said = peer(&set.path(), bytes, &calls.collect::<String>());
    assert_eq!(said[0], format!("blocks {sectors}"));
    for ((_, byte), said) in looked_at(sectors).zip(&said[1..]) {
        assert_eq!(*said, byte.to_string(), "{durability:?}");
    }
    let btt = set.open(durability).expect("a pool set");
    for (lba, byte) in looked_at(sectors) {
        assert_eq!(sector(&btt, lba), Ok(byte + 100), "{durability:?}, sector {lba}");
    }
}

#[test]
fn a_pool_set_of_libpmemblk_is_used_by_both() {
    let _alone = alone();
    if !is_there() {
        return;
    }
    for (options, bytes) in [("", 512), ("OPTION SINGLEHDR\n", 4096)] {
        let set = Set::new(&format!("theirs-{bytes}"), options);
        peer(&set.path(), bytes, "create 0 write 5 65");
        assert_eq!(sector(&set.open(Durability::Disk).expect("a pool set"), 5), Ok(65));
        EACH.into_iter().for_each(|durability| exchange(&set, bytes, durability));
    }
}

#[test]
fn our_pool_set_is_used_by_both() {
    let _alone = alone();
    if !is_there() {
        return;
    }
    for (options, bytes) in [("", 4096), ("OPTION SINGLEHDR\n", 512)] {
        for durability in EACH {
            let set = Set::new(&format!("ours-{bytes}"), options);
            let existing = fs::File::create_new(set.part(1)).expect("space on the test disk");
            existing.set_len(SIZES[1]).expect("space on the test disk");
            let options = ImageOptions { durability, ..ImageOptions::default() };
            drop(set.create(bytes, &options).expect("space on the test disk"));
            for (nth, size) in SIZES.into_iter().enumerate() {
                assert_eq!(fs::metadata(set.part(nth)).expect("a part").len(), size);
            }
            check(&set.path());
            exchange(&set, bytes, durability);
        }
    }
}

/// Returns the kind and the text of the error that opening the set gives.
fn refused(set: &Set) -> String {
    let error = EACH.map(|durability| set.open(durability).expect_err("a bad set").to_string());
    assert!(error.iter().all(|one| *one == error[0]), "{error:?}");
    error.into_iter().next().expect("an error")
}

#[test]
fn sets_that_do_not_fit_their_parts_are_refused() {
    let _alone = alone();
    let set = Set::new("refused", "");
    drop(set.create(512, &ImageOptions::default()).expect("space on the test disk"));
    let good = fs::read_to_string(set.path()).expect("our file");
    let lines: Vec<&str> = good.lines().skip(2).collect();

    set.write(&[lines[1], lines[0], lines[2], ""].join("\n"));
    assert!(refused(&set).contains("another order"), "the first part is another one");
    set.write(&[lines[0], lines[2], lines[1], ""].join("\n"));
    assert!(refused(&set).contains("another order"));
    set.write(&[lines[0], lines[1], ""].join("\n"));
    assert!(refused(&set).contains("another order"), "a part is missing");
    set.write(&[lines[0], ""].join("\n"));
    assert!(refused(&set).contains("not the whole pool"));
    set.write(&format!("OPTION SINGLEHDR\n{}\n", lines.join("\n")));
    assert!(refused(&set).contains("SINGLEHDR"));
    set.write(&good.lines().skip(2).collect::<Vec<_>>().join("\n").replace("/part2", "/part3"));
    assert!(refused(&set).contains("part3: No such file"));
    set.write(&lines.join("\n").replace("3146728", "3146729"));
    assert!(refused(&set).contains("part2: it has 3146728 bytes"));
    set.write(&format!("{}\n4M {}\n", lines.join("\n"), set.0.display()));
    assert!(refused(&set).contains("a directory as a part of a pool is not supported"));
    for replica in ["REPLICA\n", "REPLICA host set\n"] {
        set.write(&format!("{}\n{replica}", lines.join("\n")));
        let error = set.open(Durability::Disk).expect_err("a bad set");
        assert!(matches!(error, ImageError::PoolSet(PoolSetError::Unsupported(5, _))), "{error}");
    }

    // A part by itself is not the pool, and a part of another pool with the same sizes does not
    // belong to it.
    let alone = Image::identify(&set.part(0), &ImageOptions::default()).expect_err("a part");
    assert!(alone.to_string().contains("not the whole pool"), "{alone}");
    let other = Set::new("other", "");
    drop(other.create(512, &ImageOptions::default()).expect("space on the test disk"));
    fs::copy(other.part(1), set.part(1)).expect("space on the test disk");
    set.write(&lines.join("\n"));
    assert!(refused(&set).contains("different pools"));
}

#[test]
fn a_pipe_is_no_part_and_nothing_waits_for_its_writer() {
    let _alone = alone();
    let set = Set::new("pipe", "");
    let made = Command::new("mkfifo").arg(set.part(0)).status().expect("mkfifo of coreutils");
    assert!(made.success());
    assert!(refused(&set).ends_with("part0: a pipe or socket has no bytes"), "{}", refused(&set));
    let error = set.create(512, &ImageOptions::default()).expect_err("a pipe as a part");
    assert!(error.to_string().ends_with("part0: a pipe or socket has no bytes"), "{error}");
    assert!(!set.part(1).exists(), "a new part is left");
}

#[test]
fn a_part_without_space_is_named() {
    let _alone = alone();
    let set = Set::new("full", "");
    set.write(&format!("8M {}\n4T {}\n", set.part(0).display(), set.part(1).display()));
    let options = ImageOptions { allocated: true, ..ImageOptions::default() };
    let error = set.create(512, &options).expect_err("4 TiB on the test disk");
    let text = error.to_string();
    let ImageError::File(error) = error else { panic!("{text}") };
    assert_eq!(error.kind(), ErrorKind::StorageFull, "{text}");
    assert!(text.contains("/part1: No space left"), "{text}");
    assert!(!set.part(0).exists() && !set.part(1).exists(), "a new part is left");
}

/// The permissions of an existing part are its owner's business.
#[test]
fn new_parts_get_the_permissions_that_were_asked_for() {
    let _alone = alone();
    for mode in [0o600, 0o640, 0o666] {
        let set = Set::new("mode", "");
        let last = fs::File::create(set.part(2)).expect("our folder");
        last.set_len(SIZES[2]).expect("space on the test disk");
        fs::set_permissions(set.part(2), fs::Permissions::from_mode(0o604)).expect("our file");
        let options = ImageOptions { mode: Some(mode), ..ImageOptions::default() };
        drop(set.create(512, &options).expect("space on the test disk"));
        let found = [0, 1, 2]
            .map(|nth| fs::metadata(set.part(nth)).expect("a part").permissions().mode() & 0o777);
        assert_eq!(found, [mode, mode, 0o604]);
    }
}

#[test]
fn a_set_that_cannot_be_created_leaves_no_new_part() {
    let _alone = alone();
    let set = Set::new("left", "");
    let mut bytes = vec![0; usize::try_from(SIZES[1]).expect("size in memory")];
    bytes[7] = 1;
    fs::write(set.part(1), &bytes).expect("space on the test disk");
    let options = ImageOptions::default();
    let error = set.create(512, &options).expect_err("a part that is not empty");
    let ImageError::File(error) = error else { panic!("{error}") };
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    assert!(!set.part(0).exists() && !set.part(2).exists());
    assert_eq!(fs::read(set.part(1)).expect("a part"), bytes, "it is unchanged");
    fs::remove_file(set.part(1)).expect("a part");
    assert!(set.create(0, &options).is_err(), "sectors without bytes");
    assert!((0..3).all(|nth| !set.part(nth).exists()));
    assert!(set.create(512, &options).is_ok());
    assert!(set.create(512, &options).is_err(), "there is a pool");
    assert!(set.open(Durability::Disk).is_ok(), "it is unchanged");
}
