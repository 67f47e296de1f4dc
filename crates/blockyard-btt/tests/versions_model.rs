//! The words of sectors, in every order that the memory model allows. Run with
//! `RUSTFLAGS="--cfg loom" cargo test --release -p blockyard-btt --test versions_model`.
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
        Self {
            versions: Versions::new(),
            entry: AtomicU32::new(0),
            blocks: [new_block(1), new_block(0)],
        }
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

fn new_block(value: u32) -> [AtomicU32; 2] {
    [AtomicU32::new(value), AtomicU32::new(value)]
}

/// Locks the word at `at`, as often as another thread comes first. Returns what the word was, and
/// what `look` found between the load of the word and the lock.
fn lock_after<T>(versions: &Versions, at: WordIndex, look: impl Fn() -> T) -> (Observed, T) {
    loop {
        let seen = versions.observe(at);
        let found = look();
        if versions.try_lock(at, seen) {
            return (seen, found);
        }
        thread::yield_now();
    }
}

fn lock(versions: &Versions, at: WordIndex) -> Observed {
    lock_after(versions, at, || ()).0
}

/// The sector gets another block, and the freed block is written next, with or without a fence of
/// the writer in between. A reader that was not overtaken has a whole block of the sector.
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
                assert_eq!(words, [expected; 2], "[same-version-same-block]");
            }
        })
    };
    medium.write(1, 2);
    let seen = medium.versions.observe(at);
    assert!(medium.versions.try_lock(at, seen), "no other writer");
    medium.entry.store(1, Ordering::Release);
    let _ = medium.versions.unlock_pending(at, seen, 0, 0);
    if fenced {
        fence(Ordering::SeqCst);
    }
    medium.write(0, 3);
    reader.join().expect("reader without a failed assertion");
}

/// [same-version-same-block].
#[test]
fn a_reader_that_was_not_overtaken_has_a_whole_block() {
    loom::model(|| lose_and_write(true));
}

#[test]
#[should_panic(expected = "[same-version-same-block]")]
fn without_a_fence_a_freed_block_is_read() {
    loom::model(|| lose_and_write(false));
}

/// Two writers change the sector's entry, and each frees the block that the other one stored or
/// that was there first ([entry-changed-under-lock]).
#[test]
fn the_holder_of_a_word_knows_the_entry() {
    loom::model(|| {
        let medium = Arc::new(Medium::new());
        let at = Versions::at(0);
        let other = {
            let medium = medium.clone();
            thread::spawn(move || write_block(at, &medium, 10, 0))
        };
        let freed = [write_block(at, &medium, 20, 1), other.join().expect("the other writer")];
        let left = medium.entry.load(Ordering::Acquire);
        assert!(
            freed == [0, 20] && left == 10 || freed == [10, 0] && left == 20,
            "{freed:?} {left}"
        );
    });
}

fn write_block(at: WordIndex, medium: &Medium, block: u32, set: u32) -> u32 {
    let (seen, old) = lock_after(&medium.versions, at, || medium.entry.load(Ordering::Acquire));
    medium.entry.store(block, Ordering::Release);
    let _ = medium.versions.unlock_pending(at, seen, 0, set);
    old
}

const SECTORS: [u64; 2] = [0, 256];

/// Two writers change entries of two sectors of one word. The next holder knows which entry may not
/// be durable ([one-pending-entry]).
#[test]
fn the_holder_of_a_word_knows_the_pending_entry() {
    loom::model(|| {
        let versions = Arc::new(Versions::new());
        let at = Versions::at(SECTORS[0]);
        assert_eq!(at, Versions::at(SECTORS[1]));
        let other = {
            let versions = versions.clone();
            thread::spawn(move || set_pending(at, &versions, 1))
        };
        let left = set_pending(at, &versions, 0);
        let seen = versions.observe(at);
        let pending = versions.pending_of_other_set(at, seen, 2);
        let locked = versions.try_lock(at, seen);
        if locked {
            versions.unlock(at, seen);
        }
        let other = other.join().expect("the other writer");
        if locked {
            let last = if seen == left { SECTORS[0] } else { SECTORS[1] };
            assert!(seen == left || seen == other);
            assert_eq!(pending, Some(last));
        }
    });
}

fn set_pending(at: WordIndex, versions: &Versions, n: u32) -> Observed {
    let seen = lock(versions, at);
    versions.unlock_pending(at, seen, SECTORS[n as usize], n)
}

/// The bit of an entry whose sector reads as zeroes.
const ZEROES: u32 = 0x100;

/// A thread zeroes a sector while another one writes it. The second one finds what the first one
/// left, even if it looked before. In either order, the writer's entry stays marked as pending
/// ([one-pending-entry]).
fn zero_and_write(unlock: fn(&Versions, WordIndex, Observed)) {
    let medium = Arc::new(Medium::new());
    let at = Versions::at(0);
    let zeroer = {
        let medium = medium.clone();
        thread::spawn(move || {
            let seen = lock(&medium.versions, at);
            let entry = medium.entry.load(Ordering::Acquire);
            medium.entry.store(entry | ZEROES, Ordering::Release);
            unlock(&medium.versions, at, seen);
        })
    };
    let (seen, logged) = lock_after(&medium.versions, at, || medium.entry.load(Ordering::Acquire));
    assert_eq!(logged, medium.entry.load(Ordering::Acquire), "[old-entry-still-current]");
    medium.entry.store(1, Ordering::Release);
    let _ = medium.versions.unlock_pending(at, seen, 0, 0);
    zeroer.join().expect("the zeroing thread");
    let left = medium.entry.load(Ordering::Acquire);
    assert!(matches!((logged, left), (0, 1 | 0x101) | (ZEROES, 1)), "{logged:#x} {left:#x}");
    assert_eq!(
        medium.versions.pending_of_other_set(at, medium.versions.observe(at), 1),
        Some(0),
        "[one-pending-entry]"
    );
}

/// [old-entry-still-current].
#[test]
fn zeroes_beside_a_write_of_the_sector() {
    loom::model(|| zero_and_write(Versions::unlock_new_version));
}

#[test]
#[should_panic(expected = "[old-entry-still-current]")]
fn zeroes_without_a_new_version_go_unnoticed() {
    loom::model(|| zero_and_write(Versions::unlock));
}

/// A thread zeroes a sector while another one writes another sector of the word. The writer's entry
/// stays marked as pending until it is durable ([one-pending-entry]).
#[test]
fn zeroes_beside_a_write_of_another_sector() {
    loom::model(|| {
        let versions = Arc::new(Versions::new());
        let at = Versions::at(256);
        let zeroer = {
            let versions = versions.clone();
            thread::spawn(move || {
                let seen = lock(&versions, at);
                versions.unlock_new_version(at, seen);
            })
        };
        let seen = lock(&versions, at);
        let left = versions.unlock_pending(at, seen, 0, 0);
        let pending = versions.pending_of_other_set(at, versions.observe(at), 1);
        assert_eq!(pending, Some(0), "[one-pending-entry]");
        // The zeroing thread may have kept the mark, so the entry is written back once too often.
        versions.clear_pending(at, left);
        zeroer.join().expect("the zeroing thread");
        let seen = versions.observe(at);
        assert!(
            !seen.is_locked()
                && matches!(versions.pending_of_other_set(at, seen, 1), None | Some(0))
        );
    });
}

/// A sector was marked as lost, and its block is zeroed, with or without a fence before, while a
/// reader that started earlier copies the block.
fn repair_and_read(fenced: bool) {
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
                    "[same-version-same-block]: {words:?}"
                );
            }
        })
    };
    change_entry(&medium, at, 2, &|| {});
    change_entry(&medium, at, ZEROES, &|| {
        if fenced {
            fence(Ordering::SeqCst);
        }
        medium.write(0, 0);
    });
    reader.join().expect("reader without a failed assertion");
}

fn change_entry(medium: &Medium, at: WordIndex, entry: u32, repair: &dyn Fn()) {
    let seen = medium.versions.observe(at);
    assert!(medium.versions.try_lock(at, seen), "no other writer");
    repair();
    medium.entry.store(entry, Ordering::Release);
    medium.versions.unlock_new_version(at, seen);
}

#[test]
fn a_block_is_not_read_while_it_is_repaired() {
    loom::model(|| repair_and_read(true));
}

#[test]
#[should_panic(expected = "[same-version-same-block]")]
fn without_a_fence_a_block_is_read_while_it_is_repaired() {
    loom::model(|| repair_and_read(false));
}
