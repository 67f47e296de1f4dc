//! Processes are killed while four threads of each write to a file that is mapped or accessed by
//! system calls. Afterwards every sector is whole, and at least as new as its last acknowledged
//! write.
//!
//! A sector contains its number, the generation of its write, filler, and a checksum over all of
//! these. Threads record acknowledged generations in another file. A killed process cannot take
//! back what the page cache has.

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
/// Sectors of a thread: few, so that blocks are freed and used again. Sectors of different threads
/// share words.
const SECTORS: u64 = 80;
/// The most sectors that are written together.
const TOGETHER: u64 = 12;
const BYTES: usize = 520;
const ROUNDS: u64 = 24;
/// Serialises the tests: a process that one of them starts briefly inherits all open files, and
/// their locks.
static ALONE: Mutex<()> = Mutex::new(());
/// Tells a process what to write until it is killed.
const INSIDE: &str = "BLOCKYARD_KILLED_WRITER";

/// Returns a sector of a thread. Its neighbours belong to other threads.
const fn lba(thread: u64, nth: u64) -> u64 {
    nth * THREADS + thread
}

fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum: u64, byte: &u8| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
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

/// Returns the generation of a sector, or 0 if it was never written.
fn generation(lba: u64, bytes: &[u8; BYTES]) -> u64 {
    if bytes == &[0; BYTES] {
        return 0;
    }
    assert_eq!(
        checksum(&bytes[..BYTES - 8]),
        word(bytes, BYTES - 8),
        "sector {lba} mixes two writes"
    );
    assert_eq!(word(bytes, 0), lba, "sector {lba} has the data of another sector");
    word(bytes, 8)
}

fn word(bytes: &[u8; BYTES], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// The acknowledged generation of each sector.
struct Acknowledged(File);

impl Acknowledged {
    fn open(path: &Path) -> Self {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        Self(file.expect("space on the test disk"))
    }

    fn note(&self, lba: u64, generation: u64) {
        self.0.write_all_at(&generation.to_le_bytes(), lba * 8).expect("space on the test disk");
    }

    /// A number is written whole, by one call to one page.
    fn of(&self, lba: u64) -> u64 {
        let mut bytes = [0; 8];
        match self.0.read_at(&mut bytes, lba * 8).expect("successful read") {
            8 => u64::from_le_bytes(bytes),
            _ => 0,
        }
    }
}

fn open(path: &Path, durability: Durability) -> Btt<ImageMemory> {
    let options = ImageOptions { durability, ..ImageOptions::default() };
    let image = Image::identify(path, &options).expect("file with a BTT");
    image.open(&options).expect("BTT whose cut writes can be finished")
}

/// Writes until the process is killed.
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
                    worker.write_many(&all.collect::<Vec<_>>()).expect("successful write");
                    lbas.iter().for_each(|lba| acknowledged.note(*lba, generation));
                }
            });
        }
    });
    unreachable!("the threads write forever")
}

fn kill_again_and_again(durability: Durability, name: &str) {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let acknowledged_path = path.with_extension("acknowledged");
    for old in [&path, &acknowledged_path] {
        let _ = std::fs::remove_file(old);
    }
    let container = Container::Namespace;
    let new = NewImage { bytes: 17 << 20, sector_bytes: 520, container };
    drop(Image::create(&path, &new, &ImageOptions::default()).expect("space on the test disk"));
    let acknowledged = Acknowledged::open(&acknowledged_path);
    let mut dice = Prng::new(7);
    let mut newest = 0;
    for round in 0..ROUNDS {
        let mut writer = Command::new(std::env::current_exe().expect("path of this test"))
            .args(["--exact", "--nocapture", test_of(durability)])
            .env(INSIDE, format!("{} {}", newest + 1, path.display()))
            .stdout(Stdio::null())
            .spawn()
            .expect("a writer that starts");
        // The kill comes at any time from before the file is open to the middle of many writes.
        let before = (0..THREADS * SECTORS).map(|lba| acknowledged.of(lba)).sum::<u64>();
        if round % 4 > 0 {
            while (0..THREADS * SECTORS).map(|lba| acknowledged.of(lba)).sum::<u64>() == before {
                assert!(writer.try_wait().expect("a child").is_none(), "the writer ended early");
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        std::thread::sleep(Duration::from_micros(dice.below(30_000)));
        writer.kill().expect("a child");
        let ended = writer.wait().expect("a child");
        assert_eq!(ended.code(), None, "the writer was not killed: {ended}");
        let least: Vec<_> = (0..THREADS * SECTORS).map(|lba| acknowledged.of(lba)).collect();
        look(&path, durability, &least);
        newest = newest.max(generations(&path, durability, &least));
    }
    let all = (0..THREADS * SECTORS).filter(|lba| acknowledged.of(*lba) > 0).count();
    assert!(all > 200, "only {all} sectors were written, up to generation {newest}");
    println!("{durability:?}: {ROUNDS} writers killed, {newest} generations");
}

/// Checks the image before any cut write is finished.
fn look(path: &Path, durability: Durability, least: &[u64]) {
    let options = ImageOptions { read_only: true, durability, ..ImageOptions::default() };
    let image = Image::identify(path, &options).expect("file with a BTT");
    let wanted = check::Options::new(image.container);
    let (report, _) = check::check(&image.memory, &wanted, &mut |_| ()).expect("successful read");
    assert!(report.is_clean(), "{:?}", report.findings());
    // Read-only, cut writes read as finished.
    let btt = image.open(&options).expect("an undamaged BTT");
    newest_of(&btt, least);
}

/// Returns the newest generation after cut writes were finished.
fn generations(path: &Path, durability: Durability, least: &[u64]) -> u64 {
    newest_of(&open(path, durability), least)
}

fn newest_of(btt: &Btt<ImageMemory>, least: &[u64]) -> u64 {
    let mut newest = 0;
    let mut bytes = [0; BYTES];
    for (lba, least) in (0..).zip(least) {
        btt.read(lba, &mut bytes).expect("successful read");
        let found = generation(lba, &bytes);
        assert!(
            found >= *least,
            "sector {lba} has generation {found}, but {least} was acknowledged"
        );
        newest = newest.max(found);
    }
    newest
}

const fn test_of(durability: Durability) -> &'static str {
    match durability {
        Durability::Process => "killed_writers_to_a_mapped_file",
        Durability::Calls => "killed_writers_to_a_file_by_calls",
        Durability::Disk => "killed_writers_to_a_synchronised_file",
        Durability::Memory => "killed_writers_to_memory_with_cache_line_write_back",
        Durability::Discarded => panic!("nothing survives the writer"),
    }
}

fn run(durability: Durability) {
    match std::env::var(INSIDE) {
        Ok(task) => {
            let (generation, path) = task.split_once(' ').expect("a generation and a path");
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
fn killed_writers_to_a_mapped_file() {
    run(Durability::Process);
}

#[test]
fn killed_writers_to_memory_with_cache_line_write_back() {
    run(Durability::Memory);
}

#[test]
fn killed_writers_to_a_file_by_calls() {
    run(Durability::Calls);
}

#[test]
fn killed_writers_to_a_synchronised_file() {
    run(Durability::Disk);
}
