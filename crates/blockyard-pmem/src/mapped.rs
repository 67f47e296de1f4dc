//! A mapped file as the memory of a BTT.
//!
//! # Safety
//!
//! The one invariant: `map` is a mapping of the file, readable and, if it was opened so, writable, which
//! lives as long as the value. Every access is checked against its length. No reference into it is made:
//! bytes are copied, words are loaded and stored by atomics at addresses that are aligned. Copies may race
//! with copies of other threads, and then mix bytes, which nobody relies on ([`Memory`] Y3).
//!
//! A file that somebody else cuts off under a mapping kills the process by SIGBUS, as does a hole that the
//! medium has no room for: so the file is locked, and [`Mapped::take_room`] fills its holes. So does a page
//! that the medium cannot read.
#![allow(unsafe_code, reason = "mappings are raw memory; see Safety above")]
#![allow(clippy::cast_possible_truncation, reason = "what lies in a mapping can be addressed")]

use crate::group::Group;
use crate::lines::{self, Copying, Lines};
use blockyard::btt::{MediaError, Memory};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use memmap2::{Advice, MmapOptions, MmapRaw};
use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use std::fs::File;
use std::io;

/// What a fence waits for: what a BTT survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Nothing: what was stored survives the death of the process, as the file has it. A flush
    /// synchronises the file; sectors may be torn by a loss of power.
    Process,
    /// Cache lines that were written back: memory that keeps what reached it. Survives a loss of power on
    /// persistent memory, mapped directly (DAX).
    Memory,
    /// A synchronisation of the file (`fdatasync`), of all threads together: survives a loss of power on
    /// any disk that keeps what it says it has.
    Disk,
}

/// A mapped file. See the [module](self).
#[derive(Debug)]
pub struct Mapped {
    map: MmapRaw,
    file: File,
    writable: bool,
    copying: Copying,
    keep: Keep,
}

/// [`Durability`], with what it takes.
#[derive(Debug)]
enum Keep {
    Process,
    Memory(Lines),
    Disk(Group),
}

impl Mapped {
    /// Maps all of a file, for reading and, if it was opened for that, for writing.
    ///
    /// # Errors
    ///
    /// It cannot be mapped, somebody else has it, or the processor has no instructions to write lines back.
    pub fn new(
        file: File,
        writable: bool,
        durability: Durability,
        copying: Copying,
    ) -> io::Result<Self> {
        let lock = match writable {
            true => FlockOperation::NonBlockingLockExclusive,
            false => FlockOperation::NonBlockingLockShared,
        };
        flock(&file, lock).map_err(|error| match io::Error::from(error) {
            error if error.kind() == io::ErrorKind::WouldBlock => {
                io::Error::new(io::ErrorKind::ResourceBusy, "somebody else has it open")
            }
            error => error,
        })?;
        let map = match writable {
            true => MmapOptions::new().map_raw(&file)?,
            false => MmapOptions::new().map_raw_read_only(&file)?,
        };
        let keep = match durability {
            Durability::Process => Keep::Process,
            Durability::Disk => Keep::Disk(Group::default()),
            Durability::Memory => Keep::Memory(Lines::detect().ok_or_else(|| {
                io::Error::new(
                    io::ErrorKind::Unsupported,
                    "no instructions to write cache lines back are known for this processor",
                )
            })?),
        };
        Ok(Self { map, file, writable, copying, keep })
    }

    /// What makes its lines durable and what writes past the caches, by the names of the instructions, where
    /// anything does.
    #[must_use]
    pub fn instructions(&self) -> Option<(&'static str, &'static str)> {
        match &self.keep {
            Keep::Memory(lines) => Some(lines.names()),
            Keep::Process | Keep::Disk(_) => None,
        }
    }

    /// Takes the room for all of the file, so that no hole is left that a store could not fill.
    ///
    /// # Errors
    ///
    /// There is not enough.
    pub fn take_room(&self) -> io::Result<()> {
        let bytes = self.map.len() as u64;
        match fallocate(&self.file, FallocateFlags::empty(), 0, bytes).map_err(io::Error::from) {
            // A file system without this call has no holes to speak of.
            Err(error) if error.kind() != io::ErrorKind::Unsupported => Err(error),
            _ => Ok(()),
        }
    }

    /// Makes the processor's way to every page now, so that no access has to later: worth its time before
    /// much random access.
    ///
    /// # Errors
    ///
    /// The kernel does not know how (before Linux 5.14).
    pub fn prefault(&self) -> io::Result<()> {
        self.map.advise(match self.writable {
            true => Advice::PopulateWrite,
            false => Advice::PopulateRead,
        })
    }

    /// The first of `len` bytes at `at`.
    #[inline]
    fn span(&self, at: u64, len: usize) -> *mut u8 {
        let all = self.map.len() as u64;
        assert!(at <= all && len as u64 <= all - at, "beyond the mapping");
        self.map.as_mut_ptr().wrapping_add(at as usize)
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

/// What the medium did, as a BTT wants to hear it.
fn media(error: &io::Error) -> MediaError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => MediaError::NoSpace,
        _ => MediaError::Failed,
    }
}

impl Memory for Mapped {
    fn len(&self) -> u64 {
        self.map.len() as u64
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
            match &self.keep {
                Keep::Memory(lines) => lines.write(self.copying, to, from.as_ptr(), from.len()),
                Keep::Process | Keep::Disk(_) => {
                    core::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len());
                }
            }
        }
        Ok(())
    }

    fn zero(&self, at: u64, len: u64) -> Result<(), MediaError> {
        let len = usize::try_from(len).map_err(|_| MediaError::Failed)?;
        let to = self.span(at, len);
        // SAFETY: within the mapping, where no reference points.
        unsafe { core::ptr::write_bytes(to, 0, len) };
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
        if let Keep::Memory(lines) = &self.keep {
            let start = self.span(at, len as usize);
            // SAFETY: within the mapping.
            unsafe { lines.write_back(start, len as usize) };
        }
    }

    #[inline]
    fn fence(&self) -> Result<(), MediaError> {
        match &self.keep {
            Keep::Process => fence(Ordering::SeqCst),
            Keep::Memory(lines) => lines.fence(),
            Keep::Disk(group) => group.sync(&self.file).map_err(|error| media(&error))?,
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), MediaError> {
        match &self.keep {
            Keep::Process => self.file.sync_data().map_err(|error| media(&error)),
            Keep::Memory(_) | Keep::Disk(_) => self.fence(),
        }
    }

    #[inline]
    fn prefetch(&self, at: u64, len: u64) {
        lines::prefetch(self.span(at, len as usize), len as usize);
    }

    fn relax(&self, turn: u32) {
        // Whoever is waited for may be waiting for this processor.
        match turn {
            0..64 => core::hint::spin_loop(),
            _ => std::thread::yield_now(),
        }
    }
}
