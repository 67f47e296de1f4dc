//! Quantities: decimal numbers with units.

use blockyard::time::Duration;

/// The units of times, from short to long.
pub const TIME_UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", HOUR_NS),
];
/// An hour, the longest time.
pub const HOUR_NS: u64 = 3_600_000_000_000;

/// Returns the time in `text`, written as in profiles: a number with its unit, in whole
/// nanoseconds, at most an hour. Returns `None` for any other text.
#[must_use]
pub fn time(text: &str) -> Option<Duration> {
    whole_units(text, TIME_UNITS).filter(|ns| *ns <= HOUR_NS).map(Duration::from_ns)
}

/// The units of sizes.
pub const SIZE_UNITS: &[(&str, u64)] =
    &[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];

/// Returns a size as a profile writes it, in the largest unit in which it is whole.
pub fn size_words(bytes: u64) -> String {
    let fits = |(_, factor): &&(&str, u64)| bytes >= *factor && bytes.is_multiple_of(*factor);
    let (unit, factor) = SIZE_UNITS.iter().rev().find(fits).unwrap_or(&SIZE_UNITS[0]);
    format!("{}{unit}", bytes / factor)
}

/// The units of rates.
pub const RATE_UNITS: &[(&str, u64)] = &[
    ("B/s", 1),
    ("kB/s", 1_000),
    ("MB/s", 1_000_000),
    ("GB/s", 1_000_000_000),
    ("KiB/s", 1 << 10),
    ("MiB/s", 1 << 20),
    ("GiB/s", 1 << 30),
];

/// Returns the rate in `text` in bytes per second, rounded: a number with a unit as in profiles,
/// `1.9MiB/s`. Returns `None` for any other text.
#[must_use]
pub fn rate(text: &str) -> Option<u64> {
    rounded(text, RATE_UNITS)
}

/// Returns the decimal number and unit in `text` as a whole number of the smallest unit. Returns
/// `None` if `text` is something else, the number is not whole or it is too large.
pub fn whole_units(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    debug_assert!(units.iter().any(|(_, factor)| *factor == 1), "no smallest unit");
    let (number, factor) = number_and_factor(text, units)?;
    scaled_decimal(number, factor)
}

/// Splits `text` into its number and the factor of its unit. Returns `None` if the unit is not one
/// of `units`.
fn number_and_factor<'t>(text: &'t str, units: &[(&str, u64)]) -> Option<(&'t str, u64)> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number = text.strip_suffix(unit)?;
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    Some((number, *factor))
}

/// Returns the decimal number and unit in `text` in the smallest unit, rounded. Returns `None` if
/// `text` is something else, or the number is too large.
pub fn rounded(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, factor) = number_and_factor(text, units)?;
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    // More decimals than these are less than a byte in any unit.
    let decimals = decimals.get(..decimals.len().min(15))?;
    let scale = 10_u128.pow(u32::try_from(decimals.len()).ok()?);
    let part = decimals.parse::<u128>().ok()? * u128::from(factor);
    let whole = u128::from(whole.parse::<u64>().ok()?) * u128::from(factor);
    u64::try_from(whole + (part + scale / 2) / scale).ok()
}

/// Returns the decimal `number` times `factor`. Returns `None` if `number` is something else, or
/// the product is not whole or too large.
pub fn scaled_decimal(number: &str, factor: u64) -> Option<u64> {
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    if [whole, decimals].iter().any(|part| part.bytes().any(|byte| !byte.is_ascii_digit())) {
        return None;
    }
    let scale = 10_u64.checked_pow(u32::try_from(decimals.len()).ok()?)?;
    let part = decimals.parse::<u64>().ok()?.checked_mul(factor)?;
    if part % scale != 0 {
        return None;
    }
    whole.parse::<u64>().ok()?.checked_mul(factor)?.checked_add(part / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNITS: &[(&str, u64)] = &[("ns", 1), ("us", 1_000)];

    #[test]
    fn a_decimal_must_be_whole_in_the_smallest_unit() {
        assert_eq!(whole_units("1.5us", UNITS), Some(1_500));
        assert_eq!(whole_units("0.001us", UNITS), Some(1));
        assert_eq!(whole_units("0.0001us", UNITS), None);
        assert_eq!(whole_units("7ns", UNITS), Some(7));
    }

    /// Half an hour is 30 * 60 s. The longest time is an hour, in any unit.
    #[test]
    fn a_time_may_be_in_minutes_or_hours_up_to_an_hour() {
        let [hour, half, more] = ["1h", "0.5h", "1.5min"].map(time);
        assert_eq!(
            (hour, half),
            (Some(Duration::from_ms(3_600_000)), Some(Duration::from_ms(1_800_000)))
        );
        assert_eq!((more, time("60min")), (Some(Duration::from_ms(90_000)), hour));
        assert_eq!((time("61min"), time("2h")), (None, None));
    }

    #[test]
    fn text_that_is_no_quantity_is_none() {
        for text in ["", "us", "1", "1.us", ".5us", "1.2.3us", "-1us", "+1us", "1 us", "1ms"] {
            assert_eq!(whole_units(text, UNITS), None, "{text}");
        }
        assert_eq!(whole_units("99999999999999999999ns", UNITS), None);
        assert_eq!(whole_units("99999999999999999us", UNITS), None);
        assert_eq!(whole_units("0.000000000000000000000000us", UNITS), None);
    }

    #[test]
    fn a_size_is_written_in_the_largest_unit_in_which_it_is_whole() {
        let words = [0, 1, 1 << 20, 3 << 29, 1 << 42, 1 << 60].map(size_words);
        assert_eq!(words, ["0B", "1B", "1MiB", "1536MiB", "4TiB", "1048576TiB"]);
    }
}
