//! The times at which a bus or a device was in use, and the gaps between them.

use blockyard::time::{Duration, Instant};

/// The time in use of a bus or a device that knows the end of each use in advance.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InUse {
    /// The last span; it may end in the future, or grow.
    from: Instant,
    until: Instant,
    /// The length of all spans before.
    before: Duration,
    gaps: u64,
    idle: Duration,
    begun: bool,
    /// When the end of the last use was noticed.
    known_at: Instant,
}

impl InUse {
    /// Adds a use from `from`, which must not be before the start of the last one, until `until`.
    pub(super) fn add(&mut self, from: Instant, until: Instant) {
        if self.begun && from > self.until {
            self.gaps += 1;
            self.idle += from.since(self.until.max(self.known_at.min(from)));
        }
        self.extend(from, until);
    }

    /// Adds a use as [`Self::add`] does, as a part of the last use: the time between is neither use
    /// nor gap.
    pub(super) fn extend(&mut self, from: Instant, until: Instant) {
        debug_assert!(from <= until, "in use from {from} until {until}");
        debug_assert!(!self.begun || from >= self.from, "uses must come in the order of time");
        if !self.begun || from > self.until {
            self.before += self.until.since(self.from);
            (self.from, self.until, self.begun) = (from, from, true);
        }
        self.until = self.until.max(until);
    }

    /// Notes that the end of the last use is noticed only now, so the gap begins now.
    pub(super) fn noticed(&mut self, now: Instant) {
        self.known_at = now;
    }

    /// Ends the last use at `until`.
    pub(super) fn cut(&mut self, until: Instant) {
        self.until = self.until.min(until.max(self.from));
    }

    /// Returns the time in use until `at`, which must not be before the start of the last use.
    pub(super) fn total(&self, at: Instant) -> Duration {
        debug_assert!(at >= self.from, "the time until {at} of a use from {}", self.from);
        self.before + self.until.min(at).since(self.from)
    }

    /// Returns whether a use is in progress at `at`, which must not be before the start of the last
    /// use.
    pub(super) fn is_at(&self, at: Instant) -> bool {
        self.begun && at < self.until
    }

    /// Returns the mean length of the gaps between two uses; zero if there were no gaps.
    pub(super) fn mean_gap(&self) -> Duration {
        Duration::from_ns(self.idle.as_ns().checked_div(self.gaps).unwrap_or_default())
    }

    /// Begins to count at `at`. A use in progress continues.
    pub(super) fn forget(&mut self, at: Instant) {
        let from = at.max(self.from);
        let until = at.max(self.until);
        *self = Self { from, until, begun: self.begun, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_touch_are_one_and_gaps_lie_between_others() {
        let at = Instant::from_ns;
        let mut bus = InUse::default();
        bus.add(at(10), at(20));
        bus.add(at(15), at(18));
        bus.add(at(20), at(30));
        assert_eq!(bus.total(at(25)), Duration::from_ns(15));
        assert!(bus.is_at(at(29)) && !bus.is_at(at(30)));
        bus.add(at(50), at(60));
        assert_eq!(bus.total(at(99)), Duration::from_ns(30));
        assert_eq!(bus.mean_gap(), Duration::from_ns(20));
        bus.cut(at(55));
        assert_eq!(bus.total(at(99)), Duration::from_ns(25));
        bus.forget(at(52));
        assert_eq!(bus.total(at(99)), Duration::from_ns(3));
        bus.add(at(61), at(62));
        assert_eq!(
            (bus.total(at(99)), bus.mean_gap()),
            (Duration::from_ns(4), Duration::from_ns(6))
        );
    }

    #[test]
    fn pauses_within_a_use_are_neither_use_nor_gap() {
        let at = Instant::from_ns;
        let mut bus = InUse::default();
        bus.add(at(10), at(20));
        assert!(!bus.is_at(at(30)));
        bus.extend(at(50), at(60));
        assert_eq!(bus.total(at(99)), Duration::from_ns(20));
        bus.add(at(64), at(70));
        assert_eq!(bus.mean_gap(), Duration::from_ns(4));
    }

    #[test]
    fn a_gap_begins_when_somebody_knows_of_it() {
        let at = Instant::from_ns;
        let mut bus = InUse::default();
        bus.add(at(10), at(20));
        bus.noticed(at(500));
        bus.add(at(503), at(510));
        assert_eq!(bus.mean_gap(), Duration::from_ns(3));
        bus.add(at(515), at(520));
        assert_eq!(
            bus.mean_gap(),
            Duration::from_ns(4),
            "the noticed end should apply to one gap only"
        );
    }
}
