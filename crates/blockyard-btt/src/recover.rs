//! What opening an arena finds in its log: the free block of each lane, and writes that were cut.
//!
//! # Rules
//!
//! - **V1.** The newest entry of a lane tells. If its sector still has the old block, the write was cut
//!   between log and map, and is finished: the sector gets the new block. In every other case nothing is
//!   to be done. The old block is the lane's free one.
//! - **V2.** Everything is looked at before anything is written: an arena that is refused is left alone.
//! - **V3.** No two lanes have the same free block.
//! - **V4.** Doing it again finds nothing to do.

use super::address::{PostmapAba, PremapAba};
use super::arena::Arena;
use super::flog::{FlogError, SlotLayout};
use super::layout::MAP_ENTRY_BYTES;
use super::map_entry::{MapEntry, SectorState};
use super::memory::{MediaError, Memory};
use alloc::vec::Vec;

/// What the log says of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveredLane {
    /// The block that no sector has.
    pub free: PostmapAba,
    /// The sector that lost it was marked as lost: the block may be bad.
    pub bad: bool,
    /// The slot of its newest entry.
    pub slot: usize,
    /// The number of its newest entry.
    pub seq: u32,
}

/// A write that was cut between log and map (V1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutWrite {
    /// Its sector.
    pub lba: PremapAba,
    /// The block the sector gets.
    pub block: PostmapAba,
}

/// What an arena's log says.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// Where second entries are.
    pub slots: SlotLayout,
    /// Its lanes.
    pub lanes: Vec<RecoveredLane>,
    /// Writes that are to be finished.
    pub cut_writes: Vec<CutWrite>,
}

/// Why an arena's log is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoverError {
    /// The medium failed.
    Media(MediaError),
    /// The log of a lane cannot be read.
    Flog {
        /// The lane.
        lane: u32,
        /// Why.
        error: FlogError,
    },
    /// Two lanes have the same free block (V3).
    DuplicateFree {
        /// One.
        lane: u32,
        /// The other.
        other: u32,
        /// The block.
        block: PostmapAba,
    },
}

impl core::fmt::Display for RecoverError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Media(error) => error.fmt(f),
            Self::Flog { lane, error } => write!(f, "the log of lane {lane}: {error}"),
            Self::DuplicateFree { lane, other, block } => {
                write!(f, "lanes {lane} and {other} both have block {block} free")
            }
        }
    }
}

impl core::error::Error for RecoverError {}

impl From<MediaError> for RecoverError {
    fn from(error: MediaError) -> Self {
        Self::Media(error)
    }
}

/// Looks at the log of `arena`, whose own `slots` are found and not used. Writes nothing (V2).
///
/// # Errors
///
/// It cannot be read.
pub fn scan<M: Memory>(memory: &M, arena: &Arena) -> Result<Recovered, RecoverError> {
    let slots = slots(memory, arena)?;
    let arena = Arena { slots, ..*arena };
    let mut found = Recovered { slots, lanes: Vec::new(), cut_writes: Vec::new() };
    for lane in 0..arena.layout.nfree {
        let group = arena.read_group(memory, lane)?;
        let (slot, entry) =
            arena.newest(&group).map_err(|error| RecoverError::Flog { lane, error })?;
        if !entry.is_unused()
            && arena.load_map_entry(memory, entry.sector())?.block(entry.sector())
                == entry.old_block()
        {
            found.cut_writes.push(CutWrite { lba: entry.sector(), block: entry.new_block() });
        }
        let bad = MapEntry(entry.old_map).state() == SectorState::Error;
        found.lanes.push(RecoveredLane { free: entry.old_block(), bad, slot, seq: entry.seq });
    }
    unique(&found.lanes)?;
    Ok(found)
}

/// Finishes the writes that were cut.
///
/// # Errors
///
/// Those of the medium; doing it again is right then.
pub fn finish<M: Memory>(memory: &M, arena: &Arena, cut: &[CutWrite]) -> Result<(), MediaError> {
    for &CutWrite { lba, block } in cut {
        memory.store(arena.map_at(lba), MapEntry::normal(block).0)?;
        memory.write_back(arena.map_at(lba), MAP_ENTRY_BYTES);
    }
    if !cut.is_empty() {
        memory.fence()?;
    }
    Ok(())
}

/// Where second entries are: all groups that show it agree.
fn slots<M: Memory>(memory: &M, arena: &Arena) -> Result<SlotLayout, RecoverError> {
    let mut shown = None;
    for lane in 0..arena.layout.nfree {
        let refused = |error| RecoverError::Flog { lane, error };
        match (shown, SlotLayout::shown_by(&arena.read_group(memory, lane)?).map_err(refused)?) {
            (Some(a), Some(b)) if a != b => return Err(refused(FlogError::Padding)),
            (None, found) => shown = found,
            _ => {}
        }
    }
    Ok(shown.unwrap_or(SlotLayout::Standard))
}

/// V3.
fn unique(lanes: &[RecoveredLane]) -> Result<(), RecoverError> {
    let mut free: Vec<_> = (0..).zip(lanes).map(|(lane, found)| (found.free, lane)).collect();
    free.sort_unstable();
    match free.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => {
            let (block, lane) = pair[0];
            Err(RecoverError::DuplicateFree { lane, other: pair[1].1, block })
        }
        None => Ok(()),
    }
}
