//! Pools that libpmemblk created and nobody has written to: libpmemblk formats the BTT at the first
//! write, and reads zeroes before.
//!
//! A pool counts as unwritten only if no sector of it can have been written: its header says that
//! it was created from zeroes, it has no BTT, its first info block is zero, no map has an entry,
//! and the logs have only what formatting writes.
//!
//! An unwritten pool is formatted when it is opened for writing. To be read, it is formatted in
//! memory. After a power cut during formatting, the pool is still unwritten or formatted, because
//! the first info block is written last.

use crate::error::ImageError;
use crate::memory::ImageMemory;
use crate::pool::Pool;
use crate::unmapped::Unmapped;
use blockyard_btt::find::find;
use blockyard_btt::flog::GroupBytes;
use blockyard_btt::layout::{FLOG_GROUP_BYTES, INFO_BYTES, Layout};
use blockyard_btt::{Container, Format, MediaError, Memory, OpenError, PostmapAba, Uuid};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io;

/// Returns the format of the BTT that the pool in `memory` lacks, with `uuid`, if the pool is
/// unwritten.
///
/// # Errors
///
/// Returns the medium's error.
pub(crate) fn plan(
    memory: &ImageMemory,
    pool: &Pool,
    uuid: Uuid,
) -> Result<Option<Format>, ImageError> {
    let Pool { sector_bytes, blank, uuid: parent_uuid } = *pool;
    let format = Format { container: Container::Pool, sector_bytes, uuid, parent_uuid, blank };
    let Ok(arenas) = format.plan(memory.len()) else { return Ok(None) };
    if !blank || find(memory, Container::Pool, Some(parent_uuid)).is_ok() {
        return Ok(None);
    }
    for (nth, (start, info)) in arenas.into_iter().enumerate() {
        let layout = info.layout;
        let map = start + layout.mapoff;
        let len = layout.flogoff - layout.mapoff;
        let is_there = nth == 0 && !is_zeroes(memory, start, INFO_BYTES)?;
        if is_there || !is_zeroes(memory, map, len)? || !is_unused(memory, start, &layout)? {
            return Ok(None);
        }
    }
    Ok(Some(format))
}

/// Whether each word of a log is zero or as formatting writes it.
fn is_unused(memory: &ImageMemory, start: u64, layout: &Layout) -> Result<bool, ImageError> {
    let mut group: GroupBytes = [0; size_of::<GroupBytes>()];
    for lane in 0..layout.nfree {
        let at = start + layout.flogoff + u64::from(lane) * FLOG_GROUP_BYTES;
        let free = PostmapAba(layout.external_nlba + lane);
        let first = Container::Pool.dialect().first_entry(lane, free).words();
        if !is_read(memory, at, &mut group)? {
            return Ok(false);
        }
        let formatted = first.into_iter().chain(core::iter::repeat(0));
        if group.chunks_exact(8).zip(formatted).any(|(bytes, formatted): (&[u8], u64)| {
            bytes != formatted.to_le_bytes() && bytes.iter().any(|&byte| byte != 0)
        }) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Reads bytes. Returns false if the medium lost them.
fn is_read(memory: &ImageMemory, at: u64, to: &mut [u8]) -> Result<bool, ImageError> {
    match memory.read(at, to) {
        Err(MediaError::Bad) => Ok(false),
        Err(error) => Err(OpenError::Find(error.into()).into()),
        Ok(()) => Ok(true),
    }
}

/// Whether `len` bytes at `at` are all zero. Lost bytes are not.
fn is_zeroes(memory: &ImageMemory, at: u64, len: u64) -> Result<bool, ImageError> {
    const PIECE: usize = 1 << 16;
    let mut piece = vec![0; PIECE];
    for done in (0..len).step_by(PIECE) {
        let count = usize::try_from(len - done).map_or(PIECE, |left| left.min(PIECE));
        let piece = &mut piece[..count];
        if !is_read(memory, at + done, piece)? || piece.iter().any(|&byte| byte != 0) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns `len` bytes of memory with the BTT that `format` describes.
///
/// # Errors
///
/// The system has no memory for them.
pub(crate) fn in_memory(len: u64, format: &Format) -> Result<ImageMemory, ImageError> {
    let file = memfd_create("blockyard-pool", MemfdFlags::CLOEXEC).map_err(io::Error::from)?;
    let file = File::from(file);
    file.set_len(len)?;
    let memory = ImageMemory::Unmapped(Unmapped::new(file, true, false)?);
    debug_assert_eq!(memory.len(), len, "the memory has the size of the pool");
    format.write(&memory).map_err(OpenError::from)?;
    Ok(memory)
}
