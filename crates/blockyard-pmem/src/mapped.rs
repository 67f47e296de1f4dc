//! A mapped file as the memory of a BTT.
//!
//! # Safety
//!
//! The one invariant, set by [`Mapped::new`] and never changed: `start` is the beginning of a mapping of `len`
//! bytes of the file, readable and, if it was opened so, writable, which lives as long as the value. Every
//! access is checked against its length. No reference into it is made:
//! bytes are copied, words are loaded and stored by atomics at addresses that are aligned. Copies may race
//! with copies of other threads, and then mix bytes, which nobody relies on ([`Memory`] Y3).
//!
//! A file that somebody else cuts off under a mapping kills the process by SIGBUS, as does a hole that the
//! medium has no room for: so the file is locked, and [`Mapped::take_room`] fills its holes. So does a page
//! that the medium cannot read.
#![allow(unsafe_code, reason = "mappings are raw memory; see Safety above")]
#![allow(clippy::cast_possible_truncation, reason = "what lies in a mapping can be addressed")]

use crate::file::{len, lock, media, relax, take_room};
use crate::lines::{self, Copying, Lines};
use blockyard_btt::{MediaError, Memory};
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
    /// What writes cache lines back, where these are what is durable.
    lines: Option<Lines>,
    is_synchronous: bool,
}

// SAFETY: the mapping belongs to the process, not to a thread, and is reached by copies and atomics only.
unsafe impl Send for Mapped {}
// SAFETY: as above; racing copies may mix bytes, which nothing relies on.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// Maps all of a file or block device, for reading and, if it was opened for that, for writing. What is in
    /// `persistent` memory is durable once its cache lines are written back.
    ///
    /// Where the file system maps such memory directly, what it takes to find the file's bytes after a loss of
    /// power is made durable before they are stored (`MAP_SYNC`). Where it does not, the memory is taken as
    /// persistent because the caller says so: see [`is_synchronous`](Self::is_synchronous).
    ///
    /// # Errors
    ///
    /// It cannot be mapped, somebody else has it, or the processor has no instructions to write lines back.
    pub fn new(file: File, writable: bool, persistent: bool, copying: Copying) -> io::Result<Self> {
        lock(&file, writable)?;
        let lines = match persistent {
            false => None,
            true => Some(Lines::detect().ok_or_else(|| {
                let words =
                    "no instructions to write cache lines back are known for this processor";
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
            // The second is of kernels before Linux 4.15.
            Err(Errno::OPNOTSUPP | Errno::INVAL) => map(MapFlags::SHARED)?,
            other => other?,
        };
        let start = NonNull::new(start.cast()).expect("a mapping is not at 0");
        Ok(Self { start, len, file, writable, copying, lines, is_synchronous })
    }

    /// Whether the file system sees to it that what is durable by its cache lines is found after a loss of power
    /// (`MAP_SYNC`): it knows the memory as persistent.
    #[must_use]
    pub const fn is_synchronous(&self) -> bool {
        self.is_synchronous
    }

    /// What makes its lines durable and what writes past the caches, by the names of the instructions, where
    /// anything does.
    #[must_use]
    pub fn instructions(&self) -> Option<(&'static str, &'static str)> {
        self.lines.map(Lines::names)
    }

    /// Takes the room for all of the file, so that no hole is left that a store could not fill.
    ///
    /// # Errors
    ///
    /// There is not enough.
    pub fn take_room(&self) -> io::Result<()> {
        take_room(&self.file, 0, self.len as u64)
    }

    /// Makes the processor's way to every page now, so that no access has to later: worth its time before
    /// much random access.
    ///
    /// # Errors
    ///
    /// The kernel does not know how (before Linux 5.14).
    pub fn prefault(&self) -> io::Result<()> {
        let advice = match self.writable {
            true => Advice::LinuxPopulateWrite,
            false => Advice::LinuxPopulateRead,
        };
        // SAFETY: advice about a mapping of ours; its bytes stay as they are.
        Ok(unsafe { madvise(self.all(), self.len, advice) }?)
    }

    const fn all(&self) -> *mut c_void {
        self.start.as_ptr().cast()
    }

    /// The first of `len` bytes at `at`.
    #[inline]
    fn span(&self, at: u64, len: usize) -> *mut u8 {
        let all = self.len as u64;
        assert!(at <= all && len as u64 <= all - at, "beyond the mapping");
        self.start.as_ptr().wrapping_add(at as usize)
    }

    #[inline]
    fn word(&self, at: u64) -> &AtomicU32 {
        assert!(at.is_multiple_of(4), "a word is aligned");
        // SAFETY: four bytes of the mapping, aligned as it begins at a page; only atomics refer to them.
        unsafe { AtomicU32::from_ptr(self.span(at, 4).cast()) }
    }

    #[inline]
    fn long(&self, at: u64) -> &AtomicU64 {
        assert!(at.is_multiple_of(8), "a word is aligned");
        // SAFETY: as in `word`.
        unsafe { AtomicU64::from_ptr(self.span(at, 8).cast()) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing that is left points into it.
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
        // SAFETY: both are as long as `to`, and no reference into the mapping exists.
        unsafe { lines::read(self.copying, to.as_mut_ptr(), from, to.len()) };
        Ok(())
    }

    #[inline]
    fn write(&self, at: u64, from: &[u8]) -> Result<(), MediaError> {
        let to = self.span(at, from.len());
        // SAFETY: both are as long as `from`, and no reference into the mapping exists.
        unsafe {
            match self.lines {
                Some(lines) => lines.write(self.copying, to, from.as_ptr(), from.len()),
                None => ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()),
            }
        }
        Ok(())
    }

    fn zero(&self, at: u64, len: u64) -> Result<(), MediaError> {
        let len = usize::try_from(len).map_err(|_| MediaError::Failed)?;
        let to = self.span(at, len);
        // SAFETY: within the mapping, where no reference points.
        unsafe { ptr::write_bytes(to, 0, len) };
        self.write_back(at, len as u64);
        Ok(())
    }

    #[inline]
    fn load(&self, at: u64) -> Result<u32, MediaError> {
        Ok(u32::from_le(self.word(at).load(Ordering::Acquire)))
    }

    #[inline]
    fn store(&self, at: u64, word: u32) -> Result<(), MediaError> {
        self.word(at).store(word.to_le(), Ordering::Release);
        Ok(())
    }

    #[inline]
    fn store_long(&self, at: u64, word: u64) -> Result<(), MediaError> {
        self.long(at).store(word.to_le(), Ordering::Release);
        Ok(())
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
        Ok(())
    }

    fn flush(&self) -> Result<(), MediaError> {
        match self.lines {
            Some(_) => self.fence(),
            None => self.file.sync_data().map_err(|error| media(&error)),
        }
    }

    #[inline]
    fn prefetch(&self, at: u64, len: u64) {
        lines::prefetch(self.span(at, len as usize), len as usize);
    }

    fn relax(&self, turn: u32) {
        relax(turn);
    }
}
