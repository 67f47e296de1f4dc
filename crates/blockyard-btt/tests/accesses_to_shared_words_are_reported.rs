//! Each access to a word that threads share is reported to the memory, so that a model of a machine
//! can charge for it.

mod intercepted_memory;

use blockyard_btt::ram::Ram;
use blockyard_btt::{LaneChoice, MediaError, Memory, Policy, ReadTracking, Touch, Word};
use core::cell::RefCell;
use core::ops::Range;
use intercepted_memory::{Call, Intercepted, create};

const LANES: [LaneChoice; 4] = [
    LaneChoice::Own { sets: 16 },
    LaneChoice::PerCpu { cpus: 4 },
    LaneChoice::Mutex,
    LaneChoice::Counter,
];
const TRACKING: [ReadTracking; 4] =
    [ReadTracking::Versions, ReadTracking::Indexed, ReadTracking::Scan, ReadTracking::ScanPadded];

/// Returns the reports of a read, a write and a settling by a thread that is alone, in this order.
fn reports(policy: Policy) -> [Vec<Touch>; 3] {
    let reports = RefCell::new(Vec::new());
    let btt = create(
        Intercepted {
            memory: Ram::new(16 << 20),
            intercept: |call| {
                if let Call::Touched(touch) = call {
                    reports.borrow_mut().push(touch);
                }
                Ok(())
            },
        },
        policy,
    );
    let mut seat = btt.seat();
    seat.write(&btt, 3, &[7; 512]).expect("write to ram");
    seat.settle(&btt).expect("settling in ram");
    reports.borrow_mut().clear();
    seat.read(&btt, 3, &mut [0; 512]).expect("read from ram");
    let read = reports.take();
    seat.write(&btt, 3, &[8; 512]).expect("write to ram");
    let write = reports.take();
    seat.settle(&btt).expect("settling in ram");
    [read, write, reports.take()]
}

fn is_of_lanes(touch: &Touch) -> bool {
    matches!(
        touch,
        Touch::Stored(Word::Counter)
            | Touch::Locked(Word::Lanes(_))
            | Touch::Unlocked(Word::Lanes(_))
    )
}

/// Removes the reports of lanes, which are those that the design's documentation says: first and
/// last.
fn without_lanes(of: &[Touch], lanes: LaneChoice) -> &[Touch] {
    let inside = match (lanes, of) {
        (LaneChoice::Own { .. } | LaneChoice::PerCpu { .. }, of) => of,
        (
            LaneChoice::Mutex,
            [Touch::Locked(Word::Lanes(lane)), of @ .., Touch::Unlocked(Word::Lanes(last))],
        )
        | (
            LaneChoice::Counter,
            [
                Touch::Stored(Word::Counter),
                Touch::Locked(Word::Lanes(lane)),
                of @ ..,
                Touch::Unlocked(Word::Lanes(last)),
            ],
        ) if lane == last => of,
        (_, of) => panic!("{lanes:?}: {of:?}"),
    };
    assert!(!inside.iter().any(is_of_lanes), "{lanes:?}: {of:?}");
    inside
}

/// A reader checks a version after it has copied, or publishes its block and withdraws it.
#[test]
fn a_read_reports_versions_or_its_published_block() {
    for lanes in LANES {
        for tracking in TRACKING {
            let [read, ..] = reports(Policy { tracking, lanes });
            match (tracking, &read[..]) {
                // No lane is needed to read, where nothing is published.
                (
                    ReadTracking::Versions,
                    [Touch::Loaded(Word::Entries(a)), Touch::Loaded(Word::Entries(b))],
                ) => assert_eq!(a, b, "{lanes:?}"),
                (ReadTracking::Versions, of) => panic!("{lanes:?}: {of:?}"),
                (_, of) => match without_lanes(of, lanes) {
                    [Touch::Stored(Word::Reader(a)), Touch::Stored(Word::Reader(b))] => {
                        assert_eq!(a, b, "{tracking:?}, {lanes:?}");
                    }
                    of => panic!("{tracking:?}, {lanes:?}: {of:?}"),
                },
            }
        }
    }
}

/// Returns the sets of lanes that `calls` writes take as locks, each by a thread without its own
/// set.
fn locked(lanes: LaneChoice, calls: u64) -> Vec<u32> {
    let reports = RefCell::new(Vec::new());
    let policy = Policy { tracking: ReadTracking::Versions, lanes };
    let btt = create(
        Intercepted {
            memory: Ram::new(16 << 20),
            intercept: |call| {
                if let Call::Touched(Touch::Locked(Word::Lanes(lane))) = call {
                    reports.borrow_mut().push(lane);
                }
                Ok(())
            },
        },
        policy,
    );
    (0..calls).for_each(|lba| btt.write(lba, &[7; 512]).expect("write to ram"));
    reports.take()
}

#[test]
fn a_thread_gets_the_lanes_of_one_that_ended() {
    let memory = Intercepted {
        memory: Ram::new(16 << 20),
        intercept: |call| match call {
            Call::Touched(Touch::Locked(Word::Lanes(set))) => panic!("set {set} is shared"),
            _ => Ok(()),
        },
    };
    let btt = create(memory, Policy::DEFAULT);
    (0..100).for_each(|lba| btt.worker().write(lba, &[7; 512]).expect("write to ram"));
}

#[test]
fn zeroing_reports_its_words() {
    let reports = RefCell::new(Vec::new());
    let memory = Intercepted {
        memory: Ram::new(16 << 20),
        intercept: |call| {
            if let Call::Touched(touch) = call {
                reports.borrow_mut().push(touch);
            }
            Ok(())
        },
    };
    let btt = create(memory, Policy::DEFAULT);
    btt.set_zero(3, 1).expect("zeroing in ram");
    let word = Word::Entries(3);
    let counted = Touch::Stored(Word::Zeroings);
    let expected =
        [counted, Touch::Loaded(word), Touch::Locked(word), Touch::Unlocked(word), counted];
    assert_eq!(reports.take(), expected);
    btt.set_zero(3, 1).expect("zeroing in ram");
    assert_eq!(reports.take(), [Touch::Loaded(Word::Zeroings)], "it is zeroed already");
}

/// A BTT may borrow its memory.
#[test]
fn a_reference_to_a_memory_passes_every_call_on() {
    let calls = RefCell::new(String::new());
    let memory = &Intercepted {
        memory: Ram::new(64),
        intercept: |call| {
            calls.borrow_mut().push(match call {
                Call::Read(8) => 'r',
                Call::Write(8) => 'w',
                Call::Zero(8) => 'z',
                Call::Load(8) => 'l',
                Call::WriteBack(Range { start: 8, end: 11 }) => 'b',
                Call::Prefetch(Range { start: 8, end: 11 }) => 'p',
                Call::Fence => 'f',
                Call::Touched(Touch::Stored(Word::Counter)) => 't',
                Call::Relax(7) => 'x',
                _ => '?',
            });
            Ok(())
        },
    };
    fn call(memory: impl Memory) -> Result<u32, MediaError> {
        memory.write(8, &[1])?;
        memory.read(8, &mut [0])?;
        memory.zero(8, 1)?;
        memory.store(16, 5)?;
        memory.store_long(8, 6)?;
        memory.write_back(8, 3);
        memory.prefetch(8, 3);
        memory.fence()?;
        memory.flush()?;
        memory.touched(Touch::Stored(Word::Counter));
        memory.relax(7);
        assert_eq!((memory.len(), memory.hole(8), memory.load(16)), (64, 0, Ok(5)));
        memory.load(8)
    }
    assert_eq!(call(memory), Ok(6));
    assert_eq!(calls.take(), "wrzbpfftx?l");
}

#[test]
fn the_counter_gives_each_call_the_next_lane() {
    let expected: Vec<u32> = (0..600).map(|call| call % 256).collect();
    assert_eq!(locked(LaneChoice::Counter, 600), expected);
}

/// Threads without their own lanes share what is left: the last quarter of the sets, the lanes
/// beyond those of the processors, or all of them if there are not more lanes than processors.
#[test]
fn threads_without_lanes_of_their_own_use_all_others_in_turn() {
    assert_eq!(locked(LaneChoice::Own { sets: 16 }, 6), [12, 13, 14, 15, 12, 13]);
    assert_eq!(locked(LaneChoice::Own { sets: 1 }, 2), [0, 0]);
    assert_eq!(locked(LaneChoice::Own { sets: 1000 }, 65)[62..], [254, 255, 192]);
    assert_eq!(locked(LaneChoice::PerCpu { cpus: 254 }, 3), [254, 255, 254]);
    assert_eq!(locked(LaneChoice::PerCpu { cpus: 255 }, 2), [255, 255]);
    for lanes in [LaneChoice::PerCpu { cpus: 256 }, LaneChoice::Mutex] {
        assert_eq!(locked(lanes, 258)[254..], [254, 255, 0, 1], "{lanes:?}");
    }
}

/// A writer locks its entry, leaves it pending until the entry is durable, and looks through the
/// words of all readers if they publish.
#[test]
fn a_write_reports_its_lock_and_its_scan_of_readers() {
    for lanes in LANES {
        for tracking in TRACKING {
            let of = format!("{tracking:?}, {lanes:?}");
            let [_, write, settled] = reports(Policy { tracking, lanes });
            let is_shared = matches!(lanes, LaneChoice::Mutex | LaneChoice::Counter);
            assert!(!is_shared || settled.is_empty(), "{of}: a lane is given back without a debt");
            let write = without_lanes(&write, lanes);
            let (scans, rest): (Vec<_>, Vec<_>) =
                write.iter().chain(&settled).copied().partition(|it| scanned(*it).is_some());
            let [
                Touch::Loaded(Word::Entries(seen)),
                Touch::Locked(Word::Entries(locked)),
                Touch::Unlocked(Word::Entries(pending)),
                Touch::Stored(Word::Entries(cleared)),
            ] = rest[..]
            else {
                panic!("{of}: {rest:?}");
            };
            assert!([locked, pending, cleared] == [seen; 3], "{of}: {rest:?}");
            let scans: Vec<_> = scans.into_iter().filter_map(scanned).collect();
            match tracking {
                ReadTracking::Versions => assert_eq!(scans, [], "{of}"),
                // A scan serves many writes.
                ReadTracking::Indexed => {
                    let has_lanes_in_turn = matches!(lanes, LaneChoice::Own { .. });
                    assert_eq!(scans.len(), usize::from(!has_lanes_in_turn), "{of}: {scans:?}");
                }
                ReadTracking::Scan | ReadTracking::ScanPadded => assert_eq!(scans.len(), 1, "{of}"),
            }
            // A word for each set of lanes; without sets, one for each lane.
            let words = if let LaneChoice::Own { sets } = lanes { sets } else { 256 };
            assert!(scans.iter().all(|scanned| *scanned == words), "{of}: {scans:?}");
        }
    }
}

const fn scanned(touch: Touch) -> Option<u32> {
    match touch {
        Touch::ScannedReaders(words) => Some(words),
        _ => None,
    }
}
