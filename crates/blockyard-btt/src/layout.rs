//! Where in an arena everything lies, computed from its size; and how a container is cut into arenas.

use super::map_entry::BLOCKS_MAX;

/// Bytes of an info block, and what everything in an arena is rounded to.
pub const INFO_BYTES: u64 = 4096;
/// The smallest arena.
pub const ARENA_BYTES_MIN: u64 = 16 << 20;
/// The largest arena: all but the last have this size.
pub const ARENA_BYTES_MAX: u64 = 512 << 30;
/// Free blocks of an arena, and groups of its log, in everything ever seen.
pub const NFREE: u32 = 256;
/// Most free blocks that we accept.
pub const NFREE_MAX: u32 = 4096;
/// Bytes of a log group.
pub const FLOG_GROUP_BYTES: u64 = 64;
/// Bytes of a map entry.
pub const MAP_ENTRY_BYTES: u64 = 4;
/// The largest sector that is opened: libpmemblk takes any, and what one makes room for must be bounded.
pub const OPEN_SECTOR_BYTES_MAX: u32 = 1 << 20;
/// The largest sector that is made: 4096 bytes of data with 128 of metadata.
pub const SECTOR_BYTES_MAX: u32 = 4224;

/// Where in an arena its parts are, in bytes from its beginning, and how many blocks it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of a sector, as those outside see it.
    pub external_lbasize: u32,
    /// Sectors.
    pub external_nlba: u32,
    /// Bytes from one block of the data area to the next.
    pub internal_lbasize: u32,
    /// Blocks of the data area.
    pub internal_nlba: u32,
    /// Blocks that no sector has at a time, and log groups.
    pub nfree: u32,
    /// The data area.
    pub dataoff: u64,
    /// The map.
    pub mapoff: u64,
    /// The log.
    pub flogoff: u64,
    /// The copy of the info block.
    pub infooff: u64,
}

/// Why there is no such arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// Less than 16 MiB.
    TooSmall,
    /// More than 512 GiB.
    TooLarge,
    /// Sectors of no bytes, or blocks smaller than sectors.
    SectorSize,
    /// More blocks than a map entry can number.
    TooManyBlocks,
}

impl core::fmt::Display for LayoutError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::TooSmall => "an arena has at least 16 MiB",
            Self::TooLarge => "an arena has at most 512 GiB",
            Self::SectorSize => "a block has at least the bytes of its sector, and a sector some",
            Self::TooManyBlocks => "an arena has at most 2^30 blocks",
        })
    }
}

impl core::error::Error for LayoutError {}

impl Layout {
    /// An arena of `bytes`.
    ///
    /// # Errors
    ///
    /// There is no arena of this size, or none of such sectors.
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
        // One page of the room is kept for rounding up the map.
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

/// Rounded up to whole pages.
const fn pages(bytes: u64) -> u64 {
    bytes.next_multiple_of(INFO_BYTES)
}

/// The arenas of a container that has `bytes` from the first info block on: where each begins and how
/// large it is. What is left, if less than the smallest arena, stays unused.
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

    /// Read out of images that Linux 6.1 and 6.12 and libpmemblk 1.12 made: bytes, external and
    /// internal sector size; internal and external count, mapoff, flogoff, infooff.
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
    fn arenas_lie_as_in_images_that_others_made() {
        for (bytes, external, internal, expected) in IMAGES {
            let layout =
                Layout::new(bytes, external, internal, NFREE).expect("there is such an image");
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
    fn containers_are_cut_at_512_gib() {
        let cut = |bytes| arenas(bytes).collect::<Vec<_>>();
        assert_eq!(cut(ARENA_BYTES_MIN - 1), []);
        assert_eq!(cut(ARENA_BYTES_MIN), [(0, ARENA_BYTES_MIN)]);
        assert_eq!(cut(ARENA_BYTES_MAX), [(0, ARENA_BYTES_MAX)]);
        assert_eq!(cut(ARENA_BYTES_MAX + ARENA_BYTES_MIN - 1), [(0, ARENA_BYTES_MAX)]);
        let two = [(0, ARENA_BYTES_MAX), (ARENA_BYTES_MAX, (64 << 20) - 4096)];
        assert_eq!(cut(ARENA_BYTES_MAX + (64 << 20) - 4096), two);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let refused =
            |bytes, external, internal| Layout::new(bytes, external, internal, NFREE).err();
        assert_eq!(refused(ARENA_BYTES_MIN - 1, 512, 512), Some(LayoutError::TooSmall));
        assert_eq!(refused(ARENA_BYTES_MAX + 1, 512, 512), Some(LayoutError::TooLarge));
        assert_eq!(refused(ARENA_BYTES_MIN, 0, 512), Some(LayoutError::SectorSize));
        assert_eq!(refused(ARENA_BYTES_MIN, 520, 512), Some(LayoutError::SectorSize));
        assert_eq!(refused(ARENA_BYTES_MAX, 64, 64), Some(LayoutError::TooManyBlocks));
        assert_eq!(refused(ARENA_BYTES_MIN, 1 << 16, 1 << 16), Some(LayoutError::TooSmall));
    }
}
