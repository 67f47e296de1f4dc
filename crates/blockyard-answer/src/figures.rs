//! The figures of a whole run: all jobs and all kinds of I/O together.

#![expect(clippy::float_arithmetic, reason = "figures are for reading: nothing is ordered by them")]

use blockyard::stats::{Direction, Histogram};
use blockyard::status::Status;
use blockyard::trace::{Action, Hold};
use serde::Serialize;

use super::buffered::BufferedFigures;
use super::job_time::JobTime;
use super::latency::Latency;
use super::life::{Holds, Life};
use super::locks::LockFigures;
use blockyard_devices::FamilyFigures;
use blockyard_devices::compare::RunTotals;
use blockyard_fio::job::Op;
use blockyard_fio::measure::per_second;
use blockyard_fio::measure::spent::Spent;
use blockyard_sim::simulate::Report;
use blockyard_text::number::{approximate, approximate_sum, per_io, ratio, share_percent};

/// The figures of a run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figures {
    /// I/Os that ended.
    pub ios: u64,
    /// Bytes of these I/Os.
    pub bytes: u64,
    /// I/Os per second.
    pub iops: f64,
    /// Bytes that were read.
    pub read_bytes: u64,
    /// Bytes that were written.
    pub written_bytes: u64,
    /// Bytes per second.
    pub bytes_per_s: u64,
    /// From submission to end.
    pub lat_ns: Latency,
    /// The load of the machine's CPUs, as a mean over all of them.
    pub cpu_percent: f64,
    /// The same load, relative to as many CPUs as there are job instances.
    pub jobs_cpu_percent: f64,
    /// The share of the CPU time spent waiting for locks.
    pub spinning_percent: f64,
    /// The share of the CPU time spent polling without finding a completion.
    pub polling_percent: f64,
    /// Commands that the device completed, flushes included.
    pub commands: u64,
    /// I/Os for each command: above 1 where I/Os were merged, below 1 where they were split or
    /// needed flushes.
    pub ios_per_command: f64,
    /// Commands per second.
    pub commands_per_s: f64,
    /// Commands at the device, on average.
    pub at_device: f64,
    /// The mean time of a command at the device, in nanoseconds.
    pub command_ns: f64,
    /// The share of the time with a command at the device; for eMMC and SD, with a transaction on
    /// the bus or a busy card.
    pub device_busy_percent: f64,
    /// The mean time between two such times, in nanoseconds.
    pub mean_idle_gap_ns: u64,
    /// Threads woken for each I/O.
    pub wakeups_per_io: f64,
    /// Runs of hardware queues for each I/O.
    pub runs_per_io: f64,
    /// Requests that were dequeued, or were about to be, and that the device had no room for, for
    /// each I/O.
    pub refusals_per_io: f64,
    /// The share of the time before the driver that a request spends dequeued, where nothing can be
    /// merged into it.
    pub dequeued_percent: f64,
    /// What jobs spent their time on, all instances together.
    pub jobs_ns: JobTime,
    /// Whether no instance ever had more than one I/O in flight.
    pub one_at_a_time: bool,
    /// Where a request spends its time.
    pub life_ns: Life,
    /// The same of reads, between their submission and the driver's completion.
    pub read_life_ns: Life,
    /// The same of writes and trims.
    pub write_life_ns: Life,
    /// What held hardware queues, by reason.
    #[cfg_attr(
        feature = "schema",
        schemars(with = "std::collections::BTreeMap<String, super::life::Held>")
    )]
    pub holds: Holds,
    /// What locks cost, by kind; a kind that was not used is left out.
    pub locks: Vec<LockFigures>,
    /// What the family of the device has of its own.
    #[serde(flatten)]
    pub family: FamilyFigures,
    /// Writes on their way to the device, if jobs write through the page cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffered: Option<BufferedFigures>,
}

impl Figures {
    /// The figures of `report`, the run of a job file with so many `instances` of jobs.
    #[must_use]
    pub fn of(report: &Report, instances: u32) -> Self {
        let measured: Vec<_> = report.jobs.iter().flat_map(|job| job.stats.measured()).collect();
        let ios = measured.iter().map(|op| op.ios).sum();
        let bytes = measured.iter().map(|op| op.bytes).sum();
        let mut lat_ns = Histogram::new();
        measured.iter().for_each(|op| lat_ns.merge(&op.lat_ns));
        debug_assert_eq!(lat_ns.count(), ios, "every I/O has a latency");
        let span = approximate(report.span.as_ns());
        let cpu_ns = report.totals.cpu.as_ns();
        let cpu = approximate(cpu_ns);
        let commands = report.stages.count(Action::Complete(Status::Ok));
        let refused = [Hold::Budget, Hold::Device, Hold::Host, Hold::Resource].map(Action::Hold);
        let refusals: u64 = refused.iter().map(|action| report.stages.count(*action)).sum();
        let family = FamilyFigures::of(&report.family, &totals(report, ios));
        let life = Life::new(report, ios, family.own().in_calls_ns());
        let mut spent = Spent::default();
        report.jobs.iter().for_each(|job| spent.add(&job.stats.spent));
        let command_ns = approximate_sum(report.commands_held_ns);
        Self {
            ios,
            bytes,
            read_bytes: bytes_of(report, Op::Read),
            written_bytes: bytes_of(report, Op::Write),
            iops: ratio(approximate(ios) * 1e9, span),
            bytes_per_s: per_second(bytes, report.span.as_ns()),
            lat_ns: Latency::from(&lat_ns),
            cpu_percent: share_percent(cpu_ns, span * f64::from(report.cpus)),
            jobs_cpu_percent: share_percent(
                cpu_ns,
                span * f64::from(instances.min(report.cpus.into())),
            ),
            spinning_percent: share_percent(report.totals.spinning.as_ns(), cpu),
            polling_percent: share_percent(report.totals.polling.as_ns(), cpu),
            commands,
            ios_per_command: ratio(approximate(ios), approximate(commands)),
            commands_per_s: ratio(approximate(commands) * 1e9, span),
            at_device: ratio(command_ns, span),
            command_ns: ratio(command_ns, approximate(commands)),
            device_busy_percent: share_percent(report.device_busy.as_ns(), span),
            mean_idle_gap_ns: report.mean_idle_gap.as_ns(),
            wakeups_per_io: per_io(report.totals.wakeups, ios),
            runs_per_io: per_io(report.totals.runs, ios),
            refusals_per_io: per_io(refusals, ios),
            dequeued_percent: ratio(100.0 * life.dequeued, life.queued + life.dequeued),
            jobs_ns: JobTime::from(&spent),
            one_at_a_time: report.jobs.iter().all(|job| job.stats.depths.one_at_a_time()),
            life_ns: life,
            read_life_ns: Life::of_requests(report, Direction::Read),
            write_life_ns: Life::of_requests(report, Direction::Write),
            holds: Holds::new(report, ios),
            locks: LockFigures::of(report, ios),
            family,
            buffered: BufferedFigures::of(report, bytes_of(report, Op::Write)),
        }
    }
}

/// The totals of a run with so many `ios`, for the figures of a family.
fn totals(report: &Report, ios: u64) -> RunTotals {
    RunTotals {
        span: report.span,
        ios,
        device_busy: report.device_busy,
        cpu: report.totals.cpu,
        interrupts: report.totals.interrupts,
        wakeups: report.totals.wakeups,
        interprocessor_interrupts: report.totals.interprocessor_interrupts,
        context_switches: report.totals.context_switches,
    }
}

/// Bytes of all jobs' I/Os of an operation.
fn bytes_of(report: &Report, op: Op) -> u64 {
    report.jobs.iter().map(|job| job.stats.ops.of(op).as_ref().map_or(0, |m| m.bytes)).sum()
}
