//! A measured figure: one value for each turn, printed as the median with its spread.

#![allow(clippy::float_arithmetic, reason = "this is a report")]

use core::fmt;

/// The values of a figure, in the order of the turns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turns(Vec<f64>);

impl Turns {
    /// Adds the value of the next turn.
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// Whether nothing was measured.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The ratio to another figure in each turn. Load that slows a whole turn down cancels.
    ///
    /// # Panics
    ///
    /// Panics if one of the two has more turns.
    #[must_use]
    pub fn relative_to(&self, other: &Self) -> Self {
        assert_eq!(self.0.len(), other.0.len(), "figures of the same turns");
        Self(self.0.iter().zip(&other.0).map(|(ours, theirs)| ours / theirs).collect())
    }
}

impl FromIterator<f64> for Turns {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

/// Prints `median (least-most)`; a precision sets the decimals, two by default. Without values it prints nothing.
impl fmt::Display for Turns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let decimals = f.precision().unwrap_or(2);
        match sorted[..] {
            [] => Ok(()),
            [only] => write!(f, "{only:.decimals$}"),
            [least, .., most] => {
                let below = sorted[(sorted.len() - 1) / 2];
                let above = sorted[sorted.len() / 2];
                let median = f64::midpoint(below, above);
                write!(f, "{median:.decimals$} ({least:.decimals$}-{most:.decimals$})")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_stands_before_the_least_and_the_most() {
        let turns: Turns = [3.0, 1.0, 2.5, 10.0, 2.0].into_iter().collect();
        assert_eq!(turns.to_string(), "2.50 (1.00-10.00)");
        assert_eq!(format!("{turns:.0}"), "2 (1-10)");
        assert_eq!(Turns::from_iter([4.0, 1.0, 2.0, 3.0]).to_string(), "2.50 (1.00-4.00)");
        assert_eq!(Turns::default().to_string(), "");
        assert_eq!(Turns::from_iter([0.5]).to_string(), "0.50");
    }

    #[test]
    fn ratios_are_those_of_the_same_turn() {
        let ours = Turns::from_iter([2.0, 30.0]);
        let theirs = Turns::from_iter([1.0, 10.0]);
        assert_eq!(ours.relative_to(&theirs), Turns::from_iter([2.0, 3.0]));
    }
}
