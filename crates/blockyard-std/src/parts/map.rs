//! Memory that the kernel accesses concurrently: anonymous mappings, which we access only by
//! copying.
//!
//! A [`Map`] holds the data of a disk in memory and is shared by all lanes; a [`Pages`] is a buffer
//! of one lane, aligned for direct I/O. The kernel may write to either at any time, and so may
//! another lane in a map. So no reference into either is ever created: bytes are copied in and out,
//! or passed to the kernel as a [`Span`].
//!
//! # Safety
//!
//! The only invariant is established by [`Map::new`] and never changes: `start` is the beginning of
//! a mapping of `len` bytes, readable and writable, which lives until the value is dropped. Every
//! access is checked against `len`. Two lanes that copy the same bytes at the same time get some
//! mix of them, as do two clients that write one place of a disk at once: no invariant of ours
//! depends on those bytes.
#![allow(unsafe_code, reason = "mappings are raw memory; see Safety above")]

use core::ffi::c_void;
use core::ops::Range;
use core::ptr::{self, NonNull};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::io;

/// The size of a page in bytes, which is the unit of discarding.
pub const PAGE_BYTES: usize = 4096;

/// An anonymous mapping. See the [module](self).
#[derive(Debug)]
pub struct Map {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and is accessed only by copying.
unsafe impl Send for Map {}
// SAFETY: as above; racing copies may mix bytes, which nothing here relies on.
unsafe impl Sync for Map {}

/// A range of memory that is passed to the kernel. The code that passes it keeps the memory's owner
/// alive until the kernel has finished with it.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The first byte.
    pub start: *mut u8,
    /// The length in bytes.
    pub len: usize,
}

#[allow(clippy::len_without_is_empty, reason = "no mapping is empty")]
impl Map {
    /// Returns `len` bytes of zeroes, rounded up to whole pages. A page takes memory once it is
    /// written.
    ///
    /// # Errors
    ///
    /// Fails if `mmap` fails or `len` is 0.
    pub fn new(len: usize) -> io::Result<Self> {
        let len = len.checked_next_multiple_of(PAGE_BYTES).ok_or(io::ErrorKind::OutOfMemory)?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping, placed by the kernel, overlaps nothing.
        let start = unsafe {
            mmap_anonymous(ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, flags)?
        };
        let start = NonNull::new(start.cast()).expect("the address of a mapping is not null");
        Ok(Self { start, len })
    }

    /// Allocates memory for the whole mapping now, in huge pages where available.
    ///
    /// # Errors
    ///
    /// Fails if there is not enough memory.
    pub fn fill_with_huge_pages(&self) -> io::Result<()> {
        let all = self.address(0);
        // SAFETY: advice about a mapping of ours; its bytes stay as they are. A kernel without huge
        // pages refuses, which changes nothing but speed.
        let _ = unsafe { madvise(all, self.len, Advice::LinuxHugepage) };
        // SAFETY: as above; writes nothing.
        Ok(unsafe { madvise(all, self.len, Advice::LinuxPopulateWrite) }?)
    }

    /// Returns the length in bytes.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Copies `bytes` to `at`.
    ///
    /// # Panics
    ///
    /// Panics if the range ends beyond the mapping, as do the functions below.
    #[inline]
    pub fn write(&self, at: usize, bytes: &[u8]) {
        let span = self.span(at..at + bytes.len());
        // SAFETY: the span is within the mapping, to which no reference exists.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), span.start, span.len) };
    }

    /// Appends the bytes of `range` to `to`.
    pub fn read(&self, range: Range<usize>, to: &mut Vec<u8>) {
        let span = self.span(range);
        to.reserve(span.len);
        // SAFETY: the span is within the mapping, and there is room for it, which is then filled.
        unsafe {
            ptr::copy_nonoverlapping(span.start, to.as_mut_ptr().add(to.len()), span.len);
            to.set_len(to.len() + span.len);
        }
    }

    /// Copies `range` of `from` to `at`.
    pub fn write_from(&self, at: usize, from: &Self, range: Range<usize>) {
        let from = from.span(range.clone());
        let to = self.span(at..at + range.len());
        // SAFETY: both are within their mappings; `copy` allows them to overlap.
        unsafe { ptr::copy(from.start, to.start, to.len) };
    }

    /// Fills `range` with zeroes and returns the memory of the whole pages in it to the system.
    pub fn discard(&self, range: Range<usize>) {
        let first_page = range.start.next_multiple_of(PAGE_BYTES).min(range.end);
        let end_page = (range.end / PAGE_BYTES * PAGE_BYTES).max(first_page);
        self.zero(range.start..first_page);
        self.zero(end_page..range.end);
        let pages = self.span(first_page..end_page);
        if pages.len > 0 {
            // SAFETY: whole pages of a private anonymous mapping of ours; they read as zeroes
            // afterwards.
            let freed = unsafe { madvise(pages.start.cast(), pages.len, Advice::LinuxDontNeed) };
            if freed.is_err() {
                self.zero(first_page..end_page);
            }
        }
    }

    /// Fills `range` with zeroes.
    pub fn zero(&self, range: Range<usize>) {
        let span = self.span(range);
        // SAFETY: as in `write`.
        unsafe { ptr::write_bytes(span.start, 0, span.len) };
    }

    /// Returns `range` as a span for the kernel.
    #[inline]
    pub fn span(&self, range: Range<usize>) -> Span {
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
        // SAFETY: the mapping is ours, and no remaining pointer refers to it.
        let unmapped = unsafe { munmap(self.address(0), self.len) };
        debug_assert!(unmapped.is_ok(), "a whole mapping can be unmapped");
    }
}

/// A buffer of one lane, aligned for direct I/O.
pub type Pages = Map;

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
        let map = Map::new(5 * PAGE_BYTES).expect("a mapping of five pages should succeed");
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
        Map::new(1).expect("a mapping of one page should succeed").write(PAGE_BYTES - 1, &[1, 2]);
    }
}
