//! The log of an arena: reads each lane as its readers do.

use crate::address::{PostmapAba, PremapAba};
use crate::arena::Arena;
use crate::container::Dialect;
use crate::flog::{FlogEntry, FlogError, GroupBytes, SlotLayout, successor};
use crate::map_entry::MapEntry;
use crate::memory::{MediaError, Memory};
use crate::repair::SEQ_UNREADABLE;
use alloc::vec::Vec;

/// The log of a lane.
pub(super) enum Lane {
    /// The log names the lane's free block.
    Sound(Newest),
    /// The log is invalid.
    Unsound(FlogError, GroupBytes),
    /// The medium lost the log.
    Lost,
}

/// The newest entry of a lane.
pub(super) struct Newest {
    pub(super) slot: usize,
    pub(super) entry: FlogEntry,
    /// The sequence numbers of both entries.
    pub(super) numbers: [u32; 2],
    /// The write was cut between log and map.
    pub(super) is_cut: bool,
}

impl Newest {
    /// Whether other readers misread the lane: of pairs with a 0, they understand only (1, 0).
    pub(super) const fn is_misread(&self) -> bool {
        let [a, b] = self.numbers;
        a == 0 || b == 0 && a > 1
    }

    /// Whether the lane is misread only because of the number of its formatted entry.
    pub(super) fn is_misread_first(&self) -> bool {
        self.is_misread() && self.slot == 0 && self.entry.is_unused()
    }

    /// Whether the block numbers have the form of `dialect`, as far as that shows: libpmemblk sets
    /// state bits in each of them, and Linux never in the new block.
    fn is_in(&self, dialect: Dialect) -> bool {
        let flagged = self.entry.new_map != self.entry.new_block().0;
        flagged == (dialect == Dialect::Flagged)
    }

    /// Returns the older entry that other readers should find, as if the lane had been unused
    /// before this write and its free block had been the one it then gave away. The numbers and
    /// blocks fit this lane.
    pub(super) const fn older_entry(&self) -> FlogEntry {
        let FlogEntry { lba, new_map, seq, .. } = self.entry;
        FlogEntry { lba, old_map: new_map, new_map, seq: successor(successor(seq)) }
    }
}

/// Reads the log of `arena`. Returns the slot layout that most groups show, and the lanes.
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
    let slots = if count_groups(&groups, SlotLayout::OldLinux)
        > count_groups(&groups, SlotLayout::Standard)
    {
        SlotLayout::OldLinux
    } else {
        SlotLayout::Standard
    };
    let arena = Arena { slots, ..*arena };
    let lanes = groups.into_iter().map(|group| match group {
        None => Ok(Lane::Lost),
        Some(group) => lane(memory, &arena, group),
    });
    let lanes: Vec<_> = lanes.collect::<Result<_, _>>()?;
    debug_assert_eq!(lanes.len(), arena.layout.nfree as usize, "one log per lane");
    Ok((slots, lanes))
}

fn count_groups(groups: &[Option<GroupBytes>], slots: SlotLayout) -> usize {
    groups.iter().flatten().filter(|group| SlotLayout::shown_by(group) == Ok(Some(slots))).count()
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

/// Whether the sector of an entry still has its old block.
fn is_cut<M: Memory>(memory: &M, arena: &Arena, entry: &FlogEntry) -> Result<bool, MediaError> {
    if entry.is_unused() {
        return Ok(false);
    }
    let lba = entry.sector();
    match arena.load_map_entry(memory, lba) {
        Ok(found) => Ok(found.block(lba) == entry.old_block()),
        // The check of the map reports the loss.
        Err(MediaError::Bad) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether any bytes of an invalid group look like the entry of a cut write: the sector still has
/// its old block, and the new block is `unowned`. Bytes that an interrupted repair left do not look
/// like one.
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

/// Returns the number of lanes whose block numbers are not in the form that the container's readers
/// expect.
pub(super) fn lanes_in_other_dialect(lanes: &[Lane], dialect: Dialect) -> u32 {
    lanes
        .iter()
        .filter(|lane| matches!(lane, Lane::Sound(newest) if !newest.is_in(dialect)))
        .count() as u32
}

/// Returns the map entries that finishing cut writes would give, ordered by sector.
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
