//! Errors that prevent a simulation or end it early.

use crate::fit::Unfit;
use crate::log::LogError;
use crate::replay::ReplayError;
use crate::task::Violation;
use crate::world::{Failure, POWER_CUTS_MAX};
use blockyard::time::Instant;
use blockyard_devices::profile::Ask;
use blockyard_fio::job::{JobError, Place};
use blockyard_mmc::block::Unsupported;
use std::fmt;

/// The reason why a simulation cannot begin or ended early.
#[derive(Clone, Debug, PartialEq)]
pub enum SimulationError {
    /// The job does not fit the device.
    Job(JobError),
    /// The files of all instances together do not fit the device.
    FilesTooLarge {
        /// The job whose files begin beyond the end.
        job: String,
        /// The place of the job in its file.
        place: Place,
    },
    /// The job requires a feature that the device does not have.
    Unfit {
        /// The place in the job file.
        place: Place,
        /// The missing feature.
        unfit: Unfit,
    },
    /// The trace cannot be replayed on the device.
    Replay(ReplayError),
    /// The job requests a processor that the device's machine does not have.
    NoSuchCpu {
        /// The job.
        job: String,
        /// The requested processor.
        cpu: u16,
        /// The number of processors.
        cpus: u16,
    },
    /// The design has more hardware queues for a kind of I/O than the machine has processors.
    TooManyQueues {
        /// The design's file, or its name.
        file: String,
        /// The line.
        line: usize,
        /// The key.
        key: &'static str,
        /// The number of queues in the design.
        count: u16,
        /// The number of processors.
        cpus: u16,
    },
    /// The design has hardware queues for a kind of I/O, but an MMC host has one queue for all
    /// kinds.
    OneQueue {
        /// The design's file, or its name.
        file: String,
        /// The line.
        line: usize,
        /// The key.
        key: &'static str,
    },
    /// The design requires a feature that the MMC host or its card does not have.
    Host {
        /// The design's file, or its name.
        file: String,
        /// The line.
        line: usize,
        /// The required feature, and the values that would work.
        ask: Ask,
        /// The device.
        device: String,
        /// The reason.
        why: Unsupported,
    },
    /// The design is for an MMC host, but the device has none.
    NotMmc {
        /// The design.
        design: String,
        /// The device.
        device: String,
        /// The kind of that device, with an article.
        kind: &'static str,
    },
    /// The design has a block translation table, but the device is not persistent memory.
    NotPmem {
        /// The design.
        design: String,
        /// The device.
        device: String,
        /// The kind of that device, with an article.
        kind: &'static str,
    },
    /// The device cannot serve as the model of a served disk.
    NotServed {
        /// The device.
        device: String,
    },
    /// The design queues requests, but persistent memory takes bios without queueing them.
    Queued {
        /// The design.
        design: String,
        /// The device.
        device: String,
    },
    /// The machine does not have the processor that takes the host's interrupts.
    NoInterruptCpu {
        /// The device.
        device: String,
        /// The number of processors.
        cpus: u16,
    },
    /// A fault file has faults of a card, but the device has no card.
    CardFaults {
        /// The file.
        file: String,
        /// The device.
        device: String,
        /// The kind of the device.
        kind: &'static str,
    },
    /// A fault rule names a part that the device does not have.
    Faults {
        /// The file of rules.
        file: String,
        /// The rule.
        rule: String,
        /// The fault of the rule.
        words: String,
    },
    /// A log cannot be written.
    Log(LogError),
    /// The run failed at this virtual time.
    Failed {
        /// The job that the failure concerns, if there is one.
        job: Option<String>,
        /// The virtual time of the failure.
        at: Instant,
        /// The failure.
        failure: Failure,
        /// The fault rules that had fired.
        fired: Vec<String>,
    },
}

impl fmt::Display for SimulationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(error) => error.fmt(f),
            Self::Log(error) => error.fmt(f),
            Self::FilesTooLarge { job, place } => {
                write!(
                    f,
                    "{place}: the files of all instances up to job `{job}` do not fit the device; name one file for all of them with `filename=`, or lower `size`"
                )
            }
            Self::Unfit { place, unfit } => write!(f, "{place}: {unfit}"),
            Self::Replay(error) => error.fmt(f),
            Self::NoSuchCpu { job, cpu, cpus } => {
                write!(
                    f,
                    "job `{job}` asks for CPU {cpu}; the device's machine has CPUs 0 to {}",
                    cpus - 1
                )
            }
            Self::TooManyQueues { file, line, key, count, cpus } => write!(
                f,
                "{file}:{line}: `{key}` is `{count}`, out of range (0 to {cpus}): the device's machine has {cpus} CPUs"
            ),
            Self::OneQueue { file, line, key } => write!(
                f,
                "{file}:{line}: `{key}` does not work on eMMC and SD devices: their host has one hardware queue"
            ),
            Self::Host { file, line, ask: Ask { key, value, remedy }, device, why } => write!(
                f,
                "{file}:{line}: `{key}` is `{value}`, and on device `{device}` {why}: {remedy}"
            ),
            Self::NotMmc { design, device, kind } => {
                write!(f, "`{design}` only works on eMMC and SD devices; `{device}` is {kind}")
            }
            Self::NotPmem { design, device, kind } => {
                write!(f, "`{design}` only works on persistent memory; `{device}` is {kind}")
            }
            Self::NotServed { device } => write!(
                f,
                "a disk cannot be served as `{device}`: persistent memory has no timing apart from its CPU's"
            ),
            Self::Queued { design, device } => write!(
                f,
                "`{design}` does not work on `{device}`: persistent memory has no scheduler, no shared lock and \
                 no queues; try `pmem-raw` or `btt`"
            ),
            Self::NoInterruptCpu { device, cpus } => write!(
                f,
                "device `{device}`: `interrupt-cpu` of `[host]` is not among the machine's CPUs, 0 to {}",
                cpus - 1
            ),
            Self::CardFaults { file, device, kind } => write!(
                f,
                "{file}: `[card]` and `[host]` only work on eMMC and SD devices; `{device}` is {kind}"
            ),
            Self::Faults { file, rule, words } => write!(f, "{file}: rule `{rule}`: {words}"),
            Self::Failed { job, at, failure, fired } => {
                if let Some(job) = job {
                    write!(f, "job `{job}`, at {at} s: ")?;
                }
                write_failure(f, failure, *at, fired)
            }
        }
    }
}

/// Writes why a run failed at `at`, after the rules `fired`.
fn write_failure(
    f: &mut fmt::Formatter<'_>,
    failure: &Failure,
    at: Instant,
    fired: &[String],
) -> fmt::Result {
    match failure {
        Failure::Refused(_, why) => write!(f, "an I/O was refused: {why}"),
        Failure::Io(_, io) => {
            write!(f, "{io}")?;
            if !fired.is_empty() {
                write!(f, " (rules that had fired: {})", fired.join(", "))?;
            }
            write!(f, "; with `continue_on_error` a job continues")
        }
        Failure::Bound(_, Violation::Latency { took, most }) => write!(
            f,
            "an I/O took {} us, longer than the {} us that max_latency or latency_target allows",
            took.as_ns().div_ceil(1000),
            most.as_ns() / 1000
        ),
        Failure::Bound(_, Violation::Bandwidth { got, least }) => {
            write!(f, "{got} B/s, below rate_min={least}")
        }
        Failure::Bound(_, Violation::Iops { got, least }) => {
            write!(f, "{got} I/Os per second, below rate_iops_min={least}")
        }
        Failure::Lost(count) => write!(
            f,
            "at {at} s nothing more can happen: requests wait for completions that fault \
             rules lost ({count} in all), and whenever they time out the driver waits on; \
             `timed-out = true` in a rule makes it give up"
        ),
        Failure::PowerCuts => write!(
            f,
            "at {at} s the power would be lost for more than the {POWER_CUTS_MAX}th time: \
             choose a longer time in between"
        ),
        Failure::Trace => f.write_str("the trace cannot be read any more"),
        Failure::Endless(waits) => write!(
            f,
            "at {at} s no I/O ends any more, although the device is offered requests again and again: \
             a fault rule without an end (`busy`, `requeue`) may keep them; {waits}"
        ),
        Failure::Stuck(waits) => write!(
            f,
            "at {at} s nothing more can happen and the jobs are not done: a defect, please report \
             it with the seed; {waits}"
        ),
    }
}

impl core::error::Error for SimulationError {}

impl SimulationError {
    /// If only the design prevents the run, returns what it lacks or needs, in a few words: another
    /// design may run.
    #[must_use]
    pub fn unsuited_design(&self) -> Option<String> {
        Some(match self {
            Self::Host { why: Unsupported::NoEngine | Unsupported::NoCardQueue, .. } => {
                "needs a command queue (CQE)".to_owned()
            }
            Self::Host { why, .. } => why.to_string(),
            Self::NotMmc { .. } => "needs eMMC or SD".to_owned(),
            Self::NotPmem { .. } => "needs persistent memory".to_owned(),
            Self::Queued { .. } => "persistent memory has no queue".to_owned(),
            Self::OneQueue { key, .. } => format!("`{key}`: the host has one hardware queue"),
            Self::TooManyQueues { key, count, cpus, .. } => {
                format!("`{key} = {count}` on {cpus} CPUs")
            }
            Self::Unfit { unfit: Unfit::NoPolledQueue { .. }, .. } => {
                "`hipri` needs `poll-queues`".to_owned()
            }
            _ => return None,
        })
    }
}

impl From<JobError> for SimulationError {
    fn from(error: JobError) -> Self {
        Self::Job(error)
    }
}

impl From<LogError> for SimulationError {
    fn from(error: LogError) -> Self {
        Self::Log(error)
    }
}

impl From<ReplayError> for SimulationError {
    fn from(error: ReplayError) -> Self {
        Self::Replay(error)
    }
}
