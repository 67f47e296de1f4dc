//! What a BTT does with the words of its own that threads share, told to its [`Memory`]: a model of a
//! machine charges for it, everything else has nothing to do.

use super::device::Btt;
use super::lanes::SetId;
use super::memory::Memory;
use super::readers::BlockId;
use super::versions::{Seen, WordAt};

/// A word beside the medium that threads share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Who has this set of lanes.
    Lanes(u32),
    /// The last set of lanes that anybody took.
    Counter,
    /// Lock and version of the map entries with this number.
    Entries(u32),
    /// What the user of this set of lanes reads.
    Reader(u32),
}

/// What is done to such a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// It was loaded.
    Looked(Word),
    /// It was stored, or exchanged.
    Changed(Word),
    /// It was taken as a lock.
    Held(Word),
    /// It was given back.
    Left(Word),
    /// The words of all readers were loaded, so many.
    LookedThrough(u32),
}

/// The calls of [`Versions`](super::versions::Versions) and [`Readers`](super::readers::Readers), told.
impl<M: Memory> Btt<M> {
    #[inline]
    pub(super) fn see(&self, at: WordAt) -> Seen {
        self.memory.touched(Touch::Looked(at.word()));
        self.versions.see(at)
    }

    #[inline]
    pub(super) fn still(&self, at: WordAt, seen: Seen) -> bool {
        self.memory.touched(Touch::Looked(at.word()));
        self.versions.still(at, seen)
    }

    #[inline]
    pub(super) fn hold_word(&self, at: WordAt, seen: Seen) -> bool {
        let held = self.versions.hold(at, seen);
        if held {
            self.memory.touched(Touch::Held(at.word()));
        }
        held
    }

    #[inline]
    pub(super) fn leave(&self, at: WordAt, seen: Seen) {
        self.memory.touched(Touch::Left(at.word()));
        self.versions.leave(at, seen);
    }

    #[inline]
    pub(super) fn leave_anew(&self, at: WordAt, seen: Seen) {
        self.memory.touched(Touch::Left(at.word()));
        self.versions.leave_anew(at, seen);
    }

    #[inline]
    pub(super) fn leave_changed(&self, at: WordAt, seen: Seen, lba: u64, set: SetId) -> Seen {
        self.memory.touched(Touch::Left(at.word()));
        self.versions.leave_changed(at, seen, lba, set.0)
    }

    #[inline]
    pub(super) fn settle_word(&self, at: WordAt, left: Seen) {
        self.memory.touched(Touch::Changed(at.word()));
        self.versions.settle(at, left);
    }

    #[inline]
    pub(super) fn publish(&self, set: SetId, block: BlockId) {
        self.memory.touched(Touch::Changed(Word::Reader(set.0)));
        self.readers.publish(set.0, block);
    }

    #[inline]
    pub(super) fn clear(&self, set: SetId) {
        self.memory.touched(Touch::Changed(Word::Reader(set.0)));
        self.readers.clear(set.0);
    }

    /// Calls `read` with each block that is being read.
    #[inline]
    pub(super) fn each_reader(&self, read: impl FnMut(BlockId)) {
        self.memory.touched(Touch::LookedThrough(self.lanes.sets()));
        self.readers.each(read);
    }

    /// Whether `block` is being read.
    #[inline]
    pub(super) fn is_read(&self, block: BlockId) -> bool {
        self.memory.touched(Touch::LookedThrough(self.lanes.sets()));
        self.readers.reads(block)
    }
}
