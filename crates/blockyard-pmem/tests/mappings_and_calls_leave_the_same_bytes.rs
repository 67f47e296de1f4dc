//! The same operations on a mapped file and on one that is accessed by system calls have the same
//! results and leave the same bytes. The mapping checks the calls.

use blockyard::prng::Prng;
use blockyard_btt::{Btt, Container, IoError, Memory, Worker};
use blockyard_pmem::{Copying, Durability, Image, ImageMemory, ImageOptions, NewImage};
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

const WAYS: [Durability; 4] =
    [Durability::Process, Durability::Memory, Durability::Calls, Durability::Disk];

fn file(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_file(&path);
    path
}

fn memory(path: &Path, durability: Durability) -> ImageMemory {
    let file = OpenOptions::new().read(true).write(true).open(path).expect("existing file");
    ImageMemory::new(file, true, durability, Copying::NonTemporal).expect("file that nobody locks")
}

#[test]
fn every_call_of_a_memory_has_the_same_result() {
    const LEN: u64 = 1 << 18;
    let paths = WAYS.map(|way| file(&format!("calls-{way:?}")));
    for path in &paths {
        File::create(path).and_then(|file| file.set_len(LEN)).expect("space on the test disk");
    }
    let memories: Vec<_> = paths.iter().zip(WAYS).map(|(path, way)| memory(path, way)).collect();
    let mut dice = Prng::new(6);
    for turn in 0..20_000_u32 {
        let call = dice.below(7);
        let word = dice.next();
        let at = dice.below(LEN);
        let len = dice.below(9000);
        let len = len.min(LEN - at);
        let results = memories.iter().map(|memory| {
            let mut bytes = vec![0; usize::try_from(len).expect("a small length")];
            match call {
                0 => memory.read(at, &mut bytes).map(|()| bytes),
                1 => {
                    bytes.fill(word.to_le_bytes()[0]);
                    memory.write(at, &bytes).map(|()| Vec::new())
                }
                2 => memory.zero(at, len * 20 % (LEN - at + 1)).map(|()| Vec::new()),
                3 => memory.load(at & !3).map(|word| word.to_le_bytes().to_vec()),
                4 => memory.store(at & !3, (word >> 32) as u32).map(|()| Vec::new()),
                5 => memory.store_long(at & !7, word).map(|()| Vec::new()),
                // Rarely, because a fence waits for the disk.
                _ if turn % 64 == 0 => memory.fence().map(|()| Vec::new()),
                _ => Ok(Vec::new()),
            }
        });
        let results: Vec<_> = results.collect();
        assert!(results.iter().all(|one| *one == results[0] && one.is_ok()), "{call} at {at}");
    }
    drop(memories);
    let [first, others @ ..] = paths.map(|path| std::fs::read(path).expect("existing file"));
    assert!(others.iter().all(|bytes| *bytes == first));
}

/// [words-are-atomic].
#[test]
fn a_store_of_a_word_keeps_its_neighbours() {
    let path = file("neighbours");
    File::create(&path).and_then(|file| file.set_len(4096)).expect("space on the test disk");
    let memory = &memory(&path, Durability::Calls);
    std::thread::scope(|scope| {
        for nth in 0..4 {
            scope.spawn(move || {
                let at = nth * 4;
                for value in 0..20_000 {
                    memory.store(at, value).expect("successful store");
                    assert_eq!(memory.load(at), Ok(value), "word {nth}");
                }
            });
        }
    });
}

/// The result of an operation, and the bytes it read.
type Outcome = (Result<(), IoError>, Vec<u8>);

fn operate(
    worker: &mut Worker<&Btt<ImageMemory>, ImageMemory>,
    mut dice: Prng,
    sectors: u64,
) -> Outcome {
    let btt = *worker.btt();
    let bytes = btt.sector_bytes() as usize;
    let call = dice.below(8);
    let lba = dice.below(sectors);
    let count = dice.below(20) + 1;
    let len = bytes * usize::try_from(count).expect("a small length");
    let mut run = vec![dice.next().to_le_bytes()[0]; len];
    let done = match call {
        0 | 1 => worker.write(lba, &run),
        2 | 3 => {
            let lbas: Vec<_> = (0..count).map(|_| dice.below(sectors)).collect();
            let many: Vec<_> = lbas.into_iter().zip(run.chunks_exact(bytes)).collect();
            worker.write_many(&many)
        }
        4 => worker.set_zero(lba, count),
        5 => btt.set_error(lba),
        6 => btt.write(lba, &run[..bytes]),
        _ => worker.read(lba, &mut run),
    };
    (done, run)
}

#[test]
fn a_btt_has_the_same_bytes_at_the_end() {
    for (turn, container) in Container::ALL.into_iter().enumerate() {
        let paths = WAYS.map(|way| file(&format!("alike-{turn}-{way:?}")));
        let new = NewImage { bytes: 17 << 20, sector_bytes: 520, container };
        drop(
            Image::create(&paths[0], &new, &ImageOptions::default())
                .expect("space on the test disk"),
        );
        for path in &paths[1..] {
            std::fs::copy(&paths[0], path).expect("space on the test disk");
        }
        // The BTT is opened several times, because writes depend on what recovery finds.
        for life in 0..3 {
            let btts = [0, 1, 2, 3].map(|n| {
                let options = ImageOptions { durability: WAYS[n], ..ImageOptions::default() };
                let image = Image::identify(&paths[n], &options).expect("file with a BTT");
                image.open(&options).expect("an undamaged BTT")
            });
            let mut workers = btts.each_ref().map(Btt::worker);
            let dice = Prng::new(turn as u64).fork(life);
            for step in 0..150 {
                let all = workers.each_mut().map(|one| operate(one, dice.fork(step), 1000));
                assert!(all.iter().all(|one| *one == all[0]), "step {step}: {:?}", all[0].0);
            }
        }
        let [first, others @ ..] = paths.map(|path| std::fs::read(path).expect("existing file"));
        assert!(others.iter().all(|bytes| *bytes == first), "{container:?}");
    }
}
