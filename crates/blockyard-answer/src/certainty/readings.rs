//! Other readings of a device: how often the ranking of the designs holds if assumed figures are
//! others.

use super::question::{Question, Run};
use super::seeds::ratio;
use crate::goal::GoalsMet;
use crate::parallel::each;
use crate::verdict::{ComparedFigure, LISTED_MAX, listed};
use crate::{Answer, Row};
use blockyard_devices::profile::Device;
use blockyard_sim::simulate::SimulationError;
use serde::Serialize;

/// What other readings of the device say of the designs.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Readings {
    /// The number of readings.
    pub count: u32,
    /// For each job and direction, each design compared with the next in its ranking in the answer,
    /// the fastest first.
    pub ranking: Vec<Ranking>,
    /// In how many readings each design meets all goals, if there are goals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goals: Vec<GoalsMet>,
}

/// How often one design is faster than another for one job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ranking {
    /// The job, and its direction if it has several; empty if there is one job and direction.
    pub job: String,
    /// The figure that is compared.
    pub figure: ComparedFigure,
    /// The design that is better with the figures as the profile states them, or named first if
    /// both are equal.
    pub first: String,
    /// The other design.
    pub second: String,
    /// In how many readings the first has more IOPS by more than 2 %, or a p99 shorter by more than
    /// 10 %.
    pub faster: u32,
    /// In how many readings they are that near to each other.
    pub equal: u32,
    /// In how many readings the first is worse by more than that.
    pub slower: u32,
    /// The figure that decides, if the readings differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decider: Option<Decider>,
    /// The keys that decide between the two designs and have no range, if both are equal in all
    /// readings: these say nothing about them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untested: Vec<String>,
}

/// The figure on whose value the ranking depends most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Decider {
    /// Its table and key.
    pub key: String,
    /// The lowest and the highest value that it may have.
    pub range: [String; 2],
    /// Whether a larger value favours the first design.
    pub more_favours_first: bool,
}

impl Ranking {
    /// The number of readings.
    const fn readings(&self) -> u32 {
        self.faster + self.equal + self.slower
    }

    /// Whether so many readings call the two designs equal, three quarters at least, that the
    /// others only show how far apart they may be.
    #[must_use]
    pub const fn is_mostly_equal(&self) -> bool {
        4 * self.equal >= 3 * self.readings()
    }

    /// Whether all readings call the two designs equal.
    #[must_use]
    pub(crate) const fn is_always_equal(&self) -> bool {
        self.equal > 0 && self.faster + self.slower == 0
    }

    /// Says in how many readings the second design is better, if these are more than half.
    fn reversed(&self) -> Option<String> {
        let is_reversed = 2 * self.slower > self.readings();
        is_reversed.then(|| format!("; {} in {} of {}", self.second, self.slower, self.readings()))
    }

    /// Whether all readings agree.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        [self.faster, self.equal, self.slower].contains(&self.readings())
    }
}

impl Readings {
    /// Names the comparisons that assumed figures of the device decide; `None` if there are none.
    /// Where more than half of the readings reverse the order of the table, it says how many.
    pub(super) fn sentence(&self) -> Option<String> {
        let open = self.ranking.iter().filter(|of| !of.is_decided() && !of.is_mostly_equal());
        let named = open.map(|of| {
            let figure = of.figure.name();
            let job = if of.job.is_empty() { String::new() } else { format!("{} ", of.job) };
            let reversed = of.reversed().unwrap_or_default();
            format!("{job}{figure} ({} or {}{reversed})", of.first, of.second)
        });
        let named: Vec<_> = named.collect();
        let what = "Undecided, depending on parameters that are only assumed";
        (!named.is_empty()).then(|| format!("{what}: {}.", named.join("; ")))
    }

    /// Says of which jobs the design with the most IOPS has fewer than the next in more than half
    /// of the readings; `None` if there are none.
    pub(super) fn contrary(&self) -> Option<String> {
        let mut seen: Vec<&str> = Vec::new();
        let mut jobs = Vec::new();
        for of in self.ranking.iter().filter(|of| of.figure == ComparedFigure::Iops) {
            // The first pair of a job has the fastest design.
            let is_first = !seen.contains(&of.job.as_str());
            seen.push(&of.job);
            if is_first && of.reversed().is_some() {
                jobs.push(of.job.as_str());
            }
        }
        match jobs.as_slice() {
            [] => None,
            [""] => Some("most readings say otherwise".to_owned()),
            [_, ..] if jobs.len() > LISTED_MAX => {
                Some(format!("most readings say otherwise for {} jobs", jobs.len()))
            }
            _ => Some(format!("most readings say otherwise for {}", listed(&jobs))),
        }
    }
}

/// Asks `question` about each of `devices`, which are readings of the device of each design.
/// `answer` is that to the devices as their profile states them.
pub(super) fn readings(
    question: Question<'_>,
    answer: &Answer,
    devices: &[&[Device]],
    ended: impl Fn() + Sync,
) -> Result<Readings, SimulationError> {
    let designs = question.designs;
    debug_assert_eq!(devices.len(), designs.len(), "readings for each design");
    // Figures of all devices lie at the same places, but for one that is swept.
    let readings = devices.first().copied().unwrap_or_default();
    let runs = (0..readings.len()).flat_map(|nth| (0..designs.len()).map(move |at| (nth, at)));
    let runs: Vec<_> = runs.collect();
    let found = each(&runs, |(nth, at)| {
        let run = question.run(&devices[*at][*nth], &designs[*at], question.conditions.seed);
        ended();
        run
    });
    let found: Vec<Run> = found.into_iter().collect::<Result<_, _>>()?;
    let by_reading: Vec<_> = found.chunks(designs.len()).collect();
    let stated = &answer.verdict.rows;
    let rows: Vec<_> = by_reading.iter().map(|runs| question.rows(runs, stated)).collect();
    let mut ranked = Vec::new();
    for (at, row) in answer.verdict.rows.iter().enumerate() {
        for figure in ComparedFigure::of(row) {
            let cells: Vec<f64> = row.designs.iter().map(|cell| figure.in_cell(cell)).collect();
            let mut order: Vec<usize> = (0..designs.len()).collect();
            order.sort_by(|a, b| match figure {
                ComparedFigure::Iops => cells[*b].total_cmp(&cells[*a]),
                ComparedFigure::P99 | ComparedFigure::Median => cells[*a].total_cmp(&cells[*b]),
            });
            ranked.extend(order.windows(2).filter_map(|pair| {
                let ratios = rows.iter().map(|rows| ratio(figure, &rows[at], [pair[0], pair[1]]));
                let ratios = ratios.collect::<Option<Vec<f64>>>()?;
                let pair = [pair[0], pair[1]];
                let names = pair.map(|at| designs[at].name.as_str());
                let of_pair = ranking(row, figure, names, &ratios, readings);
                let untested = if of_pair.is_always_equal() {
                    question.untested(answer, pair)
                } else {
                    Vec::new()
                };
                Some(Ranking { untested, ..of_pair })
            }));
        }
    }
    let count = u32::try_from(readings.len()).expect("a count of readings");
    Ok(Readings { count, ranking: ranked, goals: question.goals_met(&by_reading) })
}

/// Counts the readings in which the first of two designs is better. `ratios` has the figure of the
/// first relative to that of the second in each reading.
#[expect(clippy::float_arithmetic, reason = "the bounds of equality")]
fn ranking(
    row: &Row,
    figure: ComparedFigure,
    [first, second]: [&str; 2],
    ratios: &[f64],
    devices: &[Device],
) -> Ranking {
    let within = figure.equal_within();
    let more = count(ratios, |ratio| ratio > 1.0 + within);
    let less = count(ratios, |ratio| ratio < 1.0 - within);
    let equal = count(ratios, |_| true) - more - less;
    let [faster, slower] = match figure {
        ComparedFigure::Iops => [more, less],
        ComparedFigure::P99 | ComparedFigure::Median => [less, more],
    };
    let ranking = Ranking {
        job: row.label.clone(),
        figure,
        first: first.to_owned(),
        second: second.to_owned(),
        faster,
        equal,
        slower,
        decider: None,
        untested: Vec::new(),
    };
    let decider = if ranking.is_decided() { None } else { decider(figure, ratios, devices) };
    Ranking { decider, ..ranking }
}

/// The readings whose ratio `is` accepts.
fn count(ratios: &[f64], is: impl Fn(f64) -> bool) -> u32 {
    let found = ratios.iter().filter(|ratio| is(**ratio)).count();
    u32::try_from(found).expect("a count of readings")
}

/// Returns the figure whose places order the readings most like the ratios do, by Kendall's rank
/// correlation. Returns `None` if chance could make one of the figures so alike: if the sum of
/// agreements is below four times its deviation among independent orders, which is at 0.5 of all
/// pairs for 32 readings, and never exceeded by 8.
fn decider(figure: ComparedFigure, ratios: &[f64], devices: &[Device]) -> Option<Decider> {
    let figures = &devices.first()?.figures;
    let count = i64::try_from(ratios.len()).expect("a count of readings");
    let variance_by_18 = count * (count - 1) * (2 * count + 5);
    let varied = (0..figures.len()).filter(|at| figures[*at].range.is_some());
    let (at, sum) =
        varied.map(|at| (at, correlation(devices, ratios, at))).max_by_key(|(_, sum)| sum.abs())?;
    let is_strong = 18 * sum * sum >= 16 * variance_by_18;
    let range = figures[at].range.clone().filter(|_| is_strong)?;
    Some(Decider {
        key: figures[at].key.clone(),
        range,
        more_favours_first: (sum > 0) == (figure == ComparedFigure::Iops),
    })
}

/// Pairs of readings in which the figure `at` and the ratio rise together, less the pairs in which
/// one rises as the other falls: 3 of 3 pairs in the same order are 3, in the opposite order -3.
fn correlation(devices: &[Device], ratios: &[f64], at: usize) -> i64 {
    let mut sum = 0;
    for (n, (one, of_one)) in devices.iter().zip(ratios).enumerate() {
        for (other, of_other) in devices.iter().zip(ratios).take(n) {
            let [place, other_place] =
                [one, other].map(|device| device.figures[at].place.unwrap_or_default());
            sum += place.cmp(&other_place) as i64 * (of_one.total_cmp(of_other) as i64);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    const NULL: &str = "base = \"null\"\n[null]\ncompletion = \"timer\"\n\
                        completion-time = { value = \"100us\", range = [\"50us\", \"200us\"], \
                        origin = \"assumed: a test\" }\n";

    fn devices(count: u32) -> Vec<Device> {
        let path =
            std::env::temp_dir().join(format!("readings-{}-{count}.toml", std::process::id()));
        std::fs::write(&path, NULL).expect("space for a small file");
        let devices = Device::readings(path.to_str().expect("a path in UTF-8"), &[], 1, count);
        std::fs::remove_file(&path).expect("our file");
        devices.expect("readings of a sound profile")
    }

    fn row() -> Row {
        let job = String::new();
        let direction = "read".to_owned();
        let label = String::new();
        Row { job, direction, label, designs: Vec::new() }
    }

    #[test]
    fn the_figure_that_orders_the_readings_decides() {
        let devices = devices(32);
        let at = devices[0].figures.iter().position(|of| of.key == "null.completion-time");
        let at = at.expect("a figure with a range");
        let rising: Vec<f64> = devices
            .iter()
            .map(|device| 0.5 + f64::from(device.figures[at].place.expect("a reading")) / 256.0)
            .collect();
        let of = ranking(&row(), ComparedFigure::Iops, ["a", "b"], &rising, &devices);
        assert!(of.faster > 0 && of.slower > 0 && !of.is_decided(), "{of:?}");
        let decider = of.decider.expect("a figure that decides");
        assert_eq!(
            (decider.key.as_str(), decider.more_favours_first),
            ("null.completion-time", true)
        );
        let falling: Vec<f64> = rising.iter().map(|ratio| 2.0 - ratio).collect();
        let decider = ranking(&row(), ComparedFigure::Iops, ["a", "b"], &falling, &devices)
            .decider
            .expect("the same figure");
        assert!(!decider.more_favours_first);
    }

    #[test]
    fn few_readings_name_no_figure_and_agreeing_ones_decide() {
        let few = devices(8);
        let ratios: Vec<f64> = (0..8).map(|n| 0.6 + f64::from(n) / 10.0).collect();
        assert_eq!(ranking(&row(), ComparedFigure::Iops, ["a", "b"], &ratios, &few).decider, None);
        let of = ranking(&row(), ComparedFigure::Iops, ["a", "b"], &[1.5; 8], &few);
        assert_eq!((of.faster, of.equal, of.slower, of.is_decided()), (8, 0, 0, true));
        let of = ranking(&row(), ComparedFigure::Iops, ["a", "b"], &[1.019; 8], &few);
        assert_eq!((of.equal, of.is_decided()), (8, true));
    }

    fn counted(job: &str, figure: ComparedFigure, counts: [u32; 3]) -> Ranking {
        Ranking {
            job: job.to_owned(),
            figure,
            first: "kyber".to_owned(),
            second: "none".to_owned(),
            faster: counts[0],
            equal: counts[1],
            slower: counts[2],
            decider: None,
            untested: Vec::new(),
        }
    }

    fn told(ranking: Vec<Ranking>) -> Option<String> {
        Readings { count: 8, ranking, goals: Vec::new() }.sentence()
    }

    fn contrary(ranking: &[Ranking]) -> Option<String> {
        Readings { count: 8, ranking: ranking.to_vec(), goals: Vec::new() }.contrary()
    }

    /// The first line called kyber fastest for every job, and a reader stopped there. It was
    /// slower in five of eight readings. The order of designs behind the fastest is not its matter.
    #[test]
    fn the_first_line_says_that_most_readings_say_otherwise() {
        let reader = counted("reader", ComparedFigure::Iops, [2, 1, 5]);
        let flood = counted("flood", ComparedFigure::Iops, [0, 3, 5]);
        let sure = counted("log", ComparedFigure::Iops, [4, 0, 4]);
        let tail = counted("log", ComparedFigure::P99, [0, 0, 8]);
        assert_eq!(
            contrary(&[sure.clone(), tail, flood.clone(), sure.clone()]).as_deref(),
            Some("most readings say otherwise for flood")
        );
        assert_eq!(
            contrary(&[reader.clone(), flood]).as_deref(),
            Some("most readings say otherwise for reader and flood")
        );
        let second = Ranking { job: "log".to_owned(), ..reader.clone() };
        assert_eq!(contrary(&[sure, second]), None);
        let alone = Ranking { job: String::new(), ..reader };
        assert_eq!(contrary(&[alone]).as_deref(), Some("most readings say otherwise"));
    }

    /// The first lines called a design fastest that was slower in five of eight readings.
    #[test]
    fn the_first_lines_name_what_assumed_figures_decide() {
        let decided = counted("reader", ComparedFigure::Iops, [8, 0, 0]);
        let mostly_equal = counted("log", ComparedFigure::Iops, [1, 6, 1]);
        assert_eq!(told(vec![decided.clone(), mostly_equal]), None);
        let open = [
            decided,
            counted("flood", ComparedFigure::Iops, [0, 3, 5]),
            counted("", ComparedFigure::P99, [7, 1, 0]),
        ];
        assert_eq!(
            told(open.to_vec()).as_deref(),
            Some(
                "Undecided, depending on parameters that are only assumed: flood IOPS (kyber or none; none in 5 of 8); p99 (kyber or none)."
            )
        );
    }
}
