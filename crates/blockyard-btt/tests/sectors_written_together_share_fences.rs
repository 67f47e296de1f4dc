//! The number of fences of a write: two for a batch, however many sectors it has, unless two of
//! them need the same word.

mod intercepted_memory;

use blockyard_btt::ram::Ram;
use blockyard_btt::{
    Btt, IoError, LaneChoice, MediaError, Memory, Policy, ReadTracking, Touch, Word,
};
use core::cell::RefCell;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use intercepted_memory::{Call, Intercepted};
use std::sync::{Mutex, mpsc};
use std::thread;

const SECTOR: usize = 512;

fn create<M: Memory>(memory: M, sets: u32) -> Btt<M> {
    let policy = Policy { tracking: ReadTracking::Versions, lanes: LaneChoice::Own { sets } };
    intercepted_memory::create(memory, policy)
}

/// Counts the fences for sectors that are written together by a thread with one of `sets` sets to
/// itself.
fn fences(sets: u32, lbas: impl IntoIterator<Item = u64>) -> u32 {
    let fences = AtomicU32::new(0);
    let btt = create(
        Intercepted {
            memory: Ram::new(16 << 20),
            intercept: |call| {
                if let Call::Fence = call {
                    fences.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            },
        },
        sets,
    );
    let mut worker = btt.worker();
    let all: Vec<_> = (1..).zip(lbas).map(|(nth, lba)| (lba, [nth; SECTOR])).collect();
    let many: Vec<_> = all.iter().map(|(lba, sector)| (*lba, &sector[..])).collect();
    let before = fences.load(Ordering::Relaxed);
    worker.write_many(&many).expect("write to ram");
    let count = fences.load(Ordering::Relaxed) - before;
    for (lba, _) in &all {
        let (_, last) = all.iter().rfind(|(one, _)| one == lba).expect("write of this sector");
        let mut found = [0; SECTOR];
        worker.read(*lba, &mut found).expect("read from ram");
        assert_eq!(found, *last, "sector {lba}");
    }
    count
}

#[test]
fn a_batch_is_half_of_a_set() {
    assert_eq!(fences(2, 0..1), 2);
    assert_eq!(fences(2, 0..64), 2);
    assert_eq!(fences(2, 0..65), 4);
    assert_eq!(fences(2, 0..200), 8);
    assert_eq!(fences(16, 0..64), 2 * 64 / 8);
}

const MAP: u64 = 16_625_664;
const LOG: u64 = 16_756_736;

/// The words of a log entry and the map entry are written back, and nothing else
/// ([data-before-log], [log-before-map]). Before them comes a map entry that another thread
/// changed, of this sector or of one with the same word ([map-before-next-log]). The positions are
/// from the format's table of images.
#[test]
fn a_write_writes_back_the_words_that_it_stores() {
    let calls = Mutex::new(Vec::new());
    // The set of the first thread has the lanes from 0 on, and that of the second one from 16 on.
    let btt = create(
        Intercepted {
            memory: Ram::new(16 << 20),
            intercept: |call| {
                let mut calls = calls.lock().expect("no panic");
                match call {
                    Call::WriteBack(bytes) => calls.push(Some(bytes)),
                    Call::Fence => calls.push(None),
                    _ => {}
                }
                Ok(())
            },
        },
        16,
    );
    let mut workers = [btt.worker(), btt.worker()];
    take_calls(&calls);
    workers[0].write(9, &[7; SECTOR]).expect("write to ram");
    let [first, second] = log_words(0);
    assert_eq!(take_calls(&calls), [first, None, second, None, map_entry(9)]);
    workers[1].write(9 + 256, &[7; SECTOR]).expect("write to ram");
    let [first, second] = log_words(16);
    assert_eq!(take_calls(&calls), [map_entry(9), first, None, second, None, map_entry(9 + 256)]);
    workers[1].set_zero(20, 1).expect("zeroing in ram");
    assert_eq!(take_calls(&calls), [map_entry(20), None]);
    workers[0].write(20, &[7; SECTOR]).expect("write to ram");
    let [first, second] = log_words(1);
    assert_eq!(take_calls(&calls), [map_entry(20), first, None, second, None, map_entry(20)]);
    drop(workers);
    assert_eq!(take_calls(&calls), [None, None], "[handed-over-set-durable]");
}

fn take_calls(calls: &Mutex<Vec<Option<Range<u64>>>>) -> Vec<Option<Range<u64>>> {
    core::mem::take(&mut *calls.lock().expect("no panic"))
}

fn map_entry(lba: u64) -> Option<Range<u64>> {
    Some(MAP + lba * 4..MAP + lba * 4 + 4)
}

/// The second entry of a lane.
fn log_words(lane: u64) -> [Option<Range<u64>>; 2] {
    [16, 24].map(|at| LOG + lane * 64 + at).map(|at| Some(at..at + 8))
}

/// [zero-found-is-durable]: a sector that is zeroed already needs no fence, but for one whose own
/// fence is still to come. That of a call that failed never comes.
#[test]
fn a_sector_is_zeroed_once_unless_its_fence_is_still_to_come() {
    let fences = AtomicU32::new(0);
    let fails = AtomicBool::new(false);
    // The first call that takes it tells that it has come to its fence, and waits there.
    let stop: Mutex<Option<(mpsc::Sender<()>, mpsc::Receiver<()>)>> = Mutex::new(None);
    let btt = create(
        Intercepted {
            memory: Ram::new(16 << 20),
            intercept: |call| {
                if let Call::Fence = call {
                    fences.fetch_add(1, Ordering::Relaxed);
                    if fails.load(Ordering::Relaxed) {
                        return Err(MediaError::Failed);
                    }
                    if let Some((here, go)) = { stop.lock().expect("no panic").take() } {
                        here.send(()).expect("somebody waits");
                        go.recv().expect("somebody lets it go");
                    }
                }
                Ok(())
            },
        },
        16,
    );
    assert_eq!(zero_and_count(&btt, &fences, 7, 3), (Ok(()), 1));
    assert_eq!(zero_and_count(&btt, &fences, 7, 3), (Ok(()), 0), "all are zeroed");
    assert_eq!(zero_and_count(&btt, &fences, 7, 4), (Ok(()), 1), "one is not");
    btt.write(8, &[7; SECTOR]).expect("write to ram");
    assert_eq!(zero_and_count(&btt, &fences, 7, 3), (Ok(()), 1), "one was written");
    let (here, came) = mpsc::channel();
    let (go, wait) = mpsc::channel();
    *stop.lock().expect("no panic") = Some((here, wait));
    thread::scope(|scope| {
        scope.spawn(|| btt.set_zero(15, 1).expect("zeroing in ram"));
        came.recv().expect("it comes to its fence");
        let meanwhile = zero_and_count(&btt, &fences, 15, 1);
        go.send(()).expect("it waits");
        assert_eq!(meanwhile, (Ok(()), 1), "the entry is stored, and perhaps not durable");
    });
    assert_eq!(zero_and_count(&btt, &fences, 15, 1), (Ok(()), 0));
    fails.store(true, Ordering::Relaxed);
    assert_eq!(zero_and_count(&btt, &fences, 20, 1), (Err(IoError::Media(MediaError::Failed)), 1));
    fails.store(false, Ordering::Relaxed);
    assert_eq!(zero_and_count(&btt, &fences, 20, 1), (Ok(()), 1), "its fence failed");
}

fn zero_and_count(
    btt: &Btt<impl Memory>,
    fences: &AtomicU32,
    lba: u64,
    count: u64,
) -> (Result<(), IoError>, u32) {
    fences.store(0, Ordering::Relaxed);
    let done = btt.set_zero(lba, count);
    (done, fences.load(Ordering::Relaxed))
}

/// Sectors 256 apart share a word. The sectors in between do not wait for them.
#[test]
fn sectors_that_share_a_word_take_turns() {
    assert_eq!(fences(2, (0..64).map(|nth| nth / 2 + nth % 2 * 256)), 4);
    assert_eq!(fences(2, (0..64).map(|nth| nth % 4 * 256 + nth / 4)), 8);
    assert_eq!(fences(2, [7; 10]), 20, "one sector, ten times");
    assert_eq!(fences(2, [7, 8, 7, 9, 7, 8]), 6);
    assert_eq!(fences(2, [7, 7, 7, 8]), 6, "waiting sectors stay in order");
}

/// A lock between two write-backs waits for the first of them.
#[test]
fn a_batch_writes_its_log_back_before_it_locks_a_word() {
    let calls = RefCell::new(String::new());
    let btt = create(
        Intercepted {
            memory: Ram::new(16 << 20),
            intercept: |call| {
                match call {
                    Call::WriteBack(_) => calls.borrow_mut().push('b'),
                    Call::Touched(Touch::Locked(Word::Entries(_))) => calls.borrow_mut().push('l'),
                    Call::Fence => calls.borrow_mut().push('f'),
                    _ => {}
                }
                Ok(())
            },
        },
        2,
    );
    calls.borrow_mut().clear();
    let many: Vec<_> = (0..3).map(|lba| (lba, &[7; SECTOR][..])).collect();
    btt.worker().write_many(&many).expect("write to ram");
    // First words, locks, second words, map entries, and the fence of a worker that ends.
    assert_eq!(calls.take(), "bbblllfbbbfbbbf");
}

/// Map entries are loaded before a word is locked.
#[test]
fn a_sector_without_a_map_entry_leaves_no_other_one_locked() {
    let loads_left = AtomicU32::new(u32::MAX);
    let btt = create(
        Intercepted {
            memory: Ram::new(16 << 20),
            intercept: |call| match call {
                Call::Load(_) if loads_left.load(Ordering::Relaxed) == 0 => Err(MediaError::Failed),
                Call::Load(_) => {
                    loads_left.fetch_sub(1, Ordering::Relaxed);
                    Ok(())
                }
                Call::Relax(_) => panic!("no other thread is at work"),
                _ => Ok(()),
            },
        },
        2,
    );
    let mut worker = btt.worker();
    loads_left.store(2, Ordering::Relaxed);
    let many: Vec<_> = (0..3).map(|lba| (lba, &[7; SECTOR][..])).collect();
    assert_eq!(worker.write_many(&many), Err(IoError::Media(MediaError::Failed)));
    loads_left.store(u32::MAX, Ordering::Relaxed);
    worker.write_many(&many).expect("write to ram");
}

/// While a batch locks its second word, a write of another thread fails, so that the BTT is broken.
#[test]
fn a_batch_that_finds_the_btt_broken_unlocks_all_its_words() {
    let (go, may_fail) = mpsc::channel();
    let (ended, has_failed) = mpsc::channel();
    let has_failed = Mutex::new(has_failed);
    let batch = thread::current().id();
    let held = Mutex::new(Vec::new());
    let btt = create(
        Intercepted {
            memory: Ram::new(16 << 20),
            intercept: move |call| {
                if thread::current().id() != batch {
                    return if let Call::Fence = call { Err(MediaError::Failed) } else { Ok(()) };
                }
                let mut held = held.lock().expect("no panic");
                match call {
                    Call::Touched(Touch::Locked(Word::Entries(word))) => {
                        held.push(word);
                        if held.len() == 2 {
                            go.send(()).expect("a writer that fails");
                            has_failed.lock().expect("no panic").recv().expect("a failed write");
                        }
                    }
                    Call::Touched(Touch::Unlocked(Word::Entries(word))) => {
                        held.retain(|one| *one != word)
                    }
                    Call::Fence => {
                        assert!(held.is_empty(), "words {held:?} are locked after the batch")
                    }
                    _ => {}
                }
                Ok(())
            },
        },
        2,
    );
    let btt = &btt;
    thread::scope(|scope| {
        scope.spawn(move || {
            may_fail.recv().expect("a batch with two words");
            let failed = btt.worker().write(100, &[1; SECTOR]);
            ended.send(()).expect("a batch that waits");
            assert_eq!(failed, Err(IoError::Media(MediaError::Failed)));
        });
        let many: Vec<_> = (0..3).map(|lba| (lba, &[7; SECTOR][..])).collect();
        assert_eq!(btt.worker().write_many(&many), Err(IoError::Broken));
    });
    // From then on, nothing changes a sector, and all can be read.
    assert!(btt.health().is_broken);
    assert_eq!(btt.worker().write(5, &[7; SECTOR]), Err(IoError::Broken));
    assert_eq!(btt.worker().set_zero(5, 1), Err(IoError::Broken));
    assert_eq!(btt.set_error(5), Err(IoError::Broken));
    btt.worker().read(5, &mut [1; SECTOR]).expect("a sector of a broken BTT");
}

#[test]
fn each_sector_has_the_length_of_a_sector() {
    let btt = create(Ram::new(16 << 20), 2);
    let mut worker = btt.worker();
    for bytes in [0, SECTOR - 1, SECTOR + 1, 2 * SECTOR] {
        let from = vec![1; bytes];
        let mut to = vec![1; bytes];
        assert_eq!(worker.write_many(&[(0, &from)]), Err(IoError::Length), "{bytes} bytes");
        assert_eq!(worker.read_many(&mut [(0, &mut to)]), Err(IoError::Length), "{bytes} bytes");
    }
}

/// A sector is written twice in a batch. Another thread holds its word when the first write is to
/// be logged, and no longer when the second one is: the second write must not come first
/// ([lock-holder-never-waits]).
#[test]
fn the_later_of_two_writes_wins_despite_a_locked_word() {
    let (in_fence, is_in_fence) = mpsc::channel();
    let (go, may_go) = mpsc::channel::<()>();
    let (ended, has_ended) = mpsc::channel::<()>();
    let may_go = Mutex::new(may_go);
    let has_ended = Mutex::new(has_ended);
    let map_entry_2 = AtomicU32::new(0);
    let btt = &create(
        Intercepted {
            memory: Ram::new(16 << 20),
            intercept: |call| {
                match (call, std::thread::current().name()) {
                    (Call::Fence, Some("in the way")) => {
                        // The receiver is gone after the first fence.
                        let _ = in_fence.send(());
                        let _ = may_go.lock().expect("no panic").recv();
                    }
                    (Call::Load(at), Some("batch"))
                        if at == u64::from(map_entry_2.load(Ordering::Relaxed)) =>
                    {
                        // Two fences of the write, and one at its end.
                        for _ in 0..3 {
                            let _ = go.send(());
                        }
                        let _ = has_ended.lock().expect("no panic").recv();
                    }
                    _ => {}
                };
                Ok(())
            },
        },
        2,
    );
    let arena =
        blockyard_btt::find::find(btt.memory(), blockyard_btt::Container::LabelledNamespace, None)
            .expect("BTT that was just created")[0];
    let at = arena.start + arena.info.layout.mapoff + 2 * 4;
    map_entry_2.store(u32::try_from(at).expect("position within 16 MiB"), Ordering::Relaxed);
    std::thread::scope(|scope| {
        named_thread("in the way")
            .spawn_scoped(scope, move || {
                btt.worker().write(7, &[1; SECTOR]).expect("write to ram");
                ended.send(()).expect("receiver that waits for the end");
            })
            .expect("a new thread");
        is_in_fence.recv().expect("message from the thread in the way");
        named_thread("batch")
            .spawn_scoped(scope, move || {
                let sector = [2, 3, 4, 5].map(|byte| [byte; SECTOR]);
                let many = [(1, &sector[0][..]), (7, &sector[1]), (2, &sector[2]), (7, &sector[3])];
                btt.worker().write_many(&many).expect("write to ram");
            })
            .expect("a new thread");
    });
    let mut found = [0; SECTOR];
    btt.read(7, &mut found).expect("read from ram");
    assert_eq!(found, [5; SECTOR]);
}

fn named_thread(name: &str) -> std::thread::Builder {
    std::thread::Builder::new().name(name.to_owned())
}
