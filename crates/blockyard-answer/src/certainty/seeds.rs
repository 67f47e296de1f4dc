//! Runs with several seeds: intervals of the ratios of two designs, in IOPS and in p99.

use super::question::{Question, Run};
use crate as answer;
use crate::goal::GoalsMet;
use crate::parallel::each;
use crate::verdict::ComparedFigure;
use crate::{Answer, Row, Stream};
use blockyard_sim::measure::Interval;
use blockyard_sim::simulate::SimulationError;
use blockyard_text::number::approximate;
use serde::Serialize;

/// What runs with several seeds say of the designs.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Seeds {
    /// The number of seeds, from the seed of the answer on.
    pub count: u32,
    /// Whether all seeds gave the same rates and latencies: nothing in job and device is left to
    /// chance.
    pub all_alike: bool,
    /// For each job, direction and figure, each design but the first, compared with the first.
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
    /// The figure that is compared.
    pub figure: ComparedFigure,
    /// The ratio of the figure to that under the first design.
    pub ratio: Interval,
    /// What follows.
    pub verdict: Verdict,
}

/// Whether a design is better than another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// More IOPS, or a shorter p99.
    Faster,
    /// Fewer IOPS, or a longer p99.
    Slower,
    /// Within the bound of equality.
    Equal,
    /// The interval holds more than one of these.
    Undecided,
}

impl Verdict {
    /// What the interval of the ratio of a figure says.
    #[expect(clippy::float_arithmetic, reason = "the bounds of equality")]
    #[must_use]
    pub fn of(figure: ComparedFigure, ratio: Interval) -> Self {
        let within = figure.equal_within();
        let (more, less) = match figure {
            ComparedFigure::Iops => (Self::Faster, Self::Slower),
            ComparedFigure::P99 | ComparedFigure::Median => (Self::Slower, Self::Faster),
        };
        match ratio {
            Interval { low, .. } if low > 1.0 + within => more,
            Interval { high, .. } if high < 1.0 - within => less,
            Interval { low, high, .. } if low >= 1.0 - within && high <= 1.0 + within => {
                Self::Equal
            }
            _ => Self::Undecided,
        }
    }
}

/// Asks `question` with `count` seeds, from its own on, and adds the result to `answer`, which is
/// that with the first seed. The verdict of the answer then rests on all seeds; readings do not
/// test the designs `untested`.
pub(super) fn with_seeds(
    question: Question<'_>,
    answer: Answer,
    count: u32,
    untested: &[usize],
    ended: impl Fn() + Sync,
) -> Result<Answer, SimulationError> {
    debug_assert!(count > 1, "an interval needs two seeds");
    let designs = question.designs;
    let runs: Vec<_> =
        (1..count).flat_map(|nth| (0..designs.len()).map(move |at| (nth, at))).collect();
    let found = each(&runs, |(nth, at)| {
        let seed = question.conditions.seed.wrapping_add(u64::from(*nth));
        let run = question.run(question.device_of(*at), &designs[*at], seed);
        ended();
        run
    });
    let found: Vec<Run> = found.into_iter().collect::<Result<_, _>>()?;
    let by_seed: Vec<_> = found.chunks(designs.len()).collect();
    let stated = &answer.verdict.rows;
    let rows: Vec<Vec<Row>> = by_seed.iter().map(|runs| question.rows(runs, stated)).collect();
    let streams: Vec<Vec<&[Stream]>> =
        by_seed.iter().map(|runs| runs.iter().map(Run::streams).collect()).collect();
    let sweep = answer.sweep.clone().map(|of| of.over(&answer, &streams));
    let goals = with_answer(question.goals_met(&by_seed), &answer);
    let mut stated = answer.verdict.rows;
    let comparisons = compared(&stated, &rows);
    let all_alike = rows.iter().all(|rows| are_alike(&stated, rows));
    for (at, row) in stated.iter_mut().enumerate() {
        for (design, cell) in row.designs.iter_mut().enumerate() {
            let others = rows.iter().map(|rows| approximate(rows[at].designs[design].p99_ns));
            let all: Vec<_> = [approximate(cell.p99_ns)].into_iter().chain(others).collect();
            let Interval { low, high, .. } = Interval::of(&all);
            // The table shows the p99 of the answered run, which may lie beyond the interval of the
            // mean.
            let [low, high] = [low, high].map(whole);
            cell.p99_within_ns = [low.min(cell.p99_ns), high.max(cell.p99_ns)];
        }
    }
    let verdict = answer::Verdict::over_seeds(stated, &rows, untested, &answer.designs);
    let reasons = answer::explanation::reasons(&answer.designs, &verdict.rows);
    Ok(Answer {
        verdict,
        reasons,
        sweep,
        seeds: Some(Seeds { count, all_alike, comparisons, goals }),
        ..answer
    })
}

/// Whether two runs have the same rates and latencies.
fn are_alike(one: &[Row], other: &[Row]) -> bool {
    debug_assert_eq!(one.len(), other.len(), "rows of the same jobs");
    let cells = |rows: &[Row]| {
        let cells = rows.iter().flat_map(|row| &row.designs);
        cells.map(|cell| (cell.iops, cell.mean_ns, cell.p99_ns, cell.max_ns)).collect::<Vec<_>>()
    };
    cells(one) == cells(other)
}

/// Adds the answered run to the counts of the others.
fn with_answer(goals: Vec<GoalsMet>, answer: &Answer) -> Vec<GoalsMet> {
    let counted = goals.into_iter().enumerate();
    let with_answer = counted.map(|(at, of)| {
        let in_answer = answer.goals.iter().all(|goal| goal.designs[at].met);
        GoalsMet { met: of.met + u32::from(in_answer), ..of }
    });
    with_answer.collect()
}

/// Compares each design but the first with the first, for each row of the answered run and its
/// figures.
fn compared(stated: &[Row], seeds: &[Vec<Row>]) -> Vec<Comparison> {
    debug_assert!(!seeds.is_empty(), "an interval needs two seeds");
    let mut comparisons = Vec::new();
    for (at, row) in stated.iter().enumerate() {
        for figure in ComparedFigure::of(row) {
            for (design, cell) in row.designs.iter().enumerate().skip(1) {
                let all = [row].into_iter().chain(seeds.iter().map(|rows| &rows[at]));
                let ratios: Option<Vec<f64>> =
                    all.map(|row| ratio(figure, row, [design, 0])).collect();
                // In one of the runs the job has no such I/O under a design: there is no ratio.
                let Some(ratios) = ratios else { continue };
                let ratio = Interval::of(&ratios);
                comparisons.push(Comparison {
                    job: row.label.clone(),
                    design: cell.design.clone(),
                    figure,
                    ratio,
                    verdict: Verdict::of(figure, ratio),
                });
            }
        }
    }
    comparisons
}

/// Returns nanoseconds as a whole number; an interval may reach below 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a latency is below 2^63 ns, and 0 at least here"
)]
fn whole(ns: f64) -> u64 {
    ns.max(0.0) as u64
}

/// The ratio of a figure of `row` under two designs; `None` if it is 0 under the second, and of a
/// latency also under the first. Two rates of 0 are equal.
#[expect(clippy::float_arithmetic, reason = "one division")]
pub(super) fn ratio(figure: ComparedFigure, row: &Row, designs: [usize; 2]) -> Option<f64> {
    let [of, to] = designs.map(|at| figure.in_cell(&row.designs[at]));
    match figure {
        ComparedFigure::Iops if of == to => Some(1.0),
        ComparedFigure::Iops => (to > 0.0).then(|| of / to),
        ComparedFigure::P99 | ComparedFigure::Median => (of > 0.0 && to > 0.0).then(|| of / to),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(figure: ComparedFigure, low: f64, high: f64) -> Verdict {
        Verdict::of(figure, Interval { low, mean: 1.0, high })
    }

    #[test]
    fn a_verdict_needs_the_whole_interval() {
        assert_eq!(verdict(ComparedFigure::Iops, 1.021, 1.5), Verdict::Faster);
        assert_eq!(verdict(ComparedFigure::Iops, 1.02, 1.5), Verdict::Undecided);
        assert_eq!(verdict(ComparedFigure::Iops, 0.5, 0.979), Verdict::Slower);
        assert_eq!(verdict(ComparedFigure::Iops, 0.5, 0.98), Verdict::Undecided);
        assert_eq!(verdict(ComparedFigure::Iops, 0.98, 1.02), Verdict::Equal);
        assert_eq!(verdict(ComparedFigure::Iops, 0.97, 1.01), Verdict::Undecided);
    }

    #[test]
    fn a_shorter_p99_is_faster_and_its_bound_is_a_tenth() {
        assert_eq!(verdict(ComparedFigure::P99, 0.5, 0.89), Verdict::Faster);
        assert_eq!(verdict(ComparedFigure::P99, 1.11, 3.0), Verdict::Slower);
        assert_eq!(verdict(ComparedFigure::P99, 0.91, 1.09), Verdict::Equal);
        assert_eq!(verdict(ComparedFigure::P99, 0.5, 0.91), Verdict::Undecided);
    }
}
