//! The map entries that a thread changed and may not have made durable yet.

use super::versions::{Observed, WordIndex};
use alloc::boxed::Box;

/// Most sectors that go through a set of lanes at once, unless sets are large.
pub(super) const BATCH_MAX: usize = 8;
/// Most of them where sets are large, for memory whose fences are dear: half of all lanes in everything ever seen
/// (`lanes` N2).
pub(super) const LARGE_BATCH_MAX: usize = 128;

/// Words whose map entries this thread changed, and may not have made durable yet (`versions` S3).
#[derive(Debug, Default)]
pub(super) struct Pending {
    left: [(WordIndex, Observed); BATCH_MAX],
    /// Those behind, where batches are larger.
    more: Box<[(WordIndex, Observed)]>,
    len: usize,
}

impl Pending {
    /// For batches of so many sectors.
    pub(super) fn of_batches(most: usize) -> Self {
        let more = core::iter::repeat_n(Default::default(), most.saturating_sub(BATCH_MAX));
        Self { more: more.collect(), ..Self::default() }
    }

    /// How many there can be.
    pub(super) const fn most(&self) -> usize {
        BATCH_MAX + self.more.len()
    }

    /// One more.
    pub(super) fn push(&mut self, at: WordIndex, left: Observed) {
        match self.left.get_mut(self.len) {
            Some(place) => *place = (at, left),
            None => self.more[self.len - BATCH_MAX] = (at, left),
        }
        self.len += 1;
    }

    /// All there are, which are none then.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (WordIndex, Observed)> {
        let len = core::mem::take(&mut self.len);
        self.left.iter().chain(&self.more).take(len).copied()
    }
}
