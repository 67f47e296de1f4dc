//! The judgement of differences: whether one design is better than another for a job, or whether
//! that is not known.
//!
//! A p99 is compared only where each design has at least 1,000 I/Os: of 320, three decide it. A
//! difference is claimed only if the whole interval of the ratio is beyond the bound of equality.
//! Several seeds give the interval of the mean ratio; a single run gives the interval of its p99.
//! The rate of a single run is taken as it is.

#![expect(
    clippy::float_arithmetic,
    reason = "four operations and a root, which all machines round alike"
)]

use super::{Cell, Row};
use crate::equality::{EQUAL_WITHIN, P99_EQUAL_WITHIN};
use blockyard_sim::measure::{Interval, P99_IOS_MIN};
use blockyard_text::number::approximate;
use serde::Serialize;

/// The smallest number of syncs whose median is compared.
const MEDIAN_IOS_MIN: u64 = 10;

/// A figure of a job by which designs are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ComparedFigure {
    /// I/Os per second. Larger is better; two are equal within 2 %.
    Iops,
    /// The 99th percentile of latency. Smaller is better; two are equal within 10 %.
    P99,
    /// The median of latency, of syncs that are too few for their p99. Smaller is better; two are
    /// equal within 10 %.
    Median,
}

impl ComparedFigure {
    /// Returns the figures by which the designs of `row` are compared. Syncs are compared by their
    /// latency alone.
    pub(crate) fn of(row: &Row) -> Vec<Self> {
        let iops = (!row.is_sync()).then_some(Self::Iops);
        iops.into_iter()
            .chain(Self::of_latency(row, &row.designs.iter().collect::<Vec<_>>()))
            .collect()
    }

    /// Returns the figure by which the latencies of `cells` of `row` are compared: the p99 if each
    /// has at least 1,000 I/Os, the median of fewer syncs, and nothing of fewer I/Os.
    fn of_latency(row: &Row, cells: &[&Cell]) -> Option<Self> {
        debug_assert!(!cells.is_empty(), "a row has designs");
        if cells.iter().all(|cell| cell.has_p99()) {
            return Some(Self::P99);
        }
        let has_median = row.is_sync() && cells.iter().all(|cell| cell.ios >= MEDIAN_IOS_MIN);
        has_median.then_some(Self::Median)
    }

    /// The figure in a cell.
    pub(crate) fn in_cell(self, cell: &Cell) -> f64 {
        match self {
            Self::Iops => cell.iops,
            Self::P99 => approximate(cell.p99_ns),
            Self::Median => approximate(cell.p50_ns),
        }
    }

    /// The name that tables and sentences use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Iops => "IOPS",
            Self::P99 => "p99",
            Self::Median => "median",
        }
    }

    /// How far a ratio may be from 1 to be called equal.
    pub(crate) const fn equal_within(self) -> f64 {
        match self {
            Self::Iops => EQUAL_WITHIN,
            Self::P99 | Self::Median => P99_EQUAL_WITHIN,
        }
    }
}

/// The relation of a figure under one design to the same figure under another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Judged {
    /// Within the bound of equality.
    Equal,
    /// Beyond it. The ratio is the mean over the seeds, or that of a single run.
    Differs(f64),
    /// The interval of the ratio holds several of these.
    Undecided(Interval),
    /// There are too few I/Os, or there is no ratio.
    Unknown,
}

/// The rows of the answered run, and those of further seeds, which have the same jobs, directions
/// and designs; and what readings leave untested.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence<'a> {
    pub(super) rows: &'a [Row],
    pub(super) seeds: &'a [Vec<Row>],
    /// The designs of which no reading shows that they are equal to the first: a figure that
    /// decides between the two has no range.
    pub(super) untested: &'a [usize],
}

impl Evidence<'_> {
    /// Judges the IOPS of a row under the design `at` against those under `from`.
    pub(super) fn rate(&self, row: usize, from: usize, at: usize) -> Judged {
        self.judge(ComparedFigure::Iops, row, [from, at])
    }

    /// Whether the IOPS of a row under the design `at` are known to differ from those under the
    /// first.
    pub(super) fn differs(&self, row: usize, at: usize) -> bool {
        matches!(self.rate(row, 0, at), Judged::Differs(_)) && !self.rows[row].is_sync()
    }

    /// Judges the latency of a row under the design `at` against that under `from`.
    pub(super) fn latency(&self, row: usize, from: usize, at: usize) -> Judged {
        debug_assert!(row < self.rows.len(), "row {row} of {}", self.rows.len());
        let cells = &self.rows[row].designs;
        // Runs with the same latencies did the same: there is nothing to decide, however few I/Os
        // there were.
        if cells[from].latencies() == cells[at].latencies() && cells[at].ios > 0 {
            return Judged::Equal;
        }
        match self.latency_figure(row, from, at) {
            Some(figure) => self.judge(figure, row, [from, at]),
            None => Judged::Unknown,
        }
    }

    /// The figure by which the latencies of a row under two designs are compared, if there is one.
    /// A single run has no interval of its median.
    pub(super) fn latency_figure(
        &self,
        row: usize,
        from: usize,
        at: usize,
    ) -> Option<ComparedFigure> {
        let row = &self.rows[row];
        let figure = ComparedFigure::of_latency(row, &[&row.designs[from], &row.designs[at]])?;
        (figure == ComparedFigure::P99 || !self.seeds.is_empty()).then_some(figure)
    }

    fn judge(&self, figure: ComparedFigure, row: usize, [from, at]: [usize; 2]) -> Judged {
        debug_assert!(
            self.seeds.iter().all(|rows| rows.len() == self.rows.len()),
            "a row of each seed for each row of the answer"
        );
        let others = self.seeds.iter().map(|rows| ratio(figure, &rows[row], [from, at]));
        let ratios = [ratio(figure, &self.rows[row], [from, at])].into_iter().chain(others);
        let Some(ratios) = ratios.collect::<Option<Vec<f64>>>() else { return Judged::Unknown };
        let interval = match ratios.as_slice() {
            [own] => self.alone(figure, row, [from, at], *own),
            _ => Interval::of(&ratios),
        };
        judged(interval, figure.equal_within())
    }

    /// The interval of a ratio if only one run is known, in which it is `own`.
    fn alone(
        &self,
        figure: ComparedFigure,
        row: usize,
        [from, at]: [usize; 2],
        own: f64,
    ) -> Interval {
        let cells = &self.rows[row].designs;
        if figure == ComparedFigure::Iops {
            return Interval { low: own, mean: own, high: own };
        }
        let [first, other] =
            [from, at].map(|at| cells[at].p99_within_ns.map(|ns| approximate(ns.max(1))));
        Interval { low: other[0] / first[1], mean: own, high: other[1] / first[0] }
    }
}

/// The ratio of a figure under the design `at` to that under `from`, if both are known.
fn ratio(figure: ComparedFigure, row: &Row, [from, at]: [usize; 2]) -> Option<f64> {
    let [first, other] = [from, at].map(|at| figure.in_cell(&row.designs[at]));
    let has_both = first > 0.0 && (other > 0.0 || figure == ComparedFigure::Iops);
    has_both.then(|| other / first)
}

/// Judges an interval of a ratio. With 5 % as the bound of equality, 1.06 to 1.20 is a difference,
/// and 1.02 to 1.20 is undecided.
fn judged(interval: Interval, equal_within: f64) -> Judged {
    debug_assert!((0.0..1.0).contains(&equal_within), "a bound of equality");
    let Interval { low, mean, high } = interval;
    match equal_within {
        within if low > 1.0 + within || high < 1.0 - within => Judged::Differs(mean),
        within if low >= 1.0 - within && high <= 1.0 + within => Judged::Equal,
        _ => Judged::Undecided(interval),
    }
}

impl Cell {
    /// The figures of its latencies.
    const fn latencies(&self) -> [u64; 6] {
        [self.ios, self.mean_ns, self.p50_ns, self.p99_ns, self.p99_9_ns, self.max_ns]
    }

    /// Returns whether the cell has enough I/Os to compare its p99.
    pub(super) const fn has_p99(&self) -> bool {
        self.ios >= P99_IOS_MIN
    }
}
