//! The info block: 4096 bytes at the start of an arena, and a copy at its end.
//!
//! # Rules
//!
//! - **[info-fields-consistent]** The fields fit into the arena and into each other, and a next
//!   arena starts behind this one, so that a chain of arenas ends. Sizes and positions are read and
//!   never computed, because implementations round blocks differently.
//!
//! The checksum is Fletcher-64 over all words of four bytes, with its own field counted as zero.
//! Bytes outside all fields are written as zero and ignored when read.

use super::layout::{
    ARENA_BYTES_MAX, FLOG_GROUP_BYTES, INFO_BYTES, Layout, MAP_ENTRY_BYTES, NFREE_MAX,
    SECTOR_BYTES_MAX,
};
use super::map_entry::BLOCKS_MAX;

const SIGNATURE: &[u8; 16] = b"BTT_ARENA_INFO\0\0";
const FLAGS_AT: usize = 48;
const CHECKSUM_AT: usize = 4088;
/// Flag of an arena that is marked as broken and must not be written.
const FLAG_ERROR: u32 = 1;

const _: () = assert!(CHECKSUM_AT + 8 == INFO_BYTES as usize, "the checksum is the last field");

/// A UUID, with its bytes in the order in which they are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// The nil UUID.
    pub const NIL: Self = Self([0; 16]);
}

impl core::fmt::Display for Uuid {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for (n, byte) in self.0.iter().enumerate() {
            if matches!(n, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// The bytes of an info block.
pub type InfoBytes = [u8; INFO_BYTES as usize];

/// The fields of an info block. See the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InfoBlock {
    /// The UUID of the BTT, which is the same in all its arenas.
    pub uuid: Uuid,
    /// The UUID of the namespace or pool, or nil if that has none.
    pub parent_uuid: Uuid,
    /// The arena is marked as broken and must not be written.
    pub error: bool,
    /// Version of the format.
    pub version: Version,
    /// The positions of the parts of the arena.
    pub layout: Layout,
    /// Bytes from the start of this arena to the next one, or 0 in the last arena.
    pub nextoff: u64,
}

/// The versions of the format. They differ only in where the first arena starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// 1.1.
    V1,
    /// 2.0.
    V2,
}

/// Why bytes are not a usable info block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InfoError {
    /// The signature is missing.
    Signature,
    /// The checksum is wrong.
    Checksum,
    /// The version is unknown.
    Version {
        /// Major number.
        major: u16,
        /// Minor number.
        minor: u16,
    },
    /// This field contradicts another field or the size of the arena ([info-fields-consistent]).
    Field(&'static str),
}

impl core::fmt::Display for InfoError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Signature => f.write_str("no info block"),
            Self::Checksum => f.write_str("an info block with a wrong checksum"),
            Self::Version { major, minor } => {
                write!(f, "an info block of unknown version {major}.{minor} (not 1.1 or 2.0)")
            }
            Self::Field(field) => write!(f, "an info block with an impossible {field}"),
        }
    }
}

impl core::error::Error for InfoError {}

impl Version {
    const fn numbers(self) -> (u16, u16) {
        match self {
            Self::V1 => (1, 1),
            Self::V2 => (2, 0),
        }
    }
}

impl core::fmt::Display for Version {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (major, minor) = self.numbers();
        write!(f, "{major}.{minor}")
    }
}

impl InfoBlock {
    /// Returns the bytes of the info block, with the checksum.
    #[must_use]
    pub fn to_bytes(&self) -> InfoBytes {
        let layout = &self.layout;
        let (major, minor) = self.version.numbers();
        let mut bytes = [0; INFO_BYTES as usize];
        put(&mut bytes, 0, SIGNATURE);
        put(&mut bytes, 16, &self.uuid.0);
        put(&mut bytes, 32, &self.parent_uuid.0);
        put(&mut bytes, FLAGS_AT, &(if self.error { FLAG_ERROR } else { 0 }).to_le_bytes());
        put(&mut bytes, 52, &major.to_le_bytes());
        put(&mut bytes, 54, &minor.to_le_bytes());
        put(&mut bytes, 56, &layout.external_lbasize.to_le_bytes());
        put(&mut bytes, 60, &layout.external_nlba.to_le_bytes());
        put(&mut bytes, 64, &layout.internal_lbasize.to_le_bytes());
        put(&mut bytes, 68, &layout.internal_nlba.to_le_bytes());
        put(&mut bytes, 72, &layout.nfree.to_le_bytes());
        put(&mut bytes, 76, &(INFO_BYTES as u32).to_le_bytes());
        put(&mut bytes, 80, &self.nextoff.to_le_bytes());
        put(&mut bytes, 88, &layout.dataoff.to_le_bytes());
        put(&mut bytes, 96, &layout.mapoff.to_le_bytes());
        put(&mut bytes, 104, &layout.flogoff.to_le_bytes());
        put(&mut bytes, 112, &layout.infooff.to_le_bytes());
        let sum = checksum(&bytes);
        bytes[CHECKSUM_AT..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Parses the first bytes of an arena that has at most `room` bytes.
    ///
    /// # Errors
    ///
    /// The bytes are not an info block, or describe an arena that does not fit.
    pub fn parse(bytes: &InfoBytes, room: u64) -> Result<Self, InfoError> {
        if bytes[..16] != *SIGNATURE {
            return Err(InfoError::Signature);
        }
        if u64::from_le_bytes(field(bytes, CHECKSUM_AT)) != checksum(bytes) {
            return Err(InfoError::Checksum);
        }
        let version = match (short(bytes, 52), short(bytes, 54)) {
            (1, 1) => Version::V1,
            (2, 0) => Version::V2,
            (major, minor) => return Err(InfoError::Version { major, minor }),
        };
        let info = Self {
            uuid: Uuid(field(bytes, 16)),
            parent_uuid: Uuid(field(bytes, 32)),
            error: word(bytes, FLAGS_AT) & FLAG_ERROR != 0,
            version,
            layout: Layout {
                external_lbasize: word(bytes, 56),
                external_nlba: word(bytes, 60),
                internal_lbasize: word(bytes, 64),
                internal_nlba: word(bytes, 68),
                nfree: word(bytes, 72),
                dataoff: long(bytes, 88),
                mapoff: long(bytes, 96),
                flogoff: long(bytes, 104),
                infooff: long(bytes, 112),
            },
            nextoff: long(bytes, 80),
        };
        info.check(room).map_err(InfoError::Field)?;
        Ok(info)
    }

    /// Returns the name of the first field that violates [info-fields-consistent] as an error.
    fn check(&self, room: u64) -> Result<(), &'static str> {
        let Layout { internal_nlba, external_nlba, nfree, .. } = self.layout;
        let Layout { dataoff, mapoff, flogoff, infooff, .. } = self.layout;
        let internal = self.layout.internal_lbasize;
        let external = self.layout.external_lbasize;
        require((1..=SECTOR_BYTES_MAX).contains(&external), "external_lbasize")?;
        require(internal >= external, "internal_lbasize")?;
        require((1..=NFREE_MAX).contains(&nfree), "nfree")?;
        require(internal_nlba <= BLOCKS_MAX, "internal_nlba")?;
        require(external_nlba.checked_add(nfree) == Some(internal_nlba), "external_nlba")?;
        require(external_nlba > 0, "external_nlba")?;
        // Sums and products of what is limited to 2^40 and 2^32 do not overflow.
        let end = room.min(ARENA_BYTES_MAX);
        require(infooff.is_multiple_of(8) && infooff <= end.saturating_sub(INFO_BYTES), "infooff")?;
        let log_bytes = u64::from(nfree) * FLOG_GROUP_BYTES;
        let is_log = infooff.saturating_sub(flogoff) >= log_bytes;
        require(is_log && flogoff.is_multiple_of(FLOG_GROUP_BYTES), "flogoff")?;
        let map_bytes = u64::from(external_nlba) * MAP_ENTRY_BYTES;
        let is_map = flogoff.saturating_sub(mapoff) >= map_bytes;
        require(is_map && mapoff.is_multiple_of(FLOG_GROUP_BYTES), "mapoff")?;
        require(dataoff >= INFO_BYTES && dataoff.is_multiple_of(8) && dataoff < mapoff, "dataoff")?;
        let data_bytes = u64::from(internal_nlba).checked_mul(u64::from(internal));
        require(data_bytes.is_some_and(|bytes| bytes <= mapoff - dataoff), "internal_nlba")?;
        // [info-fields-consistent]: the next arena starts behind this one.
        let behind = self.nextoff >= infooff + INFO_BYTES && self.nextoff < room;
        require(self.nextoff == 0 || behind && self.nextoff.is_multiple_of(INFO_BYTES), "nextoff")
    }
}

fn put(bytes: &mut InfoBytes, at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value)
}

fn word(bytes: &InfoBytes, at: usize) -> u32 {
    u32::from_le_bytes(field(bytes, at))
}

fn long(bytes: &InfoBytes, at: usize) -> u64 {
    u64::from_le_bytes(field(bytes, at))
}

fn short(bytes: &InfoBytes, at: usize) -> u16 {
    u16::from_le_bytes(field(bytes, at))
}

fn require(is: bool, name: &'static str) -> Result<(), &'static str> {
    if is { Ok(()) } else { Err(name) }
}

fn field<const N: usize>(bytes: &InfoBytes, at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("as many bytes as the field has")
}

/// Clears the broken mark of an arena, and updates the checksum.
pub(super) fn clear_error(bytes: &mut InfoBytes) {
    debug_assert_eq!(bytes[..16], *SIGNATURE, "only a whole info block is repaired");
    let flags = u32::from_le_bytes(field(bytes, FLAGS_AT)) & !FLAG_ERROR;
    bytes[FLAGS_AT..FLAGS_AT + 4].copy_from_slice(&flags.to_le_bytes());
    let sum = checksum(bytes);
    bytes[CHECKSUM_AT..].copy_from_slice(&sum.to_le_bytes());
}

/// Returns the checksum of an info block.
#[must_use]
pub fn checksum(bytes: &InfoBytes) -> u64 {
    let mut low = 0_u32;
    let mut high = 0_u32;
    for (n, word) in bytes.chunks_exact(4).enumerate() {
        let word = if n * 4 >= CHECKSUM_AT { &[0; 4] } else { word };
        let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        low = low.wrapping_add(word);
        high = high.wrapping_add(low);
    }
    u64::from(high) << 32 | u64::from(low)
}

#[cfg(test)]
mod tests {
    use super::super::layout::NFREE;
    use super::*;

    const ROOM: u64 = 32 << 20;

    fn info() -> InfoBlock {
        InfoBlock {
            uuid: Uuid([7; 16]),
            parent_uuid: Uuid::NIL,
            error: false,
            version: Version::V2,
            layout: Layout::new(ROOM, 520, 576, NFREE).expect("layout of a 32 MiB arena"),
            nextoff: 0,
        }
    }

    #[test]
    fn an_info_block_survives_a_round_trip() {
        let info = info();
        assert_eq!(InfoBlock::parse(&info.to_bytes(), ROOM), Ok(info));
        let failed = InfoBlock { error: true, version: Version::V1, ..info };
        assert_eq!(InfoBlock::parse(&failed.to_bytes(), ROOM), Ok(failed));
    }

    #[test]
    fn the_checksum_counts_its_own_field_as_zeroes() {
        // By hand: a word of 1 at index `n` of 1024 adds 1 to the low sum, and 1024 - n to the high
        // sum.
        let mut bytes = [0; INFO_BYTES as usize];
        (bytes[4088], bytes[4092]) = (98, 99);
        assert_eq!(checksum(&bytes), 0);
        bytes[4084] = 1;
        assert_eq!(checksum(&bytes), 3 << 32 | 1);
        bytes[4084] = 0;
        bytes[8] = 1;
        assert_eq!(checksum(&bytes), 1022 << 32 | 1);
    }

    #[test]
    fn any_changed_byte_is_detected() {
        let bytes = info().to_bytes();
        for at in 0..bytes.len() {
            let mut changed = bytes;
            changed[at] ^= 0x40;
            let refused =
                InfoBlock::parse(&changed, ROOM).expect_err("info block with a changed byte");
            let expected = if at < 16 { InfoError::Signature } else { InfoError::Checksum };
            assert_eq!(refused, expected, "at {at}");
        }
    }

    #[test]
    fn a_uuid_is_written_in_groups() {
        let bytes = core::array::from_fn(|n| 0x10 + n as u8);
        let text = alloc::format!("{}", Uuid(bytes));
        assert_eq!(text, "10111213-1415-1617-1819-1a1b1c1d1e1f");
    }

    const GIB: u64 = 1 << 30;

    type Change = fn(&mut InfoBlock);

    /// The smallest possible arena: blocks for a sector and a lane, a map of one entry, and a log
    /// of one group.
    const SMALL: Layout = Layout {
        external_lbasize: 512,
        external_nlba: 1,
        internal_lbasize: 512,
        internal_nlba: 2,
        nfree: 1,
        dataoff: 4096,
        mapoff: 5120,
        flogoff: 5184,
        infooff: 5248,
    };

    fn parsed(layout: Layout, nextoff: u64, room: u64) -> Result<(), InfoError> {
        let info = InfoBlock { layout, nextoff, ..info() };
        InfoBlock::parse(&info.to_bytes(), room).map(|parsed| assert_eq!(parsed, info))
    }

    /// [info-fields-consistent]: each row has a layout at a limit, and one that is a step beyond.
    #[test]
    fn a_field_may_have_its_limit_and_no_more() {
        let rows = [
            (with_bytes(1), with_bytes(0), "external_lbasize"),
            (roomy(with_bytes(1 << 20)), roomy(with_bytes((1 << 20) + 1)), "external_lbasize"),
            (SMALL, Layout { internal_lbasize: 511, ..SMALL }, "internal_lbasize"),
            (SMALL, with_counts(2, 0, SMALL), "nfree"),
            (with_counts(1, 4096, roomy(SMALL)), with_counts(1, 4097, roomy(SMALL)), "nfree"),
            // 2^30 blocks of one byte, and a map of 4 GiB.
            (
                with_counts((1 << 30) - 1, 1, roomy(with_blocks(1))),
                with_counts(1 << 30, 1, roomy(with_blocks(1))),
                "internal_nlba",
            ),
            (SMALL, with_counts(0, 1, SMALL), "external_nlba"),
            (info_at(512 * GIB - 4096), info_at(512 * GIB - 4088), "infooff"),
            (info_at(5256), info_at(5252), "infooff"),
            (SMALL, info_at(5240), "flogoff"),
            (log_at(5248), log_at(5256), "flogoff"),
            // 16 map entries fill the 64 bytes before the log.
            (with_counts(16, 1, with_blocks(60)), with_counts(17, 1, with_blocks(56)), "mapoff"),
            (map_at(5184), map_at(5192), "mapoff"),
            (data_at(4096), data_at(4088), "dataoff"),
            (data_at(4104), data_at(4100), "dataoff"),
            (data_at(5112), data_at(5120), "dataoff"),
            (with_blocks(512), with_blocks(513), "internal_nlba"),
        ];
        for (limit, beyond, field) in rows {
            assert_eq!(parsed(limit, 0, 1024 * GIB), Ok(()), "{field}");
            assert_eq!(parsed(beyond, 0, 1024 * GIB), Err(InfoError::Field(field)));
        }
    }

    fn with_bytes(bytes: u32) -> Layout {
        Layout { external_lbasize: bytes, internal_lbasize: bytes, ..SMALL }
    }

    fn roomy(layout: Layout) -> Layout {
        Layout { mapoff: 4 * GIB, flogoff: 9 * GIB, infooff: 10 * GIB, ..layout }
    }

    fn with_counts(sectors: u32, nfree: u32, layout: Layout) -> Layout {
        let internal_nlba = sectors + nfree;
        Layout { external_nlba: sectors, internal_nlba, nfree, ..layout }
    }

    fn with_blocks(bytes: u32) -> Layout {
        Layout { external_lbasize: 1, internal_lbasize: bytes, ..SMALL }
    }

    fn info_at(infooff: u64) -> Layout {
        Layout { infooff, ..SMALL }
    }

    fn log_at(flogoff: u64) -> Layout {
        Layout { flogoff, infooff: 5400, ..SMALL }
    }

    fn map_at(mapoff: u64) -> Layout {
        Layout { mapoff, flogoff: 5248, infooff: 5312, ..SMALL }
    }

    fn data_at(dataoff: u64) -> Layout {
        Layout { dataoff, ..with_blocks(4) }
    }

    /// [info-fields-consistent]: the next arena starts at a whole page, behind this one and before
    /// the end.
    #[test]
    fn the_next_arena_follows_this_one() {
        let layout = Layout { infooff: 8192, ..SMALL };
        assert_eq!(parsed(layout, 12288, 12289), Ok(()));
        for (nextoff, room) in [(8192, 12289), (12288, 12288), (12296, 16384)] {
            let refused = Err(InfoError::Field("nextoff"));
            assert_eq!(parsed(layout, nextoff, room), refused, "{nextoff} of {room}");
        }
    }

    #[test]
    fn an_impossible_field_is_named() {
        let cases: [(Change, &str); 16] = [
            (|i| i.layout.external_lbasize = 0, "external_lbasize"),
            (|i| i.layout.external_lbasize = 1 << 31, "external_lbasize"),
            (|i| i.layout.internal_lbasize = 519, "internal_lbasize"),
            (|i| i.layout.internal_lbasize = u32::MAX, "internal_nlba"),
            (|i| i.layout.nfree = 0, "nfree"),
            (|i| i.layout.nfree = u32::MAX, "nfree"),
            (|i| i.layout.external_nlba += 1, "external_nlba"),
            (
                |i| (i.layout.external_nlba, i.layout.internal_nlba) = (0, i.layout.nfree),
                "external_nlba",
            ),
            (|i| i.layout.infooff = u64::MAX - 7, "infooff"),
            (|i| i.layout.flogoff = i.layout.infooff, "flogoff"),
            (|i| i.layout.mapoff = i.layout.flogoff, "mapoff"),
            (|i| i.layout.dataoff = 0, "dataoff"),
            (|i| i.layout.dataoff = i.layout.mapoff, "dataoff"),
            (|i| i.nextoff = 4096, "nextoff"),
            // The arena's own second info block begins there.
            (|i| i.nextoff = i.layout.infooff, "nextoff"),
            (|i| i.nextoff = u64::MAX, "nextoff"),
        ];
        for (change, field) in cases {
            assert_eq!(refusal(change), InfoError::Field(field));
        }
        assert_eq!(
            InfoBlock::parse(&info().to_bytes(), ROOM - 4096),
            Err(InfoError::Field("infooff")),
            "a truncated arena"
        );
    }

    fn refusal(change: Change) -> InfoError {
        let mut info = info();
        change(&mut info);
        InfoBlock::parse(&info.to_bytes(), ROOM).expect_err("info block with a bad field")
    }
}
