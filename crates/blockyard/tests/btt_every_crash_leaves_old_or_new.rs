//! Small arenas, up to four threads: every order of their steps within bounds, and at each step every state
//! that a crash may leave. What must hold is in `btt_rig/judge.rs`, what the bounds are in
//! `btt_rig/run.rs`.
//!
//! ```sh
//! cargo test -p blockyard --test btt_every_crash_leaves_old_or_new -- --nocapture
//! BLOCKYARD_BTT_PREEMPTIONS=4 cargo test --release -p blockyard --test btt_every_crash_leaves_old_or_new
//! ```
//!
//! prints what was visited, and has so many preemptions in each run, instead of what each test says.

mod btt_rig;

use blockyard::btt::{LaneChoice, Policy, ReadTracking};
use btt_rig::{Mix, Omissions, Op, Shape, explore};

/// Two lanes: one for the first thread to itself, and one that all others share.
const TWO: Shape = Shape { sectors: 4, lanes: 2 };
/// Four lanes: three threads have one to themselves.
const FOUR: Shape = Shape { sectors: 4, lanes: 4 };

const fn own(sets: u32) -> Policy {
    Policy { tracking: ReadTracking::Versions, lanes: LaneChoice::Own { sets } }
}

const INDEXED: Policy =
    Policy { tracking: ReadTracking::Indexed, lanes: LaneChoice::Own { sets: 2 } };
const COUNTER: Policy = Policy { tracking: ReadTracking::ScanPadded, lanes: LaneChoice::Counter };

/// Explores mixes of one shape, prints what was visited, and expects that no rule was broken.
fn all(shape: Shape, preemptions: u32, mixes: &[(&str, Policy, &[&[Op]])]) {
    let preemptions = match std::env::var("BLOCKYARD_BTT_PREEMPTIONS") {
        Ok(given) => given.parse().expect("BLOCKYARD_BTT_PREEMPTIONS is a number"),
        Err(_) => preemptions,
    };
    for &(name, policy, scripts) in mixes {
        let mix = Mix { shape, policy, scripts, preemptions };
        let begun = std::time::Instant::now();
        let explored = explore(&mix, Omissions::default());
        let counts = explored.counts;
        println!(
            "{name}, {} threads, {preemptions} preemptions: {} runs, {} moments; {} states of map and log \
             visited, {} of them with a write to finish; of all words {} ({:?})",
            scripts.len(),
            explored.runs,
            counts.moments,
            counts.states,
            counts.finished,
            counts.all_states,
            begun.elapsed()
        );
        if let Some(broken) = explored.broken {
            panic!("{name}, {scripts:?}: {broken}");
        }
    }
}

use Op::{Anew, Error, Read, Write, WriteRun, WriteTwo, Zero};

#[test]
fn two_writers() {
    all(
        TWO,
        3,
        &[
            ("of one sector", own(2), &[&[Write(0), Write(0)], &[Write(0)]]),
            ("of one sector in turn", own(2), &[&[Write(0)], &[Write(0), Write(0), Write(0)]]),
            ("of neighbours in a word", own(2), &[&[Write(0), Write(1)], &[Write(1), Write(0)]]),
            ("of sectors in other words", own(2), &[&[Write(0), Write(2)], &[Write(3), Write(0)]]),
            ("that share both lanes", own(1), &[&[Write(0), Write(1)], &[Write(0), Write(1)]]),
            ("that count lanes", COUNTER, &[&[Write(0), Write(1)], &[Write(0), Write(1)]]),
            ("as Linux", Policy::LINUX, &[&[Write(0), Write(1)], &[Write(1), Write(0)]]),
            ("one that comes anew", own(2), &[&[Write(0), Anew, Write(1)], &[Write(0), Write(1)]]),
        ],
    );
}

#[test]
fn writers_of_several_sectors() {
    all(
        TWO,
        2,
        &[
            ("beside one", own(2), &[&[WriteRun(0, 3)], &[Write(1)]]),
            ("crosswise", own(2), &[&[WriteTwo(0, 1)], &[WriteTwo(1, 0)]]),
            ("one sector twice", own(2), &[&[WriteTwo(2, 2)], &[Write(2)]]),
        ],
    );
    all(
        Shape { sectors: 4, lanes: 8 },
        2,
        &[
            ("in batches", own(2), &[&[WriteRun(0, 4)], &[WriteRun(0, 2)]]),
            ("in batches, crosswise", own(2), &[&[WriteTwo(0, 1)], &[WriteTwo(1, 0), Write(0)]]),
        ],
    );
}

#[test]
fn writers_beside_zeroes_and_errors() {
    all(
        TWO,
        2,
        &[
            ("zeroes of a written one", own(2), &[&[Write(0), Zero(0, 1)], &[Write(0)]]),
            ("zeroes of several", own(2), &[&[Write(1)], &[Zero(0, 4), Write(1)]]),
            ("zeroes twice", own(2), &[&[Write(0)], &[Zero(0, 2)], &[Zero(0, 1)]]),
            ("a lost one", own(2), &[&[Write(0), Error(0), Write(0)], &[Write(0), Write(1)]]),
            ("a lost one by others", own(2), &[&[Write(0), Write(0)], &[Error(0)], &[Zero(0, 1)]]),
        ],
    );
}

#[test]
fn three_and_four_writers() {
    all(
        TWO,
        2,
        &[
            ("of one sector, two lanes", own(2), &[&[Write(0)], &[Write(0)], &[Write(0)]]),
            ("of neighbours, two lanes", own(2), &[&[Write(0)], &[Write(1)], &[Write(0)]]),
        ],
    );
    all(
        FOUR,
        1,
        &[
            ("of one sector", own(4), &[&[Write(0)], &[Write(0)], &[Write(0)], &[Write(0)]]),
            ("of neighbours", own(4), &[&[Write(0)], &[Write(1)], &[Write(1)], &[Write(0)]]),
            ("of any sector", own(4), &[&[Write(0)], &[Write(1)], &[Write(2)], &[Write(3)]]),
            ("with two lanes each", own(2), &[&[Write(0)], &[Write(0)], &[Write(1)], &[Write(2)]]),
            ("and all else", own(4), &[&[Write(0)], &[Write(0)], &[Zero(0, 2)], &[Error(1)]]),
        ],
    );
}

/// A sector that is read while it and others are written reads as what it had at one moment.
#[test]
fn readers() {
    let scripts: [&[&[Op]]; 4] = [
        &[&[Write(0), Write(1), Write(1)], &[Read(0)]],
        &[&[Write(0), Write(0)], &[Read(0)], &[Write(0), Write(2)]],
        &[&[Write(0), Error(0), Write(0)], &[Read(0)]],
        &[&[Write(0), Zero(0, 1), Write(1)], &[Read(0), Read(0)]],
    ];
    for policy in [own(2), own(1), INDEXED, COUNTER, Policy::LINUX] {
        for scripts in scripts {
            all(TWO, 2, &[(&format!("{policy:?}"), policy, scripts)]);
        }
    }
}

/// The word that says that an entry is pending is of many sectors. Once another thread changed another
/// sector of the word, nobody knew of the first one's entry any more: it was logged as the old one while
/// the medium could still have the one before, which a crash then brought back.
#[test]
fn sectors_that_share_a_word() {
    let shape = Shape { sectors: 258, lanes: 4 };
    let scripts: [&[&[Op]]; 2] = [
        &[&[Write(0)], &[Write(256), Write(0)]],
        &[&[Write(0)], &[Write(256), Write(1)], &[Write(0)]],
    ];
    for scripts in scripts {
        all(shape, 1, &[("of one word", own(4), scripts)]);
    }
}
