//! With the default design for a machine, as many threads as it has processors get lanes to
//! themselves. Further threads share lanes, and can write too.
#![allow(clippy::cast_possible_truncation, reason = "bytes that distinguish sectors")]

mod intercepted_memory;

use blockyard_btt::ram::Ram;
use blockyard_btt::{
    Btt, Container, Format, LaneChoice, Memory, OpenOptions, Policy, Touch, Uuid, Word,
};
use core::sync::atomic::{AtomicU32, Ordering};
use intercepted_memory::{Call, Intercepted};

const SECTOR: usize = 512;
const LANES: u32 = 256;
/// Three quarters of the largest number of sets that each have more than one lane.
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
    format.write(&ram).expect("formatting of ram");
    ram
}

fn open<M: Memory>(memory: M, policy: Policy) -> Btt<M> {
    Btt::open(memory, &OpenOptions { policy, ..OpenOptions::new(CONTAINER) })
        .expect("BTT that was just formatted")
}

fn sets(lanes: LaneChoice) -> u32 {
    match lanes {
        LaneChoice::Own { sets } => sets,
        other => panic!("threads have sets of their own, not {other:?}"),
    }
}

/// Counts the fences, and the sets taken as locks, for one write by each of `threads` workers.
fn writes(ram: &Ram, policy: Policy, threads: u32) -> (u32, u32) {
    let [fences, locked] = [const { AtomicU32::new(0) }; 2];
    let btt = open(
        Intercepted {
            memory: ram,
            intercept: |call| {
                match call {
                    Call::Fence => fences.fetch_add(1, Ordering::Relaxed),
                    Call::Touched(Touch::Locked(Word::Lanes(_))) => {
                        locked.fetch_add(1, Ordering::Relaxed)
                    }
                    _ => 0,
                };
                Ok(())
            },
        },
        policy,
    );
    let mut workers: Vec<_> = (0..threads).map(|_| btt.worker()).collect();
    let before = fences.load(Ordering::Relaxed);
    for (lba, worker) in (0..).zip(&mut workers) {
        worker.write(lba, &[lba as u8; SECTOR]).expect("write to ram");
    }
    (fences.load(Ordering::Relaxed) - before, locked.load(Ordering::Relaxed))
}

/// [lane-set-one-user].
#[test]
fn each_thread_of_a_machine_has_lanes_to_itself() {
    let ram = formatted();
    for cpus in 1..=MOST_OWN {
        let (fences, locked) = writes(&ram, Policy::for_threads(cpus), cpus);
        assert_eq!((fences, locked), (2 * cpus, 0), "{cpus} processors");
    }
    // More processors than sets: the other threads share, and fence before they hand a set over
    // ([handed-over-set-durable]).
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
        // Half as many sets would be too few: threads share only if they must, and sets are as
        // large as possible.
        assert!(sets == 16 || sets / 2 * 3 / 4 < cpus, "{cpus} processors: {sets} sets");
        before = sets;
    }
    assert_eq!(Policy::default(), Policy::for_threads(1));
    assert_eq!(sets(LaneChoice::for_threads(u32::MAX)), 128);
}

/// For expensive fences: the number of sets is minimal.
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

/// Several times as many threads as processors write at once, each its own sectors and one common
/// sector.
#[test]
fn more_threads_than_processors_write_correctly() {
    const ROUNDS: u64 = 50;
    for (cpus, threads) in [(1, 40), (4, 12), (32, 96)] {
        let ram = formatted();
        let btt = open(&ram, Policy::for_threads(cpus));
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let btt = &btt;
                scope.spawn(move || {
                    let mut worker = btt.worker();
                    for round in 0..ROUNDS {
                        let bytes = [thread as u8 ^ round as u8; SECTOR];
                        worker.write(1 + thread * ROUNDS + round, &bytes).expect("write to ram");
                        worker.write(0, &bytes).expect("write to ram");
                    }
                });
            }
        });
        let mut found = [0; SECTOR];
        btt.read(0, &mut found).expect("read from ram");
        assert!(
            found.iter().all(|&byte| byte == found[0]),
            "{cpus} processors: the common sector is one of the writes"
        );
        for (thread, round) in (0..threads).flat_map(|t| (0..ROUNDS).map(move |r| (t, r))) {
            btt.read(1 + thread * ROUNDS + round, &mut found).expect("read from ram");
            assert_eq!(found, [thread as u8 ^ round as u8; SECTOR], "{cpus}: {thread}, {round}");
        }
    }
}
