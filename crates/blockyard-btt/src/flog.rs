//! The log: for each lane the two last writes that went through it, which name its free block.
//!
//! # Rules
//!
//! - **G1.** Sequence numbers run 1, 2, 3, 1; 0 was never written. The newer entry of two is the one whose
//!   number follows the other's; if one is 0, the other entry. Equal numbers, or one above 3, are no log.
//! - **G2.** A lane whose newest entry has the same old and new block was never used: that block is free,
//!   and its sector is not to be looked at. Block numbers may carry state bits, and are compared without.
//! - **G3.** The second entry follows the first at once; Linux before 4.15 left 16 bytes between them. All
//!   groups of an arena do the same. What shows it is a group whose second entry was written.
//! - **G4.** An entry is written over the older one, in two words of eight bytes: sector and old block, and
//!   once these are durable, new block and number. Cut in between it still is the older one.

use super::address::{PostmapAba, PremapAba};
use super::layout::FLOG_GROUP_BYTES;
use super::map_entry::block_number;

/// The bytes of a group.
pub type GroupBytes = [u8; FLOG_GROUP_BYTES as usize];

/// One entry, as it is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlogEntry {
    /// The sector.
    pub lba: u32,
    /// The block it had.
    pub old_map: u32,
    /// The block it got.
    pub new_map: u32,
    /// G1.
    pub seq: u32,
}

/// Where the second entry of a group is (G3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotLayout {
    /// Behind the first.
    Standard,
    /// 32 bytes behind the beginning of the first.
    OldLinux,
}

/// Why a log cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlogError {
    /// Which entry of a group is the newer one cannot be told (G1).
    Sequence([u32; 2]),
    /// Groups disagree on where their second entry is, or have something elsewhere (G3).
    Padding,
    /// The newest entry names a sector that the arena does not have.
    Sector(u32),
    /// The newest entry names a block that the arena does not have.
    Block(u32),
}

impl core::fmt::Display for FlogError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Sequence([a, b]) => {
                write!(f, "sequence numbers {a} and {b} do not tell which entry is newer")
            }
            Self::Padding => f.write_str("bytes that are zero in every layout are not"),
            Self::Sector(lba) => write!(f, "sector {lba} does not exist"),
            Self::Block(block) => write!(f, "block {block} does not exist"),
        }
    }
}

impl core::error::Error for FlogError {}

impl FlogEntry {
    /// What a lane that was never used has in its first slot: its free block is `free`, as `stored` by
    /// the writer's habit.
    #[must_use]
    pub const fn first(lane: u32, stored: u32) -> Self {
        Self { lba: lane, old_map: stored, new_map: stored, seq: 1 }
    }

    /// The sector.
    #[must_use]
    pub const fn sector(&self) -> PremapAba {
        PremapAba(self.lba)
    }

    /// The block it had.
    #[must_use]
    pub const fn old_block(&self) -> PostmapAba {
        block_number(self.old_map)
    }

    /// The block it got.
    #[must_use]
    pub const fn new_block(&self) -> PostmapAba {
        block_number(self.new_map)
    }

    /// Whether its lane was never used (G2).
    #[must_use]
    pub fn is_unused(&self) -> bool {
        self.old_block() == self.new_block()
    }

    /// The two words it is written in (G4).
    #[must_use]
    pub const fn words(&self) -> [u64; 2] {
        [
            (self.old_map as u64) << 32 | self.lba as u64,
            (self.seq as u64) << 32 | self.new_map as u64,
        ]
    }

    fn parse(bytes: &[u8]) -> Self {
        let word = |n: usize| {
            let at = n * 4;
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        Self { lba: word(0), old_map: word(1), new_map: word(2), seq: word(3) }
    }
}

impl SlotLayout {
    /// Bytes from the beginning of a group to its slot `slot`, 0 or 1.
    #[must_use]
    pub const fn offset(self, slot: usize) -> u64 {
        match (slot, self) {
            (0, _) => 0,
            (_, Self::Standard) => 16,
            (_, Self::OldLinux) => 32,
        }
    }

    /// The entries of a group.
    #[must_use]
    pub fn entries(self, group: &GroupBytes) -> [FlogEntry; 2] {
        [0, 1].map(|slot| FlogEntry::parse(&group[self.offset(slot) as usize..]))
    }

    /// What one group says of the layout of all: `None` if its second entry was never written (G3).
    ///
    /// # Errors
    ///
    /// It has something where neither layout has.
    pub fn shown_by(group: &GroupBytes) -> Result<Option<Self>, FlogError> {
        let written = |at: usize| group[at..at + 16].iter().any(|&byte| byte != 0);
        match (written(16), written(32), written(48)) {
            (false, false, false) => Ok(None),
            (true, false, false) => Ok(Some(Self::Standard)),
            (false, true, false) => Ok(Some(Self::OldLinux)),
            _ => Err(FlogError::Padding),
        }
    }
}

/// The number that follows `seq`, which is 1, 2 or 3 (G1).
#[must_use]
pub const fn successor(seq: u32) -> u32 {
    seq % 3 + 1
}

/// Which of two entries is the newer one: its slot (G1).
///
/// # Errors
///
/// It cannot be told.
pub fn newest(entries: &[FlogEntry; 2]) -> Result<usize, FlogError> {
    let numbers = [entries[0].seq, entries[1].seq];
    match numbers {
        [4..=u32::MAX, _] | [_, 4..=u32::MAX] | [0, 0] => Err(FlogError::Sequence(numbers)),
        [_, 0] => Ok(0),
        [0, _] => Ok(1),
        [a, b] if b == successor(a) => Ok(1),
        [a, b] if a == successor(b) => Ok(0),
        _ => Err(FlogError::Sequence(numbers)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(a: u32, b: u32) -> [FlogEntry; 2] {
        [a, b].map(|seq| FlogEntry { seq, ..FlogEntry::default() })
    }

    #[test]
    fn the_newer_entry_follows_the_older() {
        let newer = [((1, 0), 0), ((0, 1), 1), ((1, 2), 1), ((2, 1), 0), ((2, 3), 1), ((3, 1), 1)];
        for ((a, b), slot) in newer {
            assert_eq!(newest(&pair(a, b)), Ok(slot), "({a}, {b})");
        }
        for (a, b) in [(0, 0), (1, 1), (2, 2), (3, 3), (5, 0), (0, 4), (4, 1)] {
            assert_eq!(newest(&pair(a, b)), Err(FlogError::Sequence([a, b])));
        }
    }

    #[test]
    fn a_number_and_its_successor_are_never_mistaken() {
        let (mut slot, mut entries) = (0, pair(1, 0));
        for _ in 0..10 {
            assert_eq!(newest(&entries), Ok(slot));
            let seq = successor(entries[slot].seq);
            slot = 1 - slot;
            entries[slot].seq = seq;
        }
    }

    #[test]
    fn a_second_entry_shows_the_layout() {
        let mut group: GroupBytes = [0; 64];
        group[12] = 1;
        assert_eq!(SlotLayout::shown_by(&group), Ok(None));
        for (at, layout) in [(28, SlotLayout::Standard), (44, SlotLayout::OldLinux)] {
            let mut group = group;
            group[at] = 2;
            assert_eq!(SlotLayout::shown_by(&group), Ok(Some(layout)));
            assert_eq!(layout.entries(&group).map(|entry| entry.seq), [1, 2]);
            group[60] = 1;
            assert_eq!(SlotLayout::shown_by(&group), Err(FlogError::Padding));
        }
    }

    #[test]
    fn the_words_of_an_entry_are_its_bytes() {
        let entry = FlogEntry { lba: 1, old_map: 0xc000_0002, new_map: 3, seq: 2 };
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&entry.words()[0].to_le_bytes());
        bytes[8..].copy_from_slice(&entry.words()[1].to_le_bytes());
        assert_eq!(FlogEntry::parse(&bytes), entry);
        assert_eq!(bytes[4..8], [2, 0, 0, 0xc0]);
        assert_eq!(entry.old_block(), PostmapAba(2));
    }
}
