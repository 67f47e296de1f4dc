//! An MMC host: what its bus was used for, and what passes from one transfer to the next.

#![expect(clippy::float_arithmetic, reason = "means are for reading: nothing is ordered by them")]

use core::fmt;

use blockyard_mmc::command::Opcode;
use serde::{Serialize, Serializer};

use super::host::{HostReport, Overlap};
use crate::compare::RunTotals;
use blockyard_text::number::{approximate, ratio, share_percent};

/// Commands that read, and those that write.
const READS: [Opcode; 3] = [Opcode::ReadSingle, Opcode::ReadMultiple, Opcode::ExecuteRead];
const WRITES: [Opcode; 3] = [Opcode::WriteSingle, Opcode::WriteMultiple, Opcode::ExecuteWrite];

/// The figures of an MMC host.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostFigures {
    /// How often each command was sent, by its name, such as `CMD13`; those that were not sent are
    /// left out. CMD13s that ask for the queue status are in `queue_status`.
    #[cfg_attr(feature = "schema", schemars(with = "std::collections::BTreeMap<String, u64>"))]
    pub commands: CommandCounts,
    /// CMD13s with bit 15, which ask which tasks of a command queue are ready.
    pub queue_status: u64,
    /// CMD13s that ask for the card's state, for each command that writes; null if nothing was
    /// written.
    pub status_per_write: Option<f64>,
    /// Writes that were completed before the card reported that they had failed.
    pub lost_writes: u64,
    /// Writes that were completed, and whose failure nobody can know because the card's answer was
    /// lost.
    pub doubtful_writes: u64,
    /// The share of the time with a transaction on the bus. It includes a busy card where the
    /// controller waits for that.
    pub bus_busy_percent: f64,
    /// The mean time without a transaction between two, in nanoseconds; without `unnoticed_ns`.
    pub mean_bus_gap_ns: u64,
    /// Time in which a transaction was over and nobody knew because a fault had lost its interrupt,
    /// in nanoseconds.
    pub unnoticed_ns: u64,
    /// The share of the time without a request in the driver or waiting for it.
    pub absent_percent: f64,
    /// The share of the time in which the card programmed pages or read ahead, seen on the bus or
    /// not.
    pub memory_percent: f64,
    /// CPU time spent mapping memory for transfers, as a share of the time of the run.
    pub map_percent: Overlapped,
    /// CPU time spent unmapping it, as a share of the time of the run.
    pub unmap_percent: Overlapped,
    /// Threads woken for each I/O.
    pub wakeups_per_io: f64,
    /// What was woken, for each I/O.
    pub woken_per_io: Woken,
    /// Wake-ups of the driver's threads that an idle bus waited for, for each I/O.
    pub awaited_wakeups_per_io: f64,
    /// Context switches for each I/O.
    pub switches_per_io: f64,
    /// The mean times of a transfer.
    pub transfer_ns: TransferTimes,
    /// Counts for each transfer.
    pub per_transfer: TransferCounts,
}

/// How often each command was sent, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandCounts(pub [u64; 64]);

/// A command by its number; written as `CMD13`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommandNumber(usize);

/// Parts of something, by whether a transaction was on the bus meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Overlapped {
    /// While a transaction was on the bus.
    pub inside: f64,
    /// While the bus was idle.
    pub outside: f64,
}

/// What an MMC host and its jobs run on: interrupts and woken threads. `thread`, `worker` and
/// `jobs` add up to all wake-ups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Woken {
    /// Interrupts of the controller.
    pub interrupts: f64,
    /// Interrupts that a processor sent to another one, which idled, to wake a thread there.
    pub between_processors: f64,
    /// Wake-ups of the thread that starts requests.
    pub thread: f64,
    /// Wake-ups of the worker that completes requests after their interrupt.
    pub worker: f64,
    /// Wake-ups of jobs.
    pub jobs: f64,
}

/// Mean times in nanoseconds. The first three add up to the time from one transfer to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransferTimes {
    /// The bus or the card was busy.
    pub work: f64,
    /// Both were idle while a request was in the driver or waited for it.
    pub idle: f64,
    /// There was no request.
    pub absent: f64,
    /// Memory was mapped while the bus was idle.
    pub map: f64,
    /// Memory was unmapped while the bus was idle.
    pub unmap: f64,
}

/// Counts for each transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransferCounts {
    /// I/Os that it carries.
    pub ios: f64,
    /// CMD13s that ask for the card's state.
    pub status: f64,
    /// Wake-ups of the driver's threads that an idle bus waited for.
    pub awaited_wakeups: f64,
}

impl CommandCounts {
    /// The commands that were sent, in ascending order, with how often.
    pub fn sent(&self) -> impl Iterator<Item = (CommandNumber, u64)> {
        let all = self.0.into_iter().enumerate();
        all.filter(|(_, count)| *count > 0).map(|(number, count)| (CommandNumber(number), count))
    }

    /// How often `command` was sent.
    #[must_use]
    pub const fn of(&self, command: CommandNumber) -> u64 {
        self.0[command.0]
    }
}

impl fmt::Display for CommandNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CMD{}", self.0)
    }
}

impl Serialize for CommandNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for CommandCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.sent())
    }
}

impl HostFigures {
    /// The figures of `host` in a run with these `totals`.
    pub(super) fn new(host: &HostReport, totals: &RunTotals) -> Self {
        let span = approximate(totals.span.as_ns());
        let ios = approximate(totals.ios);
        let sent = |opcode: Opcode| host.commands[usize::from(opcode.index())];
        let status = approximate(sent(Opcode::SendStatus));
        let sent = [READS, WRITES].map(|opcodes| opcodes.into_iter().map(sent).sum::<u64>());
        // A transfer that continues an open one has no command.
        let [reads, writes] =
            [0, 1].map(|direction| approximate(sent[direction] + host.continued[direction]));
        let transfers = reads + writes;
        let work = approximate(totals.device_busy.as_ns());
        let absent = approximate(host.absent.as_ns());
        let awaited_wakeups = approximate(host.awaited_wakeups);
        let of_host = host.thread_wakeups + host.deferred_wakeups;
        debug_assert!(of_host <= totals.wakeups, "all wake-ups are counted");
        Self {
            commands: CommandCounts(host.commands),
            queue_status: host.queue_status,
            lost_writes: host.lost_writes,
            doubtful_writes: host.doubtful_writes,
            status_per_write: (writes > 0.0).then(|| status / writes),
            bus_busy_percent: share_percent(host.bus_busy.as_ns(), span),
            mean_bus_gap_ns: host.bus_gap.as_ns(),
            unnoticed_ns: host.unnoticed.as_ns(),
            absent_percent: share_percent(host.absent.as_ns(), span),
            memory_percent: share_percent(host.memory.as_ns(), span),
            map_percent: overlapped(host.map, span),
            unmap_percent: overlapped(host.unmap, span),
            wakeups_per_io: ratio(approximate(totals.wakeups), ios),
            woken_per_io: Woken {
                interrupts: ratio(approximate(host.interrupts), ios),
                between_processors: ratio(approximate(totals.interprocessor_interrupts), ios),
                thread: ratio(approximate(host.thread_wakeups), ios),
                worker: ratio(approximate(host.deferred_wakeups), ios),
                jobs: ratio(approximate(totals.wakeups - of_host), ios),
            },
            awaited_wakeups_per_io: ratio(awaited_wakeups, ios),
            switches_per_io: ratio(approximate(totals.context_switches), ios),
            transfer_ns: TransferTimes {
                work: ratio(work, transfers),
                idle: ratio((span - work - absent).max(0.0), transfers),
                absent: ratio(absent, transfers),
                map: ratio(approximate(host.map.outside.as_ns()), transfers),
                unmap: ratio(approximate(host.unmap.outside.as_ns()), transfers),
            },
            per_transfer: TransferCounts {
                ios: ratio(ios, transfers),
                status: ratio(status, transfers),
                awaited_wakeups: ratio(awaited_wakeups, transfers),
            },
        }
    }

    /// The mean time from one transfer to the next, in nanoseconds.
    #[must_use]
    pub fn period_ns(&self) -> f64 {
        let TransferTimes { work, idle, absent, .. } = self.transfer_ns;
        debug_assert!([work, idle, absent].iter().all(|ns| *ns >= 0.0), "a time is not negative");
        work + idle + absent
    }

    /// The part of it in which bus and card are idle while there are requests, for each I/O.
    pub(super) fn idle_of_io_ns(&self) -> f64 {
        ratio(self.transfer_ns.idle, self.per_transfer.ios)
    }
}

/// Both parts of a time, in percent of the span.
fn overlapped(time: Overlap, span: f64) -> Overlapped {
    Overlapped {
        inside: share_percent(time.inside.as_ns(), span),
        outside: share_percent(time.outside.as_ns(), span),
    }
}
