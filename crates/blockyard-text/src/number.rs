//! Numbers for people: three significant digits and a unit, in tables and in sentences alike.

#![expect(clippy::float_arithmetic, reason = "for the eye only: nothing is ordered by the result")]

const COUNTS: &[(f64, &str)] = &[(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G")];
const SIZES: &[(f64, &str)] =
    &[(1.0, " B"), (1024.0, " KiB"), (1_048_576.0, " MiB"), (1_073_741_824.0, " GiB")];
const TIMES: &[(f64, &str)] = &[(1.0, " ns"), (1e3, " us"), (1e6, " ms"), (1e9, " s")];

/// A count or rate, as `587k`.
#[must_use]
pub fn count(value: f64) -> String {
    scaled(value, COUNTS)
}

/// A time in nanoseconds, as `8.70 us`.
#[must_use]
pub fn time(ns: u64) -> String {
    nanoseconds(approximate(ns))
}

/// A mean time in nanoseconds, as `8.70 us`.
#[must_use]
pub fn nanoseconds(ns: f64) -> String {
    scaled(ns, TIMES)
}

/// A size in bytes, as `819 MiB`.
#[must_use]
pub fn size(bytes: f64) -> String {
    scaled(bytes, SIZES)
}

/// Bytes in MiB, without the unit, as `2293` or `59.7`.
#[must_use]
pub fn mebibytes(bytes: u64) -> String {
    digits(approximate(bytes) / f64::from(1 << 20))
}

/// A share in percent without decimals, as `51 %`.
#[must_use]
pub fn percent(percent: f64) -> String {
    if percent.is_finite() { format!("{percent:.0} %") } else { digits(percent) }
}

/// A share in percent with three significant digits, as `2.49 %`.
#[must_use]
pub fn exact_percent(percent: f64) -> String {
    digits(percent) + " %"
}

/// Three significant digits, and never fewer digits than stand before the point; `-` for a value
/// that is not finite.
#[must_use]
pub fn digits(value: f64) -> String {
    let decimals = match value {
        _ if !value.is_finite() => return "-".to_owned(),
        _ if value < 9.995 => 2,
        _ if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// `value` in the largest of `units` of which it has at least one; without decimals in the
/// smallest.
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    debug_assert!(units.is_sorted_by(|a, b| a.0 < b.0), "units go from small to large");
    if !value.is_finite() {
        return digits(value);
    }
    match units.iter().skip(1).rfind(|(unit, _)| value / unit >= 0.9995) {
        Some((unit, name)) => format!("{}{name}", digits(value / unit)),
        None => format!("{value:.0}{}", units[0].1),
    }
}

/// The nearest double. It is exact below 2^53.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown, a double has fifteen")]
#[must_use]
pub const fn approximate(value: u64) -> f64 {
    value as f64
}

/// The nearest double of a sum.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown, a double has fifteen")]
#[must_use]
pub const fn approximate_sum(value: u128) -> f64 {
    value as f64
}

/// `part / whole`; 0 if `whole` is 0 or less. `whole` must be a number.
#[must_use]
pub fn ratio(part: f64, whole: f64) -> f64 {
    debug_assert!(!whole.is_nan(), "a share of something unknown");
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// `part` in percent of `whole`; 0 if `whole` is 0 or less.
#[must_use]
pub fn share_percent(part: u64, whole: f64) -> f64 {
    ratio(100.0 * approximate(part), whole)
}

/// The mean of `count` for each of `ios`; 0 without I/Os.
#[must_use]
pub fn per_io(count: u64, ios: u64) -> f64 {
    ratio(approximate(count), approximate(ios))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_shown() {
        assert_eq!(count(587_000.0), "587k");
        assert_eq!(count(15_273.4), "15.3k");
        assert_eq!(count(1_234_567.0), "1.23M");
        assert_eq!(count(760.4), "760");
        assert_eq!(time(8_696), "8.70 us");
        assert_eq!(time(442_857), "443 us");
        assert_eq!(time(29_257_142), "29.3 ms");
        assert_eq!(time(2_000_000_000), "2.00 s");
        assert_eq!(mebibytes(587_000 * 4096), "2293");
        assert_eq!(mebibytes(62_558_044), "59.7");
        assert_eq!((size(512.0), size(858_993_459.0)), ("512 B".into(), "819 MiB".into()));
        assert_eq!((percent(51.4), exact_percent(2.489)), ("51 %".into(), "2.49 %".into()));
    }

    #[test]
    fn a_value_that_rounds_up_to_the_next_unit_is_shown_in_it() {
        assert_eq!(time(999_499), "999 us");
        assert_eq!(time(999_600), "1.00 ms");
        assert_eq!(digits(9.996), "10.0");
        assert_eq!(digits(99.96), "100");
    }

    #[test]
    fn small_and_absent_numbers_have_a_form() {
        assert_eq!((time(0), time(62), count(0.0)), ("0 ns".into(), "62 ns".into(), "0".into()));
        assert_eq!((digits(f64::NAN), count(f64::INFINITY)), ("-".into(), "-".into()));
        assert_eq!(ratio(1.0, 0.0), 0.0);
    }
}
