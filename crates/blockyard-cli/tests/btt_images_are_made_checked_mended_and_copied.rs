//! The command `btt` creates, checks, repairs, copies and converts images.

use blockyard_btt::Uuid;
use blockyard_btt::info_block::InfoBlock;
use blockyard_pmem::pool::Pool;
use blockyard_pmem::{Image, ImageOptions};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A temporary folder, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("blockyard-btt-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("the temporary folder should be created");
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a temporary path should be UTF-8").to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn btt(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_blockyard"));
    command.arg("btt").args(args).output().expect("blockyard should start")
}

/// Runs `btt`, asserts exit code `code`, and returns the standard output.
fn answers(args: &[&str], code: i32) -> String {
    let output = btt(args);
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {words}");
    String::from_utf8(output.stdout).expect("blockyard should print UTF-8")
}

/// Runs `btt`, asserts that it fails with exit code `code`, and returns the error messages.
fn fails(args: &[&str], code: i32) -> String {
    let output = btt(args);
    assert_eq!(output.status.code(), Some(code), "{args:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{args:?}");
    String::from_utf8(output.stderr).expect("blockyard should print UTF-8")
}

/// Returns the messages of a `serve` that opens its disk and then fails to listen.
fn serve_nowhere(file: &str, options: &[&str]) -> String {
    let nowhere = ["--nbd", "unix:/no/such/folder/socket"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_blockyard"));
    command.args([&["serve", file, "--btt"][..], options, &nowhere].concat());
    let output = command.output().expect("blockyard should start");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn contents(file: &str) -> Vec<u8> {
    fs::read(file).expect("the file should exist")
}

fn put(file: &str, at: u64, bytes: &[u8]) {
    let file = fs::OpenOptions::new().write(true).open(file).expect("the image should exist");
    file.write_all_at(bytes, at).expect("the image should be writable");
}

#[test]
fn a_new_image_is_clean_and_described() {
    let folder = Folder::new("new");
    let kinds = [
        (&["--version", "1.1"][..], "namespace without label", "4096"),
        (&["--version", "2.0"], "namespace with a label", "0"),
        (&["--pmemblk-pool"], "pool of libpmemblk", "8192"),
    ];
    for (n, (options, container, start)) in kinds.into_iter().enumerate() {
        let file = folder.file(&n.to_string());
        let create = ["create", &file, "--size", "32m", "--sector-size", "4096"];
        answers(&[&create, options].concat(), 0);
        let info = answers(&["info", &file], 0);
        assert!(
            info.contains(container) && info.contains(&format!("byte          {start}\n")),
            "{info}"
        );
        assert!(info.contains("sector size  4096\n"));
        let check = answers(&["check", &file], 0);
        assert!(check.starts_with(&format!("{file}: clean: {container}, arenas: 1, ")), "{check}");
        let again = fails(&[&create, options].concat(), 2);
        assert!(again.starts_with(&format!("blockyard: error: {file}: ")), "{again}");
    }
}

#[test]
fn check_exits_by_damage_and_repair_needs_yes() {
    let folder = Folder::new("damage");
    let file = folder.file("x");
    answers(&["create", &file, "--size", "16m", "--sector-size", "4096", "--version", "2.0"], 0);
    let whole = contents(&file);
    put(&file, 20, &[0xff]);
    let check = answers(&["check", &file], 3);
    assert!(check.starts_with("repairable, data at risk: arena 0, byte 0: "), "{check}");
    let neither = fails(&["repair", &file], 2);
    assert!(neither.contains("--dry-run"), "{neither}");
    let damaged = contents(&file);
    let plan = answers(&["repair", &file, "--dry-run"], 3);
    assert!(plan.starts_with("arena 0: copy the info block at byte "), "{plan}");
    assert_eq!(contents(&file), damaged, "a dry run should not write");
    let done = answers(&["repair", &file, "--yes"], 0);
    assert!(
        done.starts_with(&plan[..plan.find('\n').expect("a repair plan should have a line")]),
        "{done}"
    );
    assert_eq!(contents(&file), whole);

    put(&file, 20, &[0xff]);
    put(&file, (16 << 20) - 4096, &[0xff]);
    let check = answers(&["check", &file, "--container", "labelled"], 4);
    assert!(check.starts_with("broken, data at risk: arena 0, byte 0: "), "{check}");
    assert_eq!(answers(&["repair", &file, "--container", "labelled", "--yes"], 4), check);
    let gone = fails(&["check", &folder.file("none")], 2);
    assert!(gone.contains("none: "), "{gone}");
}

/// Each of Linux's 256 lanes needs a free block. The image has 255: the block of lane 0 belongs to
/// a sector more, and each lane has the block of the lane after it.
#[test]
fn an_arena_that_a_new_linux_refuses_gives_a_warning() {
    const GROUP_BYTES: usize = 64;
    let folder = Folder::new("few-free");
    let file = folder.file("x");
    answers(&["create", &file, "--size", "16m", "--sector-size", "4096", "--version", "2.0"], 0);
    assert_eq!(String::from_utf8_lossy(&btt(&["check", &file]).stderr), "");
    let mut image = contents(&file);
    let first = image.first_chunk().expect("an image has an info block");
    let mut info = InfoBlock::parse(first, 16 << 20).expect("a new info block is valid");
    let log = usize::try_from(info.layout.flogoff).expect("an offset in a small file");
    image.copy_within(log + GROUP_BYTES..log + 256 * GROUP_BYTES, log);
    fs::write(&file, &image).expect("the image should be writable");
    info.layout.nfree -= 1;
    info.layout.external_nlba += 1;
    put(&file, 0, &info.to_bytes());
    put(&file, info.layout.infooff, &info.to_bytes());
    let output = btt(&["check", &file]);
    let found = String::from_utf8_lossy(&output.stdout);
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{found}");
    let warning = format!(
        "blockyard: warning: {file}: arena 0 has 255 free blocks, fewer than the 256 lanes of Linux: \
         Linux from 7.4, and stable kernels, refuse this\n"
    );
    assert_eq!(words, warning);
}

/// "An arena needs at least 16 MiB" was the answer to 16 MiB.
#[test]
fn a_file_that_is_a_little_too_small_is_told_how_much_it_needs() {
    let folder = Folder::new("small");
    let words = fails(&["create", &folder.file("x"), "--size", "16m"], 2);
    assert!(words.contains("16 MiB, behind the start of the file: use 17m"), "{words}");
}

/// A file without a BTT was "broken, data at risk".
#[test]
fn a_file_without_a_btt_is_not_a_damaged_one() {
    let folder = Folder::new("no-btt");
    let file = folder.file("x");
    for contents in [vec![0; 32 << 20], vec![7; 32 << 20], vec![0; 100]] {
        fs::write(&file, contents).expect("space on the test disk");
        for command in [&["check"][..], &["repair", "--yes"]] {
            let words = fails(&[command, &[&file]].concat(), 2);
            assert!(words.contains("x: no BTT: there is no info block"), "{words}");
        }
        assert!(answers(&["check", &file, "--container", "namespace"], 4).contains(": broken: "));
    }
    for (version, first) in [("1.1", 4096), ("2.0", 0)] {
        fs::remove_file(&file).expect("the file should exist");
        // As `--size` takes it.
        answers(
            &["create", &file, "--size", "20m", "--sector-size", "4k", "--version", version],
            0,
        );
        assert!(answers(&["info", &file], 0).contains("sector size  4096"));
        put(&file, first + 20, &[0xff]);
        put(&file, (20 << 20) - 4096, &[0; 16]);
        assert!(answers(&["check", &file], 4).contains(": broken: "), "version {version}");
    }
}

#[test]
fn repair_unmark_makes_a_broken_arena_writable() {
    let folder = Folder::new("marked");
    let file = folder.file("x");
    let source = folder.file("raw");
    raw(&source, 9, 4096);
    answers(&["create", &file, "--size", "16m", "--sector-size", "4096", "--version", "2.0"], 0);
    let mut info: [u8; 4096] =
        contents(&file)[..4096].try_into().expect("an info block should be 4096 bytes");
    info[48] = 1;
    let sum = blockyard_btt::info_block::checksum(&info);
    info[4088..].copy_from_slice(&sum.to_le_bytes());
    put(&file, 0, &info);
    put(&file, (16 << 20) - 4096, &info);
    assert!(answers(&["check", &file], 4).contains("marked as broken"));
    assert!(fails(&["copy", "--force", &source, &file], 1).contains("read-only"));
    answers(&["repair", "--yes", &file], 4);
    let plan = answers(&["repair", "--dry-run", "--unmark", &file], 4);
    assert!(plan.starts_with("arena 0: remove its broken mark"), "{plan}");
    answers(&["repair", "--yes", "--unmark", &file], 0);
    answers(&["copy", &source, &file], 0);
}

/// Writes a raw image of `sectors`; every third sector is zeroes.
fn raw(path: &str, sectors: u64, bytes: usize) -> Vec<u8> {
    let sector =
        |lba: u64| vec![if lba.is_multiple_of(3) { 0 } else { lba.to_le_bytes()[0] | 1 }; bytes];
    let all: Vec<u8> = (0..sectors).flat_map(sector).collect();
    fs::write(path, &all).expect("the file should be writable");
    all
}

#[test]
fn copies_and_conversions_keep_sectors() {
    let folder = Folder::new("copy");
    let source = folder.file("raw");
    let file = folder.file("btt");
    let back = folder.file("back");
    let all = raw(&source, 300, 520);
    answers(&["create", &file, "--size", "17m", "--sector-size", "520"], 0);
    answers(&["copy", &source, &file], 0);
    answers(&["check", &file], 0);
    let map = answers(&["dump-map", &file, "--count", "3"], 0);
    let lines: Vec<_> = map.lines().collect();
    assert_eq!(lines[0], "sector state block arena");
    assert!(lines[1].starts_with("0 zero 0 ") && lines[2].starts_with("1 normal "), "{map}");
    answers(&["copy", &file, &back], 0);
    let copied = contents(&back);
    assert_eq!(copied[..all.len()], all);
    assert!(copied[all.len()..].iter().all(|&byte| byte == 0));
    let room = fs::metadata(&back).expect("the copied-back file should exist").blocks() * 512;
    assert!(room < copied.len() as u64 / 4, "{room} bytes of room for {}", copied.len());

    let mut last = file;
    for container in ["labelled", "pool", "namespace"] {
        let next = folder.file(container);
        answers(&["convert", &last, &next, "--to", container], 0);
        answers(&["check", &next], 0);
        let raw = folder.file(&format!("{container}.raw"));
        answers(&["copy", &next, &raw], 0);
        let now = contents(&raw);
        assert!(now.len() >= copied.len() && now[..copied.len()] == copied, "{container}");
        last = next;
    }
    let short = folder.file("short");
    raw(&short, 1, 100);
    assert!(fails(&["copy", &short, &last], 2).contains("not a whole number of sectors of 520"));
    assert!(Path::new(&last).exists());
}

#[test]
fn copy_refuses_a_source_that_is_not_a_raw_image() {
    let folder = Folder::new("raw");
    let from = folder.file("from");
    let to = folder.file("to");
    for file in [&from, &to] {
        answers(&["create", file, "--size", "32m", "--sector-size", "4096"], 0);
    }
    let words = fails(&["copy", &from, &to], 2);
    assert!(words.contains(": it holds a BTT itself"), "{words}");
    let words = fails(&["copy", "/dev/null", &to], 2);
    assert!(words.contains(": it is empty"), "{words}");
}

#[test]
fn repair_of_a_truncated_image_does_not_meet_its_own_lock() {
    let folder = Folder::new("cut");
    let file = folder.file("image");
    answers(&["create", &file, "--size", "32m", "--sector-size", "4096"], 0);
    fs::OpenOptions::new()
        .write(true)
        .open(&file)
        .and_then(|f| f.set_len(20 << 20))
        .expect("the image should be truncated");
    let output = btt(&["repair", "--yes", &file]);
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!words.contains("somebody else"), "{words}");
    assert_eq!(output.status.code(), Some(4), "{words}");
}

/// libpmemblk lays out a pool at the first write.
#[test]
fn an_unwritten_pool_is_clean_and_reads_as_zeroes() {
    let folder = Folder::new("unlaid");
    let file = folder.file("pool");
    let raw = folder.file("raw");
    let pool = Pool { uuid: Uuid([3; 16]), sector_bytes: 512, blank: true };
    fs::write(&file, pool.to_bytes(Uuid([4; 16]), 0)).expect("the file should be writable");
    fs::OpenOptions::new()
        .write(true)
        .open(&file)
        .and_then(|f| f.set_len(20 << 20))
        .expect("the pool should be extended");
    let before = contents(&file);
    let info = answers(&["info", &file], 0);
    assert!(info.contains("sector size  512\nnot laid out yet: "), "{info}");
    for command in [&["check"][..], &["repair", "--dry-run"], &["repair", "--yes"], &["dump-map"]] {
        let said = answers(&[command, &[&file]].concat(), 0);
        assert!(said.contains(": clean: pool of libpmemblk, not laid out yet"), "{said}");
    }
    answers(&["copy", &file, &raw], 0);
    let copied = contents(&raw);
    assert!(copied.len() > 19 << 20 && copied.iter().all(|&byte| byte == 0));
    assert!(contents(&file) == before, "the image should be unchanged");
    fs::write(&raw, [5; 512]).expect("the file should be writable");
    answers(&["copy", &raw, &file], 0);
    let check = answers(&["check", &file], 0);
    assert!(
        check.starts_with(&format!("{file}: clean: pool of libpmemblk, arenas: 1, ")),
        "{check}"
    );
}

#[test]
fn a_copy_that_continues_skips_unreadable_sectors() {
    let folder = Folder::new("unreadable");
    let source = folder.file("raw");
    let file = folder.file("btt");
    let to = folder.file("to");
    let all = raw(&source, 100, 512);
    answers(&["create", &file, "--size", "17m", "--version", "2.0"], 0);
    answers(&["copy", &source, &file], 0);
    let info = answers(&["info", &file], 0);
    let map = info
        .lines()
        .find_map(|line| line.trim().strip_prefix("map "))
        .expect("the info should show the map");
    let map: u64 = map.trim().parse().expect("the map's offset should be a number");
    // One sector is marked as lost, and the blocks of ten sectors do not exist.
    put(&file, map + 40 * 4, &0x4000_0028_u32.to_le_bytes());
    (50..60).for_each(|lba: u64| put(&file, map + lba * 4, &[0xff; 4]));

    let words = fails(&["copy", "--force", &file, &to], 1);
    assert!(
        words.contains("sector 40: the sector was lost") && !Path::new(&to).exists(),
        "{words}"
    );
    let words = fails(&["copy", "--force", "--zero-lost", &file, &to], 1);
    assert!(
        words.contains(": 11 (40, 50, 51, 52, 53, 54, 55, 56, ...), which are zeroes"),
        "{words}"
    );
    let copied = contents(&to);
    for (lba, sector) in copied.chunks_exact(512).take(100).enumerate() {
        let was =
            if lba == 40 || (50..60).contains(&lba) { &[0; 512] } else { &all[lba * 512..][..512] };
        assert!(sector == was, "sector {lba}");
    }

    let next = folder.file("next");
    let words = fails(&["convert", "--force", &file, &next, "--to", "pool"], 1);
    assert!(
        words.contains(": 10 (50, 51, 52, 53, 54, 55, 56, 57, ...), which are marked"),
        "{words}"
    );
    answers(&["check", &next], 0);
    let map = answers(&["dump-map", &next, "--all", "--first", "40", "--count", "30"], 0);
    let lost = map.lines().filter(|line| line.contains(" lost ")).count();
    assert_eq!(lost, 11, "{map}");
    let again = folder.file("again");
    answers(&["convert", &next, &again, "--to", "namespace"], 0);
}

#[test]
fn the_container_can_be_given_by_an_option() {
    let folder = Folder::new("said");
    let file = folder.file("pool");
    let source = folder.file("raw");
    raw(&source, 9, 512);
    answers(&["create", &file, "--size", "17m", "--pmemblk-pool"], 0);
    // Without the pool's header, detection looks for the BTT at the wrong offset.
    put(&file, 0, &[0; 8]);
    let raw = folder.file("back");
    let next = folder.file("next");
    fails(&["copy", &source, &file], 2);
    fails(&["copy", &file, &raw], 2);
    fails(&["convert", &file, &next, "--to", "labelled"], 2);
    assert!(serve_nowhere(&file, &[]).contains("no BTT"), "{}", serve_nowhere(&file, &[]));
    let said = ["--container", "pool"];
    answers(&[&["copy", &source, &file], &said[..]].concat(), 0);
    answers(&[&["copy", &file, &raw], &said[..]].concat(), 0);
    answers(&[&["convert", &file, &next, "--to", "labelled"], &said[..]].concat(), 0);
    assert!(
        serve_nowhere(&file, &said).contains("/no/such/folder/socket"),
        "{}",
        serve_nowhere(&file, &said)
    );
    let back = contents(&raw);
    assert_eq!(back[..9 * 512], contents(&source));
}

#[test]
fn holes_are_neither_read_nor_copied() {
    let folder = Folder::new("holes");
    let file = folder.file("btt");
    let source = folder.file("source");
    let back = folder.file("back");
    answers(&["create", &file, "--size", "64g"], 0);
    // These sectors will be replaced by holes.
    raw(&source, 9, 512);
    answers(&["copy", &source, &file], 0);
    let sectors = {
        let begun = std::time::Instant::now();
        answers(&["copy", &file, &back], 0);
        assert!(begun.elapsed().as_secs() < 10, "a copy of holes: {:?}", begun.elapsed());
        fs::metadata(&back).expect("the copied-back file should exist").len() / 512
    };
    assert!(sectors > 100_000_000);
    fs::write(&source, []).expect("the file should be writable");
    fs::OpenOptions::new()
        .write(true)
        .open(&source)
        .and_then(|f| f.set_len(sectors * 512))
        .expect("the source should be extended by a hole");
    put(&source, (sectors - 1) * 512, &[7; 512]);
    let begun = std::time::Instant::now();
    answers(&["copy", &source, &file], 0);
    let next = folder.file("next");
    answers(&["convert", &file, &next, "--to", "labelled"], 0);
    answers(&["check", &next], 0);
    assert!(begun.elapsed().as_secs() < 30, "copies of holes: {:?}", begun.elapsed());
    let used = |file: &str| {
        let map = answers(&["dump-map", file], 0);
        assert!(!map.contains("initial"), "{map}");
        map.lines().filter(|line| line.contains(" normal ")).map(str::to_owned).collect::<Vec<_>>()
    };
    let last = format!("{} normal ", sectors - 1);
    for file in [&file, &next] {
        let used = used(file);
        assert!(used.len() == 1 && used[0].starts_with(&last), "{used:?}");
    }
}

/// Creates an image of 300 sectors whose map gives two sectors the same block.
fn broken(folder: &Folder) -> String {
    let file = folder.file("broken");
    let source = folder.file("source");
    raw(&source, 300, 512);
    answers(&["create", &file, "--size", "17m", "--version", "2.0"], 0);
    answers(&["copy", &source, &file], 0);
    let info = answers(&["info", &file], 0);
    let map = info
        .lines()
        .find_map(|line| line.trim().strip_prefix("map "))
        .expect("the info should show the map");
    let map: u64 = map.trim().parse().expect("the map's offset should be a number");
    let mut entry = [0; 4];
    let bytes = fs::File::open(&file).expect("the image should exist");
    bytes.read_exact_at(&mut entry, map + 4).expect("the map entry should be readable");
    put(&file, map + 8, &entry);
    assert!(answers(&["check", &file], 4).contains("broken"));
    file
}

#[test]
fn a_broken_image_is_copied_and_served_only_by_force() {
    let folder = Folder::new("refused");
    let file = broken(&folder);
    let source = folder.file("source");
    let raw = folder.file("raw");
    let next = folder.file("next");
    let before = contents(&file);
    for command in [
        &["copy", &file, &raw][..],
        &["copy", &source, &file],
        &["convert", &file, &next, "--to", "pool"],
    ] {
        let words = fails(command, 2);
        assert!(words.contains("broken, data at risk: arena 0, byte "), "{words}");
        assert!(words.contains(" sectors 1 and 2") && words.contains("--force"), "{words}");
        assert!(
            !Path::new(&raw).exists() && !Path::new(&next).exists(),
            "no partial output should remain"
        );
    }
    assert!(contents(&file) == before, "the image should be unchanged");
    for options in [&[][..], &["--sync"], &["--readonly"]] {
        let words = serve_nowhere(&file, options);
        assert!(words.contains(" sectors 1 and 2") && words.contains("--force"), "{words}");
    }
    assert!(
        serve_nowhere(&file, &["--force"]).contains("/no/such/folder/socket"),
        "{}",
        serve_nowhere(&file, &["--force"])
    );
    answers(&["copy", "--force", &file, &raw], 0);
    answers(&["convert", "--force", &file, &next, "--to", "pool"], 0);
    answers(&["check", &next], 0);
}

#[test]
fn an_image_in_use_can_be_inspected() {
    let folder = Folder::new("use");
    let file = broken(&folder);
    let source = folder.file("source");
    let good = folder.file("good");
    answers(&["create", &good, "--size", "17m", "--version", "2.0"], 0);
    answers(&["copy", &source, &good], 0);
    let info = answers(&["info", &good], 0);
    let map = answers(&["dump-map", &good], 0);
    let options = ImageOptions::default();
    let [used, _broken] = [&good, &file].map(|file| {
        let image =
            Image::identify(file.as_ref(), &options).expect("the file should hold an image");
        image.open(&options).expect("the BTT should open")
    });
    assert_eq!(answers(&["dump-map", &good], 0), map);
    let stop = AtomicBool::new(false);
    let writes = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let n = writes.fetch_add(1, Ordering::Relaxed);
                used.write(n * 7 % 300, &[n.to_le_bytes()[0]; 512])
                    .expect("the write should succeed");
            }
        });
        for command in ["info", "check", "dump-map"] {
            let output = btt(&[command, &good]);
            let words = String::from_utf8_lossy(&output.stderr);
            assert!(words.contains("good: in use and changing"), "{command}: {words}");
            assert_eq!(output.status.code(), Some(0), "{command}: {output:?}");
        }
        assert_eq!(answers(&["info", &good], 0), info);
        assert!(answers(&["check", &good], 0).contains(": clean: namespace with a label, in use"));
        stop.store(true, Ordering::Relaxed);
    });
    assert!(writes.load(Ordering::Relaxed) > 0);
    // Damage persists, and is also found while the image is in use.
    let check = answers(&["check", &file], 4);
    assert!(check.contains(" sectors 1 and 2") && check.contains(": broken: "), "{check}");
    assert!(fails(&["repair", "--yes", &good], 2).contains("another process"));
}
