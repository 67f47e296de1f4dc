//! Repairs a BTT: carries out the corrections that a [`check`](super::check) found to be certain.
//!
//! # Rules
//!
//! - **[repair-steps-durable]** A step is durable before the next one starts. After a power cut
//!   anywhere, the medium is no worse: unchanged, repaired, or still refused. Planning again plans
//!   the rest.
//! - **[rewritten-log-unreadable]** No reader accepts the log of a lane while it is being
//!   rewritten: until the end, its first entry has a number above 3, which no reader accepts,
//!   whatever the other entry is.
//!
//! A plan is made before anything is written, and can be inspected. It contains no guess
//! ([owners-add-up]); the next check reports what is left. An arena's broken mark has no recorded
//! reason. The mark is removed on request, if a check finds nothing else that the repair leaves
//! damaged.

use super::address::{PostmapAba, PremapAba};
use super::flog::FlogEntry;
use super::info_block::{InfoBytes, clear_error};
use super::layout::{FLOG_GROUP_BYTES, INFO_BYTES, MAP_ENTRY_BYTES};
use super::map_entry::MapEntry;
use super::memory::{MediaError, Memory, read_array};
use alloc::vec::Vec;

/// A number that no reader accepts ([rewritten-log-unreadable]). Linux notices that the sum of both
/// numbers is above 5, and the sum does not overflow.
pub(super) const SEQ_UNREADABLE: u32 = 1 << 16;

/// A step of a repair. Arenas are counted from 0; positions are bytes of the container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Overwrites a damaged info block with the other one.
    CopyInfo {
        /// The arena.
        arena: usize,
        /// The position of the whole info block.
        from: u64,
        /// The position of the damaged one.
        to: u64,
    },
    /// Finishes a write that was cut.
    FinishWrite {
        /// The arena.
        arena: usize,
        /// The sector.
        sector: u64,
        /// The position of its map entry.
        at: u64,
        /// The new map entry.
        entry: MapEntry,
    },
    /// Adds an older entry to a lane that has only one, so that no reader misreads the lane; or
    /// sets the number of a formatted entry to 1 again.
    OlderEntry {
        /// The arena.
        arena: usize,
        /// The lane.
        lane: u32,
        /// The position of the entry.
        at: u64,
        /// The new entry.
        entry: FlogEntry,
    },
    /// Gives a lane an unowned block as its free block, and starts its log anew.
    ResetLane {
        /// The arena.
        arena: usize,
        /// The lane.
        lane: u32,
        /// The block.
        block: PostmapAba,
        /// The position of its log group.
        at: u64,
        /// The first entry.
        entry: FlogEntry,
    },
    /// Removes the broken mark of an arena.
    ClearError {
        /// The arena.
        arena: usize,
        /// The position of its first info block.
        first: u64,
        /// The position of the copy.
        copy: u64,
    },
    /// Gives a sector without a valid block an unowned one, and marks the sector as lost. The
    /// sector can then be written again.
    MarkLost {
        /// The arena.
        arena: usize,
        /// The sector.
        sector: u64,
        /// The block.
        block: PostmapAba,
        /// The position of its map entry.
        at: u64,
        /// The new map entry.
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
                let block = entry.block(PremapAba::default());
                write!(f, "arena {arena}: finish the write of sector {sector} to block {block}")
            }
            Self::OlderEntry { arena, lane, entry, .. } => {
                let seq = entry.seq;
                write!(f, "arena {arena}: write a log entry of lane {lane}, with number {seq}")
            }
            Self::ResetLane { arena, lane, block, .. } => {
                write!(f, "arena {arena}: give lane {lane} block {block} and start its log anew")
            }
            Self::ClearError { arena, .. } => {
                write!(
                    f,
                    "arena {arena}: remove its broken mark, because nothing else is wrong with it"
                )
            }
            Self::MarkLost { arena, sector, block, .. } => {
                write!(f, "arena {arena}: give sector {sector} block {block}, marked as lost")
            }
        }
    }
}

/// The steps of a repair, in order. See the [module](self).
#[derive(Clone, Debug)]
pub struct Plan {
    steps: Vec<Step>,
    /// The steps that remove broken marks, carried out only on request.
    clear_error: Vec<Step>,
}

impl Plan {
    pub(super) const fn new(steps: Vec<Step>, clear_error: Vec<Step>) -> Self {
        Self { steps, clear_error }
    }

    /// Adds steps that remove the broken marks of arenas with no other damage.
    pub fn clear_error_marks(&mut self) {
        self.steps.append(&mut self.clear_error);
    }

    /// The steps.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Carries out the plan in the memory that was checked, which nobody has written since. Calls
    /// `progress` after each step.
    ///
    /// # Errors
    ///
    /// Returns the medium's error. The steps before it are done, and a new check plans the rest.
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
                let bytes: InfoBytes = read_array(memory, from)?;
                // Zeroing repairs bytes that the medium lost.
                debug_assert_ne!(from, to, "an info block and its copy");
                memory.zero(to, INFO_BYTES)?;
                memory.fence()?;
                memory.write(to, &bytes)?;
                memory.fence()
            }
            Self::ClearError { first, copy, .. } => {
                let mut bytes: InfoBytes = read_array(memory, first)?;
                clear_error(&mut bytes);
                // One of the two is whole at every moment.
                for at in [copy, first] {
                    memory.write(at, &bytes)?;
                    memory.fence()?;
                }
                Ok(())
            }
            Self::FinishWrite { at, entry, .. } | Self::MarkLost { at, entry, .. } => {
                debug_assert!(at.is_multiple_of(MAP_ENTRY_BYTES), "[words-are-atomic]");
                memory.store(at, entry.0)?;
                memory.write_back(at, MAP_ENTRY_BYTES);
                memory.fence()
            }
            Self::OlderEntry { at, entry, .. } => {
                debug_assert!(matches!(entry.seq, 1..=3), "[sequence-orders-entries]");
                for (word, at) in entry.words().into_iter().zip([at, at + 8]) {
                    store_long(memory, at, word)?;
                }
                Ok(())
            }
            Self::ResetLane { at, entry, .. } => {
                debug_assert!(at.is_multiple_of(FLOG_GROUP_BYTES) && entry.is_unused());
                // [rewritten-log-unreadable]
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

/// Stores a word and makes it durable ([repair-steps-durable]).
fn store_long<M: Memory>(memory: &M, at: u64, word: u64) -> Result<(), MediaError> {
    debug_assert!(at.is_multiple_of(8), "[words-are-atomic]: aligned to eight bytes");
    memory.store_long(at, word)?;
    memory.write_back(at, 8);
    memory.fence()
}
