//! [`Delayed`]: a latency of its own on top of that of the device below.

use super::late::{Late, Lateness, Policy};
use crate::bio::Op;
use crate::prng::Prng;
use crate::tag::TagSetConfig;
use crate::time::{Duration, Instant};

/// The extra latency of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extra {
    /// The smallest extra latency.
    pub min: Duration,
    /// The largest extra latency. Each request's share is drawn evenly between both.
    pub max: Duration,
    /// Delays only requests of this op; `None`: of every op.
    pub op: Option<Op>,
}

impl Extra {
    /// Delays every request by `delay`.
    #[must_use]
    pub const fn fixed(delay: Duration) -> Self {
        Self { min: delay, max: delay, op: None }
    }
}

/// Draws the delay of each request.
#[derive(Clone, Debug)]
pub struct Drawn {
    extra: Extra,
    draws: Prng,
}

impl Policy for Drawn {
    fn lateness(&mut self, op: Op, _sectors: u32, _now: Instant) -> Lateness {
        let Extra { min, max, op: only } = self.extra;
        let mut after = Duration::ZERO;
        if only.is_none_or(|only| only == op) {
            let choices = (max - min).as_ns().saturating_add(1);
            after = min + Duration::from_ns(self.draws.below(choices));
        }
        Lateness { after, not_before: Instant::ZERO }
    }
}

/// The delay layer.
pub type Delayed<D> = Late<D, Drawn>;

impl<D> Delayed<D> {
    /// Returns `below` with `extra` latency for each request, drawn from `draws` if it varies.
    ///
    /// # Panics
    ///
    /// Panics if the smallest extra latency exceeds the largest.
    #[must_use]
    pub fn new(below: D, extra: Extra, draws: Prng, tags: &TagSetConfig) -> Self {
        assert_ordered(extra);
        Self::with_policy(below, Drawn { extra, draws }, tags)
    }

    /// Delays by `extra`, from `now` on, the requests that come and those that have not completed: a delay counts from the
    /// completion below, which may have been before.
    ///
    /// # Panics
    ///
    /// Panics if the smallest extra latency exceeds the largest.
    pub fn set_extra(&mut self, extra: Extra, now: Instant) {
        assert_ordered(extra);
        self.policy.extra = extra;
        self.decide_anew(now);
    }
}

fn assert_ordered(extra: Extra) {
    assert!(extra.min <= extra.max, "smallest extra latency above the largest: {extra:?}");
}
