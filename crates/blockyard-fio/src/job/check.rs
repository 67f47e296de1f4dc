//! Checks of whole jobs, after all settings of a job are known.

use super::engines;
use super::error::{Buffered, Fault, JobError, Note, Remark};
use super::limits::INSTANCES_MAX;
use super::model::{Distribution, Engine, Job, Mix, RandomGenerator, Strides};
use super::op::Op;
use super::units;
use super::value::Amount;

/// Options that only some engines have.
const ENGINE_OPTIONS: &[(&str, &[Engine])] = &[
    ("hipri", &[Engine::IoUring, Engine::Pvsync2]),
    ("uncached", &[Engine::IoUring, Engine::Pvsync2]),
    ("fixedbufs", &[Engine::IoUring]),
    ("registerfiles", &[Engine::IoUring]),
    ("nonvectored", &[Engine::IoUring]),
    ("userspace_reap", &[Engine::Libaio]),
    ("libaio_vectored", &[Engine::Libaio]),
    ("force_async", &[Engine::IoUring]),
    ("cmdprio_percentage", &[Engine::Libaio, Engine::IoUring]),
    ("cmdprio_bssplit", &[Engine::Libaio, Engine::IoUring]),
    ("cmdprio_class", &[Engine::Libaio, Engine::IoUring]),
    ("cmdprio", &[Engine::Libaio, Engine::IoUring]),
];

/// The bytes of a memory page.
const PAGE_BYTES: u32 = 4096;

/// Checks one job.
pub(super) fn job(job: &Job) -> Result<(), JobError> {
    buffering(job)?;
    syncing(job)?;
    engine(job)?;
    depth(job)?;
    sizes(job)?;
    numbering(job)?;
    skew(job)?;
    trims(job)?;
    strides(job)?;
    targets(job)?;
    pace(job)
}

/// Checks that the jobs up to this one request at most [`INSTANCES_MAX`] instances.
pub(super) fn instances(job: &Job) -> Result<(), JobError> {
    let asked = u64::from(job.first_instance) + u64::from(job.numjobs);
    let fault = Fault::TooManyInstances { asked };
    if asked > INSTANCES_MAX.into() { fail(job, "numjobs", fault) } else { Ok(()) }
}

fn fail(job: &Job, option: &str, fault: Fault) -> Result<(), JobError> {
    Err(JobError { place: job.place_of(option).clone(), fault })
}

fn contradiction(
    job: &Job,
    option: &'static str,
    other: &'static str,
    reason: &'static str,
) -> Result<(), JobError> {
    fail(job, option, Fault::Contradiction { option, other, reason })
}

/// Checks `option`, which was just applied to a job whose `direct` was `before`. A later `direct`
/// or `buffered` overrides an earlier one, but both in one section are an error.
pub(super) fn same_section(job: &Job, option: &'static str, before: bool) -> Result<(), Fault> {
    let other = match option {
        "direct" => "buffered",
        "buffered" => "direct",
        _ => return Ok(()),
    };
    if job.direct != before && job.places.0.get(other).is_some_and(|set| set.own) {
        return Err(Fault::Contradiction { option, other, reason: "each is the other's opposite" });
    }
    Ok(())
}

/// Checks that a buffered job is one whose calls wait: nothing else is modelled.
fn buffering(job: &Job) -> Result<(), JobError> {
    if job.direct {
        return Ok(());
    }
    if job.is_mapped() {
        mapping(job)?;
    }
    let is_own = job.places.0.get("buffered").is_some_and(|set| set.own);
    let option = if is_own { "buffered" } else { "direct" };
    if job.pattern.mix.ops().contains(&Op::Trim) {
        return fail(job, option, Fault::Buffered(Buffered::Trims));
    }
    // libaio's calls return when their I/O has ended.
    if job.engine.is_async() && job.engine_name != "libaio" {
        return fail(job, option, Fault::Buffered(Buffered::Engine(job.engine_name)));
    }
    if job.hipri {
        return contradiction(job, "hipri", option, "nothing polls for the I/O of the page cache");
    }
    Ok(())
}

/// Checks that a job with `sync_file_range` has pages for it.
fn syncing(job: &Job) -> Result<(), JobError> {
    if job.direct && job.sync_file_range.every > 0 {
        let reason =
            "direct writes leave no pages to write back; sync them with fsync or fdatasync";
        return contradiction(job, "sync_file_range", "direct", reason);
    }
    Ok(())
}

/// Checks a job with mapped files. As in fio, blocks of one that syncs are whole pages.
fn mapping(job: &Job) -> Result<(), JobError> {
    let syncs = [("fsync", job.fsync), ("fdatasync", job.fdatasync)];
    let sync = syncs.into_iter().find(|(_, every)| *every > 0);
    if let Some((option, _)) = sync.filter(|_| !job.min_block_bytes().is_multiple_of(PAGE_BYTES)) {
        let reason = "ioengine=mmap syncs blocks of whole pages, of 4096 bytes";
        return contradiction(job, option, "bs", reason);
    }
    let asks_direct = job.places.0.get("direct").is_some_and(|set| set.text != "0");
    if asks_direct && job.pattern.mix != Mix::Read {
        let reason =
            "ioengine=mmap then syncs and drops the pages of each write, which is not modelled";
        return fail(job, "direct", Fault::Unsupported { option: "direct", reason });
    }
    Ok(())
}

/// Checks that a job with zones says so, and how long they are.
fn strides(job: &Job) -> Result<(), JobError> {
    let Strides { on, zone_bytes, .. } = job.strides;
    if on && zone_bytes == 0 {
        let reason = "strided zones need a size";
        return contradiction(job, "zonemode", "zonesize", reason);
    }
    if !on && zone_bytes > 0 {
        let reason = "there are zones only with zonemode=strided";
        return contradiction(job, "zonesize", "zonemode", reason);
    }
    Ok(())
}

fn targets(job: &Job) -> Result<(), JobError> {
    let priority = &job.command_priority;
    let shared = priority.percent.each().into_iter().any(|percent| *percent > 0);
    if shared && priority.shares.each().into_iter().any(|shares| !shares.is_empty()) {
        let reason = "each I/O takes its priority from one of the two";
        return contradiction(job, "cmdprio_bssplit", "cmdprio_percentage", reason);
    }
    let steady = &job.targets.steady;
    if steady.window_ns > 0 && steady.window_ns < steady.interval_ns {
        let reason = "the window is shorter than the time between two samples";
        return contradiction(job, "steadystate_duration", "steadystate_check_interval", reason);
    }
    Ok(())
}

/// Returns notes about a job as a whole: options that are moot, and I/O that is buffered by
/// default.
pub(super) fn remarks(job: &Job) -> Vec<Note> {
    const NO_CACHE: &str = "I/O is direct: no page cache is involved";
    const NO_RUNTIME: &str = "runtime is not set";
    const NO_WINDOW: &str = "steadystate_duration is not set";
    const NO_TARGET: &str = "latency_target is not set";
    const READS: &str = "as in fio, only a job that writes syncs";
    const NO_MOUNT: &str = "syncfs syncs the file system of the device's node, not the device";
    const NO_CALL: &str = "in fio, end_syncfs takes its place";
    const ONE: &str = "a synchronous engine has one I/O in flight";
    let writes = job.pattern.mix.ops().contains(&Op::Write);
    let sized = job.size.is_some_and(|size| !matches!(size, Amount::Bytes(0)));
    let moot = [
        ("iodepth", !job.engine.is_async() && job.iodepth > 1, ONE),
        ("uncached", job.direct, NO_CACHE),
        ("pre_read", job.direct, NO_CACHE),
        ("fadvise_hint", job.direct, NO_CACHE),
        ("time_based", job.time_based && job.runtime_ns.is_none(), NO_RUNTIME),
        ("steadystate", job.targets.steady.window_ns == 0, NO_WINDOW),
        ("latency_window", job.targets.latency.target_ns == 0, NO_TARGET),
        ("latency_percentile", job.targets.latency.target_ns == 0, NO_TARGET),
        ("latency_run", job.targets.latency.target_ns == 0, NO_TARGET),
        ("rate_cycle", !job.targets.bounds.any(), "it only matters to rate_min"),
        ("fill_device", job.fill_device && sized, "size says how much of the device is covered"),
        ("openfiles", job.files() == 1, "the job has one file"),
        ("fsync", !writes, READS),
        ("fdatasync", !writes, READS),
        ("sync_file_range", !writes, READS),
        ("end_fsync", !writes, READS),
        ("end_fsync", writes && job.end_syncfs, NO_CALL),
        ("fsync_on_close", !writes, READS),
        ("fsync_on_close", writes && job.end_syncfs, NO_CALL),
        ("end_syncfs", !writes, READS),
        ("end_syncfs", writes, NO_MOUNT),
    ];
    let set = |option: &str| job.places.0.get(option).map(|set| set.place.clone());
    let moot = moot.into_iter().filter(|(_, moot, _)| *moot);
    let mut notes: Vec<_> = moot
        .filter_map(|(option, _, reason)| {
            Some(Note { place: set(option)?, remark: Remark::NoEffect { option, reason } })
        })
        .collect();
    if let Some(reason) = engines::likeness(job) {
        let engine = job.engine_name;
        let other = job.engine.name();
        let place = job.place_of("ioengine").clone();
        notes.push(Note { place, remark: Remark::RunsAs { engine, other, reason } });
    }
    if units::ends_early(job) {
        notes.push(Note { place: job.place_of("bs").clone(), remark: Remark::EndsEarly });
    }
    if job.verify {
        notes.push(Note { place: job.place_of("verify").clone(), remark: Remark::Verified });
    }
    let of_files = ["overwrite", "fallocate"].into_iter();
    notes.extend(of_files.filter_map(|option| {
        Some(Note { place: set(option)?, remark: Remark::NeedsFileSystem { option } })
    }));
    let mapped = job.is_mapped();
    if !job.direct && job.pattern.mix != Mix::Read {
        notes.push(Note { place: job.place.clone(), remark: Remark::BufferedWrites });
    } else if !job.direct && !mapped && set("direct").or(set("buffered")).is_none() {
        notes.push(Note { place: job.place.clone(), remark: Remark::BufferedByDefault });
    }
    notes
}

fn engine(job: &Job) -> Result<(), JobError> {
    for (option, engines) in ENGINE_OPTIONS {
        if job.places.0.contains_key(option) && !engines.contains(&job.engine) {
            return fail(job, option, Fault::WrongEngine { option, engine: job.engine.name() });
        }
    }
    Ok(())
}

fn depth(job: &Job) -> Result<(), JobError> {
    if job.iodepth_low.is_some_and(|low| low > job.iodepth) {
        return contradiction(
            job,
            "iodepth_low",
            "iodepth",
            "`iodepth_low` is the greater of the two",
        );
    }
    if job.iodepth_batch_complete_max.is_some_and(|max| max < job.iodepth_batch_complete_min) {
        let other = "iodepth_batch_complete_min";
        return contradiction(
            job,
            "iodepth_batch_complete_max",
            other,
            "`iodepth_batch_complete_max` is the smaller of the two",
        );
    }
    Ok(())
}

fn sizes(job: &Job) -> Result<(), JobError> {
    let block_bytes = u64::from(job.min_block_bytes());
    debug_assert!(block_bytes > 0, "the parser refuses blocks of no bytes");
    let files = job.files() as u64;
    let (option, size_bytes) = match (job.filesize_bytes, job.size) {
        (Some(bytes), _) => ("filesize", bytes),
        // 0 is the whole device.
        (None, Some(Amount::Bytes(bytes))) if bytes > 0 => ("size", bytes / files),
        _ => return Ok(()),
    };
    if size_bytes < block_bytes {
        return fail(job, option, Fault::SmallerThanBlock { size_bytes, block_bytes });
    }
    Ok(())
}

/// Checks that `lfsr` numbers the blocks of this job's own I/Os.
fn numbering(job: &Job) -> Result<(), JobError> {
    if job.pattern.random
        && job.random_generator == RandomGenerator::Lfsr
        && job.distribution == Distribution::Uniform
        && units::numbers_shorter_blocks(job)
    {
        let reason = "lfsr numbers the shortest blocks of `bs`, and fio ends a job at the first number \
                      that longer blocks lack, which is often its first I/O";
        return contradiction(job, "random_generator", "bs", reason);
    }
    Ok(())
}

/// Checks that a skewed distribution counts the blocks that the job uses.
fn skew(job: &Job) -> Result<(), JobError> {
    if units::skews_in_other_units(job) {
        let reason = "fio counts the shorter of the blocks for reads and writes, and ends the job, with success, \
                      at the first I/O that then lies behind the file";
        return contradiction(job, "random_distribution", "bs", reason);
    }
    if job.pattern.random && job.distribution.is_skewed() && job.strides.on {
        let reason = "fio counts the blocks of the whole file, and ends the job, with success, at the first I/O \
                      that then lies behind its zone";
        return contradiction(job, "random_distribution", "zonemode", reason);
    }
    Ok(())
}

/// Checks that trims and the writes behind them have the same lengths, unless they are random: then
/// a write takes the length of its trim.
fn trims(job: &Job) -> Result<(), JobError> {
    let are_equal = job.block.trim == job.block.write;
    if job.pattern.mix == Mix::TrimWrite && !job.pattern.random && !are_equal {
        let reason = "fio then moves trims and writes on at their own lengths, and most writes follow no trim";
        let (option, _) = job.last_written(&["bs", "bsrange", "bssplit"]);
        return contradiction(job, option, "rw", reason);
    }
    Ok(())
}

fn pace(job: &Job) -> Result<(), JobError> {
    let both = |op: &Op| *job.rate_bytes_per_s.of(*op) > 0 && *job.rate_iops.of(*op) > 0;
    if Op::ALL.iter().any(both) {
        return contradiction(job, "rate_iops", "rate", "only one of them can limit a kind of I/O");
    }
    Ok(())
}
