//! Published figures: from before a change, and its outcome, with what was predicted of it.

use serde::Serialize;

/// A published figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// Name of its workload.
    pub workload: &'static str,
    /// Name of its design.
    pub design: &'static str,
    /// The figure, in the unit of its table.
    pub figure: f64,
    /// The relation of the model to the figure.
    pub basis: Basis,
    /// What the model predicted before the figure was known. It is data, and does not follow the
    /// model.
    pub predicted: Option<Range>,
}

/// The relation of the model to a published figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// The profile was fitted to it.
    Fitted,
    /// The profile was not fitted to it.
    Outcome,
    /// It was unknown until the model had predicted it, and the model has not changed for it since.
    Blind,
    /// As [`Blind`](Self::Blind), but the model was changed when it was known. The figure of today
    /// is no prediction.
    Repaired,
    /// There is none. What was predicted where none is published is in docs/PREDICTIONS.md; ours is
    /// that of today's model.
    Unpublished,
}

impl Basis {
    /// Whether the figure is the outcome of a change.
    #[must_use]
    pub const fn is_after(self) -> bool {
        matches!(self, Self::Blind | Self::Repaired)
    }

    /// Its name in `reference/`, in tables and in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fitted => "fitted",
            Self::Outcome => "outcome",
            Self::Blind => "blind",
            Self::Repaired => "repaired",
            Self::Unpublished => "unpublished",
        }
    }
}

/// A figure, and its range over the variants of a device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Range {
    /// On the device.
    pub ours: f64,
    /// The smallest value over the device and its variants.
    pub least: f64,
    /// The largest value over the device and its variants.
    pub most: f64,
}

/// The largest difference from a published figure at which a figure of ours agrees with it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tolerance {
    /// In percent of the published figure.
    Percent(f64),
    /// In the unit of the table.
    Units(f64),
    /// Any, as long as ours is not less: only a lower bound was published.
    AtLeast,
}

/// What became of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It agrees with the published figure.
    Hit,
    /// It does not, but the published figure lies within its range: that of the device and of the
    /// variants that are older than the outcome.
    InRange,
    /// It does not.
    Miss,
}

impl Verdict {
    /// Its name in tables and in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::InRange => "in range",
            Self::Miss => "miss",
        }
    }
}

impl Tolerance {
    /// Whether `ours` agrees with the figure that was `published`.
    #[expect(clippy::float_arithmetic, reason = "for the reader: nothing is ordered by it")]
    #[must_use]
    pub fn agrees(self, ours: f64, published: f64) -> bool {
        let off = (ours - published).abs();
        match self {
            Self::Percent(most) => off <= published.abs() * most / 100.0,
            Self::Units(most) => off <= most,
            Self::AtLeast => ours >= published,
        }
    }

    /// Compares ours with the figure that was `published`.
    #[must_use]
    pub fn verdict(self, ours: Range, published: f64) -> Verdict {
        match (self.agrees(ours.ours, published), (ours.least..=ours.most).contains(&published)) {
            (true, _) => Verdict::Hit,
            (false, true) => Verdict::InRange,
            (false, false) => Verdict::Miss,
        }
    }
}

/// Returns the figures in `text`, a file of `reference/`, that have the unit `unit`. A file of
/// outcomes has three more columns, with the [prediction](Published::predicted).
///
/// # Panics
///
/// Panics if a line is malformed; the files are built in.
pub(super) fn published(text: &'static str, unit: &str) -> Vec<Published> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let row = |line: &'static str| {
        let (first, basis) = line.rsplit_once(',').expect("a line should have columns");
        let columns: Vec<_> = first.split(',').collect();
        let ([workload, design, its_unit, figure], predicted) = match columns[..] {
            [w, d, u, f] | [w, d, u, f, "", "", ""] => ([w, d, u, f], None),
            [w, d, u, f, ours, "", ""] => {
                ([w, d, u, f], range(number(ours), number(ours), number(ours)))
            }
            [w, d, u, f, ours, least, most] => {
                ([w, d, u, f], range(number(ours), number(least), number(most)))
            }
            _ => panic!("five or eight columns: {line}"),
        };
        let all = [Basis::Fitted, Basis::Outcome, Basis::Blind, Basis::Repaired];
        let basis = all.into_iter().find(|it| it.name() == basis);
        let basis = basis.expect("a published figure should have a basis");
        let figure = number(figure);
        let row = || Published { workload, design, figure, basis, predicted };
        (its_unit == unit).then(row)
    };
    lines.skip(1).filter_map(row).collect()
}

/// A prediction: our figure, and the least and the most of its readings.
fn range(ours: f64, least: f64, most: f64) -> Option<Range> {
    Some(Range { ours, least, most })
}

/// A figure of a file of published figures.
fn number(text: &str) -> f64 {
    text.parse().expect("a published figure should be a number")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_hits_up_to_its_tolerance() {
        let ours = |ours| Range { ours, least: 90.0, most: 110.0 };
        let percent = Tolerance::Percent(5.0);
        assert_eq!(percent.verdict(ours(105.0), 100.0), Verdict::Hit);
        assert_eq!(percent.verdict(ours(95.0), 100.0), Verdict::Hit);
        assert_eq!(percent.verdict(ours(105.1), 100.0), Verdict::InRange);
        assert_eq!(percent.verdict(ours(105.1), 111.0), Verdict::Miss);
        assert_eq!(percent.verdict(ours(-95.0), -100.0), Verdict::Hit, "of a difference");
        let units = Tolerance::Units(2.0);
        assert_eq!(units.verdict(ours(-2.0), 0.0), Verdict::Hit);
        assert_eq!(units.verdict(ours(-2.1), 0.0), Verdict::Miss);
        assert_eq!(Tolerance::AtLeast.verdict(ours(500.0), 100.0), Verdict::Hit);
        assert_eq!(Tolerance::AtLeast.verdict(ours(99.0), 100.0), Verdict::InRange);
        assert_eq!(Tolerance::AtLeast.verdict(ours(80.0), 111.0), Verdict::Miss);
    }

    #[test]
    fn a_file_of_outcomes_has_predictions() {
        let text = "# words\nhead\na,x,s,1,2,0.5,3,blind\na,y,s,1,2,,,blind\nb,x,s,4,,,,repaired\nb,x,m,4,,,,blind\nc,x,s,5,fitted\n";
        let expected = [
            (1.0, Basis::Blind, range(2.0, 0.5, 3.0)),
            (1.0, Basis::Blind, range(2.0, 2.0, 2.0)),
            (4.0, Basis::Repaired, None),
            (5.0, Basis::Fitted, None),
        ];
        let read = published(text, "s").into_iter().map(|it| (it.figure, it.basis, it.predicted));
        assert!(read.eq(expected));
    }
}
