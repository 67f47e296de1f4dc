//! Mapped memory as the memory of a BTT: a file, the parts of a pool one after another, or a
//! mapping of the caller.
//!
//! # Safety
//!
//! Each constructor establishes the only invariant, which never changes: `start` is the start of a
//! mapping of `len` bytes, readable and, if asked for, writable, which lives as long as the value.
//! Every access is checked against the length. No reference into the mapping is made: bytes are
//! copied, and words are loaded and stored by aligned atomics. Copies may race with copies of other
//! threads and then mix bytes, which [`Memory`] allows.
//!
//! A process gets SIGBUS if another process truncates a mapped file, if the medium has no space for
//! a hole, or if it cannot read a page. So the file is locked, and [`Mapped::take_room`] fills its
//! holes. The process dies, unless it asks for errors instead ([`catch_bus_errors`]).
#![allow(unsafe_code, reason = "mappings are raw memory; see Safety above")]
#![allow(clippy::cast_possible_truncation, reason = "the bytes of a mapping are addressable")]

mod bus_errors;

pub use bus_errors::catch_bus_errors;

use crate::file::{Synced, media, relax};
use crate::lines::{self, Copying, Lines};
use crate::parts::{Part, Parts};
use blockyard_btt::{MediaError, Memory};
use bus_errors::Guard;
use core::ffi::c_void;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use rustix::io::Errno;
use rustix::mm::{
    Advice, MapFlags, MsyncFlags, ProtFlags, madvise, mmap, mmap_anonymous, msync, munmap,
};
use std::fs::File;
use std::io;

/// Mapped memory. See the [module](self).
#[derive(Debug)]
pub struct Mapped {
    start: NonNull<u8>,
    len: usize,
    home: Home,
    writable: bool,
    copying: Copying,
    /// The instructions that make cache lines durable, if the memory is persistent.
    lines: Option<Lines>,
    is_synchronous: bool,
    guard: Guard,
}

/// Where the bytes of a mapping are kept.
#[derive(Debug)]
enum Home {
    /// In the parts, which are mapped.
    Parts(Parts),
    /// In the mapping: what is written ends with it. The parts give the contents, and stay locked.
    Mapping { contents: Parts },
    /// The caller has mapped them.
    Caller(Synced),
}

/// What becomes of the stores to a mapping.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Shared,
    Persistent,
    Discarded,
}

// SAFETY: the mapping belongs to the process, not to a thread, and is reached by copies and atomics
// only.
unsafe impl Send for Mapped {}
// SAFETY: as above; racing copies may mix bytes, which nothing relies on.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// Maps a whole file or block device for reading and, if it was opened so, for writing. In
    /// `persistent` memory, bytes are durable once their cache lines are written back.
    ///
    /// If the file system maps persistent memory directly, the metadata that a later recovery needs
    /// to find the bytes are durable before the bytes are stored (`MAP_SYNC`). Otherwise the memory
    /// counts as persistent because the caller says so: see
    /// [`is_synchronous`](Self::is_synchronous).
    ///
    /// # Errors
    ///
    /// The file cannot be mapped, another process has it open, or the processor has no supported
    /// instructions to write lines back.
    pub fn new(file: File, writable: bool, persistent: bool, copying: Copying) -> io::Result<Self> {
        Self::of_parts(Parts::whole(file)?, writable, persistent, copying)
    }

    /// Maps parts one after another, as [`new`](Self::new) maps one file.
    ///
    /// # Errors
    ///
    /// The same as [`new`](Self::new).
    pub(crate) fn of_parts(
        parts: Parts,
        writable: bool,
        persistent: bool,
        copying: Copying,
    ) -> io::Result<Self> {
        let kind = if persistent { Kind::Persistent } else { Kind::Shared };
        Self::of_kind(parts, writable, kind, copying)
    }

    /// Maps parts one after another, so that nothing that is written reaches them.
    ///
    /// # Errors
    ///
    /// The same as [`new`](Self::new), or they are a device DAX.
    pub(crate) fn discarded(parts: Parts, writable: bool, copying: Copying) -> io::Result<Self> {
        if parts.is_device() {
            let words = "changes to a device DAX cannot be discarded";
            return Err(io::Error::new(io::ErrorKind::Unsupported, words));
        }
        Self::of_kind(parts, writable, Kind::Discarded, copying)
    }

    fn of_kind(parts: Parts, writable: bool, kind: Kind, copying: Copying) -> io::Result<Self> {
        parts.lock(writable)?;
        let lines = (kind == Kind::Persistent).then(lines).transpose()?;
        let len = usize::try_from(parts.len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let (start, is_synchronous) = map(&parts, len, writable, kind)?;
        assert!(start.addr().get().is_multiple_of(8), "a mapping starts at a page");
        let guard = Guard::new(start, len);
        let home = match kind {
            Kind::Shared | Kind::Persistent => Home::Parts(parts),
            Kind::Discarded => Home::Mapping { contents: parts },
        };
        Ok(Self { start, len, home, writable, copying, lines, is_synchronous, guard })
    }

    /// Uses `len` bytes at `start` that the caller has mapped: persistent memory, a device, or
    /// memory that processes share. If `persistent`, bytes are durable once their cache lines are
    /// written back, which every fence waits for. Otherwise a fence waits for nothing, and a flush
    /// is `msync`.
    ///
    /// The caller unmaps the memory, and locks what is mapped if others could write it.
    /// [`catch_bus_errors`] does not concern this memory. Every page counts as allocated.
    ///
    /// # Safety
    ///
    /// Until the value is dropped, the bytes are mapped and readable and, if `writable`, writable;
    /// no Rust reference to any of them is used; and nothing but values of this type and other
    /// processes writes them.
    ///
    /// # Errors
    ///
    /// `start` is not aligned to eight bytes, or the processor has no supported instructions to
    /// write lines back.
    pub unsafe fn over(
        start: NonNull<u8>,
        len: usize,
        writable: bool,
        persistent: bool,
        copying: Copying,
    ) -> io::Result<Self> {
        if !start.addr().get().is_multiple_of(8) {
            let words = "a mapping of the caller is aligned to eight bytes";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
        }
        let lines = persistent.then(lines).transpose()?;
        let home = Home::Caller(Synced::default());
        let is_synchronous = false;
        let guard = Guard::none();
        Ok(Self { start, len, home, writable, copying, lines, is_synchronous, guard })
    }

    /// Whether the file system ensures that bytes with durable cache lines are found after a power
    /// cut (`MAP_SYNC`), because it knows the memory as persistent. This is not known of a mapping
    /// of the caller.
    #[must_use]
    pub const fn is_synchronous(&self) -> bool {
        self.is_synchronous
    }

    /// The names of the instructions that make lines durable and that write past the caches, if the
    /// memory is persistent.
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
        self.stored_parts().map_or(Ok(()), |parts| parts.take_room(0, self.len as u64))
    }

    /// The parts, if what is written reaches them.
    const fn stored_parts(&self) -> Option<&Parts> {
        if let Home::Parts(parts) = &self.home { Some(parts) } else { None }
    }

    /// Sets up the page tables of the whole mapping now, so that no later access has to. This pays
    /// off before many random accesses.
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

    /// Breaks the mapping if another process has cut a file short ([lost-page-breaks-mapping]).
    /// This notices what no bus error tells: the page in which the file ends now stays mapped, the
    /// rest of it reads as zeroes, and what is written there never reaches the file. An access that
    /// was carried out before a look that succeeds was right.
    ///
    /// # Errors
    ///
    /// [`MediaError::Failed`] if the mapping is broken. Without [`catch_bus_errors`], only this
    /// call fails.
    pub fn look_for_cut(&self) -> Result<(), MediaError> {
        let parts = match &self.home {
            Home::Parts(parts) | Home::Mapping { contents: parts } => parts,
            Home::Caller(_) => return self.accessed(),
        };
        if !parts.are_whole() {
            self.guard.break_up();
            return Err(MediaError::Failed);
        }
        self.accessed()
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
        if at > all || len as u64 > all - at {
            outside(at, len, all);
        }
        self.start.as_ptr().wrapping_add(at as usize)
    }

    #[inline]
    fn word(&self, at: u64) -> &AtomicU32 {
        assert!(at.is_multiple_of(4), "[words-are-atomic]: aligned to four bytes");
        // SAFETY: four aligned bytes of the mapping, which starts at a page. Only atomics refer to
        // them.
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
        if !matches!(self.home, Home::Caller(_)) {
            // SAFETY: the mapping is ours, and nothing points into it any more.
            let unmapped = unsafe { munmap(self.all(), self.len) };
            debug_assert!(unmapped.is_ok(), "a whole mapping can be unmapped");
        }
    }
}

/// Fails an access beyond a mapping of `all` bytes. This stands out of line, because the arguments
/// of the message would be stored at each access, and a locked instruction of a BTT's write waits
/// for all stores before it.
#[cold]
#[inline(never)]
fn outside(at: u64, len: usize, all: u64) -> ! {
    panic!("{len} bytes at {at} of a mapping of {all}");
}

/// The instructions that make cache lines durable.
fn lines() -> io::Result<Lines> {
    let words = "this processor has no supported instruction to write cache lines back";
    Lines::detect().ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, words))
}

/// Maps `len` bytes of parts one after another. Returns the first address, and whether `MAP_SYNC`
/// holds for all.
fn map(parts: &Parts, len: usize, writable: bool, kind: Kind) -> io::Result<(NonNull<u8>, bool)> {
    let access = ProtFlags::READ | if writable { ProtFlags::WRITE } else { ProtFlags::empty() };
    let mut all = parts.iter();
    let (start, is_synchronous) = match (all.next(), all.next()) {
        (Some(only), None) => map_part(ptr::null_mut(), only, access, MapFlags::empty(), kind)?,
        _ => {
            let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
            // SAFETY: a new mapping, placed by the kernel, overlaps nothing.
            let start = unsafe { mmap_anonymous(ptr::null_mut(), len, ProtFlags::empty(), flags)? };
            let mapped = parts.iter().try_fold(true, |is_synchronous, part| {
                let address = start.wrapping_byte_add(part.start as usize);
                let (_, is_this) = map_part(address, part, access, MapFlags::FIXED, kind)?;
                Ok(is_synchronous && is_this)
            });
            if mapped.is_err() {
                // SAFETY: our reservation, with some parts mapped in its place, to which nothing
                // points.
                let _ = unsafe { munmap(start, len) };
            }
            (start, mapped.map_err(|error: Errno| error)?)
        }
    };
    Ok((NonNull::new(start.cast()).expect("start of a new mapping"), is_synchronous))
}

/// Maps a part at `address`, where our reservation is, or anywhere if that is null. Returns the
/// first address, and whether `MAP_SYNC` holds.
fn map_part(
    address: *mut c_void,
    part: &Part,
    access: ProtFlags,
    placed: MapFlags,
    kind: Kind,
) -> Result<(*mut c_void, bool), Errno> {
    let synchronous = match kind {
        Kind::Discarded => {
            let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
            return Ok((map_with(address, part, access, placed | flags)?, false));
        }
        Kind::Shared => Err(Errno::OPNOTSUPP),
        Kind::Persistent => {
            let flags = MapFlags::SHARED_VALIDATE | MapFlags::SYNC;
            map_with(address, part, access, placed | flags)
        }
    };
    match synchronous {
        // Kernels before Linux 4.15 return EINVAL.
        Err(Errno::OPNOTSUPP | Errno::INVAL) => {
            Ok((map_with(address, part, access, placed | MapFlags::SHARED)?, false))
        }
        other => other.map(|start| (start, true)),
    }
}

fn map_with(
    address: *mut c_void,
    part: &Part,
    access: ProtFlags,
    flags: MapFlags,
) -> Result<*mut c_void, Errno> {
    let Part { file, skipped, len, .. } = part;
    // SAFETY: a new mapping, placed by the kernel or in the place of our reservation, overlaps
    // nothing else.
    unsafe { mmap(address, *len as usize, access, flags, file, *skipped) }
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
        if self.lines.is_some() {
            self.fence()?;
            return self.look_for_cut();
        }
        let flushed = match &self.home {
            Home::Mapping { .. } => Ok(()),
            Home::Parts(parts) => parts.sync_data(),
            Home::Caller(synced) => synced.by(|| {
                let before = self.start.addr().get() % rustix::param::page_size();
                let page = self.all().wrapping_byte_sub(before);
                // SAFETY: the pages of the mapping, of which nothing changes.
                unsafe { msync(page, before + self.len, MsyncFlags::SYNC) }.map_err(Into::into)
            }),
        };
        flushed.map_err(|error| media(&error))?;
        self.look_for_cut() // what was written to a broken mapping is not in the file
    }

    fn hole(&self, at: u64) -> u64 {
        self.stored_parts().map_or(0, |parts| parts.hole(at))
    }

    #[inline]
    fn prefetch(&self, at: u64, len: u64) {
        lines::prefetch(self.span(at, len as usize), len as usize);
    }

    fn relax(&self, turn: u32) {
        relax(turn);
    }
}
