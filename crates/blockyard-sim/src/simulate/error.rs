//! Errors that prevent a simulation or end it early.

use crate::fit::Unfit;
use crate::replay::ReplayError;
use crate::task::Violation;
use crate::world::{Failure, POWER_CUTS_MAX};
use blockyard::time::Instant;
use blockyard_devices::pairing::Unsuited;
use blockyard_fio::job::{JobError, Place};
use blockyard_fio::output::log::LogError;
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
    /// The design and the device do not suit each other.
    Unsuited(Unsuited),
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
            Self::Unsuited(error) => error.fmt(f),
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
        Failure::TimeIsOver => write!(
            f,
            "at {at} s jobs wait for an instant beyond the end of virtual time, which has 584 years: \
             their pauses (thinktime), start delays or gaps by a rate are too long"
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
        match self {
            Self::Unsuited(unsuited) => unsuited.unsuited_design(),
            Self::Unfit { unfit: Unfit::NoPolledQueue { .. }, .. } => {
                Some("`hipri` needs `poll-queues`".to_owned())
            }
            _ => None,
        }
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

impl From<Unsuited> for SimulationError {
    fn from(error: Unsuited) -> Self {
        Self::Unsuited(error)
    }
}
