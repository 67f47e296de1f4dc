//! The log: each lane has the entries of its last two writes, and the newer one names its free
//! block.
//!
//! # Rules
//!
//! - **[sequence-orders-entries]** Sequence numbers run 1, 2, 3, 1; 0 means never written. The
//!   newer of two entries is the one whose number follows the other's. If one number is 0, the
//!   other entry is newer. Equal numbers, and numbers above 3, make the log invalid.
//! - **[entry-in-two-words]** An entry overwrites the older one in two words of eight bytes: first
//!   sector and old block, and once these are durable, new block and number. After a power cut in
//!   between, the slot still counts as the older entry.
//!
//! A lane whose newest entry has the same old and new block was never used: that block is free, and
//! the entry's sector means nothing. Block numbers may carry state bits, and are compared without
//! them.
//!
//! The second entry of a group directly follows the first. Linux before 4.15 left 16 bytes between
//! them. All groups of an arena use the same layout, which shows in any group whose second entry
//! was written.

use super::address::{PostmapAba, PremapAba};
use super::layout::FLOG_GROUP_BYTES;
use super::map_entry::block_number;

/// The bytes of a log group.
pub type GroupBytes = [u8; FLOG_GROUP_BYTES as usize];

/// A log entry as it is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlogEntry {
    /// The sector that was written.
    pub lba: u32,
    /// The sector's old block.
    pub old_map: u32,
    /// The sector's new block.
    pub new_map: u32,
    /// The sequence number ([sequence-orders-entries]).
    pub seq: u32,
}

/// The position of the second entry in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotLayout {
    /// 16 bytes from the start of the group.
    Standard,
    /// 32 bytes from the start of the group, as in Linux before 4.15.
    OldLinux,
}

/// Why a log cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlogError {
    /// The sequence numbers do not say which entry is newer ([sequence-orders-entries]).
    Sequence([u32; 2]),
    /// The groups disagree on the position of the second entry, or have nonzero bytes elsewhere.
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
                write!(f, "sequence numbers {a} and {b} do not say which entry is newer")
            }
            Self::Padding => f.write_str("padding bytes are not zero"),
            Self::Sector(lba) => write!(f, "sector {lba} does not exist"),
            Self::Block(block) => write!(f, "block {block} does not exist"),
        }
    }
}

impl core::error::Error for FlogError {}

impl FlogEntry {
    /// Returns the first entry of an unused lane. `stored` is the lane's free block, in the form of
    /// the writer's dialect.
    #[must_use]
    pub const fn first(lane: u32, stored: u32) -> Self {
        Self { lba: lane, old_map: stored, new_map: stored, seq: 1 }
    }

    /// The sector that was written.
    #[must_use]
    pub const fn sector(&self) -> PremapAba {
        PremapAba(self.lba)
    }

    /// The sector's old block.
    #[must_use]
    pub const fn old_block(&self) -> PostmapAba {
        block_number(self.old_map)
    }

    /// The sector's new block.
    #[must_use]
    pub const fn new_block(&self) -> PostmapAba {
        block_number(self.new_map)
    }

    /// Whether the lane of this newest entry was never used.
    #[must_use]
    pub fn is_unused(&self) -> bool {
        self.old_block() == self.new_block()
    }

    /// Returns the two words in which the entry is written ([entry-in-two-words]).
    #[must_use]
    pub const fn words(&self) -> [u64; 2] {
        [
            (self.old_map as u64) << 32 | self.lba as u64,
            (self.seq as u64) << 32 | self.new_map as u64,
        ]
    }

    fn parse(bytes: &[u8]) -> Self {
        Self {
            lba: word(bytes, 0),
            old_map: word(bytes, 1),
            new_map: word(bytes, 2),
            seq: word(bytes, 3),
        }
    }
}

fn word(bytes: &[u8], n: usize) -> u32 {
    let at = n * 4;
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

impl SlotLayout {
    /// Returns the bytes from the start of a group to slot `slot`, 0 or 1.
    #[must_use]
    pub const fn offset(self, slot: usize) -> u64 {
        debug_assert!(slot < 2, "a group has two slots");
        match (slot, self) {
            (0, _) => 0,
            (_, Self::Standard) => 16,
            (_, Self::OldLinux) => 32,
        }
    }

    /// Returns the two entries of a group.
    #[must_use]
    pub fn entries(self, group: &GroupBytes) -> [FlogEntry; 2] {
        [0, 1].map(|slot| FlogEntry::parse(&group[self.offset(slot) as usize..]))
    }

    /// Returns the layout that a group shows, or `None` if its second entry was never written.
    ///
    /// # Errors
    ///
    /// The group has nonzero bytes where neither layout has any.
    pub fn shown_by(group: &GroupBytes) -> Result<Option<Self>, FlogError> {
        match (is_written(group, 16), is_written(group, 32), is_written(group, 48)) {
            (false, false, false) => Ok(None),
            (true, false, false) => Ok(Some(Self::Standard)),
            (false, true, false) => Ok(Some(Self::OldLinux)),
            _ => Err(FlogError::Padding),
        }
    }
}

fn is_written(group: &GroupBytes, at: usize) -> bool {
    group[at..at + 16].iter().any(|&byte| byte != 0)
}

/// Returns the sequence number after `seq` ([sequence-orders-entries]).
#[must_use]
pub(crate) const fn successor(seq: u32) -> u32 {
    debug_assert!(matches!(seq, 1..=3), "sequence number of a written entry");
    seq % 3 + 1
}

/// Returns the slot of the newer of two entries ([sequence-orders-entries]).
///
/// # Errors
///
/// The sequence numbers do not say which entry is newer.
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

    /// [sequence-orders-entries].
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
    fn the_newest_entry_is_known_after_every_write() {
        let mut slot = 0;
        let mut entries = pair(1, 0);
        for _ in 0..10 {
            assert_eq!(newest(&entries), Ok(slot));
            let seq = successor(entries[slot].seq);
            slot = 1 - slot;
            entries[slot].seq = seq;
        }
    }

    #[test]
    fn a_written_second_entry_shows_the_layout() {
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

    /// [entry-in-two-words].
    #[test]
    fn each_byte_of_a_group_belongs_to_an_entry_or_is_padding() {
        for at in 0..64 {
            let mut group: GroupBytes = [0; 64];
            group[at] = 1;
            let expected = match at {
                0..16 => Ok(None),
                16..32 => Ok(Some(SlotLayout::Standard)),
                32..48 => Ok(Some(SlotLayout::OldLinux)),
                _ => Err(FlogError::Padding),
            };
            assert_eq!(SlotLayout::shown_by(&group), expected, "byte {at}");
        }
    }

    #[test]
    fn the_two_words_are_the_bytes_of_an_entry() {
        let entry = FlogEntry { lba: 1, old_map: 0xc000_0002, new_map: 3, seq: 2 };
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&entry.words()[0].to_le_bytes());
        bytes[8..].copy_from_slice(&entry.words()[1].to_le_bytes());
        assert_eq!(FlogEntry::parse(&bytes), entry);
        assert_eq!(bytes[4..8], [2, 0, 0, 0xc0]);
        assert_eq!(entry.old_block(), PostmapAba(2));
    }
}
