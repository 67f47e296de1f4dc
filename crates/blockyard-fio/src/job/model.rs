//! Jobs: all modelled options, with their types and units.

use std::collections::BTreeMap;

use super::blocks::BlockSizes;
use super::error::Place;
use super::logging::Logging;
use super::op::{Op, PerOp};
use super::priority::{CommandPriority, PriorityClass};
use super::targets::Targets;
use super::value::Amount;

/// The I/O engine. It decides whether [`Job::iodepth`] counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// `read`, `write` after `lseek`.
    Sync,
    /// `pread`, `pwrite`. fio's default on Linux.
    Psync,
    /// `readv`, `writev`: fio joins neighbouring I/Os; modelled as one I/O per call.
    Vsync,
    /// `preadv`, `pwritev`.
    Pvsync,
    /// `preadv2`, `pwritev2`.
    Pvsync2,
    /// Linux native asynchronous I/O.
    Libaio,
    /// `io_uring`.
    IoUring,
}

impl Engine {
    /// Every engine and its name in a job file.
    pub const ALL: &'static [(&'static str, Self)] = &[
        ("sync", Self::Sync),
        ("psync", Self::Psync),
        ("vsync", Self::Vsync),
        ("pvsync", Self::Pvsync),
        ("pvsync2", Self::Pvsync2),
        ("libaio", Self::Libaio),
        ("io_uring", Self::IoUring),
    ];

    /// Whether more than one I/O can be in flight.
    pub const fn is_async(self) -> bool {
        matches!(self, Self::Libaio | Self::IoUring)
    }

    /// Returns the name in a job file.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, engine)| *engine == self).map_or("", |(name, _)| name)
    }
}

/// The kinds of I/O that a job mixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Reads only.
    Read,
    /// Writes only.
    Write,
    /// Trims only.
    Trim,
    /// Reads and writes, in the proportion of `Job::rwmix_read_percent`.
    ReadWrite,
    /// Trims each block, then writes it.
    TrimWrite,
}

impl Mix {
    /// Returns the kinds of I/O in the mix.
    pub const fn ops(self) -> &'static [Op] {
        match self {
            Self::Read => &[Op::Read],
            Self::Write => &[Op::Write],
            Self::Trim => &[Op::Trim],
            Self::ReadWrite => &[Op::Read, Op::Write],
            Self::TrimWrite => &[Op::Trim, Op::Write],
        }
    }
}

/// Option `rw`: the kinds of I/O, and the order of their offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Reads, writes, trims or a mix.
    pub mix: Mix,
    /// Whether offsets are random rather than sequential.
    pub random: bool,
    /// I/Os per random offset (`randread:8`); 1 if not given. See [`Job::sequencer`].
    pub(crate) ios_per_offset: u32,
    /// Bytes skipped after each sequential I/O (`read:4k`), backwards if negative (`read:-8k`); 0
    /// if not given.
    pub skip_bytes: i64,
}

/// The way in which further I/Os use one random offset (`rw_sequencer`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sequencer {
    /// Further I/Os continue after the offset.
    Sequential,
    /// Further I/Os use the same offset.
    Identical,
}

/// The distribution of random offsets.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// All blocks are equally likely. Each occurs once in a pass, unless `Job::norandommap` is
    /// set.
    Uniform,
    /// The block of rank r has weight r to the power of -theta.
    Zipf {
        /// Above 0 and not 1.
        theta: f64,
        /// The place of the hottest block, 0 to 1 of the region; `None`: the seed decides. The
        /// others are scattered.
        center: Option<f64>,
    },
    /// Pareto (self-similar) with power h.
    Pareto {
        /// Between 0 and 1.
        h: f64,
        /// As for `Zipf`.
        center: Option<f64>,
    },
    /// fio's: the mean of twelve uniform ranks, plus a uniform deviation, scattered over the
    /// region.
    Normal {
        /// The width of the deviation in percent of the region, 0 to below 100.
        deviation_percent: f64,
        /// The place of the first rank, plus a half; 0.5 if not given.
        center: f64,
    },
    /// Consecutive zones, each with a uniform distribution: shares of the accesses (sum 100) and
    /// widths in percent of the region (sum at most 100).
    Zoned(Vec<Zone>),
    /// The same with widths in bytes.
    ZonedAbs(Vec<Zone>),
    /// These blocks, over and over.
    Sequence(Vec<u64>),
}

impl Distribution {
    /// Whether some blocks are far likelier than others, by a law rather than by zones.
    pub(crate) const fn is_skewed(&self) -> bool {
        matches!(self, Self::Zipf { .. } | Self::Pareto { .. } | Self::Normal { .. })
    }
}

/// One zone of a zoned distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Percent of the accesses that fall here.
    pub(crate) access_percent: u8,
    /// Width: percent of the region, or bytes.
    pub width: u64,
}

/// The generator of uniform offsets. The first and the last are the same in Blockyard: see
/// [`workload`](crate::workload).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RandomGenerator {
    /// fio's default.
    Tausworthe,
    /// Linear feedback shift register: an order of all blocks without a map.
    Lfsr,
    /// 64 bits wide.
    Tausworthe64,
}

/// The spacing of I/Os under a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateProcess {
    /// Even spacing.
    Linear,
    /// Exponentially distributed gaps.
    Poisson,
}

/// The events that [`Job::thinktime_blocks`] counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThinktimeBlocks {
    /// Completed I/Os.
    Complete,
    /// Issued I/Os.
    Issue,
}

/// Whether each write is durable before it completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncMode {
    /// No.
    None,
    /// `O_SYNC`: data and metadata.
    Sync,
    /// `O_DSYNC`: data.
    Dsync,
}

/// `sync_file_range`: the writes between two calls, and the steps of each call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RangeSync {
    /// Writes between two calls; 0, the default, means no calls.
    pub every: u32,
    /// Whether a call first waits for the writeback that is under way; default false.
    pub wait_before: bool,
    /// Whether it begins to write dirty pages back; default false.
    pub write: bool,
    /// Whether it then waits for writeback; default false.
    pub wait_after: bool,
}

/// The space that fio reserves for a file that it creates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallocate {
    /// None: the file is empty, and grows.
    None,
    /// All of its blocks, as part of its length (`fallocate` or `posix_fallocate`).
    Whole,
    /// All of its blocks, but the file is empty, and grows (`FALLOC_FL_KEEP_SIZE`).
    Keep,
    /// None, but the file has its length (`ftruncate`).
    Truncate,
}

/// The assignment of [`Job::cpus_allowed`] to instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuPolicy {
    /// Each instance may use all of them.
    Shared,
    /// Each instance gets one of them, round robin.
    Split,
}

/// `zonemode=strided`: I/O covers `zone_bytes` of a zone, and goes on in the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strides {
    /// Whether there are zones; default false.
    pub on: bool,
    /// Bytes of I/O in each zone; default 0, which means no zones.
    pub(crate) zone_bytes: u64,
    /// The length of a zone; 0, the default, means `zone_bytes`.
    pub(crate) range_bytes: u64,
    /// The gap after a zone; default 0.
    pub(crate) gap_bytes: u64,
}

/// A job's share in the I/Os of a flow: jobs with the same number take turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// The weight of each instance, up to 1000; 0, the default, means that the job is in no flow.
    pub weight: u32,
    /// The number of the flow; default 0.
    pub id: u32,
    /// The sleep of an instance that is ahead of its share, after its I/Os in flight have ended,
    /// ns; 0, the default, means until it has a turn.
    pub pause_ns: u64,
}

/// The jobs that `exitall` ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExitWhat {
    /// Those of the same reporting group.
    #[default]
    Group,
    /// Those that run.
    Running,
    /// Those that run, and those that have not begun.
    All,
}

/// The choice of the file of the next I/O.
#[derive(Clone, Debug, PartialEq)]
pub enum FileService {
    /// Files take turns, with this many I/Os each.
    RoundRobin(u32),
    /// Files are drawn at random, for this many I/Os each.
    Random(u32),
    /// Each file is used to its end before the next.
    Sequential,
    /// Files are drawn from this distribution (zipf, pareto or normal), and begin anew at their
    /// end.
    Skewed(Distribution),
}

/// The advice of a job to the page cache about its reads (`fadvise_hint`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FadviseHint {
    /// None.
    None,
    /// `rw` says whether reads are in order or at random.
    Pattern,
    /// Reads are in order.
    Sequential,
    /// Reads are at random.
    Random,
}

/// The kinds of I/O after whose errors a job continues. Any other error ends the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContinueOnError {
    /// Continue after errors of reads.
    pub reads: bool,
    /// Continue after errors of writes, trims and syncs.
    pub writes: bool,
}

/// The way in which the report combines reads, writes and trims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnifiedReporting {
    /// Each kind by itself.
    None,
    /// All kinds together.
    Mixed,
    /// Each kind by itself, and all kinds together.
    Both,
}

/// The parts of a report that a job requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Reporting {
    /// Percentiles to print, each 0 to 100, at most 20. Default as fio: 1 to 99.99.
    pub(crate) percentiles: Vec<f64>,
    /// Percentiles of completion latency; default true.
    pub(crate) clat_percentiles: bool,
    /// Percentiles of total latency; default false.
    pub(crate) lat_percentiles: bool,
    /// Percentiles of submission latency; default false.
    pub(crate) slat_percentiles: bool,
    /// Leave out total latency; default false.
    pub(crate) disable_lat: bool,
    /// Leave out completion latency; default false.
    pub(crate) disable_clat: bool,
    /// Leave out submission latency; default false.
    pub(crate) disable_slat: bool,
    /// Leave out bandwidth samples; default false.
    pub(crate) disable_bw: bool,
    /// Default `None`.
    pub(crate) unified: UnifiedReporting,
    /// Logs and samples over time.
    pub logging: Logging,
}

/// The line at which each option was last set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Places(pub(super) BTreeMap<&'static str, SetAt>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SetAt {
    pub(super) place: Place,
    /// Whether the job itself set the option, rather than a `[global]` section before the job.
    pub(super) own: bool,
    /// The value, with variables replaced; empty for an option without one.
    pub(super) text: String,
}

/// One section of a job file: `numjobs` instances of the same work.
///
/// Defaults are fio's. Sizes are bytes and times nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Name of the section, or option `name`.
    pub name: String,
    /// Free text.
    pub(crate) description: Option<String>,
    /// Line of the section header, or argument `--name`.
    pub place: Place,
    /// Reporting group, from 0. A new one starts at `stonewall` and at `new_group`.
    pub group: u32,
    /// Wait until all earlier jobs have ended; default false.
    pub stonewall: bool,
    /// Start a new reporting group; default false.
    pub(crate) new_group: bool,
    /// Report the instances of a group as one; default false.
    pub group_reporting: bool,
    /// End other jobs when an instance of this one ends; default false. As in fio, all jobs of a
    /// file do if one of them says so.
    pub exitall: bool,
    /// The jobs that end with an instance of this one; default [`ExitWhat::Group`].
    pub exit_what: ExitWhat,
    /// Default: none.
    pub continue_on_error: ContinueOnError,
    /// Instances, 1 to [`INSTANCES_MAX`](super::INSTANCES_MAX); default 1.
    pub numjobs: u32,
    /// Instances of the jobs before this one in the file: instance i of this job is number
    /// `first_instance + i` of all.
    pub first_instance: u32,
    /// Threads rather than processes; default false. Both cost the same here.
    pub thread: bool,

    /// The engine that the job runs as; default [`Engine::Psync`].
    pub engine: Engine,
    /// The name of the engine as written; default `psync`.
    pub(crate) engine_name: &'static str,
    /// Other threads submit the I/O (`io_submit_mode=offload`), so that the job's own need not wait
    /// for I/O before it pauses; default false.
    pub offload: bool,
    /// Poll for completions; `io_uring` and `pvsync2` only; default false.
    pub hipri: bool,
    /// Pages that a write brings into the page cache are written back at once, and leave the cache
    /// then, and those that a read brings there leave when they have been read (`RWF_DONTCACHE`);
    /// `io_uring` and `pvsync2` only; default false.
    pub uncached: bool,
    /// Maximum number of I/Os in flight, as written; default 1. See [`Job::depth`].
    pub iodepth: u32,
    /// I/Os submitted at a time; 0 means `iodepth`; default 1.
    pub iodepth_batch_submit: u32,
    /// Minimum number of completions to reap at a time; 0 means poll, see `Job::waits_for_each`;
    /// default 1.
    pub iodepth_batch_complete_min: u32,
    /// Maximum number of completions to reap at a time; `None` means the minimum.
    pub iodepth_batch_complete_max: Option<u32>,
    /// Depth to drain to before refilling; `None` or 0 means `iodepth`, which keeps the queue full.
    pub iodepth_low: Option<u32>,

    /// Default sequential reads.
    pub pattern: Pattern,
    /// Default [`Sequencer::Sequential`].
    pub(crate) sequencer: Sequencer,
    /// Percent of reads in a mix; default 50.
    pub(crate) rwmix_read_percent: u8,
    /// Default 4096 bytes.
    pub block: PerOp<BlockSizes>,
    /// Any length in a range, not only multiples of the smallest; default false.
    pub block_unaligned: bool,
    /// Alignment of random offsets, bytes; `None` means the shortest block. Another one disables
    /// the map.
    pub block_align_bytes: PerOp<Option<u64>>,
    /// Default [`Distribution::Uniform`].
    pub(crate) distribution: Distribution,
    /// Each turn of [`Distribution::Sequence`] begins as many blocks further as the sequence has;
    /// default false.
    pub(crate) sequence_strides: bool,
    /// Default [`RandomGenerator::Tausworthe`].
    pub(crate) random_generator: RandomGenerator,
    /// Random blocks may repeat within a pass; default false.
    pub(crate) norandommap: bool,
    /// Percent of a random pattern's offsets that are random; the others continue. Default 100.
    pub(crate) percentage_random: PerOp<u8>,
    /// Same offsets in every run; default true.
    pub(crate) randrepeat: bool,
    /// Same draws of all other values in every run; default false.
    pub(crate) allrandrepeat: bool,
    /// Seed of the job; `None` means fio's default.
    pub(crate) randseed: Option<u64>,

    /// Named files; empty means that each instance has its own files.
    pub filenames: Vec<String>,
    /// Prefix of the files.
    pub directory: Option<String>,
    /// The names of the files if none is named, with `$jobname`, `$jobnum`, `$filenum` and
    /// `$clientuid`; files with the same name are one. Default: each instance has its own files.
    pub filename_format: Option<String>,
    /// The job covers its files to the end of the device if it has no `size`; default false.
    pub(crate) fill_device: bool,
    /// Zones with gaps between them, which a job covers one after another.
    pub(crate) strides: Strides,
    /// Number of files if no file is named; default 1.
    pub(crate) nrfiles: u16,
    /// Default: round robin, one I/O each.
    pub(crate) file_service: FileService,
    /// Number of files that are open at once, so that they take turns; 0, the default, means all.
    pub(crate) open_files: u16,
    /// Bytes over all files, or percent of each device; `None` means the device.
    pub size: Option<Amount>,
    /// Bytes of each file. `size` then says only how much is moved, as `io_size` does.
    pub(crate) filesize_bytes: Option<u64>,
    /// Bytes to transfer, or percent of `size`; `None` means `size`.
    pub(crate) io_size: Option<Amount>,
    /// Start of the region in each file, in bytes or percent of the device; default 0.
    pub offset: Amount,
    /// Increment of the offset per instance, in bytes or percent of the device; default 0.
    pub(crate) offset_increment: Amount,
    /// Whether the files have their data before the job begins; default false. Only a file system
    /// makes a difference, as of [`Self::fallocate`].
    pub overwrite: bool,
    /// The space reserved for the files of a job that only writes; default [`Fallocate::Whole`].
    pub fallocate: Fallocate,
    /// Offsets given in percent are rounded up to a multiple of this many bytes; 0 means the
    /// shortest block.
    pub(crate) offset_align_bytes: u64,
    /// Maximum number of I/Os of an instance per loop; `None` means no limit. As in fio, the
    /// count begins anew after [`Self::ramp_time_ns`].
    pub number_ios: Option<u64>,
    /// Passes over the region; default 1; 0 counts as 1.
    pub loops: u64,

    /// Time after which an instance ends, ns; `None` means no limit.
    pub runtime_ns: Option<u64>,
    /// Whether passes repeat until `runtime_ns`; default false.
    pub time_based: bool,
    /// Time before measurement begins, ns; default 0.
    pub ramp_time_ns: u64,
    /// Delay before the start, ns, drawn between minimum and maximum; default 0 to 0.
    pub startdelay_ns: (u64, u64),

    /// Writes between syncs; 0, the default, means no syncs.
    pub fsync: u32,
    /// Writes between data syncs; 0, the default, means no data syncs.
    pub(crate) fdatasync: u32,
    /// Writes between calls of `sync_file_range`, and the steps of each; default none.
    pub sync_file_range: RangeSync,
    /// Whether the job ends with a sync; default false.
    pub(crate) end_fsync: bool,
    /// Whether each file is synced when it is closed; default false.
    pub(crate) fsync_on_close: bool,
    /// Whether the job ends with `syncfs` instead; default false.
    pub(crate) end_syncfs: bool,
    /// Default [`SyncMode::None`].
    pub sync: SyncMode,

    /// Maximum bytes per second; 0 means no limit; default 0.
    pub rate_bytes_per_s: PerOp<u64>,
    /// Maximum I/Os per second; 0 means no limit; default 0. With a `bsrange` they are counted as
    /// bytes of the shortest one, as in fio.
    pub rate_iops: PerOp<u64>,
    /// Default [`RateProcess::Linear`].
    pub(crate) rate_process: RateProcess,
    /// Whether a late job does not make up for its pauses; default false.
    pub rate_ignore_thinktime: bool,
    /// Pause, ns; default 0.
    pub thinktime_ns: u64,
    /// Part of the pause that keeps the CPU busy, ns; default 0.
    pub thinktime_spin_ns: u64,
    /// I/Os between pauses; default 1.
    pub thinktime_blocks: u32,
    /// Default [`ThinktimeBlocks::Complete`].
    pub thinktime_blocks_type: ThinktimeBlocks,
    /// Time between pauses, ns; 0 means by blocks only; default 0.
    pub thinktime_iotime_ns: u64,
    /// Default: in no flow.
    pub flow: Flow,
    /// I/O priority within the class, 0 (first) to 7; `None` means not set.
    pub priority: Option<u8>,
    /// Default [`PriorityClass::None`].
    pub priority_class: PriorityClass,
    /// The priorities of single I/Os.
    pub command_priority: CommandPriority,
    /// The name of the control group that the job is in; `None`: the root.
    pub cgroup: Option<String>,
    /// The weight that the job gives its control group, 100 to 1000; `None`: none.
    pub cgroup_weight: Option<u32>,
    /// The number of its control group: see [`Cgroup::number`](super::Cgroup::number).
    pub cgroup_number: u32,
    /// CPUs to run on, in ascending order; empty means all.
    pub cpus_allowed: Vec<u16>,
    /// Default [`CpuPolicy::Shared`].
    pub cpus_allowed_policy: CpuPolicy,
    /// What the job measures itself against.
    pub targets: Targets,
    /// Whether the data is checked (`verify`); default false.
    pub verify: bool,

    /// The contents of the report.
    pub reporting: Reporting,

    /// `O_DIRECT`; default false. A job without it goes through the page cache, and is refused with
    /// `io_uring`, and with trims.
    pub direct: bool,
    /// Drop the files' pages from the page cache when an instance begins; default true.
    pub invalidate: bool,
    /// Read the files before the job begins; default false. A job with `direct` does not.
    pub pre_read: bool,
    /// Default [`FadviseHint::Pattern`].
    pub fadvise_hint: FadviseHint,
    /// The meaning of `k` in values of this job.
    pub(super) kb_base: u16,
    pub(super) places: Places,
}

impl Job {
    /// Returns a job with fio's defaults and no option set.
    pub(super) fn new(name: &str, place: Place) -> Self {
        Self {
            name: name.to_owned(),
            description: None,
            place,
            group: 0,
            stonewall: false,
            new_group: false,
            group_reporting: false,
            exitall: false,
            exit_what: ExitWhat::default(),
            continue_on_error: ContinueOnError::default(),
            numjobs: 1,
            first_instance: 0,
            thread: false,
            engine: Engine::Psync,
            engine_name: "psync",
            offload: false,
            hipri: false,
            uncached: false,
            iodepth: 1,
            iodepth_batch_submit: 1,
            iodepth_batch_complete_min: 1,
            iodepth_batch_complete_max: None,
            iodepth_low: None,
            pattern: Pattern { mix: Mix::Read, random: false, ios_per_offset: 1, skip_bytes: 0 },
            sequencer: Sequencer::Sequential,
            rwmix_read_percent: 50,
            block: PerOp::all(BlockSizes::Fixed(4096)),
            block_unaligned: false,
            block_align_bytes: PerOp::all(None),
            distribution: Distribution::Uniform,
            sequence_strides: false,
            random_generator: RandomGenerator::Tausworthe,
            norandommap: false,
            percentage_random: PerOp::all(100),
            randrepeat: true,
            allrandrepeat: false,
            randseed: None,
            filenames: Vec::new(),
            directory: None,
            filename_format: None,
            fill_device: false,
            strides: Strides::default(),
            nrfiles: 1,
            file_service: FileService::RoundRobin(1),
            open_files: 0,
            size: None,
            filesize_bytes: None,
            io_size: None,
            offset: Amount::Bytes(0),
            offset_increment: Amount::Bytes(0),
            overwrite: false,
            fallocate: Fallocate::Whole,
            offset_align_bytes: 0,
            number_ios: None,
            loops: 1,
            runtime_ns: None,
            time_based: false,
            ramp_time_ns: 0,
            startdelay_ns: (0, 0),
            fsync: 0,
            fdatasync: 0,
            sync_file_range: RangeSync::default(),
            end_fsync: false,
            fsync_on_close: false,
            end_syncfs: false,
            sync: SyncMode::None,
            rate_bytes_per_s: PerOp::all(0),
            rate_iops: PerOp::all(0),
            rate_process: RateProcess::Linear,
            rate_ignore_thinktime: false,
            thinktime_ns: 0,
            thinktime_spin_ns: 0,
            thinktime_blocks: 1,
            thinktime_blocks_type: ThinktimeBlocks::Complete,
            thinktime_iotime_ns: 0,
            flow: Flow::default(),
            priority: None,
            priority_class: PriorityClass::None,
            command_priority: CommandPriority::default(),
            cgroup: None,
            cgroup_weight: None,
            cgroup_number: 0,
            cpus_allowed: Vec::new(),
            cpus_allowed_policy: CpuPolicy::Shared,
            targets: Targets::default(),
            verify: false,
            reporting: Reporting::default(),
            direct: false,
            invalidate: true,
            pre_read: false,
            fadvise_hint: FadviseHint::Pattern,
            kb_base: 1024,
            places: Places::default(),
        }
    }

    /// Whether `option` was set, be it to its default.
    pub fn is_set(&self, option: &str) -> bool {
        self.places.0.contains_key(option)
    }

    /// Returns the line at which `option` was set, or the line of the section header if it was not
    /// set.
    pub fn place_of(&self, option: &str) -> &Place {
        self.places.0.get(option).map_or(&self.place, |set| &set.place)
    }

    /// Returns the one of `options` that was set last, with its value as written; the first one if
    /// none was set.
    pub fn last_written(&self, options: &[&'static str]) -> (&'static str, &str) {
        let set = options.iter().filter_map(|option| Some((*option, self.places.0.get(option)?)));
        let last = set.max_by_key(|(_, set)| set.place.line);
        last.map_or((options[0], ""), |(option, set)| (option, &set.text))
    }

    /// Returns the options that were set, in order of their names, each with its value as written
    /// and whether the job itself set it, rather than a `[global]` section.
    pub fn written(&self) -> impl Iterator<Item = (&'static str, &str, bool)> {
        self.places.0.iter().map(|(option, set)| (*option, set.text.as_str(), set.own))
    }

    /// Whether the job both reads and writes: neither is all of its mix.
    pub fn reads_and_writes(&self) -> bool {
        self.pattern.mix == Mix::ReadWrite && matches!(self.rwmix_read_percent, 1..100)
    }

    /// Whether both jobs request the same I/O, regardless of the lines of their options.
    pub fn same_request(&self, other: &Self) -> bool {
        let elsewhere =
            Self { place: other.place.clone(), places: other.places.clone(), ..self.clone() };
        elsewhere == *other
    }

    /// Returns the maximum number of I/Os in flight: `iodepth`, or 1 for a synchronous engine and
    /// for a job that polls.
    pub const fn depth(&self) -> u32 {
        debug_assert!(self.iodepth > 0, "the parser refuses iodepth=0");
        if self.engine.is_async() && !self.waits_for_each() { self.iodepth } else { 1 }
    }

    /// Whether the job waits for a completion after each I/O, whatever its depth: in fio,
    /// `iodepth_batch_complete_min=0` without a maximum means that.
    pub(crate) const fn waits_for_each(&self) -> bool {
        self.iodepth_batch_complete_min == 0
            && matches!(self.iodepth_batch_complete_max, None | Some(0))
    }

    /// Whether the job has calls that sync, if it writes.
    pub(crate) const fn calls_syncs(&self) -> bool {
        self.fsync > 0
            || self.fdatasync > 0
            || self.sync_file_range.every > 0
            || self.syncs_at_end()
    }

    /// Whether the job syncs its files at its end. In fio, a sync when a file is closed follows
    /// none that was just done, and `syncfs` takes the place of both.
    pub(crate) const fn syncs_at_end(&self) -> bool {
        (self.end_fsync || self.fsync_on_close) && !self.end_syncfs
    }

    /// Whether the job maps its files into memory, rather than calling for each I/O.
    pub fn is_mapped(&self) -> bool {
        self.engine_name == "mmap"
    }

    /// Returns the number of files of an instance.
    pub fn files(&self) -> usize {
        debug_assert!(self.nrfiles > 0, "the parser refuses nrfiles=0");
        self.filenames.len().max(usize::from(self.nrfiles) * usize::from(self.filenames.is_empty()))
    }

    /// Returns the bytes of the shortest I/O among the kinds of I/O that the job does.
    pub(crate) fn min_block_bytes(&self) -> u32 {
        let ops = self.pattern.mix.ops().iter();
        ops.map(|op| self.block.of(*op).min_bytes()).min().unwrap_or(0)
    }
}

impl Default for Reporting {
    fn default() -> Self {
        Self {
            percentiles: vec![
                1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5,
                99.9, 99.95, 99.99,
            ],
            clat_percentiles: true,
            lat_percentiles: false,
            slat_percentiles: false,
            disable_lat: false,
            disable_clat: false,
            disable_slat: false,
            disable_bw: false,
            unified: UnifiedReporting::None,
            logging: Logging::default(),
        }
    }
}
