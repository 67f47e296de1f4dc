//! Runs with several seeds: an interval of the ratio of two designs.

use super::question::{GoalsMet, Question, Run};
use crate::answer::Answer;
use crate::answer::equality::EQUAL_WITHIN;
use crate::measure::Interval;
use crate::parallel::each;
use crate::simulate::SimulationError;
use serde::Serialize;

/// What runs with several seeds say of the designs.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Seeds {
    /// The number of seeds, from the seed of the answer on.
    pub count: u32,
    /// For each job and direction, each design but the first, compared with the first.
    pub comparisons: Vec<Comparison>,
    /// With how many seeds each design meets all goals, if there are goals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goals: Vec<GoalsMet>,
}

/// A design compared with the first for one job, seed by seed.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// The job, and its direction if it has several; empty if there is one job and direction.
    pub job: String,
    /// The design.
    pub design: String,
    /// The ratio of the job's IOPS to those under the first design.
    pub ratio: Interval,
    /// What follows.
    pub verdict: Verdict,
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

impl Verdict {
    /// What the interval of a ratio says.
    #[expect(clippy::float_arithmetic, reason = "the bounds of equality")]
    #[must_use]
    pub fn of(ratio: Interval) -> Self {
        let (below, above) = (1.0 - EQUAL_WITHIN, 1.0 + EQUAL_WITHIN);
        match ratio {
            Interval { low, .. } if low > above => Self::Faster,
            Interval { high, .. } if high < below => Self::Slower,
            Interval { low, high, .. } if low >= below && high <= above => Self::Equal,
            _ => Self::Undecided,
        }
    }
}

/// Asks `question` with `count` seeds, from its own on. `answer` is that with the first seed, which is not asked again.
pub(super) fn seeds(
    question: Question<'_>,
    answer: &Answer,
    count: u32,
    ended: impl Fn() + Sync,
) -> Result<Seeds, SimulationError> {
    debug_assert!(count > 1, "an interval needs two seeds");
    let (designs, stated) = (question.designs, &answer.verdict);
    let runs: Vec<_> =
        (1..count).flat_map(|nth| designs.iter().map(move |design| (nth, design))).collect();
    let found = each(&runs, |(nth, design)| {
        let seed = question.conditions.seed.wrapping_add(u64::from(*nth));
        let run = question.run(question.device, design, seed);
        ended();
        run
    });
    let found: Vec<Run> = found.into_iter().collect::<Result<_, _>>()?;
    let first = (0..designs.len()).map(|at| Run {
        iops: stated.rates(at),
        meets: answer.goals.iter().all(|goal| goal.designs[at].met),
    });
    let first: Vec<_> = first.collect();
    let by_seed: Vec<_> =
        [first.as_slice()].into_iter().chain(found.chunks(designs.len())).collect();
    let compared = |row: usize, at: usize| {
        let ratios: Vec<f64> =
            by_seed.iter().map(|of| ratio(of[at].iops[row], of[0].iops[row])).collect();
        let ratio = Interval::of(&ratios);
        let (job, design) = (stated.rows[row].label.clone(), designs[at].name.clone());
        Comparison { job, design, ratio, verdict: Verdict::of(ratio) }
    };
    let rows = 0..stated.rows.len();
    let comparisons = rows.flat_map(|row| (1..designs.len()).map(move |at| (row, at)));
    let comparisons = comparisons.map(|(row, at)| compared(row, at)).collect();
    Ok(Seeds { count, comparisons, goals: question.goals_met(&by_seed) })
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
    fn a_verdict_needs_the_whole_interval() {
        let verdict = |low, high| Verdict::of(Interval { low, mean: 1.0, high });
        assert_eq!(verdict(1.021, 1.5), Verdict::Faster);
        assert_eq!(verdict(1.02, 1.5), Verdict::Undecided);
        assert_eq!(verdict(0.5, 0.979), Verdict::Slower);
        assert_eq!(verdict(0.5, 0.98), Verdict::Undecided);
        assert_eq!(verdict(0.98, 1.02), Verdict::Equal);
        assert_eq!(verdict(0.97, 1.01), Verdict::Undecided);
    }
}
