//! Checks before a run whether a job can run on a device.

use crate::job::{BlockSizes, Job, Op, Place, Resolved};
use crate::profile::Device;
use blockyard::unit::SECTOR_BYTES;
use std::fmt;

/// The maximum number of I/Os in flight over all instances of a job file. It bounds the reserved memory.
pub const IN_FLIGHT_MAX: u64 = 1 << 20;

/// The maximum number of I/Os that jobs can ask for if no run time bounds them. A simulation of so many takes hours.
pub const PLANNED_IOS_MAX: u64 = 1 << 34;

/// The reason why a job does not fit a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// An offset or length is not a multiple of the logical block size.
    Misaligned {
        /// The option that requires it.
        option: &'static str,
        /// Bytes per logical block.
        block_bytes: u64,
    },
    /// The job trims, and the device does not support discards.
    NoDiscard {
        /// The option that requires it.
        option: &'static str,
        /// The device.
        device: String,
    },
    /// The job names more files than the device has disks.
    TooFewDisks {
        /// The number of disks.
        disks: u16,
    },
    /// The job polls, and no hardware queue is polled.
    NoPolledQueue {
        /// The design, which could have a polled queue.
        design: String,
    },
    /// The job and the jobs before it can have more than [`IN_FLIGHT_MAX`] I/Os in flight.
    TooDeep,
    /// The job and the jobs before it ask for more than [`PLANNED_IOS_MAX`] I/Os, and no run time bounds them.
    TooLong,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misaligned { option, block_bytes } => write!(
                f,
                "`{option}`: offsets and lengths must be multiples of the device's {block_bytes} bytes"
            ),
            Self::NoDiscard { option, device } => write!(
                f,
                "`{option}` trims, and device `{device}` does not discard: give it `max-discard-sectors` in \
                 `[limits]`"
            ),
            Self::TooFewDisks { disks } => write!(
                f,
                "more file names than disks: the device has {disks}; give all jobs the same `filename=`, or let `--disks` give more disks to a null device or a SCSI host"
            ),
            Self::NoPolledQueue { design } => write!(
                f,
                "`hipri` polls for completions, and design `{design}` has no hardware queue that is polled: give it `poll-queues` in `[queue]`"
            ),
            Self::TooLong => write!(
                f,
                "more than {PLANNED_IOS_MAX} I/Os in all, which take hours to simulate: set `runtime`, or use --runtime"
            ),
            Self::TooDeep => write!(
                f,
                "more than {IN_FLIGHT_MAX} I/Os in flight over all jobs (numjobs times iodepth)"
            ),
        }
    }
}

/// Checks that `job`, whose files are `resolved`, fits `device`.
///
/// # Errors
///
/// Returns the first mismatch and its place in the job file.
pub fn check(job: &Job, resolved: &Resolved, device: &Device) -> Result<(), (Place, Unfit)> {
    let limits = &device.limits;
    let block_bytes = u64::from(limits.logical_block_sectors) * u64::from(SECTOR_BYTES);
    if let Some(option) = misaligned(job, resolved, block_bytes) {
        let place = job.place_of(option).clone();
        return Err((place, Unfit::Misaligned { option, block_bytes }));
    }
    let trims = job.pattern.mix.ops().contains(&Op::Trim);
    if trims && limits.max_discard_sectors == 0 {
        let option = "rw";
        let device = device.name.clone();
        return Err((job.place_of(option).clone(), Unfit::NoDiscard { option, device }));
    }
    Ok(())
}

/// Returns the first option that lets an I/O begin or end within a block.
fn misaligned(job: &Job, resolved: &Resolved, block_bytes: u64) -> Option<&'static str> {
    assert!(block_bytes > 0, "a logical block must have a length");
    let whole = |bytes: u64| bytes.is_multiple_of(block_bytes);
    let lengths = |sizes: &BlockSizes| match sizes {
        BlockSizes::Fixed(bytes) => whole((*bytes).into()),
        BlockSizes::Range { min_bytes, max_bytes } => {
            whole((*min_bytes).into()) && whole((*max_bytes).into()) && !job.block_unaligned
        }
        BlockSizes::Split(entries) => entries.iter().all(|(bytes, _)| whole((*bytes).into())),
    };
    let ops = job.pattern.mix.ops();
    if !ops.iter().all(|op| lengths(job.block.of(*op))) {
        return Some("bs");
    }
    if !ops.iter().filter_map(|op| *job.block_align_bytes.of(*op)).all(whole) {
        return Some("ba");
    }
    if !whole(job.pattern.skip_bytes.unsigned_abs()) {
        return Some("rw");
    }
    let starts_whole = resolved.files.iter().all(|file| whole(file.start_bytes));
    (!starts_whole).then_some("offset")
}
