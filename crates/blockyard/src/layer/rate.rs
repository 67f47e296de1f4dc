//! [`Limited`]: so many bytes and requests per second, at most.
//!
//! What is too fast completes late; nothing is refused. Each request is charged when the
//! device below takes it, reads and writes by their bytes, everything as one request. A limit is a
//! clock that each charge moves on by what it is worth; a request completes no earlier than
//! [`Rates::burst`] before its clock. So what was not used for as long as the burst may be used at
//! once. All in integers: what a division leaves is carried to the next charge, so nothing drifts.

use super::late::{Late, Lateness, Policy};
use crate::bio::Op;
use crate::tag::TagSetConfig;
use crate::time::{Duration, Instant};
use crate::unit::SECTOR_BYTES;

/// Upper limits of the rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Bytes read and written per second; `None`: no limit.
    pub bytes_per_s: Option<u64>,
    /// Requests per second; `None`: no limit.
    pub requests_per_s: Option<u64>,
    /// For how long unused rate accumulates.
    pub burst: Duration,
}

impl Rates {
    /// No limits, and no burst.
    pub const NONE: Self = Self { bytes_per_s: None, requests_per_s: None, burst: Duration::ZERO };
}

/// One limit.
#[derive(Clone, Debug)]
struct Clock {
    per_s: u64,
    /// When everything charged so far has been worked off.
    at: Instant,
    /// The remainder of a nanosecond, in parts of `per_s`.
    carry: u64,
}

impl Clock {
    fn new(per_s: u64) -> Self {
        assert!(per_s > 0, "a rate of nothing");
        Self { per_s, at: Instant::ZERO, carry: 0 }
    }

    /// Charges `amount` at `now`. Returns when it has been worked off.
    fn charge(&mut self, amount: u64, now: Instant) -> Instant {
        // All that was charged has been worked off: time that was not used cannot be used later.
        if self.at < now {
            self.at = now;
            self.carry = 0;
        }
        // 4096 bytes at 3 a nanosecond are 1365 ns and a third; the third is carried to the next
        // charge.
        let parts = u128::from(amount) * 1_000_000_000 + u128::from(self.carry);
        let per_s = u128::from(self.per_s);
        let ns = u64::try_from(parts / per_s).unwrap_or(u64::MAX);
        self.carry = u64::try_from(parts % per_s).expect("less than a divisor of 64 bits");
        debug_assert!(self.carry < self.per_s, "a carry of a whole nanosecond");
        self.at = self.at + Duration::from_ns(ns);
        self.at
    }
}

/// Charges each request.
#[derive(Clone, Debug)]
pub struct Charged {
    burst: Duration,
    bytes: Option<Clock>,
    requests: Option<Clock>,
}

impl Charged {
    fn new(rates: Rates) -> Self {
        let bytes = rates.bytes_per_s.map(Clock::new);
        let requests = rates.requests_per_s.map(Clock::new);
        Self { burst: rates.burst, bytes, requests }
    }
}

impl Policy for Charged {
    fn lateness(&mut self, op: Op, sectors: u32, now: Instant) -> Lateness {
        let bytes = match op {
            Op::Read | Op::Write => u64::from(sectors) * u64::from(SECTOR_BYTES),
            _ => 0,
        };
        let by_bytes = self.bytes.as_mut().map(|clock| clock.charge(bytes, now));
        let by_requests = self.requests.as_mut().map(|clock| clock.charge(1, now));
        let worked_off = by_bytes.max(by_requests).unwrap_or(now);
        let not_before = Instant::ZERO + (worked_off.since(Instant::ZERO) - self.burst);
        Lateness { after: Duration::ZERO, not_before }
    }
}

/// The rate layer.
pub type Limited<D> = Late<D, Charged>;

impl<D> Limited<D> {
    /// Returns `below` limited to `rates`.
    ///
    /// # Panics
    ///
    /// Panics if a rate is 0.
    #[must_use]
    pub fn new(below: D, rates: Rates, tags: &TagSetConfig) -> Self {
        Self::with_policy(below, Charged::new(rates), tags)
    }

    /// Limits to `rates`, from `now` on, the requests that come and those that have not completed,
    /// which are charged anew. Nothing is owed for others.
    ///
    /// # Panics
    ///
    /// Panics if a rate is 0.
    pub fn set_rates(&mut self, rates: Rates, now: Instant) {
        self.policy = Charged::new(rates);
        self.decide_anew(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_does_not_divide_a_second_does_not_drift() {
        let mut clock = Clock::new(3);
        let ends: [u64; 6] = core::array::from_fn(|_| clock.charge(1, Instant::ZERO).as_ns());
        assert_eq!(ends, core::array::from_fn(|n| (n as u64 + 1) * 1_000_000_000 / 3));
    }

    /// Each charge comes just when the one before has been worked off.
    #[test]
    fn a_rate_in_full_use_does_not_drift() {
        let mut clock = Clock::new(3);
        let mut now = Instant::ZERO;
        (0..3).for_each(|_| now = clock.charge(1, now));
        assert_eq!(now, Instant::from_ns(1_000_000_000));
        let late = Instant::from_ns(2_000_000_000);
        assert_eq!(clock.charge(2, late), late + Duration::from_ns(666_666_666), "nothing owed");
    }

    #[test]
    fn an_unused_rate_is_lost() {
        let mut clock = Clock::new(1000);
        clock.charge(1, Instant::ZERO);
        let late = Instant::from_ns(5_000_000);
        assert_eq!(clock.charge(2, late), late + Duration::from_ms(2));
    }
}
