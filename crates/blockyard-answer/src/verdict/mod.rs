//! The verdict: each job and direction under each design, and who gains what and who pays for it.

mod judge;
mod ramp;
mod unranked;
mod words;

pub use judge::ComparedFigure;

pub(super) use words::{LISTED_MAX, SENTENCES_MAX, listed};

use serde::{Deserialize, Serialize};

use judge::Evidence;

use super::direction::Direction;
use super::latency::Latency;
use super::outcome::Outcome;
use super::stream::Stream;
use blockyard_text::number::approximate;

/// What the designs do to each job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// The verdict in sentences: the latency of syncs, the fastest design, then each design against
    /// the first.
    pub sentences: Vec<String>,
    /// The comparisons that the runs do not support, in sentences, with the run time that they
    /// need.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undecided: Vec<String>,
    /// A row for each job, or group of jobs that reports as one, and direction.
    pub rows: Vec<Row>,
    /// Whether the designs are not ranked, because a run was interrupted or because they have no
    /// counterpart.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub unranked: bool,
}

/// A job, or group of jobs that reports as one, in one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Row {
    /// The name of the job; for a group, of its first job.
    pub job: String,
    /// `sync`, `read`, `write` or `trim`.
    pub direction: String,
    /// The job, and its direction if the job has several: how sentences call the row. Empty if
    /// there is one row.
    pub label: String,
    /// Its figures under each design, in the order of the designs.
    pub designs: Vec<Cell>,
}

/// The figures of a row under one design. Latencies are from submission to end, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cell {
    /// The design.
    pub design: String,
    /// I/Os that ended.
    pub ios: u64,
    /// I/Os per second of the job's run time.
    pub iops: f64,
    /// Bytes per second of the job's run time.
    pub bytes_per_s: u64,
    /// The mean latency.
    pub mean_ns: u64,
    /// The median.
    pub p50_ns: u64,
    /// 99 % of the I/Os took at most this long.
    pub p99_ns: u64,
    /// The interval of 95 % that holds the p99 of such runs: of its mean over the seeds, if there
    /// are several; otherwise by its rank in this run, where a hundred I/Os in a row count as one,
    /// because they often wait for the same cause.
    pub p99_within_ns: [u64; 2],
    /// 99.9 % of the I/Os took at most this long.
    pub p99_9_ns: u64,
    /// The longest latency.
    pub max_ns: u64,
    /// IOPS relative to those under the first design; null if these are 0, or if one of several
    /// runs was interrupted.
    pub ratio: Option<f64>,
    /// Whether these IOPS are known to differ from those under the first design.
    #[serde(default)]
    pub differs: bool,
}

impl Verdict {
    /// Returns the verdict on `outcomes`, runs of the same jobs.
    #[must_use]
    pub fn of(outcomes: &[Outcome]) -> Self {
        let jobs: Vec<_> =
            outcomes.iter().map(|of| (of.name.as_str(), Stream::all(&of.jobs))).collect();
        Self::over_seeds(Self::rows(&jobs), &[], &[], outcomes)
    }

    /// Returns the verdict on `outcomes`, whose rows are `rows`, with the rows of further seeds as
    /// evidence. Readings do not test whether the designs `untested` are equal to the first.
    pub(super) fn over_seeds(
        rows: Vec<Row>,
        seeds: &[Vec<Row>],
        untested: &[usize],
        outcomes: &[Outcome],
    ) -> Self {
        debug_assert!(
            rows.iter().all(|row| row.designs.len() == outcomes.len()),
            "a cell for each outcome"
        );
        let runs: Vec<_> = outcomes.iter().map(|of| (of.name.as_str(), of.stopped)).collect();
        let jobs: Vec<_> = outcomes.iter().map(|of| of.jobs.as_slice()).collect();
        Self::judged(rows, seeds, untested).unless_in_ramp(&jobs).unless_partial(&runs)
    }

    /// Returns the verdict on the streams of each design, given with its name.
    #[must_use]
    pub fn on(designs: &[(&str, Vec<Stream>)]) -> Self {
        Self::judged(Self::rows(designs), &[], &[])
    }

    /// Returns the verdict on `rows`, with the rows of further seeds as evidence: the same jobs,
    /// directions and designs.
    fn judged(mut rows: Vec<Row>, seeds: &[Vec<Row>], untested: &[usize]) -> Self {
        let evidence = Evidence { rows: &rows, seeds, untested };
        let sentences = words::sentences(evidence);
        let undecided = words::undecided(evidence);
        let differs: Vec<Vec<bool>> = (0..rows.len())
            .map(|row| (0..rows[row].designs.len()).map(|at| evidence.differs(row, at)).collect())
            .collect();
        for (row, differs) in rows.iter_mut().zip(differs) {
            row.designs.iter_mut().zip(differs).for_each(|(cell, differs)| cell.differs = differs);
        }
        Self { sentences, undecided, rows, unranked: false }
    }

    /// Adds `words` to the sentence on the fastest design.
    pub(super) fn qualify_fastest(&mut self, words: &str) {
        let fastest = self.sentences.iter_mut().find(|sentence| words::is_of_fastest(sentence));
        if let Some(sentence) = fastest {
            let said = sentence.trim_end_matches('.');
            *sentence = format!("{said}; {words}.");
        }
    }

    /// Returns the rows of the streams of each design, given with its name.
    pub(super) fn rows(designs: &[(&str, Vec<Stream>)]) -> Vec<Row> {
        let mut names: Vec<(&str, Direction, usize)> = Vec::new();
        for (_, streams) in designs {
            for (at, stream) in streams.iter().enumerate() {
                let nth = nth_of_name(streams, at);
                let name = (stream.job.as_str(), stream.direction, nth);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        let labels = labels(&names);
        let rows = names.iter().zip(labels).map(|((job, direction, nth), label)| {
            let found = |streams: &[Stream]| {
                let mut of_name = streams
                    .iter()
                    .filter(|of| of.job == *job && of.direction == *direction)
                    .skip(*nth);
                of_name.next().cloned()
            };
            let found: Vec<_> =
                designs.iter().map(|(design, streams)| (*design, found(streams))).collect();
            let first = found.iter().find_map(|(_, stream)| stream.as_ref());
            let first_iops = first.map_or(0.0, |stream| stream.figures.iops);
            let cells =
                found.iter().map(|(design, stream)| Cell::of(design, stream.as_ref(), first_iops));
            let designs = cells.collect();
            Row { job: (*job).to_owned(), direction: direction.name().to_owned(), label, designs }
        });
        let rows: Vec<_> = rows.collect();
        debug_assert!(
            rows.iter().all(|row| row.designs.len() == designs.len()),
            "a row has a cell for each design"
        );
        rows
    }
}

/// Returns the rows of another run in the places of those of `stated`. A job and direction that the
/// run does not have is empty.
pub(super) fn aligned(stated: &[Row], rows: &[Row]) -> Vec<Row> {
    let places = stated.iter().enumerate().map(|(at, row)| {
        let nth = stated[..at].iter().filter(|before| is_same_row(before, row)).count();
        let found = rows.iter().filter(|other| is_same_row(other, row)).nth(nth);
        let empty = row.designs.iter().map(|cell| Cell::of(&cell.design, None, 0.0));
        found.cloned().unwrap_or_else(|| Row { designs: empty.collect(), ..row.clone() })
    });
    let aligned: Vec<_> = places.collect();
    debug_assert_eq!(aligned.len(), stated.len(), "a row in each place");
    aligned
}

/// Whether two rows are of the same job and direction.
fn is_same_row(one: &Row, other: &Row) -> bool {
    one.job == other.job && one.direction == other.direction
}

/// Returns how many streams before the one `at` have its name and direction. They are of other
/// reporting groups.
fn nth_of_name(streams: &[Stream], at: usize) -> usize {
    let same = |of: &&Stream| of.job == streams[at].job && of.direction == streams[at].direction;
    streams[..at].iter().filter(same).count()
}

fn labels(names: &[(&str, Direction, usize)]) -> Vec<String> {
    let label = |(job, direction, nth): &(&str, Direction, usize)| {
        let directions = names.iter().filter(|(other, _, of)| other == job && of == nth).count();
        let number = if *nth == 0 { String::new() } else { format!(" {}", nth + 1) };
        match directions {
            1 => format!("{job}{number}"),
            _ => format!("{job}{number} {}", direction.name()),
        }
    };
    if names.len() == 1 { vec![String::new()] } else { names.iter().map(label).collect() }
}

impl Cell {
    #[expect(clippy::float_arithmetic, reason = "the ratio is for reading, and orders nothing")]
    fn of(design: &str, stream: Option<&Stream>, first_iops: f64) -> Self {
        let none = Latency::default();
        let figures = stream.map(|stream| &stream.figures);
        let latency = figures.map_or(&none, |figures| &figures.lat_ns);
        let iops = figures.map_or(0.0, |figures| figures.iops);
        Self {
            design: design.to_owned(),
            ios: figures.map_or(0, |figures| figures.ios),
            iops,
            bytes_per_s: figures.map_or(0, |figures| figures.bytes_per_s),
            mean_ns: latency.mean,
            p50_ns: latency.p50,
            p99_ns: latency.p99,
            p99_within_ns: latency.p99_interval(),
            p99_9_ns: latency.p99_9,
            max_ns: latency.max,
            ratio: (first_iops > 0.0).then(|| iops / first_iops),
            differs: false,
        }
    }
}

impl Row {
    /// Whether the row is one of syncs.
    pub(super) fn is_sync(&self) -> bool {
        self.direction == Direction::Sync.name()
    }
}

/// The ratio of two numbers; `None` if the second is 0.
#[expect(clippy::float_arithmetic, reason = "one division, for reading")]
fn quotient(of: u64, to: u64) -> Option<f64> {
    (to > 0).then(|| approximate(of) / approximate(to))
}
