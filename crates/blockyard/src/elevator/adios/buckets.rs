//! Latencies since the last update of a model, sorted by how far the prediction missed them.
//!
//! An update leaves out the worst ones. A latency of m ns that was predicted as p ns counts in
//! bucket 20 m / p below twice the prediction, in 10 m / p + 20 below five times, and in
//! 3 m / p + 40 from there on; the last bucket takes those above. So 4.4 to 5 times the prediction
//! counts as worse than 5 times, which is in bucket 55. The index has 8 bits: 72 times the
//! prediction is in bucket 0 again. ADIOS 3.1.9 counts like this; version 3.2.0 keeps all bits.

/// The number of buckets.
const BUCKETS: usize = 64;

/// Latencies together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    /// The weights of all latencies; on a disk that does not rotate each has 1.
    pub(super) weight: u64,
    /// The sum of the latencies in ns, each times its weight.
    pub(super) ns: u64,
    /// The sum of the sizes of the requests, each times its weight.
    pub(super) bytes: u64,
}

impl Sum {
    /// Returns the share of `weight` in this sum, rounded down.
    const fn share(self, weight: u64) -> Self {
        if self.weight == 0 {
            return self;
        }
        let ns = self.ns.saturating_mul(weight) / self.weight;
        let bytes = self.bytes.saturating_mul(weight) / self.weight;
        Self { weight, ns, bytes }
    }

    const fn add(&mut self, other: Self) {
        self.weight += other.weight;
        self.ns = self.ns.saturating_add(other.ns);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// The buckets.
#[derive(Clone, Debug)]
pub(super) struct Buckets([Sum; BUCKETS]);

impl Buckets {
    pub(super) const fn new() -> Self {
        Self([Sum { weight: 0, ns: 0, bytes: 0 }; BUCKETS])
    }

    /// Counts one latency. `predicted_ns` is not 0.
    pub(super) fn count(&mut self, ns: u64, predicted_ns: u64, bytes: u32, weight: u64) {
        debug_assert!(predicted_ns > 0, "a latency is compared with a prediction");
        let bytes = u64::from(bytes) * weight;
        self.0[bucket(ns, predicted_ns)].add(Sum { weight, ns: ns * weight, bytes });
    }

    /// Returns the weight of all.
    pub(super) fn weight(&self) -> u64 {
        self.0.iter().map(|bucket| bucket.weight).sum()
    }

    /// Returns the best `percent` of the latencies, and clears the buckets. Of the bucket that is
    /// only partly among them, the latencies count by their mean.
    pub(super) fn take(&mut self, percent: u64) -> Sum {
        let all = self.weight() * percent / 100;
        let mut best = Sum::default();
        for bucket in core::mem::replace(self, Self::new()).0 {
            let left = all - best.weight;
            best.add(bucket.share(left.min(bucket.weight)));
        }
        best
    }
}

fn bucket(ns: u64, predicted_ns: u64) -> usize {
    let at = if ns < 2 * predicted_ns {
        ns * 20 / predicted_ns
    } else if ns < 5 * predicted_ns {
        ns * 10 / predicted_ns + 20
    } else {
        ns * 3 / predicted_ns + 40
    };
    usize::from(at.to_le_bytes()[0]).min(BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand, for a prediction of 1000 ns: 1999 ns is 39.98 twentieths; 2000 ns begins the second
    /// scale at 40, 4300 ns is at 63, 4999 ns would be at 69; 5000 ns is at 15 + 40; 8000 ns at 64.
    #[test]
    fn a_latency_counts_by_its_ratio_to_the_prediction() {
        let found = [0, 49, 50, 1000, 1999, 2000, 4300, 4999, 5000, 7999, 8000, 71_000]
            .map(|ns| bucket(ns, 1000));
        assert_eq!(found, [0, 0, 1, 20, 39, 40, 63, 63, 55, 63, 63, 63]);
    }

    /// 3 x 72 + 40 = 256, which 8 bits have as 0; 93 times is 319, or 63; 94 times 322, or 66.
    #[test]
    fn an_index_of_8_bits_takes_far_outliers_for_good_ones() {
        assert_eq!([72_000, 80_000, 93_000, 94_000].map(|ns| bucket(ns, 1000)), [0, 24, 63, 63]);
    }

    /// 100 latencies, of which the worst goes: 98 of 1000 ns, and of two of 4000 ns, in bucket 60,
    /// one. So 98 x 1000 + 1 x 4000.
    #[test]
    fn the_worst_hundredth_is_left_out() {
        let mut buckets = Buckets::new();
        buckets.count(1000, 1000, 4096, 98);
        buckets.count(4000, 1000, 8192, 2);
        let best = Sum { weight: 99, ns: 102_000, bytes: 98 * 4096 + 8192 };
        assert_eq!(buckets.take(99), best);
        assert_eq!(buckets.weight(), 0, "they were cleared");
    }

    /// 99 % of one latency is none, in whole numbers.
    #[test]
    fn a_single_latency_counts_only_with_all() {
        for (percent, weight) in [(99, 0), (100, 1)] {
            let mut buckets = Buckets::new();
            buckets.count(1000, 1000, 4096, 1);
            assert_eq!(buckets.take(percent).weight, weight, "{percent} %");
        }
    }
}
