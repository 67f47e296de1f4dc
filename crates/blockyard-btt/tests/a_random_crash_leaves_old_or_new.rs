//! Random arenas, designs, threads, operations, orders and crashes, all drawn from a seed. The
//! checks are in `crash_rig/judge.rs`.
//!
//! ```sh
//! cargo test -p blockyard-btt --test a_random_crash_leaves_old_or_new -- --nocapture
//! BLOCKYARD_BTT_CRASHES=100000000 \
//!     cargo test --release -p blockyard-btt --test a_random_crash_leaves_old_or_new
//! BLOCKYARD_BTT_SEED=123 cargo test -p blockyard-btt --test a_random_crash_leaves_old_or_new
//! ```

mod crash_rig;

use blockyard::prng::Prng;
use blockyard_btt::flog::SlotLayout;
use blockyard_btt::{Container, LaneChoice, Policy, ReadTracking};
use crash_rig::{Media, Mix, Omission, Omissions, Op, Shape, draw};

/// The number of different crashes in a run of this test.
const CRASHES: u64 = 100_000;
/// Sectors this far apart share a word.
const WORDS: u32 = 256;

/// Returns one of a few sectors, so that threads collide, or one that shares a word with these, or
/// any sector.
fn sector(prng: &mut Prng, shape: Shape) -> u64 {
    let hot = prng.below(4);
    match prng.below(8) {
        0 => prng.below(shape.all_sectors()),
        // The border of two arenas.
        1 if shape.arenas > 1 => u64::from(shape.sectors) - 2 + hot,
        2 if shape.all_sectors() > u64::from(WORDS) + 4 => hot + u64::from(WORDS),
        _ => hot,
    }
}

fn op(prng: &mut Prng, shape: Shape) -> Op {
    let lba = sector(prng, shape);
    let count = 1 + prng.below((shape.all_sectors() - lba).min(12));
    match prng.below(12) {
        0 => Op::Zero(lba, count),
        1 => Op::Error(lba),
        2 => Op::Read(lba),
        3 => Op::Anew,
        4 => Op::WriteRun(lba, count),
        5 => Op::WriteTwo(lba, sector(prng, shape)),
        _ => Op::Write(lba),
    }
}

/// Runs what a seed draws, with omissions. Returns the number of crashes, or the failure.
fn run(seed: u64, omissions: Omissions) -> Result<u64, String> {
    let mut prng = Prng::new(seed);
    let sectors = if prng.below(8) == 0 { 257 + prng.below(16) } else { 5 + prng.below(60) };
    let shape = Shape {
        arenas: prng.pick(&[1, 1, 1, 2]),
        container: prng.pick(&Container::ALL),
        slots: prng.pick(&[SlotLayout::Standard, SlotLayout::Standard, SlotLayout::OldLinux]),
        // A loss that the medium does not report is known only to a reader.
        media: prng.pick(&[Media::Sound, Media::Sound, Media::Refuses]),
        ..Shape::new(u32::try_from(sectors).expect("a few hundred"), prng.pick(&[2, 3, 4, 8, 16]))
    };
    let tracking = prng.pick(&[
        ReadTracking::Versions,
        ReadTracking::Versions,
        ReadTracking::Indexed,
        ReadTracking::Scan,
        ReadTracking::ScanPadded,
    ]);
    let lanes = prng.pick(&[
        LaneChoice::Own { sets: 2 },
        LaneChoice::Own { sets: 4 },
        LaneChoice::Own { sets: 16 },
        LaneChoice::PerCpu { cpus: 3 },
        LaneChoice::Mutex,
        LaneChoice::Counter,
    ]);
    let threads = 1 + prng.below(4);
    let scripts: Vec<Vec<Op>> = (0..threads)
        .map(|_| (0..4 + prng.below(16)).map(|_| op(&mut prng, shape)).collect())
        .collect();
    let scripts: Vec<&[Op]> = scripts.iter().map(|ops| &ops[..]).collect();
    let policy = Policy { tracking, lanes };
    let mix = Mix { shape, policy, scripts: &scripts, preemptions: u32::MAX };
    let explored = draw(&mix, omissions, &prng);
    match explored.broken {
        None => Ok(explored.counts.states),
        Some(broken) => Err(format!(
            "BLOCKYARD_BTT_SEED={seed} cargo test -p blockyard-btt --test a_random_crash_leaves_old_or_new\n\
             {mix:?}\n{broken}"
        )),
    }
}

/// The same without omissions.
fn sound(seed: u64) -> u64 {
    run(seed, Omissions::default()).unwrap_or_else(|broken| panic!("{broken}"))
}

fn number(name: &str) -> Option<u64> {
    let given = std::env::var(name).ok()?;
    Some(given.parse().unwrap_or_else(|_| panic!("{name}={given} is not a number")))
}

#[test]
fn a_random_crash_leaves_old_or_new() {
    if let Some(seed) = number("BLOCKYARD_BTT_SEED") {
        println!("seed {seed}: {} crashes", sound(seed));
        return;
    }
    let wanted = number("BLOCKYARD_BTT_CRASHES").unwrap_or(CRASHES);
    std::thread::scope(|scope| {
        let odd = scope.spawn(|| play_every_other(wanted, 1));
        let crashes = play_every_other(wanted, 0) + odd.join().expect("success of all odd seeds");
        assert!(crashes >= wanted / 2 * 2);
    });
}

fn play_every_other(wanted: u64, first: u64) -> u64 {
    let mut crashes = 0;
    let mut seed = first;
    while crashes < wanted / 2 {
        crashes += sound(seed);
        seed += 2;
    }
    println!("{crashes} crashes from every other seed of {first}..={}", seed - 2);
    crashes
}

/// A few seeds detect each omission.
#[test]
fn each_omission_is_detected() {
    for omission in [
        Omission::Data,
        Omission::FenceBehindFirstWords,
        Omission::FenceBehindSecondWords,
        Omission::FenceBehindEntries,
        Omission::FirstWords,
        Omission::SecondWords,
        Omission::OwnEntries,
        Omission::ForeignEntries,
    ] {
        let omissions = Omissions { running: Some(omission), opening: None };
        let detected = (0..200).find(|&seed| run(seed, omissions).is_err());
        println!("{omission:?}: detected by seed {detected:?}");
        assert!(detected.is_some(), "{omission:?} was not detected");
    }
}
