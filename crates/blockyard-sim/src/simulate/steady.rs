//! Decides when the rates of all jobs are known well enough.

use crate::measure::{Interval, JobStats};
use blockyard::time::{Duration, Instant};

/// A rate is known well enough if its interval of 95 % reaches this share of the mean to both sides.
const WITHIN: f64 = 0.01;
/// The fewest batches from which an interval is computed.
const BATCHES_MIN: usize = 20;
/// The most batches. Then two become one, which makes batches more independent of each other.
const BATCHES_MAX: usize = 80;
/// The length of a batch at the start.
const FIRST_BATCH: Duration = Duration::from_us(100_000);

/// Counts I/Os in batches of virtual time. The first quarter of the batches is left out, as a time to warm up.
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

    /// Ends a batch at `now`. `entries` are the measurements with the job of each. Returns whether all rates are known.
    pub(super) fn batch<'a>(
        &mut self,
        now: Instant,
        entries: impl Iterator<Item = (usize, &'a JobStats)>,
    ) -> bool {
        let mut counts: Vec<u64> = Vec::new();
        for (job, stats) in entries {
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
        if self.ends.len() > BATCHES_MAX {
            let mut at = 0;
            self.ends.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.batch = self.batch + self.batch;
        }
        self.next = now + self.batch;
        self.is_steady()
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
        let done = |at: usize, end: usize| ends[end].1.get(at).copied().unwrap_or_default();
        let mut any = false;
        for at in (0..streams).filter(|at| done(*at, ends.len() - 1) > 0) {
            any = true;
            let rate = |end: usize| {
                let ios = done(at, end) - done(at, end - 1);
                ios as f64 / ends[end].0.since(ends[end - 1].0).as_ns().max(1) as f64
            };
            let rates: Vec<f64> = (1..ends.len()).map(rate).collect();
            let Interval { low, mean, high } = Interval::of(&rates);
            if high - low > 2.0 * WITHIN * mean {
                return false;
            }
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Op;

    /// Returns the batches after which jobs with these numbers of I/Os in each batch are steady.
    fn steady_after(ios: impl Fn(u64) -> u64) -> Option<u64> {
        let (mut steady, mut stats) = (Steady::new(), JobStats::new(&[Op::Write]));
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
}
