//! As many threads as a machine has processors have lanes to themselves, by the default for that machine; who comes
//! beside them shares, and writes as well.
#![allow(clippy::cast_possible_truncation, reason = "bytes that tell sectors apart")]

mod btt_told;

use blockyard_btt::ram::Ram;
use blockyard_btt::{
    Btt, Container, Format, LaneChoice, Memory, OpenOptions, Policy, Touch, Uuid, Word,
};
use btt_told::{Call, Told};
use core::sync::atomic::{AtomicU32, Ordering};

const SECTOR: usize = 512;
const LANES: u32 = 256;
/// Three quarters of the sets there can be without one that has a single lane.
const MOST_OWN: u32 = 96;

const CONTAINER: Container = Container::LabelledNamespace;

fn formatted() -> Ram {
    let format = Format {
        container: CONTAINER,
        sector_bytes: SECTOR as u32,
        uuid: Uuid([1; 16]),
        parent_uuid: Uuid::NIL,
        blank: true,
    };
    let ram = Ram::new(16 << 20);
    format.write(&ram).expect("it can be made");
    ram
}

fn open<M: Memory>(memory: M, policy: Policy) -> Btt<M> {
    Btt::open(memory, &OpenOptions { policy, ..OpenOptions::new(CONTAINER) }).expect("it was made")
}

fn sets(lanes: LaneChoice) -> u32 {
    match lanes {
        LaneChoice::Own { sets } => sets,
        other => panic!("lanes are the threads' own, not {other:?}"),
    }
}

/// Fences, and sets taken as locks, for one write each by `threads` workers that are there at once.
fn writes(ram: &Ram, policy: Policy, threads: u32) -> (u32, u32) {
    let [fences, locked] = [const { AtomicU32::new(0) }; 2];
    let told = |call| {
        match call {
            Call::Fence => fences.fetch_add(1, Ordering::Relaxed),
            Call::Touched(Touch::Locked(Word::Lanes(_))) => locked.fetch_add(1, Ordering::Relaxed),
            _ => 0,
        };
        Ok(())
    };
    let btt = open(Told { memory: ram, told }, policy);
    let mut workers: Vec<_> = (0..threads).map(|_| btt.worker()).collect();
    let before = fences.load(Ordering::Relaxed);
    for (lba, worker) in (0..).zip(&mut workers) {
        worker.write(lba, &[lba as u8; SECTOR]).expect("it is written");
    }
    (fences.load(Ordering::Relaxed) - before, locked.load(Ordering::Relaxed))
}

#[test]
fn each_thread_of_a_machine_has_lanes_to_itself() {
    let ram = formatted();
    for cpus in 1..=MOST_OWN {
        let (fences, locked) = writes(&ram, Policy::for_threads(cpus), cpus);
        assert_eq!((fences, locked), (2 * cpus, 0), "{cpus} processors");
    }
    // More of them than there can be sets: those beyond take turns, and fence before they hand a set on.
    for cpus in [MOST_OWN + 1, 144, 1000] {
        let (fences, locked) = writes(&ram, Policy::for_threads(cpus), cpus);
        let late = cpus - MOST_OWN;
        assert_eq!((fences, locked), (2 * cpus + late, late), "{cpus} processors");
    }
}

#[test]
fn sets_are_a_power_of_two_and_have_lanes_to_use_in_turn() {
    let mut before = 0;
    for cpus in 0..=300 {
        let sets = sets(LaneChoice::for_threads(cpus));
        assert!(sets.is_power_of_two() && LANES / sets >= 2, "{cpus} processors: {sets} sets");
        assert!(sets >= 16, "{cpus} processors: {sets} sets");
        assert!(sets >= before, "more processors, fewer sets: {cpus}");
        // Half as many would not do: threads share no more lanes than they must, and have as many as they can.
        assert!(sets == 16 || sets / 2 * 3 / 4 < cpus, "{cpus} processors: {sets} sets");
        before = sets;
    }
    assert_eq!(Policy::default(), Policy::for_threads(1));
    assert_eq!(sets(LaneChoice::for_threads(u32::MAX)), 128);
}

/// Where fences are dear: as few sets as there can be, and a set less would not do.
#[test]
fn few_sets_are_just_enough() {
    let ram = formatted();
    for threads in 1..=192 {
        let lanes = LaneChoice::few_for_threads(threads);
        let (_, locked) = writes(&ram, Policy { lanes, ..Policy::DEFAULT }, threads);
        assert_eq!(locked, 0, "{threads} threads");
        let fewer = LaneChoice::Own { sets: sets(lanes) - 1 };
        let (_, locked) = writes(&ram, Policy { lanes: fewer, ..Policy::DEFAULT }, threads);
        assert!(locked > 0, "{threads} threads");
    }
    assert_eq!(sets(LaneChoice::few_for_threads(u32::MAX)), LANES);
}

/// Three times as many threads as processors write at once, each its own sectors and one that all want.
#[test]
fn more_threads_than_processors_write_what_they_are_told() {
    const ROUNDS: u64 = 50;
    for (cpus, threads) in [(1, 40), (4, 12), (32, 96)] {
        let ram = formatted();
        let btt = open(&ram, Policy::for_threads(cpus));
        let ends = |bytes: &[u8; SECTOR]| bytes.iter().all(|&byte| byte == bytes[0]);
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let btt = &btt;
                scope.spawn(move || {
                    let mut worker = btt.worker();
                    for round in 0..ROUNDS {
                        let bytes = [thread as u8 ^ round as u8; SECTOR];
                        worker.write(1 + thread * ROUNDS + round, &bytes).expect("it is written");
                        worker.write(0, &bytes).expect("it is written");
                    }
                });
            }
        });
        let mut found = [0; SECTOR];
        btt.read(0, &mut found).expect("it is read");
        assert!(ends(&found), "{cpus} processors: the sector that all wrote is one of them");
        for (thread, round) in (0..threads).flat_map(|t| (0..ROUNDS).map(move |r| (t, r))) {
            btt.read(1 + thread * ROUNDS + round, &mut found).expect("it is read");
            assert_eq!(found, [thread as u8 ^ round as u8; SECTOR], "{cpus}: {thread}, {round}");
        }
    }
}
