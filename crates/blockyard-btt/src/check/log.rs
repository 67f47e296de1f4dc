//! The log of an arena, lane by lane.

use crate::address::{PostmapAba, PremapAba};
use crate::arena::Arena;
use crate::container::Dialect;
use crate::flog::{FlogEntry, FlogError, GroupBytes, SlotLayout, successor};
use crate::map_entry::MapEntry;
use crate::memory::{MediaError, Memory};
use crate::repair::SEQ_UNREADABLE;
use alloc::vec::Vec;

/// A lane.
pub(super) enum Lane {
    /// Its log names its free block.
    Sound(Newest),
    /// Its log does not.
    Unsound(FlogError, GroupBytes),
    /// The medium lost its log.
    Lost,
}

/// The newest entry of a lane.
pub(super) struct Newest {
    pub(super) slot: usize,
    pub(super) entry: FlogEntry,
    /// The numbers of both its entries.
    pub(super) numbers: [u32; 2],
    /// Its write was cut between log and map.
    pub(super) is_cut: bool,
}

impl Newest {
    /// Whether others do not find it: of pairs with a number that was never written, they read (1, 0) only.
    pub(super) const fn is_misread(&self) -> bool {
        let [a, b] = self.numbers;
        a == 0 || b == 0 && a > 1
    }

    /// Whether it is, and all that is wrong is the number of the entry that the lane was made with.
    pub(super) fn is_misread_first(&self) -> bool {
        self.is_misread() && self.slot == 0 && self.entry.is_unused()
    }

    /// Whether its block numbers are written as `dialect` does, as far as they show it: libpmemblk sets state
    /// bits in each of them, Linux never in the new one.
    fn is_in(&self, dialect: Dialect) -> bool {
        let flagged = self.entry.new_map != self.entry.new_block().0;
        flagged == (dialect == Dialect::Flagged)
    }

    /// The entry that others are to find for the older one: as if the lane had never been used before, and
    /// had had the block that it gave away since. Numbers and blocks are those of the lane.
    pub(super) const fn older_entry(&self) -> FlogEntry {
        let FlogEntry { lba, new_map, seq, .. } = self.entry;
        FlogEntry { lba, old_map: new_map, new_map, seq: successor(successor(seq)) }
    }
}

/// The log of `arena`, and where its second entries are: where most of the groups that show it have them.
pub(super) fn read<M: Memory>(
    memory: &M,
    arena: &Arena,
) -> Result<(SlotLayout, Vec<Lane>), MediaError> {
    let groups = (0..arena.layout.nfree).map(|lane| match arena.read_group(memory, lane) {
        Ok(group) => Ok(Some(group)),
        Err(MediaError::Bad) => Ok(None),
        Err(error) => Err(error),
    });
    let groups: Vec<_> = groups.collect::<Result<_, _>>()?;
    let shown = |slots| {
        let shows = |group: &&GroupBytes| SlotLayout::shown_by(group) == Ok(Some(slots));
        groups.iter().flatten().filter(shows).count()
    };
    let slots = if shown(SlotLayout::OldLinux) > shown(SlotLayout::Standard) {
        SlotLayout::OldLinux
    } else {
        SlotLayout::Standard
    };
    let arena = Arena { slots, ..*arena };
    let lanes = groups.into_iter().map(|group| match group {
        None => Ok(Lane::Lost),
        Some(group) => lane(memory, &arena, group),
    });
    Ok((slots, lanes.collect::<Result<_, _>>()?))
}

fn lane<M: Memory>(memory: &M, arena: &Arena, group: GroupBytes) -> Result<Lane, MediaError> {
    let slots = arena.slots;
    let newest = match SlotLayout::shown_by(&group) {
        Ok(Some(shown)) if shown != slots => Err(FlogError::Padding),
        shown => shown.and_then(|_| arena.newest(&group)),
    };
    let (slot, entry) = match newest {
        Ok(newest) => newest,
        Err(error) => return Ok(Lane::Unsound(error, group)),
    };
    let numbers = slots.entries(&group).map(|entry| entry.seq);
    let is_cut = is_cut(memory, arena, &entry)?;
    Ok(Lane::Sound(Newest { slot, entry, numbers, is_cut }))
}

/// Whether the sector of an entry still has the old block (V1 of `recover`).
fn is_cut<M: Memory>(memory: &M, arena: &Arena, entry: &FlogEntry) -> Result<bool, MediaError> {
    if entry.is_unused() {
        return Ok(false);
    }
    let lba = entry.sector();
    match arena.load_map_entry(memory, lba) {
        Ok(found) => Ok(found.block(lba) == entry.old_block()),
        // Told where the map is looked at.
        Err(MediaError::Bad) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether any bytes of a group that cannot be read look like an entry of a write that was cut: its sector
/// still has the old block, and the new one is `unowned`. What a repair left that was cut itself does not.
pub(super) fn may_be_cut<M: Memory>(
    memory: &M,
    arena: &Arena,
    group: &GroupBytes,
    unowned: impl Fn(PostmapAba) -> bool,
) -> Result<bool, MediaError> {
    let [first, second] = SlotLayout::Standard.entries(group);
    let [_, third] = SlotLayout::OldLinux.entries(group);
    for entry in [first, second, third] {
        let written = ![0, SEQ_UNREADABLE].contains(&entry.seq);
        let exists = arena.has_block(entry.new_block())
            && arena.has_block(entry.old_block())
            && entry.lba < arena.layout.external_nlba;
        if written && exists && unowned(entry.new_block()) && is_cut(memory, arena, &entry)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Lanes whose block numbers are not written as the container's readers expect.
pub(super) fn lanes_in_other_dialect(lanes: &[Lane], dialect: Dialect) -> u32 {
    let strange = |lane: &&Lane| matches!(lane, Lane::Sound(newest) if !newest.is_in(dialect));
    lanes.iter().filter(strange).count() as u32
}

/// Map entries as they are once writes that were cut are finished, by sector.
pub(super) fn finished(lanes: &[Lane]) -> Vec<(PremapAba, MapEntry)> {
    let cut = lanes.iter().filter_map(|lane| match lane {
        Lane::Sound(Newest { entry, is_cut: true, .. }) => {
            Some((entry.sector(), MapEntry::normal(entry.new_block())))
        }
        _ => None,
    });
    let mut finished: Vec<_> = cut.collect();
    finished.sort_unstable_by_key(|&(lba, entry)| (lba, entry.0));
    finished
}
