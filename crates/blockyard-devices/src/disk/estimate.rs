//! The estimate of a disk's firmware: how soon the head can begin a command.
//!
//! The errors belong to a movement: from one cylinder to one sector they are the same however
//! often the firmware looks at it, and another movement has others. So a command that looks better
//! than it is goes too early, and one that looks worse waits.
//!
//! A movement that ends shortly before its sector comes may miss it. The firmware adds the chance
//! of that times a revolution; and it takes off the chance that a sector seems to have just passed
//! and has not.

use crate::disk::profile::EstimateProfile;
use blockyard::prng::Prng;
use blockyard::time::Duration;

/// Uniform draws of 16 bits in one deviate.
const DRAWS: i128 = 4;
/// The root of 3 in parts of 1024: four uniform draws of width 1 have a variance of a third.
const ROOT_3: i128 = 1774;

/// A movement of the arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Movement {
    /// The cylinder from which it starts.
    pub(super) from: u64,
    /// The sector to which it leads.
    pub(super) to: u64,
    pub(super) seek: Duration,
}

/// The errors in the estimate of one movement, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Errors {
    seek: i64,
    rotation: i64,
}

/// The firmware's estimate.
#[derive(Debug)]
pub(super) struct Estimate {
    knowledge: EstimateProfile,
    seed: u64,
    /// Nanoseconds of a revolution.
    revolution: i64,
}

impl Estimate {
    /// Returns the estimate by `knowledge` for a disk that takes `revolution` for a turn. `prng`
    /// decides on the errors.
    pub(super) fn new(knowledge: EstimateProfile, revolution: Duration, mut prng: Prng) -> Self {
        let revolution = i64::try_from(revolution.as_ns()).expect("a turn takes at most 60 ms");
        debug_assert!(revolution > 0 && knowledge.window > 0, "a firmware sees a command");
        Self { knowledge, seed: prng.next(), revolution }
    }

    /// Returns the errors in the estimate of `movement`, which are the same each time. The servo
    /// marks show the firmware where it is on the track under the head.
    fn errors(&self, movement: Movement) -> Errors {
        let EstimateProfile { seek_error, rotation_error, .. } = self.knowledge;
        let deviations = seek_error + rotation_error;
        if movement.seek == Duration::ZERO || deviations == Duration::ZERO {
            return Errors::default();
        }
        let bits = mixed(self.seed ^ mixed(movement.from) ^ movement.to);
        Errors { seek: error(bits, seek_error), rotation: error(mixed(bits), rotation_error) }
    }

    /// Returns the time after which the firmware expects the head at its sector, in nanoseconds,
    /// for a `movement`. `wait` returns how long the head waits for the sector if it arrives after
    /// the given time. A large error makes the time negative.
    pub(super) fn access(&self, movement: Movement, wait: impl Fn(u64) -> Duration) -> i64 {
        let errors = self.errors(movement);
        let seek = movement.seek.as_ns().cast_signed() + errors.seek;
        // The platters turn by as much during whole turns.
        let arrival = (seek - errors.rotation).rem_euclid(self.revolution).cast_unsigned();
        let wait = wait(arrival).as_ns().cast_signed();
        if movement.seek == Duration::ZERO { wait } else { seek + wait + self.risk(wait) }
    }

    /// Returns the time by which a movement takes longer on average than it seems to, if its sector
    /// comes `wait` after the head.
    ///
    /// With a deviation of 200 us and a turn of 8 ms, this is 4 ms for a sector that comes as the
    /// head arrives, 333 us for one that comes 346 us later, and nothing from 693 us on.
    fn risk(&self, wait: i64) -> i64 {
        debug_assert!((0..self.revolution).contains(&wait), "a head waits for less than a turn");
        let deviation = i128::from(self.knowledge.expected_error.as_ns());
        if deviation == 0 {
            return 0;
        }
        let missed =
            late(wait.into(), deviation) - late((self.revolution - wait).into(), deviation);
        let risk = missed * i128::from(self.revolution) / LATE_ONE;
        i64::try_from(risk).expect("a part of a turn")
    }

    /// Returns the time by which the firmware starts a movement early, so that it never misses its
    /// sector: no error is larger than 4 of the deviations that it expects.
    pub(super) fn margin(&self) -> Duration {
        Duration::from_ns(4 * self.knowledge.expected_error.as_ns())
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

/// Returns an error with the standard deviation `deviation` from `bits`, at most 3.47 times as
/// large.
fn error(bits: u64, deviation: Duration) -> i64 {
    let sum: i128 = (0..DRAWS).map(|nth| i128::from(bits >> (16 * nth) & 0xFFFF)).sum();
    // 0xFFFF / 2 is the mean of a draw, so the deviate is between -2 and 2 times 65536.
    let deviate = sum - DRAWS * 0xFFFF / 2;
    let error = i128::from(deviation.as_ns()) * deviate * ROOT_3 / (1024 * 65_536);
    i64::try_from(error).expect("a profile's deviation is at most 60 s")
}

/// The chance 1 of [`late`].
const LATE_ONE: i128 = 24 << 40;

/// Returns the chance that an error with the standard deviation `deviation` is larger than `slack`,
/// in parts of [`LATE_ONE`]: that of a sum of four uniform draws, as [`error`] makes it.
///
/// For a slack of a root of 3 deviations it is 1 in 24: the sum of four draws is above 3.
fn late(slack: i128, deviation: i128) -> i128 {
    // How far the sum is from its largest value, 4, in parts of 1024: 2048 without any slack.
    let left = 2048 - (slack * 1024 * 1024 / (deviation * ROOT_3)).min(2048);
    let beyond = (left - 1024).max(0);
    left.pow(4) - 4 * beyond.pow(4)
}

/// Mixes the bits of `value`, so that neighbours have nothing in common: splitmix64.
const fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWLEDGE: EstimateProfile = EstimateProfile {
        seek_error: Duration::from_us(200),
        rotation_error: Duration::from_us(40),
        expected_error: Duration::from_us(200),
        window: 8,
        age_credit: Duration::from_ms(6),
    };

    fn estimate(knowledge: EstimateProfile) -> Estimate {
        Estimate::new(knowledge, Duration::from_ms(8), Prng::new(11))
    }

    const fn movement(from: u64, to: u64) -> Movement {
        Movement { from, to, seek: Duration::from_ms(3) }
    }

    /// Returns the deviation of 20000 `errors` from 0.
    fn deviation(errors: impl Iterator<Item = i64>) -> i64 {
        (errors.map(|error| error.pow(2)).sum::<i64>() / 20_000).isqrt()
    }

    #[test]
    fn errors_have_the_deviation_of_the_profile_and_are_bounded() {
        let estimate = estimate(KNOWLEDGE);
        let errors: Vec<_> = (0..20_000).map(|to| estimate.errors(movement(7, to))).collect();
        let sum: i64 = errors.iter().map(|of| of.seek).sum();
        // The mean of 20000 errors of 200 us is within 3 * 200 / 141 us of 0.
        assert!((sum / 20_000).abs() < 4_300, "{sum} ns");
        assert!((deviation(errors.iter().map(|of| of.seek)) - 200_000).abs() < 4_000);
        assert!((deviation(errors.iter().map(|of| of.rotation)) - 40_000).abs() < 800);
        // Four draws reach 2 on either side of their mean, which is 2 times the root of 3.
        assert!(errors.iter().all(|of| of.seek.abs() <= 2 * 200_000 * 1774 / 1024));
    }

    #[test]
    fn errors_belong_to_a_movement() {
        let estimate = estimate(KNOWLEDGE);
        assert_eq!(estimate.errors(movement(7, 9)), estimate.errors(movement(7, 9)));
        assert_ne!(estimate.errors(movement(7, 9)), estimate.errors(movement(8, 9)));
        assert_ne!(estimate.errors(movement(7, 9)), estimate.errors(movement(7, 10)));
        let stays = Movement { seek: Duration::ZERO, ..movement(7, 9) };
        assert_eq!(estimate.errors(stays), Errors::default());
    }

    #[test]
    fn exact_knowledge_expects_what_comes() {
        let estimate = estimate(EstimateProfile::EXACT);
        assert_eq!(estimate.errors(movement(7, 9)), Errors::default());
        // The platters turn by 3 of 8 ms during a seek of 3 ms, so a sector that is 5 ms away comes
        // 2 ms later.
        let expected = estimate.access(movement(7, 9), |arrival| {
            assert_eq!(arrival, 3_000_000);
            Duration::from_ms(2)
        });
        assert_eq!(expected, 5_000_000);
        assert_eq!(estimate.credit(Duration::from_secs(5)), 0);
    }

    /// A sum of four draws is above 2 in half of all cases, and above 3 in one of
    /// 24: for these the sum of their distances from 1 is below 1, the volume of a simplex.
    #[test]
    fn a_sector_that_comes_as_the_head_arrives_is_missed_in_half_of_all_cases() {
        let estimate = estimate(KNOWLEDGE);
        assert_eq!(estimate.risk(0), 4_000_000);
        // 200 us times the root of 3, as rounded to 1774 of 1024 parts.
        let root = 346_485;
        assert_eq!(estimate.risk(root), 8_000_000 / 24);
        assert_eq!(estimate.risk(700_000), 0);
        // A sector that seems to have passed 346 us before is not missed in one of 24 cases.
        assert_eq!(estimate.risk(8_000_000 - root), -8_000_000 / 24);
        // What waits for half a turn runs no risk, and nothing does if errors are not expected.
        assert_eq!(estimate.risk(4_000_000), 0);
        let bold = EstimateProfile { expected_error: Duration::ZERO, ..KNOWLEDGE };
        assert_eq!(Estimate::new(bold, Duration::from_ms(8), Prng::new(11)).risk(0), 0);
    }

    #[test]
    fn an_error_and_an_age_change_the_expectation() {
        let estimate = estimate(KNOWLEDGE);
        let errors = estimate.errors(movement(7, 9));
        assert!(errors.seek != 0 && errors.rotation != 0);
        let expected = estimate.access(movement(7, 9), |arrival| {
            let arrives = 3_000_000 + errors.seek - errors.rotation;
            assert_eq!(arrival, arrives.cast_unsigned());
            Duration::from_ms(2)
        });
        assert_eq!(expected, 3_000_000 + errors.seek + 2_000_000);
        // No error and no risk on the track of the head.
        let stays = Movement { seek: Duration::ZERO, ..movement(7, 9) };
        assert_eq!(estimate.access(stays, |arrival| Duration::from_ns(arrival + 5)), 5);
        // 6 ms a second: 3 ms for half a second.
        assert_eq!(estimate.credit(Duration::from_ms(500)), 3_000_000);
    }
}
