//! A thread that needs what another one has waits for it, counts its looks, and continues when the
//! other one is done.

mod intercepted_memory;

use blockyard_btt::ram::Ram;
use blockyard_btt::{Btt, IoError, LaneChoice, MediaError, Policy, ReadTracking, Touch, Word};
use core::cell::{Cell, RefCell};
use intercepted_memory::{Call, Intercepted, create};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

type Intercept = Box<dyn Fn(Call) -> Result<(), MediaError> + Send + Sync>;
type Disk = Btt<Intercepted<Ram, Intercept>>;

/// After this many looks of the thread that waits, the other one continues.
const LOOKS: u32 = 5;
const SECTOR: usize = 512;

thread_local! {
    /// Whether this thread stops at the next call that a test chose, until it is told to continue.
    static STOPS: Cell<bool> = const { Cell::new(false) };
}

fn disk(policy: Policy, intercept: Intercept) -> Disk {
    create(Intercepted { memory: Ram::new(16 << 20), intercept }, policy)
}

/// A receiver that threads share.
struct Shared<T>(Mutex<Receiver<T>>);

impl<T> Shared<T> {
    fn recv(&self) -> T {
        let receiver = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        receiver.recv().expect("a sender that exists")
    }
}

/// Lets one thread carry out `holds` up to the call that `stops_at` chooses, then another one
/// `waits`. The first goes on when the second has looked [`LOOKS`] times, or is done. Returns the
/// numbers of the looks, as the memory was told them, and the disk.
fn looks(
    policy: Policy,
    prepare: impl Fn(&Disk),
    stops_at: impl Fn(&Call) -> bool + Send + Sync + 'static,
    holds: impl Fn(&Disk) + Send + Sync,
    waits: impl Fn(&Disk),
) -> (Vec<u32>, Disk) {
    let (has_stopped, stopped) = channel();
    let (go_on, told_to_go_on): (Sender<()>, _) = channel();
    let told_to_go_on = Shared(Mutex::new(told_to_go_on));
    let (look, looked) = channel();
    let is_done = go_on.clone();
    let disk = disk(
        policy,
        Box::new(move |call| {
            if STOPS.get() && stops_at(&call) {
                STOPS.set(false);
                has_stopped.send(()).expect("a test that waits for the stop");
                told_to_go_on.recv();
            }
            if let Call::Relax(turn) = call {
                look.send(turn).expect("a test that counts the looks");
                if turn == LOOKS - 1 {
                    go_on.send(()).expect("a thread that waits to go on");
                }
                assert!(turn < 1 << 30, "an endless wait");
            }
            Ok(())
        }),
    );
    prepare(&disk);
    thread::scope(|scope| {
        scope.spawn(|| {
            STOPS.set(true);
            holds(&disk);
        });
        stopped.recv().expect("a thread that stops");
        waits(&disk);
        let _ = is_done.send(()); // a thread that was told before does not listen any more
    });
    (looked.try_iter().collect(), disk)
}

fn assert_counted(looks: &[u32]) {
    assert!(looks.len() >= LOOKS as usize, "{looks:?}");
    assert!(
        looks.iter().copied().eq((0..).take(looks.len())),
        "each has the next number: {looks:?}"
    );
}

fn write(disk: &Disk, lba: u64, byte: u8) {
    disk.write(lba, &[byte; SECTOR]).expect("write to ram");
}

fn sector(disk: &Disk, lba: u64) -> [u8; SECTOR] {
    let mut bytes = [0; SECTOR];
    disk.read(lba, &mut bytes).expect("read from ram");
    bytes
}

const fn policy(tracking: ReadTracking, lanes: LaneChoice) -> Policy {
    Policy { tracking, lanes }
}

const SHARED_LANE: LaneChoice = LaneChoice::Own { sets: 1 };
const TWO_SETS: LaneChoice = LaneChoice::Own { sets: 2 };

fn is_fence(call: &Call) -> bool {
    matches!(call, Call::Fence)
}

#[test]
fn a_writer_waits_for_the_set_of_lanes_of_another() {
    let (looks, disk) = looks(
        policy(ReadTracking::Versions, SHARED_LANE),
        |_| (),
        is_fence,
        |disk| write(disk, 1, 1),
        |disk| write(disk, 2, 2),
    );
    assert_counted(&looks);
    assert!(sector(&disk, 1) == [1; SECTOR] && sector(&disk, 2) == [2; SECTOR]);
}

#[test]
fn a_writer_of_a_sector_waits_for_another_that_commits_it() {
    let (looks, disk) = looks(
        policy(ReadTracking::Versions, TWO_SETS),
        |_| (),
        is_fence,
        |disk| disk.worker().write(1, &[1; SECTOR]).expect("write to ram"),
        |disk| write(disk, 1, 2),
    );
    assert_counted(&looks);
    assert!(sector(&disk, 1) == [2; SECTOR], "the writer that waited comes later");
}

#[test]
fn a_sector_is_zeroed_when_its_writer_has_committed_it() {
    let (looks, disk) = looks(
        policy(ReadTracking::Versions, TWO_SETS),
        |_| (),
        is_fence,
        |disk| write(disk, 1, 1),
        |disk| disk.set_zero(1, 1).expect("zeroing in ram"),
    );
    assert_counted(&looks);
    assert!(sector(&disk, 1) == [0; SECTOR], "the zeroing comes later");
}

#[test]
fn a_writer_waits_for_the_reader_of_the_block_that_its_lane_freed() {
    for tracking in [ReadTracking::Indexed, ReadTracking::Scan, ReadTracking::ScanPadded] {
        let (looks, disk) = looks(
            policy(tracking, LaneChoice::PerCpu { cpus: 2 }),
            |disk| write(disk, 1, 1),
            |call| matches!(call, Call::Read(_)),
            |disk| {
                let mut bytes = [0; SECTOR];
                disk.worker().read(1, &mut bytes).expect("read from ram");
                assert!(bytes == [1; SECTOR], "a block that is being read is not written");
            },
            |disk| {
                let mut worker = disk.worker();
                // The first write frees the block; the second one is to write it.
                worker.write(1, &[2; SECTOR]).expect("write to ram");
                worker.write(1, &[3; SECTOR]).expect("write to ram");
            },
        );
        assert_counted(&looks);
        assert!(sector(&disk, 1) == [3; SECTOR], "{tracking:?}");
    }
}

#[test]
fn a_writer_does_not_wait_for_the_reader_of_a_block_that_is_not_free() {
    for tracking in [ReadTracking::Indexed, ReadTracking::Scan, ReadTracking::ScanPadded] {
        let (looks, _) = looks(
            policy(tracking, LaneChoice::PerCpu { cpus: 2 }),
            |disk| write(disk, 1, 1),
            |call| matches!(call, Call::Read(_)),
            |disk| disk.worker().read(1, &mut [0; SECTOR]).expect("read from ram"),
            |disk| disk.worker().write(2, &[2; SECTOR]).expect("write to ram"),
        );
        assert_eq!(looks, [], "{tracking:?}");
    }
}

/// A reader of a block that is marked as lost meanwhile: zeroing the sector would change the block
/// under the reader.
#[test]
fn a_lost_sector_is_zeroed_when_nobody_reads_its_block() {
    for tracking in [ReadTracking::Indexed, ReadTracking::Scan, ReadTracking::ScanPadded] {
        let (looks, disk) = looks(
            policy(tracking, LaneChoice::PerCpu { cpus: 2 }),
            |disk| write(disk, 1, 1),
            |call| matches!(call, Call::Read(_)),
            |disk| {
                let mut bytes = [0; SECTOR];
                disk.worker().read(1, &mut bytes).expect("read from ram");
                assert!(bytes == [1; SECTOR], "a block that is being read is not zeroed");
            },
            |disk| {
                disk.set_error(1).expect("marking in ram");
                disk.set_zero(1, 1).expect("zeroing in ram");
            },
        );
        assert_counted(&looks);
        assert!(sector(&disk, 1) == [0; SECTOR], "{tracking:?}");
    }
}

/// A reader that is overtaken at its first nine copies locks the word of its sector for the tenth,
/// so it ends.
#[test]
fn a_reader_that_is_overtaken_again_and_again_keeps_writers_out() {
    static DISK: OnceLock<Disk> = OnceLock::new();
    thread_local! {
        static READS: Cell<bool> = const { Cell::new(false) };
        static COPIES: Cell<u8> = const { Cell::new(0) };
        /// The number of copies before the word was locked.
        static LOCKED: Cell<Option<u8>> = const { Cell::new(None) };
        static LOOKS: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
    }
    let policy = policy(ReadTracking::Versions, TWO_SETS);
    let disk = DISK.get_or_init(|| {
        disk(
            policy,
            Box::new(|call| {
                match call {
                    Call::Read(_) if READS.get() => {
                        COPIES.set(COPIES.get() + 1);
                        if COPIES.get() <= 9 {
                            READS.set(false);
                            write(DISK.get().expect("the disk that is read"), 1, COPIES.get());
                            READS.set(true);
                        }
                    }
                    Call::Touched(Touch::Locked(Word::Entries(1))) if READS.get() => {
                        LOCKED.set(Some(COPIES.get()));
                    }
                    Call::Relax(turn) => {
                        assert!(turn < 1 << 20, "an endless wait");
                        LOOKS.with_borrow_mut(|looks| looks.push(turn));
                    }
                    _ => {}
                }
                Ok(())
            }),
        )
    });
    write(disk, 1, 100);
    READS.set(true);
    assert!(sector(disk, 1) == [9; SECTOR], "the last of the writes that overtook it");
    READS.set(false);
    assert_eq!((COPIES.get(), LOCKED.get()), (10, Some(9)));
    assert_eq!(LOOKS.take(), [0, 1, 2, 3, 4, 5, 6, 7], "all but the first copy and the last");
    write(disk, 1, 101); // the word is free again
}

/// A reader copies again if the sector was written meanwhile, and takes that copy if it was not.
#[test]
fn a_reader_that_was_overtaken_once_copies_twice() {
    let (looks, _) = looks(
        policy(ReadTracking::Versions, TWO_SETS),
        |disk| write(disk, 1, 1),
        |call| matches!(call, Call::Read(_)),
        |disk| assert!(sector(disk, 1) == [2; SECTOR], "the sector's new block"),
        |disk| write(disk, 1, 2),
    );
    assert_eq!(looks, [], "the second copy is good");
}

/// The write that holds the word of a sector fails, and nobody knows what is durable. Each of two
/// writers that wait for the word is told so.
#[test]
fn all_writers_that_wait_for_one_that_fails_are_told() {
    let (looks, looked) = channel();
    let (has_stopped, stopped) = channel();
    let looked = Shared(Mutex::new(looked));
    let disk = disk(
        policy(ReadTracking::Versions, LaneChoice::Own { sets: 4 }),
        Box::new(move |call| {
            if STOPS.get() && is_fence(&call) {
                STOPS.set(false);
                has_stopped.send(()).expect("a test that waits for the stop");
                // Both have looked, at least once each.
                let mut seen = Vec::new();
                while seen.len() < 2 {
                    let id = looked.recv();
                    seen.extend((!seen.contains(&id)).then_some(id));
                }
                return Err(MediaError::Failed);
            }
            if let Call::Relax(turn) = call {
                // Nobody listens when the write has failed.
                let _ = looks.send(thread::current().id());
                assert!(turn < 1 << 28, "an endless wait");
            }
            Ok(())
        }),
    );
    thread::scope(|scope| {
        scope.spawn(|| {
            STOPS.set(true);
            let failed = disk.worker().write(1, &[1; SECTOR]);
            assert_eq!(failed, Err(IoError::Media(MediaError::Failed)));
        });
        stopped.recv().expect("a thread that stops");
        for _ in 0..2 {
            scope.spawn(|| assert_eq!(disk.worker().write(1, &[2; SECTOR]), Err(IoError::Broken)));
        }
    });
}
