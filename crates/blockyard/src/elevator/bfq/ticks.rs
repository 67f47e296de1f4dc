//! Ticks: the clock by which Linux measures most of bfq's times.
//!
//! By it go the end of a slot, raising, bursts, merges and splits, the trials of injection, and the
//! wait of the idle class. Idling, think times, deadlines, wakers and the peak rate go by exact
//! time.
//!
//! A tick takes 4 ms, as with the 250 ticks in a second of the kernels that the recordings in
//! `crates/blockyard-sim/tests/bfq` are of; Linux is also built with 100, 300 and 1000. The first
//! tick begins at [`Instant::ZERO`]. A slot of 124 ms that begins at 7.9 ms, in the tick that began
//! at 4 ms, ends at 128 ms: after 120.1 ms.

use super::Bfq;
use crate::time::{Duration, Instant};

const TICK_NS: u64 = 4_000_000;
const TICK: Duration = Duration::from_ns(TICK_NS);

/// Returns the beginning of the tick in which `at` lies.
pub(super) const fn tick_of(at: Instant) -> Instant {
    Instant::from_ns(at.as_ns() - at.as_ns() % TICK_NS)
}

/// Returns the whole ticks in `span`.
pub(super) const fn whole_ticks(span: Duration) -> Duration {
    Duration::from_ns(span.as_ns() - span.as_ns() % TICK_NS)
}

/// Returns the least number of ticks that take at least `span`: 12 ms for 10 ms. So Linux takes a
/// time that is given in milliseconds.
pub(super) const fn in_ticks(span: Duration) -> Duration {
    Duration::from_ns(span.as_ns().div_ceil(TICK_NS).saturating_mul(TICK_NS))
}

/// Returns when a queue that got nothing at `now` asks again: after 3 ms, in Linux by a timer. That
/// is one tick, and such a timer ends with the tick after: a queue that got nothing at 14.3 ms, in
/// the tick that began at 12 ms, asks at 20 ms.
pub(super) fn asked_again(now: Instant) -> Instant {
    tick_of(now) + TICK + TICK
}

impl Bfq {
    /// Returns the beginning of the tick that goes on.
    pub(super) const fn tick(&self) -> Instant {
        self.tick
    }

    /// Sets the instant of the call, which is not before that of the last one.
    pub(super) fn set_now(&mut self, now: Instant) {
        self.now = now;
        // Most calls are in the tick of the one before: a processor without a divider of 64 bits
        // takes some 100 cycles for a division.
        if now >= self.tick + TICK {
            self.tick = tick_of(now);
        }
    }
}
