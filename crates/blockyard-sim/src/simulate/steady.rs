//! Decides when the rates and the 99th percentiles of all jobs are known well enough.

use crate::measure::{Interval, P99_IOS_MIN, p99_ranks};
use blockyard::stats::Histogram;
use blockyard::time::{Duration, Instant};
use blockyard_fio::measure::JobStats;

/// A rate is known well enough if its interval of 95 % reaches this share of the mean to both
/// sides.
const WITHIN: f64 = 0.01;
/// The fewest batches from which an interval is computed.
const BATCHES_MIN: usize = 20;
/// The most batches. Then two become one, which makes batches more independent of each other.
const BATCHES_MAX: usize = 80;
/// The length of a batch at the start.
const FIRST_BATCH: Duration = Duration::from_us(100_000);

/// Counts I/Os in batches of virtual time. The first quarter of the batches is left out, as a time
/// to warm up.
#[derive(Clone, Debug)]
pub(super) struct Steady {
    batch: Duration,
    next: Instant,
    /// The end of each batch, and the I/Os that each job had done by then.
    ends: Vec<(Instant, Vec<u64>)>,
}

impl Steady {
    pub(super) const fn new() -> Self {
        Self { batch: FIRST_BATCH, next: Instant::ZERO, ends: Vec::new() }
    }

    /// Returns when the next batch ends.
    pub(super) const fn next(&self) -> Instant {
        self.next
    }

    /// Whether a batch ends at `now`.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        now >= self.next
    }

    /// Ends a batch at `now`. `entries` are the measurements with the job of each. Returns whether
    /// all rates and 99th percentiles are known, those of syncs too.
    pub(super) fn batch<'a>(
        &mut self,
        now: Instant,
        entries: impl Iterator<Item = (usize, &'a JobStats)> + Clone,
    ) -> bool {
        let mut counts: Vec<u64> = Vec::new();
        for (job, stats) in entries.clone() {
            for (at, of_op) in stats.ops.each().into_iter().enumerate() {
                let Some(measured) = of_op else { continue };
                let place = 3 * job + at;
                counts.resize(counts.len().max(place + 1), 0);
                counts[place] += measured.ios;
            }
        }
        debug_assert!(
            self.ends.last().is_none_or(|(end, _)| *end < now),
            "a batch takes some time"
        );
        self.ends.push((now, counts));
        // Every other end is dropped, so that each batch is twice as long.
        if self.ends.len() > BATCHES_MAX {
            let mut at = 0;
            self.ends.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.batch = self.batch + self.batch;
        }
        self.next = now + self.batch;
        self.is_steady() && entries.map(|(_, stats)| stats).all(are_p99s_known)
    }

    #[expect(
        clippy::float_arithmetic,
        reason = "four operations and a root, which all machines round alike"
    )]
    fn is_steady(&self) -> bool {
        let ends = &self.ends[self.ends.len() / 4..];
        if ends.len() <= BATCHES_MIN {
            return false;
        }
        let streams = ends.last().map_or(0, |(_, counts)| counts.len());
        let mut any = false;
        for stream in (0..streams).filter(|stream| done_of(&ends[ends.len() - 1], *stream) > 0) {
            any = true;
            // Each pair of ends is a batch: 500 I/Os in 100 ms are a rate of 0.000005 a nanosecond.
            let mut rates: Vec<f64> = Vec::with_capacity(ends.len());
            for pair in ends.windows(2) {
                let ios = done_of(&pair[1], stream) - done_of(&pair[0], stream);
                rates.push(ios as f64 / pair[1].0.since(pair[0].0).as_ns().max(1) as f64);
            }
            let Interval { low, mean, high } = Interval::of(&rates);
            if high - low > 2.0 * WITHIN * mean {
                return false;
            }
        }
        any
    }
}

/// Returns the I/Os that a stream had done by the end of a batch.
fn done_of(end: &(Instant, Vec<u64>), stream: usize) -> u64 {
    end.1.get(stream).copied().unwrap_or_default()
}

/// Whether each 99th percentile of an entry is known: of I/Os and of syncs, as far as there are
/// any.
fn are_p99s_known(stats: &JobStats) -> bool {
    let of_ios = stats.measured().map(|measured| &measured.lat_ns);
    let mut all = of_ios.chain(stats.sync_lat_ns.as_deref()).filter(|values| values.count() > 0);
    all.all(is_p99_known)
}

/// Whether the interval that holds the 99th percentile lies within 10 % of it.
fn is_p99_known(values: &Histogram) -> bool {
    let [low, high] = p99_ranks(values.count()).map(|rank| values.percentile(rank));
    let p99 = values.percentile(99_000);
    values.count() >= P99_IOS_MIN && 10 * (p99 - low) <= p99 && 10 * (high - p99) <= p99
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard_fio::job::Op;

    /// Returns the batches after which jobs with these numbers of I/Os in each batch are steady.
    fn steady_after(ios: impl Fn(u64) -> u64) -> Option<u64> {
        let mut steady = Steady::new();
        let mut stats = JobStats::new(&[Op::Write]);
        let mut now = Instant::ZERO;
        for batch in 0..300 {
            assert!(steady.is_due(now));
            if steady.batch(now, [(0, &stats)].into_iter()) {
                return Some(batch);
            }
            let next = steady.next;
            while now < next {
                now = now + FIRST_BATCH;
                stats.op_mut(Op::Write).expect("writes").ios +=
                    ios(now.as_ns() / FIRST_BATCH.as_ns());
            }
        }
        None
    }

    #[test]
    fn a_constant_rate_is_known_as_soon_as_there_are_enough_batches() {
        // Of 27 ends the first 6 are left out: 21 ends, 20 batches. The first end has the number 0.
        assert_eq!(steady_after(|_| 1000), Some(26));
    }

    #[test]
    fn a_rate_that_varies_takes_longer_and_one_that_falls_is_never_known() {
        let varies = steady_after(|batch| 1000 + 400 * (batch % 7 % 2));
        assert!(varies > Some(26), "{varies:?}");
        assert_eq!(steady_after(|batch| 1_000_000 / (1 + batch)), None);
    }

    #[test]
    fn a_job_without_ios_is_not_steady() {
        assert_eq!(steady_after(|_| 0), None);
    }

    /// `--until steady` judged rates only, which are steady at once for a job that is held to one.
    /// What its verdict claims is a p99.
    #[test]
    fn a_p99_that_rests_on_few_ios_is_not_known() {
        let mut stats = JobStats::new(&[Op::Write]);
        fn add(count: u64, ns: u64, stats: &mut JobStats) -> bool {
            let values = &mut stats.op_mut(Op::Write).expect("writes").lat_ns;
            (0..count).for_each(|_| values.record(ns));
            are_p99s_known(stats)
        }
        assert!(!add(999, 1_000_000, &mut stats));
        assert!(add(1, 1_000_000, &mut stats), "1,000 equal ones");
        // One in fifty takes ten times as long. The interval of a thousand begins at the 93rd
        // percentile, before the step.
        assert!(!add(20, 10_000_000, &mut stats));
        // That of 101,020 begins at 98.4 %, behind the step at 98.04 %.
        add(98_000, 1_000_000, &mut stats);
        assert!(add(2_000, 10_000_000, &mut stats), "a hundred thousand");
        let syncs = stats.sync_lat_ns.get_or_insert_default();
        (0..50).for_each(|_| syncs.record(30_000_000));
        assert!(!are_p99s_known(&stats), "50 syncs");
    }
}
