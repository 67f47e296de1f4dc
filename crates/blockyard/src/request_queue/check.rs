//! The check of a submitted bio: accepted or refused, whole or to be split.

use super::RequestQueue;
use crate::bio::{Bio, Flags, Op};
use crate::limits::Limits;
use crate::policy::Merges;
use crate::request::max_part_sectors;
use crate::status::SubmitError;
use crate::unit::CpuId;

impl RequestQueue {
    /// Checks a bio. Returns its flags as they hold on this device, and whether it fits into one
    /// request.
    #[inline(always)]
    pub(super) fn check(&self, cpu: CpuId, bio: &Bio) -> Result<(Flags, bool), SubmitError> {
        if cpu.index() >= self.plugs.len() {
            return Err(SubmitError::NoSuchCpu);
        }
        if bio.flags.contains(Flags::RESERVED) && self.reserved == 0 {
            return Err(SubmitError::NotSupported);
        }
        let limits = &self.limits;
        let fits = match bio.op {
            Op::Flush if bio.sectors == 0 => true,
            Op::Flush => return Err(SubmitError::OutOfRange),
            Op::DriverIn | Op::DriverOut if fits_whole(bio, limits, limits.max_sectors) => true,
            Op::DriverIn | Op::DriverOut => return Err(SubmitError::OutOfRange),
            Op::Read | Op::Write => check_range(bio, limits, limits.max_sectors)?,
            Op::Discard | Op::SecureErase | Op::WriteZeroes => {
                match limits.max_sectors_of(bio.op) {
                    0 => return Err(SubmitError::NotSupported),
                    max_sectors => check_range(bio, limits, max_sectors)?,
                }
            }
        };
        debug_assert!(
            !fits
                || bio.op == Op::Flush
                || bio.op.is_passthrough()
                || bio.sectors <= max_part_sectors(bio, bio.sector, limits),
            "{bio:?} is whole and longer than the first part of a split one"
        );
        Ok((self.flags_of(bio), fits))
    }

    /// Returns the flags of `bio` that mean something on this device.
    #[inline]
    fn flags_of(&self, bio: &Bio) -> Flags {
        let durable = Flags::PREFLUSH | Flags::FUA;
        let mut flags = bio.flags;
        if flags.intersects(durable) {
            let writes = !bio.op.is_read() && bio.op != Op::Flush && !bio.op.is_passthrough();
            if !(writes && self.limits.write_cache) {
                flags = flags.without(durable);
            }
        }
        if self.policies.merges == Merges::Off {
            flags |= Flags::NO_MERGE;
        }
        flags
    }
}

/// Checks the sectors of `bio`, an operation of at most `max_sectors` for each request. Returns
/// whether it fits into one.
#[inline(always)]
fn check_range(bio: &Bio, limits: &Limits, max_sectors: u32) -> Result<bool, SubmitError> {
    let end = bio.sector.checked_add(u64::from(bio.sectors));
    let is_within = end.is_some_and(|end| end <= limits.capacity_sectors);
    if bio.sectors == 0 || !is_within {
        return Err(SubmitError::OutOfRange);
    }
    let into_block = u64::from(limits.logical_block_sectors - 1);
    if (bio.sector | u64::from(bio.sectors)) & into_block != 0 {
        return Err(SubmitError::Misaligned);
    }
    // A part has one block at least, and a bio whole blocks.
    let max_sectors = limits.up_to_chunk(max_sectors, bio.sector);
    Ok(fits_whole(bio, limits, max_sectors.max(limits.logical_block_sectors)))
}

/// Whether `bio` fits into one request, of at most `max_sectors`.
#[inline]
fn fits_whole(bio: &Bio, limits: &Limits, max_sectors: u32) -> bool {
    // Bios without data have no segments, whatever their count says.
    bio.sectors <= max_sectors
        && (bio.segments <= limits.max_segments
            || matches!(bio.op, Op::Discard | Op::SecureErase | Op::WriteZeroes))
}
