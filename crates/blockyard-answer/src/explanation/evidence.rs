//! The evidence of an explanation, as data.

use blockyard::trace::Hold;
use serde::{Serialize, Serializer};

use crate::drive::{BusiestDisk, WrittenFigures};
use crate::life::LifeStage;
use blockyard_devices::load::{Parts, Work};
use blockyard_sim::machine::locks::LockKind;

/// Where the difference between designs comes from; for a single design, what its bottleneck is.
///
/// The first design is compared with the one that differs from it most. The rate of I/Os is the
/// product of two factors, I/Os per command and commands per second: `factor` is the one that
/// carries the larger part of the difference. Written as text, it is the `why` of an answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Explanation {
    /// The design with fewer IOPS; of designs that do the same, the first.
    pub low: String,
    /// The design with more IOPS; null for a single design.
    pub high: Option<String>,
    /// The factor that carries the larger part of the difference.
    pub factor: Factor,
    /// IOPS of `low` relative to those of `high`; 1 for a single design.
    pub share: f64,
    /// The counters behind it, in the order in which the text cites them.
    pub evidence: Vec<Evidence>,
}

/// What makes up the difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Factor {
    /// There is only one design.
    Alone,
    /// Under one of the designs no I/O ended.
    NothingEnded,
    /// One of the runs was interrupted: nothing is compared.
    Partial,
    /// The designs do the same within 2 %.
    Equal,
    /// I/Os per command.
    Merging,
    /// Commands per second.
    CommandRate,
    /// CPU time per I/O, on persistent memory.
    CpuTime,
}

/// A figure under the two designs that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pair {
    /// Under the design with fewer IOPS.
    pub low: f64,
    /// Under the one with more.
    pub high: f64,
}

impl Pair {
    /// The figure that `of` reads from the counters of both designs.
    pub(super) fn of<T>(low: &T, high: &T, of: fn(&T) -> f64) -> Self {
        Self { low: of(low), high: of(high) }
    }
}

/// A fact behind a difference. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Evidence {
    /// The two factors of the rate of I/Os.
    Factors {
        /// I/Os for each command.
        ios_per_command: Pair,
        /// Commands per second.
        commands_per_s: Pair,
    },
    /// Where I/Os lose their chance to be merged.
    Dequeued {
        /// The share of the time before the driver in which nothing can be merged into a request.
        percent: Pair,
        /// Refusals of a full device for each I/O.
        refusals_per_io: Pair,
        /// Runs of hardware queues for each I/O.
        runs_per_io: Pair,
    },
    /// Commands at the device differ.
    AtDevice {
        /// Commands at the device, on average.
        commands: Pair,
    },
    /// The time of a command at the device differs.
    CommandTime {
        /// The mean time of a command.
        ns: Pair,
    },
    /// The time from one transfer of an MMC host to the next.
    TransferPeriod(TransferPeriod),
    /// Bus and card of two MMC hosts are idle for different times, and I/Os share transfers.
    IdleBetweenTransfers {
        /// The design with fewer IOPS, or the first of equals.
        low: IdleTime,
        /// The design that it is compared with.
        high: IdleTime,
    },
    /// The resource that limits a design.
    Bottleneck {
        /// The design.
        design: String,
        /// The disk that has this resource, if there are several disks and each has its own.
        #[serde(skip_serializing_if = "Option::is_none")]
        disk: Option<BusiestDisk>,
        /// What limits it.
        bottleneck: Bottleneck,
    },
    /// Requests spend half of their time or more at one place that is not the driver.
    LongestStage {
        /// The design.
        design: String,
        /// The mean time of a request.
        life_ns: f64,
        /// The place.
        stage: LifeStage,
        /// The mean time there.
        stage_ns: f64,
        /// The reason that makes up half of the time that hardware queues were held, if one does.
        #[serde(serialize_with = "name_of")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
        hold: Option<Hold>,
        /// The same of the design that it is compared with.
        other: Option<LongestStage>,
    },
    /// No hardware queue was ever held under any of the designs: a scheduler never had a choice.
    NeverHeld,
    /// The CPU time of an I/O on persistent memory differs.
    CpuTime {
        /// The CPU time of an I/O.
        io_ns: Pair,
        /// The parts that make up more than a tenth of the difference, largest first.
        parts: Vec<PartTime>,
    },
    /// What the CPU time of an I/O on persistent memory is spent on.
    CpuParts {
        /// The design.
        design: String,
        /// The CPU time of an I/O.
        io_ns: f64,
        /// The parts of at least 1 % with their shares, largest first.
        percent: Vec<(&'static str, f64)>,
        /// The share spent before and after the memory.
        path_percent: f64,
        /// Utilisation of the memory channels.
        channels_percent: f64,
    },
}

/// The mean time from one transfer of an MMC host to the next, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransferPeriod {
    /// The whole time.
    pub(crate) period_ns: Pair,
    /// The bus or the card is busy.
    pub(crate) work_ns: Pair,
    /// Both are idle while requests wait.
    pub(crate) idle_ns: Pair,
    /// There is no request.
    pub(crate) absent_ns: Pair,
    /// I/Os for each transfer.
    pub ios: Pair,
    /// The idle time for each I/O.
    pub(crate) idle_of_io_ns: Pair,
    /// What happens more often, or takes longer, under the design with more idle time.
    pub(crate) in_idle_time: Vec<IdlePart>,
}

/// Something in the idle time between two transfers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum IdlePart {
    /// CMD13s that ask for the card's state.
    Status {
        /// For each transfer.
        count: Pair,
    },
    /// Memory is mapped while the bus is idle.
    Map {
        /// For each transfer.
        ns: Pair,
    },
    /// Memory is unmapped while the bus is idle.
    Unmap {
        /// For each transfer.
        ns: Pair,
    },
    /// The idle bus waits for a thread of the driver to wake up.
    WakeUps {
        /// For each transfer.
        count: Pair,
    },
}

/// The idle time of an MMC host.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IdleTime {
    /// The design.
    pub design: String,
    /// Idle time between two transfers.
    pub(crate) idle_ns: f64,
    /// I/Os for each transfer.
    pub ios: f64,
    /// The idle time for each I/O.
    pub(crate) idle_of_io_ns: f64,
    /// The whole time for each I/O.
    pub io_ns: f64,
}

/// Where requests of a design spend most of their time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LongestStage {
    /// The design.
    pub design: String,
    /// The mean time of a request.
    pub life_ns: f64,
    /// The place.
    pub(crate) stage: LifeStage,
    /// The mean time there.
    pub(crate) stage_ns: f64,
}

/// A part of the CPU time of an I/O on persistent memory that is longer under one design.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartTime {
    /// The part.
    pub part: &'static str,
    /// By how much it is longer.
    pub(crate) more_ns: f64,
    /// What was counted of it for each I/O.
    pub counts: Vec<(&'static str, Pair)>,
}

/// What limits a design: the resource nearest to the device that is used up.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Bottleneck {
    /// The link to the device.
    Link {
        /// Utilisation of the link.
        percent: f64,
    },
    /// The depth of the device's queue.
    Depth {
        /// Commands at the device, on average.
        commands: f64,
        /// How many it takes.
        depth: f64,
    },
    /// A lock.
    Lock {
        /// The kind of lock for which CPUs wait most.
        lock: LockKind,
        /// The share of the time for which it is held.
        held_percent: f64,
        /// The load of the jobs' CPUs.
        cpu: CpuUse,
        /// The share of it spent waiting for locks.
        spinning_percent: f64,
    },
    /// The CPUs.
    Cpus {
        /// The load of the jobs' CPUs.
        cpu: CpuUse,
    },
    /// What takes the commands of a drive one at a time.
    Controller {
        /// What that is.
        part: FrontPart,
        /// The share of the time in which it takes commands.
        percent: f64,
    },
    /// The medium of a drive.
    Medium(MediumLimit),
    /// The memory of a card.
    CardMemory {
        /// The share of the time in which it programs pages or reads ahead.
        percent: f64,
    },
    /// The bus of an MMC host and its card.
    BusAndCard {
        /// The share of the time in which either is busy.
        percent: f64,
    },
    /// What an MMC host does between transfers.
    BetweenTransfers {
        /// The share of the time in which bus and card are idle while requests wait.
        idle_percent: f64,
    },
    /// The time that the device takes for the commands that it has at the same time.
    DeviceLatency {
        /// Commands at the device, on average.
        commands: f64,
        /// The load of the jobs' CPUs.
        cpu: CpuUse,
    },
    /// The jobs do not ask for more.
    Jobs {
        /// Commands at the device, on average.
        commands: f64,
        /// The load of the jobs' CPUs.
        cpu: CpuUse,
    },
}

/// What takes the commands of a drive one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FrontPart {
    /// The drive's controller.
    Controller,
    /// The host's thread for a virtual disk.
    VirtioThread,
    /// The bridge from USB to the drive.
    UsbBridge,
}

/// How the medium of a drive limits a design.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MediumLimit {
    /// The parts of it that are occupied most.
    pub parts: Parts,
    /// The share of the time for which they are, as a mean over them; for flash and disks with the
    /// waits of their work, for flash without what it folds in idle time.
    pub percent: f64,
    /// What takes much of their time.
    pub cause: MediumCause,
    /// The part of that share that each kind of work takes, if at least 1 %, largest first.
    pub work: Vec<(Work, f64)>,
    /// The share of the time for which writes wait for room in the medium's buffer or cache.
    pub buffer_full_percent: f64,
    /// The share of the time of commands for which they wait for dies, if there are many more
    /// commands than dies and that is most of it.
    pub queued_percent: Option<f64>,
    /// What flash writes.
    pub written: Option<WrittenFigures>,
}

/// What takes much of the time of a medium's parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MediumCause {
    /// The commands of the host.
    Commands,
    /// The cache of single-level cells is full: data bypasses it, or is folded to make room.
    FullCache,
    /// Collection moves data and erases blocks to make room.
    Collection,
}

/// The load of the CPUs that jobs run on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuUse {
    /// The load.
    pub percent: f64,
    /// The share of it spent polling, if that is much.
    pub polling_percent: Option<f64>,
}

#[expect(clippy::ref_option, reason = "serde hands over a reference to the field")]
fn name_of<S: Serializer>(hold: &Option<Hold>, serializer: S) -> Result<S::Ok, S::Error> {
    hold.map(Hold::name).serialize(serializer)
}
