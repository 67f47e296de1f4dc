//! The spread of a time: how much longer or shorter than its figure it is from case to case; or of
//! a number.
//!
//! A profile writes a spread as points of an inverse table, `[[percentile, percent of the figure],
//! ...]`, or with numbers. A draw takes an even number and looks up its percent; between two points
//! it lies on the line between them. All numbers are whole, so a seed draws the same times on every
//! machine.

use blockyard::prng::Prng;
use blockyard::time::Duration;
use toml::de::DeValue;

use super::error::Problem;
use super::value::{InRange, Kind, unsuitable, written};
use blockyard_text::quantity::scaled_decimal;

/// Points of a spread at most.
const POINTS: usize = 16;
/// Percentiles are whole in this part of one.
const PARTS: u64 = 1_000_000;
/// A hundred percent, in millionths of a percent.
const WHOLE_E6: u64 = 100 * PARTS;
/// A hundred percentiles.
const WHOLE: u32 = 100 * 1_000_000;
/// The largest percent of a point: a thousand times the figure.
const PERCENT_MAX: u32 = 100_000;

/// A distribution of times around a figure, or of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// The millionths of a percentile and the percent of the figure, in rising order from
    /// percentile 0 to 100.
    points: [(u32, u32); POINTS],
}

impl Spread {
    /// Returns the spread through `points`, each a percentile in millionths and a percent of the
    /// figure; `None` if they do not lead from percentile 0 to 100, fall, or are more than 16.
    #[must_use]
    pub fn new(points: &[(u32, u32)]) -> Option<Self> {
        let first = *points.first()?;
        let last = *points.last()?;
        let rises = points.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 <= two[1].1);
        if points.len() > POINTS
            || first.0 != 0
            || last.0 != WHOLE
            || !rises
            || last.1 > PERCENT_MAX
        {
            return None;
        }
        let mut all = [last; POINTS];
        all[..points.len()].copy_from_slice(points);
        Some(Self { points: all })
    }

    /// Returns the spread at `place` between this one, at 0, and `high`, at 255; `None` if their
    /// percentiles differ, or if `high` is lower somewhere and higher nowhere.
    fn toward(&self, high: &Self, place: u8) -> Option<Self> {
        let same = self.points.iter().zip(&high.points).all(|(low, high)| low.0 == high.0);
        let rises = self.points.iter().zip(&high.points).any(|(low, high)| low.1 < high.1);
        if !same || !(rises || self == high) {
            return None;
        }
        let mut points = self.points;
        let all = u64::from(u8::MAX);
        let place = u64::from(place);
        for (point, high) in points.iter_mut().zip(&high.points) {
            let sum = u64::from(point.1) * (all - place) + u64::from(high.1) * place;
            point.1 = u32::try_from(sum / all).expect("between two values of 32 bits");
        }
        debug_assert!(points.is_sorted_by_key(|point| point.1), "{points:?} fall");
        Some(Self { points })
    }

    /// Whether each percentile of this spread lies between those of `one` and `other`. All are
    /// lines between their points, so these decide.
    fn is_between(&self, one: &Self, other: &Self) -> bool {
        let mut points = self.points.iter().chain(&one.points).chain(&other.points);
        points.all(|(at, _)| {
            let one = one.percent_e6(*at);
            let other = other.percent_e6(*at);
            (one.min(other)..=one.max(other)).contains(&self.percent_e6(*at))
        })
    }

    /// Draws the time of one case of a figure. Saturates.
    pub(crate) fn draw(&self, figure: Duration, prng: &mut Prng) -> Duration {
        let product = u128::from(figure.as_ns()) * u128::from(self.draw_e6(prng));
        // Most products fit 64 bits, which are divided faster.
        let ns = u64::try_from(product).map(|product| product / WHOLE_E6);
        let ns = ns.or_else(|_| u64::try_from(product / u128::from(WHOLE_E6)));
        Duration::from_ns(ns.unwrap_or(u64::MAX))
    }

    /// Draws a whole number, where the points have numbers in place of percent.
    pub(crate) fn draw_number(&self, prng: &mut Prng) -> u64 {
        self.draw_e6(prng) / PARTS
    }

    fn draw_e6(&self, prng: &mut Prng) -> u64 {
        let drawn = u32::try_from(prng.below(WHOLE.into())).expect("a number below 100 million");
        self.percent_e6(drawn)
    }

    /// Returns the millionths of a percent at `at` millionths of a percentile.
    fn percent_e6(&self, at: u32) -> u64 {
        debug_assert!(at <= WHOLE, "{at} is beyond percentile 100");
        let Some(above) = self.points.iter().position(|point| point.0 > at) else {
            return u64::from(self.points[POINTS - 1].1) * PARTS;
        };
        let (low_at, low) = self.points[above - 1];
        let (high_at, high) = self.points[above];
        let run = u64::from(high_at - low_at);
        let rise = u64::from(high - low);
        u64::from(low) * PARTS + rise * PARTS * u64::from(at - low_at) / run
    }
}

/// Points in a profile: percentiles, and values up to a largest one.
pub(crate) struct Points {
    most: u32,
    /// What such points look like, for an error.
    wanted: &'static str,
}

/// Percentiles, and percent of a figure.
pub(crate) const PERCENTS: Points = Points {
    most: PERCENT_MAX,
    wanted: "up to 16 points `[percentile, percent]`, such as `[[0, 50], [100, 150]]`: percentiles rise from 0 to 100 and have six decimals \
             at most; percents are whole, do not fall and are at most 100000",
};

/// Percentiles, and how many more times something is tried.
pub(crate) const RETRIES: Points = Points {
    most: 100,
    wanted: "up to 16 points `[percentile, times]` that rise from percentile 0 to 100, with at most 100 times",
};

impl Kind for Points {
    type Out = Spread;
    const FIGURE: bool = true;

    fn read(&self, key: &str, value: &DeValue<'_>) -> Result<Spread, Problem> {
        let spread = points(value).filter(|spread| spread.points[POINTS - 1].1 <= self.most);
        spread.ok_or_else(|| unsuitable(key, value, self.wanted))
    }

    fn vary(&self, range: &InRange<'_>) -> Result<Spread, Problem> {
        let low = self.read(range.key, range.low)?;
        let high = self.read(range.key, range.high)?;
        let varied = low.toward(&high, range.place).ok_or(Problem::Contradiction(
            "both ends of the range of a spread have the same percentiles, and the second is higher somewhere",
        ))?;
        let stated = self.read(range.key, range.stated)?;
        if stated.is_between(&low, &high) { Ok(varied) } else { Err(range.excludes()) }
    }
}

/// Returns the spread that an array of points is, if it is one.
fn points(value: &DeValue<'_>) -> Option<Spread> {
    let DeValue::Array(points) = value else { return None };
    let point = |point: &DeValue<'_>| match point {
        DeValue::Array(pair) if pair.len() == 2 => {
            let number = |at: usize, factor| {
                let number = scaled_decimal(&written(pair[at].get_ref()), factor)?;
                u32::try_from(number).ok()
            };
            Some((number(0, PARTS)?, number(1, 1)?))
        }
        _ => None,
    };
    let points: Option<Vec<_>> = points.iter().map(|each| point(each.get_ref())).collect();
    Spread::new(&points?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half of the draws are the figure; a hundredth lies between five and ten times the figure.
    const TAIL: [(u32, u32); 5] =
        [(0, 50), (50_000_000, 100), (98_999_999, 100), (99_000_000, 500), (WHOLE, 1000)];

    #[test]
    fn a_draw_lies_on_the_lines_between_the_points() {
        let spread = Spread::new(&TAIL).unwrap();
        assert_eq!(spread.percent_e6(0), 50_000_000);
        assert_eq!(spread.percent_e6(25_000_000), 75_000_000);
        assert_eq!(spread.percent_e6(70_000_000), 100_000_000);
        assert_eq!(spread.percent_e6(99_500_000), 750_000_000);
        assert_eq!(spread.percent_e6(WHOLE - 1), 999_999_500);
    }

    #[test]
    fn draws_have_the_percentiles_of_their_points() {
        let spread = Spread::new(&TAIL).unwrap();
        let mut prng = Prng::new(1);
        let figure = Duration::from_us(100);
        let mut times: Vec<_> =
            (0..100_000).map(|_| spread.draw(figure, &mut prng).as_ns() / 1000).collect();
        times.sort_unstable();
        assert!((74..=76).contains(&times[25_000]), "{}", times[25_000]);
        assert_eq!(times[60_000], 100);
        assert!((720..=780).contains(&times[99_500]), "{}", times[99_500]);
        assert!(times[0] == 50 && times[99_999] < 1000);
    }

    #[test]
    fn numbers_are_rounded_down() {
        let spread = Spread::new(&[(0, 0), (25_000_000, 1), (25_000_001, 3), (WHOLE, 3)]).unwrap();
        let mut prng = Prng::new(1);
        let mut counts = [0; 4];
        (0..100_000)
            .for_each(|_| counts[usize::try_from(spread.draw_number(&mut prng)).unwrap()] += 1);
        assert!(
            (24_000..26_000).contains(&counts[0]) && counts[1] < 10 && counts[2] < 10,
            "{counts:?}"
        );
    }

    #[test]
    fn a_spread_varies_between_two_with_the_same_percentiles() {
        let low = Spread::new(&[(0, 100), (WHOLE, 100)]).unwrap();
        let high = Spread::new(&[(0, 100), (WHOLE, 355)]).unwrap();
        assert_eq!(low.toward(&high, 0), Some(low));
        assert_eq!(low.toward(&high, 255), Some(high));
        assert_eq!(low.toward(&high, 100), Spread::new(&[(0, 100), (WHOLE, 200)]));
        assert_eq!(high.toward(&low, 155), None);
        // One end may be the wider one, with lower and higher values.
        let wide = Spread::new(&[(0, 49), (WHOLE, 151)]).unwrap();
        assert_eq!(low.toward(&wide, 85), Spread::new(&[(0, 83), (WHOLE, 117)]));
        assert!(low.toward(&wide, 85).unwrap().is_between(&low, &wide));
        assert!(!high.is_between(&low, &wide));
        assert_eq!(low.toward(&Spread::new(&TAIL).unwrap(), 1), None);
    }

    #[test]
    fn points_that_are_no_distribution_are_refused() {
        let bad: [&[(u32, u32)]; 6] = [
            &[],
            &[(0, 100)],
            &[(1, 100), (WHOLE, 100)],
            &[(0, 100), (WHOLE, 99)],
            &[(0, 0), (5, 1), (5, 2), (WHOLE, 3)],
            &[(0, 0), (WHOLE, PERCENT_MAX + 1)],
        ];
        for points in bad {
            assert_eq!(Spread::new(points), None, "{points:?}");
        }
        let many: Vec<_> = (0..16).map(|at| (at, at)).chain([(WHOLE, 20)]).collect();
        assert_eq!(Spread::new(&many), None);
    }
}
