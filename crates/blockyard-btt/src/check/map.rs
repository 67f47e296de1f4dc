//! The map of an arena: finds the owner of each block.

use super::blocks::Blocks;
use crate::address::{PostmapAba, PremapAba};
use crate::arena::Arena;
use crate::layout::MAP_ENTRY_BYTES;
use crate::map_entry::MapEntry;
use crate::memory::{MediaError, Memory};
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// Entries to read at once.
const PIECE: usize = 16 << 10;

/// The first items of a list, and the number of all of them.
pub(super) struct Capped<T> {
    pub(super) first: Vec<T>,
    pub(super) count: u64,
    keep: usize,
}

impl<T> Capped<T> {
    pub(super) const fn new(keep: usize) -> Self {
        Self { first: Vec::new(), count: 0, keep }
    }

    pub(super) fn push(&mut self, one: T) {
        if self.first.len() < self.keep {
            self.first.push(one);
        }
        self.count += 1;
    }

    /// The number of items that were not kept.
    pub(super) fn dropped(&self) -> u64 {
        debug_assert!(self.first.len() as u64 <= self.count, "kept items are counted");
        self.count - self.first.len() as u64
    }
}

/// The owners according to a map.
pub(super) struct Owners {
    /// The blocks that belong to a sector.
    pub(super) blocks: Blocks,
    /// The blocks that belong to an earlier sector too, with the later sector.
    pub(super) shared: Capped<(PostmapAba, PremapAba)>,
    /// The sectors whose block does not exist.
    pub(super) no_block: Capped<(PremapAba, MapEntry)>,
    /// The sectors whose entry the medium lost.
    pub(super) lost: Capped<PremapAba>,
}

/// A part of a map.
enum Piece {
    /// Sectors that were never written.
    Initial(Range<u32>),
    /// A sector and its entry.
    Entry(PremapAba, MapEntry),
    /// A sector whose entry the medium lost.
    Lost(PremapAba),
}

/// Reads the whole map of `arena`. The entries of `finished` writes replace the stored ones.
pub(super) fn owners<M: Memory>(
    memory: &M,
    arena: &Arena,
    finished: &[(PremapAba, MapEntry)],
    keep: usize,
    keep_no_block: usize,
    done: &mut dyn FnMut(u32),
) -> Result<Owners, MediaError> {
    debug_assert!(finished.is_sorted_by_key(|&(lba, _)| lba), "ordered by sector");
    let mut owners = Owners {
        blocks: Blocks::new(arena.layout.internal_nlba),
        shared: Capped::new(keep),
        no_block: Capped::new(keep_no_block),
        lost: Capped::new(keep),
    };
    pieces(memory, arena, finished, |piece| match piece {
        Piece::Initial(run) => {
            let end = run.end;
            if !owners.blocks.put_run(run.start, end) {
                run.for_each(|lba| owners.put(arena, PremapAba(lba), MapEntry::default()));
            }
            done(end);
        }
        Piece::Entry(lba, entry) => {
            owners.put(arena, lba, entry);
            done(lba.0 + 1);
        }
        Piece::Lost(lba) => owners.lost.push(lba),
    })?;
    Ok(owners)
}

impl Owners {
    fn put(&mut self, arena: &Arena, lba: PremapAba, entry: MapEntry) {
        let block = entry.block(lba);
        if !arena.has_block(block) {
            self.no_block.push((lba, entry));
        } else if !self.blocks.put(block.0) {
            self.shared.push((block, lba));
        }
    }
}

/// Returns the first sector that has each of `blocks`.
pub(super) fn first_owners<M: Memory>(
    memory: &M,
    arena: &Arena,
    finished: &[(PremapAba, MapEntry)],
    blocks: impl Iterator<Item = PostmapAba>,
) -> Result<BTreeMap<PostmapAba, PremapAba>, MediaError> {
    let mut wanted: BTreeMap<PostmapAba, Option<PremapAba>> =
        blocks.map(|block| (block, None)).collect();
    if wanted.is_empty() {
        return Ok(BTreeMap::new());
    }
    pieces(memory, arena, finished, |piece| match piece {
        Piece::Initial(run) => {
            run.for_each(|lba| note_owner(&mut wanted, PostmapAba(lba), PremapAba(lba)))
        }
        Piece::Entry(lba, entry) => note_owner(&mut wanted, entry.block(lba), lba),
        Piece::Lost(_) => {}
    })?;
    Ok(wanted.into_iter().filter_map(|(block, lba)| Some((block, lba?))).collect())
}

fn note_owner(
    wanted: &mut BTreeMap<PostmapAba, Option<PremapAba>>,
    block: PostmapAba,
    lba: PremapAba,
) {
    if let Some(owner) = wanted.get_mut(&block) {
        owner.get_or_insert(lba);
    }
}

/// Calls `visit` with all parts of a map in order.
fn pieces<M: Memory>(
    memory: &M,
    arena: &Arena,
    finished: &[(PremapAba, MapEntry)],
    mut visit: impl FnMut(Piece),
) -> Result<(), MediaError> {
    let sectors = arena.layout.external_nlba;
    let mut bytes = vec![0; PIECE * MAP_ENTRY_BYTES as usize];
    let mut finished = finished.iter().peekable();
    for first in (0..sectors).step_by(PIECE) {
        let end = sectors.min(first + PIECE as u32);
        let bytes = &mut bytes[..(end - first) as usize * MAP_ENTRY_BYTES as usize];
        let at = arena.map_at(PremapAba(first));
        let changed = finished.peek().is_some_and(|(lba, _)| lba.0 < end);
        if !changed && memory.hole(at) >= bytes.len() as u64 {
            visit(Piece::Initial(first..end));
            continue;
        }
        let is_whole = match memory.read(at, bytes) {
            Ok(()) => true,
            Err(MediaError::Bad) => false,
            Err(error) => return Err(error),
        };
        if is_whole && !changed && bytes.iter().all(|&byte| byte == 0) {
            visit(Piece::Initial(first..end));
            continue;
        }
        for (lba, entry) in (first..end).map(PremapAba).zip(bytes.chunks_exact(4)) {
            let read = if is_whole {
                Ok(MapEntry(u32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]])))
            } else {
                arena.load_map_entry(memory, lba)
            };
            let mut piece = match read {
                Ok(entry) => Piece::Entry(lba, entry),
                Err(MediaError::Bad) => Piece::Lost(lba),
                Err(error) => return Err(error),
            };
            while let Some((_, entry)) = finished.next_if(|(cut, _)| *cut == lba) {
                piece = Piece::Entry(lba, *entry);
            }
            visit(piece);
        }
    }
    Ok(())
}
