//! Each write-back and each fence of the engine left out in turn: the exploration of crashes notices. A
//! call whose absence nobody could notice would be one that need not be there.

mod btt_rig;

use blockyard_btt::flog::SlotLayout;
use blockyard_btt::{Container, LaneChoice, Policy, ReadTracking};
use btt_rig::{Media, Mix, Omission, Omissions, Op, Shape, explore, explore_data};

const TWO: Shape = Shape::new(4, 2);

/// Explores `scripts` with a call left out, and expects that a rule of the judge is found broken.
fn is_found(omissions: Omissions, scripts: &[&[Op]]) {
    is_found_in(TWO, omissions, scripts);
}

/// The same in a BTT of this shape.
fn is_found_in(shape: Shape, omissions: Omissions, scripts: &[&[Op]]) {
    // A lane for the first thread, and one that the others share.
    let lanes = LaneChoice::Own { sets: 2 };
    let policy = Policy { tracking: ReadTracking::Versions, lanes };
    let mix = Mix { shape, policy, scripts, preemptions: 2 };
    assert_eq!(explore(&mix, Omissions::default()).broken, None, "nothing is left out");
    let explored = explore(&mix, omissions);
    let Some(broken) = explored.broken else {
        panic!("{omissions:?} not noticed in {} runs, {:?}", explored.runs, explored.counts);
    };
    let first = broken.lines().next().unwrap_or("");
    println!("{omissions:?}, {scripts:?}: run {}: {first}", explored.runs);
    assert!(broken.starts_with('J'), "{omissions:?}: {broken}");
}

/// Left out while threads run.
fn running(omission: Omission) -> Omissions {
    Omissions { running: Some(omission), opening: None }
}

/// Left out while what a crash left is opened.
fn opening(omission: Omission) -> Omissions {
    Omissions { opening: Some(omission), running: None }
}

use Op::{Anew, Error, Read, Write, Zero};

/// W1, the data: a sector reads as it was not written.
#[test]
fn data_become_durable_before_the_log_names_them() {
    is_found(running(Omission::Data), &[&[Write(0)]]);
}

/// W1, the log: the second word is there, and the first is that of another write. (Not for sector 0, whose
/// first word is zero the first time.)
#[test]
fn the_first_word_is_written_back() {
    is_found(running(Omission::FirstWords), &[&[Write(1)]]);
}

/// W1, both.
#[test]
fn a_fence_lies_behind_data_and_first_words() {
    is_found(running(Omission::FenceBehindFirstWords), &[&[Write(0)]]);
}

/// W2: it was acknowledged.
#[test]
fn the_second_word_is_written_back() {
    is_found(running(Omission::SecondWords), &[&[Write(0)]]);
}

/// W2: the map names a block that is free as far as the log goes.
#[test]
fn a_fence_lies_behind_second_words() {
    is_found(running(Omission::FenceBehindSecondWords), &[&[Write(0)]]);
}

/// W3: the lane forgets a write that the map does not know.
#[test]
fn map_entries_are_written_back() {
    is_found(running(Omission::OwnEntries), &[&[Write(0), Write(1), Write(2)]]);
}

/// W3: a write that was followed by another thread's to that sector is taken for one that was cut.
#[test]
fn entries_that_others_changed_are_written_back() {
    is_found(running(Omission::ForeignEntries), &[&[Write(0)], &[Write(0)]]);
}

/// N3: the next one's fences are for what it wrote itself.
#[test]
fn lanes_are_handed_on_settled() {
    let shared: &[&[Op]] = &[&[Write(3)], &[Write(0)], &[Write(1)]];
    is_found(running(Omission::FenceBehindEntries), shared);
    let given_back: &[&[Op]] = &[&[Write(0), Anew], &[Anew, Write(1)]];
    is_found(running(Omission::FenceBehindEntries), given_back);
}

#[test]
fn zeroes_and_errors_are_durable_when_they_are_acknowledged() {
    for op in [Zero(0, 1), Error(0)] {
        for omission in [Omission::OwnEntries, Omission::FenceBehindEntries] {
            is_found(running(omission), &[&[Write(0), op]]);
        }
    }
}

/// V4: what recovery finished is durable before the lane logs something else by another thread (J5).
#[test]
fn recovery_writes_back_and_fences() {
    for omission in [Omission::OwnEntries, Omission::FenceBehindEntries] {
        is_found(opening(omission), &[&[Write(0)]]);
    }
}

/// The same rules in a pool, with an old log, and where the lane's last write was to another arena.
#[test]
fn other_shapes_need_the_same_rules() {
    let log = [
        Omission::Data,
        Omission::FirstWords,
        Omission::FenceBehindFirstWords,
        Omission::SecondWords,
        Omission::FenceBehindSecondWords,
    ];
    let other_log =
        [Shape { container: Container::Pool, ..TWO }, Shape { slots: SlotLayout::OldLinux, ..TWO }];
    for shape in other_log {
        for omission in log {
            is_found_in(shape, running(omission), &[&[Write(1)]]);
        }
        is_found_in(
            shape,
            running(Omission::OwnEntries),
            &[&[Write(0), Write(1), Write(2), Write(1)]],
        );
        is_found_in(shape, running(Omission::ForeignEntries), &[&[Write(0)], &[Write(0)]]);
    }
    let two = Shape { arenas: 2, ..Shape::new(2, 2) };
    // Sector 1 of the second arena.
    for omission in log {
        is_found_in(two, running(omission), &[&[Write(3)]]);
    }
    is_found_in(two, running(Omission::OwnEntries), &[&[Write(3), Write(0), Write(2)]]);
    is_found_in(two, running(Omission::ForeignEntries), &[&[Write(2)], &[Write(2)]]);
    for omission in [Omission::OwnEntries, Omission::FenceBehindEntries] {
        // Zeroes of both, and what recovery finishes in the second.
        is_found_in(two, running(omission), &[&[Write(2), Zero(1, 2)]]);
        is_found_in(two, opening(omission), &[&[Write(2)]]);
    }
}

/// A bad block is mended before a sector gets it: met while writing; known from a read, also when its
/// sector was zeroed meanwhile; and known from the log after a crash.
#[test]
fn bad_blocks_are_mended() {
    let mending = running(Omission::Mending);
    let told = |media, scripts: &[&[Op]]| {
        let lanes = LaneChoice::Own { sets: 2 };
        let policy = Policy { tracking: ReadTracking::Versions, lanes };
        let mix = Mix { shape: Shape { media, ..TWO }, policy, scripts, preemptions: 2 };
        assert_eq!(explore(&mix, Omissions::default()).broken, None, "nothing is left out");
        let broken = explore(&mix, mending).broken.expect("it is noticed");
        println!("{media:?}, {scripts:?}: {}", broken.lines().next().unwrap_or(""));
    };
    told(Media::Refuses, &[&[Write(1)]]);
    told(Media::Keeps, &[&[Read(0), Write(0), Write(1)]]);
    told(Media::Keeps, &[&[Read(0), Zero(0, 1), Write(0), Write(1)]]);
    let keeps = Shape { media: Media::Keeps, ..TWO };
    is_found_in(keeps, opening(Omission::Mending), &[&[Read(0), Write(0)]]);
}

/// What is known of blocks says as much as all their states, one by one.
#[test]
fn data_need_not_be_visited() {
    let lanes = LaneChoice::Own { sets: 2 };
    let policy = Policy { tracking: ReadTracking::Versions, lanes };
    let scripts: &[&[Op]] = &[&[Write(0), Write(1)], &[Write(0)]];
    let mix = Mix { shape: TWO, policy, scripts, preemptions: 2 };
    let sound = explore_data(&mix, Omissions::default());
    println!("{} runs, {:?}", sound.runs, sound.counts);
    assert_eq!(sound.broken, None);
    for omission in [Omission::Data, Omission::FenceBehindFirstWords] {
        let broken = explore_data(&mix, running(omission)).broken.expect("it is noticed");
        println!("{omission:?}: {}", broken.lines().next().unwrap_or(""));
        assert!(broken.starts_with("J1"), "{broken}");
    }
}
