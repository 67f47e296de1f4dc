//! The memory of an image: a mapped file, or one that is reached by calls.

use crate::durability::Durability;
use crate::lines::Copying;
use crate::mapped::Mapped;
use crate::unmapped::Unmapped;
use blockyard_btt::layout::{INFO_BYTES, Layout};
use blockyard_btt::{MediaError, Memory};
use std::fs::File;
use std::io;

/// The bytes of an image.
#[derive(Debug)]
pub enum ImageMemory {
    /// Mapped.
    Mapped(Mapped),
    /// Reached by calls.
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
    /// The bytes of a file, reached as `durability` says.
    ///
    /// # Errors
    ///
    /// Those of [`Mapped::new`] and [`Unmapped::new`].
    pub fn new(
        file: File,
        writable: bool,
        durability: Durability,
        copying: Copying,
    ) -> io::Result<Self> {
        Ok(match durability {
            Durability::Process => Self::Mapped(Mapped::new(file, writable, false, copying)?),
            Durability::Memory => Self::Mapped(Mapped::new(file, writable, true, copying)?),
            Durability::Calls => Self::Unmapped(Unmapped::new(file, writable, false)?),
            Durability::Disk => Self::Unmapped(Unmapped::new(file, writable, true)?),
        })
    }

    /// Takes the room that arenas need, of which it is said where they begin: all of a mapped file, as a hole
    /// that cannot be filled would end the process; otherwise maps and logs, as a write that is logged cannot be
    /// taken back for want of room.
    ///
    /// # Errors
    ///
    /// There is not enough.
    pub fn take_room(&self, arenas: impl IntoIterator<Item = (u64, Layout)>) -> io::Result<()> {
        match self {
            Self::Mapped(mapped) => mapped.take_room(),
            Self::Unmapped(unmapped) => arenas.into_iter().try_for_each(|(start, layout)| {
                let end = layout.infooff + INFO_BYTES;
                unmapped.take_room(start + layout.mapoff, end - layout.mapoff)
            }),
        }
    }

    /// Makes the processor's way to every page of a mapping now, so that no access has to later: worth its time
    /// before much random access.
    ///
    /// # Errors
    ///
    /// The kernel does not know how (before Linux 5.14).
    pub fn prefault(&self) -> io::Result<()> {
        match self {
            Self::Mapped(mapped) => mapped.prefault(),
            Self::Unmapped(_) => Ok(()),
        }
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

    #[inline]
    fn prefetch(&self, at: u64, len: u64) {
        each!(self, memory => memory.prefetch(at, len));
    }

    fn relax(&self, turn: u32) {
        each!(self, memory => memory.relax(turn));
    }
}
