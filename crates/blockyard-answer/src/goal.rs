//! Goals: what a user demands of a job, such as `reader.read.p99<20ms`.

use core::fmt;

use serde::{Deserialize, Serialize};

use super::direction::Direction;
use super::outcome::Outcome;
use super::stream::Stream;
use super::verdict::{ComparedFigure, Row, SENTENCES_MAX, listed};
use crate::equality::{EQUAL_WITHIN, P99_EQUAL_WITHIN};
use blockyard_text::number::{approximate, count, digits, mebibytes, time};
use blockyard_text::quantity;

/// The longest goal in bytes.
const LEN_MAX: usize = 1024;

/// A demand on a figure: `[JOB.][DIRECTION.]FIGURE`, one of `<`, `<=`, `>=` and `>`, and a value
/// with its unit.
///
/// Without a job or a direction, every job or direction has to meet it. Syncs are a direction:
/// without one, a latency is demanded of them too.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// The goal as it was written.
    pub text: String,
    job: Option<String>,
    direction: Option<Direction>,
    figure: Figure,
    bound: Bound,
    value: u64,
}

/// A figure of a job in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figure {
    /// I/Os per second.
    Iops,
    /// Bytes per second.
    Bandwidth,
    /// The mean latency.
    Mean,
    /// The longest latency.
    Max,
    /// A percentile of latencies, in thousandths of a percent.
    Percentile(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    Below,
    AtMost,
    AtLeast,
    Above,
}

/// The two-letter bounds come first, so that `<=` is not read as `<`.
const BOUNDS: [(&str, Bound); 4] =
    [("<=", Bound::AtMost), (">=", Bound::AtLeast), ("<", Bound::Below), (">", Bound::Above)];

/// Why a goal cannot be read, or does not suit the jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GoalError {
    /// It does not have the form of a goal; what is missing or wrong.
    Form(&'static str),
    /// The value is not one of its figure; the form that it needs.
    Value(&'static str),
    /// No job has this name; the names of the jobs.
    NoJob {
        /// The name in the goal.
        job: String,
        /// The names of the jobs.
        known: Vec<String>,
    },
    /// The job does no I/O in this direction.
    NoDirection {
        /// The direction.
        direction: &'static str,
    },
}

impl fmt::Display for GoalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form(words) => f.write_str(words),
            Self::Value(wanted) => write!(f, "expected {wanted}"),
            Self::NoJob { job, known } => {
                write!(f, "no job `{}`; the jobs are {}", job.escape_debug(), known.join(", "))
            }
            Self::NoDirection { direction } => {
                write!(f, "no job that it names does a {direction}")
            }
        }
    }
}

impl core::error::Error for GoalError {}

/// What each design reaches of a goal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GoalResult {
    /// The goal as it was written.
    pub goal: String,
    /// The result under each design, in the order of the designs.
    pub designs: Vec<Reached>,
}

/// What a design reaches of a goal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reached {
    /// The design.
    pub design: String,
    /// Whether it meets the goal.
    pub met: bool,
    /// The figure, with its unit: the worst one, if several jobs or directions have to meet the
    /// goal.
    pub figure: String,
}

/// In how many runs a design meets all goals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GoalsMet {
    /// The design.
    pub design: String,
    /// The number of runs.
    pub met: u32,
}

impl Goal {
    /// Reads a goal.
    ///
    /// # Errors
    ///
    /// [`GoalError::Form`], [`GoalError::Value`].
    pub fn parse(text: &str) -> Result<Self, GoalError> {
        const FORM: &str = "expected [JOB.][sync.|read.|write.|trim.]FIGURE, then <, <=, >= or >, then a value: \
                            reader.read.p99<20ms; FIGURE is iops, bw, mean, max or a percentile such as p99.9";
        if text.len() > LEN_MAX {
            return Err(GoalError::Form("a goal has at most 1024 bytes"));
        }
        // The name of a job may have a bound in it, a value has none.
        let at = text.rfind(['<', '>']).ok_or(GoalError::Form(FORM))?;
        let (token, bound) = BOUNDS
            .into_iter()
            .find(|(token, _)| text[at..].starts_with(token))
            .ok_or(GoalError::Form(FORM))?;
        let place = text[..at].trim();
        let value = text[at + token.len()..].trim();
        let (rest, figure) = figure(place).ok_or(GoalError::Form(FORM))?;
        let mut named = Direction::ALL.into_iter().filter_map(|direction| {
            let rest = rest?.strip_suffix(direction.name())?;
            let job = if rest.is_empty() { None } else { Some(rest.strip_suffix('.')?) };
            Some((job, Some(direction)))
        });
        let (job, direction) = named.next_back().unwrap_or((rest, None));
        if job == Some("") {
            return Err(GoalError::Form(FORM));
        }
        if direction == Some(Direction::Sync) && figure == Figure::Bandwidth {
            return Err(GoalError::Form(
                "a sync moves no bytes: give a latency or iops, or name `write`",
            ));
        }
        let value = figure.read(value)?;
        let job = job.map(str::to_owned);
        Ok(Self { text: text.to_owned(), job, direction, figure, bound, value })
    }

    /// Returns what each of `outcomes` reaches.
    ///
    /// # Errors
    ///
    /// [`GoalError::NoJob`], [`GoalError::NoDirection`].
    pub fn judge(&self, outcomes: &[Outcome]) -> Result<GoalResult, GoalError> {
        let reached = outcomes.iter().map(|of| self.reached(&of.name, &Stream::all(&of.jobs)));
        Ok(GoalResult { goal: self.text.clone(), designs: reached.collect::<Result<_, _>>()? })
    }

    /// Whether a run with these streams meets the goal. A run without the job or the direction does
    /// not.
    pub(super) fn is_met(&self, streams: &[Stream]) -> bool {
        self.reached("", streams).is_ok_and(|reached| reached.met)
    }

    /// Whether `stream` has to meet the goal. Without a direction, each has to whose figure it is:
    /// a job waits for its syncs as for its reads and writes, but they do not count as its I/Os or
    /// bytes.
    fn is_about(&self, stream: &Stream) -> bool {
        match self.direction {
            Some(asked) => stream.direction == asked,
            // A job that has not come to its first sync did not wait for one.
            None if stream.direction == Direction::Sync => {
                self.figure.is_latency() && stream.figures.ios > 0
            }
            None => true,
        }
    }

    /// Returns the figure in a run with these streams: the worst one, if several have to meet the
    /// goal. `None` if a latency is not known because no I/O ended, or if nothing has to meet it.
    pub(super) fn value_in(&self, streams: &[Stream]) -> Option<f64> {
        self.worst(streams, |of| self.figure.exact(of))
    }

    /// Returns the worst of what `value` finds in the streams that have to meet the goal; `None` if
    /// there is none, or it finds nothing in one.
    fn worst<T: PartialOrd>(
        &self,
        streams: &[Stream],
        value: impl Fn(&Stream) -> Option<T>,
    ) -> Option<T> {
        let of_job = streams.iter().filter(|of| self.job.as_ref().is_none_or(|job| of.job == *job));
        let values = of_job.filter(|of| self.is_about(of)).map(value);
        let values = values.collect::<Option<Vec<T>>>()?;
        let is_less_worse = self.is_more_better();
        values.into_iter().reduce(
            |worst, other| {
                if (other < worst) == is_less_worse { other } else { worst }
            },
        )
    }

    /// Whether a larger figure is a better one.
    pub(super) const fn is_more_better(&self) -> bool {
        matches!(self.bound, Bound::AtLeast | Bound::Above)
    }

    /// How far a ratio of two figures may be from 1 to be called equal.
    pub(super) const fn equal_within(&self) -> f64 {
        if self.figure.is_latency() { P99_EQUAL_WITHIN } else { EQUAL_WITHIN }
    }

    /// Returns a value of the figure with its unit.
    pub(super) fn words(&self, value: f64) -> String {
        match self.figure {
            Figure::Iops => count(value),
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "bytes or nanoseconds, which were a whole number"
            )]
            figure => figure.words(value as u64),
        }
    }

    /// Returns the goal of the best `figure` for a row: more IOPS, or a shorter latency.
    pub(super) fn on(row: &Row, figure: ComparedFigure) -> Self {
        let (measured, bound) = match figure {
            ComparedFigure::Iops => (Figure::Iops, Bound::AtLeast),
            ComparedFigure::P99 => (Figure::Percentile(99_000), Bound::AtMost),
            ComparedFigure::Median => (Figure::Percentile(50_000), Bound::AtMost),
        };
        let place = if row.label.is_empty() { String::new() } else { format!("{} ", row.label) };
        Self {
            text: format!("{place}{}", figure.name()),
            job: Some(row.job.clone()),
            direction: Direction::ALL.into_iter().find(|of| of.name() == row.direction),
            figure: measured,
            bound,
            value: 0,
        }
    }

    fn reached(&self, design: &str, streams: &[Stream]) -> Result<Reached, GoalError> {
        let of_job: Vec<_> = streams
            .iter()
            .filter(|of| self.job.as_ref().is_none_or(|job| of.job == *job))
            .collect();
        if let (Some(job), true) = (&self.job, of_job.is_empty()) {
            let mut known: Vec<_> = streams.iter().map(|of| of.job.clone()).collect();
            known.dedup();
            return Err(GoalError::NoJob { job: job.clone(), known });
        }
        if !of_job.iter().any(|of| self.is_about(of)) {
            let direction = self.direction.map_or("read, write or trim", Direction::name);
            return Err(GoalError::NoDirection { direction });
        }
        // No I/O ended: there is no latency that could be short enough.
        let worst = self.worst(streams, |of| self.figure.of(of));
        Ok(Reached {
            design: design.to_owned(),
            met: worst.is_some_and(|worst| self.bound.holds(worst, self.value)),
            figure: worst.map_or_else(|| "no I/O".to_owned(), |worst| self.figure.words(worst)),
        })
    }
}

/// Returns the figure at the end of `place`, and what is before it and its dot.
fn figure(place: &str) -> Option<(Option<&str>, Figure)> {
    const NAMES: [(&str, Figure); 4] = [
        ("iops", Figure::Iops),
        ("bw", Figure::Bandwidth),
        ("mean", Figure::Mean),
        ("max", Figure::Max),
    ];
    for (name, figure) in NAMES {
        if place.ends_with(name) {
            return Some((job_before(place, name.len())?, figure));
        }
    }
    // The last `p` begins the percentile: digits and a point follow.
    let at = place.rfind('p')?;
    let thousandths = quantity::scaled_decimal(&place[at + 1..], 1000)?;
    let percentile = u32::try_from(thousandths).ok().filter(|percentile| *percentile <= 100_000)?;
    Some((job_before(place, place.len() - at)?, Figure::Percentile(percentile)))
}

/// The part of a place before its last `len` bytes, which a point ends: `reader.read` of
/// `reader.read.p99` for 3.
fn job_before(place: &str, len: usize) -> Option<Option<&str>> {
    match &place[..place.len() - len] {
        "" => Some(None),
        rest => rest.strip_suffix('.').map(Some),
    }
}

impl Figure {
    const fn is_latency(self) -> bool {
        matches!(self, Self::Mean | Self::Max | Self::Percentile(_))
    }

    fn read(self, value: &str) -> Result<u64, GoalError> {
        match self {
            Self::Iops => {
                let parsed = quantity::rounded(value, &[("", 1), ("k", 1_000), ("M", 1_000_000)]);
                parsed.ok_or(GoalError::Value("I/Os per second: 500, 20k, 1.5M"))
            }
            Self::Bandwidth => quantity::rate(value)
                .ok_or(GoalError::Value("bytes per second with their unit: 20MiB/s, 400kB/s")),
            Self::Mean | Self::Max | Self::Percentile(_) => quantity::time(value)
                .map(|time| time.as_ns())
                .ok_or(GoalError::Value("a time with its unit: 500us, 20ms, 1s")),
        }
    }

    /// The value in `stream`; `None` for a latency if no I/O ended.
    fn of(self, stream: &Stream) -> Option<u64> {
        let figures = &stream.figures;
        let latency = || Some(&figures.lat_ns).filter(|latency| latency.count > 0);
        match self {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a rate is positive and below 2^63"
            )]
            Self::Iops => Some(figures.iops as u64),
            Self::Bandwidth => Some(figures.bytes_per_s),
            Self::Mean => latency().map(|of| of.mean),
            Self::Max => latency().map(|of| of.max),
            Self::Percentile(percentile) => latency().map(|of| of.percentile(percentile)),
        }
    }

    /// The value in `stream`, with the fraction of a rate.
    fn exact(self, stream: &Stream) -> Option<f64> {
        match self {
            Self::Iops => Some(stream.figures.iops),
            _ => self.of(stream).map(approximate),
        }
    }

    fn words(self, value: u64) -> String {
        match self {
            Self::Iops => count(approximate(value)),
            Self::Bandwidth if value < 1 << 20 => {
                #[expect(clippy::float_arithmetic, reason = "for the eye only")]
                let kib = approximate(value) / 1024.0;
                format!("{} KiB/s", digits(kib))
            }
            Self::Bandwidth => format!("{} MiB/s", mebibytes(value)),
            Self::Mean | Self::Max | Self::Percentile(_) => time(value),
        }
    }
}

impl Bound {
    const fn holds(self, value: u64, limit: u64) -> bool {
        match self {
            Self::Below => value < limit,
            Self::AtMost => value <= limit,
            Self::AtLeast => value >= limit,
            Self::Above => value > limit,
        }
    }
}

/// How often designs met all goals, of several runs: with other seeds, or in other readings of the
/// device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeated<'a> {
    /// The number of runs of each design.
    pub(super) count: u32,
    /// What one of the runs is called: `seeds`, `readings`.
    pub(super) runs: &'static str,
    /// In how many of them each design met all goals.
    pub(super) met: &'a [GoalsMet],
}

impl Repeated<'_> {
    fn met_by(&self, design: &str) -> u32 {
        self.met.iter().find(|of| of.design == design).map_or(self.count, |of| of.met)
    }
}

/// How surely a design meets all goals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Met {
    /// In the answered run and in all others.
    Always,
    /// In some run, but not in all.
    Sometimes,
    /// In no run.
    Never,
}

/// Says which designs meet all goals in every run, which in some, and what the others miss.
/// `results` are those of the answered run, `others` those of the runs that judge it.
pub(super) fn sentences(results: &[GoalResult], others: &[Repeated<'_>]) -> Vec<String> {
    let Some(first) = results.first() else { return Vec::new() };
    let count = first.designs.len();
    debug_assert!(results.iter().all(|of| of.designs.len() == count), "a result for each design");
    let names: Vec<_> = first.designs.iter().map(|of| of.design.as_str()).collect();
    let every = if results.len() == 1 { "the goal" } else { "all goals" };
    let met: Vec<_> = (0..count).map(|at| met(results, others, at)).collect();
    let always = (0..count).filter(|at| met[*at] == Met::Always);
    let always: Vec<_> = always.map(|at| names[at]).collect();
    let mut sentences = vec![match always.as_slice() {
        [] if met.contains(&Met::Sometimes) => format!("No design meets {every} in all runs."),
        [] => format!("No design meets {every}."),
        [one] => format!("{one} meets {every}."),
        several if several.len() == count => format!("All {count} designs meet {every}."),
        several => format!("{} meet {every}.", listed(several)),
    }];
    let short: Vec<_> = (0..count).filter(|at| met[*at] != Met::Always).collect();
    for at in short.iter().copied().take(SENTENCES_MAX) {
        let name = names[at];
        let missed = results.iter().filter(|result| !result.designs[at].met);
        let missed = missed.map(|of| format!("{} ({})", of.goal, of.designs[at].figure));
        let missed = missed.collect::<Vec<_>>().join(", ");
        let in_runs = others.iter().filter(|of| of.met_by(name) < of.count);
        let in_runs = in_runs.map(|of| format!("{} of {} {}", of.met_by(name), of.count, of.runs));
        let in_runs = in_runs.collect::<Vec<_>>().join(" and ");
        match met[at] {
            Met::Always => {}
            Met::Sometimes if missed.is_empty() => {
                sentences.push(format!("{name} meets {every} with only {in_runs}."));
            }
            Met::Sometimes => {
                sentences.push(format!("{name} misses {missed}; it meets {every} with {in_runs}."));
            }
            Met::Never => sentences.push(format!("{name} misses {missed}.")),
        }
    }
    if short.len() > SENTENCES_MAX {
        sentences.push(format!("{} more do not meet {every}.", short.len() - SENTENCES_MAX));
    }
    sentences
}

/// Returns how surely the design `at` meets all goals.
fn met(results: &[GoalResult], others: &[Repeated<'_>], at: usize) -> Met {
    debug_assert!(!results.is_empty(), "a design meets goals if there are any");
    let name = results[0].designs[at].design.as_str();
    let in_answer = results.iter().all(|result| result.designs[at].met);
    let in_others = others.iter().map(|of| (of.met_by(name), of.count));
    let runs = in_others.chain([(u32::from(in_answer), 1)]);
    let all = runs.fold((0, 0), |sum, run| (sum.0 + run.0, sum.1 + run.1));
    match all {
        (met, count) if met == count => Met::Always,
        (0, _) => Met::Never,
        _ => Met::Sometimes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DirectionFigures, Latency};
    use blockyard::stats::Histogram;

    fn parsed(text: &str) -> (Option<String>, Option<Direction>, Figure, Bound, u64) {
        let Goal { job, direction, figure, bound, value, .. } = Goal::parse(text).expect(text);
        (job, direction, figure, bound, value)
    }

    fn job(name: &str) -> Option<String> {
        Some(name.to_owned())
    }

    #[test]
    fn a_goal_has_a_job_a_direction_and_a_figure() {
        for (text, expected) in [
            (
                "reader.read.p99<20ms",
                (
                    job("reader"),
                    Some(Direction::Read),
                    Figure::Percentile(99_000),
                    Bound::Below,
                    20_000_000,
                ),
            ),
            (
                "log.write.bw >= 20MiB/s",
                (job("log"), Some(Direction::Write), Figure::Bandwidth, Bound::AtLeast, 20 << 20),
            ),
            ("p99.9<=1.5s", (None, None, Figure::Percentile(99_900), Bound::AtMost, 1_500_000_000)),
            ("bw>1.9MiB/s", (None, None, Figure::Bandwidth, Bound::Above, 1_992_294)),
            ("iops>0.3333k", (None, None, Figure::Iops, Bound::Above, 333)),
            (
                "trim.max<1s",
                (None, Some(Direction::Trim), Figure::Max, Bound::Below, 1_000_000_000),
            ),
            ("db.1.iops>1.5k", (job("db.1"), None, Figure::Iops, Bound::Above, 1500)),
            (
                "read.read.mean<1us",
                (job("read"), Some(Direction::Read), Figure::Mean, Bound::Below, 1000),
            ),
            ("a<b.p50<7ns", (job("a<b"), None, Figure::Percentile(50_000), Bound::Below, 7)),
        ] {
            assert_eq!(parsed(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_goal_is_refused() {
        for text in [
            "",
            "<",
            "p99",
            "p99<",
            "<20ms",
            "p<20ms",
            "p101<20ms",
            "p99.9999<1ms",
            ".p99<1ms",
            "xp99<1ms",
            "reader.read<20ms",
            "p99=20ms",
            "p99<20",
            "bw>20",
            "bw>20ms",
            "iops>20MiB/s",
            "iops>-1",
            "..read.p99<1ms.",
            "p99<>20ms",
        ] {
            assert!(Goal::parse(text).is_err(), "{text}");
        }
        assert!(Goal::parse(&format!("{}.p99<1ms", "x".repeat(LEN_MAX))).is_err());
    }

    fn reached(goal: &str, streams: &[Stream]) -> (bool, String) {
        let reached = Goal::parse(goal).expect(goal).reached("none", streams).expect(goal);
        (reached.met, reached.figure)
    }

    fn stream(direction: Direction, ns: u64, bytes: u64) -> Stream {
        let mut values = Histogram::new();
        values.record(ns);
        let lat_ns = Latency::from(&values);
        let none = Latency::default;
        let figures = DirectionFigures {
            ios: 1,
            bytes,
            iops: 5.0,
            bytes_per_s: 5 * bytes,
            slat_ns: none(),
            clat_ns: none(),
            lat_ns,
        };
        Stream { job: "log".to_owned(), direction, figures }
    }

    /// A log whose writes take 100 us and whose syncs take 170 ms; both at 5 a second.
    fn log() -> Vec<Stream> {
        vec![stream(Direction::Sync, 170_000_000, 0), stream(Direction::Write, 100_000, 4096)]
    }

    /// `log.p99<10ms` was met by a log whose commits took 173 ms: the goal looked at its writes
    /// only.
    #[test]
    fn a_latency_is_demanded_of_syncs_too() {
        let log = log();
        assert_eq!(reached("log.p99<10ms", &log), (false, "170 ms".to_owned()));
        assert_eq!(reached("p99<10ms", &log), (false, "170 ms".to_owned()));
        assert!(reached("log.write.p99<10ms", &log).0);
        assert!(!reached("log.sync.p99<10ms", &log).0);
        assert!(reached("log.sync.max<=170ms", &log).0);
        assert!(reached("log.sync.iops>=5", &log).0);
        // Syncs are no I/Os of the job, and move no bytes.
        assert!(reached("log.bw>=20KiB/s", &log).0);
        assert!(Goal::parse("log.sync.bw>1MiB/s").is_err());
    }

    fn result(met: [bool; 2]) -> [GoalResult; 1] {
        let reached = met.into_iter().zip(["none", "kyber"]).map(|(met, design)| Reached {
            design: design.to_owned(),
            met,
            figure: "12.0 ms".to_owned(),
        });
        [GoalResult { goal: "p99<10ms".to_owned(), designs: reached.collect() }]
    }

    fn runs(met: [u32; 2]) -> Vec<GoalsMet> {
        let of = met.into_iter().zip(["none", "kyber"]);
        of.map(|(met, design)| GoalsMet { design: design.to_owned(), met }).collect::<Vec<_>>()
    }

    fn told(met: [bool; 2], others: [u32; 2]) -> Vec<String> {
        let met_in = runs(others);
        let others = Repeated { count: 16, runs: "readings", met: &met_in };
        sentences(&result(met), &[others])
    }

    #[test]
    fn the_first_line_agrees_with_all_runs() {
        assert_eq!(told([true; 2], [16, 16]), ["All 2 designs meet the goal."]);
        assert_eq!(
            told([true; 2], [13, 16]),
            ["kyber meets the goal.", "none meets the goal with only 13 of 16 readings."]
        );
        assert_eq!(
            told([false, true], [3, 15]),
            [
                "No design meets the goal in all runs.",
                "none misses p99<10ms (12.0 ms); it meets the goal with 3 of 16 readings.",
                "kyber meets the goal with only 15 of 16 readings.",
            ]
        );
        assert_eq!(
            told([false, false], [0, 0]),
            [
                "No design meets the goal.",
                "none misses p99<10ms (12.0 ms).",
                "kyber misses p99<10ms (12.0 ms).",
            ]
        );
    }
}
