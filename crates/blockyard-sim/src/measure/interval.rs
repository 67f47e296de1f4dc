//! Intervals of means, from samples.

use blockyard::stats::Histogram;
use serde::Serialize;

/// An interval that holds the mean of a random number in 95 of 100 cases, if it is normally
/// distributed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The mean of the runs.
    pub mean: f64,
    /// The upper end.
    pub high: f64,
}

/// The quantile of 97.5 % of Student's distribution for 1 to 30 degrees of freedom; beyond, the
/// last is on the safe side.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

#[expect(
    clippy::float_arithmetic,
    reason = "only the four operations and the root, which all machines round alike"
)]
impl Interval {
    /// The interval of the mean of `values`, of which there must be at least two.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        debug_assert!(values.len() > 1, "an interval of {} values", values.len());
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>();
        let deviation = (squares / (count - 1.0) / count).sqrt();
        let student = STUDENT[(values.len() - 2).min(STUDENT.len() - 1)];
        Self { low: mean - student * deviation, mean, high: mean + student * deviation }
    }
}

/// The smallest number of I/Os whose 99th percentile is judged: of 320, three decide it.
pub const P99_IOS_MIN: u64 = 1000;

/// Returns the ranks, in thousandths of a percent, between which the 99th percentile of `count`
/// I/Os lies in 95 of 100 cases. A hundred I/Os in a row count as one, because they often wait for
/// the same cause.
///
/// Of 100,000 I/Os, a thousand count: their 99th percentile lies within 0.62 percent points of 99
/// %, 1.96 standard deviations of the binomial distribution. Of 1,000, ten count: it lies between
/// the 93rd percentile and the maximum.
#[must_use]
pub fn p99_ranks(count: u64) -> [u32; 2] {
    const P99: u32 = 99_000;
    /// The square of 1.96 deviations of one I/O, for ranks in thousandths of a percent: 3.8416 *
    /// 0.99 * 0.01 * 10^10.
    const SQUARE: u64 = 380_318_400;
    let independent = (count / 100).max(1);
    let half = u32::try_from((SQUARE / independent).isqrt()).expect("a share of 19,501 at most");
    debug_assert!(half < P99, "a rank above 0");
    [P99 - half, (P99 + half).min(Histogram::WHOLE)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_that_of_students_distribution() {
        // By hand: mean 3, deviation of the mean sqrt(2.5 / 5), quantile 2.776.
        let Interval { low, mean, high } = Interval::of(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(mean, 3.0);
        assert!((low - 1.0371).abs() < 0.001 && (high - 4.9629).abs() < 0.001, "{low} {high}");
        let same = Interval::of(&[1.5; 40]);
        assert_eq!((same.low, same.high), (1.5, 1.5));
    }
}
