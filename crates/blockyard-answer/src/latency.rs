//! A latency distribution: its summary and its histogram.

use std::collections::BTreeMap;

use blockyard::stats::Histogram;
use serde::{Deserialize, Serialize};

use blockyard_sim::measure::p99_ranks;

/// Latencies of I/Os in nanoseconds. Every figure is 0 if there were none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latency {
    /// The number of I/Os.
    pub count: u64,
    /// The shortest.
    pub min: u64,
    /// The mean, rounded.
    pub mean: u64,
    /// The median.
    pub p50: u64,
    /// 99 % of the I/Os took at most this long.
    pub p99: u64,
    /// 99.9 % of the I/Os took at most this long.
    #[serde(rename = "p99.9")]
    pub p99_9: u64,
    /// The longest.
    pub max: u64,
    /// The distribution.
    pub histogram: Buckets,
}

/// The buckets of a histogram that are not empty, in ascending order. Both lists are equally long.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Buckets {
    /// The longest latency that each bucket holds. Buckets are at most 1 % wide.
    pub up_to_ns: Vec<u64>,
    /// The number of I/Os in each bucket.
    pub count: Vec<u64>,
}

impl Latency {
    /// Returns the latencies of all `parts` as one distribution.
    #[must_use]
    pub fn together(parts: &[&Self]) -> Self {
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        let mut sum: u128 = 0;
        for part in parts {
            let Buckets { up_to_ns, count } = &part.histogram;
            for (up_to, n) in up_to_ns.iter().zip(count) {
                let all = counts.entry(*up_to).or_default();
                *all = all.saturating_add(*n);
            }
            sum += u128::from(part.mean) * u128::from(part.count);
        }
        let count = parts.iter().fold(0_u64, |sum, part| sum.saturating_add(part.count));
        let (up_to_ns, of_bucket) = counts.into_iter().unzip();
        let filled = parts.iter().filter(|part| part.count > 0);
        let mean = (sum + u128::from(count) / 2) / u128::from(count.max(1));
        let mut whole = Self {
            count,
            min: filled.clone().map(|part| part.min).min().unwrap_or_default(),
            mean: u64::try_from(mean).expect("a mean of 64 bits"),
            max: filled.map(|part| part.max).max().unwrap_or_default(),
            histogram: Buckets { up_to_ns, count: of_bucket },
            ..Self::default()
        };
        (whole.p50, whole.p99, whole.p99_9) =
            (whole.percentile(50_000), whole.percentile(99_000), whole.percentile(99_900));
        whole
    }

    /// Whether the histogram is sorted and has as many I/Os as the summary: a saved answer may have
    /// been changed.
    #[must_use]
    pub(crate) fn is_sound(&self) -> bool {
        let Buckets { up_to_ns, count } = &self.histogram;
        let sum = count.iter().try_fold(0_u64, |sum, count| sum.checked_add(*count));
        up_to_ns.len() == count.len() && up_to_ns.is_sorted() && sum == Some(self.count)
    }

    /// Returns the latency that `per_hundred_thousand` of the I/Os did not exceed; 0 if there were
    /// none.
    ///
    /// It is what [`Histogram::percentile`] returns for the same values.
    #[must_use]
    pub fn percentile(&self, per_hundred_thousand: u32) -> u64 {
        debug_assert!(per_hundred_thousand <= Histogram::WHOLE, "at most 100 %");
        if per_hundred_thousand == 0 {
            return self.min;
        }
        let share = u128::from(self.count) * u128::from(per_hundred_thousand);
        let rank = share.div_ceil(u128::from(Histogram::WHOLE));
        let mut seen = 0_u128;
        let Buckets { up_to_ns, count } = &self.histogram;
        let at = count.iter().position(|count| {
            seen += u128::from(*count);
            seen >= rank
        });
        at.map_or(0, |at| up_to_ns[at].min(self.max))
    }
}

impl Latency {
    /// Returns the interval that holds the 99th percentile of such I/Os in 95 of 100 cases, by its
    /// ranks ([`p99_ranks`]).
    #[must_use]
    pub(crate) fn p99_interval(&self) -> [u64; 2] {
        p99_ranks(self.count).map(|rank| self.percentile(rank))
    }
}

impl From<&Histogram> for Latency {
    fn from(values: &Histogram) -> Self {
        let buckets = values.buckets().map(|(bucket, count)| (*bucket.end(), count));
        let (up_to_ns, count): (Vec<_>, Vec<_>) = buckets.unzip();
        debug_assert_eq!(count.iter().sum::<u64>(), values.count(), "every value is in a bucket");
        debug_assert!(up_to_ns.is_sorted(), "buckets are in ascending order");
        Self {
            count: values.count(),
            min: values.min(),
            mean: values.mean(),
            p50: values.percentile(50_000),
            p99: values.percentile(99_000),
            p99_9: values.percentile(99_900),
            max: values.max(),
            histogram: Buckets { up_to_ns, count },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latency_of(values: impl Iterator<Item = u64>) -> Latency {
        let mut histogram = Histogram::new();
        values.for_each(|value| histogram.record(value));
        Latency::from(&histogram)
    }

    #[test]
    fn parts_together_are_the_whole() {
        let value = |n: u64| (n * n * 7919) % 9_000_000;
        let parts = [latency_of((0..700).map(value)), latency_of((700..1000).map(value))];
        let whole = latency_of((0..1000).map(value));
        let joined = Latency::together(&[&parts[0], &parts[1], &Latency::default()]);
        // The means of the parts are rounded.
        assert!(joined.mean.abs_diff(whole.mean) <= 1, "{} {}", joined.mean, whole.mean);
        assert_eq!(Latency { mean: whole.mean, ..joined }, whole);
        assert_eq!(Latency::together(&[]), Latency::default());
        let mut histogram = Histogram::new();
        (0..1000).map(value).for_each(|value| histogram.record(value));
        for percentile in [0, 1, 25_000, 50_000, 99_990, 100_000] {
            assert_eq!(whole.percentile(percentile), histogram.percentile(percentile));
        }
    }

    fn p99_interval_of(count: u64) -> [u64; 2] {
        let mut values = Histogram::new();
        (1..=count).for_each(|n| values.record(n * 1_000_000 / count));
        Latency::from(&values).p99_interval()
    }

    fn is_near(found: u64, expected: u64) -> bool {
        found.abs_diff(expected) <= expected / 100
    }

    /// By hand: of 100,000 I/Os a thousand count, and 1.96 * sqrt(0.99 * 0.01 / 1000) is 0.62 %. Of
    /// 1,000 ten count: 6.2 %.
    #[test]
    fn the_interval_of_a_p99_is_wide_if_there_are_few() {
        let [low, high] = p99_interval_of(100_000);
        assert!(is_near(low, 983_800) && is_near(high, 996_200), "{low} {high}");
        let [low, high] = p99_interval_of(1_000);
        assert!(is_near(low, 928_300) && high == 1_000_000, "{low} {high}");
        assert_eq!(Latency::default().p99_interval(), [0, 0]);
    }

    #[test]
    fn the_buckets_hold_every_value() {
        let mut values = Histogram::new();
        (1..=1000).for_each(|value| values.record(value * 1000));
        let latency = Latency::from(&values);
        assert_eq!((latency.count, latency.min, latency.max), (1000, 1000, 1_000_000));
        assert_eq!(latency.histogram.count.iter().sum::<u64>(), 1000);
        assert!((500_000..=505_000).contains(&latency.p50), "{}", latency.p50);
        assert_eq!(Latency::from(&Histogram::new()), Latency::default());
    }
}
