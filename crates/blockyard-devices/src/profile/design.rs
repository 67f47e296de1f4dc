//! Designs: named sets of policies, and the tables `[queue]` of their files.

use blockyard::elevator::IDLE_MAX;
use blockyard::policy::{
    BfqTunables, BusyTrack, DeadlineTunables, Dequeue, Dispatch, ElevatorKind, HeadLists,
    Insertion, KyberAdjust, KyberStaging, KyberTunables, Merges, Model, Plugging, Policies,
    Restart, SchedDepth, SwqMerge, TagWakes,
};
use blockyard::time::Duration;
use blockyard::unit::SECTOR_BYTES;
use blockyard_mmc::policy::HostPolicy;
use toml::de::DeValue;

use super::adios::{ADIOS, adios};
use super::host::{self, HostLines, host};
use super::linux;
use super::overrides::{Overlay, Override, variant_name};
use super::read_ahead::{PAGE_BYTES, ReadAheadPolicy, read_ahead};
use super::wbt::{WbtLatency, wbt_latency};
use super::worker::WorkerTurn;
use crate::btt::{BttDesign, btt};
use crate::reader::base::{self, Bases};
use crate::reader::builtin::{Builtin, builtins, is_path, text_of};
use crate::reader::error::{Problem, ProfileError};
use crate::reader::reading::Notes;
use crate::reader::source::Source;
use crate::reader::table::{Choices, Table};
use crate::reader::value::{Bytes, Count, Flag, Kind, OneOf, Text, Time, TimeOrNever};

/// A design: the policies by which requests are staged, merged, scheduled and dispatched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Design {
    /// The built-in name or the path by which it was asked for.
    pub name: String,
    /// A description in one line; empty if the file has none.
    pub title: String,
    /// The origin of the design; empty if the file has none.
    pub origin: String,
    /// The policies.
    pub policies: Policies,
    /// The policy of an MMC host. `None`: that of Linux without software queue, with the best way
    /// to find the end of busy that the host has.
    pub host: Option<HostPolicy>,
    /// Whether an MMC host unmaps memory after a transfer. Without that, data is not safe: it shows
    /// the cost.
    pub(crate) unmaps: bool,
    /// Whether a thread that submits to an MMC host sleeps in its driver, as since Linux 6.6.
    pub submitter_sleeps: bool,
    /// Whether the cache of an SD card is turned on, if it has one, as since Linux 5.14.
    pub sd_cache: bool,
    /// When a worker that is woken to run a hardware queue gets its processor.
    pub worker: WorkerTurn,
    /// Whether a synchronous call of a direct write with `O_SYNC` or `O_DSYNC` to a disk with a
    /// volatile cache ends with a flush, although its write is durable: `always`, as up to Linux
    /// 7.3, rather than `needed`.
    pub flushes_after_sync_writes: bool,
    /// Whether calls may be uncached (`RWF_DONTCACHE`), whose pages the flusher writes back at
    /// once, as in Linux 7.3, rather than refused.
    pub takes_uncached: bool,
    /// Whether a disk that has written back little has at least an eighth of what is left of the
    /// background limit on dirty pages, as since Linux 6.13, rather than its part by writeback.
    pub raises_background_part: bool,
    /// Requests that a run removes from an elevator under one acquisition of its lock, at most.
    pub lock_batch: u32,
    /// The lines of `[host]` in its file.
    pub(crate) host_lines: HostLines,
    /// The block translation table over persistent memory; `None`: sectors are copied in place.
    pub btt: Option<BttDesign>,
    /// Hardware queues, in place of the device's own number.
    pub hw_queues: Option<u16>,
    /// Driver tags of a hardware queue, in place of the device's own number.
    pub depth: Option<u16>,
    /// Hardware queues for reads alone: `read-queues`.
    pub read_queues: KindQueues,
    /// Hardware queues that are polled: `poll-queues`.
    pub poll_queues: KindQueues,
    /// Sectors of the largest request where the hardware allows more: `max-request`.
    pub max_request_sectors: u32,
    /// The read-ahead of buffered reads.
    pub read_ahead: ReadAheadPolicy,
    /// The target of writeback throttling: `wbt-latency`. [`pairing::policies`] makes the policy of
    /// it, for a device.
    ///
    /// [`pairing::policies`]: crate::pairing::policies
    pub wbt_latency: WbtLatency,
    /// The time after which the queue asks the driver about a request in flight; `None`: 30 s, as
    /// usual.
    pub timeout: Option<Duration>,
}

/// The number of hardware queues that only one kind of I/O uses, in addition to the queues for the
/// rest.
///
/// Linux has these numbers as parameters of drivers. Here they are keys of a design, because they
/// are a choice that `whatif` can compare with others, and not a property of a device. These queues
/// come on top of the others, as with `poll_queues` of null_blk and of NVMe over fabrics. NVMe's
/// `write_queues = W` of N is `hw-queues = W` and `read-queues = N - W` here. As in Linux, a kind
/// cannot have more queues than the machine has processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindQueues {
    /// The number; 0: the kind uses the other queues.
    pub count: u16,
    /// The line of the number in the design's file; 0 if the file has none.
    pub line: usize,
}

pub(crate) const BUILTIN: &[Builtin] = builtins!("designs":
    "legacy-deadline",
    "mq-none-2017",
    "mq-deadline-2017",
    "mq-deadline-2017-held",
    "mq-kyber-2017",
    "mq-none-2017-patched",
    "mq-deadline-2017-patched",
    "mq-none",
    "mq-none-6.12",
    "mq-deadline",
    "mq-deadline-6.12",
    "mq-deadline-batched",
    "mq-deadline-listed",
    "mq-deadline-in-turn",
    "mq-kyber",
    "mq-kyber-6.12",
    "mq-bfq",
    "mq-bfq-6.12",
    "mq-adios",
    "mq-adios-6.12",
    "mmc-pio",
    "mmc-serial",
    "mmc-serial-bounce",
    "mmc-double-buffer",
    "mmc-double-buffer-no-unmap",
    "mmc-double-buffer-full",
    "mmc-double-buffer-bounce",
    "mmc-mq-step4",
    "mmc-mq-step15",
    "mmc-mq-step16",
    "mmc-blkmq",
    "mmc-blkmq-4.16",
    "mmc-blkmq-6.12",
    "mmc-blkmq-left-open",
    "hsq-v8",
    "hsq-v8-atomic",
    "hsq-interrupt",
    "hsq",
    "hsq-6.12",
    "cqe",
    "cqe-6.12",
    "pmem-raw",
    "btt-linux-2015",
    "btt-linux-2015-counter",
    "btt-linux-2015-nt",
    "btt-linux-2015-aligned-nt",
    "btt-linux",
    "btt-linux-padded",
    "btt-indexed",
    "btt",
);

/// Short names of built-in designs, as Linux calls its schedulers and people call MMC hosts.
const SHORT_NAMES: &[(&str, &str)] = &[
    ("none", "mq-none"),
    ("none-6.12", "mq-none-6.12"),
    ("deadline", "mq-deadline"),
    ("deadline-6.12", "mq-deadline-6.12"),
    ("kyber", "mq-kyber"),
    ("kyber-6.12", "mq-kyber-6.12"),
    ("bfq", "mq-bfq"),
    ("bfq-6.12", "mq-bfq-6.12"),
    ("adios", "mq-adios"),
    ("adios-6.12", "mq-adios-6.12"),
    ("blkmq", "mmc-blkmq"),
    ("blkmq-6.12", "mmc-blkmq-6.12"),
    ("blkmq-4.16", "mmc-blkmq-4.16"),
    // Former names, of which each has the meaning that it had.
    ("mmc-blkmq-6.6", "mmc-blkmq-6.12"),
    ("mmc-blkmq-7.3", "mmc-blkmq"),
    ("serial", "mmc-serial"),
    ("pio", "mmc-pio"),
    ("double-buffer", "mmc-double-buffer"),
];

/// Returns the name of the built-in design that `name` is short for, or else `name`.
#[must_use]
pub fn canonical(name: &str) -> &str {
    SHORT_NAMES.iter().find(|(short, _)| *short == name).map_or(name, |(_, full)| full)
}

impl Override {
    /// Whether the key is one of a design: with its tables, `queue.deadline.fifo-batch`, or a name
    /// of a tunable alone. A key of `[host]` that the profiles of both have, `unmap` and
    /// `busy-detect`, is the device's.
    #[must_use]
    pub fn is_of_design(&self) -> bool {
        match self.key.split_once('.') {
            Some(("queue" | "btt" | "deadline" | "kyber" | "bfq" | "adios", _)) => true,
            Some(("host", rest)) => host::is_key_of_designs(rest),
            Some(_) => false,
            None => {
                [DEADLINE, KYBER, BFQ, ADIOS].iter().any(|keys| keys.contains(&self.key.as_str()))
            }
        }
    }
}

/// Returns the short name of the built-in design `name`, if it has one.
#[must_use]
pub fn short_name(name: &str) -> Option<&'static str> {
    SHORT_NAMES.iter().find(|(_, full)| *full == name).map(|(short, _)| *short)
}

const KEYS: &[&str] = &["title", "origin", "base", "queue", "host", "btt"];
/// The key of the hardware queues for reads.
pub(crate) const READ_QUEUES: &str = "read-queues";
/// The key of the limit of asynchronous requests, in `[queue]` and in `[queue.deadline]`.
const ASYNC_DEPTH: &str = "async-depth";
/// Scheduler tags, of which a queue has as many at most.
const ASYNC_DEPTHS: Count<u32> = Count(1..=10_240);
/// The key of the hardware queues that are polled.
pub(crate) const POLL_QUEUES: &str = "poll-queues";
pub(super) const QUEUE: &[&str] = &[
    "model",
    "hw-queues",
    "depth",
    READ_QUEUES,
    POLL_QUEUES,
    "elevator",
    "dispatch",
    "dequeue",
    "busy",
    "swq-merge",
    "plug",
    "submitter-sleeps",
    "sd-cache",
    "worker",
    "sync-flush",
    "uncached",
    "background-part",
    "sched-depth",
    "async-depth",
    "nomerges",
    "lock-batch",
    "restart",
    "wbt-latency",
    "timeout",
    "max-request",
    "read-ahead",
    "read-ahead-cap",
    "read-ahead-end",
    "read-ahead-rotational",
    "deadline",
    "kyber",
    "bfq",
    "adios",
];
pub(super) const DEADLINE: &[&str] = &[
    "read-expire",
    "write-expire",
    "writes-starved",
    "fifo-batch",
    "front-merges",
    "prio-aging-expire",
    "async-depth",
    "classes",
    "head-lists",
    "tag-wakes",
    "insertion",
];
pub(super) const KYBER: &[&str] = &[
    "read-latency",
    "write-latency",
    "read-depth",
    "write-depth",
    "discard-depth",
    "other-depth",
    "adjust",
    "staging",
];
pub(super) const BFQ: &[&str] = &[
    "slice-idle",
    "low-latency",
    "strict-guarantees",
    "merges-queues",
    "plug-stops-clock",
    "timeout-sync",
    "max-budget",
    "back-seek-max",
    "back-seek-penalty",
    "fifo-expire-sync",
    "fifo-expire-async",
];

const MODEL: &[(&str, Model)] = &[("single-lock", Model::SingleLock), ("multi", Model::Multi)];
const DISPATCH: &[(&str, Dispatch)] = &[
    ("drain-all", Dispatch::DrainAll),
    ("hold-until-flushed", Dispatch::HoldUntilFlushed),
    ("shared-list", Dispatch::SharedList),
    ("budget", Dispatch::Budget),
];
const DEQUEUE: &[(&str, Dequeue)] = &[
    ("splice-all", Dequeue::SpliceAll),
    ("round-robin", Dequeue::RoundRobin),
    ("by-busy", Dequeue::ByBusy),
];
const BUSY: &[(&str, BusyTrack)] =
    &[("off", BusyTrack::Off), ("bit", BusyTrack::Bit), ("ewma", BusyTrack::Ewma)];
const SWQ_MERGE: &[(&str, SwqMerge)] =
    &[("off", SwqMerge::Off), ("last8", SwqMerge::Last8), ("hash", SwqMerge::Hash)];
const PLUG: &[(&str, Plugging)] = &[
    ("batches", Plugging::Batches),
    ("every-bio", Plugging::EveryBio),
    ("calls", Plugging::Calls),
];
const WORKER: &[(&str, WorkerTurn)] =
    &[("at-once", WorkerTurn::AtOnce), ("by-lag", WorkerTurn::ByLag)];
const SD_CACHE: &[(&str, bool)] = &[("on", true), ("off", false)];
const SYNC_FLUSH: &[(&str, bool)] = &[("always", true), ("needed", false)];
const UNCACHED: &[(&str, bool)] = &[("refused", false), ("by-flusher", true)];
const BACKGROUND_PART: &[(&str, bool)] = &[("by-writeback", false), ("raised", true)];
const RESTART: &[(&str, Restart)] = &[("own", Restart::Own), ("in-turn", Restart::InTurn)];

const HEAD_LISTS: &[(&str, HeadLists)] =
    &[("one", HeadLists::One), ("by-class", HeadLists::ByClass)];
const TAG_WAKES: &[(&str, TagWakes)] =
    &[("batches", TagWakes::Batches), ("single", TagWakes::Single)];
const INSERTION: &[(&str, Insertion)] =
    &[("locked", Insertion::Locked), ("listed", Insertion::Listed)];
const STAGING: &[(&str, KyberStaging)] =
    &[("by-domain", KyberStaging::ByDomain), ("together", KyberStaging::Together)];
const ADJUST: &[(&str, KyberAdjust)] =
    &[("percentiles", KyberAdjust::Percentiles), ("steps", KyberAdjust::Steps)];

/// An elevator, before its tunables are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Elevator {
    None,
    Deadline,
    Kyber,
    Bfq,
    Adios,
}

const ELEVATOR: &[(&str, Elevator)] = &[
    ("none", Elevator::None),
    ("mq-deadline", Elevator::Deadline),
    ("kyber", Elevator::Kyber),
    ("bfq", Elevator::Bfq),
    ("adios", Elevator::Adios),
];

/// A number of scheduler tags, or `from-device-depth`.
struct SchedDepthKind;

impl Kind for SchedDepthKind {
    type Out = SchedDepth;
    const FIGURE: bool = true;

    fn read(&self, key: &str, value: &DeValue<'_>) -> Result<SchedDepth, Problem> {
        if value.is_str() {
            OneOf(&[("from-device-depth", SchedDepth::FromDeviceDepth)]).read(key, value)
        } else {
            Count(1..=10_240).read(key, value).map(SchedDepth::Fixed)
        }
    }
}

impl Design {
    /// Returns the design with this name, or reads it from this path. `SCHEDULER+HOST` is the
    /// scheduler of one design with the MMC host of another: `kyber+hsq`. Short names are
    /// understood: see [`canonical`].
    ///
    /// # Errors
    ///
    /// No built-in design has the name, the file cannot be read, or a line of it is wrong.
    /// [`ProfileError::NoHost`] if the second part of `SCHEDULER+HOST` has no MMC host.
    pub fn lookup(name_or_path: &str) -> Result<Self, ProfileError> {
        Self::lookup_with(name_or_path, &[])
    }

    /// Returns the design with this name, or reads it from this path; `overrides` replace values of
    /// its profile. Of `SCHEDULER+HOST`, those of `[host]` are the host's, the others the
    /// scheduler's. The name of the result has them, too: `mq-deadline fifo-batch=4`.
    ///
    /// # Errors
    ///
    /// Those of [`Self::lookup`], and [`ProfileError::Override`].
    pub fn lookup_with(name_or_path: &str, overrides: &[Override]) -> Result<Self, ProfileError> {
        if let Some((scheduler, host)) =
            name_or_path.split_once('+').filter(|_| !is_path(name_or_path))
        {
            let all = overrides.iter().cloned();
            let (of_host, of_queue): (Vec<_>, Vec<_>) =
                all.partition(|set| set.key.starts_with("host."));
            let host = Self::lookup_with(host, &of_host)?;
            let name = variant_name(name_or_path, overrides);
            return Self::lookup_with(scheduler, &of_queue)?.with_host_of(host, &name);
        }
        Self::parse_with(name_or_path, &Self::text(name_or_path)?, overrides)
    }

    /// Returns the text of the built-in design with this name, or of the file at this path.
    /// `SCHEDULER+HOST` has none.
    ///
    /// # Errors
    ///
    /// No built-in design has the name, or the file cannot be read.
    pub fn text(name_or_path: &str) -> Result<String, ProfileError> {
        text_of("design", canonical(name_or_path), BUILTIN)
    }

    /// Whether its MMC host leaves transfers open between requests.
    #[must_use]
    pub fn leaves_transfers_open(&self) -> bool {
        self.host.is_some_and(|host| host.open_limit.is_some())
    }

    /// Returns the design with the MMC host of `other`, under `name`.
    fn with_host_of(self, other: Self, name: &str) -> Result<Self, ProfileError> {
        if other.host.is_none() {
            return Err(ProfileError::NoHost { design: other.name });
        }
        let title = format!("scheduler of {}, MMC host of {}", self.name, other.name);
        Ok(Self {
            name: name.to_owned(),
            title,
            host: other.host,
            unmaps: other.unmaps,
            submitter_sleeps: other.submitter_sleeps,
            sd_cache: other.sd_cache,
            host_lines: other.host_lines,
            ..self
        })
    }

    /// Reads a design from `text`. `name` becomes its name, and the name of the file in errors.
    ///
    /// # Errors
    ///
    /// [`ProfileError::Wrong`] for the first error in the text.
    pub fn parse(name: &str, text: &str) -> Result<Self, ProfileError> {
        Self::parse_with(name, text, &[])
    }

    /// Reads a design from `text`, as [`Self::parse`]; `overrides` replace values of its profile.
    ///
    /// # Errors
    ///
    /// Those of [`Self::parse`], and [`ProfileError::Override`].
    pub fn parse_with(
        name: &str,
        text: &str,
        overrides: &[Override],
    ) -> Result<Self, ProfileError> {
        let notes = Notes::default();
        let files = Bases::of(name, text)?;
        let choices = Choices { bases: BUILTIN, processors: &[], files: &files };
        let top = Table::open(Source::new(name, text, &notes), KEYS, choices)?;
        let design = Self::read(name, &top)
            .map_err(|error| base::with_base(error, text, &[], "mq-deadline"))?;
        if overrides.is_empty() {
            return Ok(design);
        }
        let overlay = Overlay::new(overrides, KEYS, &[], &notes.keys())?;
        let notes = Notes::default();
        let top = Table::open(Source::new(name, text, &notes), KEYS, choices)?;
        let top = top.under(Source::new("", &overlay.text, &notes));
        let design = top.and_then(|top| Self::read(&variant_name(name, overrides), &top));
        design.map_err(|error| overlay.blamed("", error))
    }

    fn read(name: &str, top: &Table<'_>) -> Result<Self, ProfileError> {
        let title = top.take("title", Text)?.unwrap_or_default();
        let origin = top.take("origin", Text)?.unwrap_or_default();
        let queue = top.table("queue", QUEUE)?;
        let host = host(top)?;
        Ok(Self {
            name: name.to_owned(),
            title,
            origin,
            host: host.policy,
            unmaps: !host.keeps_mappings,
            submitter_sleeps: queue.take_or("submitter-sleeps", Flag, linux::SUBMITTER_SLEEPS)?,
            sd_cache: queue.take_or("sd-cache", OneOf(SD_CACHE), linux::SD_CACHE)?,
            worker: queue.take_or("worker", OneOf(WORKER), linux::WORKER)?,
            flushes_after_sync_writes: flushes_after_sync_writes(&queue)?,
            takes_uncached: queue.take_or("uncached", OneOf(UNCACHED), linux::TAKES_UNCACHED)?,
            raises_background_part: queue.take_or(
                "background-part",
                OneOf(BACKGROUND_PART),
                linux::RAISES_BACKGROUND_PART,
            )?,
            lock_batch: lock_batch(&queue)?,
            host_lines: host.lines,
            btt: btt(top)?,
            hw_queues: queue.take("hw-queues", Count(1..=1024))?,
            depth: queue.take("depth", Count(1..=10_240))?,
            policies: policies(&queue)?,
            read_queues: kind_queues(&queue, READ_QUEUES)?,
            poll_queues: kind_queues(&queue, POLL_QUEUES)?,
            max_request_sectors: max_request_sectors(&queue)?,
            read_ahead: read_ahead(&queue)?,
            wbt_latency: wbt_latency(&queue)?,
            timeout: timeout(&queue)?,
        })
    }
}

/// Reads `lock-batch`, which only a design whose elevator has a lock may have.
fn lock_batch(queue: &Table<'_>) -> Result<u32, ProfileError> {
    let Some(batch) = queue.take("lock-batch", Count(1..=10_240))? else {
        return Ok(linux::LOCK_BATCH);
    };
    if queue.need("model", OneOf(MODEL))? == Model::SingleLock || !elevator(queue)?.has_one_lock() {
        let words = "`lock-batch` goes only with `model = \"multi\"` and an elevator that has one lock: \
                     `mq-deadline` or `bfq`";
        return Err(queue.wrong("lock-batch", Problem::Contradiction(words)));
    }
    Ok(batch)
}

/// Reads `sync-flush`.
fn flushes_after_sync_writes(queue: &Table<'_>) -> Result<bool, ProfileError> {
    queue.take_or("sync-flush", OneOf(SYNC_FLUSH), linux::FLUSHES_AFTER_SYNC_WRITES)
}

/// Reads `timeout`, which is at least the period at which the queue looks for timeouts.
fn timeout(queue: &Table<'_>) -> Result<Option<Duration>, ProfileError> {
    let timeout = queue.take("timeout", Time)?;
    if timeout.is_some_and(|timeout| timeout < Duration::from_secs(1)) {
        let words = "`timeout` is at least 1s, the period at which the queue looks for timeouts";
        return Err(queue.wrong("timeout", Problem::Contradiction(words)));
    }
    Ok(timeout)
}

/// Reads `max-request`, in pages.
fn max_request_sectors(queue: &Table<'_>) -> Result<u32, ProfileError> {
    let default = u64::from(linux::MAX_REQUEST_SECTORS) * u64::from(SECTOR_BYTES);
    let bytes = queue.take_or("max-request", Bytes(PAGE_BYTES..=1 << 30), default)?;
    if !bytes.is_multiple_of(PAGE_BYTES) {
        let words = "`max-request` is a whole number of pages of 4KiB";
        return Err(queue.wrong("max-request", Problem::Contradiction(words)));
    }
    Ok(u32::try_from(bytes / u64::from(SECTOR_BYTES)).expect("1 GiB has 2097152 sectors"))
}

fn kind_queues(queue: &Table<'_>, key: &'static str) -> Result<KindQueues, ProfileError> {
    let Some(count) = queue.take(key, Count(0..=1024))? else { return Ok(KindQueues::default()) };
    if count > 0 && queue.need("model", OneOf(MODEL))? == Model::SingleLock {
        let words = "`read-queues` and `poll-queues` go only with `model = \"multi\"`: under the \
                     single lock there is one hardware queue";
        return Err(queue.wrong(key, Problem::Contradiction(words)));
    }
    let line = queue.line_of(key);
    debug_assert!(line > 0, "`{key}` has a value, so its file has a line for it");
    Ok(KindQueues { count, line })
}

fn policies(queue: &Table<'_>) -> Result<Policies, ProfileError> {
    let policies = Policies {
        model: queue.need("model", OneOf(MODEL))?,
        elevator: elevator(queue)?,
        dispatch: queue.need("dispatch", OneOf(DISPATCH))?,
        dequeue: queue.need("dequeue", OneOf(DEQUEUE))?,
        busy: queue.need("busy", OneOf(BUSY))?,
        swq_merge: queue.need("swq-merge", OneOf(SWQ_MERGE))?,
        plug: queue.need("plug", OneOf(PLUG))?,
        sched_depth: queue.need("sched-depth", SchedDepthKind)?,
        merges: merges(queue)?,
        restart: queue.take_or("restart", OneOf(RESTART), Restart::Own)?,
        wbt: None, // for a device only
    };
    if policies.model == Model::SingleLock && policies.dispatch != Dispatch::Budget {
        let words = "`model = \"single-lock\"` goes only with `dispatch = \"budget\"`: \
                     it takes a request only when the device has room";
        return Err(queue.wrong("dispatch", Problem::Contradiction(words)));
    }
    Ok(policies)
}

/// Reads `nomerges`, of which Linux has 0, 1 and 2.
fn merges(queue: &Table<'_>) -> Result<Merges, ProfileError> {
    Ok(match queue.take_or("nomerges", Count(0..=2), 0_u8)? {
        0 => Merges::All,
        1 => Merges::Last,
        _ => Merges::Off,
    })
}

fn elevator(queue: &Table<'_>) -> Result<ElevatorKind, ProfileError> {
    let elevator = queue.need("elevator", OneOf(ELEVATOR))?;
    if elevator != Elevator::Deadline && queue.has("deadline") {
        let words = "`[queue.deadline]` goes only with `elevator = \"mq-deadline\"`";
        return Err(queue.wrong("deadline", Problem::Contradiction(words)));
    }
    if elevator != Elevator::Kyber && queue.has("kyber") {
        let words = "`[queue.kyber]` goes only with `elevator = \"kyber\"`";
        return Err(queue.wrong("kyber", Problem::Contradiction(words)));
    }
    if elevator != Elevator::Bfq && queue.has("bfq") {
        let words = "`[queue.bfq]` goes only with `elevator = \"bfq\"`";
        return Err(queue.wrong("bfq", Problem::Contradiction(words)));
    }
    if elevator != Elevator::Adios && queue.has("adios") {
        let words = "`[queue.adios]` goes only with `elevator = \"adios\"`";
        return Err(queue.wrong("adios", Problem::Contradiction(words)));
    }
    let async_depth = async_depth(queue, elevator)?;
    Ok(match elevator {
        Elevator::None => ElevatorKind::None,
        Elevator::Deadline => {
            let own = deadline(&queue.table("queue.deadline", DEADLINE)?)?;
            ElevatorKind::Deadline(DeadlineTunables { async_depth, ..own })
        }
        Elevator::Kyber => {
            let own = kyber(&queue.table("queue.kyber", KYBER)?)?;
            ElevatorKind::Kyber(KyberTunables { async_depth, ..own })
        }
        Elevator::Bfq => {
            let own = bfq(&queue.table("queue.bfq", BFQ)?)?;
            ElevatorKind::Bfq(BfqTunables { async_depth, ..own })
        }
        Elevator::Adios => ElevatorKind::Adios(adios(&queue.table("queue.adios", ADIOS)?)?),
    })
}

/// Reads the limit of asynchronous requests, which a file states for the queue (Linux since 7.0) or
/// for mq-deadline (before). The nearest file that states it decides: over a base with 12 for the
/// queue, `[queue.deadline]` with 9 makes it 9.
fn async_depth(queue: &Table<'_>, elevator: Elevator) -> Result<Option<u32>, ProfileError> {
    let deadline = queue.table("queue.deadline", DEADLINE)?;
    for (queue, deadline) in queue.files().zip(deadline.files()) {
        let of_queue = queue.own(ASYNC_DEPTH, ASYNC_DEPTHS)?;
        if of_queue.is_some() && elevator == Elevator::None {
            let words = "`async-depth` goes only with an elevator: it limits its tags";
            return Err(queue.wrong(ASYNC_DEPTH, Problem::Contradiction(words)));
        }
        if of_queue.is_some() && elevator == Elevator::Adios {
            let words = "`async-depth` does not go with `elevator = \"adios\"`, which leaves all tags to every request";
            return Err(queue.wrong(ASYNC_DEPTH, Problem::Contradiction(words)));
        }
        let of_deadline = match elevator {
            Elevator::Deadline => deadline.own(ASYNC_DEPTH, ASYNC_DEPTHS)?,
            Elevator::None | Elevator::Kyber | Elevator::Bfq | Elevator::Adios => None,
        };
        if of_queue.is_some() && of_deadline.is_some() {
            let words = "`async-depth` stands in `[queue]` or in `[queue.deadline]`: both are the same limit";
            return Err(queue.wrong(ASYNC_DEPTH, Problem::Contradiction(words)));
        }
        // A file that takes the elevator away takes the limit of its base away, too.
        let is_taken_away = elevator == Elevator::None && queue.has("elevator");
        if is_taken_away || of_queue.is_some() || of_deadline.is_some() {
            return Ok(of_queue.or(of_deadline));
        }
    }
    Ok(None)
}

/// Reads the tunables of mq-deadline. Missing keys have Linux's defaults.
fn deadline(table: &Table<'_>) -> Result<DeadlineTunables, ProfileError> {
    let linux = DeadlineTunables::default();
    Ok(DeadlineTunables {
        read_expire: table.take_or("read-expire", Time, linux.read_expire)?,
        write_expire: table.take_or("write-expire", Time, linux.write_expire)?,
        writes_starved: table.take_or(
            "writes-starved",
            Count(0..=u32::MAX),
            linux.writes_starved,
        )?,
        fifo_batch: table.take_or("fifo-batch", Count(0..=u32::MAX), linux.fifo_batch)?,
        front_merges: table.take_or("front-merges", Flag, linux.front_merges)?,
        prio_aging_expire: table.take_or(
            "prio-aging-expire",
            TimeOrNever,
            linux.prio_aging_expire,
        )?,
        async_depth: linux.async_depth,
        classes: table.take_or("classes", Flag, linux.classes)?,
        heads: table.take_or("head-lists", OneOf(HEAD_LISTS), linux.heads)?,
        tag_wakes: table.take_or("tag-wakes", OneOf(TAG_WAKES), linux.tag_wakes)?,
        insertion: table.take_or("insertion", OneOf(INSERTION), linux.insertion)?,
    })
}

/// The depths of kyber's domains that a profile may have.
const KYBER_DEPTH: Count<u32> = Count(1..=10_240);

/// Reads the tunables of kyber. Missing keys have the defaults of Linux since 4.20.
fn kyber(table: &Table<'_>) -> Result<KyberTunables, ProfileError> {
    let linux = KyberTunables::default();
    let adjust = table.take_or("adjust", OneOf(ADJUST), linux.adjust)?;
    if adjust == KyberAdjust::Steps && table.has("discard-depth") {
        let words = "`discard-depth` goes only with `adjust = \"percentiles\"`: with steps \
                     discards are among the others";
        return Err(table.wrong("discard-depth", Problem::Contradiction(words)));
    }
    Ok(KyberTunables {
        read_latency: table.take_or("read-latency", Time, linux.read_latency)?,
        write_latency: table.take_or("write-latency", Time, linux.write_latency)?,
        read_depth: table.take_or("read-depth", KYBER_DEPTH, linux.read_depth)?,
        write_depth: table.take_or("write-depth", KYBER_DEPTH, linux.write_depth)?,
        discard_depth: table.take_or("discard-depth", KYBER_DEPTH, linux.discard_depth)?,
        other_depth: table.take_or("other-depth", KYBER_DEPTH, linux.other_depth)?,
        adjust,
        staging: table.take_or("staging", OneOf(STAGING), linux.staging)?,
        async_depth: linux.async_depth,
    })
}

/// Reads the tunables of bfq. Missing keys have Linux's defaults.
fn bfq(table: &Table<'_>) -> Result<BfqTunables, ProfileError> {
    let linux = BfqTunables::default();
    let strict_guarantees = table.take_or("strict-guarantees", Flag, linux.strict_guarantees)?;
    let slice_idle = table.take_or("slice-idle", Time, linux.slice_idle)?;
    if slice_idle > IDLE_MAX {
        let words = "`slice-idle` is at most 100ms, the longest time for which an elevator may hold the device";
        return Err(table.wrong("slice-idle", Problem::Contradiction(words)));
    }
    if strict_guarantees && slice_idle < linux.slice_idle {
        let words = "`strict-guarantees` goes only with a `slice-idle` of at least 8ms, to which Linux raises it";
        return Err(table.wrong("slice-idle", Problem::Contradiction(words)));
    }
    let timeout_sync = table.take_or("timeout-sync", Time, linux.timeout_sync)?;
    if timeout_sync < Duration::from_ms(1) {
        let words = "`timeout-sync` is at least 1ms";
        return Err(table.wrong("timeout-sync", Problem::Contradiction(words)));
    }
    let most = i32::MAX.unsigned_abs();
    Ok(BfqTunables {
        slice_idle,
        low_latency: table.take_or("low-latency", Flag, linux.low_latency)?,
        strict_guarantees,
        timeout_sync,
        max_budget: table.take_or("max-budget", Count(0..=most), linux.max_budget)?,
        back_seek_max: table.take_or("back-seek-max", Count(0..=most), linux.back_seek_max)?,
        back_seek_penalty: table.take_or(
            "back-seek-penalty",
            Count(1..=most),
            linux.back_seek_penalty,
        )?,
        fifo_expire_sync: table.take_or("fifo-expire-sync", Time, linux.fifo_expire_sync)?,
        fifo_expire_async: table.take_or("fifo-expire-async", Time, linux.fifo_expire_async)?,
        async_depth: linux.async_depth,
        merges_queues: table.take_or("merges-queues", Flag, linux.merges_queues)?,
        plug_stops_clock: table.take_or("plug-stops-clock", Flag, linux.plug_stops_clock)?,
    })
}
