//! The machine that uses a device: its processors, and the cost of each step on one of them.

use blockyard::time::Duration;

use super::error::ProfileError;
use super::table::Table;
use super::value::{Count, Time};

/// The processors, and the time of each step of the path on one of them.
///
/// The cost of a lock is the time for which it is held; other processors that want the lock wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineProfile {
    /// Number of processors.
    pub cpus: u16,
    /// Entering and leaving the kernel once.
    pub syscall: Duration,
    /// Making a bio and submitting it to the queue.
    pub submit: Duration,
    /// Trying one request as a merge partner.
    pub merge_try: Duration,
    /// Putting a request into a software queue or elevator, without the lock.
    pub insert: Duration,
    /// Dequeuing a request and issuing it to the driver.
    pub dispatch: Duration,
    /// Ending a request and its bios.
    pub complete: Duration,
    /// Taking an interrupt.
    pub interrupt: Duration,
    /// One look for completions of a polled hardware queue.
    pub poll: Duration,
    /// Finding a page in the page cache and copying its 4 KiB; a part of a page costs its share.
    pub page_copy: Duration,
    /// Waking a sleeping thread, on the processor that wakes it.
    pub wakeup: Duration,
    /// Switching from one thread to another.
    pub context_switch: Duration,
    /// From the request for an asynchronous queue run to its start on an idle processor.
    pub run_delay: Duration,
    /// Hold of the elevator's lock per insert or dispatch, in the multi-queue model.
    pub elevator_lock: Duration,
    /// Hold of the single lock to make and insert a request.
    pub lock_submit: Duration,
    /// Hold of the single lock for each merge tried.
    pub lock_merge: Duration,
    /// Hold of the single lock to dequeue and issue a request.
    pub lock_dispatch: Duration,
    /// Hold of the single lock to end a request.
    pub lock_complete: Duration,
}

const KEYS: &[&str] = &[
    "cpus",
    "syscall",
    "submit",
    "merge-try",
    "insert",
    "dispatch",
    "complete",
    "interrupt",
    "poll",
    "page-copy",
    "wakeup",
    "context-switch",
    "run-delay",
    "elevator-lock",
    "lock-submit",
    "lock-merge",
    "lock-dispatch",
    "lock-complete",
];

/// The cost of copying a page if a profile has none: assumed, finding it and 4 KiB at some 5 GB/s.
const PAGE_COPY: Duration = Duration::from_us(1);

impl MachineProfile {
    /// Reads the table `[cpu]` of `top`.
    pub(super) fn read(top: &Table<'_>) -> Result<Self, ProfileError> {
        let cpu = top.table("cpu", KEYS)?;
        Ok(Self {
            cpus: cpu.need("cpus", Count(1..=1024))?,
            syscall: cpu.need("syscall", Time)?,
            submit: cpu.need("submit", Time)?,
            merge_try: cpu.need("merge-try", Time)?,
            insert: cpu.need("insert", Time)?,
            dispatch: cpu.need("dispatch", Time)?,
            complete: cpu.need("complete", Time)?,
            interrupt: cpu.need("interrupt", Time)?,
            poll: cpu.need("poll", Time)?,
            page_copy: cpu.take("page-copy", Time)?.unwrap_or(PAGE_COPY),
            wakeup: cpu.need("wakeup", Time)?,
            context_switch: cpu.need("context-switch", Time)?,
            run_delay: cpu.need("run-delay", Time)?,
            elevator_lock: cpu.need("elevator-lock", Time)?,
            lock_submit: cpu.need("lock-submit", Time)?,
            lock_merge: cpu.need("lock-merge", Time)?,
            lock_dispatch: cpu.need("lock-dispatch", Time)?,
            lock_complete: cpu.need("lock-complete", Time)?,
        })
    }
}
