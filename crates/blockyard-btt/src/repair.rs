//! Repairing a BTT: what a [`check`](super::check) found to be certain is written.
//!
//! # Rules
//!
//! - **P1.** A plan is made first, and can be looked at. Nothing in it is a guess: see K3 and K4 of
//!   [`check`](super::check). What is left is what the next check says.
//! - **P2.** A step is durable before the next one begins. If the power goes anywhere, what is there is no
//!   worse: as it was, as it is to be, or still refused; and planning again plans the rest.
//! - **P3.** A lane whose log is written anew counts for nobody until it is whole: its first entry has a
//!   number above 3 meanwhile, which no reader takes, whatever the other one is.
//! - **P4.** That an arena is marked as broken is a fact, whose reason is not written anywhere. The mark is taken
//!   away if that is asked for, and a check finds nothing else that will not have been mended.

use super::address::{PostmapAba, PremapAba};
use super::flog::FlogEntry;
use super::info_block::{InfoBytes, clear_error};
use super::layout::{FLOG_GROUP_BYTES, INFO_BYTES, MAP_ENTRY_BYTES};
use super::map_entry::MapEntry;
use super::memory::{MediaError, Memory};
use alloc::vec::Vec;

/// P3. Linux notices it by a sum of the two that is above 5, and does not overflow.
pub(super) const SEQ_UNREADABLE: u32 = 1 << 16;

/// Something to be written. Arenas are counted from 0; places are bytes of the container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// One info block is written over by the other.
    CopyInfo {
        /// The arena.
        arena: usize,
        /// The whole one.
        from: u64,
        /// The other.
        to: u64,
    },
    /// A write that was cut is finished.
    FinishWrite {
        /// The arena.
        arena: usize,
        /// The sector.
        sector: u64,
        /// Its map entry.
        at: u64,
        /// What it becomes.
        entry: MapEntry,
    },
    /// A lane with one entry gets an older one beside it, so that nobody misreads it; or the number of the
    /// entry it was made with becomes the first again.
    OlderEntry {
        /// The arena.
        arena: usize,
        /// The lane.
        lane: u32,
        /// Where the entry is to be.
        at: u64,
        /// What it is.
        entry: FlogEntry,
    },
    /// A lane gets a block that nobody has for its free one, and its log begins anew.
    ResetLane {
        /// The arena.
        arena: usize,
        /// The lane.
        lane: u32,
        /// The block.
        block: PostmapAba,
        /// Its log group.
        at: u64,
        /// Its first entry.
        entry: FlogEntry,
    },
    /// An arena loses its mark as broken (P4).
    ClearError {
        /// The arena.
        arena: usize,
        /// Its first info block.
        first: u64,
        /// The copy.
        copy: u64,
    },
    /// A sector whose block does not exist gets one that nobody has, and is marked as lost: it can be
    /// written again.
    MarkLost {
        /// The arena.
        arena: usize,
        /// The sector.
        sector: u64,
        /// The block.
        block: PostmapAba,
        /// Its map entry.
        at: u64,
        /// What it becomes.
        entry: MapEntry,
    },
}

impl core::fmt::Display for Step {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::CopyInfo { arena, from, to } => {
                write!(f, "arena {arena}: copy the info block at byte {from} to byte {to}")
            }
            Self::FinishWrite { arena, sector, entry, .. } => {
                let block = entry.block(PremapAba(0));
                write!(f, "arena {arena}: finish the write of sector {sector} to block {block}")
            }
            Self::OlderEntry { arena, lane, entry, .. } => {
                let seq = entry.seq;
                write!(f, "arena {arena}: write a log entry of lane {lane}, with number {seq}")
            }
            Self::ResetLane { arena, lane, block, .. } => {
                write!(f, "arena {arena}: give lane {lane} block {block}, and begin its log anew")
            }
            Self::ClearError { arena, .. } => {
                write!(
                    f,
                    "arena {arena}: take away its mark as broken, as nothing else is wrong with it"
                )
            }
            Self::MarkLost { arena, sector, block, .. } => {
                write!(f, "arena {arena}: give sector {sector} block {block}, marked as lost")
            }
        }
    }
}

/// What a repair does, in order. See the [module](self).
#[derive(Clone, Debug)]
pub struct Plan {
    steps: Vec<Step>,
    /// What is done if it is asked for (P4).
    clear_error: Vec<Step>,
}

impl Plan {
    pub(super) const fn new(steps: Vec<Step>, clear_error: Vec<Step>) -> Self {
        Self { steps, clear_error }
    }

    /// Arenas that are marked as broken lose the mark too, as the last steps, where nothing else is wrong (P4).
    pub fn clear_error_marks(&mut self) {
        self.steps.append(&mut self.clear_error);
    }

    /// The steps.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Does it, in the memory it was made for and that nobody wrote since; `progress` is called after each
    /// step.
    ///
    /// # Errors
    ///
    /// The medium failed: what is done is done, and a new check plans the rest.
    pub fn apply<M: Memory>(
        &self,
        memory: &M,
        progress: &mut dyn FnMut(),
    ) -> Result<(), MediaError> {
        for step in &self.steps {
            step.apply(memory)?;
            progress();
        }
        memory.flush()
    }
}

impl Step {
    fn apply<M: Memory>(&self, memory: &M) -> Result<(), MediaError> {
        match *self {
            Self::CopyInfo { from, to, .. } => {
                let mut bytes: InfoBytes = [0; INFO_BYTES as usize];
                memory.read(from, &mut bytes)?;
                // What the medium lost is mended by zeroes.
                memory.zero(to, INFO_BYTES)?;
                memory.fence()?;
                memory.write(to, &bytes)?;
                memory.fence()
            }
            Self::ClearError { first, copy, .. } => {
                let mut bytes: InfoBytes = [0; INFO_BYTES as usize];
                memory.read(first, &mut bytes)?;
                clear_error(&mut bytes);
                // One of both is whole throughout.
                for at in [copy, first] {
                    memory.write(at, &bytes)?;
                    memory.fence()?;
                }
                Ok(())
            }
            Self::FinishWrite { at, entry, .. } | Self::MarkLost { at, entry, .. } => {
                memory.store(at, entry.0)?;
                memory.write_back(at, MAP_ENTRY_BYTES);
                memory.fence()
            }
            Self::OlderEntry { at, entry, .. } => {
                for (word, at) in entry.words().into_iter().zip([at, at + 8]) {
                    store_long(memory, at, word)?;
                }
                Ok(())
            }
            Self::ResetLane { at, entry, .. } => {
                // P3.
                let unreadable = FlogEntry { seq: SEQ_UNREADABLE, ..entry };
                let [names, _] = entry.words();
                store_long(memory, at + 8, unreadable.words()[1])?;
                store_long(memory, at, names)?;
                for word in (at + 16..at + FLOG_GROUP_BYTES).step_by(8) {
                    memory.store_long(word, 0)?;
                }
                memory.write_back(at, FLOG_GROUP_BYTES);
                memory.fence()?;
                store_long(memory, at + 8, entry.words()[1])
            }
        }
    }
}

/// Stores a word, durable on return.
fn store_long<M: Memory>(memory: &M, at: u64, word: u64) -> Result<(), MediaError> {
    memory.store_long(at, word)?;
    memory.write_back(at, 8);
    memory.fence()
}
