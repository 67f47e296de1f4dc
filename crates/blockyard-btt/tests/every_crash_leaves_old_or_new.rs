//! Small arenas with up to four threads: every order of their steps within bounds, and at each step
//! every state that a crash may leave. The checks are in `crash_rig/judge.rs`, and the bounds in
//! `crash_rig/run.rs`.
//!
//! ```sh
//! cargo test -p blockyard-btt --test every_crash_leaves_old_or_new -- --nocapture
//! BLOCKYARD_BTT_PREEMPTIONS=4 \
//!     cargo test --release -p blockyard-btt --test every_crash_leaves_old_or_new
//! ```
//!
//! The first command prints the numbers of visited states. The second allows more preemptions in
//! each run than the tests do. Threads that take turns are several times faster on one processor
//! (`taskset -c 0`).

mod crash_rig;

use blockyard_btt::flog::SlotLayout;
use blockyard_btt::{Container, LaneChoice, Policy, ReadTracking};
use crash_rig::{Media, Mix, Omissions, Op, Shape, explore};

/// Two lanes: one for the first thread alone, and one that all others share.
const TWO: Shape = Shape::new(4, 2);
/// Four lanes: three threads have one each to themselves.
const FOUR: Shape = Shape::new(4, 4);

const fn own(sets: u32) -> Policy {
    Policy { tracking: ReadTracking::Versions, lanes: LaneChoice::Own { sets } }
}

const INDEXED: Policy =
    Policy { tracking: ReadTracking::Indexed, lanes: LaneChoice::Own { sets: 2 } };
const COUNTER: Policy = Policy { tracking: ReadTracking::ScanPadded, lanes: LaneChoice::Counter };

/// Explores mixes of one shape, prints the numbers of visited states, and expects that no check
/// fails.
fn all(shape: Shape, preemptions: u32, mixes: &[(&str, Policy, &[&[Op]])]) {
    let preemptions = match std::env::var("BLOCKYARD_BTT_PREEMPTIONS") {
        Ok(given) => preemptions.max(given.parse().expect("BLOCKYARD_BTT_PREEMPTIONS is a number")),
        Err(_) => preemptions,
    };
    for &(name, policy, scripts) in mixes {
        let mix = Mix { shape, policy, scripts, preemptions };
        let begun = std::time::Instant::now();
        let explored = explore(&mix, Omissions::default());
        let counts = explored.counts;
        println!(
            "{name}, {} threads, {preemptions} preemptions: {} runs, {} moments; {} states of map and log \
             visited, {} of them with a write to finish, {} left by an interrupted recovery; states of all \
             words: {} ({:?})",
            scripts.len(),
            explored.runs,
            counts.moments,
            counts.states,
            counts.finished,
            counts.interrupted,
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
fn two_writers_leave_old_or_new() {
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
            ("with a new worker", own(2), &[&[Write(0), Anew, Write(1)], &[Write(0), Write(1)]]),
        ],
    );
}

#[test]
fn writers_of_batches_leave_old_or_new() {
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
        Shape::new(4, 8),
        2,
        &[
            ("in batches", own(2), &[&[WriteRun(0, 4)], &[WriteRun(0, 2)]]),
            ("in batches, crosswise", own(2), &[&[WriteTwo(0, 1)], &[WriteTwo(1, 0), Write(0)]]),
        ],
    );
}

#[test]
fn writers_beside_zeroes_and_errors_leave_old_or_new() {
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
fn three_and_four_writers_leave_old_or_new() {
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
            ("beside others", own(4), &[&[Write(0)], &[Write(0)], &[Zero(0, 2)], &[Error(1)]]),
        ],
    );
}

#[test]
fn four_writers_that_are_preempted_twice_leave_old_or_new() {
    all(
        FOUR,
        2,
        &[("of any sector", own(4), &[&[Write(0)], &[Write(1)], &[Write(2)], &[Write(3)]])],
    );
}

/// A sector that is read while it and others are written reads as it was at one moment
/// ([same-version-same-block], [reader-or-writer-sees]).
#[test]
fn readers_see_old_or_new() {
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

/// A pool: block numbers in the log carry state bits, which libpmemblk's recovery compares.
#[test]
fn writers_of_a_pool_leave_old_or_new() {
    all(
        Shape { container: Container::Pool, ..TWO },
        2,
        &[
            ("of one sector", own(2), &[&[Write(0), Write(0)], &[Write(0)]]),
            ("of neighbours in a word", own(2), &[&[Write(0), Write(1)], &[Write(1), Write(0)]]),
            ("as Linux", Policy::LINUX, &[&[Write(0), Write(1)], &[Write(1), Write(0)]]),
            ("beside zeroes", own(2), &[&[Write(0), Zero(0, 1), Write(0)], &[Write(0)]]),
            ("beside zeroes by others", own(2), &[&[Write(0)], &[Zero(0, 2)], &[Write(0)]]),
            ("beside errors", own(2), &[&[Write(0)], &[Error(0), Write(0)]]),
            ("beside errors by others", own(2), &[&[Write(0)], &[Error(0)], &[Write(0)]]),
        ],
    );
}

/// The layout of the log in Linux before 4.15.
#[test]
fn writers_of_an_old_log_leave_old_or_new() {
    let shape = Shape { slots: SlotLayout::OldLinux, ..TWO };
    all(
        shape,
        2,
        &[
            ("of one sector", own(2), &[&[Write(0), Write(0)], &[Write(0)]]),
            ("of the sector that was written", own(2), &[&[Write(3), Write(0)], &[Write(3)]]),
            ("of neighbours in a word", own(2), &[&[Write(2), Write(3)], &[Write(3), Write(2)]]),
            ("beside zeroes and errors", own(2), &[&[Write(3)], &[Zero(2, 2), Error(2)]]),
        ],
    );
    all(
        Shape { container: Container::Pool, ..shape },
        2,
        &[("of a pool", own(2), &[&[Write(3), Write(0)], &[Write(3)]])],
    );
}

/// Two arenas of two sectors: each lane has a log and a free block in each arena.
#[test]
fn writers_of_two_arenas_leave_old_or_new() {
    let shape = Shape { arenas: 2, ..Shape::new(2, 2) };
    let mixes: [(&str, Policy, &[&[Op]]); 6] = [
        ("of one sector of each", own(2), &[&[Write(0), Write(2)], &[Write(2), Write(0)]]),
        ("of the same place in each", own(2), &[&[Write(1), Write(3)], &[Write(3)]]),
        ("of one lane", own(1), &[&[Write(0), Write(2)], &[Write(2)]]),
        ("across the border", own(2), &[&[WriteRun(0, 4)], &[Write(2), Write(1)]]),
        ("beside zeroes across it", own(2), &[&[Write(1), Write(2)], &[Zero(1, 2)]]),
        ("beside errors on both sides", own(2), &[&[Write(1), Error(2)], &[Write(2), Error(1)]]),
    ];
    all(shape, 2, &mixes);
    all(Shape { container: Container::Pool, ..shape }, 2, &mixes[..2]);
    all(
        Shape { lanes: 8, ..shape },
        2,
        &[("in batches", own(2), &[&[WriteRun(0, 4)], &[WriteTwo(2, 1)]])],
    );
}

/// Blocks that the medium lost, found while writing or reading, and repaired.
#[test]
fn writers_that_meet_bad_blocks_leave_old_or_new() {
    let scripts: [(&str, &[&[Op]]); 5] = [
        ("one", &[&[Write(1), Write(0), Write(1), Write(2)]]),
        ("after a read", &[&[Read(0), Write(0), Write(1), Write(0)]]),
        ("after a read, and others", &[&[Read(0), Write(0), Write(0)], &[Write(1)]]),
        ("after a read, and zeroes", &[&[Read(0), Zero(0, 1), Write(0), Write(0)], &[Write(1)]]),
        ("beside readers", &[&[Write(0), Write(1), Write(0)], &[Read(0)]]),
    ];
    for (container, media) in [
        (Container::LabelledNamespace, Media::Refuses),
        (Container::LabelledNamespace, Media::Keeps),
        (Container::Pool, Media::Keeps),
    ] {
        let shape = Shape { media, container, ..TWO };
        // If the medium does not report the loss, only a read makes it known.
        for &(name, scripts) in scripts.iter().filter(|&&(_, scripts): &&(&str, &[&[Op]])| {
            media == Media::Refuses || matches!(scripts[0][0], Read(_))
        }) {
            for policy in [own(2), own(1), Policy::LINUX] {
                all(shape, 2, &[(&format!("{name}, {container:?}, {media:?}"), policy, scripts)]);
            }
        }
    }
    // More bad blocks than a batch has spare lanes ([freed-block-waits-for-fence]).
    let shape = Shape { media: Media::Refuses, ..Shape::new(4, 4) };
    all(shape, 1, &[("in batches", own(1), &[&[WriteRun(0, 4)], &[WriteTwo(0, 1)]])]);
}

/// The pending mark of a word covers many sectors. There was a bug: once another thread changed
/// another sector of the word, the first sector's pending entry was forgotten. The entry was then
/// logged as an old one while the medium could still have the one before it, which a crash brought
/// back ([one-pending-entry]).
#[test]
fn writers_of_sectors_that_share_a_word_leave_old_or_new() {
    let shape = Shape::new(258, 4);
    let scripts: [&[&[Op]]; 4] = [
        &[&[Write(0)], &[Write(256), Write(0)]],
        &[&[Write(0)], &[Write(256), Write(1)], &[Write(0)]],
        &[&[Write(0)], &[Zero(256, 1), Write(0)]],
        &[&[Write(0)], &[Error(256), Write(0), Zero(256, 1)]],
    ];
    for scripts in scripts {
        all(shape, 1, &[("of one word", own(4), scripts)]);
    }
}
