//! Runs with several seeds: an interval of the ratio of two designs.

use super::EQUAL_WITHIN;
use crate::answer::Figures;
use crate::job::JobFile;
use crate::parallel::each;
use crate::profile::{Design, Device};
use crate::simulate::{Conditions, Simulation, SimulationError};
use serde::Serialize;

/// What runs with several seeds say of the designs.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Seeds {
    /// The number of seeds, from the seed of the answer on.
    pub count: u32,
    /// Each design but the first, compared with the first.
    pub comparisons: Vec<Comparison>,
}

/// A design compared with the first, seed by seed.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// The design.
    pub design: String,
    /// The ratio of its IOPS to those of the first design.
    pub ratio: Interval,
    /// What follows.
    pub verdict: Verdict,
}

/// An interval that holds the mean over all seeds in 95 of 100 cases, if ratios are normally distributed.
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

/// Whether a design is faster than another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// By more than 2 %.
    Faster,
    /// By more than 2 %.
    Slower,
    /// Within 2 %.
    Equal,
    /// The interval holds more than one of these.
    Undecided,
}

/// The quantile of 97.5 % of Student's distribution for 1 to 30 degrees of freedom; beyond, the last is on the safe side.
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

    /// What the interval of a ratio says.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let (below, above) = (1.0 - EQUAL_WITHIN, 1.0 + EQUAL_WITHIN);
        match *self {
            Self { low, .. } if low > above => Verdict::Faster,
            Self { high, .. } if high < below => Verdict::Slower,
            Self { low, high, .. } if low >= below && high <= above => Verdict::Equal,
            _ => Verdict::Undecided,
        }
    }
}

/// Runs `jobs` on `device` under each of `designs` with `count` seeds, from that of `conditions` on.
///
/// # Errors
///
/// The first [`SimulationError`], in the order of seeds and designs.
///
/// # Panics
///
/// If there are fewer than two seeds.
pub fn seeds(
    jobs: &JobFile,
    device: &Device,
    designs: &[Design],
    conditions: &Conditions<'_>,
    count: u32,
) -> Result<Seeds, SimulationError> {
    assert!(count > 1, "an interval needs two seeds");
    let runs: Vec<_> =
        (0..count).flat_map(|nth| designs.iter().map(move |design| (nth, design))).collect();
    let iops = each(&runs, |(nth, design)| {
        let conditions =
            Conditions { seed: conditions.seed.wrapping_add(u64::from(*nth)), ..*conditions };
        iops(jobs, device, design, conditions)
    });
    let iops: Vec<f64> = iops.into_iter().collect::<Result<_, _>>()?;
    let by_seed: Vec<_> = iops.chunks(designs.len()).collect();
    let compared = |at: usize| {
        let ratios: Vec<f64> = by_seed.iter().map(|of| ratio(of[at], of[0])).collect();
        let ratio = Interval::of(&ratios);
        Comparison { design: designs[at].name.clone(), ratio, verdict: ratio.verdict() }
    };
    Ok(Seeds { count, comparisons: (1..designs.len()).map(compared).collect() })
}

/// Returns the IOPS of one run.
pub(super) fn iops(
    jobs: &JobFile,
    device: &Device,
    design: &Design,
    conditions: Conditions<'_>,
) -> Result<f64, SimulationError> {
    let report = Simulation::under(jobs, device, design, conditions)?.finish()?;
    let instances = jobs.jobs.iter().map(|job| job.numjobs).sum();
    Ok(Figures::of(&report, instances).iops)
}

/// The ratio of two rates; of two that are 0, it is 1.
#[expect(clippy::float_arithmetic, reason = "one division")]
pub(super) fn ratio(of: f64, to: f64) -> f64 {
    if of == to { 1.0 } else { of / to }
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

    #[test]
    fn a_verdict_needs_the_whole_interval() {
        let verdict = |low, high| Interval { low, mean: 1.0, high }.verdict();
        assert_eq!(verdict(1.021, 1.5), Verdict::Faster);
        assert_eq!(verdict(1.02, 1.5), Verdict::Undecided);
        assert_eq!(verdict(0.5, 0.979), Verdict::Slower);
        assert_eq!(verdict(0.5, 0.98), Verdict::Undecided);
        assert_eq!(verdict(0.98, 1.02), Verdict::Equal);
        assert_eq!(verdict(0.97, 1.01), Verdict::Undecided);
    }
}
