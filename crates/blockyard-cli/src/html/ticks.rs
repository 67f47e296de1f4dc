//! Where a logarithmic axis of times has its ticks.

/// The fewest ticks that are enough to read a value between them.
const TICKS_ENOUGH: usize = 3;
/// The smallest distance of two ticks, as a share of the axis. It leaves room for labels on a
/// narrow screen, too.
const DISTANCE_MIN: f64 = 0.16;
/// The least ratio of the ends of an axis, so that labels with three digits differ.
const RATIO_MIN: f64 = 1.1;

/// A logarithmic axis of times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// Returns an axis that has both `low` and `high`, which are at least 1.
    pub(super) fn new(low: f64, high: f64) -> Self {
        let near = if high - low < 2.0 { 1.0 } else { 0.0 };
        let low = (low - near).max(0.5);
        let high = high + near;
        let widening = (RATIO_MIN / (high / low)).max(1.0).sqrt();
        Self { low: low / widening, high: high * widening }
    }

    /// Returns the place of `ns` as a share of the axis.
    pub(super) fn at(&self, ns: f64) -> f64 {
        (ns.max(1.0) / self.low).log10() / (self.high / self.low).log10()
    }

    /// Returns the times that have ticks: powers of ten, if there are enough of them; else 1, 2 and
    /// 5 with zeros; else multiples of such a number. 84.5 to 116 us have ticks at 90, 100 and 110
    /// us.
    pub(super) fn ticks(&self) -> Vec<f64> {
        let choices = [round(&[1.0]), round(&[1.0, 2.0, 5.0]), self.steps(4.0), self.steps(8.0)];
        let choices = choices.map(|ticks| self.apart(ticks));
        let enough = choices.iter().find(|ticks| ticks.len() >= TICKS_ENOUGH);
        let most = enough.or_else(|| choices.iter().max_by_key(|ticks| ticks.len()));
        let most = most.filter(|ticks| ticks.len() > 1);
        most.cloned().unwrap_or_else(|| vec![self.low, self.high])
    }

    /// Returns the multiples of a round number that lie on the axis, about `count`.
    fn steps(&self, count: f64) -> Vec<f64> {
        let step = round_up((self.high - self.low) / count).max(1.0);
        let mut steps = vec![(self.low / step).ceil() * step];
        while let Some(last) = steps.last().filter(|last| **last <= self.high) {
            steps.push(last + step);
        }
        steps
    }

    /// Returns those of `ticks` that lie on the axis, as many of them as have room.
    fn apart(&self, ticks: Vec<f64>) -> Vec<f64> {
        let mut kept: Vec<f64> = Vec::new();
        for tick in ticks.into_iter().filter(|tick| (self.low..=self.high).contains(tick)) {
            if kept.last().is_none_or(|last| self.at(tick) - self.at(*last) >= DISTANCE_MIN) {
                kept.push(tick);
            }
        }
        kept
    }
}

/// Returns the `digits` with any number of zeros.
fn round(digits: &[f64]) -> Vec<f64> {
    let of_decade = |decade: i32| digits.iter().map(move |digit| digit * 10_f64.powi(decade));
    (0..=19).flat_map(of_decade).collect()
}

/// Returns the smallest of 1, 2 and 5 with zeros that is at least `value`.
fn round_up(value: f64) -> f64 {
    let decade = 10_f64.powf(value.log10().floor());
    let found = [1.0, 2.0, 5.0].into_iter().find(|digit| digit * decade >= value);
    found.unwrap_or(10.0) * decade
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard_text::number::nanoseconds;

    fn labels(low: f64, high: f64) -> Vec<String> {
        Axis::new(low, high).ticks().into_iter().map(nanoseconds).collect()
    }

    #[test]
    fn decades_have_ticks_where_there_are_some() {
        assert_eq!(labels(900.0, 2e6), ["1.00 us", "10.0 us", "100 us", "1.00 ms"]);
        assert_eq!(labels(1.0, 1e9).len(), 5, "every second of nine decades");
    }

    /// An axis within one decade once had no tick but its ends, and one with a single power of ten
    /// had no other.
    #[test]
    fn an_axis_within_one_decade_has_ticks() {
        assert_eq!(labels(84_500.0, 116_000.0), ["90.0 us", "100 us", "110 us"]);
        assert_eq!(labels(29_400.0, 31_300.0), ["29.0 us", "30.0 us", "31.0 us"]);
        assert_eq!(labels(12_000.0, 90_000.0), ["20.0 us", "40.0 us", "60.0 us"]);
        assert_eq!(labels(272_000.0, 1_410_000.0), ["400 us", "600 us", "800 us", "1.20 ms"]);
        assert_eq!(labels(2_000_000.0, 9_000_000.0), ["2.00 ms", "4.00 ms", "6.00 ms", "8.00 ms"]);
    }

    #[test]
    fn every_axis_has_two_ticks_with_different_labels_on_it() {
        for low in [1_u32, 7, 99, 1000, 12_345, 999_999] {
            for parts in [0_u32, 1, 3, 10, 30, 100, 300, 1000, 10_000, 1_000_000] {
                let low = f64::from(low);
                let high = low * (1.0 + f64::from(parts) / 100.0);
                let axis = Axis::new(low, high);
                let labels = labels(low, high);
                assert!((2..=7).contains(&labels.len()), "{low} to {high}: {labels:?}");
                assert!(
                    labels.windows(2).all(|pair| pair[0] != pair[1]),
                    "{low} to {high}: {labels:?}"
                );
                assert!(
                    axis.ticks().iter().all(|tick| (-1e-9..=1.0 + 1e-9).contains(&axis.at(*tick)))
                );
            }
        }
    }
}
