//! The locks of map entries, which are also the versions that readers compare.
//!
//! Each sector belongs to one of a fixed number of words. A writer locks the word while it changes
//! the sector's map entry, and unlocks it with a new version. A reader that finds an unchanged
//! version was not overtaken by a write.
//!
//! # Rules (model-checked in `tests/versions_model.rs`)
//!
//! - **[entry-changed-under-lock]** While a word is locked, only the lock's holder changes map
//!   entries of its sectors. Each change that takes a block from its sector comes with a new
//!   version, stored after the entry.
//! - **[same-version-same-block]** A reader that loads the word, then the entry, copies the block,
//!   and then finds the same version has read the sector as it was at one moment in between: the
//!   block was the sector's throughout. For this, a writer must not write a freed block before its
//!   next fence after the new version.
//! - **[one-pending-entry]** Of all sectors of a word, only the entry that was changed last may not
//!   be durable yet. A word with the `pending` bit names the sector and the set of lanes that
//!   changed it. Another set makes that entry durable before it changes any entry of the word.

use super::layout::NFREE_MAX;
use super::padded::Padded;
use super::sync::{AtomicU64, Ordering, fence};
use super::touch::Word as SharedWord;
use alloc::boxed::Box;

/// Number of words: as many as lanes, which limits how many can be locked at a time.
const WORDS: u32 = 256;

const LOCKED: u64 = 1;
const PENDING: u64 = 2;
const OWNER_SHIFT: u32 = 2;
const OWNER_BITS: u32 = 14;
const VERSION_SHIFT: u32 = OWNER_SHIFT + OWNER_BITS;
const OWNER: u64 = ((1 << OWNER_BITS) - 1) << OWNER_SHIFT;

const _: () = assert!(NFREE_MAX <= 1 << OWNER_BITS, "an owner is a set of lanes");

/// The words of an open BTT. See the [module](self).
#[derive(Debug)]
pub struct Versions {
    words: Box<[Padded<Word>; WORDS as usize]>,
}

#[derive(Debug, Default)]
struct Word {
    state: AtomicU64,
    /// The sector whose entry was changed last ([one-pending-entry]). Only the lock's holder stores
    /// it.
    changed: AtomicU64,
}

/// The number of a sector's word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WordIndex(u32);

impl WordIndex {
    /// The name under which accesses to the word are reported.
    pub(super) const fn word(self) -> SharedWord {
        SharedWord::Entries(self.0)
    }
}

/// The value of a word at the time of a load. Readers compare only its version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observed(u64);

impl Observed {
    /// Whether a writer held the lock.
    #[must_use]
    pub const fn is_locked(self) -> bool {
        self.0 & LOCKED != 0
    }

    const fn is_pending_of_other_set(self, set: u32) -> bool {
        self.0 & PENDING != 0 && (self.0 & OWNER) >> OWNER_SHIFT != set as u64
    }
}

impl Versions {
    /// Returns unlocked words.
    #[must_use]
    pub fn new() -> Self {
        let words: Box<[_]> = (0..WORDS).map(|_| Padded::default()).collect();
        Self { words: words.try_into().expect("exactly WORDS words") }
    }

    /// Returns the word of the device's sector `lba`.
    #[inline]
    #[must_use]
    pub const fn at(lba: u64) -> WordIndex {
        WordIndex(lba as u32 % WORDS)
    }

    #[inline]
    fn word(&self, at: WordIndex) -> &AtomicU64 {
        &self.words[at.0 as usize].0.state
    }

    #[inline]
    fn changed(&self, at: WordIndex) -> &AtomicU64 {
        &self.words[at.0 as usize].0.changed
    }

    /// Loads a word. Call this before loading the sector's entry.
    #[inline]
    #[must_use]
    pub fn observe(&self, at: WordIndex) -> Observed {
        Observed(self.word(at).load(Ordering::Acquire))
    }

    /// Whether no sector of this word lost its block since `seen` was loaded
    /// ([same-version-same-block]). Call this after copying.
    #[inline]
    #[must_use]
    pub fn is_unchanged(&self, at: WordIndex, seen: Observed) -> bool {
        fence(Ordering::Acquire);
        self.word(at).load(Ordering::Relaxed) >> VERSION_SHIFT == seen.0 >> VERSION_SHIFT
    }

    /// Locks a word if it is unlocked and still equals `seen`.
    #[inline]
    #[must_use]
    pub fn try_lock(&self, at: WordIndex, seen: Observed) -> bool {
        let order = (Ordering::Acquire, Ordering::Relaxed);
        !seen.is_locked()
            && self.word(at).compare_exchange(seen.0, seen.0 | LOCKED, order.0, order.1).is_ok()
    }

    /// Asserts that the caller holds the lock that it took when the word was `seen`.
    #[inline]
    fn assert_locked_from(&self, at: WordIndex, seen: Observed) {
        debug_assert!(!seen.is_locked(), "[entry-changed-under-lock]: a free word was locked");
        debug_assert_eq!(
            self.word(at).load(Ordering::Relaxed),
            seen.0 | LOCKED,
            "[entry-changed-under-lock]: only the holder changes a locked word"
        );
    }

    /// Unlocks a word without a new version: the sector keeps its block and its data.
    #[inline]
    pub fn unlock(&self, at: WordIndex, seen: Observed) {
        self.assert_locked_from(at, seen);
        self.word(at).store(seen.0, Ordering::Release);
    }

    /// Unlocks a word with a new version and an unchanged pending bit: the sector's state changed,
    /// and the sector keeps its block.
    #[inline]
    pub fn unlock_new_version(&self, at: WordIndex, seen: Observed) {
        self.assert_locked_from(at, seen);
        self.word(at).store(seen.0.wrapping_add(1 << VERSION_SHIFT), Ordering::Release);
    }

    /// Returns the sector whose entry was changed by a set of lanes other than `set`, and may not
    /// be durable ([one-pending-entry]). The result holds if the word can then be locked from
    /// `seen`.
    #[inline]
    #[must_use]
    pub fn pending_of_other_set(&self, at: WordIndex, seen: Observed, set: u32) -> Option<u64> {
        seen.is_pending_of_other_set(set).then(|| self.changed(at).load(Ordering::Relaxed))
    }

    /// Unlocks a word with a new version, and records that lane set `set` must still make the entry
    /// of sector `lba` durable.
    #[inline]
    pub fn unlock_pending(&self, at: WordIndex, seen: Observed, lba: u64, set: u32) -> Observed {
        self.assert_locked_from(at, seen);
        debug_assert!(set < 1 << OWNER_BITS, "number of a set of lanes");
        self.changed(at).store(lba, Ordering::Relaxed);
        let version = (seen.0 >> VERSION_SHIFT).wrapping_add(1) << VERSION_SHIFT;
        let left = version | u64::from(set) << OWNER_SHIFT | PENDING;
        self.word(at).store(left, Ordering::Release);
        Observed(left)
    }

    /// Records that the change after which the word was `left` is durable now.
    #[inline]
    pub fn clear_pending(&self, at: WordIndex, left: Observed) {
        debug_assert!(left.0 & PENDING != 0, "[one-pending-entry]: only a pending change ends");
        let order = Ordering::Relaxed;
        // A thread that has changed the word since then saw the pending bit.
        let _ = self.word(at).compare_exchange(left.0, left.0 & !PENDING, order, order);
    }
}

impl Default for Versions {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_change_makes_a_new_version_and_names_its_owner() {
        let versions = Versions::new();
        let at = Versions::at(1000);
        let seen = versions.observe(at);
        assert!(versions.try_lock(at, seen) && !versions.try_lock(at, seen));
        assert!(!versions.try_lock(at, versions.observe(at)), "already locked");
        assert!(versions.is_unchanged(at, seen), "a lock alone is no change for readers");
        let left = versions.unlock_pending(at, seen, 1000, 7);
        assert!(!versions.is_unchanged(at, seen));
        assert_eq!(versions.pending_of_other_set(at, left, 8), Some(1000));
        assert_eq!(versions.pending_of_other_set(at, left, 7), None);
        versions.clear_pending(at, left);
        assert_eq!(versions.pending_of_other_set(at, versions.observe(at), 8), None);
        assert!(versions.is_unchanged(at, left), "durability is no change for readers");
    }

    #[test]
    fn each_change_is_the_next_version() {
        let versions = Versions::new();
        let at = Versions::at(4);
        for change in 0..6 {
            let seen = versions.observe(at);
            assert_eq!(seen.0 >> VERSION_SHIFT, change);
            assert!(versions.try_lock(at, seen));
            if change % 2 == 0 {
                versions.unlock_pending(at, seen, 4, 1);
            } else {
                versions.unlock_new_version(at, seen);
            }
        }
    }

    #[test]
    fn an_unlock_without_a_change_leaves_no_trace() {
        let versions = Versions::new();
        let at = Versions::at(3);
        let seen = versions.observe(at);
        assert!(versions.try_lock(at, seen));
        versions.unlock(at, seen);
        assert_eq!(versions.observe(at), seen);
    }
}
