//! A latency distribution: its summary and its histogram.

use blockyard::stats::Histogram;
use serde::Serialize;

/// Latencies of I/Os in nanoseconds. Every figure is 0 if there were none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Buckets {
    /// The longest latency that each bucket holds. Buckets are at most 1 % wide.
    pub up_to_ns: Vec<u64>,
    /// The number of I/Os in each bucket.
    pub count: Vec<u64>,
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
