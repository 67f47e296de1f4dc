//! Each write-back and each fence is omitted in turn, and the exploration of crashes detects it. A
//! call whose omission could not be detected would be unnecessary.

mod crash_rig;

use blockyard_btt::flog::SlotLayout;
use blockyard_btt::{Container, LaneChoice, Policy, ReadTracking};
use crash_rig::{Media, Mix, Omission, Omissions, Op, Shape, explore, explore_data};

const TWO: Shape = Shape::new(4, 2);

/// Explores `scripts` with omissions, and expects that a check of the judge fails.
fn is_found(omissions: Omissions, scripts: &[&[Op]]) {
    is_found_in(TWO, omissions, scripts);
}

/// The same in a BTT of this shape.
fn is_found_in(shape: Shape, omissions: Omissions, scripts: &[&[Op]]) {
    // A lane for the first thread, and one that the others share.
    let lanes = LaneChoice::Own { sets: 2 };
    let policy = Policy { tracking: ReadTracking::Versions, lanes };
    let mix = Mix { shape, policy, scripts, preemptions: 2 };
    assert_eq!(explore(&mix, Omissions::default()).broken, None, "without omissions");
    let explored = explore(&mix, omissions);
    let Some(broken) = explored.broken else {
        panic!("{omissions:?} not detected in {} runs, {:?}", explored.runs, explored.counts);
    };
    let first = broken.lines().next().unwrap_or("");
    println!("{omissions:?}, {scripts:?}: run {}: {first}", explored.runs);
    let checks = ["reads: ", "owners: ", "others: ", "again: ", "later: ", "check: "];
    assert!(checks.iter().any(|check| broken.starts_with(check)), "{omissions:?}: {broken}");
}

/// Omits a call while threads run.
fn running(omission: Omission) -> Omissions {
    Omissions { running: Some(omission), opening: None }
}

/// Omits a call while a BTT is opened after a crash.
fn opening(omission: Omission) -> Omissions {
    Omissions { opening: Some(omission), running: None }
}

use Op::{Anew, Error, Read, Write, Zero};

/// [data-before-log], for the data: otherwise a sector reads as nobody wrote it.
#[test]
fn data_become_durable_before_the_log_names_them() {
    is_found(running(Omission::Data), &[&[Write(0)]]);
}

/// [data-before-log], for the first word, and [entry-in-two-words]: otherwise the second word goes
/// with the first word of another write. (Not for sector 0, whose first word is zero the first
/// time.)
#[test]
fn the_first_word_is_written_back() {
    is_found(running(Omission::FirstWords), &[&[Write(1)]]);
}

/// [data-before-log], for both.
#[test]
fn a_fence_follows_data_and_first_words() {
    is_found(running(Omission::FenceBehindFirstWords), &[&[Write(0)]]);
}

/// [log-before-map]: otherwise an acknowledged write is lost.
#[test]
fn the_second_word_is_written_back() {
    is_found(running(Omission::SecondWords), &[&[Write(0)]]);
}

/// [log-before-map]: otherwise the map names a block that is free according to the log.
#[test]
fn a_fence_follows_second_words() {
    is_found(running(Omission::FenceBehindSecondWords), &[&[Write(0)]]);
}

/// [map-before-next-log]: otherwise the lane forgets a write that the map does not have.
#[test]
fn map_entries_are_written_back() {
    is_found(running(Omission::OwnEntries), &[&[Write(0), Write(1), Write(2)]]);
}

/// [map-before-next-log]: otherwise a write that another thread overwrote is taken for a cut one.
#[test]
fn entries_that_others_changed_are_written_back() {
    is_found(running(Omission::ForeignEntries), &[&[Write(0)], &[Write(0)]]);
}

/// [handed-over-set-durable]: the next thread's fences cover only its own writes.
#[test]
fn lanes_are_handed_over_durable() {
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

/// A finished write is durable before another thread uses the lane again.
#[test]
fn recovery_writes_back_and_fences() {
    for omission in [Omission::OwnEntries, Omission::FenceBehindEntries] {
        is_found(opening(omission), &[&[Write(0)]]);
    }
}

/// The same rules in a pool, with an old log, and after a write to another arena in the same lane.
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
        // Zeroes in both arenas, and a recovery of the second one.
        is_found_in(two, running(omission), &[&[Write(2), Zero(1, 2)]]);
        is_found_in(two, opening(omission), &[&[Write(2)]]);
    }
}

/// A bad block is repaired before a sector gets it: one that is found while writing; one that is
/// known from a read, even if its sector was zeroed meanwhile; and one that is known from the log
/// after a crash.
#[test]
fn bad_blocks_are_repaired() {
    let mending = running(Omission::Mending);
    assert_detected(mending, Media::Refuses, &[&[Write(1)]]);
    assert_detected(mending, Media::Keeps, &[&[Read(0), Write(0), Write(1)]]);
    assert_detected(mending, Media::Keeps, &[&[Read(0), Zero(0, 1), Write(0), Write(1)]]);
    let keeps = Shape { media: Media::Keeps, ..TWO };
    is_found_in(keeps, opening(Omission::Mending), &[&[Read(0), Write(0)]]);
}

fn assert_detected(mending: Omissions, media: Media, scripts: &[&[Op]]) {
    let lanes = LaneChoice::Own { sets: 2 };
    let policy = Policy { tracking: ReadTracking::Versions, lanes };
    let mix = Mix { shape: Shape { media, ..TWO }, policy, scripts, preemptions: 2 };
    assert_eq!(explore(&mix, Omissions::default()).broken, None, "without omissions");
    let broken = explore(&mix, mending).broken.expect("detection of the omission");
    println!("{media:?}, {scripts:?}: {}", broken.lines().next().unwrap_or(""));
}

/// Knowing which blocks are torn is equivalent to visiting all states of their words.
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
        let broken =
            explore_data(&mix, running(omission)).broken.expect("detection of the omission");
        println!("{omission:?}: {}", broken.lines().next().unwrap_or(""));
        assert!(broken.starts_with("reads: "), "{broken}");
    }
}
