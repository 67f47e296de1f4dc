//! Pools that libpmemblk made and nobody wrote: it leaves laying out the BTT to the first write, and reads
//! zeroes before.
//!
//! # Rules
//!
//! - **B1.** A pool counts as such if its header says that it was made of zeroes, no BTT is found in it, its first
//!   info block is zeroes, no map has an entry, and logs have nothing but what laying out writes: so no sector of
//!   it was ever written.
//! - **B2.** It is laid out when it is opened for writing; to be read, in memory. Where the power goes meanwhile,
//!   it still is one, by B1, or it is laid out, as the first info block comes last.

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

/// How the pool in `memory` is to be laid out, with `uuid`, if it never was (B1).
///
/// # Errors
///
/// The medium failed.
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
        let (map, len) = (start + layout.mapoff, layout.flogoff - layout.mapoff);
        let is_there = nth == 0 && !is_zeroes(memory, start, INFO_BYTES)?;
        if is_there || !is_zeroes(memory, map, len)? || !is_unused(memory, start, &layout)? {
            return Ok(None);
        }
    }
    Ok(Some(format))
}

/// Whether each word of a log is as laying out leaves it, or as it was before.
fn is_unused(memory: &ImageMemory, start: u64, layout: &Layout) -> Result<bool, ImageError> {
    let mut group: GroupBytes = [0; size_of::<GroupBytes>()];
    for lane in 0..layout.nfree {
        let at = start + layout.flogoff + u64::from(lane) * FLOG_GROUP_BYTES;
        let free = PostmapAba(layout.external_nlba + lane);
        let first = Container::Pool.dialect().first_entry(lane, free).words();
        if !is_read(memory, at, &mut group)? {
            return Ok(false);
        }
        let laid = first.into_iter().chain(core::iter::repeat(0));
        let is_strange = |(bytes, laid): (&[u8], u64)| {
            bytes != laid.to_le_bytes() && bytes.iter().any(|&byte| byte != 0)
        };
        if group.chunks_exact(8).zip(laid).any(is_strange) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Reads; `false` if the medium lost what was there.
fn is_read(memory: &ImageMemory, at: u64, to: &mut [u8]) -> Result<bool, ImageError> {
    match memory.read(at, to) {
        Err(MediaError::Bad) => Ok(false),
        Err(error) => Err(OpenError::Find(error.into()).into()),
        Ok(()) => Ok(true),
    }
}

/// Whether `len` bytes at `at` are all zeroes; what the medium lost is none.
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

/// `len` bytes of memory, laid out as `format` says (B2).
///
/// # Errors
///
/// There is none.
pub(crate) fn in_memory(len: u64, format: &Format) -> Result<ImageMemory, ImageError> {
    let file = memfd_create("blockyard-pool", MemfdFlags::CLOEXEC).map_err(io::Error::from)?;
    let file = File::from(file);
    file.set_len(len)?;
    let memory = ImageMemory::Unmapped(Unmapped::new(file, true, false)?);
    format.write(&memory).map_err(OpenError::from)?;
    Ok(memory)
}
