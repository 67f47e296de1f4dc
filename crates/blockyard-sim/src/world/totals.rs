//! The counts of a run.

use blockyard::time::Duration;

/// The counts of a run, in addition to the statistics of the queues.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Threads woken because an I/O or a tag was ready.
    pub wakeups: u64,
    /// Interrupts by which a processor tells another one, which idles, that a thread is to run
    /// there. Their time is a part of `wakeup` and `run-delay`. A processor that is busy, or that
    /// spins while it idles, needs none. Each thread that is woken counts; Linux sends one
    /// interrupt for several that are woken at once.
    pub interprocessor_interrupts: u64,
    /// Changes of a processor from one thread to another, or from idling to a thread.
    pub context_switches: u64,
    /// Time that processors spent, running or spinning.
    pub cpu: Duration,
    /// The part of this time spent spinning for locks.
    pub spinning: Duration,
    /// The part of this time spent on polls that found nothing.
    pub polling: Duration,
    /// The number of times that the system slept because an MMC host was idle in time.
    pub sleeps: u64,
    /// Interrupts that ended requests, except for those of MMC hosts.
    pub interrupts: u64,
    /// Runs of hardware queues.
    pub runs: u64,
    /// Events handled.
    pub events: u64,
    /// I/Os whose submission had to wait for a tag.
    pub tag_waits: u64,
    /// The total time of these waits.
    pub tag_wait: Duration,
    /// The total time of flushes that end calls of durable writes, from the end of the write.
    pub call_flushes: Duration,
    /// The total time from the end of each I/O until its job reaped it.
    pub not_reaped: Duration,
    /// Bytes of dirty pages whose writeback has ended.
    pub written_back_bytes: u64,
    /// I/Os and syncs that jobs reaped.
    pub reaped: u64,
}
