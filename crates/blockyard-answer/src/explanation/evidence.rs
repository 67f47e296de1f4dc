//! The evidence of an explanation, as data.

use blockyard::trace::Hold;
use serde::{Serialize, Serializer};

use crate::life::LifeStage;
use blockyard_devices::FamilyEvidence;
use blockyard_devices::FamilyLimit;
use blockyard_devices::compare::BusiestDisk;
use blockyard_devices::compare::Pair;
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
    /// What the family of the device adds.
    #[serde(untagged)]
    Family(FamilyEvidence),
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

/// What limits a design: the resource nearest to the device that is used up.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Bottleneck {
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
    /// A part of the device or of its host.
    #[serde(untagged)]
    Family(FamilyLimit),
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
