//! Samples over time, summarised as in fio.

#![expect(clippy::float_arithmetic, reason = "for reports: nothing is ordered by it")]

use crate::measure::sampler::Samples;

use super::number;

/// The samples of one rate, of all instances of an entry.
///
/// Instances run in parallel, so their smallest, largest and mean values are added up, as are their
/// squared deviations and numbers of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rates {
    pub(super) count: u64,
    pub(super) min: u64,
    pub(super) max: u64,
    pub(super) mean: f64,
    /// The sum of the squared deviations from each instance's mean.
    squares: f64,
}

impl Rates {
    /// Returns the rates of all `instances` together.
    pub(super) fn of(instances: &[Samples]) -> Self {
        instances.iter().fold(Self::default(), |all, samples| {
            let mean = number::mean(samples.sum, samples.count);
            let squares =
                number::mean(samples.sum_squares, 1) - mean * number::mean(samples.sum, 1);
            Self {
                count: all.count + samples.count,
                min: all.min + samples.min,
                max: all.max + samples.max,
                mean: all.mean + mean,
                squares: all.squares + squares.max(0.0),
            }
        })
    }

    /// Returns the mean of samples in KiB per second, in percent of `bytes_per_s` and at most 100.
    pub(super) fn share_percent(&self, bytes_per_s: f64) -> f64 {
        if bytes_per_s > 0.0 { (self.mean * 1024.0 * 100.0 / bytes_per_s).min(100.0) } else { 0.0 }
    }

    /// Returns the standard deviation.
    pub(super) fn deviation(&self) -> f64 {
        match self.count {
            0 | 1 => 0.0,
            count => (self.squares / number::mean(u128::from(count) - 1, 1)).sqrt(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[u64]) -> Samples {
        Samples {
            count: values.len() as u64,
            min: values.iter().copied().min().unwrap(),
            max: values.iter().copied().max().unwrap(),
            sum: values.iter().copied().map(u128::from).sum(),
            sum_squares: values.iter().map(|value| u128::from(value * value)).sum(),
        }
    }

    fn two_digits(value: f64) -> String {
        format!("{value:.2}")
    }

    /// The output of fio 3.33 for one and for three instances at 1000 I/Os of 8 KiB per second.
    #[test]
    fn instances_add_up_as_fios_do() {
        let one = samples(&[8000, 8016, 8016]);
        let alone = Rates::of(&[one]);
        assert_eq!((alone.count, alone.min, alone.max), (3, 8000, 8016));
        assert_eq!(two_digits(alone.mean), "8010.67");
        assert_eq!(two_digits(alone.deviation()), "9.24");
        let three = Rates::of(&[one; 3]);
        assert_eq!((three.count, three.min, three.max), (9, 24_000, 24_048));
        assert_eq!(two_digits(three.mean), "24032.00");
        assert_eq!(two_digits(three.deviation()), "8.00");
    }

    #[test]
    fn one_sample_or_none_does_not_deviate() {
        assert_eq!(Rates::of(&[]), Rates::default());
        assert_eq!(Rates::of(&[samples(&[5])]).deviation().to_bits(), 0.0f64.to_bits());
    }
}
