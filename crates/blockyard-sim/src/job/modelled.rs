//! The options that change a job.

use super::limits::{BLOCK_BYTES_MAX, DEPTH_MAX};
use super::logging::LogPrefix;
use super::model::{
    BlockSizes, ContinueOnError, CpuPolicy, Engine, FadviseHint, Job, PriorityClass,
    RandomGenerator, RateProcess, Sequencer, SyncMode, ThinktimeBlocks, UnifiedReporting,
};
use super::option::{Effect, OptionDef};
use super::structured;
use super::value::{Parsed, TimeUnit, Value};

const fn option(
    name: &'static str,
    aliases: &'static [&'static str],
    doc: &'static str,
    apply: fn(&mut Job, Value<'_>) -> Parsed<()>,
) -> OptionDef {
    OptionDef { name, aliases, doc, effect: Effect::Modelled, apply }
}

fn set<T>(field: &mut T, value: Parsed<T>) -> Parsed<()> {
    *field = value?;
    Ok(())
}

/// A bound for numbers of a job, so that their products stay within 64 bits.
const COUNT_MAX: u64 = 1 << 48;

const SYNC_MODES: &[(&str, SyncMode)] = &[
    ("none", SyncMode::None),
    ("0", SyncMode::None),
    ("sync", SyncMode::Sync),
    ("1", SyncMode::Sync),
    ("dsync", SyncMode::Dsync),
];

const CONTINUE: &[(&str, ContinueOnError)] = &[
    ("none", ContinueOnError { reads: false, writes: false }),
    ("0", ContinueOnError { reads: false, writes: false }),
    ("read", ContinueOnError { reads: true, writes: false }),
    ("write", ContinueOnError { reads: false, writes: true }),
    ("io", ContinueOnError { reads: true, writes: true }),
    ("verify", ContinueOnError { reads: false, writes: false }), // nothing is verified
    ("all", ContinueOnError { reads: true, writes: true }),
    ("1", ContinueOnError { reads: true, writes: true }),
];

const FADVISE: &[(&str, FadviseHint)] = &[
    ("0", FadviseHint::None),
    ("1", FadviseHint::Pattern),
    ("random", FadviseHint::Random),
    ("sequential", FadviseHint::Sequential),
];

const UNIFIED: &[(&str, UnifiedReporting)] = &[
    ("none", UnifiedReporting::None),
    ("0", UnifiedReporting::None),
    ("mixed", UnifiedReporting::Mixed),
    ("1", UnifiedReporting::Mixed),
    ("both", UnifiedReporting::Both),
    ("2", UnifiedReporting::Both),
];

const GENERATORS: &[(&str, RandomGenerator)] = &[
    ("tausworthe", RandomGenerator::Tausworthe),
    ("lfsr", RandomGenerator::Lfsr),
    ("tausworthe64", RandomGenerator::Tausworthe64),
];

fn owned(value: Value<'_>) -> Parsed<String> {
    value.text().map(str::to_owned)
}

/// Reads the prefix of a log: the name of the job where the option has no value.
fn log_prefix(value: Value<'_>) -> Parsed<Option<LogPrefix>> {
    if value.text.is_none() {
        return Ok(Some(LogPrefix::JobName));
    }
    owned(value).map(LogPrefix::Given).map(Some)
}

fn milliseconds(value: Value<'_>) -> Parsed<u64> {
    value.count(0, u32::MAX.into())
}

fn block_bytes(value: Value<'_>) -> Parsed<u32> {
    value.count_u32(1, BLOCK_BYTES_MAX)
}

fn priority_class(value: Value<'_>) -> Parsed<PriorityClass> {
    Ok(match value.count(0, 3)? {
        0 => PriorityClass::None,
        1 => PriorityClass::RealTime,
        2 => PriorityClass::BestEffort,
        _ => PriorityClass::Idle,
    })
}

pub(super) static OPTIONS: &[OptionDef] = &[
    // What the job is
    option("name", &[], "name of the job", |j, v| set(&mut j.name, owned(v))),
    option("description", &[], "free text", |j, v| set(&mut j.description, owned(v).map(Some))),
    option(
        "stonewall",
        &["wait_for_previous"],
        "start when all earlier jobs have ended",
        |j, v| set(&mut j.stonewall, v.flag()),
    ),
    option("new_group", &[], "start a reporting group", |j, v| set(&mut j.new_group, v.flag())),
    option("group_reporting", &[], "report a group as one", |j, v| {
        set(&mut j.group_reporting, v.flag())
    }),
    option("exitall", &[], "end all jobs when this one ends", |j, v| set(&mut j.exitall, v.flag())),
    option("continue_on_error", &[], "count I/O errors and go on", |j, v| {
        set(&mut j.continue_on_error, v.word(CONTINUE))
    }),
    option("numjobs", &[], "instances of this job", |j, v| {
        set(&mut j.numjobs, v.count_u32(1, u32::MAX))
    }),
    option("thread", &[], "threads, not processes", |j, v| set(&mut j.thread, v.flag())),
    option("kb_base", &[], "what k means: 1024 or 1000", |j, v| {
        set(&mut j.kb_base, v.word(&[("1024", 1024), ("1000", 1000)]))
    }),
    // How it submits
    option("ioengine", &[], "how I/O is issued", |j, v| set(&mut j.engine, v.word(Engine::ALL))),
    option("hipri", &[], "poll for completions of reads and writes", |j, v| {
        set(&mut j.hipri, v.flag())
    }),
    option("iodepth", &[], "I/Os in flight", |j, v| set(&mut j.iodepth, v.count_u32(1, DEPTH_MAX))),
    option("iodepth_batch", &["iodepth_batch_submit"], "I/Os submitted at a time", |j, v| {
        set(&mut j.iodepth_batch_submit, v.count_u32(0, DEPTH_MAX))
    }),
    option(
        "iodepth_batch_complete_min",
        &["iodepth_batch_complete"],
        "completions to wait for",
        |j, v| set(&mut j.iodepth_batch_complete_min, v.count_u32(0, DEPTH_MAX)),
    ),
    option("iodepth_batch_complete_max", &[], "completions to reap at once", |j, v| {
        set(&mut j.iodepth_batch_complete_max, v.count_u32(0, DEPTH_MAX).map(Some))
    }),
    option("iodepth_low", &[], "depth at which to refill", |j, v| {
        set(&mut j.iodepth_low, v.count_u32(0, DEPTH_MAX).map(Some))
    }),
    option("direct", &[], "bypass the page cache (see `run --help`)", |j, v| {
        set(&mut j.direct, v.boolean())
    }),
    option("buffered", &[], "the opposite of direct", |j, v| {
        set(&mut j.direct, v.boolean().map(|buffered| !buffered))
    }),
    option("invalidate", &[], "drop cached pages before the job begins", |j, v| {
        set(&mut j.invalidate, v.boolean())
    }),
    option("pre_read", &[], "read the files before the job begins", |j, v| {
        set(&mut j.pre_read, v.boolean())
    }),
    option("fadvise_hint", &[], "tell the page cache the order of reads", |j, v| {
        set(&mut j.fadvise_hint, v.word(FADVISE))
    }),
    // What it asks for
    option("rw", &["readwrite"], "reads, writes, trims; in order or random", |j, v| {
        set(&mut j.pattern, structured::pattern(v))
    }),
    option("rw_sequencer", &[], "what follows a random offset", |j, v| {
        let words = [("sequential", Sequencer::Sequential), ("identical", Sequencer::Identical)];
        set(&mut j.sequencer, v.word(&words))
    }),
    option("rwmixread", &[], "percent of reads", |j, v| {
        set(&mut j.rwmix_read_percent, v.count(0, 100).map(small))
    }),
    option("rwmixwrite", &[], "percent of writes", |j, v| {
        set(&mut j.rwmix_read_percent, v.count(0, 100).map(|percent| 100 - small(percent)))
    }),
    option("bs", &["blocksize"], "bytes per I/O", |j, v| {
        v.per_op(&mut j.block, &[','], |v| block_bytes(v).map(BlockSizes::Fixed))
    }),
    option("bsrange", &["blocksize_range"], "range of bytes per I/O", |j, v| {
        v.per_op(&mut j.block, &[',', '/'], structured::block_range)
    }),
    option("bssplit", &[], "bytes per I/O, by percentage", |j, v| {
        v.per_op(&mut j.block, &[','], structured::block_split)
    }),
    option("bs_unaligned", &["blocksize_unaligned"], "any length in bsrange", |j, v| {
        set(&mut j.block_unaligned, v.flag())
    }),
    option("ba", &["blockalign"], "alignment of random offsets", |j, v| {
        v.per_op(&mut j.block_align_bytes, &[','], |v| v.count(1, COUNT_MAX).map(Some))
    }),
    option("random_distribution", &[], "where random offsets fall", |j, v| {
        set(&mut j.distribution, structured::distribution(v))
    }),
    option("random_generator", &[], "how offsets are drawn", |j, v| {
        set(&mut j.random_generator, v.word(GENERATORS))
    }),
    option("norandommap", &[], "random blocks may repeat", |j, v| {
        set(&mut j.norandommap, v.flag())
    }),
    option("percentage_random", &[], "percent of offsets that are random", |j, v| {
        v.per_op(&mut j.percentage_random, &[','], |v| v.count(0, 100).map(small))
    }),
    option("randrepeat", &[], "same offsets in every run", |j, v| {
        set(&mut j.randrepeat, v.boolean())
    }),
    option("allrandrepeat", &[], "same draws in every run", |j, v| {
        set(&mut j.allrandrepeat, v.boolean())
    }),
    option("randseed", &[], "seed of the draws", |j, v| {
        set(&mut j.randseed, v.count(0, u64::MAX).map(Some))
    }),
    // Where, and how much
    option("filename", &[], "files or devices, separated by colons", |j, v| {
        set(&mut j.filenames, structured::filenames(v))
    }),
    option("directory", &[], "prefix of the files", |j, v| {
        set(&mut j.directory, owned(v).map(Some))
    }),
    option("nrfiles", &[], "files per instance", |j, v| {
        set(&mut j.nrfiles, v.count(1, 4096).map(|n| u16::try_from(n).unwrap_or(u16::MAX)))
    }),
    option("file_service_type", &[], "order of the files", |j, v| {
        set(&mut j.file_service, structured::file_service(v))
    }),
    option("size", &[], "bytes over all files, or percent of the device", |j, v| {
        set(&mut j.size, v.amount().map(Some))
    }),
    option("filesize", &[], "bytes of each file", |j, v| {
        set(&mut j.filesize_bytes, structured::file_size(v).map(Some))
    }),
    option("io_size", &["io_limit"], "bytes to transfer, or percent of size", |j, v| {
        set(&mut j.io_size, v.amount().map(Some))
    }),
    option("offset", &["fileoffset"], "start of the region", |j, v| set(&mut j.offset, v.amount())),
    option("offset_increment", &[], "added to the offset for each instance", |j, v| {
        set(&mut j.offset_increment, v.amount())
    }),
    option("offset_align", &[], "alignment of an offset in percent", |j, v| {
        set(&mut j.offset_align_bytes, v.count(0, COUNT_MAX))
    }),
    option("number_ios", &[], "maximum number of I/Os", |j, v| {
        set(&mut j.number_ios, v.count(0, COUNT_MAX).map(|n| (n > 0).then_some(n)))
    }),
    option("loops", &[], "passes over the region", |j, v| set(&mut j.loops, v.count(0, COUNT_MAX))),
    // For how long
    option("runtime", &["timeout"], "time after which the job ends (s)", |j, v| {
        set(&mut j.runtime_ns, v.time_ns(TimeUnit::Second).map(|ns| (ns > 0).then_some(ns)))
    }),
    option("time_based", &[], "start over until runtime", |j, v| set(&mut j.time_based, v.flag())),
    option("ramp_time", &[], "warm-up before measuring (s)", |j, v| {
        set(&mut j.ramp_time_ns, v.time_ns(TimeUnit::Second))
    }),
    option("startdelay", &[], "wait before starting (s), or a range", |j, v| {
        set(&mut j.startdelay_ns, structured::start_delay(v))
    }),
    // Durability
    option("fsync", &[], "writes between syncs", |j, v| {
        set(&mut j.fsync, v.count_u32(0, u32::MAX))
    }),
    option("fdatasync", &[], "writes between data syncs", |j, v| {
        set(&mut j.fdatasync, v.count_u32(0, u32::MAX))
    }),
    option("end_fsync", &[], "sync when done", |j, v| set(&mut j.end_fsync, v.boolean())),
    option("sync", &[], "durable writes: none, sync, dsync", |j, v| {
        set(&mut j.sync, v.word(SYNC_MODES))
    }),
    // Pace
    option("rate", &[], "bytes per second", |j, v| {
        v.per_op(&mut j.rate_bytes_per_s, &[','], |v| v.count(0, COUNT_MAX))
    }),
    option("rate_iops", &[], "I/Os per second", |j, v| {
        v.per_op(&mut j.rate_iops, &[','], |v| v.count(0, u32::MAX.into()))
    }),
    option("rate_process", &[], "spacing of I/Os under a rate", |j, v| {
        let words = [("linear", RateProcess::Linear), ("poisson", RateProcess::Poisson)];
        set(&mut j.rate_process, v.word(&words))
    }),
    option("rate_ignore_thinktime", &[], "do not catch up after thinking", |j, v| {
        set(&mut j.rate_ignore_thinktime, v.boolean())
    }),
    option("thinktime", &[], "pause between I/Os (us)", |j, v| {
        set(&mut j.thinktime_ns, v.time_ns(TimeUnit::Microsecond))
    }),
    option("thinktime_spin", &[], "part of the pause that burns CPU (us)", |j, v| {
        set(&mut j.thinktime_spin_ns, v.time_ns(TimeUnit::Microsecond))
    }),
    option("thinktime_blocks", &[], "I/Os between pauses", |j, v| {
        set(&mut j.thinktime_blocks, v.count_u32(1, u32::MAX))
    }),
    option("thinktime_blocks_type", &[], "what thinktime_blocks counts", |j, v| {
        let words = [("complete", ThinktimeBlocks::Complete), ("issue", ThinktimeBlocks::Issue)];
        set(&mut j.thinktime_blocks_type, v.word(&words))
    }),
    option("thinktime_iotime", &[], "time between pauses (s)", |j, v| {
        set(&mut j.thinktime_iotime_ns, v.time_ns(TimeUnit::Second))
    }),
    // Priority and CPUs
    option("prio", &[], "I/O priority, 0 first", |j, v| {
        set(&mut j.priority, v.count(0, 7).map(small).map(Some))
    }),
    option("prioclass", &[], "I/O priority class, 0 to 3", |j, v| {
        set(&mut j.priority_class, priority_class(v))
    }),
    option("cpus_allowed", &[], "CPUs to run on", |j, v| {
        set(&mut j.cpus_allowed, structured::cpu_list(v))
    }),
    option("cpumask", &[], "CPUs to run on, as a mask", |j, v| {
        set(&mut j.cpus_allowed, structured::cpu_mask(v))
    }),
    option("cpus_allowed_policy", &[], "how instances share the CPUs", |j, v| {
        let words = [("shared", CpuPolicy::Shared), ("split", CpuPolicy::Split)];
        set(&mut j.cpus_allowed_policy, v.word(&words))
    }),
    // Report
    option("percentile_list", &[], "percentiles to print", |j, v| {
        set(&mut j.reporting.percentiles, structured::percentiles(v))
    }),
    option("clat_percentiles", &[], "percentiles of completion latency", |j, v| {
        set(&mut j.reporting.clat_percentiles, v.boolean())
    }),
    option("lat_percentiles", &[], "percentiles of total latency", |j, v| {
        set(&mut j.reporting.lat_percentiles, v.boolean())
    }),
    option("slat_percentiles", &[], "percentiles of submission latency", |j, v| {
        set(&mut j.reporting.slat_percentiles, v.boolean())
    }),
    option("disable_lat", &[], "leave out total latency", |j, v| {
        set(&mut j.reporting.disable_lat, v.boolean())
    }),
    option("disable_clat", &[], "leave out completion latency", |j, v| {
        set(&mut j.reporting.disable_clat, v.boolean())
    }),
    option("disable_slat", &[], "leave out submission latency", |j, v| {
        set(&mut j.reporting.disable_slat, v.boolean())
    }),
    option("disable_bw_measurement", &["disable_bw"], "leave out bandwidth samples", |j, v| {
        set(&mut j.reporting.disable_bw, v.boolean())
    }),
    option("write_lat_log", &[], "log latencies, in files with this prefix", |j, v| {
        set(&mut j.reporting.logging.latency, log_prefix(v))
    }),
    option("write_bw_log", &[], "log bandwidth, in files with this prefix", |j, v| {
        set(&mut j.reporting.logging.bandwidth, log_prefix(v))
    }),
    option("write_iops_log", &[], "log I/Os per second, in files with this prefix", |j, v| {
        set(&mut j.reporting.logging.iops, log_prefix(v))
    }),
    option("per_job_logs", &[], "a log for each instance", |j, v| {
        set(&mut j.reporting.logging.per_instance, v.boolean())
    }),
    option("log_avg_msec", &[], "one log entry for so many ms", |j, v| {
        set(&mut j.reporting.logging.window_ms, milliseconds(v))
    }),
    option("log_max_value", &[], "log the largest value, not the mean", |j, v| {
        set(&mut j.reporting.logging.largest, v.boolean())
    }),
    option("log_offset", &[], "log offsets", |j, v| {
        set(&mut j.reporting.logging.offset, v.boolean())
    }),
    option("log_prio", &[], "log the priority in full", |j, v| {
        set(&mut j.reporting.logging.priority, v.boolean())
    }),
    option("bwavgtime", &[], "ms between samples of bandwidth", |j, v| {
        set(&mut j.reporting.logging.bandwidth_sample_ms, milliseconds(v).map(Some))
    }),
    option("iopsavgtime", &[], "ms between samples of I/Os per second", |j, v| {
        set(&mut j.reporting.logging.iops_sample_ms, milliseconds(v).map(Some))
    }),
    option("unified_rw_reporting", &[], "sum reads, writes and trims", |j, v| {
        set(&mut j.reporting.unified, v.word(UNIFIED))
    }),
];

/// Returns a number that was checked to be at most 100.
fn small(number: u64) -> u8 {
    debug_assert!(number <= 100, "{number} is not a percentage");
    u8::try_from(number).unwrap_or(100)
}
