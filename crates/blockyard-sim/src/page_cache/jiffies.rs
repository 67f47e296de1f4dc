//! Jiffies, in which Linux counts time, and the ends of its timers.
//!
//! A jiffy lasts 4 ms, as in Debian's and arm64's kernels.

use blockyard::time::{Duration, Instant};

/// Jiffies per second.
pub(super) const HZ: u64 = 250;

/// A jiffy.
pub(super) const JIFFY: Duration = Duration::from_us(1_000_000 / HZ);

/// The number of slots of a level of the wheel of timers that a delay may pass (`LVL_SIZE` - 1).
const SLOTS: u64 = 63;

/// A slot of each level of the wheel is 8 times as long as one of the level before
/// (`LVL_CLK_SHIFT`), up to the last level.
const LEVEL_SHIFT: u32 = 3;
const SHIFT_MAX: u32 = 8 * LEVEL_SHIFT;

pub(super) const fn jiffies(at: Instant) -> u64 {
    at.as_ns() / JIFFY.as_ns()
}

/// Returns when a timer ends that is set at `now` for `delay` (`calc_wheel_index` of Linux since
/// 4.8). It ends with a slot of the wheel, and slots are the longer the later they are.
///
/// A delay of 5 s, 1250 jiffies, is in the third level, whose slots have 64: from 0 on, it ends
/// with the jiffy 1280, after 5.12 s. One of 1 s ends after 1.024 s.
pub(crate) const fn timer_end(now: Instant, delay: Duration) -> Instant {
    let delay = delay.as_ns().div_ceil(JIFFY.as_ns());
    let mut shift = 0;
    while shift < SHIFT_MAX && delay >= SLOTS << shift {
        shift += LEVEL_SHIFT;
    }
    debug_assert!(shift <= SHIFT_MAX, "the wheel has no level beyond its last");
    let slot = ((jiffies(now) + delay) >> shift) + 1;
    Instant::from_ns((slot << shift) * JIFFY.as_ns())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 62 jiffies are in the first level, 63 in the second, whose slots have 8, and 504 in the
    /// third. A recording of Linux 6.12 with a look each second has them 1.024 s apart.
    #[test]
    fn a_timer_ends_with_a_slot_of_its_level() {
        let ends = [(1, 62), (1, 63), (9, 503), (9, 504), (3, 250), (256, 250), (1280, 1250)].map(
            |(now, delay)| {
                let now = Instant::from_ns(now * JIFFY.as_ns());
                jiffies(timer_end(now, Duration::from_ns(delay * JIFFY.as_ns())))
            },
        );
        assert_eq!(ends, [64, 72, 520, 576, 256, 512, 2560]);
        // A part of a jiffy counts as a whole one.
        assert_eq!(jiffies(timer_end(Instant::ZERO, Duration::from_ns(1))), 2);
    }
}
