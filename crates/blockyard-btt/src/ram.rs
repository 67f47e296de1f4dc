//! The smallest [`Memory`], made of atomic words: for examples, tests, and systems without
//! persistent memory.

use super::memory::{MediaError, Memory};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering, fence};

const WORD: u64 = 8;

/// Volatile bytes, zero at first. A fence only orders.
#[derive(Debug)]
pub struct Ram {
    words: Vec<AtomicU64>,
}

impl Ram {
    /// Allocates `bytes` zeroes, rounded up to whole words of eight bytes.
    ///
    /// # Panics
    ///
    /// Panics if `bytes` exceeds the address space.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        let words = usize::try_from(bytes.div_ceil(WORD)).expect("size within the address space");
        Self { words: core::iter::repeat_with(AtomicU64::default).take(words).collect() }
    }

    fn word(&self, at: u64) -> &AtomicU64 {
        &self.words[(at / WORD) as usize]
    }

    /// Calls `act` with each word that overlaps `at..at + len`, the first of its bytes in the
    /// range, their number, and the number of bytes before them.
    #[inline]
    fn pieces(&self, at: u64, len: usize, mut act: impl FnMut(&AtomicU64, usize, usize, usize)) {
        let mut done = 0;
        while done < len {
            let first = ((at + done as u64) % WORD) as usize;
            let count = (WORD as usize - first).min(len - done);
            act(self.word(at + done as u64), first, count, done);
            done += count;
        }
    }

    /// Stores `count` bytes of `word` from byte `first` on, and leaves its other bytes to other
    /// threads.
    fn merge(word: &AtomicU64, first: usize, count: usize, from: &[u8]) {
        debug_assert!(count == from.len() && first + count <= WORD as usize, "bytes of one word");
        let mut bytes = [0; WORD as usize];
        bytes[first..first + count].copy_from_slice(from);
        let new = u64::from_le_bytes(bytes);
        if count == WORD as usize {
            return word.store(new, Ordering::Relaxed);
        }
        let mask = ((1 << (count * 8)) - 1) << (first * 8);
        let _ = word
            .fetch_update(Ordering::Release, Ordering::Relaxed, |old: u64| Some(old & !mask | new));
    }
}

impl Memory for Ram {
    fn len(&self) -> u64 {
        self.words.len() as u64 * WORD
    }

    fn read(&self, at: u64, to: &mut [u8]) -> Result<(), MediaError> {
        self.pieces(at, to.len(), |word, first, count, done| {
            let bytes = word.load(Ordering::Relaxed).to_le_bytes();
            to[done..done + count].copy_from_slice(&bytes[first..first + count]);
        });
        Ok(())
    }

    fn write(&self, at: u64, from: &[u8]) -> Result<(), MediaError> {
        self.pieces(at, from.len(), |word, first, count, done| {
            Self::merge(word, first, count, &from[done..done + count]);
        });
        Ok(())
    }

    fn zero(&self, at: u64, len: u64) -> Result<(), MediaError> {
        let len = usize::try_from(len).map_err(|_| MediaError::Failed)?;
        self.pieces(at, len, |word, first, count, _| {
            Self::merge(word, first, count, &[0; WORD as usize][..count]);
        });
        Ok(())
    }

    fn load(&self, at: u64) -> Result<u32, MediaError> {
        debug_assert!(at.is_multiple_of(4), "[words-are-atomic]: aligned to four bytes");
        let word = self.word(at).load(Ordering::Acquire);
        Ok((word >> (at % WORD * 8)) as u32)
    }

    fn store(&self, at: u64, word: u32) -> Result<(), MediaError> {
        debug_assert!(at.is_multiple_of(4), "[words-are-atomic]: aligned to four bytes");
        let first = (at % WORD) as usize;
        Self::merge(self.word(at), first, 4, &word.to_le_bytes());
        Ok(())
    }

    fn store_long(&self, at: u64, word: u64) -> Result<(), MediaError> {
        debug_assert!(at.is_multiple_of(WORD), "[words-are-atomic]: aligned to eight bytes");
        self.word(at).store(word, Ordering::Release);
        Ok(())
    }

    fn write_back(&self, _at: u64, _len: u64) {}

    fn fence(&self) -> Result<(), MediaError> {
        fence(Ordering::SeqCst);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_without_bytes_is_empty() {
        assert!(Ram::new(0).is_empty() && !Ram::new(1).is_empty());
        assert_eq!(Ram::new(8).hole(0), 0, "nothing is known of holes");
    }

    #[test]
    fn bytes_are_where_they_were_written_and_nowhere_else() {
        let ram = Ram::new(32);
        ram.write(5, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]).expect("write to ram");
        let mut bytes = [0xff; 32];
        ram.read(0, &mut bytes).expect("read from ram");
        assert_eq!(bytes[..20], [0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 0, 0]);
        assert_eq!(ram.load(4), Ok(0x0302_0100));
        ram.store(4, 0xa0b0_c0d0).expect("store to ram");
        assert_eq!(ram.load(4), Ok(0xa0b0_c0d0));
        assert_eq!(ram.load(8), Ok(0x0706_0504));
        ram.zero(6, 3).expect("zeroing of ram");
        assert_eq!((ram.load(4), ram.load(8)), (Ok(0x0000_c0d0), Ok(0x0706_0500)));
    }
}
