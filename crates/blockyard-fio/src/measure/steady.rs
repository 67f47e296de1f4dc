//! The steady state of a job: the figure that it watches, once every interval.
//!
//! As in fio, a window of samples is steady if each sample is near their mean, or if a line through
//! them is nearly level. All numbers are whole, so that every machine stops a job at the same
//! instant.

use super::JobStats;
use crate::job::{Steady, SteadyCriterion, SteadyState};
use std::collections::VecDeque;

/// The default of fio: IOPS that do not differ at all, which is never reached.
const DEFAULT: SteadyCriterion =
    SteadyCriterion { of: Steady::Iops, slope: false, limit_millionths: 0, percent: false };

/// One sample of each figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SteadySample {
    /// I/Os per second.
    pub iops: u64,
    /// Bytes per second.
    pub bytes_per_s: u64,
    /// Mean completion latency, ns.
    pub latency_ns: u64,
}

/// The watch for a steady state of one entry of a report.
#[derive(Clone, Debug)]
pub struct SteadyWatch {
    /// The criterion.
    pub(crate) criterion: SteadyCriterion,
    /// The options.
    pub options: SteadyState,
    /// The latest samples, at most a window of them.
    pub samples: VecDeque<SteadySample>,
    /// Whether the state was reached.
    pub attained: bool,
    window: usize,
    before: Option<Counts>,
    idle: usize,
}

/// Counts of an entry: I/Os, bytes and completion latencies in ns, all summed up.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    ios: u64,
    bytes: u64,
    latency_ns: u128,
}

impl Counts {
    fn of(stats: &JobStats) -> Self {
        stats.measured().fold(Self::default(), |sum, measured| Self {
            ios: sum.ios + measured.ios,
            bytes: sum.bytes + measured.bytes,
            latency_ns: sum.latency_ns + measured.clat_ns.sum(),
        })
    }
}

/// The worst deviation or the slope of a window, as a fraction of whole numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fraction {
    /// Above the line; not negative.
    pub(crate) numerator: u128,
    /// Below the line; above 0.
    pub(crate) denominator: u128,
}

impl SteadyWatch {
    /// Returns a watch with the options `steady`; `None` if the job does not look for a steady
    /// state.
    #[must_use]
    pub fn new(steady: &SteadyState) -> Option<Self> {
        let window = usize::try_from(steady.samples()?).unwrap_or(usize::MAX);
        Some(Self {
            criterion: steady.criterion.unwrap_or(DEFAULT),
            options: *steady,
            samples: VecDeque::new(),
            attained: false,
            window,
            before: None,
            idle: 0,
        })
    }

    /// Whether a further sample can matter: the state is not reached, and the job was not idle for
    /// a whole window.
    #[must_use]
    pub const fn goes_on(&self) -> bool {
        !self.attained && self.idle <= self.window
    }

    /// Takes a sample of `stats` at the end of an interval; the first call only begins the first
    /// interval.
    pub fn look(&mut self, stats: &JobStats) {
        let now = Counts::of(stats);
        let Some(before) = self.before.replace(now) else { return };
        let ios = now.ios.saturating_sub(before.ios);
        let latency_ns = now.latency_ns.saturating_sub(before.latency_ns);
        let interval_ns = self.options.interval_ns;
        let sample = SteadySample {
            iops: super::per_second(ios, interval_ns),
            bytes_per_s: super::per_second(now.bytes.saturating_sub(before.bytes), interval_ns),
            latency_ns: u64::try_from(latency_ns.checked_div(ios.into()).unwrap_or(0))
                .unwrap_or(u64::MAX),
        };
        self.idle = if ios == 0 { self.idle + 1 } else { 0 };
        debug_assert!(self.samples.len() <= self.window, "at most a window is kept");
        if self.samples.len() == self.window {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
        self.attained = self.samples.len() == self.window && self.is_steady();
    }

    fn values(&self) -> impl Iterator<Item = u128> {
        let of = self.criterion.of;
        self.samples.iter().map(move |sample| {
            u128::from(match of {
                Steady::Iops => sample.iops,
                Steady::Bandwidth => sample.bytes_per_s,
                Steady::Latency => sample.latency_ns,
            })
        })
    }

    /// Returns the worst deviation from the mean, or the slope per interval without its sign.
    #[must_use]
    pub(crate) fn worst(&self) -> Option<Fraction> {
        let count = self.samples.len() as u128;
        let sum: u128 = self.values().sum();
        if count == 0 {
            return None;
        }
        if !self.criterion.slope {
            let numerator = self.values().map(|value| (count * value).abs_diff(sum)).max()?;
            return Some(Fraction { numerator, denominator: count });
        }
        // The least squares slope over 0, 1, 2 ...
        let sum_x = count * (count - 1) / 2;
        let sum_xx = (count - 1) * count * (2 * count - 1) / 6;
        let sum_xy: u128 = (0_u128..).zip(self.values()).map(|(x, y)| x * y).sum();
        let denominator = count * sum_xx - sum_x * sum_x;
        Some(Fraction {
            numerator: (count * sum_xy).abs_diff(sum_x * sum),
            denominator: denominator.max(1),
        })
    }

    /// Whether the worst deviation or the slope is below the limit.
    fn is_steady(&self) -> bool {
        const MILLION: u128 = 1_000_000;
        let Some(Fraction { numerator, denominator }) = self.worst() else { return false };
        let limit = u128::from(self.criterion.limit_millionths);
        let count = self.samples.len() as u128;
        let sum: u128 = self.values().sum();
        if self.criterion.percent {
            // 100 * worst / (sum / count) < limit / million
            let left = numerator.saturating_mul(100 * MILLION).saturating_mul(count);
            left < limit.saturating_mul(sum).saturating_mul(denominator)
        } else {
            numerator.saturating_mul(MILLION) < limit.saturating_mul(denominator)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Op;

    fn watch(slope: bool, limit_millionths: u64, percent: bool, window_s: u64) -> SteadyWatch {
        let criterion = SteadyCriterion { of: Steady::Iops, slope, limit_millionths, percent };
        SteadyWatch::new(&SteadyState {
            criterion: Some(criterion),
            window_ns: window_s * 1_000_000_000,
            ramp_ns: 0,
            interval_ns: 1_000_000_000,
        })
        .unwrap()
    }

    /// Feeds intervals with these numbers of I/Os. Returns the number after which the state was
    /// reached.
    fn reached(mut watch: SteadyWatch, ios: &[u64]) -> Option<usize> {
        let mut stats = JobStats::new(&[Op::Read]);
        watch.look(&stats);
        ios.iter().position(|ios| {
            stats.op_mut(Op::Read).unwrap().ios += ios;
            watch.look(&stats);
            watch.attained
        })
    }

    #[test]
    fn samples_near_their_mean_are_steady() {
        let ios = [1000, 500, 90, 110, 100, 100];
        assert_eq!(reached(watch(false, 10_100_000, true, 3), &ios), Some(4), "10 % of the mean");
        assert_eq!(reached(watch(false, 9_900_000, true, 3), &ios), Some(5));
        assert_eq!(reached(watch(false, 11_000_000, false, 3), &ios), Some(4), "11 IOPS");
        assert_eq!(reached(watch(false, 10_000_000, false, 3), &ios), Some(5), "not below 10");
        assert_eq!(reached(watch(false, 0, false, 3), &ios), None);
    }

    #[test]
    fn samples_on_a_level_line_are_steady() {
        // The slope is -10 per interval, and then 0; both have a mean near 100.
        let ios = [120, 110, 100, 90, 100, 90];
        assert_eq!(reached(watch(true, 9_000_000, true, 3), &ios), Some(4));
        assert_eq!(reached(watch(true, 11_000_000, false, 3), &ios), Some(2));
    }

    #[test]
    fn an_idle_job_is_not_steady_and_ends_the_watch() {
        let mut idle = watch(false, 50_000_000, true, 2);
        let stats = JobStats::new(&[Op::Read]);
        (0..3).for_each(|_| idle.look(&stats));
        assert!(!idle.attained && idle.goes_on());
        idle.look(&stats);
        assert!(!idle.goes_on());
    }
}
