//! A distribution of integers in fixed memory.
//!
//! Values below 128 have a bucket each. From there on each power of two is divided into 128 buckets
//! of equal width: those of values from `2^k` on are `2^(k-7)` wide.
//!
//! # Rules
//!
//! - **[percentile-error-bound]** A percentile is reported as the highest value of its bucket. That
//!   is never below the true value, and above it by less than the width of the bucket, which is at
//!   most 1/128 of every value in it: less than 0.79 % too much, and exact below 128.
//!
//! Count, sums, smallest and largest value are exact.

use alloc::boxed::Box;
use core::ops::RangeInclusive;

/// Binary logarithm of the number of buckets in a power of two.
const SUB_BITS: u32 = 7;
const SUB_BUCKETS: usize = 1 << SUB_BITS;
/// The exact buckets below 128, then 128 for each higher power of two.
const BUCKETS: usize = SUB_BUCKETS * (u64::BITS - SUB_BITS + 1) as usize;

/// How often each value, up to a relative error of 1/128, was recorded.
///
/// It takes 58 KiB, reserved at construction.
///
/// ```
/// use blockyard::stats::Histogram;
///
/// let mut latency_ns = Histogram::new();
/// for ns in [20_000, 21_000, 22_000, 900_000] {
///     latency_ns.record(ns);
/// }
/// assert_eq!(latency_ns.mean(), 240_750);
/// let median = latency_ns.percentile(50_000);
/// assert!((21_000..=21_000 + 21_000 / 128).contains(&median));
/// assert_eq!(latency_ns.percentile(99_900), 900_000);
/// ```
#[derive(Clone, Debug)]
pub struct Histogram {
    buckets: Box<[u64; BUCKETS]>,
    count: u64,
    min: u64,
    max: u64,
    sum: u128,
    sum_squares: u128,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// The unit of [`Self::percentile`]: a hundred percent.
    pub const WHOLE: u32 = 100_000;

    /// Returns an empty histogram.
    #[must_use]
    pub fn new() -> Self {
        let buckets = alloc::vec![0; BUCKETS].into_boxed_slice();
        Self {
            buckets: buckets.try_into().expect("it was made with that length"),
            count: 0,
            min: u64::MAX,
            max: 0,
            sum: 0,
            sum_squares: 0,
        }
    }

    /// Clears the histogram.
    pub fn clear(&mut self) {
        self.buckets.fill(0);
        self.count = 0;
        self.min = u64::MAX;
        self.max = 0;
        self.sum = 0;
        self.sum_squares = 0;
    }

    /// Records `value` once.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.record_times(value, 1);
    }

    /// Records `value` so many `times`.
    #[inline]
    pub fn record_times(&mut self, value: u64, times: u64) {
        if times == 0 {
            return;
        }
        debug_assert!(self.count.checked_add(times).is_some(), "{times} more are too many");
        self.buckets[bucket_of(value)] += times;
        self.count += times;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum += u128::from(value) * u128::from(times);
        let squares = square(value).saturating_mul(times.into());
        self.sum_squares = self.sum_squares.saturating_add(squares);
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, more) in self.buckets.iter_mut().zip(other.buckets.iter()) {
            *bucket += more;
        }
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.sum_squares = self.sum_squares.saturating_add(other.sum_squares);
    }

    /// The number of recorded values.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The smallest recorded value; 0 if there is none.
    #[must_use]
    pub const fn min(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min }
    }

    /// The largest recorded value; 0 if there is none.
    #[must_use]
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// The sum of all values.
    #[must_use]
    pub const fn sum(&self) -> u128 {
        self.sum
    }

    /// The mean, rounded down; 0 if there is no value.
    #[must_use]
    pub fn mean(&self) -> u64 {
        debug_assert!(self.count == 0 || self.min <= self.max, "{} to {}", self.min, self.max);
        let mean = self.sum.checked_div(u128::from(self.count)).unwrap_or(0);
        u64::try_from(mean).expect("a mean lies between smallest and largest value")
    }

    /// The standard deviation, rounded down; 0 if there is no value.
    ///
    /// Exact while the sum of squares stays below `2^128`: a billion times a billion values of one
    /// second each, in nanoseconds, reach 1/300 of that.
    #[must_use]
    pub fn standard_deviation(&self) -> u64 {
        let count = u128::from(self.count);
        if count == 0 {
            return 0;
        }
        // With m the mean rounded down and r what that leaves of the sum, the squared distances
        // from m add up to S = sum_squares - m * (sum + r), those from the true mean to S - r²/n.
        let m = self.sum / count;
        let r = self.sum % count;
        let from_m = self.sum_squares.saturating_sub(m.saturating_mul(self.sum + r));
        let from_mean = from_m.saturating_sub((r * r).div_ceil(count));
        let deviation = (from_mean / count).isqrt();
        u64::try_from(deviation).expect("values of 64 bits deviate by less than 64 bits")
    }

    /// Returns the smallest value for which at least `per_hundred_thousand` of all recorded values
    /// are not larger (nearest rank), within [percentile-error-bound] and never above the largest;
    /// 0 if there is no value. 50 000 is the median, 99 900 is 99.9 %, 0 is the smallest value.
    ///
    /// # Panics
    ///
    /// Panics if `per_hundred_thousand` exceeds [`Self::WHOLE`].
    #[must_use]
    pub fn percentile(&self, per_hundred_thousand: u32) -> u64 {
        assert!(per_hundred_thousand <= Self::WHOLE, "a percentile is at most 100 %");
        if per_hundred_thousand == 0 {
            return self.min();
        }
        let share = u128::from(self.count) * u128::from(per_hundred_thousand);
        let rank = share.div_ceil(u128::from(Self::WHOLE));
        let mut seen = 0;
        let bucket = self.buckets.iter().position(|&count| {
            seen += u128::from(count);
            seen >= rank
        });
        highest_of(bucket.expect("a rank is at most the count")).min(self.max)
    }

    /// Returns the buckets that are not empty, in order: the range of values of each, and how many
    /// were recorded.
    pub fn buckets(&self) -> impl Iterator<Item = (RangeInclusive<u64>, u64)> {
        let filled = self.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(bucket, &count)| {
            let highest = highest_of(bucket);
            (highest - ((1 << shift_of(highest)) - 1)..=highest, count)
        })
    }
}

/// Returns the bucket of `value`.
#[inline]
fn bucket_of(value: u64) -> usize {
    let shift = shift_of(value);
    let step = usize::try_from(value >> shift).expect("below 2 * 128");
    SUB_BUCKETS * shift as usize + step
}

/// Binary logarithm of the width of the bucket of `value`.
#[inline]
const fn shift_of(value: u64) -> u32 {
    (value | SUB_BUCKETS as u64).ilog2() - SUB_BITS
}

/// The highest value of `bucket`.
const fn highest_of(bucket: usize) -> u64 {
    let shift = (bucket / SUB_BUCKETS).saturating_sub(1);
    let step = (bucket - SUB_BUCKETS * shift) as u64;
    (step << shift) | ((1 << shift) - 1)
}

fn square(value: u64) -> u128 {
    u128::from(value) * u128::from(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[test]
    fn a_value_recorded_three_times_counts_as_three() {
        let mut once = Histogram::new();
        let mut thrice = Histogram::new();
        for value in [0, 7, 1_260, u64::MAX] {
            (0..3).for_each(|_| once.record(value));
            thrice.record_times(value, 3);
            thrice.record_times(value / 2, 0);
        }
        assert_eq!(format!("{once:?}"), format!("{thrice:?}"));
        assert_eq!((thrice.count(), thrice.min()), (12, 0));
    }

    #[test]
    fn buckets_follow_each_other_without_gap_or_overlap() {
        let mut lowest = 0u64;
        for bucket in 0..BUCKETS {
            let highest = highest_of(bucket);
            assert_eq!((bucket_of(lowest), bucket_of(highest)), (bucket, bucket));
            assert!(
                highest - lowest <= lowest / 128,
                "[percentile-error-bound]: {lowest} to {highest}"
            );
            assert_eq!(1 << shift_of(lowest), highest - lowest + 1);
            lowest = highest.wrapping_add(1);
        }
        assert_eq!(lowest, 0, "the last bucket ends with the largest value");
    }

    #[test]
    fn the_buckets_told_are_those_of_the_values_recorded() {
        let mut histogram = Histogram::new();
        for value in [0, 127, 256, 257, 258, u64::MAX, u64::MAX] {
            histogram.record(value);
        }
        let last = u64::MAX - ((1 << 56) - 1);
        let told: Vec<_> = histogram.buckets().collect();
        let expected = [(0..=0, 1), (127..=127, 1), (256..=257, 2), (258..=259, 1)];
        assert_eq!(told[..4], expected);
        assert_eq!(told[4..], [(last..=u64::MAX, 2)]);
    }

    #[test]
    fn nothing_recorded_is_all_zero() {
        let mut histogram = Histogram::new();
        histogram.record(7);
        histogram.clear();
        assert_eq!(alloc::format!("{histogram:?}"), alloc::format!("{:?}", Histogram::new()));
        assert_eq!((histogram.count(), histogram.sum()), (0, 0));
        assert_eq!((histogram.min(), histogram.max(), histogram.mean()), (0, 0, 0));
        assert_eq!((histogram.percentile(50_000), histogram.standard_deviation()), (0, 0));
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let mut histogram = Histogram::new();
        for value in [15, 20, 35, 40, 50] {
            histogram.record(value);
        }
        let asked = [0, 5_000, 20_000, 20_001, 40_000, 50_000, 99_999, 100_000];
        let got = asked.map(|per| histogram.percentile(per));
        assert_eq!(got, [15, 15, 15, 20, 20, 35, 50, 50]);
    }

    #[test]
    fn the_largest_values_do_no_harm() {
        let mut histogram = Histogram::new();
        for _ in 0..3 {
            histogram.record(u64::MAX);
        }
        assert_eq!((histogram.mean(), histogram.percentile(50_000)), (u64::MAX, u64::MAX));
        let _ = histogram.standard_deviation();
    }

    fn values() -> impl Strategy<Value = Vec<u64>> {
        let value = (any::<u64>(), 10u32..64).prop_map(|(value, shift)| value >> shift);
        proptest::collection::vec(value, 1..300)
    }

    fn histogram_of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        for &value in values {
            histogram.record(value);
        }
        histogram
    }

    /// The largest whole number whose square times n² is not above n·Σx² - (Σx)².
    fn is_deviation(deviation: u64, values: &[u64]) -> bool {
        let n = values.len() as u128;
        let sum: u128 = values.iter().copied().map(u128::from).sum();
        let squares: u128 = values.iter().copied().map(square).sum();
        let scaled_variance = n * squares - sum * sum;
        square(deviation) * n * n <= scaled_variance
            && square(deviation + 1) * n * n > scaled_variance
    }

    #[test]
    fn deviations_of_few_small_values_are_rounded_down() {
        for code in 0..6u64.pow(4) {
            let digits = [code % 6, code / 6 % 6, code / 36 % 6, code / 216];
            for values in (1..=4).map(|len| &digits[..len]) {
                let deviation = histogram_of(values).standard_deviation();
                assert!(is_deviation(deviation, values), "{deviation} for {values:?}");
            }
        }
    }

    // [percentile-error-bound]; totals are exact.
    proptest! {
        #[test]
        fn agrees_with_the_sorted_values(
            values in values(),
            asked in proptest::collection::vec(1..=Histogram::WHOLE, 1..20),
        ) {
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let histogram = histogram_of(&values);
            for per in asked {
                let rank = (sorted.len() * per as usize).div_ceil(Histogram::WHOLE as usize);
                let exact = sorted[rank - 1];
                let got = histogram.percentile(per);
                prop_assert!(exact <= got && got - exact <= exact / 128, "{got} for {exact}");
            }
            let sum: u128 = values.iter().copied().map(u128::from).sum();
            prop_assert_eq!(histogram.count(), values.len() as u64);
            prop_assert_eq!(histogram.sum(), sum);
            prop_assert_eq!(u128::from(histogram.mean()), sum / values.len() as u128);
            prop_assert_eq!(histogram.min(), sorted[0]);
            prop_assert_eq!(histogram.max(), sorted[sorted.len() - 1]);
            prop_assert!(is_deviation(histogram.standard_deviation(), &values));
        }

        #[test]
        fn merged_is_as_if_recorded_together(a in values(), b in values()) {
            let mut merged = histogram_of(&a);
            merged.merge(&histogram_of(&b));
            let together = histogram_of(&[a, b].concat());
            prop_assert_eq!(alloc::format!("{merged:?}"), alloc::format!("{together:?}"));
        }
    }
}
