//! Rates and depths over time, sampled in virtual time.
//!
//! When there are `SAMPLES_MAX`, the period becomes longer and about half of them are dropped, so
//! that the rest is evenly spread over the run.

use crate::world::Load;
use blockyard::time::{Duration, Instant};
use serde::{Deserialize, Serialize};

use blockyard_fio::job::Op;
use blockyard_fio::measure::{JobStats, per_second};

/// The largest number of samples in a series.
pub(crate) const SAMPLES_MAX: usize = 128;
/// The period at the start.
const FIRST_PERIOD: Duration = Duration::from_us(100);

/// Samples over time. All lists that are not empty are equally long. A rate is the mean since the
/// previous sample.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Series {
    /// The instant of each sample, in nanoseconds of virtual time, ramp time included.
    pub at_ns: Vec<u64>,
    /// Reads that ended. Here and below, I/Os that ended during the ramp time are not counted.
    pub read: RateSeries,
    /// Writes that ended.
    pub write: RateSeries,
    /// Discards that ended.
    pub trim: RateSeries,
    /// I/Os that jobs had submitted and not reaped at that instant.
    pub depth: Vec<u64>,
    /// Requests in the driver at that instant.
    pub in_flight: Vec<u64>,
    /// Dirty pages and pages under writeback at that instant, in bytes; empty if no job writes
    /// through the page cache.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dirty_bytes: Vec<u64>,
}

/// The rates of one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RateSeries {
    /// I/Os per second.
    pub iops: Vec<u64>,
    /// Bytes per second.
    pub bytes_per_s: Vec<u64>,
}

/// The state of a run at an instant: counts since its start, and depths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Point {
    at_ns: u64,
    /// I/Os and bytes that ended, for reads, writes and discards.
    ended: [(u64, u64); Op::ALL.len()],
    load: Load,
}

/// Takes the samples of a run.
#[derive(Clone, Debug)]
pub(crate) struct SeriesSampler {
    period: Duration,
    next: Instant,
    points: Vec<Point>,
}

impl Default for SeriesSampler {
    fn default() -> Self {
        Self { period: FIRST_PERIOD, next: Instant::ZERO + FIRST_PERIOD, points: Vec::new() }
    }
}

impl SeriesSampler {
    /// Returns when the next sample is due.
    #[must_use]
    pub(crate) const fn next(&self) -> Instant {
        self.next
    }

    /// Whether a sample is due at `now`.
    #[must_use]
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        now >= self.next
    }

    /// Takes a sample of `load` at `now`, when one is due. `stats` are those of all jobs so far.
    pub(crate) fn sample<'a>(
        &mut self,
        now: Instant,
        stats: impl Iterator<Item = &'a JobStats>,
        load: Load,
    ) {
        assert!(self.is_due(now), "a sample is taken when it is due");
        let mut ended = [(0, 0); Op::ALL.len()];
        for stats in stats {
            for (op, (ios, bytes)) in Op::ALL.into_iter().zip(&mut ended) {
                let measured = stats.ops.of(op).as_deref();
                *ios += measured.map_or(0, |measured| measured.ios);
                *bytes += measured.map_or(0, |measured| measured.bytes);
            }
        }
        self.points.push(Point { at_ns: now.as_ns(), ended, load });
        if self.points.len() >= SAMPLES_MAX {
            self.thin_out(now);
        }
        self.next = now + self.period;
        debug_assert!(self.points.len() < SAMPLES_MAX, "there is room for the next sample");
    }

    /// Makes the period so long that half of [`SAMPLES_MAX`] reach until `now`, and drops samples
    /// that are closer.
    fn thin_out(&mut self, now: Instant) {
        debug_assert_eq!(self.points.len(), SAMPLES_MAX, "samples are dropped once all have come");
        let half = Duration::from_ns(now.as_ns() / (SAMPLES_MAX as u64 / 2));
        self.period = (self.period + self.period).max(half);
        let mut due_ns = 0;
        self.points.retain(|point| {
            let is_kept = point.at_ns >= due_ns;
            if is_kept {
                due_ns = point.at_ns.saturating_add(self.period.as_ns());
            }
            is_kept
        });
    }

    /// Returns the samples.
    #[must_use]
    pub(crate) fn series(&self) -> Series {
        debug_assert!(self.points.is_sorted_by(|a, b| a.at_ns < b.at_ns), "time passes");
        let mut series = Series::default();
        let mut before = Point::default();
        for point in &self.points {
            let span_ns = point.at_ns - before.at_ns;
            let rates = [&mut series.read, &mut series.write, &mut series.trim];
            for (at, rate) in rates.into_iter().enumerate() {
                let (ios, bytes) = point.ended[at];
                let (ios_before, bytes_before) = before.ended[at];
                rate.iops.push(per_second(added(ios, ios_before), span_ns));
                rate.bytes_per_s.push(per_second(added(bytes, bytes_before), span_ns));
            }
            series.at_ns.push(point.at_ns);
            series.depth.push(point.load.depth);
            series.in_flight.push(point.load.in_flight);
            series.dirty_bytes.extend(point.load.dirty_bytes);
            before = *point;
        }
        series
    }
}

/// Returns what was added to a count since it was `before`: all of it if a job has begun to count
/// anew.
const fn added(count: u64, before: u64) -> u64 {
    if count < before { count } else { count - before }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sampler after `samples` samples of jobs that read 4 KiB every 50 us.
    fn sampled(samples: u64) -> SeriesSampler {
        let mut sampler = SeriesSampler::default();
        let mut stats = JobStats::new(&[Op::Read]);
        let mut now = Instant::ZERO;
        let mut taken = 0;
        while taken < samples {
            now = now + Duration::from_us(50);
            let measured = stats.op_mut(Op::Read).expect("the job reads");
            (measured.ios, measured.bytes) = (measured.ios + 1, measured.bytes + 4096);
            if sampler.is_due(now) {
                let load = Load { depth: 7, in_flight: 3, dirty_bytes: Some(taken << 12) };
                sampler.sample(now, [&stats].into_iter(), load);
                taken += 1;
            }
        }
        sampler
    }

    #[test]
    fn a_long_run_has_as_many_samples_as_a_short_one() {
        let short = sampled(100).series();
        let long = sampled(1000).series();
        assert_eq!(short.at_ns.len(), 100);
        assert!((SAMPLES_MAX / 2..SAMPLES_MAX).contains(&long.at_ns.len()), "{long:?}");
    }

    /// A slow device has few events, so its first samples are farther apart than the period.
    #[test]
    fn samples_of_a_slow_device_are_evenly_spread() {
        let mut sampler = SeriesSampler::default();
        let stats = JobStats::new(&[Op::Read]);
        for nth in 1..=1000 {
            let now = Instant::from_ns(nth * 25_000_000);
            if sampler.is_due(now) {
                sampler.sample(now, [&stats].into_iter(), Load::default());
            }
        }
        assert!(sampler.series().dirty_bytes.is_empty());
        let at_ns = sampler.series().at_ns;
        let gaps: Vec<_> = at_ns.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let shortest = gaps.iter().min().unwrap();
        let longest = gaps.iter().max().unwrap();
        assert!(longest <= &(2 * shortest), "{at_ns:?}");
        assert!(at_ns[0] <= 2 * longest, "{at_ns:?}");
    }

    #[test]
    fn dropping_samples_loses_no_io() {
        let series = sampled(1000).series();
        assert!(series.read.iops.iter().all(|iops| *iops == 20_000), "{:?}", series.read);
        assert!(series.read.bytes_per_s.iter().all(|rate| *rate == 20_000 * 4096));
        assert!(series.write.iops.iter().all(|iops| *iops == 0));
        assert!(series.depth.iter().all(|depth| *depth == 7));
        assert!(series.dirty_bytes.is_sorted() && series.dirty_bytes.len() == series.at_ns.len());
    }
}
