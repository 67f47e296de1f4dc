//! A mapped file as the memory of a BTT.
//!
//! # Safety
//!
//! [`Mapped::new`] establishes the only invariant, which never changes: `start` is the start of a mapping of `len`
//! bytes of the file, readable and, if opened so, writable, which lives as long as the value. Every access is checked
//! against the length. No reference into the mapping is made: bytes are copied, and words are loaded and stored by
//! aligned atomics. Copies may race with copies of other threads and then mix bytes, which [`Memory`] allows.
//!
//! A process gets SIGBUS if another process truncates a mapped file, if the medium has no space for a hole, or if it
//! cannot read a page. So the file is locked, and [`Mapped::take_room`] fills its holes. The process dies, unless it asks
//! for errors instead ([`catch_bus_errors`]).
#![allow(unsafe_code, reason = "mappings are raw memory; see Safety above")]
#![allow(clippy::cast_possible_truncation, reason = "the bytes of a mapping are addressable")]

mod bus_errors;

pub use bus_errors::catch_bus_errors;

use crate::file::{hole, len, lock, media, relax, take_room};
use crate::lines::{self, Copying, Lines};
use blockyard_btt::{MediaError, Memory};
use bus_errors::Guard;
use core::ffi::c_void;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use std::fs::File;
use std::io;

/// A mapped file. See the [module](self).
#[derive(Debug)]
pub struct Mapped {
    start: NonNull<u8>,
    len: usize,
    file: File,
    writable: bool,
    copying: Copying,
    /// The instructions that make cache lines durable, if the memory is persistent.
    lines: Option<Lines>,
    is_synchronous: bool,
    guard: Guard,
}

// SAFETY: the mapping belongs to the process, not to a thread, and is reached by copies and atomics only.
unsafe impl Send for Mapped {}
// SAFETY: as above; racing copies may mix bytes, which nothing relies on.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// Maps a whole file or block device for reading and, if it was opened so, for writing. In `persistent`
    /// memory, bytes are durable once their cache lines are written back.
    ///
    /// If the file system maps persistent memory directly, the metadata that a later recovery needs to find the
    /// bytes are durable before the bytes are stored (`MAP_SYNC`). Otherwise the memory counts as persistent
    /// because the caller says so: see [`is_synchronous`](Self::is_synchronous).
    ///
    /// # Errors
    ///
    /// The file cannot be mapped, another process has it open, or the processor has no supported instructions to
    /// write lines back.
    pub fn new(file: File, writable: bool, persistent: bool, copying: Copying) -> io::Result<Self> {
        lock(&file, writable)?;
        let lines = match persistent {
            false => None,
            true => Some(Lines::detect().ok_or_else(|| {
                let words = "this processor has no supported instruction to write cache lines back";
                io::Error::new(io::ErrorKind::Unsupported, words)
            })?),
        };
        let len = usize::try_from(len(&file)?).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let access = ProtFlags::READ | if writable { ProtFlags::WRITE } else { ProtFlags::empty() };
        let map = |flags| {
            // SAFETY: a new mapping, placed by the kernel, overlaps nothing.
            unsafe { mmap(ptr::null_mut(), len, access, flags, &file, 0) }
        };
        let synchronous = match persistent {
            false => Err(Errno::OPNOTSUPP),
            true => map(MapFlags::SHARED_VALIDATE | MapFlags::SYNC),
        };
        let is_synchronous = synchronous.is_ok();
        let start = match synchronous {
            // Kernels before Linux 4.15 return EINVAL.
            Err(Errno::OPNOTSUPP | Errno::INVAL) => map(MapFlags::SHARED)?,
            other => other?,
        };
        let start = NonNull::new(start.cast::<u8>()).expect("start of a new mapping");
        assert!(start.addr().get().is_multiple_of(8), "a mapping starts at a page");
        let guard = Guard::new(start, len);
        Ok(Self { start, len, file, writable, copying, lines, is_synchronous, guard })
    }

    /// Whether the file system ensures that bytes with durable cache lines are found after a power cut
    /// (`MAP_SYNC`), because it knows the memory as persistent.
    #[must_use]
    pub const fn is_synchronous(&self) -> bool {
        self.is_synchronous
    }

    /// The names of the instructions that make lines durable and that write past the caches, if the memory is
    /// persistent.
    #[must_use]
    pub fn instructions(&self) -> Option<(&'static str, &'static str)> {
        self.lines.map(Lines::names)
    }

    /// Allocates the space of the whole file, so that no store meets a hole that cannot be filled.
    ///
    /// # Errors
    ///
    /// The space is not available.
    pub fn take_room(&self) -> io::Result<()> {
        take_room(&self.file, 0, self.len as u64)
    }

    /// Sets up the page tables of the whole mapping now, so that no later access has to. This pays off before many
    /// random accesses.
    ///
    /// # Errors
    ///
    /// The kernel does not support this (before Linux 5.14).
    pub fn prefault(&self) -> io::Result<()> {
        let advice = match self.writable {
            true => Advice::LinuxPopulateWrite,
            false => Advice::LinuxPopulateRead,
        };
        // SAFETY: advice about our own mapping, which does not change its bytes.
        Ok(unsafe { madvise(self.all(), self.len, advice) }?)
    }

    /// The result of an access that has taken place ([lost-page-breaks-mapping]).
    #[inline]
    fn accessed(&self) -> Result<(), MediaError> {
        if self.guard.is_whole() { Ok(()) } else { Err(MediaError::Failed) }
    }

    const fn all(&self) -> *mut c_void {
        self.start.as_ptr().cast()
    }

    /// Returns the address of `len` bytes at `at`.
    #[inline]
    fn span(&self, at: u64, len: usize) -> *mut u8 {
        let all = self.len as u64;
        assert!(at <= all && len as u64 <= all - at, "{len} bytes at {at} of a mapping of {all}");
        self.start.as_ptr().wrapping_add(at as usize)
    }

    #[inline]
    fn word(&self, at: u64) -> &AtomicU32 {
        assert!(at.is_multiple_of(4), "[words-are-atomic]: aligned to four bytes");
        // SAFETY: four aligned bytes of the mapping, which starts at a page. Only atomics refer to them.
        unsafe { AtomicU32::from_ptr(self.span(at, 4).cast()) }
    }

    #[inline]
    fn long(&self, at: u64) -> &AtomicU64 {
        assert!(at.is_multiple_of(8), "[words-are-atomic]: aligned to eight bytes");
        // SAFETY: as in `word`.
        unsafe { AtomicU64::from_ptr(self.span(at, 8).cast()) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        self.guard.end();
        // SAFETY: the mapping is ours, and nothing points into it any more.
        let unmapped = unsafe { munmap(self.all(), self.len) };
        debug_assert!(unmapped.is_ok(), "a whole mapping can be unmapped");
    }
}

impl Memory for Mapped {
    fn len(&self) -> u64 {
        self.len as u64
    }

    #[inline]
    fn read(&self, at: u64, to: &mut [u8]) -> Result<(), MediaError> {
        let from = self.span(at, to.len());
        // SAFETY: both ranges have the length of `to`, and no reference into the mapping exists.
        unsafe { lines::read(self.copying, to.as_mut_ptr(), from, to.len()) };
        self.accessed()
    }

    #[inline]
    fn write(&self, at: u64, from: &[u8]) -> Result<(), MediaError> {
        debug_assert!(self.writable, "a read-only image is not written");
        let to = self.span(at, from.len());
        // SAFETY: both ranges have the length of `from`, and no reference into the mapping exists.
        unsafe {
            match self.lines {
                Some(lines) => lines.write(self.copying, to, from.as_ptr(), from.len()),
                None => ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()),
            }
        }
        self.accessed()
    }

    fn zero(&self, at: u64, len: u64) -> Result<(), MediaError> {
        let len = usize::try_from(len).map_err(|_| MediaError::Failed)?;
        debug_assert!(self.writable, "a read-only image is not written");
        let to = self.span(at, len);
        // SAFETY: within the mapping, where no reference points.
        unsafe { ptr::write_bytes(to, 0, len) };
        self.write_back(at, len as u64);
        self.accessed()
    }

    #[inline]
    fn load(&self, at: u64) -> Result<u32, MediaError> {
        let word = self.word(at).load(Ordering::Acquire);
        self.accessed()?;
        Ok(u32::from_le(word))
    }

    #[inline]
    fn store(&self, at: u64, word: u32) -> Result<(), MediaError> {
        debug_assert!(self.writable, "a read-only image is not written");
        self.word(at).store(word.to_le(), Ordering::Release);
        self.accessed()
    }

    #[inline]
    fn store_long(&self, at: u64, word: u64) -> Result<(), MediaError> {
        debug_assert!(self.writable, "a read-only image is not written");
        self.long(at).store(word.to_le(), Ordering::Release);
        self.accessed()
    }

    #[inline]
    fn write_back(&self, at: u64, len: u64) {
        if let Some(lines) = self.lines {
            let start = self.span(at, len as usize);
            // SAFETY: within the mapping.
            unsafe { lines.write_back(start, len as usize) };
        }
    }

    #[inline]
    fn fence(&self) -> Result<(), MediaError> {
        match self.lines {
            Some(lines) => lines.fence(),
            None => fence(Ordering::SeqCst),
        }
        self.accessed() // for the write-back before
    }

    fn flush(&self) -> Result<(), MediaError> {
        match self.lines {
            Some(_) => self.fence(),
            None => {
                self.accessed()?; // what was written to a broken mapping is not in the file
                self.file.sync_data().map_err(|error| media(&error))
            }
        }
    }

    fn hole(&self, at: u64) -> u64 {
        hole(&self.file, at, self.len as u64)
    }

    #[inline]
    fn prefetch(&self, at: u64, len: u64) {
        lines::prefetch(self.span(at, len as usize), len as usize);
    }

    fn relax(&self, turn: u32) {
        relax(turn);
    }
}
