//! The latency model of a kind of requests: a base, and a slope for each KiB above 4 KiB.
//!
//! Requests of at most 4 KiB teach the base, larger ones the slope, once there is a base. The base
//! is the mean latency of the small ones. The slope is what the large ones take beyond the base,
//! for each KiB of them. An update subtracts the base once, and not for each request: 1000 requests
//! of 8 KiB that take 120 us each, over a base of 100 us, make a slope of 119.9 ms / 8000 KiB, or
//! 14.99 us for each KiB, by which 8 KiB is predicted as 159.95 us. Version 3.1.9 of ADIOS counts
//! so, and 3.2.0.

use super::buckets::Buckets;
use crate::policy::{AdiosModel, AdiosTunables};
use crate::time::{Duration, Instant};

/// The largest size of a small request, in bytes.
const SMALL_BYTES: u32 = 4096;
/// The longest prediction, 18 minutes: those of a million requests have a sum below 2^64.
const PREDICTED_MAX_NS: u64 = 1 << 40;
/// Latencies of one size that make an update without waiting for [`INTERVAL`].
const MANY: u64 = 1024;
/// The time after which few latencies are enough for an update.
const INTERVAL: Duration = Duration::from_ms(1500);
/// The percentage of the latencies that an update uses; the first uses all.
const USED_PERCENT: u64 = 99;

/// When a model begins to forget: see [`AdiosTunables`].
#[derive(Clone, Copy, Debug)]
struct Forgets {
    /// Small requests in the mean, by weight.
    requests: u64,
    /// Bytes of large requests.
    bytes: u64,
    /// Of what is known, one in two to this power goes.
    shift: u32,
}

/// The model of one kind.
#[derive(Clone, Debug)]
pub(super) struct Model {
    base_ns: u64,
    /// For each KiB.
    slope_ns: u64,
    /// What the means are made of.
    small_ns: u64,
    small_count: u64,
    large_ns: u64,
    large_bytes: u64,
    /// Latencies since the last update.
    small: Buckets,
    large: Buckets,
    updated_at: Instant,
    forgets: Forgets,
}

impl Model {
    /// Returns a model that begins with `known`, as if it were one latency of each size.
    pub(super) const fn new(known: AdiosModel, tunables: &AdiosTunables) -> Self {
        let [base_ns, slope_ns] = [known.base.as_ns(), known.slope.as_ns()];
        let is_known = base_ns > 0 || slope_ns > 0;
        Self {
            base_ns,
            slope_ns,
            small_ns: base_ns,
            small_count: is_known as u64,
            large_ns: slope_ns,
            large_bytes: if is_known { 1024 } else { 0 },
            small: Buckets::new(),
            large: Buckets::new(),
            updated_at: Instant::ZERO,
            forgets: Forgets {
                requests: 1000 * tunables.shrink_at_kreqs as u64,
                bytes: (tunables.shrink_at_gbytes as u64) << 30,
                shift: tunables.shrink_resist,
            },
        }
    }

    /// Whether the model has a base.
    pub(super) const fn is_known(&self) -> bool {
        self.base_ns > 0
    }

    /// Returns how long a request of `bytes` will take, in ns; 0 while nothing is known.
    pub(super) fn predict_ns(&self, bytes: u32) -> u64 {
        let beyond_kib = bytes.saturating_sub(SMALL_BYTES).div_ceil(1024);
        let all = self.base_ns.saturating_add(self.slope_ns.saturating_mul(beyond_kib.into()));
        all.min(PREDICTED_MAX_NS)
    }

    /// Notes that a request of `bytes` took `ns`, which was predicted as `predicted_ns`. The first
    /// small one is the base at once.
    pub(super) fn learn(
        &mut self,
        bytes: u32,
        ns: u64,
        predicted_ns: u64,
        weight: u64,
        now: Instant,
    ) {
        debug_assert!(weight > 0, "a latency that does not count");
        if bytes <= SMALL_BYTES {
            self.small.count(ns, self.base_ns.max(1), bytes, weight);
            if !self.is_known() {
                self.update(now);
            }
        } else if self.is_known() && predicted_ns > 0 {
            self.large.count(ns, predicted_ns, bytes, weight);
        }
    }

    /// Updates base and slope from the latencies since the last time, if they are many, or
    /// [`INTERVAL`] has passed.
    pub(super) fn update(&mut self, now: Instant) {
        let is_time = !self.is_known() || self.updated_at + INTERVAL <= now;
        let of_small = self.small.weight();
        let of_large = self.large.weight();
        let with_small = of_small > 0 && (is_time || of_small >= MANY) && self.take_small();
        let is_first = self.slope_ns == 0;
        let with_large =
            of_large > 0 && (is_time || is_first || of_large >= MANY) && self.take_large();
        // The large ones were over the base from before.
        if with_small {
            self.base_ns = self.small_ns / self.small_count;
        }
        if with_large {
            self.slope_ns = self.large_ns / self.large_bytes.div_ceil(1024);
        }
        if is_time || with_small || with_large {
            self.updated_at = now;
        }
    }

    /// Adds the small ones to what is known. Returns whether there were any.
    fn take_small(&mut self) -> bool {
        let percent = if self.is_known() { USED_PERCENT } else { 100 };
        let best = self.small.take(percent);
        if self.small_count >= self.forgets.requests {
            self.small_ns -= self.small_ns >> self.forgets.shift;
            self.small_count -= self.small_count >> self.forgets.shift;
        }
        self.small_ns += best.ns;
        self.small_count += best.weight;
        best.weight > 0
    }

    /// Adds the large ones to what is known. Returns whether there were any.
    fn take_large(&mut self) -> bool {
        let percent = if self.slope_ns == 0 { 100 } else { USED_PERCENT };
        let best = self.large.take(percent);
        if best.weight == 0 {
            return false;
        }
        if self.large_bytes >= self.forgets.bytes {
            self.large_ns -= self.large_ns >> self.forgets.shift;
            self.large_bytes -= self.large_bytes >> self.forgets.shift;
        }
        // What does not exceed the base counts whole, as in ADIOS.
        let beyond_ns = if best.ns > self.base_ns { best.ns - self.base_ns } else { best.ns };
        self.large_ns += beyond_ns;
        self.large_bytes += best.bytes;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(tunables: AdiosTunables) -> Model {
        Model::new(AdiosModel::UNKNOWN, &tunables)
    }

    fn at_ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_ms(ms)
    }

    /// By hand: 4 KiB in 100 us is the base. 12 KiB in 140 us, 40 us beyond it, is 40 us / 12 KiB,
    /// or 3333 ns for each KiB. So 12 KiB is predicted as 100 us + 8 x 3333 ns.
    #[test]
    fn two_sizes_teach_a_base_and_a_slope() {
        let mut model = model(AdiosTunables::default());
        assert_eq!([4096, 1 << 20].map(|bytes| model.predict_ns(bytes)), [0, 0]);
        model.learn(12_288, 140_000, 0, 1, at_ms(0)); // without a base it teaches nothing
        model.learn(4096, 100_000, 0, 1, at_ms(0));
        assert_eq!([512, 4096, 1 << 20].map(|bytes| model.predict_ns(bytes)), [100_000; 3]);
        model.learn(12_288, 140_000, 100_000, 1, at_ms(1));
        model.update(at_ms(101));
        let predicted = [4096, 4097, 12_288].map(|bytes| model.predict_ns(bytes));
        assert_eq!(predicted, [100_000, 103_333, 126_664]);
    }

    /// 1000 requests of 8 KiB that take 120 us: (120 ms - 100 us) / 8000 KiB = 14987 ns, because
    /// the base is subtracted once.
    #[test]
    fn an_update_subtracts_the_base_once() {
        let mut model = model(AdiosTunables::default());
        model.learn(4096, 100_000, 0, 1, at_ms(0));
        for _ in 0..1000 {
            model.learn(8192, 120_000, 100_000, 1, at_ms(1));
        }
        model.update(at_ms(101));
        assert_eq!(model.predict_ns(8192), 100_000 + 4 * 14_987);
    }

    /// 1023 latencies wait until 1500 ms have passed since the last update; 1024 do not. Of 1023,
    /// 1012 count: (100 us + 1012 x 200 us) / 1013 = 199901 ns. Of 1024, 1013: 199901 ns, too.
    #[test]
    fn few_latencies_wait_for_their_time() {
        for (count, ms, base_ns) in
            [(1023, 1499, 100_000), (1023, 1500, 199_901), (1024, 1, 199_901)]
        {
            let mut model = model(AdiosTunables::default());
            model.learn(4096, 100_000, 0, 1, at_ms(0));
            for _ in 0..count {
                model.learn(4096, 200_000, 100_000, 1, at_ms(0));
            }
            model.update(at_ms(ms));
            assert_eq!(model.predict_ns(4096), base_ns, "{count} after {ms} ms");
        }
    }

    /// 1014 requests of 100 us are known, which are over the 1000 of the tunable: a quarter is
    /// forgotten, 253 of them and 25.35 ms. With 1013 of 200 us: (76.05 + 202.6) ms / 1774.
    #[test]
    fn a_model_that_knows_much_forgets_a_quarter() {
        for (shrink_at_kreqs, base_ns) in [(1, 278_650_000 / 1774), (2, 304_000_000 / 2027)] {
            let mut model = model(AdiosTunables { shrink_at_kreqs, ..AdiosTunables::default() });
            model.learn(4096, 100_000, 0, 1, at_ms(0));
            for us in [100_000, 200_000] {
                for _ in 0..1024 {
                    model.learn(4096, us, 0, 1, at_ms(0));
                }
                model.update(at_ms(1));
            }
            assert_eq!(model.predict_ns(4096), base_ns, "from {shrink_at_kreqs} thousand on");
        }
    }

    /// A model that is given counts as one request of each size: (100 + 200) us / 2. Of two more,
    /// 99 % is one.
    #[test]
    fn a_given_model_counts_as_one_request() {
        let given = AdiosModel { base: Duration::from_us(100), slope: Duration::from_us(1) };
        let mut model = Model::new(given, &AdiosTunables::default());
        assert_eq!(model.predict_ns(8192), 104_000);
        for _ in 0..2 {
            model.learn(4096, 200_000, 100_000, 1, at_ms(0));
        }
        model.update(at_ms(1500));
        assert_eq!(model.predict_ns(4096), 150_000);
    }
}
