//! Numbers in fio's style.

#![expect(
    clippy::float_arithmetic,
    reason = "for the eye and for reports: nothing is ordered by it"
)]

use blockyard::status::Status;
use blockyard_text::number::{approximate, approximate_sum, ratio};

const BINARY: (f64, &[&str]) = (1024.0, &["", "Ki", "Mi", "Gi", "Ti", "Pi"]);
const DECIMAL: (f64, &[&str]) = (1000.0, &["", "k", "M", "G", "T", "P"]);

/// Returns `part` in percent of `whole`, or 0 if `whole` is 0.
pub(super) fn percent(part: u128, whole: u128) -> f64 {
    ratio(100.0 * approximate_sum(part), approximate_sum(whole))
}

/// Returns `count` per second over `ns`, or 0 if `ns` is 0.
pub(super) fn per_second(count: u64, ns: u64) -> f64 {
    ratio(approximate(count) * 1e9, approximate(ns))
}

/// Returns `sum / count`, or 0 if `count` is 0.
pub(super) fn mean(sum: u128, count: u64) -> f64 {
    ratio(approximate_sum(sum), approximate(count))
}

/// Formats a number as at most four characters of digits and a unit of 1024, such as `2290Mi` or
/// `39.1Mi`.
pub(super) fn binary(value: f64) -> String {
    short(value, BINARY)
}

/// Formats a number as at most four characters of digits and a unit of 1000, such as `586k` or
/// `23.4M`.
pub(super) fn decimal(value: f64) -> String {
    short(value, DECIMAL)
}

fn short(value: f64, (base, units): (f64, &[&str])) -> String {
    let mut value = value;
    let mut unit = 0;
    while value >= 9999.5 && unit + 1 < units.len() {
        (value, unit) = (value / base, unit + 1);
    }
    let decimals = usize::from(unit > 0 && value < 99.95);
    format!("{value:.decimals$}{}", units[unit])
}

/// Returns Linux's error number for `status`, or 0 for success.
pub(super) const fn errno(status: Option<Status>) -> u32 {
    match status {
        None | Some(Status::Ok) => 0,
        Some(Status::IoError) => 5,
        Some(Status::Gone) => 19,
        Some(Status::NoSpace) => 28,
        Some(Status::Medium) => 61,
        Some(Status::NotSupported) => 95,
        Some(Status::Timeout) => 110,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_look_like_fios() {
        assert_eq!(decimal(586_432.0), "586k");
        assert_eq!(decimal(6_000.0), "6000");
        assert_eq!(decimal(10_000.0), "10.0k");
        assert_eq!(decimal(1_234_567.0), "1235k");
        assert_eq!(binary(1_015_808.0), "992Ki");
        assert_eq!(binary(3_178_000_000.0), "3031Mi");
        assert_eq!(binary(65_536.0), "64.0Ki");
    }

    #[test]
    fn nothing_is_zero() {
        assert_eq!((percent(0, 0), per_second(5, 0), mean(0, 0)), (0.0, 0.0, 0.0));
    }
}
