//! Numbers for people: three significant digits and a unit.

#![expect(clippy::float_arithmetic, reason = "for the eye only: nothing is ordered by the result")]

const COUNTS: &[(f64, &str)] = &[(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G")];
const TIMES: &[(f64, &str)] = &[(1.0, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s")];

/// A count or rate, as `587k`.
pub(crate) fn count(value: f64) -> String {
    scaled(value, COUNTS)
}

/// A time in nanoseconds, as `8.70us`.
pub(crate) fn time(ns: u64) -> String {
    nanoseconds(approximate(ns))
}

/// The same of a mean.
pub(crate) fn nanoseconds(ns: f64) -> String {
    scaled(ns, TIMES)
}

/// Bytes in MiB, without the unit, as `2293` or `59.7`.
pub(crate) fn mebibytes(bytes: u64) -> String {
    digits(approximate(bytes) / f64::from(1 << 20))
}

/// Three significant digits, all digits before the point.
pub(crate) fn digits(value: f64) -> String {
    let decimals = match value {
        _ if !value.is_finite() => return "-".to_owned(),
        _ if value < 9.995 => 2,
        _ if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// `value` in the largest of `units` of which it has one; whole in the smallest.
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    if !value.is_finite() {
        return digits(value);
    }
    match units.iter().skip(1).rfind(|(unit, _)| value / unit >= 0.9995) {
        Some((unit, name)) => format!("{}{name}", digits(value / unit)),
        None => format!("{value:.0}{}", units[0].1),
    }
}

#[expect(clippy::cast_precision_loss, reason = "three digits are shown, a double has fifteen")]
pub(crate) fn approximate(value: u64) -> f64 {
    value as f64
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
        assert_eq!(time(8_696), "8.70us");
        assert_eq!(time(442_857), "443us");
        assert_eq!(time(29_257_142), "29.3ms");
        assert_eq!(time(2_000_000_000), "2.00s");
        assert_eq!(mebibytes(587_000 * 4096), "2293");
        assert_eq!(mebibytes(62_558_044), "59.7");
    }

    #[test]
    fn rounding_up_goes_on_to_the_next_unit() {
        assert_eq!(time(999_499), "999us");
        assert_eq!(time(999_600), "1.00ms");
        assert_eq!(digits(9.996), "10.0");
        assert_eq!(digits(99.96), "100");
    }

    #[test]
    fn small_and_absent_numbers_have_a_form() {
        assert_eq!((time(0), time(62), count(0.0)), ("0ns".into(), "62ns".into(), "0".into()));
        assert_eq!((digits(f64::NAN), count(f64::INFINITY)), ("-".into(), "-".into()));
    }
}
