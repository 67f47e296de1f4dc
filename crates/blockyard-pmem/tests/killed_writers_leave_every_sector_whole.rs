//! Processes that are killed in the middle of writing, by four threads each, to a file that is mapped or reached
//! by calls: what is there after is whole, and as new as what was acknowledged at least.
//!
//! A sector says its number, the generation of its write, and a checksum over both and what fills it. A
//! thread notes the generation it had acknowledged in another file. What the page cache has, a killed process
//! cannot take back.

use blockyard::prng::Prng;
use blockyard_btt::{Btt, Container, check};
use blockyard_pmem::{Durability, Image, ImageMemory, ImageOptions, NewImage};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const THREADS: u64 = 4;
/// Sectors of a thread: few, so that blocks come and go. Those of several threads share words.
const SECTORS: u64 = 80;
/// Sectors that are written at once, at most.
const TOGETHER: u64 = 12;
const BYTES: usize = 520;
const ROUNDS: u64 = 24;
/// One test at a time: a process that one of them starts has, for a moment, all files that are open here, and
/// their locks.
static ALONE: Mutex<()> = Mutex::new(());
/// What a process is told that is to be killed.
const INSIDE: &str = "BLOCKYARD_KILLED_WRITER";

/// The sector of a thread, so that neighbours are of others.
const fn lba(thread: u64, nth: u64) -> u64 {
    nth * THREADS + thread
}

fn checksum(bytes: &[u8]) -> u64 {
    let mix = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

fn sector(lba: u64, generation: u64) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    let mut dice = Prng::new(lba << 40 | generation);
    bytes[16..]
        .chunks_exact_mut(8)
        .for_each(|word| word.copy_from_slice(&dice.next().to_le_bytes()));
    bytes[..8].copy_from_slice(&lba.to_le_bytes());
    bytes[8..16].copy_from_slice(&generation.to_le_bytes());
    let sum = checksum(&bytes[..BYTES - 8]);
    bytes[BYTES - 8..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// The generation that a sector has; 0 if it was never written.
fn generation(lba: u64, bytes: &[u8; BYTES]) -> u64 {
    if bytes == &[0; BYTES] {
        return 0;
    }
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
    assert_eq!(checksum(&bytes[..BYTES - 8]), word(BYTES - 8), "sector {lba} is a mix");
    assert_eq!(word(0), lba, "sector {lba} is another one's");
    word(8)
}

/// What was acknowledged, by sector.
struct Acknowledged(File);

impl Acknowledged {
    fn open(path: &Path) -> Self {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        Self(file.expect("there is room"))
    }

    fn note(&self, lba: u64, generation: u64) {
        self.0.write_all_at(&generation.to_le_bytes(), lba * 8).expect("there is room");
    }

    /// A number that is cut in the middle would be of no write: it is written in one call, to one page.
    fn of(&self, lba: u64) -> u64 {
        let mut bytes = [0; 8];
        match self.0.read_at(&mut bytes, lba * 8).expect("it is read") {
            8 => u64::from_le_bytes(bytes),
            _ => 0,
        }
    }
}

fn open(path: &Path, durability: Durability) -> Btt<ImageMemory> {
    let options = ImageOptions { durability, ..ImageOptions::default() };
    let image = Image::identify(path, &options).expect("it is a BTT");
    image.open(&options).expect("whatever was cut is finished")
}

/// Writes until it is killed.
fn write_on(path: &Path, durability: Durability, first_generation: u64) -> ! {
    let btt = &open(path, durability);
    let acknowledged = &Acknowledged::open(&path.with_extension("acknowledged"));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                let mut worker = btt.worker();
                let mut dice = Prng::new(first_generation).fork(thread);
                for generation in first_generation.. {
                    let count = 1 + dice.below(TOGETHER);
                    let first = dice.below(SECTORS);
                    let lbas = (0..count).map(|nth| lba(thread, (first + nth) % SECTORS));
                    let lbas: Vec<_> = lbas.collect();
                    let sectors: Vec<_> = lbas.iter().map(|lba| sector(*lba, generation)).collect();
                    let all = lbas.iter().zip(&sectors).map(|(lba, bytes)| (*lba, &bytes[..]));
                    worker.write_many(&all.collect::<Vec<_>>()).expect("it is written");
                    lbas.iter().for_each(|lba| acknowledged.note(*lba, generation));
                }
            });
        }
    });
    unreachable!("it goes on for ever")
}

fn kill_again_and_again(durability: Durability, name: &str) {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let acknowledged_path = path.with_extension("acknowledged");
    for old in [&path, &acknowledged_path] {
        let _ = std::fs::remove_file(old);
    }
    let container = Container::Namespace;
    let new = NewImage { bytes: 17 << 20, sector_bytes: 520, container };
    drop(Image::create(&path, &new, &ImageOptions::default()).expect("there is room"));
    let acknowledged = Acknowledged::open(&acknowledged_path);
    let mut dice = Prng::new(7);
    let mut newest = 0;
    for round in 0..ROUNDS {
        let mut writer = Command::new(std::env::current_exe().expect("this runs"))
            .args(["--exact", "--nocapture", test_of(durability)])
            .env(INSIDE, format!("{} {}", newest + 1, path.display()))
            .stdout(Stdio::null())
            .spawn()
            .expect("it starts");
        // From before it has the file open to the middle of much work.
        let before = (0..THREADS * SECTORS).map(|lba| acknowledged.of(lba)).sum::<u64>();
        if round % 4 > 0 {
            while (0..THREADS * SECTORS).map(|lba| acknowledged.of(lba)).sum::<u64>() == before {
                assert!(writer.try_wait().expect("it is ours").is_none(), "it goes on for ever");
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        std::thread::sleep(Duration::from_micros(dice.below(30_000)));
        writer.kill().expect("it is ours");
        let ended = writer.wait().expect("it is ours");
        assert_eq!(ended.code(), None, "it ended by itself: {ended}");
        let least: Vec<_> = (0..THREADS * SECTORS).map(|lba| acknowledged.of(lba)).collect();
        look(&path, durability, &least);
        newest = newest.max(generations(&path, durability, &least));
    }
    let all = (0..THREADS * SECTORS).filter(|lba| acknowledged.of(*lba) > 0).count();
    assert!(all > 200, "{all} sectors were written, and generation {newest} was the last");
    println!("{durability:?}: {ROUNDS} writers killed, {newest} generations");
}

/// The image is in order as it was left, before anybody finishes anything.
fn look(path: &Path, durability: Durability, least: &[u64]) {
    let options = ImageOptions { read_only: true, durability, ..ImageOptions::default() };
    let image = Image::identify(path, &options).expect("it is a BTT");
    let wanted = check::Options::new(image.container);
    let (report, _) = check::check(&image.memory, &wanted, &mut |_| ()).expect("it is read");
    assert!(report.is_clean(), "{:?}", report.findings());
    // As it reads where nothing may be finished.
    let btt = image.open(&options).expect("it is whole");
    newest_of(&btt, least);
}

/// The newest generation, once what was cut is finished.
fn generations(path: &Path, durability: Durability, least: &[u64]) -> u64 {
    newest_of(&open(path, durability), least)
}

fn newest_of(btt: &Btt<ImageMemory>, least: &[u64]) -> u64 {
    let mut newest = 0;
    let mut bytes = [0; BYTES];
    for (lba, least) in (0..).zip(least) {
        btt.read(lba, &mut bytes).expect("it is read");
        let found = generation(lba, &bytes);
        assert!(found >= *least, "sector {lba}: {found}, and {least} was acknowledged");
        newest = newest.max(found);
    }
    newest
}

const fn test_of(durability: Durability) -> &'static str {
    match durability {
        Durability::Process => "of_a_mapped_file",
        Durability::Calls => "of_a_file_by_calls",
        Durability::Disk => "of_a_file_that_is_synchronised",
        Durability::Memory => "of_memory_written_back_by_lines",
    }
}

fn run(durability: Durability) {
    match std::env::var(INSIDE) {
        Ok(told) => {
            let (generation, path) = told.split_once(' ').expect("a generation and a path");
            let generation = generation.parse().expect("a generation");
            write_on(Path::new(path), durability, generation);
        }
        Err(_) => {
            let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
            kill_again_and_again(durability, test_of(durability));
        }
    }
}

#[test]
fn of_a_mapped_file() {
    run(Durability::Process);
}

#[test]
fn of_memory_written_back_by_lines() {
    run(Durability::Memory);
}

#[test]
fn of_a_file_by_calls() {
    run(Durability::Calls);
}

#[test]
fn of_a_file_that_is_synchronised() {
    run(Durability::Disk);
}
