//! The header of a packed command: 512 bytes that describe the rest (JESD84-B51 6.6.29).
//!
//! | bytes | what |
//! |---|---|
//! | 0 | version, 1 |
//! | 1 | direction: 1 reads, 2 writes |
//! | 2 | number of entries, 1 to 63 |
//! | 8 n + 0 to 3 | entry n, from 1: the argument of its CMD23, least significant byte first |
//! | 8 n + 4 to 7 | its address, likewise |

use super::catalogue::BlockCount;
use super::data::Direction;

/// The number of entries that fit a header of 512 bytes.
pub const MAX_ENTRIES: u8 = 63;

/// Writes the header of a packed command into `block`. `entries` has the block count and the
/// address of each.
///
/// # Panics
///
/// Panics if there are more than [`MAX_ENTRIES`].
pub(crate) fn write_header(
    block: &mut [u8; 512],
    direction: Direction,
    entries: impl Iterator<Item = (BlockCount, u32)>,
) {
    *block = [0; 512];
    let (words, _) = block.as_chunks_mut::<4>();
    let (first, words) = words.split_at_mut(2);
    let mut count = 0;
    for (what, address) in entries {
        assert!(count < MAX_ENTRIES, "a header lists at most {MAX_ENTRIES} requests");
        debug_assert!(what.blocks > 0, "an entry of no blocks");
        let at = 2 * usize::from(count);
        words[at] = what.argument().to_le_bytes();
        words[at + 1] = address.to_le_bytes();
        count += 1;
    }
    let direction = match direction {
        Direction::Read => 1,
        Direction::Write => 2,
    };
    first[0] = [1, direction, count, 0];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_of_two_writes_follows_the_layout_of_the_standard() {
        let mut block = [0xff; 512];
        let reliable = BlockCount { reliable: true, ..BlockCount::new(8) };
        let entries = [(reliable, 0x1000), (BlockCount::new(257), 0x0102_0304)];
        write_header(&mut block, Direction::Write, entries.into_iter());
        assert_eq!(block[..8], [1, 2, 2, 0, 0, 0, 0, 0]);
        let expected = [8, 0, 0, 0x80, 0, 0x10, 0, 0, 1, 1, 0, 0, 4, 3, 2, 1];
        assert_eq!(block[8..24], expected);
        assert!(block[24..].iter().all(|&byte| byte == 0));
        let full = [(BlockCount::new(1), 7); 63];
        write_header(&mut block, Direction::Read, full.into_iter());
        assert_eq!((block[1], block[2], block[508]), (1, 63, 7));
    }
}
