//! The map entries that a thread changed and may not have made durable yet.

use super::layout::NFREE;
use super::versions::{Observed, WordIndex};
use alloc::boxed::Box;

/// The most sectors that go through a set of lanes at once, unless sets are large.
pub(super) const BATCH_MAX: usize = 8;
/// The same for large sets, which suit memory with expensive fences: half of all lanes in every
/// known implementation ([freed-block-waits-for-fence]).
pub(super) const LARGE_BATCH_MAX: usize = 128;

const _: () = assert!(LARGE_BATCH_MAX == NFREE as usize / 2 && BATCH_MAX < LARGE_BATCH_MAX);

/// The words whose map entries this thread changed, and may not have made durable yet
/// ([one-pending-entry]).
#[derive(Debug, Default)]
pub(super) struct Pending {
    few: [(WordIndex, Observed); BATCH_MAX],
    /// The words beyond the first few, for large batches.
    more: Box<[(WordIndex, Observed)]>,
    len: usize,
}

impl Pending {
    /// Returns an empty list for batches of up to `sectors`.
    pub(super) fn for_batches(sectors: usize) -> Self {
        let more = core::iter::repeat_n(Default::default(), sectors.saturating_sub(BATCH_MAX));
        Self { more: more.collect(), ..Self::default() }
    }

    /// The largest number of words.
    pub(super) const fn capacity(&self) -> usize {
        BATCH_MAX + self.more.len()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a word, which its change `left` like this.
    pub(super) fn push(&mut self, at: WordIndex, left: Observed) {
        debug_assert!(self.len < self.capacity(), "a batch is no larger than its list");
        match self.few.get_mut(self.len) {
            Some(place) => *place = (at, left),
            None => self.more[self.len - BATCH_MAX] = (at, left),
        }
        self.len += 1;
    }

    /// Empties the list, and returns the words that were in it.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (WordIndex, Observed)> {
        let len = core::mem::take(&mut self.len);
        self.few.iter().chain(&self.more).take(len).copied()
    }
}
