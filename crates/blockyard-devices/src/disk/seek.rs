//! The arm: how long it takes from one cylinder to another.
//!
//! A short seek accelerates and brakes, so its time grows with the square root of the distance. A
//! long one coasts, so its time grows with the distance. The curve turns at a third of the
//! cylinders. All times include settling.

use crate::disk::profile::SeekProfile;
use blockyard::time::Duration;

/// The seek curve of reads or of writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seek {
    track: u64,
    knee: u64,
    full: u64,
    head_switch: u64,
    /// The distance at which the curve turns, at least 1.
    knee_distance: u64,
    /// The longest distance.
    longest: u64,
}

impl Seek {
    /// Returns the curve through the times of `profile` over `cylinders`, where a switch of heads
    /// takes `head_switch`.
    ///
    /// # Panics
    ///
    /// Panics if no curve has these times, which profiles are checked for.
    pub(super) fn new(profile: SeekProfile, head_switch: Duration, cylinders: u64) -> Self {
        let knee = profile.knee().expect("a profile's seek curve was checked");
        debug_assert!(cylinders > 3, "{cylinders} cylinders");
        Self {
            track: profile.track.as_ns(),
            knee: knee.as_ns(),
            full: profile.full.as_ns(),
            head_switch: head_switch.as_ns(),
            knee_distance: cylinders / 3,
            longest: cylinders - 1,
        }
    }

    /// Returns the time for `distance` cylinders, and to another head if it `switches`. The head
    /// changes while the arm moves.
    pub(super) fn time(&self, distance: u32, switches: bool) -> Duration {
        let switch = if switches { self.head_switch } else { 0 };
        Duration::from_ns(self.over(distance.into()).max(switch))
    }

    fn over(&self, distance: u64) -> u64 {
        debug_assert!(distance <= self.longest, "{distance} of {} cylinders", self.longest);
        if distance == 0 {
            return 0;
        }
        if distance <= self.knee_distance {
            // The square root of a fraction, in parts of 2 to the 16.
            let root = (((distance - 1) << 32) / (self.knee_distance - 1).max(1)).isqrt();
            return self.track + (((self.knee - self.track) * root) >> 16);
        }
        let beyond = distance - self.knee_distance;
        let rest = self.longest - self.knee_distance;
        self.knee + (self.full - self.knee) * beyond / rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAPTOP: SeekProfile = SeekProfile {
        track: Duration::from_us(1_000),
        average: Duration::from_ms(12),
        full: Duration::from_ms(20),
    };

    #[test]
    fn the_curve_has_the_times_of_the_data_sheet() {
        const CYLINDERS: u32 = 3_000;
        let seek = Seek::new(LAPTOP, Duration::ZERO, CYLINDERS.into());
        assert_eq!(seek.time(0, false), Duration::ZERO);
        assert_eq!(seek.time(1, false), LAPTOP.track);
        assert_eq!(seek.time(CYLINDERS - 1, false), LAPTOP.full);
        // The mean over all pairs, as the makers define it: a distance n occurs for CYLINDERS - n
        // pairs.
        let mut sum = 0_u64;
        let mut pairs = 0_u64;
        for distance in 1..CYLINDERS {
            let of_distance = u64::from(CYLINDERS - distance);
            sum += seek.time(distance, false).as_ns() * of_distance;
            pairs += of_distance;
        }
        let average = sum / pairs;
        assert!(average.abs_diff(12_000_000) < 20_000, "{average} ns");
    }

    #[test]
    fn the_curve_rises_and_bends_down() {
        let seek = Seek::new(LAPTOP, Duration::ZERO, 1_000);
        let times: Vec<_> = (1..1_000).map(|n| seek.time(n, false).as_ns()).collect();
        assert!(times.windows(2).all(|two| two[0] <= two[1]));
        // Four times the distance is twice the time beyond that of a track, on the square root.
        let beyond = [1 + 60, 1 + 240].map(|n| seek.time(n, false).as_ns() - 1_000_000);
        assert!((2 * beyond[0]).abs_diff(beyond[1]) < 1_000);
    }

    #[test]
    fn a_switch_of_heads_hides_behind_a_longer_seek() {
        let seek = Seek::new(LAPTOP, Duration::from_ms(2), 1_000);
        assert_eq!(seek.time(0, true), Duration::from_ms(2));
        assert_eq!(seek.time(1, true), Duration::from_ms(2));
        assert_eq!(seek.time(500, true), seek.time(500, false));
    }
}
