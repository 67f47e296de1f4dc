//! The only clock of disks and of the server, from which the core gets its time.

use blockyard::time::{Duration, Instant};
use rustix::time::{ClockId, clock_gettime};

/// Returns the time of the monotonic clock.
pub fn now() -> Instant {
    Instant::from_ns(ns_of(ClockId::Monotonic))
}

/// Returns the time that the calling thread has spent on processors.
pub fn processor_time() -> Duration {
    Duration::from_ns(ns_of(ClockId::ThreadCPUTime))
}

fn ns_of(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    let whole = u64::try_from(now.tv_sec).expect("time of such a clock is not negative");
    let rest = u64::try_from(now.tv_nsec).expect("time of such a clock is not negative");
    whole * 1_000_000_000 + rest
}

/// Converts `time` to the core's type. A time that does not fit becomes [`Duration::MAX`].
pub fn duration(time: core::time::Duration) -> Duration {
    u64::try_from(time.as_nanos()).map_or(Duration::MAX, Duration::from_ns)
}
