//! Checks before a run whether a job can run on a device.

use blockyard::unit::SECTOR_BYTES;
use blockyard_devices::profile::Device;
use blockyard_fio::job::{BlockSizes, Job, Op, Place, Resolved};
use std::fmt;

/// The maximum number of I/Os in flight over all instances of a job file. It bounds the reserved
/// memory.
pub(crate) const IN_FLIGHT_MAX: u64 = 1 << 20;

/// The maximum number of I/Os that jobs can ask for if no run time bounds them. A simulation of so
/// many takes hours.
pub(crate) const PLANNED_IOS_MAX: u64 = 1 << 34;

/// The reason why a job does not fit a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// An offset or length is not a multiple of the logical block size.
    Misaligned {
        /// The option that requires it, and its value as written: `bs=4KiB`.
        given: String,
        /// The offset or length in bytes.
        bytes: u64,
        /// Bytes per logical block.
        block_bytes: u64,
    },
    /// Lengths may be any number of bytes.
    AnyLength {
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
    /// The job and another one use the same sectors. One of them writes there through the page
    /// cache, and the other one discards them or uses them as another file.
    SharesDirty,
    /// Several durable writes to files of a file system may be in flight, and each of them is
    /// followed by a sync in a worker.
    SyncsInWorker,
    /// The job names a disk as a file, and the disk has a file system.
    DiskOfFileSystem,
    /// The job polls, and no hardware queue is polled.
    NoPolledQueue {
        /// The design, which could have a polled queue.
        design: String,
    },
    /// The job's calls are uncached, and the design's kernel refuses such calls.
    RefusesUncached {
        /// The design, which could take them.
        design: String,
    },
    /// The job and the jobs before it can have more than `IN_FLIGHT_MAX` I/Os in flight.
    TooDeep,
    /// The job and the jobs before it ask for more than `PLANNED_IOS_MAX` I/Os, and no run time
    /// bounds them.
    TooLong,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misaligned { given, bytes, block_bytes } => {
                let next = bytes.next_multiple_of(*block_bytes);
                write!(
                    f,
                    "`{given}`: an offset or length of {bytes} bytes is no multiple of the device's {block_bytes}; \
                     use {next}"
                )
            }
            Self::AnyLength { block_bytes } => write!(
                f,
                "`bs_unaligned` makes lengths of any number of bytes, and the device has blocks of {block_bytes}"
            ),
            Self::NoDiscard { option, device } => write!(
                f,
                "`{option}` trims, and device `{device}` does not discard: give it `max-discard-sectors` in \
                 `[limits]`"
            ),
            Self::TooFewDisks { disks } => write!(
                f,
                "more file names than disks: the device has {disks}; give all jobs the same `filename=`, or let `--disks` give more disks to a null device, a SCSI host or an AHCI host"
            ),
            Self::SyncsInWorker => f.write_str(
                "on a file system a worker syncs the file behind each of these writes, which is not modelled \
                 for more than one at a time: use `iodepth=1`, or `sync=dsync` with `overwrite=1` on a disk \
                 with FUA",
            ),
            Self::DiskOfFileSystem => f.write_str(
                "the name is that of a disk, and --filesystem puts a file system there: name a file, or leave \
                 the file system out",
            ),
            Self::NoPolledQueue { design } => write!(
                f,
                "`hipri` polls for completions, and design `{design}` has no hardware queue that is polled: give it `poll-queues` in `[queue]`"
            ),
            Self::RefusesUncached { design } => write!(
                f,
                "the kernel of design `{design}` refuses `uncached` calls (RWF_DONTCACHE): a design of Linux 7.3 has `uncached = \"by-flusher\"` in `[queue]`"
            ),
            Self::SharesDirty => f.write_str(
                "a job writes to the same sectors through the page cache, and this one discards them or uses \
                 them as another file: what Linux writes back and drops for it is not modelled; use other \
                 sectors, or the same `filename`",
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
    // The page cache takes any bytes.
    let must_align = job.direct || job.pattern.mix.ops().contains(&Op::Trim);
    if let Some((options, bytes)) = misaligned(job, resolved, block_bytes).filter(|_| must_align) {
        let (option, text) = job.last_written(options);
        let given = if text.is_empty() { option.to_owned() } else { format!("{option}={text}") };
        let place = job.place_of(option).clone();
        return Err((place, Unfit::Misaligned { given, bytes, block_bytes }));
    }
    let ops = job.pattern.mix.ops();
    let has_ranges = |op: &Op| matches!(job.block.of(*op), BlockSizes::Range { .. });
    if must_align && job.block_unaligned && ops.iter().any(has_ranges) {
        let place = job.place_of("bs_unaligned").clone();
        return Err((place, Unfit::AnyLength { block_bytes }));
    }
    let trims = job.pattern.mix.ops().contains(&Op::Trim);
    if trims && limits.max_discard_sectors == 0 {
        let option = "rw";
        let device = device.name.clone();
        return Err((job.place_of(option).clone(), Unfit::NoDiscard { option, device }));
    }
    Ok(())
}

/// Returns the first offset or length that lets an I/O begin or end within a block, and the options
/// that can set it.
fn misaligned(
    job: &Job,
    resolved: &Resolved,
    block_bytes: u64,
) -> Option<(&'static [&'static str], u64)> {
    assert!(block_bytes > 0, "a logical block must have a length");
    let partial = |bytes: &u64| !bytes.is_multiple_of(block_bytes);
    let ops = job.pattern.mix.ops();
    let mut lengths = ops.iter().flat_map(|op| lengths(job.block.of(*op)));
    if let Some(bytes) = lengths.find(partial) {
        return Some((&["bs", "bsrange", "bssplit"], bytes));
    }
    if let Some(bytes) = ops.iter().filter_map(|op| *job.block_align_bytes.of(*op)).find(partial) {
        return Some((&["ba"], bytes));
    }
    if let Some(bytes) = Some(job.pattern.skip_bytes.unsigned_abs()).filter(partial) {
        return Some((&["rw"], bytes));
    }
    let start = resolved.files.iter().map(|file| file.start_bytes).find(partial)?;
    Some((&["offset", "offset_increment"], start))
}

/// Returns the lengths between which all I/Os of `sizes` lie, or all lengths.
fn lengths(sizes: &BlockSizes) -> Vec<u64> {
    match sizes {
        BlockSizes::Fixed(bytes) => vec![(*bytes).into()],
        BlockSizes::Range { min_bytes, max_bytes } => {
            vec![(*min_bytes).into(), (*max_bytes).into()]
        }
        BlockSizes::Split(entries) => entries.iter().map(|(bytes, _)| (*bytes).into()).collect(),
    }
}
