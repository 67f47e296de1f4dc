//! The one clock: what the core is told the time is.

use blockyard::time::{Duration, Instant};
use rustix::time::{ClockId, clock_gettime};

/// Now, in nanoseconds of the monotonic clock.
pub(crate) fn now() -> Instant {
    let now = clock_gettime(ClockId::Monotonic);
    let whole = u64::try_from(now.tv_sec).expect("monotonic time that is not negative");
    let rest = u64::try_from(now.tv_nsec).expect("monotonic time that is not negative");
    Instant::from_ns(whole * 1_000_000_000 + rest)
}

/// `time` as the core has it; more than it can count is the most that it can.
pub(crate) fn duration(time: core::time::Duration) -> Duration {
    u64::try_from(time.as_nanos()).map_or(Duration::MAX, Duration::from_ns)
}
