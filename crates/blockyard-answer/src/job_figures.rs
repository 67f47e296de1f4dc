//! The figures of each job, or group of jobs that reports as one, for each direction.

use serde::{Deserialize, Serialize};

use super::buffered::CallFigures;
use super::direction::Direction;
use super::latency::Latency;
use blockyard_fio::job::Op;
use blockyard_fio::measure::{JobReport, JobStats, Measured, Syncing, per_second};
use blockyard_text::number::{approximate, ratio};

/// The figures of a job's instance, or of a group that reports as one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobFigures {
    /// The name of the job; for a group, of its first job.
    pub name: String,
    /// The reporting group, from 0.
    pub group: u32,
    /// From the start of its first instance, after start delay and ramp time, to the end of its
    /// last, in nanoseconds.
    pub runtime_ns: u64,
    /// Whether an instance ended before its ramp time was over, so that its whole run counts,
    /// warm-up included.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub ended_in_ramp: bool,
    /// CPU time of its own steps, in nanoseconds.
    pub cpu_ns: u64,
    /// Context switches to it.
    pub context_switches: u64,
    /// I/Os and syncs that failed.
    pub errors: u64,
    /// Its reads, if it reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<DirectionFigures>,
    /// Its writes, if it writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<DirectionFigures>,
    /// Its discards, if it trims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trim: Option<DirectionFigures>,
    /// Its syncs, if there were any, without bytes and with total latencies only: from before the
    /// call until the job has the result. Under `sync=` each write is a sync.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync: Option<DirectionFigures>,
    /// The time of its writes through the page cache and of its syncs, if it writes so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_ns: Option<CallFigures>,
}

/// The figures of a job's I/Os in one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DirectionFigures {
    /// I/Os that ended.
    pub ios: u64,
    /// Bytes of these I/Os.
    pub bytes: u64,
    /// I/Os per second of the job's run time.
    pub iops: f64,
    /// Bytes per second of the job's run time.
    pub bytes_per_s: u64,
    /// Submission latency: from before the system call until it returns.
    pub slat_ns: Latency,
    /// Completion latency: from then until the job has the result.
    pub clat_ns: Latency,
    /// Total latency: both together.
    pub lat_ns: Latency,
}

impl JobFigures {
    /// The figures of one direction, if the job has it.
    #[must_use]
    pub const fn direction(&self, direction: Direction) -> Option<&DirectionFigures> {
        match direction {
            Direction::Sync => self.sync.as_ref(),
            Direction::Read => self.read.as_ref(),
            Direction::Write => self.write.as_ref(),
            Direction::Trim => self.trim.as_ref(),
        }
    }

    /// The figures in `report`.
    pub(crate) fn of(report: &JobReport) -> Self {
        let stats: &JobStats = &report.stats;
        let runtime_ns = stats.runtime_ns();
        let [read, write, trim] = [Op::Read, Op::Write, Op::Trim].map(|op| {
            let measured = stats.ops.of(op).as_deref();
            measured.map(|measured| DirectionFigures::of(measured, runtime_ns))
        });
        let sync = syncs(report, write.as_ref());
        Self {
            name: report.name.clone(),
            group: report.group,
            runtime_ns,
            ended_in_ramp: stats.ended_in_ramp,
            cpu_ns: stats.cpu_ns,
            context_switches: stats.context_switches,
            errors: stats.errors,
            read,
            write,
            trim,
            sync: sync.map(|lat_ns| DirectionFigures::of_syncs(lat_ns, runtime_ns)),
            calls_ns: stats.calls.as_deref().map(CallFigures::from),
        }
    }
}

/// The latencies of the syncs of a job with the writes `write`; `None` if it does not sync.
fn syncs(report: &JobReport, write: Option<&DirectionFigures>) -> Option<Latency> {
    let calls = report.stats.sync_lat_ns.as_deref().map(Latency::from);
    match (report.syncing, calls, write) {
        (Syncing::EveryWrite, Some(calls), Some(write)) => {
            Some(Latency::together(&[&calls, &write.lat_ns]))
        }
        (_, Some(calls), _) => Some(calls),
        // Its first sync has not ended yet. A job without writes never syncs.
        (Syncing::Calls, None, Some(_)) => Some(Latency::default()),
        (Syncing::EveryWrite, None, Some(write)) => Some(write.lat_ns.clone()),
        _ => None,
    }
}

impl DirectionFigures {
    /// The figures of syncs with these latencies, of a job that ran for `runtime_ns`.
    #[expect(clippy::float_arithmetic, reason = "a rate is for reading: nothing is ordered by it")]
    fn of_syncs(lat_ns: Latency, runtime_ns: u64) -> Self {
        Self {
            ios: lat_ns.count,
            bytes: 0,
            iops: ratio(approximate(lat_ns.count) * 1e9, approximate(runtime_ns)),
            bytes_per_s: 0,
            slat_ns: Latency::default(),
            clat_ns: Latency::default(),
            lat_ns,
        }
    }

    #[expect(clippy::float_arithmetic, reason = "a rate is for reading: nothing is ordered by it")]
    fn of(measured: &Measured, runtime_ns: u64) -> Self {
        debug_assert_eq!(measured.lat_ns.count(), measured.ios, "every I/O has a latency");
        Self {
            ios: measured.ios,
            bytes: measured.bytes,
            iops: ratio(approximate(measured.ios) * 1e9, approximate(runtime_ns)),
            bytes_per_s: per_second(measured.bytes, runtime_ns),
            slat_ns: Latency::from(&measured.slat_ns),
            clat_ns: Latency::from(&measured.clat_ns),
            lat_ns: Latency::from(&measured.lat_ns),
        }
    }
}
