//! [`Delayed`]: a latency of its own on top of that of the device below.

use super::late::{Late, Lateness, Policy};
use crate::bio::Op;
use crate::prng::Prng;
use crate::request::Request;
use crate::tag::TagSetConfig;
use crate::time::{Duration, Instant};

/// How much longer requests take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extra {
    /// At least.
    pub least: Duration,
    /// At most: each request's share is drawn evenly between both.
    pub most: Duration,
    /// Requests of this op only; of every op where there is none.
    pub op: Option<Op>,
}

impl Extra {
    /// Every request takes `delay` longer.
    #[must_use]
    pub const fn fixed(delay: Duration) -> Self {
        Self { least: delay, most: delay, op: None }
    }
}

/// Draws the delay of each request.
#[derive(Clone, Debug)]
pub struct Drawn {
    extra: Extra,
    draws: Prng,
}

impl Policy for Drawn {
    fn lateness(&mut self, request: &Request, _now: Instant) -> Lateness {
        let Extra { least, most, op } = self.extra;
        let mut after = Duration::ZERO;
        if op.is_none_or(|op| op == request.op) {
            let choices = (most - least).as_ns().saturating_add(1);
            after = least + Duration::from_ns(self.draws.below(choices));
        }
        Lateness { after, not_before: Instant::ZERO }
    }
}

/// The layer.
pub type Delayed<D> = Late<D, Drawn>;

impl<D> Delayed<D> {
    /// `below`, each of whose requests takes `extra` longer; `draws` says how much, where that
    /// varies.
    ///
    /// # Panics
    ///
    /// If the least of `extra` is more than its most.
    #[must_use]
    pub fn new(below: D, extra: Extra, draws: Prng, tags: &TagSetConfig) -> Self {
        assert!(extra.least <= extra.most, "{extra:?}");
        Self::with_policy(below, Drawn { extra, draws }, tags)
    }
}
