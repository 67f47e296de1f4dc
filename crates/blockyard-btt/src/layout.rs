//! The positions of the parts of an arena, computed from its size, and the division of a container
//! into arenas.

use super::map_entry::BLOCKS_MAX;

/// Bytes of an info block. The parts of an arena are rounded up to this size.
pub const INFO_BYTES: u64 = 4096;
/// The smallest arena.
pub const ARENA_BYTES_MIN: u64 = 16 << 20;
/// The largest arena. Every arena but the last has this size.
pub const ARENA_BYTES_MAX: u64 = 512 << 30;
/// Free blocks of an arena, and groups of its log, in every known implementation.
pub const NFREE: u32 = 256;
/// The largest number of free blocks that this crate accepts.
pub(crate) const NFREE_MAX: u32 = 4096;
/// Bytes of a log group.
pub const FLOG_GROUP_BYTES: u64 = 64;
/// Bytes of a map entry.
pub const MAP_ENTRY_BYTES: u64 = 4;
/// The largest sector. libpmemblk accepts any size, but buffers must be bounded.
pub(crate) const SECTOR_BYTES_MAX: u32 = 1 << 20;

const _: () = assert!(NFREE <= NFREE_MAX);
const _: () = assert!(ARENA_BYTES_MIN.is_multiple_of(INFO_BYTES));
const _: () = assert!(ARENA_BYTES_MAX.is_multiple_of(ARENA_BYTES_MIN));

/// The positions of the parts of an arena, in bytes from its start, and the number of its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of a sector, as users see it.
    pub external_lbasize: u32,
    /// Sectors of the arena.
    pub external_nlba: u32,
    /// Bytes from one block of the data area to the next.
    pub internal_lbasize: u32,
    /// Blocks of the data area.
    pub internal_nlba: u32,
    /// Free blocks of the arena, which is also the number of log groups.
    pub nfree: u32,
    /// Start of the data area.
    pub dataoff: u64,
    /// Start of the map.
    pub mapoff: u64,
    /// Start of the log.
    pub flogoff: u64,
    /// Start of the copy of the info block.
    pub infooff: u64,
}

/// Why an arena with these sizes is impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// The arena has less than 16 MiB.
    TooSmall,
    /// The arena has more than 512 GiB.
    TooLarge,
    /// Sectors have no bytes, or blocks are smaller than sectors.
    SectorSize,
    /// The arena has more blocks than a map entry can number.
    TooManyBlocks,
}

impl core::fmt::Display for LayoutError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::TooSmall => "an arena needs at least 16 MiB",
            Self::TooLarge => "an arena has at most 512 GiB",
            Self::SectorSize => "a sector needs at least one byte, and a block at least a sector",
            Self::TooManyBlocks => "an arena has at most 2^30 blocks; use larger sectors",
        })
    }
}

impl core::error::Error for LayoutError {}

impl Layout {
    /// Returns the layout of an arena of `bytes`.
    ///
    /// # Errors
    ///
    /// An arena of this size, or with such sectors, is impossible.
    pub fn new(
        bytes: u64,
        external_lbasize: u32,
        internal_lbasize: u32,
        nfree: u32,
    ) -> Result<Self, LayoutError> {
        if bytes < ARENA_BYTES_MIN {
            return Err(LayoutError::TooSmall);
        }
        if bytes > ARENA_BYTES_MAX {
            return Err(LayoutError::TooLarge);
        }
        if external_lbasize == 0 || internal_lbasize < external_lbasize {
            return Err(LayoutError::SectorSize);
        }
        let whole = bytes / INFO_BYTES * INFO_BYTES;
        let log_bytes = pages(u64::from(nfree) * FLOG_GROUP_BYTES);
        let room = whole
            .checked_sub(2 * INFO_BYTES + log_bytes + INFO_BYTES)
            .ok_or(LayoutError::TooSmall)?;
        // One page of `room` is reserved for rounding up the map.
        let blocks = room / (u64::from(internal_lbasize) + MAP_ENTRY_BYTES);
        let internal_nlba = u32::try_from(blocks).map_err(|_| LayoutError::TooManyBlocks)?;
        if internal_nlba > BLOCKS_MAX {
            return Err(LayoutError::TooManyBlocks);
        }
        let external_nlba =
            internal_nlba.checked_sub(nfree).filter(|&n| n > 0).ok_or(LayoutError::TooSmall)?;
        let infooff = whole - INFO_BYTES;
        let flogoff = infooff - log_bytes;
        let mapoff = flogoff - pages(u64::from(external_nlba) * MAP_ENTRY_BYTES);
        debug_assert!(infooff + INFO_BYTES <= bytes, "the copy ends within the arena");
        debug_assert!(
            INFO_BYTES + u64::from(internal_nlba) * u64::from(internal_lbasize) <= mapoff,
            "the data area ends before the map"
        );
        Ok(Self {
            external_lbasize,
            external_nlba,
            internal_lbasize,
            internal_nlba,
            nfree,
            dataoff: INFO_BYTES,
            mapoff,
            flogoff,
            infooff,
        })
    }
}

/// Returns `bytes` rounded up to whole pages.
const fn pages(bytes: u64) -> u64 {
    bytes.next_multiple_of(INFO_BYTES)
}

/// Returns the start and size of each arena of a container that has `bytes` from the first info
/// block on. A remainder smaller than the smallest arena stays unused.
pub fn arenas(bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..bytes.div_ceil(ARENA_BYTES_MAX))
        .map(move |n| n * ARENA_BYTES_MAX)
        .map(move |start| (start, (bytes - start).min(ARENA_BYTES_MAX)))
        .filter(|&(_, len)| len >= ARENA_BYTES_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// Read from images that Linux 6.1, Linux 6.12 and libpmemblk 1.12 made: bytes, external and
    /// internal sector size; then internal and external count, mapoff, flogoff, infooff.
    const IMAGES: [(u64, u32, u32, [u64; 5]); 7] = [
        (33_550_336, 512, 512, [64964, 64708, 33_267_712, 33_529_856, 33_546_240]),
        (33_554_432, 4096, 4096, [8177, 7921, 33_501_184, 33_533_952, 33_550_336]),
        (16_777_216, 512, 512, [32458, 32202, 16_625_664, 16_756_736, 16_773_120]),
        (33_550_336, 520, 576, [57795, 57539, 33_296_384, 33_529_856, 33_546_240]),
        (33_550_336, 4104, 4160, [8050, 7794, 33_497_088, 33_529_856, 33_546_240]),
        (33_550_336, 4224, 4224, [7928, 7672, 33_497_088, 33_529_856, 33_546_240]),
        (
            ARENA_BYTES_MAX,
            4096,
            4096,
            [134_086_776, 134_086_520, 549_219_446_784, 549_755_793_408, 549_755_809_792],
        ),
    ];

    #[test]
    fn arenas_have_the_layout_of_images_made_by_others() {
        for (bytes, external, internal, expected) in IMAGES {
            let layout =
                Layout::new(bytes, external, internal, NFREE).expect("layout of a known image");
            let got = [
                u64::from(layout.internal_nlba),
                u64::from(layout.external_nlba),
                layout.mapoff,
                layout.flogoff,
                layout.infooff,
            ];
            assert_eq!(got, expected, "{bytes} bytes, sectors of {external}");
        }
    }

    #[test]
    fn a_container_is_divided_every_512_gib() {
        assert_eq!(cut(ARENA_BYTES_MIN - 1), []);
        assert_eq!(cut(ARENA_BYTES_MIN), [(0, ARENA_BYTES_MIN)]);
        assert_eq!(cut(ARENA_BYTES_MAX), [(0, ARENA_BYTES_MAX)]);
        assert_eq!(cut(ARENA_BYTES_MAX + ARENA_BYTES_MIN - 1), [(0, ARENA_BYTES_MAX)]);
        let two = [(0, ARENA_BYTES_MAX), (ARENA_BYTES_MAX, (64 << 20) - 4096)];
        assert_eq!(cut(ARENA_BYTES_MAX + (64 << 20) - 4096), two);
    }

    fn cut(bytes: u64) -> Vec<(u64, u64)> {
        arenas(bytes).collect()
    }

    #[test]
    fn an_arena_may_have_one_sector_and_a_sector_one_byte() {
        assert!(Layout::new(ARENA_BYTES_MIN, 1, 64, NFREE).is_ok());
        // 257 blocks: 256 are free.
        let block = u32::try_from((ARENA_BYTES_MIN - (8 << 12)) / 257 - 4).unwrap();
        let one = Layout::new(ARENA_BYTES_MIN, 512, block, NFREE).expect("room for one sector");
        assert_eq!((one.internal_nlba, one.external_nlba), (257, 1));
    }

    /// A block takes its bytes and those of a map entry. Two pages are for info blocks, and one for
    /// rounding up the map.
    #[test]
    fn an_arena_has_at_least_a_sector_and_at_most_2_to_the_30_blocks() {
        let most = arena_bytes(1 << 30, 64, 4096);
        assert_eq!(
            layout_of(most, 64, 64).map(|layout| (layout.internal_nlba, layout.external_nlba)),
            Ok((1 << 30, (1 << 30) - 64))
        );
        for blocks in [(1 << 30) + 64, 1 << 31] {
            let refused = layout_of(arena_bytes(blocks, 64, 4096), 64, 64);
            assert_eq!(refused, Err(LayoutError::TooManyBlocks), "{blocks} blocks");
        }
        // 16 MiB without 7 pages are 256 times 65424 bytes: blocks for lanes alone. Then a log of
        // 16 MiB.
        assert_eq!(layout_of(ARENA_BYTES_MIN, 65_420, NFREE), Err(LayoutError::TooSmall));
        assert_eq!(layout_of(ARENA_BYTES_MIN, 512, 1 << 18), Err(LayoutError::TooSmall));
    }

    fn arena_bytes(blocks: u64, block: u64, log: u64) -> u64 {
        blocks * (block + 4) + 3 * 4096 + log
    }

    fn layout_of(bytes: u64, block: u32, nfree: u32) -> Result<Layout, LayoutError> {
        Layout::new(bytes, block, block, nfree)
    }

    #[test]
    fn an_impossible_arena_is_refused() {
        assert_eq!(refusal(ARENA_BYTES_MIN - 1, 512, 512), Some(LayoutError::TooSmall));
        assert_eq!(refusal(ARENA_BYTES_MAX + 1, 512, 512), Some(LayoutError::TooLarge));
        assert_eq!(refusal(ARENA_BYTES_MIN, 0, 512), Some(LayoutError::SectorSize));
        assert_eq!(refusal(ARENA_BYTES_MIN, 520, 512), Some(LayoutError::SectorSize));
        assert_eq!(refusal(ARENA_BYTES_MAX, 64, 64), Some(LayoutError::TooManyBlocks));
        assert_eq!(refusal(ARENA_BYTES_MIN, 1 << 16, 1 << 16), Some(LayoutError::TooSmall));
    }

    fn refusal(bytes: u64, external: u32, internal: u32) -> Option<LayoutError> {
        Layout::new(bytes, external, internal, NFREE).err()
    }
}
