//! Buffered writes: the owners of their time, their way to the device, and the limits on dirty
//! pages.

use blockyard::stats::Direction;
use blockyard::status::Status;
use blockyard::trace::Action;
use serde::{Deserialize, Serialize};

use blockyard_fio::job::Op;
use blockyard_fio::measure::call_time::{CallPart, CallTimes};
use blockyard_sim::simulate::Report;
use blockyard_text::number::{approximate, per_io, ratio};

/// The time of writes through the page cache and of syncs, by its owner, in nanoseconds. The parts
/// of all calls add up to their latencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallFigures {
    /// The number of writes and syncs that ended.
    pub calls: u64,
    /// The number of pages that were read first, because a call wrote a part of them.
    pub page_reads: u64,
    /// Computing: copying to the page cache, submitting writeback; and ready without a CPU.
    pub in_memory: u64,
    /// Waiting for pages that were read first.
    pub page_read: u64,
    /// Pausing, because the job dirtied pages faster than the disk wrote them.
    pub throttled: u64,
    /// Waiting for the writeback of pages.
    pub writeback: u64,
    /// Waiting for the flush of the disk's cache.
    pub flush: u64,
    /// Waiting for commits of the file system's journal.
    #[serde(default)]
    pub journal: u64,
    /// Done, but not reaped by the job.
    pub not_reaped: u64,
}

impl From<&CallTimes> for CallFigures {
    fn from(times: &CallTimes) -> Self {
        Self {
            calls: times.calls,
            page_reads: times.page_reads,
            in_memory: times.of(CallPart::InMemory).as_ns(),
            page_read: times.of(CallPart::PageRead).as_ns(),
            throttled: times.of(CallPart::Throttled).as_ns(),
            writeback: times.of(CallPart::Writeback).as_ns(),
            flush: times.of(CallPart::Flush).as_ns(),
            journal: times.of(CallPart::Journal).as_ns(),
            not_reaped: times.of(CallPart::NotReaped).as_ns(),
        }
    }
}

impl CallFigures {
    /// Its parts with the names that tables use.
    #[must_use]
    pub const fn parts(&self) -> [(&'static str, u64); CallPart::ALL.len()] {
        [
            ("in memory", self.in_memory),
            ("page read", self.page_read),
            ("throttled", self.throttled),
            ("writeback", self.writeback),
            ("flush", self.flush),
            ("journal", self.journal),
            ("not reaped", self.not_reaped),
        ]
    }

    /// The time of all calls, in nanoseconds.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.parts().iter().map(|(_, ns)| ns).sum()
    }

    /// Adds `other`.
    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.page_reads += other.page_reads;
        self.in_memory += other.in_memory;
        self.page_read += other.page_read;
        self.throttled += other.throttled;
        self.writeback += other.writeback;
        self.flush += other.flush;
        self.journal += other.journal;
        self.not_reaped += other.not_reaped;
    }

    /// The calls of all of `parts` together.
    #[must_use]
    pub fn together<'a>(parts: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut all = Self::default();
        parts.into_iter().for_each(|part| all.add(part));
        all
    }
}

/// The writes of all jobs on their way to the device, if jobs write through the page cache. Direct
/// writes count, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BufferedFigures {
    /// The writes through the page cache and the syncs of all jobs.
    pub calls_ns: CallFigures,
    /// Bytes that reached the device, by writeback or direct writes.
    pub device_bytes: u64,
    /// The same for each byte that the jobs wrote.
    pub device_bytes_per_byte: f64,
    /// Write commands of the device.
    pub device_writes: u64,
    /// The same for each write of the jobs.
    pub device_writes_per_write: f64,
    /// Flush commands of the device.
    pub device_flushes: u64,
    /// The same for each write of the jobs.
    pub device_flushes_per_write: f64,
    /// Pages that were read first because a write was to a part of them, for each write of the
    /// jobs.
    pub page_reads_per_write: f64,
    /// Dirty pages at the end of the run, in bytes: they have not reached the device.
    pub left_dirty_bytes: u64,
    /// The memory of the machine, in bytes.
    pub memory_bytes: u64,
    /// The dirty pages above which the kernel writes them back, in bytes.
    pub background_limit_bytes: u64,
    /// The dirty pages that writers do not exceed, in bytes.
    pub hard_limit_bytes: u64,
}

impl BufferedFigures {
    /// The figures in `report`, whose jobs wrote `job_bytes` bytes.
    #[must_use]
    pub(crate) fn of(report: &Report, job_bytes: u64) -> Option<Self> {
        let dirt = report.dirt?;
        let mut writes = 0;
        let mut calls = CallTimes::default();
        let mut direct_bytes = 0;
        for job in &report.jobs {
            let measured = job.stats.ops.of(Op::Write).as_deref();
            writes += measured.map_or(0, |of| of.ios);
            job.stats.calls.iter().for_each(|of| calls.add(of));
            direct_bytes += measured.filter(|_| job.is_direct).map_or(0, |of| of.bytes);
        }
        let device_bytes = report.totals.written_back_bytes + direct_bytes;
        let device_writes = commands(report, Direction::Write);
        let device_flushes = commands(report, Direction::Flush);
        Some(Self {
            calls_ns: CallFigures::from(&calls),
            device_bytes,
            device_bytes_per_byte: ratio(approximate(device_bytes), approximate(job_bytes)),
            device_writes,
            device_writes_per_write: per_io(device_writes, writes),
            device_flushes,
            device_flushes_per_write: per_io(device_flushes, writes),
            page_reads_per_write: per_io(calls.page_reads, writes),
            left_dirty_bytes: dirt.left_bytes,
            memory_bytes: dirt.memory_bytes,
            background_limit_bytes: dirt.background_limit_bytes,
            hard_limit_bytes: dirt.hard_limit_bytes,
        })
    }
}

/// Returns the number of commands in one direction that the device completed.
fn commands(report: &Report, direction: Direction) -> u64 {
    report.stages.count_of(direction, Action::Complete(Status::Ok))
}
