//! The kinds of values in profiles, each with its reader.

use core::fmt::Display;
use core::ops::RangeInclusive;

use blockyard::time::Duration;
use toml::de::{DeInteger, DeValue};

use super::error::Problem;
use super::reading::between;

/// A kind of value.
pub(super) trait Kind {
    /// The type of a value of this kind.
    type Out;
    /// Whether a value of this kind is a figure, which may be written as `{ value = ..., origin = "..." }`.
    const FIGURE: bool;

    /// Reads `value` of `key`.
    fn read(&self, key: &str, value: &DeValue<'_>) -> Result<Self::Out, Problem>;

    /// Returns the value in its place of a range.
    fn vary(&self, range: &InRange<'_>) -> Result<Self::Out, Problem> {
        debug_assert!(Self::FIGURE, "`{}` is no figure", range.key);
        Err(Problem::Contradiction("a value of this kind has no range"))
    }
}

/// The range of a figure, and a place in it.
pub(super) struct InRange<'v> {
    pub(super) key: &'v str,
    pub(super) low: &'v DeValue<'v>,
    pub(super) high: &'v DeValue<'v>,
    /// From 0, the lowest value, to 255.
    pub(super) place: u8,
}

impl InRange<'_> {
    /// Reads both ends.
    pub(super) fn ends<K: Kind>(&self, kind: &K) -> Result<(K::Out, K::Out), Problem> {
        Ok((kind.read(self.key, self.low)?, kind.read(self.key, self.high)?))
    }
}

/// Returns the value at `place` between two amounts, the first of which must not be the larger one.
fn within(low: u64, high: u64, place: u8) -> Result<u64, Problem> {
    match low <= high {
        true => Ok(between(low, high, place)),
        false => Err(Problem::Contradiction("the lowest value of a range is above the highest")),
    }
}

/// Any string.
pub(super) struct Text;

/// `true` or `false`.
pub(super) struct Flag;

/// One of several words, each of which stands for a value.
pub(super) struct OneOf<'a, T>(pub &'a [(&'static str, T)]);

/// A whole number within a range.
pub(super) struct Count<N>(pub RangeInclusive<N>);

/// A time with its unit, at most an hour.
pub(super) struct Time;

/// A size with its unit, within a range in bytes.
pub(super) struct Bytes(pub RangeInclusive<u64>);

/// A rate with its unit, at least one byte per second.
pub(super) struct Rate;

/// A time, or the word `never` for [`Duration::MAX`].
pub(super) struct TimeOrNever;

impl Kind for Text {
    type Out = String;
    const FIGURE: bool = false;

    fn read(&self, key: &str, value: &DeValue<'_>) -> Result<String, Problem> {
        Ok(string(key, value, "a string")?.to_owned())
    }
}

impl Kind for Flag {
    type Out = bool;
    const FIGURE: bool = false;

    fn read(&self, key: &str, value: &DeValue<'_>) -> Result<bool, Problem> {
        value.as_bool().ok_or_else(|| unsuitable(key, value, "true or false"))
    }
}

impl<T: Copy> Kind for OneOf<'_, T> {
    type Out = T;
    const FIGURE: bool = false;

    fn read(&self, key: &str, value: &DeValue<'_>) -> Result<T, Problem> {
        debug_assert!(!self.0.is_empty(), "`{key}` has no words");
        let word = string(key, value, "a string")?;
        let found = self.0.iter().find(|(name, _)| *name == word);
        found.map(|(_, meaning)| *meaning).ok_or_else(|| Problem::UnknownValue {
            key: key.to_owned(),
            value: word.to_owned(),
            known: self.0.iter().map(|(name, _)| *name).collect(),
        })
    }
}

impl<N> Kind for Count<N>
where
    N: Copy + Display + PartialOrd + TryFrom<u64>,
{
    type Out = N;
    const FIGURE: bool = true;

    fn read(&self, key: &str, value: &DeValue<'_>) -> Result<N, Problem> {
        debug_assert!(self.0.start() <= self.0.end(), "`{key}` has an empty range");
        let DeValue::Integer(digits) = value else {
            return Err(unsuitable(key, value, "a whole number"));
        };
        let number = whole(digits).and_then(|number| N::try_from(number).ok());
        number.filter(|number| self.0.contains(number)).ok_or_else(|| Problem::OutOfRange {
            key: key.to_owned(),
            given: digits.to_string(),
            allowed: format!("{} to {}", self.0.start(), self.0.end()),
        })
    }

    fn vary(&self, range: &InRange<'_>) -> Result<N, Problem> {
        let amount = |value: &DeValue<'_>| match value {
            DeValue::Integer(digits) => whole(digits),
            _ => None,
        };
        let (first, _) = range.ends(self)?;
        let (low, high) = amount(range.low).zip(amount(range.high)).unwrap_or_default();
        within(low, high, range.place)?;
        let step = u128::from(high - low + 1) * u128::from(range.place) / 256; // each number is as likely
        let value = low + u64::try_from(step).expect("a part of 64 bits");
        Ok(N::try_from(value).unwrap_or(first))
    }
}

/// Returns a whole number of at most 64 bits.
fn whole(digits: &DeInteger<'_>) -> Option<u64> {
    u64::from_str_radix(digits.as_str(), digits.radix()).ok()
}

/// Returns `value` as a profile writes it, without quotes.
pub(super) fn written(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(digits) => digits.to_string(),
        DeValue::Float(digits) => digits.to_string(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Array(parts) => {
            let parts: Vec<_> = parts.iter().map(|part| written(part.get_ref())).collect();
            format!("[{}]", parts.join(", "))
        }
        other => other.type_str().to_owned(),
    }
}

const TIME_UNITS: &[(&str, u64)] =
    &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
const HOUR_NS: u64 = 3_600_000_000_000;

/// Returns the time in `text`, written as in profiles: a number with its unit, in whole nanoseconds, at most an
/// hour. Returns `None` for any other text.
#[must_use]
pub fn time(text: &str) -> Option<Duration> {
    whole_units(text, TIME_UNITS).filter(|ns| *ns <= HOUR_NS).map(Duration::from_ns)
}

const RATE_UNITS: &[(&str, u64)] = &[
    ("B/s", 1),
    ("kB/s", 1_000),
    ("MB/s", 1_000_000),
    ("GB/s", 1_000_000_000),
    ("KiB/s", 1 << 10),
    ("MiB/s", 1 << 20),
    ("GiB/s", 1 << 30),
];

/// Returns the rate in `text` in bytes per second, rounded: a number with a unit as in profiles, `1.9MiB/s`. Returns `None` for
/// any other text.
#[must_use]
pub fn rate(text: &str) -> Option<u64> {
    rounded(text, RATE_UNITS)
}

impl Kind for Time {
    type Out = Duration;
    const FIGURE: bool = true;

    fn read(&self, key: &str, value: &DeValue<'_>) -> Result<Duration, Problem> {
        let wanted = "a time with its unit in whole nanoseconds, such as \"1.5us\" or \"500ms\"";
        scaled(key, value, TIME_UNITS, wanted, &(0..=HOUR_NS), "at most 3600s")
            .map(Duration::from_ns)
    }

    fn vary(&self, range: &InRange<'_>) -> Result<Duration, Problem> {
        let (low, high) = range.ends(self)?;
        within(low.as_ns(), high.as_ns(), range.place).map(Duration::from_ns)
    }
}

impl Kind for Bytes {
    type Out = u64;
    const FIGURE: bool = true;

    fn read(&self, key: &str, value: &DeValue<'_>) -> Result<u64, Problem> {
        const UNITS: &[(&str, u64)] =
            &[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];
        let allowed = format!("{}B to {}B", self.0.start(), self.0.end());
        let wanted = "a size with its unit, such as \"512KiB\" or \"1TiB\"";
        scaled(key, value, UNITS, wanted, &self.0, &allowed)
    }

    fn vary(&self, range: &InRange<'_>) -> Result<u64, Problem> {
        let (low, high) = range.ends(self)?;
        if low.is_power_of_two() && high.is_power_of_two() && low <= high {
            let steps = high.ilog2() - low.ilog2() + 1;
            return Ok(low << (steps * u32::from(range.place) / 256));
        }
        within(low, high, range.place)
    }
}

impl Kind for Rate {
    type Out = u64;
    const FIGURE: bool = true;

    fn read(&self, key: &str, value: &DeValue<'_>) -> Result<u64, Problem> {
        let wanted = "a rate with its unit, such as \"2400MB/s\"";
        scaled(key, value, RATE_UNITS, wanted, &(1..=u64::MAX), "at least 1B/s")
    }

    fn vary(&self, range: &InRange<'_>) -> Result<u64, Problem> {
        let (low, high) = range.ends(self)?;
        within(low, high, range.place)
    }
}

impl Kind for TimeOrNever {
    type Out = Duration;
    const FIGURE: bool = true;

    fn read(&self, key: &str, value: &DeValue<'_>) -> Result<Duration, Problem> {
        match value.as_str() {
            Some("never") => Ok(Duration::MAX),
            _ => Time.read(key, value),
        }
    }
}

fn string<'v>(key: &str, value: &'v DeValue<'_>, wanted: &'static str) -> Result<&'v str, Problem> {
    value.as_str().ok_or_else(|| unsuitable(key, value, wanted))
}

/// Reads a string such as `2.5us` as a whole number of the smallest unit.
fn scaled(
    key: &str,
    value: &DeValue<'_>,
    units: &[(&str, u64)],
    wanted: &'static str,
    range: &RangeInclusive<u64>,
    allowed: &str,
) -> Result<u64, Problem> {
    debug_assert!(range.start() <= range.end(), "`{key}` has an empty range");
    let text = string(key, value, wanted)?;
    let amount = whole_units(text, units).ok_or_else(|| unsuitable(key, value, wanted))?;
    if range.contains(&amount) {
        return Ok(amount);
    }
    let (key, given) = (key.to_owned(), text.to_owned());
    Err(Problem::OutOfRange { key, given, allowed: allowed.to_owned() })
}

/// Returns the decimal number and unit in `text` as a whole number of the smallest unit. Returns `None` if `text`
/// is something else, the number is not whole or it is too large.
fn whole_units(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    debug_assert!(units.iter().any(|(_, factor)| *factor == 1), "no smallest unit");
    let (number, factor) = number_and_factor(text, units)?;
    scaled_decimal(number, factor)
}

/// Splits `text` into its number and the factor of its unit. Returns `None` if the unit is not one of `units`.
fn number_and_factor<'t>(text: &'t str, units: &[(&str, u64)]) -> Option<(&'t str, u64)> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number = text.strip_suffix(unit)?;
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    Some((number, *factor))
}

/// Returns the decimal number and unit in `text` in the smallest unit, rounded. Returns `None` if `text` is something else, or
/// the number is too large.
pub(crate) fn rounded(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, factor) = number_and_factor(text, units)?;
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    // More decimals than these are less than a byte in any unit.
    let decimals = decimals.get(..decimals.len().min(15))?;
    let scale = 10_u128.pow(u32::try_from(decimals.len()).ok()?);
    let part = decimals.parse::<u128>().ok()? * u128::from(factor);
    let whole = u128::from(whole.parse::<u64>().ok()?) * u128::from(factor);
    u64::try_from(whole + (part + scale / 2) / scale).ok()
}

/// Returns the decimal `number` times `factor`. Returns `None` if `number` is something else, or the product is not whole
/// or too large.
pub(crate) fn scaled_decimal(number: &str, factor: u64) -> Option<u64> {
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

pub(super) fn unsuitable(key: &str, value: &DeValue<'_>, wanted: &'static str) -> Problem {
    Problem::Unsuitable { key: key.to_owned(), given: written(value), wanted }
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
    fn a_count_has_any_radix_and_is_not_negative() {
        let read = |text| Count(0..=255_u16).read("n", DeValue::parse(text).unwrap().get_ref());
        assert_eq!(read("0x10"), Ok(16));
        assert_eq!(read("1_0"), Ok(10));
        assert!(matches!(read("-1"), Err(Problem::OutOfRange { .. })));
        assert!(matches!(read("70000"), Err(Problem::OutOfRange { .. })));
        assert!(matches!(read("1.0"), Err(Problem::Unsuitable { .. })));
    }
}
