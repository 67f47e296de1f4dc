//! The header of a packed command: 512 bytes that describe the rest (JESD84-B51 6.6.29).
//!
//! | bytes | content |
//! |---|---|
//! | 0 | version, 1 |
//! | 1 | direction: 1 reads, 2 writes |
//! | 2 | number of entries, 1 to 63 |
//! | 8 n + 0 to 3 | entry n, from 1: the argument of its CMD23, least significant byte first |
//! | 8 n + 4 to 7 | its address, likewise |

use blockyard_mmc::command::Direction;
use core::fmt;

/// The maximum number of entries: 8 bytes each, after the first 8 bytes.
pub(crate) const MAX_ENTRIES: u8 = 63;

/// One read or write of a packed command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The argument of the entry's CMD23.
    pub count: u32,
    /// The entry's address.
    pub address: u32,
}

impl Entry {
    /// Returns the number of 512-byte blocks.
    #[must_use]
    pub const fn blocks(&self) -> u32 {
        self.count & 0xffff
    }
}

/// An error in a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// The header has another version.
    Version(u8),
    /// The header's direction differs from that of the commands around it.
    Direction(u8),
    /// The header has no entries, or more than the card takes.
    Entries(u8),
    /// An entry (numbered from 1) has no blocks, or an address that the card does not have.
    Entry(u8),
    /// The header and its entries have this many blocks, but CMD23 announced another number.
    Blocks(u32),
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => write!(f, "header of version {version}, not 1"),
            Self::Direction(direction) => write!(f, "header of direction {direction}"),
            Self::Entries(entries) => write!(f, "header of {entries} entries"),
            Self::Entry(entry) => write!(f, "entry {entry} of the header is empty or out of range"),
            Self::Blocks(blocks) => write!(f, "header of {blocks} blocks, itself included"),
        }
    }
}

/// Parses the header of a packed command in `direction` with at most `max_entries` entries.
///
/// # Errors
///
/// Returns [`HeaderError`] for a wrong version, direction or number of entries.
pub fn parse(
    header: &[u8; 512],
    direction: Direction,
    max_entries: u8,
) -> Result<Vec<Entry>, HeaderError> {
    let [version, way, entries, ..] = *header;
    if version != 1 {
        return Err(HeaderError::Version(version));
    }
    let wanted = match direction {
        Direction::Read => 1,
        Direction::Write => 2,
    };
    if way != wanted {
        return Err(HeaderError::Direction(way));
    }
    if entries == 0 || entries > max_entries.min(MAX_ENTRIES) {
        return Err(HeaderError::Entries(entries));
    }
    let (words, _) = header.as_chunks::<4>();
    let entry = |at: usize| Entry {
        count: u32::from_le_bytes(words[2 * at]),
        address: u32::from_le_bytes(words[2 * at + 1]),
    };
    Ok((1..=usize::from(entries)).map(entry).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_header_of_two_writes_is_read_as_the_standard_lays_it_out() {
        let mut header = [0; 512];
        header[..3].copy_from_slice(&[1, 2, 2]);
        header[8..24].copy_from_slice(&[8, 0, 0, 0x80, 0, 0x10, 0, 0, 1, 1, 0, 0, 4, 3, 2, 1]);
        let entries = parse(&header, Direction::Write, 63).unwrap();
        let first = Entry { count: 0x8000_0008, address: 0x1000 };
        let second = Entry { count: 0x101, address: 0x0102_0304 };
        assert_eq!(entries, [first, second]);
        assert_eq!((first.blocks(), second.blocks()), (8, 257));
        assert_eq!(parse(&header, Direction::Write, 1), Err(HeaderError::Entries(2)));
        header[2] = 64;
        assert_eq!(parse(&header, Direction::Write, 255), Err(HeaderError::Entries(64)));
        header[2] = 63;
        assert_eq!(parse(&header, Direction::Write, 255).unwrap().len(), 63);
        header[1] = 1;
        assert_eq!(parse(&header, Direction::Read, 63).unwrap().len(), 63);
        assert_eq!(parse(&header, Direction::Write, 63), Err(HeaderError::Direction(1)));
        header[0] = 0;
        assert_eq!(parse(&header, Direction::Write, 63), Err(HeaderError::Version(0)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_header_or_an_error(
            version in 0u8..3, direction in 0u8..4, entries in any::<u8>(), rest in any::<u8>(), max_entries in any::<u8>()
        ) {
            let mut header = [rest; 512];
            header[..3].copy_from_slice(&[version, direction, entries]);
            if let Ok(entries) = parse(&header, Direction::Write, max_entries) {
                prop_assert_eq!(entries.len(), usize::from(header[2]));
                prop_assert!(entries.len() <= usize::from(max_entries.min(63)));
            }
        }
    }
}
