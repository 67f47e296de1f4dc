//! The only clock of disks and of the server, from which the core gets its time.

use blockyard::time::{Duration, Instant};
use rustix::time::{ClockId, clock_gettime};

/// Returns the time of the monotonic clock.
pub fn now() -> Instant {
    let now = clock_gettime(ClockId::Monotonic);
    let whole = u64::try_from(now.tv_sec).expect("monotonic time is not negative");
    let rest = u64::try_from(now.tv_nsec).expect("monotonic time is not negative");
    Instant::from_ns(whole * 1_000_000_000 + rest)
}

/// Converts `time` to the core's type. A time that does not fit becomes [`Duration::MAX`].
pub fn duration(time: core::time::Duration) -> Duration {
    u64::try_from(time.as_nanos()).map_or(Duration::MAX, Duration::from_ns)
}
