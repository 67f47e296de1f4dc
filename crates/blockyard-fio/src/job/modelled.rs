//! The options that change a job.

use super::blocks::{BlockSizes, set_length, set_ranges};
use super::engines;
use super::error::ValueFault;
use super::limits::{BLOCK_BYTES_MAX, DEPTH_MAX, FILES_MAX};
use super::logging::LogPrefix;
use super::model::{
    ContinueOnError, CpuPolicy, ExitWhat, FadviseHint, Fallocate, RandomGenerator, RateProcess,
    Sequencer, SyncMode, ThinktimeBlocks, UnifiedReporting,
};
use super::op::PerOp;
use super::option::{Effect, OptionDef};
use super::priority;
use super::structured;
use super::targets;
use super::value::{Parsed, TimeUnit, Value};

/// Defines options, each as `NAME | ALIAS, PURPOSE: HOW FIELD = READER;`.
macro_rules! modelled_options {
    ($($name:literal $(| $alias:literal)*, $doc:literal: $how:ident $($field:ident).+ = $read:expr;)*) => {
        pub(super) static OPTIONS: &[OptionDef] = &[$(OptionDef {
            name: $name,
            aliases: &[$($alias),*],
            doc: $doc,
            effect: Effect::Modelled,
            apply: |job, value| $how(&mut job.$($field).+, value, $read),
        }),*];
    };
}

fn set<'a, T>(
    field: &mut T,
    value: Value<'a>,
    read: impl FnOnce(Value<'a>) -> Parsed<T>,
) -> Parsed<()> {
    *field = read(value)?;
    Ok(())
}

/// Sets a field for reads, writes and trims.
fn set_per_op<T: Clone>(
    field: &mut PerOp<T>,
    value: Value<'_>,
    read: impl Fn(Value<'_>) -> Parsed<T>,
) -> Parsed<()> {
    value.per_op(field, &[','], read)
}

/// The greatest weight in a flow, as in fio.
const FLOW_WEIGHT_MAX: u32 = 1000;

/// The limit on numbers in a job, so that their products fit 64 bits.
const COUNT_MAX: u64 = 1 << 48;

const SYNC_MODES: &[(&str, SyncMode)] = &[
    ("none", SyncMode::None),
    ("0", SyncMode::None),
    ("sync", SyncMode::Sync),
    ("1", SyncMode::Sync),
    ("dsync", SyncMode::Dsync),
];

const FALLOCATE: &[(&str, Fallocate)] = &[
    ("none", Fallocate::None),
    ("0", Fallocate::None),
    ("native", Fallocate::Whole),
    ("posix", Fallocate::Whole),
    ("1", Fallocate::Whole),
    ("keep", Fallocate::Keep),
    ("truncate", Fallocate::Truncate),
];

const CONTINUE: &[(&str, ContinueOnError)] = &[
    ("none", ContinueOnError { reads: false, writes: false }),
    ("0", ContinueOnError { reads: false, writes: false }),
    ("read", ContinueOnError { reads: true, writes: false }),
    ("write", ContinueOnError { reads: false, writes: true }),
    ("io", ContinueOnError { reads: true, writes: true }),
    ("verify", ContinueOnError { reads: false, writes: false }), // jobs do not verify data
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

const SEQUENCERS: &[(&str, Sequencer)] =
    &[("sequential", Sequencer::Sequential), ("identical", Sequencer::Identical)];

const PROCESSES: &[(&str, RateProcess)] =
    &[("linear", RateProcess::Linear), ("poisson", RateProcess::Poisson)];

const THINKTIME: &[(&str, ThinktimeBlocks)] =
    &[("complete", ThinktimeBlocks::Complete), ("issue", ThinktimeBlocks::Issue)];

const EXIT_WHAT: &[(&str, ExitWhat)] =
    &[("group", ExitWhat::Group), ("stonewall", ExitWhat::Running), ("all", ExitWhat::All)];

const SUBMIT_MODES: &[(&str, bool)] = &[("inline", false), ("offload", true)];

/// The zones of `zonemode` that are an order of I/O; `zbd` needs a zoned device.
const ZONE_MODES: &[(&str, Option<bool>)] =
    &[("none", Some(false)), ("strided", Some(true)), ("zbd", None)];

const CPU_POLICIES: &[(&str, CpuPolicy)] =
    &[("shared", CpuPolicy::Shared), ("split", CpuPolicy::Split)];

/// Adds files to those that the job has, as fio does.
fn add_files(
    field: &mut Vec<String>,
    value: Value<'_>,
    read: impl FnOnce(Value<'_>) -> Parsed<Vec<String>>,
) -> Parsed<()> {
    let added = read(value)?;
    if field.len() + added.len() > usize::from(FILES_MAX) {
        return Err(ValueFault::TooMany { max: FILES_MAX.into() });
    }
    field.extend(added);
    Ok(())
}

/// As in fio, `exitall` is set whatever its value.
fn exit_all(value: Value<'_>) -> Parsed<bool> {
    value.flag().map(|_| true)
}

/// Reads a pause. fio has 32 bits for its microseconds, and drops the others: of `2h` it makes 2905
/// seconds.
fn pause_ns(value: Value<'_>, unit: TimeUnit) -> Parsed<u64> {
    const PAUSE_NS_MAX: u64 = u32::MAX as u64 * 1000;
    let ns = value.time_ns(unit)?;
    if ns > PAUSE_NS_MAX {
        let text = value.text()?.to_owned();
        let reason =
            "fio has 32 bits for a pause in us, so that 4294s are the longest; it drops the others";
        return Err(ValueFault::NotModelled { text, reason });
    }
    Ok(ns)
}

fn owned(value: Value<'_>) -> Parsed<String> {
    value.free_text().map(str::to_owned)
}

/// Reads the prefix of a log. An option without a value means the name of the job.
fn log_prefix(value: Value<'_>) -> Parsed<Option<LogPrefix>> {
    if value.text.is_none() {
        return Ok(Some(LogPrefix::JobName));
    }
    owned(value).map(LogPrefix::Given).map(Some)
}

fn milliseconds(value: Value<'_>) -> Parsed<u64> {
    value.count(0, u32::MAX.into())
}

/// Whether the data is checked; the method does not matter, because every write has its own mark.
fn verified(value: Value<'_>) -> Parsed<bool> {
    Ok(!matches!(value.text()?, "0" | "none"))
}

fn strided(value: Value<'_>) -> Parsed<bool> {
    let text = value.text()?.to_owned();
    let reason = "zoned devices are not modelled";
    value.word(ZONE_MODES)?.ok_or(ValueFault::NotModelled { text, reason })
}

/// Returns whether writes are durable by themselves.
fn fua(value: Value<'_>) -> Parsed<SyncMode> {
    value.boolean().map(|on| if on { SyncMode::Dsync } else { SyncMode::None })
}

fn steady_interval(value: Value<'_>) -> Parsed<u64> {
    match value.time_ns(TimeUnit::Second)? {
        ns if ns < 1_000_000_000 => Err(ValueFault::Incomplete("at least a second")),
        ns => Ok(ns),
    }
}

fn flow_weight(value: Value<'_>) -> Parsed<u32> {
    let text = value.text()?;
    if text.starts_with('-') {
        let reason = "in old versions of fio a negative flow was the other side of a positive one; write \
                      the share of each job in the I/Os of both, from 1 to 1000: flow=1 and flow=4";
        return Err(ValueFault::NotModelled { text: text.to_owned(), reason });
    }
    value.count_u32(0, FLOW_WEIGHT_MAX)
}

fn block_bytes(value: Value<'_>) -> Parsed<u32> {
    value.count_u32(1, BLOCK_BYTES_MAX)
}

modelled_options! {
    // Identity
    "name", "name of the job": set name = owned;
    "description", "free text": set description = |v| owned(v).map(Some);
    "stonewall" | "wait_for_previous", "start when all earlier jobs have ended": set stonewall = Value::flag;
    "new_group", "start a reporting group": set new_group = Value::flag;
    "group_reporting", "report a group as one": set group_reporting = Value::flag;
    "exitall", "end other jobs when any job ends": set exitall = exit_all;
    "exit_what", "the jobs that end with this one: group, stonewall (those that run) or all":
        set exit_what = |v| v.word(EXIT_WHAT);
    "continue_on_error", "count I/O errors and continue": set continue_on_error = |v| v.word(CONTINUE);
    "numjobs", "instances of this job": set numjobs = |v| v.count_u32(1, u32::MAX);
    "thread", "threads, not processes": set thread = Value::flag;
    "kb_base", "what k means: 1024 or 1000":
        set kb_base = |v| v.word(&[("1024", 1024), ("1000", 1000)]);
    // Submission
    "ioengine", "how I/O is issued": set engine_name = engines::name;
    "io_submit_mode", "who submits: the job (inline) or other threads (offload)":
        set offload = |v| v.word(SUBMIT_MODES);
    "hipri", "poll for completions of reads and writes": set hipri = Value::flag;
    "uncached", "pages leave the page cache once they are on the disk or read":
        set uncached = Value::boolean;
    "iodepth", "I/Os in flight": set iodepth = |v| v.count_u32(1, DEPTH_MAX);
    "iodepth_batch" | "iodepth_batch_submit", "I/Os submitted at a time":
        set iodepth_batch_submit = |v| v.count_u32(0, DEPTH_MAX);
    "iodepth_batch_complete_min" | "iodepth_batch_complete",
        "completions to wait for; 0 without a maximum: one after each I/O":
        set iodepth_batch_complete_min = |v| v.count_u32(0, DEPTH_MAX);
    "iodepth_batch_complete_max", "completions to reap in one call":
        set iodepth_batch_complete_max = |v| v.count_u32(0, DEPTH_MAX).map(Some);
    "iodepth_low", "depth at which to refill":
        set iodepth_low = |v| v.count_u32(0, DEPTH_MAX).map(Some);
    "direct",
        "bypass the page cache (see `help jobs`)":
        set direct = Value::boolean;
    "buffered", "the opposite of direct": set direct = |v| v.boolean().map(|buffered| !buffered);
    "invalidate", "drop cached pages before the job begins": set invalidate = Value::boolean;
    "pre_read", "read the files before the job begins": set pre_read = Value::boolean;
    "fadvise_hint", "tell the page cache the order of reads":
        set fadvise_hint = |v| v.word(FADVISE);
    // Kind of I/O
    "rw" | "readwrite", "reads, writes, trims; in order or random":
        set pattern = structured::pattern;
    "rw_sequencer", "what follows a random offset": set sequencer = |v| v.word(SEQUENCERS);
    "rwmixread", "percent of reads": set rwmix_read_percent = |v| v.count(0, 100).map(small);
    "rwmixwrite", "percent of writes":
        set rwmix_read_percent = |v| v.count(0, 100).map(|percent| 100 - small(percent));
    "bs" | "blocksize", "bytes per I/O, without bsrange and bssplit":
        set_length block = |v| block_bytes(v).map(BlockSizes::Fixed);
    "bsrange" | "blocksize_range", "range of bytes per I/O":
        set_ranges block = structured::block_range;
    "bssplit", "bytes per I/O, by percentage": set_per_op block = structured::block_split;
    "bs_unaligned" | "blocksize_unaligned", "any length in bsrange":
        set block_unaligned = Value::flag;
    "ba" | "blockalign", "alignment of random offsets":
        set_per_op block_align_bytes = |v| v.count(1, COUNT_MAX).map(Some);
    "random_distribution", "where random offsets fall": set distribution = structured::distribution;
    "random_sequence_stride", "each turn of a sequence begins where the last one ended":
        set sequence_strides = Value::boolean;
    "random_generator", "how offsets are drawn": set random_generator = |v| v.word(GENERATORS);
    "norandommap", "random blocks may repeat": set norandommap = Value::flag;
    "percentage_random", "percent of offsets that are random":
        set_per_op percentage_random = |v| v.count(0, 100).map(small);
    "randrepeat", "same offsets in every run": set randrepeat = Value::boolean;
    "allrandrepeat", "same draws in every run": set allrandrepeat = Value::boolean;
    "randseed", "seed of the draws": set randseed = |v| v.count(0, u64::MAX).map(Some);
    // Region and amount
    "filename", "files or devices, separated by colons; adds to those of [global]": add_files filenames = structured::filenames;
    "directory", "prefix of the files": set directory = |v| owned(v).map(Some);
    "overwrite", "the files exist with data before the job begins, on a file system":
        set overwrite = Value::boolean;
    "fallocate", "how space is reserved for the files, on a file system":
        set fallocate = |v| v.word(FALLOCATE);
    "filename_format", "names of the files; files with the same name are one":
        set filename_format = |v| owned(v).map(Some);
    "fill_device" | "fill_fs", "cover the device to its end, if there is no size":
        set fill_device = Value::boolean;
    "zonemode", "strided: zones with gaps between them": set strides.on = strided;
    "zonesize", "bytes of I/O in each zone": set strides.zone_bytes = |v| v.count(0, COUNT_MAX);
    "zonerange", "bytes of each zone": set strides.range_bytes = |v| v.count(0, COUNT_MAX);
    "zoneskip", "bytes between two zones": set strides.gap_bytes = |v| v.count(0, COUNT_MAX);
    "nrfiles" | "nr_files", "files per instance":
        set nrfiles = |v| v.count(1, 4096).map(|n| u16::try_from(n).unwrap_or(u16::MAX));
    "file_service_type", "order of the files": set file_service = structured::file_service;
    "openfiles", "files that are open at the same time, and so take turns; 0 for all":
        set open_files = |v| v.count(0, 1 << 32).map(|n| u16::try_from(n).unwrap_or(u16::MAX));
    "size", "bytes over all files, or percent of the device": set size = |v| v.amount().map(Some);
    "filesize", "bytes of each file; size then limits what is moved": set filesize_bytes = |v| structured::file_size(v).map(Some);
    "io_size" | "io_limit", "bytes to transfer, or percent of size":
        set io_size = |v| v.amount().map(Some);
    "offset" | "fileoffset", "start of the region": set offset = Value::amount;
    "offset_increment", "added to the offset for each instance": set offset_increment = Value::amount;
    "offset_align", "alignment of an offset in percent":
        set offset_align_bytes = |v| v.count(0, COUNT_MAX);
    "number_ios", "maximum number of I/Os":
        set number_ios = |v| v.count(0, COUNT_MAX).map(|n| (n > 0).then_some(n));
    "loops", "passes over the region": set loops = |v| v.count(0, COUNT_MAX);
    // Duration
    "runtime" | "timeout", "time after which the job ends (s)":
        set runtime_ns = |v| v.time_ns(TimeUnit::Second).map(|ns| (ns > 0).then_some(ns));
    "time_based", "start over until runtime": set time_based = Value::flag;
    "ramp_time", "warm-up before measuring (s)": set ramp_time_ns = |v| v.time_ns(TimeUnit::Second);
    "startdelay", "wait before starting (s), or a range":
        set startdelay_ns = structured::start_delay;
    // Durability
    "fsync", "writes between syncs": set fsync = |v| v.count_u32(0, u32::MAX);
    "fdatasync", "writes between data syncs": set fdatasync = |v| v.count_u32(0, u32::MAX);
    "sync_file_range", "writes between calls of sync_file_range, after its steps: write:8":
        set sync_file_range = structured::range_sync;
    "end_fsync", "sync when done": set end_fsync = Value::boolean;
    "fsync_on_close", "sync each file when it is closed": set fsync_on_close = Value::boolean;
    "end_syncfs", "sync the file system when done": set end_syncfs = Value::boolean;
    "sync", "durable writes: none, sync, dsync": set sync = |v| v.word(SYNC_MODES);
    "writefua", "writes that are durable by themselves": set sync = fua;
    "verify", "check what reads return and what is on the device at the end": set verify = verified;
    // Pace
    "rate", "bytes per second": set_per_op rate_bytes_per_s = |v| v.count(0, COUNT_MAX);
    "rate_iops", "I/Os per second": set_per_op rate_iops = |v| v.count(0, u32::MAX.into());
    "rate_min" | "ratemin", "least bytes per second; below it the run ends":
        set_per_op targets.bounds.bytes_per_s_min = |v| v.count(0, COUNT_MAX);
    "rate_iops_min", "least I/Os per second; below it the run ends":
        set_per_op targets.bounds.ios_per_s_min = |v| v.count(0, u32::MAX.into());
    "rate_cycle" | "ratecycle", "time over which the least rate is judged (ms)":
        set targets.bounds.cycle_ns = |v| milliseconds(v).map(|ms| ms * 1_000_000);
    "max_latency", "longest latency; above it the run ends (us)":
        set_per_op targets.bounds.latency_max_ns = |v| v.time_ns(TimeUnit::Microsecond);
    "latency_target", "find the greatest depth that keeps this latency (us)":
        set targets.latency.target_ns = |v| v.time_ns(TimeUnit::Microsecond);
    "latency_window", "time at each depth (us)":
        set targets.latency.window_ns = |v| v.time_ns(TimeUnit::Microsecond);
    "latency_percentile", "percent of the I/Os that must meet latency_target":
        set targets.latency.share = targets::share;
    "latency_run", "continue at the depth that was found": set targets.latency.goes_on = Value::flag;
    "steadystate" | "ss", "end when IOPS, bandwidth or latency are steady":
        set targets.steady.criterion = targets::steady;
    "steadystate_duration" | "ss_dur", "time over which they must be steady (s)":
        set targets.steady.window_ns = |v| v.time_ns(TimeUnit::Second);
    "steadystate_ramp_time" | "ss_ramp", "time before the first sample (s)":
        set targets.steady.ramp_ns = |v| v.time_ns(TimeUnit::Second);
    "steadystate_check_interval" | "ss_interval", "time between samples (s)":
        set targets.steady.interval_ns = steady_interval;
    "rate_process", "spacing of I/Os under a rate": set rate_process = |v| v.word(PROCESSES);
    "rate_ignore_thinktime", "do not catch up after thinking":
        set rate_ignore_thinktime = Value::boolean;
    "flow", "share of this job in the I/Os of its flow, as a weight; 0: in no flow":
        set flow.weight = flow_weight;
    "flow_id", "number of the flow": set flow.id = |v| v.count_u32(0, u32::MAX);
    "flow_sleep", "pause of a job that is ahead of its share (us)":
        set flow.pause_ns = |v| v.time_ns(TimeUnit::Microsecond);
    "thinktime", "pause between I/Os (us)": set thinktime_ns = |v| pause_ns(v, TimeUnit::Microsecond);
    "thinktime_spin", "part of the pause that burns CPU (us)":
        set thinktime_spin_ns = |v| pause_ns(v, TimeUnit::Microsecond);
    "thinktime_blocks", "I/Os between pauses": set thinktime_blocks = |v| v.count_u32(1, u32::MAX);
    "thinktime_blocks_type", "what thinktime_blocks counts":
        set thinktime_blocks_type = |v| v.word(THINKTIME);
    "thinktime_iotime", "time between pauses (s)":
        set thinktime_iotime_ns = |v| pause_ns(v, TimeUnit::Second);
    // Priority and CPUs
    "prio", "I/O priority, 0 first": set priority = |v| priority::level(v).map(Some);
    "prioclass", "I/O priority class, 0 to 3": set priority_class = priority::class;
    "cmdprio_percentage", "percent of the I/Os with a priority of their own":
        set_per_op command_priority.percent = |v| v.count(0, 100).map(small);
    "cmdprio_class", "class of these I/Os": set_per_op command_priority.class = priority::class;
    "cmdprio", "level of these I/Os": set_per_op command_priority.level = priority::level;
    "cmdprio_bssplit", "priorities by length and percentage":
        set_per_op command_priority.shares = priority::shares;
    "cgroup", "control group": set cgroup = |v| owned(v).map(Some);
    "cgroup_weight", "weight of the control group, 100 to 1000":
        set cgroup_weight = |v| v.count_u32(100, 1000).map(Some);
    "cpus_allowed", "CPUs to run on": set cpus_allowed = structured::cpu_list;
    "cpumask", "CPUs to run on, as a mask": set cpus_allowed = structured::cpu_mask;
    "cpus_allowed_policy", "how instances share the CPUs":
        set cpus_allowed_policy = |v| v.word(CPU_POLICIES);
    // Report
    "percentile_list", "percentiles to print": set reporting.percentiles = structured::percentiles;
    "clat_percentiles", "percentiles of completion latency":
        set reporting.clat_percentiles = Value::boolean;
    "lat_percentiles", "percentiles of total latency":
        set reporting.lat_percentiles = Value::boolean;
    "slat_percentiles", "percentiles of submission latency":
        set reporting.slat_percentiles = Value::boolean;
    "disable_lat", "leave out total latency": set reporting.disable_lat = Value::boolean;
    "disable_clat", "leave out completion latency": set reporting.disable_clat = Value::boolean;
    "disable_slat", "leave out submission latency": set reporting.disable_slat = Value::boolean;
    "disable_bw_measurement" | "disable_bw", "leave out bandwidth samples":
        set reporting.disable_bw = Value::boolean;
    "write_lat_log", "log latencies, in files with this prefix":
        set reporting.logging.latency = log_prefix;
    "write_bw_log", "log bandwidth, in files with this prefix":
        set reporting.logging.bandwidth = log_prefix;
    "write_iops_log", "log I/Os per second, in files with this prefix":
        set reporting.logging.iops = log_prefix;
    "per_job_logs", "a log for each instance": set reporting.logging.per_instance = Value::boolean;
    "log_avg_msec", "one log entry for so many ms":
        set reporting.logging.window_ms = milliseconds;
    "log_max_value", "log the largest value, not the mean":
        set reporting.logging.largest = Value::boolean;
    "log_offset", "log offsets": set reporting.logging.offset = Value::boolean;
    "log_prio", "log the priority in full": set reporting.logging.priority = Value::boolean;
    "bwavgtime", "ms between samples of bandwidth":
        set reporting.logging.bandwidth_sample_ms = |v| milliseconds(v).map(Some);
    "iopsavgtime", "ms between samples of I/Os per second":
        set reporting.logging.iops_sample_ms = |v| milliseconds(v).map(Some);
    "unified_rw_reporting", "sum reads, writes and trims":
        set reporting.unified = |v| v.word(UNIFIED);
}

/// Returns a number that was checked to be at most 100.
fn small(number: u64) -> u8 {
    debug_assert!(number <= 100, "{number} is not a percentage");
    u8::try_from(number).unwrap_or(100)
}
