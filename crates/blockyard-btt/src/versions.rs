//! Locks of map entries, which are also the versions that readers look at.
//!
//! Each sector has one of a fixed number of words. A writer holds it while it changes the sector's map
//! entry, and leaves it with another version; a reader that finds the version it found before was not
//! overtaken.
//!
//! # Rules (model-checked in `tests/btt_versions_model.rs`)
//!
//! - **S1.** While a word is held, only its holder changes map entries of its sectors. Each change that
//!   takes a block from its sector comes with a new version, stored after the entry.
//! - **S2.** A reader that loads the word, then the entry, copies the block, and finds the same version
//!   still, has read what the sector had at one moment in between: the block was its own throughout.
//!   That asks of writers that a block which a sector lost is not written before a fence of the writer
//!   behind its new version.
//! - **S3.** Of all sectors of a word, the entry of the one that was changed last alone may not be durable
//!   yet: a word that was left with `pending` set says which set of lanes changed it, and names the sector.
//!   Another set that is to change any entry of this word makes that one durable before.

use super::padded::Padded;
use super::sync::{AtomicU64, Ordering, fence};
use super::touch::Word as SharedWord;
use alloc::boxed::Box;

/// Words. As many as lanes, which is the most that can be held at a time.
const WORDS: u32 = 256;

const HELD: u64 = 1;
const PENDING: u64 = 2;
const OWNER_SHIFT: u32 = 2;
const OWNER_BITS: u32 = 14;
const VERSION_SHIFT: u32 = OWNER_SHIFT + OWNER_BITS;
const OWNER: u64 = ((1 << OWNER_BITS) - 1) << OWNER_SHIFT;

/// The words of a BTT. See the [module](self).
#[derive(Debug)]
pub struct Versions {
    words: Box<[Padded<Word>; WORDS as usize]>,
}

#[derive(Debug, Default)]
struct Word {
    state: AtomicU64,
    /// The sector whose entry was changed last (S3). Only the holder stores here.
    changed: AtomicU64,
}

/// The place of a sector's word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WordIndex(u32);

impl WordIndex {
    /// What [`Memory`](super::memory::Memory) is told of it by.
    pub(super) const fn word(self) -> SharedWord {
        SharedWord::Entries(self.0)
    }
}

/// A word as it was seen. Compared by version only where readers look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observed(u64);

impl Observed {
    /// Whether somebody holds it.
    #[must_use]
    pub const fn is_locked(self) -> bool {
        self.0 & HELD != 0
    }

    const fn is_pending_of_other_set(self, set: u32) -> bool {
        self.0 & PENDING != 0 && (self.0 & OWNER) >> OWNER_SHIFT != set as u64
    }
}

impl Versions {
    /// Words of which nobody holds any.
    #[must_use]
    pub fn new() -> Self {
        let words: Box<[_]> = (0..WORDS).map(|_| Padded::default()).collect();
        Self { words: words.try_into().expect("they are as many") }
    }

    /// The word of sector `lba` of the device.
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

    /// Looks at a word: what the sector's entry is loaded after.
    #[inline]
    #[must_use]
    pub fn observe(&self, at: WordIndex) -> Observed {
        Observed(self.word(at).load(Ordering::Acquire))
    }

    /// Whether nobody took a block from a sector of this word since it was `seen` (S2): asked after copying.
    #[inline]
    #[must_use]
    pub fn is_unchanged(&self, at: WordIndex, seen: Observed) -> bool {
        fence(Ordering::Acquire);
        self.word(at).load(Ordering::Relaxed) >> VERSION_SHIFT == seen.0 >> VERSION_SHIFT
    }

    /// Holds a word, if it still is as it was `seen`, and not held.
    #[inline]
    #[must_use]
    pub fn try_lock(&self, at: WordIndex, seen: Observed) -> bool {
        let order = (Ordering::Acquire, Ordering::Relaxed);
        !seen.is_locked()
            && self.word(at).compare_exchange(seen.0, seen.0 | HELD, order.0, order.1).is_ok()
    }

    /// Leaves a word that was held, as it was `seen` before: nothing was changed that matters.
    #[inline]
    pub fn unlock(&self, at: WordIndex, seen: Observed) {
        self.word(at).store(seen.0, Ordering::Release);
    }

    /// Leaves a word with a new version, and what is pending as it was: the state of a sector was changed,
    /// and its block stays its own.
    #[inline]
    pub fn unlock_new_version(&self, at: WordIndex, seen: Observed) {
        self.word(at).store(seen.0.wrapping_add(1 << VERSION_SHIFT), Ordering::Release);
    }

    /// The sector whose entry a set of lanes other than `set` changed, and that may not be durable (S3). Right
    /// if the word can be held as it was `seen`.
    #[inline]
    #[must_use]
    pub fn pending_of_other_set(&self, at: WordIndex, seen: Observed, set: u32) -> Option<u64> {
        seen.is_pending_of_other_set(set).then(|| self.changed(at).load(Ordering::Relaxed))
    }

    /// Leaves a word with a new version, and says that lane set `set` has yet to make the entry of sector
    /// `lba` durable.
    #[inline]
    pub fn unlock_pending(&self, at: WordIndex, seen: Observed, lba: u64, set: u32) -> Observed {
        self.changed(at).store(lba, Ordering::Relaxed);
        let version = (seen.0 >> VERSION_SHIFT).wrapping_add(1) << VERSION_SHIFT;
        let left = version | u64::from(set) << OWNER_SHIFT | PENDING;
        self.word(at).store(left, Ordering::Release);
        Observed(left)
    }

    /// What was left so is durable now.
    #[inline]
    pub fn clear_pending(&self, at: WordIndex, left: Observed) {
        let order = Ordering::Relaxed;
        // Whoever changed the word since has seen that it was pending.
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
    fn a_change_gives_a_new_version_and_names_its_owner() {
        let versions = Versions::new();
        let at = Versions::at(1000);
        let seen = versions.observe(at);
        assert!(versions.try_lock(at, seen) && !versions.try_lock(at, seen));
        assert!(!versions.try_lock(at, versions.observe(at)), "held by somebody");
        assert!(versions.is_unchanged(at, seen), "holding changes nothing for readers");
        let left = versions.unlock_pending(at, seen, 1000, 7);
        assert!(!versions.is_unchanged(at, seen));
        assert_eq!(versions.pending_of_other_set(at, left, 8), Some(1000));
        assert_eq!(versions.pending_of_other_set(at, left, 7), None);
        versions.clear_pending(at, left);
        assert_eq!(versions.pending_of_other_set(at, versions.observe(at), 8), None);
        assert!(versions.is_unchanged(at, left), "settling changes nothing for readers");
    }

    #[test]
    fn leaving_without_a_change_shows_nothing() {
        let versions = Versions::new();
        let at = Versions::at(3);
        let seen = versions.observe(at);
        assert!(versions.try_lock(at, seen));
        versions.unlock(at, seen);
        assert_eq!(versions.observe(at), seen);
    }
}
