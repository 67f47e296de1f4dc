//! The spindle. It is never asleep, and its speed does not vary: the angle is a function of time.

use blockyard::time::{Duration, Instant};

/// A spindle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spindle {
    /// Nanoseconds of a revolution.
    revolution: u64,
    /// The angle at the start of time, in nanoseconds of turning.
    phase: u64,
}

impl Spindle {
    /// Returns a spindle that takes `revolution` for a turn and is at the angle `phase`, below it,
    /// at the start.
    pub(super) fn new(revolution: Duration, phase: u64) -> Self {
        debug_assert!(phase < revolution.as_ns(), "an angle is less than a turn");
        Self { revolution: revolution.as_ns(), phase }
    }

    /// Returns how long a head waits at `at` for what lies at `angle`, in nanoseconds of turning,
    /// of any size.
    pub(super) fn wait(&self, at: Instant, angle: u64) -> Duration {
        let under_head = (at.as_ns() + self.phase) % self.revolution;
        let ahead = (angle % self.revolution + self.revolution - under_head) % self.revolution;
        Duration::from_ns(ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The wait at `at` ns for `angle`, on a spindle that turns in 1000 ns and is at 300 first.
    fn wait(at: u64, angle: u64) -> u64 {
        let spindle = Spindle::new(Duration::from_ns(1_000), 300);
        spindle.wait(Instant::from_ns(at), angle).as_ns()
    }

    #[test]
    fn a_sector_that_has_just_passed_costs_nearly_a_turn() {
        assert_eq!(wait(0, 300), 0);
        assert_eq!(wait(0, 299), 999);
        assert_eq!(wait(700, 0), 0, "a whole turn is none");
        assert_eq!(wait(2_750, 10_100), 50, "turns before do not count");
    }
}
