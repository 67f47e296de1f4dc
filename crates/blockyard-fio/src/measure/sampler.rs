//! Samples over time: the work of an instance in each period of its run, as fio samples it.
//!
//! Periods follow each other from the start of measurement; each lasts up to the instant before the
//! next one. A period without work gives no sample; neither does the period in which the run ends.

use crate::job::Op;
use blockyard::time::{Duration, Instant};

/// The unit of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Bytes, in KiB per second.
    KibPerSecond,
    /// I/Os per second.
    PerSecond,
}

/// Samples of one kind of I/O of one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Samples {
    /// The number of samples.
    pub count: u64,
    /// The smallest sample.
    pub min: u64,
    /// The largest sample.
    pub max: u64,
    /// The sum of the samples.
    pub sum: u128,
    /// The sum of the squares of the samples.
    pub(crate) sum_squares: u128,
}

impl Samples {
    const NONE: Self = Self { count: 0, min: u64::MAX, max: 0, sum: 0, sum_squares: 0 };

    fn record(&mut self, value: u64) {
        debug_assert!(self.count == 0 || self.min <= self.max, "samples have a range");
        self.count += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum += u128::from(value);
        self.sum_squares = self.sum_squares.saturating_add(u128::from(value) * u128::from(value));
    }
}

/// A sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The end of its period, from the start of measurement.
    pub at: Duration,
    /// The kind of I/O.
    pub op: Op,
    /// The rate in the sampler's unit.
    pub value: u64,
}

const OPS: [Op; 3] = [Op::Read, Op::Write, Op::Trim];

/// Takes the samples of one instance.
#[derive(Clone, Debug)]
pub(crate) struct Sampler {
    unit: Unit,
    period: Duration,
    from: Instant,
    /// The end of the current period.
    ends: Instant,
    /// The amount done in the current period, for each kind of I/O.
    done: [u64; OPS.len()],
    samples: [Samples; OPS.len()],
}

impl Sampler {
    /// Takes a sample every `period_ms` milliseconds, or none if that is 0.
    #[must_use]
    pub(crate) const fn new(unit: Unit, period_ms: u64) -> Self {
        Self {
            unit,
            period: Duration::from_ms(period_ms),
            from: Instant::ZERO,
            ends: Instant::MAX,
            done: [0; OPS.len()],
            samples: [Samples::NONE; OPS.len()],
        }
    }

    /// Starts measurement at `from`.
    pub(crate) fn begin(&mut self, from: Instant) {
        self.from = from;
        self.ends = if self.period > Duration::ZERO { from + self.period } else { Instant::MAX };
    }

    /// Returns the end of the current period.
    pub(crate) const fn next_at(&self) -> Instant {
        self.ends
    }

    /// Adds `amount` of `op`, after [`Self::next`] has returned every period that ended.
    pub(crate) const fn add(&mut self, op: Op, amount: u64) {
        self.done[op as usize] += amount;
    }

    /// Returns the next sample of a period that has ended at `now`. Call this until it returns
    /// `None` before anything at `now` is added.
    pub(crate) fn next(&mut self, now: Instant) -> Option<Sample> {
        if now < self.ends {
            return None;
        }
        let Some(op) = OPS.into_iter().find(|op| self.done[*op as usize] > 0) else {
            self.skip_to(now);
            return None;
        };
        let done = core::mem::take(&mut self.done[op as usize]);
        let value = self.rate(done);
        self.samples[op as usize].record(value);
        Some(Sample { at: self.ends.since(self.from), op, value })
    }

    /// Returns the samples of `op`; `None` if there are none.
    #[must_use]
    pub(crate) fn of(&self, op: Op) -> Option<Samples> {
        Some(self.samples[op as usize]).filter(|samples| samples.count > 0)
    }

    /// Makes the period of `now` the current one.
    fn skip_to(&mut self, now: Instant) {
        debug_assert!(self.period > Duration::ZERO && now >= self.ends, "a period has ended");
        let period = self.period.as_ns();
        let whole = now.since(self.from).as_ns() / period;
        self.ends = self.from + Duration::from_ns((whole + 1).saturating_mul(period));
    }

    fn rate(&self, done: u64) -> u64 {
        debug_assert!(self.period > Duration::ZERO, "a sampler without period takes no samples");
        let divisor = match self.unit {
            Unit::KibPerSecond => 1024,
            Unit::PerSecond => 1,
        };
        let per_second = u128::from(done) * 1_000_000_000 / u128::from(self.period.as_ns());
        u64::try_from(per_second / divisor).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BEGIN: Instant = Instant::from_ns(7_000_123);

    fn after(us: u64) -> Instant {
        BEGIN + Duration::from_us(us)
    }

    /// Samples of I/Os done at these microseconds, in their order, up to `end`.
    fn samples(unit: Unit, period_ms: u64, done: &[(u64, Op, u64)], end: u64) -> Vec<Sample> {
        let mut sampler = Sampler::new(unit, period_ms);
        sampler.begin(BEGIN);
        let mut all = Vec::new();
        for &(us, op, amount) in done {
            all.extend(core::iter::from_fn(|| sampler.next(after(us))));
            sampler.add(op, amount);
        }
        all.extend(core::iter::from_fn(|| sampler.next(after(end))));
        all
    }

    /// The same by looking at every period.
    fn slowly(unit: Unit, period_ms: u64, done: &[(u64, Op, u64)], end: u64) -> Vec<Sample> {
        let period = period_ms * 1000;
        let mut all = Vec::new();
        for number in 0..end / period {
            for op in OPS {
                let of = done.iter().filter(|(us, kind, _)| *kind == op && us / period == number);
                let amount: u64 = of.map(|(.., amount)| amount).sum();
                let per_second = amount * 1000 / period_ms;
                let value = if unit == Unit::PerSecond { per_second } else { per_second / 1024 };
                if amount > 0 {
                    let at = Duration::from_us((number + 1) * period);
                    all.push(Sample { at, op, value });
                }
            }
        }
        all
    }

    #[test]
    fn an_io_at_the_end_of_a_period_belongs_to_the_next() {
        let done = [(0, Op::Read, 1), (9_999, Op::Read, 1), (10_000, Op::Read, 1)];
        let told = samples(Unit::PerSecond, 10, &done, 20_000);
        assert_eq!(told.iter().map(|sample| sample.value).collect::<Vec<_>>(), [200, 100]);
        assert_eq!(
            samples(Unit::PerSecond, 10, &done, 19_999).len(),
            1,
            "the period in which the run ends gives no sample"
        );
    }

    #[test]
    fn without_a_period_there_are_no_samples() {
        assert_eq!(samples(Unit::PerSecond, 0, &[(5, Op::Read, 1)], 1_000_000), []);
    }

    #[test]
    fn samples_add_up() {
        let mut sampler = Sampler::new(Unit::KibPerSecond, 1);
        sampler.begin(BEGIN);
        for (us, kib) in [(0, 3), (1000, 5), (2500, 4)] {
            while sampler.next(after(us)).is_some() {}
            sampler.add(Op::Write, kib * 1024);
        }
        while sampler.next(after(3000)).is_some() {}
        let expected =
            Samples { count: 3, min: 3000, max: 5000, sum: 12_000, sum_squares: 50_000_000 };
        assert_eq!((sampler.of(Op::Write), sampler.of(Op::Read)), (Some(expected), None));
    }

    proptest! {
        #[test]
        fn agrees_with_looking_at_every_period(
            mut done in proptest::collection::vec((0u64..60_000, 0usize..3, 1u64..1 << 20), 0..60),
            period_ms in 1u64..12,
            rest in 0u64..40_000,
        ) {
            done.sort_unstable();
            let done: Vec<_> = done.into_iter().map(|(us, op, all)| (us, OPS[op], all)).collect();
            let end = done.last().map_or(0, |last| last.0) + rest;
            for unit in [Unit::KibPerSecond, Unit::PerSecond] {
                prop_assert_eq!(
                    samples(unit, period_ms, &done, end),
                    slowly(unit, period_ms, &done, end)
                );
            }
        }
    }
}
