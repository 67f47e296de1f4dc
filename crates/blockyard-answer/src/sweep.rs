//! Sweeps: values of keys of a design or a device as an axis of a question.
//!
//! Each design runs with each combination of the values, as a design of its own: what compares
//! designs compares values, too. [`Swept`] adds the best values for each goal, and how to give them
//! to a disk.

use core::fmt;

use blockyard_devices::knobs::Recipe;
use blockyard_devices::profile::{Design, Device, Override, ProfileError, variant_name};
use blockyard_sim::measure::Interval;
use serde::Serialize;

use crate::goal::Goal;
use crate::stream::Stream;
use crate::verdict::{ComparedFigure, LISTED_MAX, listed};
use crate::{Answer, Row};

/// The largest number of runs of one seed: designs times values.
pub(crate) const VARIANTS_MAX: usize = 64;
/// The key of a scheduler, which a design has for itself.
const SCHEDULER: &str = "queue.elevator";

/// A key of a design or a device, and its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The key with its tables, as of an [`Override`].
    pub key: String,
    /// The values, each once.
    pub values: Vec<String>,
}

/// Why values cannot be swept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SweepError {
    /// The text is no `KEY=VALUE,VALUE`.
    Form,
    /// A key has no value, or an empty one.
    Empty {
        /// The key.
        key: String,
    },
    /// A value or a key is there twice.
    Twice {
        /// It.
        what: String,
    },
    /// The key names designs, or changes no figure.
    Refused {
        /// The key.
        key: String,
    },
    /// There are more than 64 runs.
    TooMany {
        /// The number of designs.
        designs: usize,
        /// The numbers of values of the keys.
        values: Vec<usize>,
    },
}

impl fmt::Display for SweepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form => {
                f.write_str("expected KEY=VALUE,VALUE,...: queue.deadline.fifo-batch=1,4,16")
            }
            Self::Empty { key } => {
                write!(f, "`{}` has an empty value, or none", key.escape_debug())
            }
            Self::Twice { what } => write!(f, "`{}` is there twice", what.escape_debug()),
            Self::Refused { key } if key == SCHEDULER => {
                write!(f, "`{key}` cannot be swept: use --design none,mq-deadline")
            }
            Self::Refused { key } => write!(f, "`{key}` changes no figure"),
            Self::TooMany { designs, values } => {
                let values: Vec<_> = values.iter().map(usize::to_string).collect();
                let values = values.join(" x ");
                write!(f, "{designs} designs x {values} values are more than {VARIANTS_MAX} runs")
            }
        }
    }
}

impl core::error::Error for SweepError {}

impl Axis {
    /// Reads `KEY=VALUE,VALUE,...`. A comma within brackets or quotes belongs to its value:
    /// `card.write.spread=[[0,90],[100,110]],[[0,100]]` has two.
    ///
    /// # Errors
    ///
    /// All but [`SweepError::TooMany`].
    pub fn parse(text: &str) -> Result<Self, SweepError> {
        let (key, values) = text.split_once('=').ok_or(SweepError::Form)?;
        let values = split(values).into_iter().map(|value| value.trim().to_owned()).collect();
        Self::new(key.trim(), values)
    }

    /// Returns the axis of `key` with these values.
    ///
    /// # Errors
    ///
    /// All but [`SweepError::TooMany`].
    pub fn new(key: &str, values: Vec<String>) -> Result<Self, SweepError> {
        if key.is_empty() {
            return Err(SweepError::Form);
        }
        if [SCHEDULER, "title", "origin"].contains(&key) {
            return Err(SweepError::Refused { key: key.to_owned() });
        }
        if values.is_empty() || values.iter().any(String::is_empty) {
            return Err(SweepError::Empty { key: key.to_owned() });
        }
        if let Some(twice) = repeated(&values) {
            return Err(SweepError::Twice { what: format!("{key}={twice}") });
        }
        Ok(Self { key: key.to_owned(), values })
    }
}

/// Returns the first value that is there twice.
fn repeated(values: &[String]) -> Option<&String> {
    values.iter().enumerate().find(|(at, value)| values[..*at].contains(value)).map(|of| of.1)
}

/// Splits `text` at commas outside brackets and quotes.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut depth = 0_u32;
    let mut quote = None;
    for (at, letter) in text.char_indices() {
        match (letter, quote) {
            (_, Some(open)) => quote = Some(open).filter(|open| *open != letter),
            ('"' | '\'', None) => quote = Some(letter),
            ('[' | '{', None) => depth += 1,
            (']' | '}', None) => depth = depth.saturating_sub(1),
            (',', None) if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// A design with a combination of values.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Point {
    /// The name of the design without them.
    base: String,
    /// A value of each axis.
    values: Vec<Override>,
}

/// The runs of a sweep: each design with each combination of values, the last key varying fastest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    points: Vec<Point>,
}

impl Sweep {
    /// Returns the runs of the designs with these names over `axes`.
    ///
    /// # Errors
    ///
    /// [`SweepError::Twice`] for a key, [`SweepError::TooMany`].
    pub fn new(axes: &[Axis], designs: &[String]) -> Result<Self, SweepError> {
        let keys: Vec<_> = axes.iter().map(|axis| axis.key.clone()).collect();
        if let Some(twice) = repeated(&keys) {
            return Err(SweepError::Twice { what: twice.clone() });
        }
        let values: Vec<_> = axes.iter().map(|axis| axis.values.len()).collect();
        let runs = values.iter().fold(designs.len(), |runs, count| runs.saturating_mul(*count));
        if runs > VARIANTS_MAX && !axes.is_empty() {
            return Err(SweepError::TooMany { designs: designs.len(), values });
        }
        let mut points: Vec<_> =
            designs.iter().map(|of| Point { base: of.clone(), values: Vec::new() }).collect();
        for axis in axes {
            let with = |point: &Point| {
                let values = axis.values.iter().map(|value| {
                    let set = Override { key: axis.key.clone(), value: value.clone() };
                    let mut point = point.clone();
                    point.values.push(set);
                    point
                });
                values.collect::<Vec<_>>()
            };
            points = points.iter().flat_map(with).collect();
        }
        debug_assert_eq!(points.len(), runs, "a run for each combination");
        Ok(Self { points })
    }

    /// Returns the design of each run. Its name has all its values. `set` are values that all runs
    /// have.
    ///
    /// # Errors
    ///
    /// A design is not there, or does not take a value.
    pub fn designs(&self, set: &[Override]) -> Result<Vec<Design>, ProfileError> {
        let of_point = |Point { base, values }: &Point| {
            let all = set.iter().chain(values).filter(|of| of.is_of_design());
            let mut design = Design::lookup_with(base, &all.cloned().collect::<Vec<_>>())?;
            let named = set.iter().filter(|of| of.is_of_design()).chain(values).cloned();
            design.name = variant_name(base, &named.collect::<Vec<_>>());
            Ok(design)
        };
        self.points.iter().map(of_point).collect()
    }

    /// Returns the values of the device in each run; empty if none is swept.
    #[must_use]
    pub fn device_values(&self) -> Vec<Vec<Override>> {
        let of_device = |point: &Point| -> Vec<_> {
            point.values.iter().filter(|of| !of.is_of_design()).cloned().collect()
        };
        let all: Vec<_> = self.points.iter().map(of_device).collect();
        if all.iter().all(Vec::is_empty) { Vec::new() } else { all }
    }

    /// Returns the keys.
    fn keys(&self) -> Vec<&str> {
        let first = self.points.first().map_or(&[][..], |point| &point.values);
        first.iter().map(|of| of.key.as_str()).collect()
    }
}

/// What a sweep found.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Swept {
    /// The keys that were swept.
    pub keys: Vec<String>,
    /// The runs, in the order of the designs of the answer.
    pub variants: Vec<Variant>,
    /// The best values for each goal; without goals, for the IOPS and the p99 of each job and
    /// direction.
    pub best: Vec<Best>,
    /// The design that meets the most goals, and of several the best one for the first goal about
    /// which they differ, and of equals the first; null if no value is known to be better than
    /// another.
    pub winner: Option<String>,
    /// How to give a disk the values of the winner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipe: Option<Recipe>,
    /// What `best` is about, in the same order.
    #[serde(skip)]
    judged: Vec<Goal>,
}

/// A design with values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Variant {
    /// Its name in the answer.
    pub design: String,
    /// The name of the design without the values.
    pub base: String,
    /// The value of each key.
    pub values: Vec<String>,
}

/// The best values for a goal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Best {
    /// The goal as it was written, or the figure.
    pub goal: String,
    /// The design with the best figure: its mean over the seeds.
    pub design: String,
    /// Its figure in the answered run, with its unit.
    pub figure: String,
    /// The designs that are equal to it: rates within 2 %, latencies within 10 %.
    pub equal: Vec<String>,
    /// The designs of which it is not known whether they are worse.
    pub undecided: Vec<String>,
    /// The number of seeds that were compared. With one, chance is not tested.
    pub seeds: u32,
}

/// The figure of a goal under each design, in one run; `None` if no I/O ended.
type Values = Vec<Option<f64>>;

impl Swept {
    /// Returns what the first runs, of `answer`, say of `sweep`.
    pub(crate) fn of(sweep: &Sweep, designs: &[Design], goals: &[Goal], answer: &Answer) -> Self {
        debug_assert_eq!(designs.len(), sweep.points.len(), "a design for each run");
        let of_point = |(point, design): (&Point, &Design)| Variant {
            design: design.name.clone(),
            base: point.base.clone(),
            values: point.values.iter().map(|of| of.value.clone()).collect(),
        };
        let variants = sweep.points.iter().zip(designs).map(of_point);
        let has_run = |of: &Variant| answer.unsuited.iter().all(|other| other.design != of.design);
        let rows = &answer.verdict.rows;
        let swept = Self {
            keys: sweep.keys().into_iter().map(str::to_owned).collect(),
            variants: variants.filter(has_run).collect(),
            best: Vec::new(),
            winner: None,
            recipe: None,
            judged: if goals.is_empty() { usual(rows) } else { goals.to_vec() },
        };
        swept.over(answer, &[])
    }

    /// Judges the values again, by the runs of `answer` and those of further seeds: the streams of
    /// each design for each seed.
    pub(crate) fn over(mut self, answer: &Answer, seeds: &[Vec<&[Stream]>]) -> Self {
        let first: Vec<_> = answer.designs.iter().map(|of| Stream::all(&of.jobs)).collect();
        let first: Vec<_> = first.iter().map(Vec::as_slice).collect();
        let runs: Vec<_> = core::iter::once(&first).chain(seeds).collect();
        let names: Vec<_> = answer.designs.iter().map(|of| of.name.as_str()).collect();
        let best = self.judged.iter().filter_map(|goal| {
            let values = runs.iter().map(|run| run.iter().map(|of| goal.value_in(of)).collect());
            best(goal, &names, &values.collect::<Vec<Values>>())
        });
        self.best = best.collect();
        self
    }

    /// Returns the sweep with its winner, and how to set it on its device. `answer` is final.
    pub(crate) fn with_winner<'a>(
        mut self,
        answer: &Answer,
        designs: &[Design],
        device_of: impl Fn(usize) -> &'a Device,
    ) -> Self {
        let names: Vec<_> = answer.designs.iter().map(|of| of.name.as_str()).collect();
        let met: Vec<_> = names.iter().map(|name| met_by(answer, name)).collect();
        let most = met.iter().max().copied().unwrap_or_default();
        let left: Vec<_> =
            names.iter().zip(&met).filter(|of| *of.1 == most).map(|of| *of.0).collect();
        let left = narrowed(left, &self.best);
        // A single run wins: there is nothing else to set.
        let is_known = left.len() < names.len() || names.len() == 1;
        self.winner = left.first().filter(|_| is_known).map(|name| (*name).to_owned());
        let at = designs.iter().position(|of| Some(&of.name) == self.winner.as_ref());
        self.recipe = at.map(|at| {
            let keys: Vec<_> = self.keys.iter().map(String::as_str).collect();
            Recipe::of(&designs[at], Some(device_of(at)), &keys)
        });
        self
    }

    /// Says which values are best.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let count = self.variants.len();
        let mut sentences: Vec<_> = self.best.iter().map(|of| of.sentence(count)).collect();
        if self.winner.is_none() {
            sentences.push("No value is known to be better: there is nothing to set.".to_owned());
        }
        sentences
    }
}

impl Best {
    /// Whether the design is the best one, or equal to it.
    fn is_best(&self, name: &str) -> bool {
        self.design == name || self.equal.iter().any(|of| of == name)
    }

    fn sentence(&self, count: usize) -> String {
        let Self { goal, design, figure, equal, undecided, .. } = self;
        if equal.len() + 1 == count && count > 1 {
            return format!("{goal}: all values are equal ({figure} with {design}).");
        }
        let equal = named("; equal: ", equal);
        let open = named("; not known to be worse: ", undecided);
        format!("Best for {goal}: {design} ({figure}){equal}{open}.")
    }
}

/// Returns those of the designs `left` that are best for one goal after another. A goal for which
/// none of them is best, or all are, decides nothing.
fn narrowed<'a>(mut left: Vec<&'a str>, goals: &[Best]) -> Vec<&'a str> {
    for goal in goals {
        // Where others may be as good, nothing is known.
        let is_likely =
            |name: &&&str| goal.is_best(name) || goal.undecided.iter().any(|of| of == **name);
        if left.iter().filter(is_likely).count() == left.len() {
            continue;
        }
        let best: Vec<_> = left.iter().copied().filter(|name| goal.is_best(name)).collect();
        if !best.is_empty() {
            left = best;
        }
    }
    left
}

/// Returns `words` with the names of designs; nothing without a name.
fn named(words: &str, designs: &[String]) -> String {
    let shown: Vec<_> = designs.iter().take(LISTED_MAX).map(String::as_str).collect();
    match designs.len() - shown.len() {
        0 if shown.is_empty() => String::new(),
        0 => format!("{words}{}", listed(&shown)),
        more => format!("{words}{}, {more} more", shown.join(", ")),
    }
}

/// Returns the number of goals that a design meets in every run that was asked for: with each seed
/// and in each reading if it meets all of them there, and else in the answered run.
fn met_by(answer: &Answer, name: &str) -> (bool, usize) {
    let at = answer.designs.iter().position(|of| of.name == name);
    let in_run = answer.goals.iter().filter(|goal| at.is_some_and(|at| goal.designs[at].met));
    (at.is_some_and(|at| answer.meets_goals(at)), in_run.count())
}

/// Returns the figures that stand for goals where there are none: those by which designs are
/// compared.
fn usual(rows: &[Row]) -> Vec<Goal> {
    let of_row = |row: &Row| {
        let figures = ComparedFigure::of(row).into_iter();
        figures.map(|figure| Goal::on(row, figure)).collect::<Vec<_>>()
    };
    rows.iter().flat_map(of_row).collect()
}

/// Returns the values of the design `at` in all runs; `None` if a run has none.
fn values_of(runs: &[Values], at: usize) -> Option<Vec<f64>> {
    runs.iter().map(|values| values[at]).collect()
}

/// The ratio of two values; of two zeros, that of equals.
#[expect(clippy::float_arithmetic, clippy::float_cmp, reason = "zero is exact")]
fn ratio(own: f64, top: f64) -> f64 {
    if own == top { 1.0 } else { own / top }
}

/// Returns the best of the designs `names` for `goal`. `runs` has the values of a run for each
/// seed. `None` if no design has a value with every seed.
#[expect(clippy::float_arithmetic, reason = "means and bounds of equality")]
fn best(goal: &Goal, names: &[&str], runs: &[Values]) -> Option<Best> {
    let sign = if goal.is_more_better() { 1.0 } else { -1.0 };
    let known = (0..names.len()).filter_map(|at| {
        let values = values_of(runs, at)?;
        Some((at, sign * values.iter().sum::<f64>(), values))
    });
    let known: Vec<_> = known.collect();
    // The first of equals.
    let (top, _, tops) =
        known.iter().reduce(|best, other| if other.1 > best.1 { other } else { best })?;
    let mut equal = Vec::new();
    let mut undecided = Vec::new();
    for (at, _, values) in known.iter().filter(|(at, ..)| at != top) {
        let ratios = values.iter().zip(tops).map(|(own, top)| ratio(*own, *top));
        let ratios: Vec<_> = ratios.collect();
        let Interval { low, high, .. } = match ratios[..] {
            [one] => Interval { low: one, mean: one, high: one },
            _ => Interval::of(&ratios),
        };
        let within = goal.equal_within();
        let is_worse = if sign > 0.0 { high < 1.0 - within } else { low > 1.0 + within };
        let name = names[*at].to_owned();
        match is_worse {
            true => {}
            false if low >= 1.0 - within && high <= 1.0 + within => equal.push(name),
            false => undecided.push(name),
        }
    }
    let figure = runs.first().and_then(|run| run[*top]).map(|value| goal.words(value))?;
    let seeds = u32::try_from(runs.len()).expect("a count of seeds");
    Some(Best {
        goal: goal.text.clone(),
        design: names[*top].to_owned(),
        figure,
        equal,
        undecided,
        seeds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    fn parsed(text: &str) -> Result<(String, Vec<String>), String> {
        Axis::parse(text).map(|of| (of.key, of.values)).map_err(|error| error.to_string())
    }

    #[test]
    fn an_axis_is_a_key_and_its_values() {
        for (text, key, values) in [
            ("queue.nomerges=0,1,2", "queue.nomerges", &["0", "1", "2"][..]),
            (" a.b = 1 , 2ms ", "a.b", &["1", "2ms"]),
            ("a.b=[[0,90],[100,110]],[[0,100]]", "a.b", &["[[0,90],[100,110]]", "[[0,100]]"]),
            ("a.b=\"x,y\",'u,v'", "a.b", &["\"x,y\"", "'u,v'"]),
            ("a.b=x=y", "a.b", &["x=y"]),
        ] {
            let values = values.iter().map(|value| (*value).to_owned()).collect();
            assert_eq!(parsed(text), Ok((key.to_owned(), values)), "{text}");
        }
    }

    #[test]
    fn an_error_says_what_is_wrong_with_an_axis() {
        for (text, words) in [
            ("queue.nomerges", "expected KEY=VALUE,VALUE,...: queue.deadline.fifo-batch=1,4,16"),
            ("=1", "expected KEY=VALUE,VALUE,..."),
            ("a.b=", "`a.b` has an empty value, or none"),
            ("a.b=1,,2", "`a.b` has an empty value, or none"),
            ("a.b=1,2,1", "`a.b=1` is there twice"),
            ("title=a,b", "`title` changes no figure"),
            ("queue.elevator=none,bfq", "`queue.elevator` cannot be swept: use --design"),
            ("a\u{1b}.b=", "`a\\u{1b}.b` has an empty value"),
        ] {
            let error = parsed(text).unwrap_err();
            assert!(error.starts_with(words), "{text}: {error}");
        }
    }

    fn axis(key: &str, count: usize) -> Axis {
        Axis::new(key, (0..count).map(|value| value.to_string()).collect()).expect("an axis")
    }

    #[test]
    fn runs_are_limited_and_keys_there_once() {
        let designs = ["mq-deadline".to_owned(), "kyber".to_owned()];
        let most = [axis("a", 8), axis("b", 4)];
        assert!(Sweep::new(&most, &designs).is_ok());
        let error = Sweep::new(&[axis("a", 8), axis("b", 5)], &designs).unwrap_err();
        assert_eq!(error.to_string(), "2 designs x 8 x 5 values are more than 64 runs");
        // 12 axes of 64 values are 2^72 runs.
        let huge: Vec<_> = (0..12).map(|at| axis(&at.to_string(), 64)).collect();
        assert!(matches!(Sweep::new(&huge, &designs), Err(SweepError::TooMany { .. })));
        let twice = Sweep::new(&[axis("a", 2), axis("a", 2)], &designs).unwrap_err();
        assert_eq!(twice.to_string(), "`a` is there twice");
        // Designs alone are no sweep: there is no limit.
        assert!(Sweep::new(&[], &vec!["none".to_owned(); 65]).is_ok());
    }

    fn best_of(text: &str, runs: &[&[u32]]) -> Best {
        let goal = Goal::parse(text).expect("a goal");
        let runs: Vec<Values> = runs
            .iter()
            .map(|run| run.iter().map(|value| Some(f64::from(*value))).collect())
            .collect();
        best(&goal, &["a", "b", "c"][..runs[0].len()], &runs).expect("values")
    }

    /// Rates within 2 % and latencies within 10 % are equal. With seeds, the interval of the ratio
    /// decides: of 1.00, 1.30 and 0.75 it holds 1.
    #[test]
    fn the_best_is_known_where_the_interval_of_the_ratio_says_so() {
        let rate = best_of("iops>=1", &[&[1000, 985, 970]]);
        assert_eq!((rate.design.as_str(), rate.equal.as_slice()), ("a", &["b".to_owned()][..]));
        let latency = best_of("p99<1ms", &[&[1000, 1090, 1110]]);
        assert_eq!((latency.design.as_str(), latency.equal.len()), ("a", 1));
        assert_eq!(latency.figure, "1.00 us");
        let unsure = best_of("iops>=1", &[&[1000, 990], &[1000, 1300], &[1000, 750]]);
        assert_eq!(
            (unsure.design.as_str(), unsure.undecided.as_slice()),
            ("b", &["a".to_owned()][..])
        );
        assert_eq!(unsure.seeds, 3);
        let idle = best_of("iops>=1", &[&[0, 0], &[0, 0]]);
        assert_eq!(idle.equal, ["b"]);
        let sure = best_of("iops>=1", &[&[1000, 500], &[1010, 505], &[990, 495]]);
        assert!(sure.undecided.is_empty() && sure.equal.is_empty(), "{sure:?}");
    }

    /// The first goal leaves b and c, which are equal. The second one does not know which of them
    /// is worse, and the third one, for which c is best, decides.
    #[test]
    fn equals_are_told_apart_by_the_next_goal() {
        let first = best_of("iops>=1", &[&[100, 1000, 990]]);
        let second = best_of("p99<1ms", &[&[10, 5000, 1000]]);
        let names = vec!["a", "b", "c"];
        assert_eq!(narrowed(names.clone(), core::slice::from_ref(&first)), ["b", "c"]);
        let unsure = Best { design: "c".to_owned(), ..first.clone() };
        let unsure = Best { equal: Vec::new(), undecided: vec!["b".to_owned()], ..unsure };
        assert_eq!(narrowed(names.clone(), &[first.clone(), unsure.clone()]), ["b", "c"]);
        let decided = Best { design: "c".to_owned(), equal: Vec::new(), ..second };
        assert_eq!(narrowed(names, &[first, unsure, decided]), ["c"]);
    }

    #[test]
    fn a_sentence_names_the_best_and_what_is_like_it() {
        for (equal, undecided, words) in [
            (&[][..], &[][..], "Best for p99<20ms: a (12 ms)."),
            (&["b"], &["c"], "Best for p99<20ms: a (12 ms); equal: b; not known to be worse: c."),
            (&["b", "c", "d"], &[], "p99<20ms: all values are equal (12 ms with a)."),
        ] {
            let [equal, undecided] = [equal, undecided]
                .map(|names: &[&str]| names.iter().map(|of| (*of).to_owned()).collect());
            let figure = "12 ms".to_owned();
            let best = Best { figure, equal, undecided, ..best_of("p99<20ms", &[&[1]]) };
            assert_eq!(best.sentence(4), words);
        }
    }

    proptest! {
        #[test]
        fn values_are_read_as_they_were_joined(values in proptest::collection::hash_set("[a-z0-9.-]{1,8}", 1..9)) {
            let values: Vec<_> = values.into_iter().collect();
            let axis = Axis::parse(&format!("queue.x={}", values.join(","))).expect("an axis");
            prop_assert_eq!(axis.values, values);
        }

        #[test]
        fn any_text_is_an_axis_or_an_error(text in any::<String>()) {
            if let Ok(axis) = Axis::parse(&text) {
                prop_assert_eq!(Axis::new(&axis.key, axis.values.clone()), Ok(axis));
            }
        }
    }
}
