//! Distributions of times in fio's words: extremes and percentiles.

#![expect(clippy::float_arithmetic, reason = "for the eye only: nothing is ordered by it")]

use blockyard::stats::Histogram;
use blockyard_text::number::approximate;

use super::{number, per_hundred_thousand};

/// Returns the largest unit in which neither the smallest nor the largest of some times is too
/// small.
fn unit_of(min: u64, max: u64) -> (u64, &'static str) {
    match (min, max) {
        (2_000_001.., 100_000_000..) => (1_000_000, "msec"),
        (2_001.., 100_000..) => (1_000, "usec"),
        _ => (1, "nsec"),
    }
}

/// Writes the extremes, the mean and the deviation.
pub(super) fn extremes(name: &str, values: &Histogram) -> String {
    let (unit, unit_name) = unit_of(values.min(), values.max());
    format!(
        "    {name:>4} ({unit_name}): min={}, max={}, avg={:.2}, stdev={:.2}\n",
        values.min() / unit,
        values.max() / unit,
        number::mean(values.sum(), values.count()) / approximate(unit),
        approximate(values.standard_deviation()) / approximate(unit),
    )
}

/// Writes the percentiles, four per line.
pub(super) fn percentiles_of(name: &str, values: &Histogram, percentiles: &[f64]) -> String {
    let value = |percentile: &f64| values.percentile(per_hundred_thousand(*percentile));
    let all: Vec<_> = percentiles.iter().map(value).collect();
    let least = all.iter().copied().min().unwrap_or(0);
    let most = all.iter().copied().max().unwrap_or(0);
    let (unit, unit_name) = unit_of(least, most);
    let width = (most / unit).to_string().len().max(5);
    let shown: Vec<_> = percentiles
        .iter()
        .zip(&all)
        .map(|(percentile, ns)| format!("{percentile:>5.2}th=[{:>width$}]", ns / unit))
        .collect();
    let lines: Vec<_> = shown.chunks(4).map(|four| four.join(", ")).collect();
    format!("    {name} percentiles ({unit_name}):\n     | {}\n", lines.join(",\n     | "))
}
