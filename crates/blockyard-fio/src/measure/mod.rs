//! Measurements of jobs: counts, latencies and samples for each kind of I/O, depths, syncs.
//!
//! They are the figures that fio prints. [`output`](crate::output) has its layouts.

pub mod call_time;
pub mod depth;
pub mod meter;
pub mod sampler;
pub mod spent;
pub mod steady;

use crate::job::{Job, Op, PerOp, Priority, SyncMode};
use blockyard::stats::Histogram;
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};
use call_time::CallTimes;
use depth::Depths;
use sampler::Samples;
use spent::Spent;
use std::collections::BTreeMap;
use steady::SteadyWatch;

/// Latencies and amounts of one kind of I/O.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// I/Os that completed.
    pub ios: u64,
    /// Bytes of these I/Os.
    pub bytes: u64,
    /// Submission latency in nanoseconds: from before the system call to its return.
    pub slat_ns: Histogram,
    /// Completion latency in nanoseconds: from the return of the call until the job has the result.
    pub clat_ns: Histogram,
    /// Total latency in nanoseconds: the sum of both, and of the time by which an I/O of a trace
    /// was issued later than due.
    pub lat_ns: Histogram,
    /// The latencies of a job whose I/Os differ in priority, by priority in Linux's encoding;
    /// otherwise empty.
    pub by_priority: BTreeMap<u16, Latencies>,
    /// Samples of the bandwidth over time in KiB per second, of each instance that has any.
    pub bandwidth: Vec<Samples>,
    /// Samples of the I/Os per second, of each instance that has any.
    pub iops: Vec<Samples>,
}

/// Latencies in nanoseconds of a part of the I/Os.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    /// Completion latency.
    pub clat_ns: Histogram,
    /// Total latency.
    pub lat_ns: Histogram,
}

impl Measured {
    /// Records `times` I/Os like `taken`.
    #[inline]
    pub fn record(&mut self, taken: &Taken, times: u64) {
        self.ios += times;
        self.bytes += u64::from(taken.len_bytes) * times;
        self.slat_ns.record_times(taken.slat.as_ns(), times);
        self.clat_ns.record_times(taken.clat.as_ns(), times);
        self.lat_ns.record_times(taken.lat().as_ns(), times);
    }

    /// Adds what `other` counted. The samples over time stay as they are.
    pub(crate) fn add(&mut self, other: &Self) {
        self.ios += other.ios;
        self.bytes += other.bytes;
        self.slat_ns.merge(&other.slat_ns);
        self.clat_ns.merge(&other.clat_ns);
        self.lat_ns.merge(&other.lat_ns);
        for (priority, latencies) in &other.by_priority {
            let mine = self.by_priority.entry(*priority).or_default();
            mine.clat_ns.merge(&latencies.clat_ns);
            mine.lat_ns.merge(&latencies.lat_ns);
        }
    }
}

/// The measurements of one instance, or of a group that reports as one.
#[derive(Clone, Debug)]
pub struct JobStats {
    /// For each kind of I/O; `None` for the kinds that the job does not do.
    pub ops: PerOp<Option<Box<Measured>>>,
    /// The start of the first instance, after its start delay and ramp time.
    pub started: Instant,
    /// The end of the last instance.
    pub ended: Instant,
    /// Whether an instance ended before its ramp time was over, so that its whole run counts.
    pub ended_in_ramp: bool,
    /// Processor time of the instances' own steps, in nanoseconds.
    pub cpu_ns: u64,
    /// The time of the instances, by use.
    pub spent: Spent,
    /// Context switches to the instances.
    pub context_switches: u64,
    /// The depths of the instances.
    pub depths: Depths,
    /// Latency of syncs in nanoseconds, from before the call until the job has the result; `None`
    /// if there were none.
    pub sync_lat_ns: Option<Box<Histogram>>,
    /// The times of writes through the page cache, and of syncs of a job that writes so; `None` if
    /// there were none.
    pub calls: Option<Box<CallTimes>>,
    /// I/Os and syncs that failed.
    pub errors: u64,
    /// The status of the first failure.
    pub first_error: Option<Status>,
    /// The watch for a steady state, if the job looks for one.
    pub steady: Option<Box<SteadyWatch>>,
    /// The depth that keeps the latency that the job asks for, if it searches for one.
    pub depth_found: Option<u32>,
}

impl JobStats {
    /// Starts without measurements, for the kinds in `ops`.
    #[must_use]
    pub fn new(ops: &[Op]) -> Self {
        Self {
            ops: PerOp {
                read: ops.contains(&Op::Read).then(Box::default),
                write: ops.contains(&Op::Write).then(Box::default),
                trim: ops.contains(&Op::Trim).then(Box::default),
            },
            started: Instant::MAX,
            ended: Instant::ZERO,
            ended_in_ramp: false,
            cpu_ns: 0,
            spent: Spent::default(),
            context_switches: 0,
            depths: Depths::default(),
            sync_lat_ns: None,
            calls: None,
            errors: 0,
            first_error: None,
            steady: None,
            depth_found: None,
        }
    }

    /// Begins anew at `now`, for the same kinds.
    pub fn begin_anew(&mut self, now: Instant) {
        let kinds = [Op::Read, Op::Write, Op::Trim];
        let kinds: Vec<_> = kinds.into_iter().filter(|op| self.ops.of(*op).is_some()).collect();
        *self = Self { started: now, steady: self.steady.take(), ..Self::new(&kinds) };
    }

    /// Adds what `other` counted, which is of the same kinds. The samples over time stay as they
    /// are.
    pub fn add(&mut self, other: &Self) {
        for op in Op::ALL {
            if let (Some(mine), Some(others)) = (self.op_mut(op), other.ops.of(op)) {
                mine.add(others);
            }
        }
        self.cpu_ns += other.cpu_ns;
        self.spent.add(&other.spent);
        self.context_switches += other.context_switches;
        self.depths.add(&other.depths);
        if let Some(syncs) = &other.sync_lat_ns {
            self.sync_lat_ns.get_or_insert_default().merge(syncs);
        }
        if let Some(calls) = &other.calls {
            self.calls.get_or_insert_default().add(calls);
        }
        self.errors += other.errors;
        self.first_error = self.first_error.or(other.first_error);
    }

    /// Adds the kinds in `ops`.
    pub fn add_kinds(&mut self, ops: &[Op]) {
        for (op, slot) in [
            (Op::Read, &mut self.ops.read),
            (Op::Write, &mut self.ops.write),
            (Op::Trim, &mut self.ops.trim),
        ] {
            if ops.contains(&op) && slot.is_none() {
                *slot = Some(Box::default());
            }
        }
    }

    /// Returns the measurements of `op`.
    pub fn op_mut(&mut self, op: Op) -> Option<&mut Measured> {
        match op {
            Op::Read => self.ops.read.as_deref_mut(),
            Op::Write => self.ops.write.as_deref_mut(),
            Op::Trim => self.ops.trim.as_deref_mut(),
        }
    }

    /// Returns the number of completed syncs.
    #[must_use]
    pub fn syncs(&self) -> u64 {
        self.sync_lat_ns.as_ref().map_or(0, |all| all.count())
    }

    /// Returns the time from the first start to the last end, in nanoseconds; at least 1.
    #[must_use]
    pub fn runtime_ns(&self) -> u64 {
        self.ended.since(self.started).as_ns().max(1)
    }

    /// Returns the measurements of all kinds that the job does.
    pub fn measured(&self) -> impl Iterator<Item = &Measured> {
        self.ops.each().into_iter().filter_map(|op| op.as_deref())
    }
}

/// The measurements of one job, or of one instance of it.
#[derive(Clone, Debug)]
pub struct JobReport {
    /// The name of the job.
    pub name: String,
    /// The reporting group of the job, from 0.
    pub group: u32,
    /// The index of the job in the file.
    pub job: usize,
    /// How it makes its writes durable.
    pub syncing: Syncing,
    /// Whether its I/O passes the page cache by.
    pub is_direct: bool,
    /// The measurements.
    pub stats: JobStats,
}

/// How a job makes its writes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syncing {
    /// Not at all.
    Never,
    /// By calls of their own: `fsync`, `fdatasync`, `sync_file_range`, or syncs at the end.
    Calls,
    /// Each write is durable before it completes: `sync=`.
    EveryWrite,
}

impl Syncing {
    /// Returns how `job` does it.
    #[must_use]
    pub fn of(job: &Job) -> Self {
        match job.sync {
            SyncMode::Sync | SyncMode::Dsync => Self::EveryWrite,
            SyncMode::None if job.calls_syncs() => Self::Calls,
            SyncMode::None => Self::Never,
        }
    }
}

/// An I/O that was completed and reaped.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// The kind of I/O; `None` for a sync.
    pub op: Option<Op>,
    /// Length, bytes.
    pub len_bytes: u32,
    /// Offset in its file, bytes.
    pub offset_bytes: u64,
    /// How much later than due an I/O of a trace was issued.
    pub late: Duration,
    /// Submission latency.
    pub slat: Duration,
    /// Completion latency.
    pub clat: Duration,
    /// The instant at which the device completed the I/O.
    pub completed: Instant,
    /// The result.
    pub status: Status,
    /// The priority of the I/O, if it is not that of its job.
    pub priority: Option<Priority>,
}

impl Taken {
    /// Returns the total latency. It counts from the instant at which the I/O was due: an I/O of a
    /// trace that could not be issued then has waited, too.
    #[must_use]
    pub fn lat(&self) -> Duration {
        self.late + self.slat + self.clat
    }
}

/// Returns `count` per second over `span_ns`, rounded to the nearest.
#[must_use]
pub fn per_second(count: u64, span_ns: u64) -> u64 {
    let span = u128::from(span_ns.max(1));
    let rate = (u128::from(count) * 1_000_000_000 + span / 2) / span;
    u64::try_from(rate).unwrap_or(u64::MAX)
}
