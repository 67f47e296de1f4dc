//! Instants and durations in nanoseconds.
//!
//! The core reads no clock: every call that needs the time is given it. An [`Instant`] counts
//! nanoseconds from a zero that the caller chose and never changes; virtual and monotonic clocks
//! both fit. 64 bits last 584 years.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// A point in time: nanoseconds since the caller's zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

/// A span of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

impl Instant {
    /// The caller's zero.
    pub const ZERO: Self = Self(0);
    /// Later than every instant a clock reaches.
    pub const MAX: Self = Self(u64::MAX);

    /// Returns the instant `ns` nanoseconds after zero.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Returns the nanoseconds since zero.
    #[must_use]
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Returns the time from `earlier` to this instant; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// Longer than any wait.
    pub const MAX: Self = Self(u64::MAX);

    /// Returns a span of `ns` nanoseconds.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Returns a span of `us` microseconds; saturates.
    #[must_use]
    pub const fn from_us(us: u64) -> Self {
        Self(us.saturating_mul(1_000))
    }

    /// Returns a span of `ms` milliseconds; saturates.
    #[must_use]
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }

    /// Returns a span of `s` seconds; saturates.
    #[must_use]
    pub const fn from_secs(s: u64) -> Self {
        Self(s.saturating_mul(1_000_000_000))
    }

    /// Returns the span in nanoseconds.
    #[must_use]
    pub const fn as_ns(self) -> u64 {
        self.0
    }
}

/// Saturates at [`Instant::MAX`].
impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

/// Saturates at [`Duration::MAX`].
impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Saturates at zero.
impl Sub for Duration {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// Returns the earlier of two optional instants.
pub fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        _ => one.or(other),
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_saturate_instead_of_wrapping() {
        assert_eq!(Instant::MAX + Duration::from_ns(1), Instant::MAX);
        assert_eq!(Duration::from_secs(u64::MAX), Duration::MAX);
        assert_eq!(Instant::from_ns(3).since(Instant::from_ns(5)), Duration::ZERO);
    }

    #[test]
    fn the_earlier_of_two_instants_counts_only_those_there_are() {
        let [one, two] = [1, 2].map(|ns| Some(Instant::from_ns(ns)));
        for (a, b, first) in [(one, two, one), (two, one, one), (None, two, two), (one, None, one)]
        {
            assert_eq!(earlier(a, b), first);
        }
        assert_eq!(earlier(None, None), None);
    }

    #[test]
    fn an_instant_is_written_in_seconds() {
        let written = alloc::format!("{}", Instant::from_ns(12_000_000_345));
        assert_eq!(written, "12.000000345");
    }
}
