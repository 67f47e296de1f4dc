//! Recovery: finds the free block of each lane and the writes that were cut, and finishes those
//! writes. A second recovery finds nothing to do.
//!
//! # Rules
//!
//! - If the sector of a lane's newest entry still has its old block, the write was cut between log
//!   and map, and recovery gives the sector its new block. Otherwise nothing is to be done. The
//!   entry's old block is the lane's free block.
//! - **[refused-arena-untouched]** Everything is read before anything is written. A refused arena
//!   is unchanged.
//! - **[free-blocks-distinct]** No two lanes have the same free block.

use super::address::{PostmapAba, PremapAba};
use super::arena::Arena;
use super::flog::{FlogError, SlotLayout};
use super::layout::MAP_ENTRY_BYTES;
use super::map_entry::{MapEntry, SectorState};
use super::memory::{MediaError, Memory};
use alloc::vec::Vec;

/// The state of a lane according to its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveredLane {
    /// The free block.
    pub free: PostmapAba,
    /// The free block may be bad: its former sector was marked as lost.
    pub bad: bool,
    /// The slot of the newest entry.
    pub slot: usize,
    /// The sequence number of the newest entry.
    pub seq: u32,
}

/// A write that was cut between log and map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutWrite {
    /// The sector.
    pub lba: PremapAba,
    /// The new block of the sector.
    pub block: PostmapAba,
}

/// The state of an arena according to its log.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// The position of second entries.
    pub slots: SlotLayout,
    /// The lanes, by number.
    pub lanes: Vec<RecoveredLane>,
    /// The writes to finish.
    pub cut_writes: Vec<CutWrite>,
}

/// Why the log of an arena was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoverError {
    /// The medium failed.
    Media(MediaError),
    /// The log of a lane is invalid.
    Flog {
        /// The lane.
        lane: u32,
        /// The reason.
        error: FlogError,
    },
    /// Two lanes have the same free block ([free-blocks-distinct]).
    DuplicateFree {
        /// The first lane.
        lane: u32,
        /// The second lane.
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
                write!(f, "lanes {lane} and {other} have the same free block {block}")
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

/// Reads the log of `arena` and finds its slot layout; `arena.slots` is ignored. Writes nothing
/// ([refused-arena-untouched]).
///
/// # Errors
///
/// The medium failed, or the log is invalid.
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
    debug_assert!(found.cut_writes.len() <= found.lanes.len(), "one cut write per lane");
    check_distinct(&found.lanes)?;
    Ok(found)
}

/// Finishes the writes that were cut.
///
/// # Errors
///
/// Returns the medium's error. Recovery can then be repeated.
pub fn finish<M: Memory>(memory: &M, arena: &Arena, cut: &[CutWrite]) -> Result<(), MediaError> {
    for &CutWrite { lba, block } in cut {
        debug_assert!(arena.has_block(block), "new block of a cut write");
        memory.store(arena.map_at(lba), MapEntry::normal(block).0)?;
        memory.write_back(arena.map_at(lba), MAP_ENTRY_BYTES);
    }
    if !cut.is_empty() {
        memory.fence()?;
    }
    Ok(())
}

/// Returns the position of second entries, on which all groups that show it must agree.
fn slots<M: Memory>(memory: &M, arena: &Arena) -> Result<SlotLayout, RecoverError> {
    let mut shown = None;
    for lane in 0..arena.layout.nfree {
        match (
            shown,
            SlotLayout::shown_by(&arena.read_group(memory, lane)?)
                .map_err(|error| refused(lane, error))?,
        ) {
            (Some(a), Some(b)) if a != b => return Err(refused(lane, FlogError::Padding)),
            (None, found) => shown = found,
            _ => {}
        }
    }
    Ok(shown.unwrap_or(SlotLayout::Standard))
}

fn refused(lane: u32, error: FlogError) -> RecoverError {
    RecoverError::Flog { lane, error }
}

/// Checks [free-blocks-distinct].
fn check_distinct(lanes: &[RecoveredLane]) -> Result<(), RecoverError> {
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
