//! Words of sectors, in every order in which memory lets threads meet: run by
//! `RUSTFLAGS="--cfg loom" cargo test --release -p blockyard-btt --test btt_versions_model`.
#![cfg(loom)]

use blockyard_btt::versions::{Observed, Versions, WordIndex};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering, fence};
use loom::thread;

/// A sector's entry, and two blocks of two words.
struct Medium {
    versions: Versions,
    entry: AtomicU32,
    blocks: [[AtomicU32; 2]; 2],
}

impl Medium {
    fn new() -> Self {
        let block = |value| [AtomicU32::new(value), AtomicU32::new(value)];
        Self { versions: Versions::new(), entry: AtomicU32::new(0), blocks: [block(1), block(0)] }
    }

    fn write(&self, block: usize, value: u32) {
        for word in &self.blocks[block] {
            word.store(value, Ordering::Relaxed);
        }
    }

    fn read(&self, block: usize) -> [u32; 2] {
        [0, 1].map(|word| self.blocks[block][word].load(Ordering::Relaxed))
    }
}

/// The sector gets another block; the one it lost is written next, behind a fence of the writer or not. A
/// reader that was not overtaken has a whole block of the sector.
fn lose_and_write(fenced: bool) {
    let medium = Arc::new(Medium::new());
    let at = Versions::at(0);
    let reader = {
        let medium = medium.clone();
        thread::spawn(move || {
            let seen = medium.versions.observe(at);
            let entry = medium.entry.load(Ordering::Acquire);
            let words = medium.read(entry as usize);
            if medium.versions.is_unchanged(at, seen) {
                let expected = [1, 2][entry as usize];
                assert_eq!(words, [expected; 2], "S2");
            }
        })
    };
    medium.write(1, 2);
    let seen = medium.versions.observe(at);
    assert!(medium.versions.try_lock(at, seen), "nobody else wants it");
    medium.entry.store(1, Ordering::Release);
    let _ = medium.versions.unlock_pending(at, seen, 0, 0);
    if fenced {
        fence(Ordering::SeqCst);
    }
    medium.write(0, 3);
    reader.join().expect("the reader found nothing");
}

#[test]
fn a_reader_that_was_not_overtaken_has_a_whole_block() {
    loom::model(|| lose_and_write(true));
}

#[test]
#[should_panic(expected = "S2")]
fn without_a_fence_a_lost_block_is_read() {
    loom::model(|| lose_and_write(false));
}

/// Two writers that change the sector's entry: neither takes the block that the other one took.
#[test]
fn who_holds_a_word_knows_its_entry() {
    loom::model(|| {
        let medium = Arc::new(Medium::new());
        let at = Versions::at(0);
        let write = move |medium: &Medium, block: u32, set: u32| {
            loop {
                let seen = medium.versions.observe(at);
                let old = medium.entry.load(Ordering::Acquire);
                if medium.versions.try_lock(at, seen) {
                    medium.entry.store(block, Ordering::Release);
                    let _ = medium.versions.unlock_pending(at, seen, 0, set);
                    return old;
                }
                thread::yield_now();
            }
        };
        let other = {
            let medium = medium.clone();
            thread::spawn(move || write(&medium, 10, 0))
        };
        let lost = [write(&medium, 20, 1), other.join().expect("it writes")];
        let left = medium.entry.load(Ordering::Acquire);
        assert!(lost == [0, 20] && left == 10 || lost == [10, 0] && left == 20, "{lost:?} {left}");
    });
}

/// Two writers change entries of two sectors of one word; whoever holds it next knows which one may not be
/// durable (S3).
#[test]
fn who_holds_a_word_knows_what_is_pending() {
    const SECTORS: [u64; 2] = [0, 256];
    loom::model(|| {
        let versions = Arc::new(Versions::new());
        let at = Versions::at(SECTORS[0]);
        assert_eq!(at, Versions::at(SECTORS[1]));
        let change = move |versions: &Versions, n: u32| {
            loop {
                let seen = versions.observe(at);
                if versions.try_lock(at, seen) {
                    return versions.unlock_pending(at, seen, SECTORS[n as usize], n);
                }
                thread::yield_now();
            }
        };
        let other = {
            let versions = versions.clone();
            thread::spawn(move || change(&versions, 1))
        };
        let left = change(&versions, 0);
        let seen = versions.observe(at);
        let pending = versions.pending_of_other_set(at, seen, 2);
        let held = versions.try_lock(at, seen);
        if held {
            versions.unlock(at, seen);
        }
        let other = other.join().expect("it changes");
        if held {
            let last = if seen == left { SECTORS[0] } else { SECTORS[1] };
            assert!(seen == left || seen == other);
            assert_eq!(pending, Some(last));
        }
    });
}

/// Bit of an entry whose sector reads as zeroes.
const ZEROES: u32 = 0x100;

/// A thread zeroes a sector beside one that writes it: whoever comes second finds what the other one left,
/// though it looked before; and the writer's entry is known to be pending whoever came last (S3).
fn zero_and_write(leave: fn(&Versions, WordIndex, Observed)) {
    let medium = Arc::new(Medium::new());
    let at = Versions::at(0);
    let zeroer = {
        let medium = medium.clone();
        thread::spawn(move || {
            loop {
                let seen = medium.versions.observe(at);
                if medium.versions.try_lock(at, seen) {
                    let entry = medium.entry.load(Ordering::Acquire);
                    medium.entry.store(entry | ZEROES, Ordering::Release);
                    return leave(&medium.versions, at, seen);
                }
                thread::yield_now();
            }
        })
    };
    let logged = loop {
        let seen = medium.versions.observe(at);
        let entry = medium.entry.load(Ordering::Acquire);
        if medium.versions.try_lock(at, seen) {
            assert_eq!(entry, medium.entry.load(Ordering::Acquire), "W4: logged as the old one");
            medium.entry.store(1, Ordering::Release);
            let _ = medium.versions.unlock_pending(at, seen, 0, 0);
            break entry;
        }
        thread::yield_now();
    };
    zeroer.join().expect("it zeroes");
    let left = medium.entry.load(Ordering::Acquire);
    assert!(matches!((logged, left), (0, 1 | 0x101) | (ZEROES, 1)), "{logged:#x} {left:#x}");
    assert_eq!(
        medium.versions.pending_of_other_set(at, medium.versions.observe(at), 1),
        Some(0),
        "S3"
    );
}

#[test]
fn zeroes_beside_a_write_of_the_sector() {
    loom::model(|| zero_and_write(Versions::unlock_new_version));
}

#[test]
#[should_panic(expected = "W4")]
fn zeroes_without_a_new_version_are_not_seen() {
    loom::model(|| zero_and_write(Versions::leave));
}

/// A thread zeroes a sector beside one that writes another one of the word: the writer's entry stays known
/// to be pending, until it is durable (S3).
#[test]
fn zeroes_beside_a_write_of_another_sector() {
    loom::model(|| {
        let versions = Arc::new(Versions::new());
        let at = Versions::at(256);
        let zeroer = {
            let versions = versions.clone();
            thread::spawn(move || {
                loop {
                    let seen = versions.observe(at);
                    if versions.try_lock(at, seen) {
                        return versions.unlock_new_version(at, seen);
                    }
                    thread::yield_now();
                }
            })
        };
        let left = loop {
            let seen = versions.observe(at);
            if versions.try_lock(at, seen) {
                break versions.unlock_pending(at, seen, 0, 0);
            }
            thread::yield_now();
        };
        assert_eq!(versions.pending_of_other_set(at, versions.observe(at), 1), Some(0), "S3");
        // What is not said to be durable because of the zeroes is written back once too often.
        versions.clear_pending(at, left);
        zeroer.join().expect("it zeroes");
        let seen = versions.observe(at);
        assert!(
            !seen.is_locked()
                && matches!(versions.pending_of_other_set(at, seen, 1), None | Some(0))
        );
    });
}

/// A sector was marked as lost, and its block is zeroed, while a reader from before copies it: behind a
/// fence or not.
fn mend_and_read(fenced: bool) {
    let medium = Arc::new(Medium::new());
    let at = Versions::at(0);
    let reader = {
        let medium = medium.clone();
        thread::spawn(move || {
            let seen = medium.versions.observe(at);
            if medium.entry.load(Ordering::Acquire) == 0 {
                let words = medium.read(0);
                assert!(
                    !medium.versions.is_unchanged(at, seen) || words == [1; 2],
                    "S2: {words:?}"
                );
            }
        })
    };
    let change = |entry: u32, mend: &dyn Fn()| {
        let seen = medium.versions.observe(at);
        assert!(medium.versions.try_lock(at, seen), "nobody else wants it");
        mend();
        medium.entry.store(entry, Ordering::Release);
        medium.versions.unlock_new_version(at, seen);
    };
    change(2, &|| {});
    change(ZEROES, &|| {
        if fenced {
            fence(Ordering::SeqCst);
        }
        medium.write(0, 0);
    });
    reader.join().expect("the reader found nothing");
}

#[test]
fn a_block_that_is_mended_is_not_read() {
    loom::model(|| mend_and_read(true));
}

#[test]
#[should_panic(expected = "S2")]
fn without_a_fence_a_block_that_is_mended_is_read() {
    loom::model(|| mend_and_read(false));
}
