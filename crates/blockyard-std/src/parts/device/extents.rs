//! The written parts of a disk in memory: a bit for each granule, which any lane may set.
//!
//! A granule is a hole if it was never written, or was discarded since. The bit of a written
//! granule is set after its bytes are stored and before the write is answered. The bit of a
//! discarded one is cleared before its bytes are discarded. If a write and a discard race, zeroes
//! may therefore be reported as data, but never data as a hole.

use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use std::io::{self, ErrorKind};

/// The size of a granule, in bytes.
pub const GRANULE_BYTES: u64 = 4096;
const BITS: u64 = u64::BITS as u64;
/// The maximum number of granules that one call of [`Extents::run_at`] checks: other clients wait
/// meanwhile.
const LOOK_GRANULES: u64 = (1 << 30) / GRANULE_BYTES;

/// The bits of the granules. See the [module](self).
#[derive(Debug)]
pub struct Extents {
    words: Vec<AtomicU64>,
    len_bytes: u64,
}

impl Extents {
    /// Returns the extents of a disk of `len_bytes` that is one hole. They take 1/32768 of its
    /// size.
    ///
    /// # Errors
    ///
    /// There is not enough memory.
    pub fn new(len_bytes: u64) -> io::Result<Self> {
        let count = len_bytes.div_ceil(GRANULE_BYTES).div_ceil(BITS);
        let count = usize::try_from(count).map_err(|_| ErrorKind::OutOfMemory)?;
        let mut words = Vec::new();
        words.try_reserve_exact(count).map_err(|_| ErrorKind::OutOfMemory)?;
        words.resize_with(count, AtomicU64::default);
        Ok(Self { words, len_bytes })
    }

    /// Returns the size of the disk, in bytes.
    pub const fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Marks every granule that overlaps `bytes` as data. Call this after the bytes are stored.
    pub fn written(&self, bytes: Range<u64>) {
        if bytes.is_empty() {
            return;
        }
        for (word, bits) in
            self.words(bytes.start / GRANULE_BYTES..bytes.end.div_ceil(GRANULE_BYTES))
        {
            if word.load(Ordering::Relaxed) & bits != bits {
                word.fetch_or(bits, Ordering::Release);
            }
        }
    }

    /// Marks every granule that is wholly within `bytes` as a hole. Call this before the bytes are
    /// discarded.
    pub fn discarded(&self, bytes: Range<u64>) {
        let end = if bytes.end == self.len_bytes {
            bytes.end.div_ceil(GRANULE_BYTES)
        } else {
            bytes.end / GRANULE_BYTES
        };
        for (word, bits) in self.words(bytes.start.div_ceil(GRANULE_BYTES)..end) {
            if word.load(Ordering::Relaxed) & bits != 0 {
                word.fetch_and(!bits, Ordering::Release);
            }
        }
    }

    /// Returns the length in bytes of the run of data or hole at `offset`, up to about 1 GiB, and
    /// whether it is data.
    pub fn run_at(&self, offset: u64) -> (u64, bool) {
        let first = offset / GRANULE_BYTES;
        let last = self.len_bytes.div_ceil(GRANULE_BYTES).min(first + LOOK_GRANULES);
        let is_data = self.is_data(first);
        let mut end = first + 1;
        while end < last {
            let (word, _) = self.at(end);
            let all_alike = if is_data { u64::MAX } else { 0 };
            if end.is_multiple_of(BITS) && word.load(Ordering::Acquire) == all_alike {
                end += BITS;
            } else if self.is_data(end) == is_data {
                end += 1;
            } else {
                break;
            }
        }
        ((end * GRANULE_BYTES).min(self.len_bytes) - offset, is_data)
    }

    fn is_data(&self, granule: u64) -> bool {
        let (word, bit) = self.at(granule);
        word.load(Ordering::Acquire) & bit != 0
    }

    /// Returns each word that has bits of `granules`, with a mask of those bits.
    fn words(&self, granules: Range<u64>) -> impl Iterator<Item = (&AtomicU64, u64)> {
        let mut next = granules.start;
        core::iter::from_fn(move || {
            let (word, first) = (next < granules.end).then(|| self.at(next))?;
            let end = granules.end.min((next / BITS + 1) * BITS);
            let bits = u64::MAX >> (BITS - (end - next));
            next = end;
            Some((word, bits * first))
        })
    }

    fn at(&self, granule: u64) -> (&AtomicU64, u64) {
        let word = usize::try_from(granule / BITS).expect("granule of a disk in memory");
        (&self.words[word], 1 << (granule % BITS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk in memory whose extents found no memory ended its process.
    #[test]
    fn extents_without_memory_are_an_error() {
        let all = Extents::new(u64::MAX); // 512 TiB: more than any address space of today
        assert_eq!(all.expect_err("it is too much").kind(), ErrorKind::OutOfMemory);
    }

    /// Compares the extents with a list of booleans after the same random writes and discards.
    #[test]
    fn runs_are_those_of_a_list_of_booleans() {
        const BYTES: u64 = 300 * GRANULE_BYTES + 77;
        let extents = Extents::new(BYTES).expect("a few words of memory should be left");
        let mut model = [false; 301];
        let mut random = 1_u64;
        for _ in 0..500 {
            let start = draw(&mut random, BYTES);
            let len = draw(&mut random, 100 * GRANULE_BYTES);
            let bytes = start..(start + len).min(BYTES);
            let writes = draw(&mut random, 2) == 0;
            for (at, data) in model.iter_mut().enumerate() {
                let first = at as u64 * GRANULE_BYTES;
                let granule = first..(first + GRANULE_BYTES).min(BYTES);
                let touched = bytes.start < granule.end && granule.start < bytes.end;
                let covered = bytes.start <= granule.start && granule.end <= bytes.end;
                match writes {
                    true if touched => *data = true,
                    false if covered => *data = false,
                    _ => {}
                }
            }
            if writes {
                extents.written(bytes)
            } else {
                extents.discarded(bytes)
            }
            let from = draw(&mut random, BYTES);
            let first = usize::try_from(from / GRANULE_BYTES).expect("granule of a small disk");
            let alike = model[first..].iter().take_while(|data| **data == model[first]).count();
            let end = ((first + alike) as u64 * GRANULE_BYTES).min(BYTES);
            assert_eq!(extents.run_at(from), (end - from, model[first]));
        }
    }

    fn draw(random: &mut u64, below: u64) -> u64 {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (*random >> 33) % below
    }
}
