//! The machine that uses a device: its processors, and the cost of each step on one of them.

use crate::charges::{Charges, Resource};
use blockyard::time::Duration;
use blockyard_text::quantity::size_words;

use crate::reader::builtin::{Builtin, builtins};
use crate::reader::error::{Problem, ProfileError};
use crate::reader::table::{Table, table_of};
use crate::reader::value::{Bytes, Count, Time, Together};

/// The processors, and the time of each step of the path on one of them.
///
/// The cost of a lock is the time for which it is held; other processors that want the lock wait
/// for it.
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
    /// Taking a tag and putting it back, without the move of its cache line. With an elevator a
    /// request has two: one of the scheduler, and one of the driver.
    pub tag: Duration,
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
    /// The memory of the machine in bytes, all of which may be free or page cache.
    pub memory_bytes: u64,
    /// The dirty pages above which the kernel writes them back; 0: 10 % of the memory.
    pub dirty_background_bytes: u64,
    /// The dirty pages that writers do not exceed; 0: 20 % of the memory.
    pub dirty_bytes: u64,
    /// The age of dirty pages that are written back in the background.
    pub dirty_expire: Duration,
    /// The time between two looks for such pages; 0: nobody looks.
    pub dirty_writeback: Duration,
    /// Waking a sleeping thread, on the processor that wakes it.
    pub wakeup: Duration,
    /// Switching from one thread to another.
    pub context_switch: Duration,
    /// From the request for an asynchronous queue run to its start on an idle processor.
    pub run_delay: Duration,
    /// For how long a processor must have idled to be found in its first sleep state; 0: it has
    /// none. Waking from a wait for an interrupt is part of the other costs.
    pub idle_residency: Duration,
    /// The time in which a processor leaves that state, before it begins its work.
    pub idle_exit: Duration,
    /// As [`Self::idle_residency`], of its deepest sleep state.
    pub deep_residency: Duration,
    /// As [`Self::idle_exit`], of its deepest sleep state.
    pub deep_exit: Duration,
    /// From an interrupt to the soft interrupt that ends a request, in the single-lock model.
    /// blk-mq ends a request in the interrupt.
    pub softirq_delay: Duration,
    /// How many of 100 kernel threads that deferred work wakes run on its processor, when it
    /// sleeps, although another is idle. A worker of blk-mq is bound to a processor, so it never
    /// does.
    pub wake_on_waker: u32,
    /// Moving a cache line that another processor has changed to this one. It makes an acquisition
    /// longer if another processor had the lock before; 0: moves are in the other costs.
    pub line_transfer: Duration,
    /// Cache lines that move with a queue's or elevator's lock: the lock and the data that it
    /// guards. A dispatch list and a word of tags are one line.
    pub lock_lines: u32,
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

impl MachineProfile {
    /// Returns the time that a processor needs to begin new work after it has idled for `idled`:
    /// the longest exit of the states whose residency has passed.
    ///
    /// With residencies of 780 us and 4 ms, and exits of 140 us and 915 us, this is nothing after
    /// 700 us, 140 us after 1 ms, and 915 us after 10 ms.
    #[inline]
    #[must_use]
    pub fn wake_latency(&self, idled: Duration) -> Duration {
        let first = exit(self.idle_residency, self.idle_exit, idled);
        first.max(exit(self.deep_residency, self.deep_exit, idled))
    }
}

/// Returns the time to leave a state with this residency, if a processor that has idled for `idled`
/// is in it. Without a residency there is no such state.
fn exit(residency: Duration, exit: Duration, idled: Duration) -> Duration {
    if residency > Duration::ZERO && idled >= residency { exit } else { Duration::ZERO }
}

/// Classes of processors: a `[cpu]` without `cpus`.
pub(crate) const PROCESSORS: &[Builtin] = builtins!("processors":
    "server-2012",
    "server-2021",
    "cortex-a9",
    "cortex-a55",
    "cortex-a72",
);

/// What each key of the table charges.
pub(crate) const CHARGES: Charges = &[
    ("syscall", &[Resource::Processors]),
    ("submit", &[Resource::Processors]),
    ("merge-try", &[Resource::Processors, Resource::Elevator, Resource::Merging]),
    ("tag", &[Resource::Processors, Resource::Elevator]),
    ("insert", &[Resource::Processors, Resource::Elevator]),
    ("dispatch", &[Resource::Processors]),
    ("complete", &[Resource::Processors, Resource::Interrupts]),
    ("interrupt", &[Resource::Processors, Resource::Interrupts]),
    ("poll", &[Resource::Processors, Resource::Polls]),
    ("page-copy", &[Resource::PageCopies]),
    ("wakeup", &[Resource::Processors, Resource::Handover, Resource::Polls]),
    ("context-switch", &[Resource::Processors, Resource::Handover, Resource::Polls]),
    ("run-delay", &[Resource::Handover, Resource::Runs]),
    ("idle-residency", &[Resource::Sleep]),
    ("idle-exit", &[Resource::Sleep]),
    ("deep-residency", &[Resource::DeepSleep]),
    ("deep-exit", &[Resource::DeepSleep]),
    ("softirq-delay", &[Resource::SoftInterrupts]),
    ("line-transfer", &[Resource::LockMoves]),
    ("lock-lines", &[Resource::LockMoves]),
    ("elevator-lock", &[Resource::Processors, Resource::Elevator]),
    ("lock-submit", &[Resource::SingleLock]),
    ("lock-merge", &[Resource::SingleLock]),
    ("lock-dispatch", &[Resource::SingleLock]),
    ("lock-complete", &[Resource::SingleLock]),
];

/// The keys of the table `[cpu]`.
#[cfg(test)]
pub(crate) const KEYS: &[&str] = CPU;

/// The cost of copying a page if a profile has none: assumed, finding it and 4 KiB at some 5 GB/s.
const PAGE_COPY: Duration = Duration::from_us(1);

/// The memory if a profile has none: assumed. It decides only about buffered writes.
const MEMORY: u64 = 8 << 30;

/// The least memory: a machine with less has no page cache to speak of.
const MEMORY_MIN: u64 = 16 << 20;

/// Sleep states are those of one processor: the deeper one is entered later.
const STATES: &str = "idle states";

/// Reads the table `[cpu]` of `top`.
pub(crate) fn machine(top: &Table<'_>) -> Result<MachineProfile, ProfileError> {
    let machine = costs(top)?;
    dirty_limits(top, &machine)?;
    if top.is_reading() {
        // Another value of a residency may be stated than that of which the ranges are.
        return Ok(MachineProfile {
            idle_exit: machine.idle_exit.min(machine.idle_residency),
            deep_exit: machine.deep_exit.min(machine.deep_residency),
            ..machine
        });
    }
    let table = top.table("cpu", CPU)?;
    for (residency, least, exit, time) in [
        ("idle-residency", machine.idle_residency, "idle-exit", machine.idle_exit),
        ("deep-residency", machine.deep_residency, "deep-exit", machine.deep_exit),
    ] {
        if least == Duration::ZERO && time > least {
            let words = format!("`{exit}` has no effect without `{residency}`");
            return Err(table.wrong(table.given(&[exit, residency]), Problem::Unfit(words)));
        }
        table.not_longer((exit, time), (residency, least))?;
    }
    Ok(machine)
}

/// Checks that the limits on dirty pages fit in the memory.
fn dirty_limits(top: &Table<'_>, machine: &MachineProfile) -> Result<(), ProfileError> {
    let MachineProfile { memory_bytes, dirty_background_bytes, dirty_bytes, .. } = *machine;
    let limits = [("dirty-background-bytes", dirty_background_bytes), ("dirty-bytes", dirty_bytes)];
    match limits.into_iter().find(|(_, limit)| *limit > memory_bytes) {
        None => Ok(()),
        Some((key, limit)) => {
            let [limit, memory] = [limit, memory_bytes].map(size_words);
            let words = format!("`{key}`: {limit} are more than the memory, {memory}");
            Err(top.table("cpu", CPU)?.wrong(key, Problem::Unfit(words)))
        }
    }
}

table_of!(CPU, fn costs("cpu") -> MachineProfile {
    cpus: "cpus" need(Count(1..=1024)),
    syscall: "syscall" need(Time),
    submit: "submit" need(Time),
    merge_try: "merge-try" need(Time),
    tag: "tag" take_or(Time, Duration::ZERO),
    insert: "insert" need(Time),
    dispatch: "dispatch" need(Time),
    complete: "complete" need(Time),
    interrupt: "interrupt" need(Time),
    poll: "poll" need(Time),
    page_copy: "page-copy" take_or(Time, PAGE_COPY),
    memory_bytes: "memory" take_or(Bytes(MEMORY_MIN..=1 << 46), MEMORY),
    dirty_background_bytes: "dirty-background-bytes" take_or(Bytes(0..=1 << 46), 0),
    dirty_bytes: "dirty-bytes" take_or(Bytes(0..=1 << 46), 0),
    dirty_expire: "dirty-expire" take_or(Time, Duration::from_ms(30_000)),
    dirty_writeback: "dirty-writeback" take_or(Time, Duration::from_ms(5_000)),
    wakeup: "wakeup" need(Time),
    context_switch: "context-switch" need(Time),
    run_delay: "run-delay" need(Time),
    idle_residency: "idle-residency" take_or(Together(Time, STATES), Duration::ZERO),
    idle_exit: "idle-exit" take_or(Together(Time, STATES), Duration::ZERO),
    deep_residency: "deep-residency" take_or(Together(Time, STATES), Duration::ZERO),
    deep_exit: "deep-exit" take_or(Together(Time, STATES), Duration::ZERO),
    softirq_delay: "softirq-delay" take_or(Time, Duration::ZERO),
    wake_on_waker: "wake-on-waker" take_or(Count(0..=100), 0),
    line_transfer: "line-transfer" take_or(Time, Duration::ZERO),
    lock_lines: "lock-lines" take_or(Count(1..=100), 1),
    elevator_lock: "elevator-lock" need(Time),
    lock_submit: "lock-submit" need(Time),
    lock_merge: "lock-merge" need(Time),
    lock_dispatch: "lock-dispatch" need(Time),
    lock_complete: "lock-complete" need(Time),
});

#[cfg(test)]
mod tests {
    use crate::profile::{Device, Override};
    use blockyard::time::Duration;

    /// [`MachineProfile::wake_latency`](super::MachineProfile::wake_latency) in microseconds.
    fn latencies(states: &str) -> [u64; 4] {
        let device = format!("base = \"null\"\n[cpu]\n{states}");
        let machine = Device::parse("null", &device).unwrap().machine;
        [5, 779, 780, 10_000].map(|us| machine.wake_latency(Duration::from_us(us)).as_ns() / 1000)
    }

    /// Servers have C1E and C6 of Linux's table in their ranges: a server of Skylake leaves C1E in
    /// 10 us once it has idled for 20 us, and C6 in 133 us after 600 us. By default it leaves none.
    #[test]
    fn a_server_has_the_states_of_its_table_if_it_is_told_to_sleep() {
        let figures = [("cpu.idle-exit", "10us"), ("cpu.deep-exit", "133us")]
            .map(|(key, value)| Override { key: key.into(), value: value.into() });
        let told = Device::lookup_with("null", &figures).unwrap().machine;
        let asleep = [19, 20, 599, 600].map(|us| told.wake_latency(Duration::from_us(us)));
        assert_eq!(asleep, [0, 10, 10, 133].map(Duration::from_us));
        let plain = Device::lookup("null").unwrap().machine;
        assert_eq!(plain.wake_latency(Duration::from_secs(1)), Duration::ZERO);
    }

    #[test]
    fn a_processor_is_in_the_deepest_state_whose_residency_has_passed() {
        let first = "idle-residency = \"780us\"\nidle-exit = \"140us\"\n";
        let deep = "deep-residency = \"4ms\"\ndeep-exit = \"915us\"\n";
        assert_eq!(latencies(&format!("{first}{deep}")), [0, 0, 140, 915]);
        assert_eq!(latencies(first), [0, 0, 140, 140]);
        assert_eq!(latencies(deep), [0, 0, 0, 915]);
        assert_eq!(latencies(""), [0; 4]);
    }

    /// Returns the error of a device with `states` in `[cpu]`, from its third line on.
    fn refused(states: &str) -> String {
        let device = format!("base = \"null\"\n[cpu]\n{states}");
        Device::parse("file.toml", &device).unwrap_err().to_string()
    }

    #[test]
    fn a_state_takes_no_longer_to_leave_than_it_is_worth() {
        assert_eq!(
            refused("deep-residency = \"1ms\"\ndeep-exit = \"2ms\"\n"),
            "file.toml:4: `deep-exit` is `2ms`, longer than `deep-residency`, `1ms`: lower `deep-exit` or raise `deep-residency`"
        );
        assert_eq!(
            refused("idle-exit = \"140us\"\n"),
            "file.toml:3: `idle-exit` is `140us`, longer than `idle-residency`, `20us`: lower `idle-exit` or raise `idle-residency`"
        );
        let unused = "file.toml:3: `idle-exit` has no effect without `idle-residency`";
        assert_eq!(refused("idle-exit = \"1us\"\nidle-residency = \"0us\"\n"), unused);
    }

    /// Each was drawn by itself, so a processor could find its deepest state before the first one.
    /// Now both residencies and both exits are at one place of their ranges: at the first one, the
    /// exits of `sd-hs` are 0, and at the last one 901 us and 4 ms.
    #[test]
    fn the_states_of_a_processor_move_together() {
        let mut readings = Device::readings("sd-hs", &[], 1, 200).unwrap();
        readings.sort_by_key(|device| device.machine.idle_residency);
        assert!(readings.is_sorted_by_key(|device| device.machine.deep_residency));
        assert!(readings.is_sorted_by_key(|device| device.machine.idle_exit));
        assert!(readings.is_sorted_by_key(|device| device.machine.deep_exit));
        for device in &readings {
            let of = device.machine;
            assert!(
                of.idle_exit <= of.idle_residency && of.deep_exit <= of.deep_residency,
                "{of:?}"
            );
            assert!(
                of.idle_residency < of.deep_residency && of.idle_exit <= of.deep_exit,
                "{of:?}"
            );
        }
        let longest = readings[199].machine;
        assert!(longest.idle_exit > Duration::from_us(800), "{longest:?}");
    }
}
