//! Every access of a BTT to its shared words, reported to its memory.

use super::device::Btt;
use super::lanes::SetId;
use super::memory::Memory;
use super::readers::BlockId;
use super::touch::{Touch, Word};
use super::versions::{Observed, WordIndex};

/// The calls of [`Versions`](super::versions::Versions) and [`Readers`](super::readers::Readers),
/// reported.
impl<M: Memory> Btt<M> {
    #[inline]
    pub(super) fn observe(&self, at: WordIndex) -> Observed {
        self.memory.touched(Touch::Loaded(at.word()));
        self.versions.observe(at)
    }

    #[inline]
    pub(super) fn is_unchanged(&self, at: WordIndex, seen: Observed) -> bool {
        self.memory.touched(Touch::Loaded(at.word()));
        self.versions.is_unchanged(at, seen)
    }

    #[inline]
    pub(super) fn try_lock(&self, at: WordIndex, seen: Observed) -> bool {
        let held = self.versions.try_lock(at, seen);
        if held {
            self.memory.touched(Touch::Locked(at.word()));
        }
        held
    }

    #[inline]
    pub(super) fn unlock(&self, at: WordIndex, seen: Observed) {
        self.memory.touched(Touch::Unlocked(at.word()));
        self.versions.unlock(at, seen);
    }

    #[inline]
    pub(super) fn unlock_new_version(&self, at: WordIndex, seen: Observed) {
        self.memory.touched(Touch::Unlocked(at.word()));
        self.versions.unlock_new_version(at, seen);
    }

    #[inline]
    pub(super) fn unlock_pending(
        &self,
        at: WordIndex,
        seen: Observed,
        lba: u64,
        set: SetId,
    ) -> Observed {
        self.memory.touched(Touch::Unlocked(at.word()));
        self.versions.unlock_pending(at, seen, lba, set.0)
    }

    #[inline]
    pub(super) fn clear_pending(&self, at: WordIndex, left: Observed) {
        self.memory.touched(Touch::Stored(at.word()));
        self.versions.clear_pending(at, left);
    }

    #[inline]
    pub(super) fn publish(&self, set: SetId, block: BlockId) {
        self.memory.touched(Touch::Stored(Word::Reader(set.0)));
        self.readers.publish(set.0, block);
    }

    #[inline]
    pub(super) fn clear(&self, set: SetId) {
        self.memory.touched(Touch::Stored(Word::Reader(set.0)));
        self.readers.clear(set.0);
    }

    /// Calls `read` with each block that is being read.
    #[inline]
    pub(super) fn each_reader(&self, read: impl FnMut(BlockId)) {
        self.memory.touched(Touch::ScannedReaders(self.lanes.sets()));
        self.readers.each(read);
    }

    /// Whether `block` is being read.
    #[inline]
    pub(super) fn is_read(&self, block: BlockId) -> bool {
        self.memory.touched(Touch::ScannedReaders(self.lanes.sets()));
        self.readers.reads(block)
    }
}
