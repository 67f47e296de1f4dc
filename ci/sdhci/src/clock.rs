//! Time, by the processor's time-stamp counter.

use crate::machine::{ports, time_stamp};
use blockyard::time::{Duration, Instant};

/// The counter that measures the time-stamp counter runs at this rate.
const TIMER_HZ: u64 = 1_193_182;
/// 10 ms of it.
const MEASURED: u16 = 11_932;
/// The port that starts counter 2 (bit 0) and says that it has ended (bit 5).
const GATE: u16 = 0x61;

/// A clock.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    ticks_per_ms: u64,
    start: u64,
}

impl Clock {
    /// Measures the rate of the time-stamp counter, which takes 10 ms.
    pub(crate) fn new() -> Self {
        let [low, high] = MEASURED.to_le_bytes();
        let gate = ports::read_8(GATE) & !3;
        ports::write_8(GATE, gate);
        ports::write_8(0x43, 0xb0); // counter 2: both bytes, once
        ports::write_8(0x42, low);
        ports::write_8(0x42, high);
        ports::write_8(GATE, gate | 1);
        let start = time_stamp();
        while ports::read_8(GATE) & 1 << 5 == 0 {}
        let ticks = time_stamp() - start;
        Self { ticks_per_ms: (ticks * TIMER_HZ / u64::from(MEASURED) / 1000).max(1), start }
    }

    /// Returns the time since the clock was made.
    pub(crate) fn now(self) -> Instant {
        let ticks = u128::from(time_stamp() - self.start) * 1_000_000;
        let ns = u64::try_from(ticks / u128::from(self.ticks_per_ms)).expect("centuries");
        Instant::ZERO + Duration::from_ns(ns)
    }
}
