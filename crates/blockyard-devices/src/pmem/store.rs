//! The bytes of a memory, most of which are never read.

use blockyard_btt::layout::MAP_ENTRY_BYTES;
use blockyard_btt::{MapEntry, PostmapAba};
use core::ops::Range;

const CHUNK_BYTES: usize = 64 << 10;
const CHUNK: u64 = CHUNK_BYTES as u64;
/// Bytes of a word of a map.
const WORD: usize = size_of::<u32>();

/// Bytes in chunks that are allocated on first use. At first all bytes are zero, except for a map
/// that assigns each sector the block of the same number, as after one write of each in order.
#[derive(Clone, Debug)]
pub(super) struct Store {
    chunks: Vec<Option<Box<[u8]>>>,
    map: Range<u64>,
}

impl Store {
    /// Returns `bytes` bytes of zeroes.
    pub(super) fn new(bytes: u64) -> Self {
        let chunks = usize::try_from(bytes.div_ceil(CHUNK))
            .expect("the chunks of a memory should fit usize");
        Self { chunks: vec![None; chunks], map: 0..0 }
    }

    /// Puts the map at `map`, which must be unused.
    pub(super) fn set_map(&mut self, map: Range<u64>) {
        assert!(self.map.is_empty(), "a second map");
        assert!(map.end <= self.chunks.len() as u64 * CHUNK, "a map outside the memory");
        let end = map.end.next_multiple_of(CHUNK).min(self.chunks.len() as u64 * CHUNK);
        for at in (map.start / CHUNK * CHUNK..end).step_by(CHUNK_BYTES) {
            if let Some(chunk) = &mut self.chunks[index(at)] {
                fill(chunk, at, &map);
            }
        }
        self.map = map;
    }

    /// Returns the bytes from `at` to the end of the chunk.
    fn rest(&mut self, at: u64) -> &mut [u8] {
        debug_assert!(at / CHUNK < self.chunks.len() as u64, "byte {at} is outside the memory");
        let map = &self.map;
        let fresh = || {
            let mut chunk = vec![0; CHUNK_BYTES].into_boxed_slice();
            fill(&mut chunk, at / CHUNK * CHUNK, map);
            chunk
        };
        let chunk = self.chunks[index(at)].get_or_insert_with(fresh);
        &mut chunk[(at % CHUNK) as usize..]
    }

    /// Copies bytes out.
    pub(super) fn read(&mut self, mut at: u64, mut to: &mut [u8]) {
        while !to.is_empty() {
            let from = self.rest(at);
            let count = from.len().min(to.len());
            to[..count].copy_from_slice(&from[..count]);
            to = &mut to[count..];
            at += count as u64;
        }
    }

    /// Copies bytes in.
    pub(super) fn write(&mut self, mut at: u64, mut from: &[u8]) {
        while !from.is_empty() {
            let to = self.rest(at);
            let count = to.len().min(from.len());
            to[..count].copy_from_slice(&from[..count]);
            from = &from[count..];
            at += count as u64;
        }
    }

    /// Loads a word that does not cross a line.
    pub(super) fn load(&mut self, at: u64) -> u32 {
        debug_assert!(at.is_multiple_of(WORD as u64), "a word at {at}");
        let bytes = self.rest(at).first_chunk().expect("an aligned word should lie within a chunk");
        u32::from_le_bytes(*bytes)
    }
}

fn index(at: u64) -> usize {
    usize::try_from(at / CHUNK).expect("a chunk number should fit usize")
}

/// Fills the part of the chunk at `at` that is in the map.
fn fill(chunk: &mut [u8], at: u64, map: &Range<u64>) {
    let first = map.start.max(at);
    let end = map.end.min(at + CHUNK);
    for entry in (first..end.max(first)).step_by(WORD) {
        let lba = u32::try_from((entry - map.start) / MAP_ENTRY_BYTES)
            .expect("a premap ABA should fit 32 bits");
        let word = MapEntry::normal(PostmapAba(lba)).0.to_le_bytes();
        let place = usize::try_from(entry - at).expect("a place in a chunk should fit usize");
        chunk[place..place + word.len()].copy_from_slice(&word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_that_of_sectors_written_in_order_wherever_it_lies_in_chunks() {
        let begin = CHUNK - 8;
        let end = 2 * CHUNK + 4;
        let mut store = Store::new(4 * CHUNK);
        store.write(CHUNK - 12, &[7; 2]);
        store.set_map(begin..end);
        for (lba, at) in (begin..end).step_by(4).enumerate() {
            let lba = u32::try_from(lba).expect("small");
            assert_eq!(store.load(at), MapEntry::normal(PostmapAba(lba)).0, "{at}");
        }
        let mut around = [1; 4];
        store.read(CHUNK - 12, &mut around);
        assert_eq!(around, [7, 7, 0, 0]);
        assert_eq!(store.load(end), 0);
    }

    #[test]
    fn bytes_cross_chunks() {
        let mut store = Store::new(2 * CHUNK);
        let bytes: Vec<u8> = (0..=255).collect();
        store.write(CHUNK - 100, &bytes);
        let mut back = vec![0; 256];
        store.read(CHUNK - 100, &mut back);
        assert_eq!(back, bytes);
    }
}
