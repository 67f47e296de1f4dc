//! The memory of an image: a mapped file, or one that is accessed by system calls.

use crate::durability::Durability;
use crate::lines::Copying;
use crate::mapped::Mapped;
use crate::parts::Parts;
use crate::unmapped::Unmapped;
use blockyard_btt::layout::{INFO_BYTES, Layout};
use blockyard_btt::{MediaError, Memory};
use std::fs::File;
use std::io;

/// The bytes of an image.
#[derive(Debug)]
pub enum ImageMemory {
    /// Mapped memory.
    Mapped(Mapped),
    /// A file that is accessed by system calls.
    Unmapped(Unmapped),
}

macro_rules! each {
    ($memory:expr, $of:ident => $call:expr) => {
        match $memory {
            ImageMemory::Mapped($of) => $call,
            ImageMemory::Unmapped($of) => $call,
        }
    };
}

impl ImageMemory {
    /// Opens the bytes of a file for access as `durability` says.
    ///
    /// # Errors
    ///
    /// The same as [`Mapped::new`] and [`Unmapped::new`].
    pub fn new(
        file: File,
        writable: bool,
        durability: Durability,
        copying: Copying,
    ) -> io::Result<Self> {
        Self::of_parts(Parts::whole(file)?, writable, durability, copying)
    }

    /// Opens the bytes of parts. A device DAX is always persistent memory, unless its changes are
    /// to be discarded.
    pub(crate) fn of_parts(
        parts: Parts,
        writable: bool,
        durability: Durability,
        copying: Copying,
    ) -> io::Result<Self> {
        let durability = match durability {
            Durability::Discarded => durability,
            _ if parts.is_device() => Durability::Memory,
            _ => durability,
        };
        Ok(match durability {
            Durability::Discarded => Self::Mapped(Mapped::discarded(parts, writable, copying)?),
            Durability::Process | Durability::Memory => {
                let persistent = durability == Durability::Memory;
                Self::Mapped(Mapped::of_parts(parts, writable, persistent, copying)?)
            }
            Durability::Calls | Durability::Disk => {
                let synchronised = durability == Durability::Disk;
                Self::Unmapped(Unmapped::of_parts(parts, writable, synchronised)?)
            }
        })
    }

    /// Allocates the space that arenas need, given the start of each. A mapped file needs all of
    /// it, because a hole that cannot be filled would end the process. Another file needs the maps
    /// and logs, because a write that was logged cannot be undone for lack of space.
    ///
    /// # Errors
    ///
    /// The space is not available.
    pub fn take_room(&self, arenas: impl IntoIterator<Item = (u64, Layout)>) -> io::Result<()> {
        match self {
            Self::Mapped(mapped) => mapped.take_room(),
            Self::Unmapped(unmapped) => arenas.into_iter().try_for_each(|(start, layout)| {
                let end = layout.infooff + INFO_BYTES;
                debug_assert!(start + end <= unmapped.len(), "the arena ends within the file");
                unmapped.take_room(start + layout.mapoff, end - layout.mapoff)
            }),
        }
    }

    /// Allocates the space of all bytes.
    ///
    /// # Errors
    ///
    /// The space is not available.
    pub(crate) fn take_all_room(&self) -> io::Result<()> {
        match self {
            Self::Mapped(mapped) => mapped.take_room(),
            Self::Unmapped(unmapped) => unmapped.take_room(0, unmapped.len()),
        }
    }

    /// Sets up the page tables of a whole mapping now, so that no later access has to. This pays
    /// off before many random accesses.
    ///
    /// # Errors
    ///
    /// The kernel does not support this (before Linux 5.14).
    pub fn prefault(&self) -> io::Result<()> {
        match self {
            Self::Mapped(mapped) => mapped.prefault(),
            Self::Unmapped(_) => Ok(()),
        }
    }

    /// Looks whether another process has cut a file short: see [`Mapped::look_for_cut`] and
    /// [`Unmapped::look_for_cut`].
    ///
    /// # Errors
    ///
    /// [`MediaError::Failed`] if a file was cut short.
    pub fn look_for_cut(&self) -> Result<(), MediaError> {
        each!(self, memory => memory.look_for_cut())
    }
}

impl Memory for ImageMemory {
    #[inline]
    fn len(&self) -> u64 {
        each!(self, memory => memory.len())
    }

    #[inline]
    fn read(&self, at: u64, to: &mut [u8]) -> Result<(), MediaError> {
        each!(self, memory => memory.read(at, to))
    }

    #[inline]
    fn write(&self, at: u64, from: &[u8]) -> Result<(), MediaError> {
        each!(self, memory => memory.write(at, from))
    }

    fn zero(&self, at: u64, len: u64) -> Result<(), MediaError> {
        each!(self, memory => memory.zero(at, len))
    }

    #[inline]
    fn load(&self, at: u64) -> Result<u32, MediaError> {
        each!(self, memory => memory.load(at))
    }

    #[inline]
    fn store(&self, at: u64, word: u32) -> Result<(), MediaError> {
        each!(self, memory => memory.store(at, word))
    }

    #[inline]
    fn store_long(&self, at: u64, word: u64) -> Result<(), MediaError> {
        each!(self, memory => memory.store_long(at, word))
    }

    #[inline]
    fn write_back(&self, at: u64, len: u64) {
        each!(self, memory => memory.write_back(at, len));
    }

    #[inline]
    fn fence(&self) -> Result<(), MediaError> {
        each!(self, memory => memory.fence())
    }

    fn flush(&self) -> Result<(), MediaError> {
        each!(self, memory => memory.flush())
    }

    fn hole(&self, at: u64) -> u64 {
        each!(self, memory => memory.hole(at))
    }

    #[inline]
    fn prefetch(&self, at: u64, len: u64) {
        each!(self, memory => memory.prefetch(at, len));
    }

    fn relax(&self, turn: u32) {
        each!(self, memory => memory.relax(turn));
    }
}
