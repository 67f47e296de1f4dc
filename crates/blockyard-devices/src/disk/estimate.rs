//! The estimate of a disk's firmware: how soon the head can begin a command.
//!
//! The errors of a command are drawn when it comes, and hold while it waits. So a command that
//! looks better than it is goes too early, and one that looks worse waits.

use crate::disk::profile::EstimateProfile;
use blockyard::prng::Prng;
use blockyard::time::Duration;

/// Uniform draws of 16 bits in one deviate.
const DRAWS: i128 = 4;
/// The root of 3 in parts of 1024: four uniform draws of width 1 have a variance of a third.
const ROOT_3: i128 = 1774;

/// The errors in the estimate of one command, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Errors {
    seek: i64,
    rotation: i64,
}

/// The firmware's estimate.
#[derive(Debug)]
pub(super) struct Estimate {
    knowledge: EstimateProfile,
    prng: Prng,
    /// Nanoseconds of a revolution.
    revolution: i64,
}

impl Estimate {
    /// Returns the estimate by `knowledge` for a disk that takes `revolution` for a turn. `prng`
    /// draws the errors.
    pub(super) fn new(knowledge: EstimateProfile, revolution: Duration, prng: Prng) -> Self {
        let revolution = i64::try_from(revolution.as_ns()).expect("a turn takes at most 60 ms");
        debug_assert!(revolution > 0 && knowledge.window > 0, "a firmware sees a command");
        Self { knowledge, prng, revolution }
    }

    /// Draws the errors of a command, which hold for as long as it waits.
    pub(super) fn draw(&mut self) -> Errors {
        let EstimateProfile { seek_error, rotation_error, .. } = self.knowledge;
        Errors { seek: self.error(seek_error), rotation: self.error(rotation_error) }
    }

    /// Draws an error with the standard deviation `deviation`, at most 3.47 times as large.
    fn error(&mut self, deviation: Duration) -> i64 {
        if deviation == Duration::ZERO {
            return 0;
        }
        let bits = self.prng.next();
        let sum: i128 = (0..DRAWS).map(|nth| i128::from(bits >> (16 * nth) & 0xFFFF)).sum();
        // 0xFFFF / 2 is the mean of a draw, so the deviate is between -2 and 2 times 65536.
        let deviate = sum - DRAWS * 0xFFFF / 2;
        let error = i128::from(deviation.as_ns()) * deviate * ROOT_3 / (1024 * 65_536);
        i64::try_from(error).expect("a profile's deviation is at most 60 s")
    }

    /// Returns how long the firmware expects the arm to move, in nanoseconds, for a movement that
    /// takes `seek`. A large error makes it negative. [`Self::turn`] is how far the platters turn
    /// meanwhile.
    pub(super) fn seek(&self, seek: Duration, errors: Errors) -> i64 {
        let seek_ns = seek.as_ns().cast_signed();
        let margin = self.knowledge.margin.as_ns().cast_signed();
        if seek_ns == 0 { 0 } else { seek_ns + margin + errors.seek }
    }

    /// Returns the angle, in nanoseconds of turning, by which the firmware expects its sector to be
    /// nearer after a movement of `seek`, by [`Self::seek`].
    pub(super) fn turn(&self, seek: i64, errors: Errors) -> u64 {
        let error = if seek == 0 { 0 } else { errors.rotation };
        (error - seek).rem_euclid(self.revolution).cast_unsigned()
    }

    /// Returns the time by which a command is preferred that has waited for `age`, in nanoseconds.
    pub(super) fn credit(&self, age: Duration) -> i64 {
        let credit = u128::from(self.knowledge.age_credit.as_ns()) * u128::from(age.as_ns());
        i64::try_from(credit / 1_000_000_000).unwrap_or(i64::MAX / 2)
    }

    /// Returns the number of commands among which the firmware chooses.
    pub(super) fn window(&self) -> usize {
        usize::try_from(self.knowledge.window).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWLEDGE: EstimateProfile = EstimateProfile {
        seek_error: Duration::from_us(200),
        rotation_error: Duration::from_us(40),
        margin: Duration::from_us(300),
        window: 8,
        age_credit: Duration::from_ms(6),
    };

    fn estimate(knowledge: EstimateProfile) -> Estimate {
        Estimate::new(knowledge, Duration::from_ms(8), Prng::new(11))
    }

    /// Returns the deviation of 20000 `errors` from 0.
    fn deviation(errors: impl Iterator<Item = i64>) -> i64 {
        (errors.map(|error| error.pow(2)).sum::<i64>() / 20_000).isqrt()
    }

    #[test]
    fn errors_have_the_deviation_of_the_profile_and_are_bounded() {
        let mut estimate = estimate(KNOWLEDGE);
        let drawn: Vec<_> = (0..20_000).map(|_| estimate.draw()).collect();
        let sum: i64 = drawn.iter().map(|of| of.seek).sum();
        // The mean of 20000 draws of 200 us is within 3 * 200 / 141 us of 0.
        assert!((sum / 20_000).abs() < 4_300, "{sum} ns");
        assert!((deviation(drawn.iter().map(|of| of.seek)) - 200_000).abs() < 4_000);
        assert!((deviation(drawn.iter().map(|of| of.rotation)) - 40_000).abs() < 800);
        // Four draws reach 2 on either side of their mean, which is 2 times the root of 3.
        assert!(drawn.iter().all(|of| of.seek.abs() <= 2 * 200_000 * 1774 / 1024));
    }

    #[test]
    fn exact_knowledge_draws_nothing_and_expects_what_comes() {
        let mut estimate = estimate(EstimateProfile::EXACT);
        let errors = estimate.draw();
        assert_eq!(errors, Errors::default());
        assert_eq!(estimate.prng.next(), Prng::new(11).next());
        // The platters turn by 3 of 8 ms during a seek of 3 ms, so a sector is nearer by 5 ms less
        // a turn.
        let seek = estimate.seek(Duration::from_ms(3), errors);
        assert_eq!((seek, estimate.turn(seek, errors)), (3_000_000, 5_000_000));
        assert_eq!(estimate.credit(Duration::from_secs(5)), 0);
    }

    #[test]
    fn a_margin_an_error_and_an_age_change_the_expectation() {
        let estimate = estimate(KNOWLEDGE);
        let errors = Errors { seek: -500_000, rotation: 70_000 };
        // 3 ms of seek, 0.3 ms of margin, 0.5 ms too little.
        let seek = estimate.seek(Duration::from_ms(3), errors);
        assert_eq!(seek, 2_800_000);
        assert_eq!(estimate.turn(seek, errors), 8_000_000 - 2_800_000 + 70_000);
        // No error on the track of the head.
        let stays = estimate.seek(Duration::ZERO, errors);
        assert_eq!((stays, estimate.turn(stays, errors)), (0, 0));
        // 6 ms a second: 3 ms for half a second.
        assert_eq!(estimate.credit(Duration::from_ms(500)), 3_000_000);
    }
}
