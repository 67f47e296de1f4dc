//! Memory that the kernel reads and writes beside us: anonymous mappings, reached only by copying.
//!
//! A [`Map`] is the data of a disk in memory, shared by all lanes; a [`Pages`] is a buffer of one
//! lane, aligned for direct I/O. No reference into either is ever made, as the kernel, or for a
//! map another lane, may write there at any time: bytes are copied in and out, or named to the
//! kernel as a [`Span`].
//!
//! # Safety
//!
//! The one invariant, set by [`Map::new`] and never changed: `start` is the beginning of a mapping of
//! `len` bytes, readable and writable, which lives until the value is dropped. Every access is
//! checked against `len`. Two lanes that copy the same bytes at the same time get some mix of them,
//! as two clients of a disk do that write one place at once: no invariant of ours lies in there.
#![allow(unsafe_code, reason = "mappings are raw memory; see Safety above")]

use core::ffi::c_void;
use core::ops::Range;
use core::ptr::{self, NonNull};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::io;

/// Bytes of a page, as far as this module cares: what discarding works on.
pub(crate) const PAGE_BYTES: usize = 4096;

/// An anonymous mapping. See the [module](self).
#[derive(Debug)]
pub(crate) struct Map {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and is accessed only by copying.
unsafe impl Send for Map {}
// SAFETY: as above; racing copies may mix bytes, which nothing here relies on.
unsafe impl Sync for Map {}

/// A piece of memory as the kernel is told of it. Whoever hands it to the kernel keeps what it lies
/// in alive until the kernel is done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) start: *mut u8,
    pub(crate) len: usize,
}

impl Map {
    /// `len` bytes of zeroes, rounded up to pages. Takes memory only where something is written.
    ///
    /// # Errors
    ///
    /// Those of `mmap`; `len` is 0.
    pub(crate) fn new(len: usize) -> io::Result<Self> {
        let len = len.checked_next_multiple_of(PAGE_BYTES).ok_or(io::ErrorKind::OutOfMemory)?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping, placed by the kernel, overlaps nothing.
        let start = unsafe {
            mmap_anonymous(ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, flags)?
        };
        let start = NonNull::new(start.cast()).expect("address of a mapping");
        Ok(Self { start, len })
    }

    /// Takes memory for all of it now, in huge pages where there are some.
    ///
    /// # Errors
    ///
    /// There is not enough.
    pub(crate) fn fill_with_huge_pages(&self) -> io::Result<()> {
        let all = self.address(0);
        // SAFETY: advice about a mapping of ours; its bytes stay as they are. A kernel without huge pages
        // refuses, which changes nothing but speed.
        let _ = unsafe { madvise(all, self.len, Advice::LinuxHugepage) };
        // SAFETY: as above; writes nothing.
        Ok(unsafe { madvise(all, self.len, Advice::LinuxPopulateWrite) }?)
    }

    /// Its length in bytes.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Copies `bytes` to `at`.
    ///
    /// # Panics
    ///
    /// If that ends beyond the mapping, as for all that follow.
    #[inline]
    pub(crate) fn write(&self, at: usize, bytes: &[u8]) {
        let span = self.span(at..at + bytes.len());
        // SAFETY: the span lies in the mapping, where no reference points.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), span.start, span.len) };
    }

    /// Copies `range` to the end of `to`.
    pub(crate) fn read(&self, range: Range<usize>, to: &mut Vec<u8>) {
        let span = self.span(range);
        to.reserve(span.len);
        // SAFETY: the span lies in the mapping, and there is room for it, which is then filled.
        unsafe {
            ptr::copy_nonoverlapping(span.start, to.as_mut_ptr().add(to.len()), span.len);
            to.set_len(to.len() + span.len);
        }
    }

    /// Copies `range` of `from` to `at`.
    pub(crate) fn write_from(&self, at: usize, from: &Self, range: Range<usize>) {
        let (from, to) = (from.span(range.clone()), self.span(at..at + range.len()));
        // SAFETY: both lie in their mappings; `copy` allows them to overlap.
        unsafe { ptr::copy(from.start, to.start, to.len) };
    }

    /// Makes `range` zeroes, and gives back the memory of whole pages in it.
    pub(crate) fn discard(&self, range: Range<usize>) {
        let first_page = range.start.next_multiple_of(PAGE_BYTES).min(range.end);
        let end_page = (range.end / PAGE_BYTES * PAGE_BYTES).max(first_page);
        self.zero(range.start..first_page);
        self.zero(end_page..range.end);
        let pages = self.span(first_page..end_page);
        if pages.len > 0 {
            // SAFETY: whole pages of a private anonymous mapping of ours; they read as zeroes after.
            let freed = unsafe { madvise(pages.start.cast(), pages.len, Advice::LinuxDontNeed) };
            if freed.is_err() {
                self.zero(first_page..end_page);
            }
        }
    }

    /// Writes zeroes over `range`.
    pub(crate) fn zero(&self, range: Range<usize>) {
        let span = self.span(range);
        // SAFETY: as in `write`.
        unsafe { ptr::write_bytes(span.start, 0, span.len) };
    }

    /// `range`, for the kernel.
    #[inline]
    pub(crate) fn span(&self, range: Range<usize>) -> Span {
        assert!(range.start <= range.end && range.end <= self.len, "beyond the mapping");
        // SAFETY: within the mapping, as just checked.
        let start = unsafe { self.start.add(range.start) };
        Span { start: start.as_ptr(), len: range.end - range.start }
    }

    fn address(&self, at: usize) -> *mut c_void {
        self.span(at..at).start.cast()
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing that is left points into it.
        let unmapped = unsafe { munmap(self.address(0), self.len) };
        debug_assert!(unmapped.is_ok(), "a whole mapping can be unmapped");
    }
}

/// A buffer of one lane. See the [module](self).
pub(crate) type Pages = Map;

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(map: &Map) -> Vec<u8> {
        let mut bytes = Vec::new();
        map.read(0..map.len(), &mut bytes);
        bytes
    }

    #[test]
    fn discarded_bytes_are_zeroes_and_no_others() {
        let map = Map::new(5 * PAGE_BYTES).expect("mapping of a few pages");
        map.write(0, &[7; 5 * PAGE_BYTES]);
        let range = 100..3 * PAGE_BYTES + 9;
        map.discard(range.clone());
        let bytes = bytes_of(&map);
        for (at, byte) in bytes.iter().enumerate() {
            assert_eq!(*byte, if range.contains(&at) { 0 } else { 7 }, "at {at}");
        }
        map.discard(17..17);
        map.discard(PAGE_BYTES + 1..PAGE_BYTES + 2);
    }

    #[test]
    #[should_panic(expected = "beyond the mapping")]
    fn a_write_beyond_the_end_panics() {
        Map::new(1).expect("mapping of a few pages").write(PAGE_BYTES - 1, &[1, 2]);
    }
}
