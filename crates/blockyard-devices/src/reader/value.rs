//! The kinds of values in profiles, each with its reader.

use core::fmt::Display;
use core::ops::RangeInclusive;

use blockyard::time::Duration;
use toml::de::{DeInteger, DeValue};

use super::error::Problem;
use super::instead;
use super::reading::between;
use blockyard_text::quantity::{
    HOUR_NS, RATE_UNITS, SIZE_UNITS, TIME_UNITS, size_words, whole_units,
};

/// A kind of value.
pub(crate) trait Kind {
    /// The type of a value of this kind.
    type Out;
    /// Whether a value of this kind is a figure, which may be written as `{ value = ..., origin =
    /// "..." }`.
    const FIGURE: bool;

    /// Reads `value` of `key`.
    fn read(&self, key: &str, value: &DeValue<'_>) -> Result<Self::Out, Problem>;

    /// Returns the name of the figures with which the value of `key` moves in a reading. That is
    /// the key, for a figure that moves alone.
    fn moves_with<'k>(&self, key: &'k str) -> &'k str {
        key
    }

    /// Returns the value in its place of a range.
    fn vary(&self, range: &InRange<'_>) -> Result<Self::Out, Problem> {
        debug_assert!(Self::FIGURE, "`{}` is no figure", range.key);
        Err(Problem::Contradiction("a value of this kind has no range"))
    }
}

/// The range of a figure, and a place in it.
pub(crate) struct InRange<'v> {
    pub(crate) key: &'v str,
    pub(crate) low: &'v DeValue<'v>,
    pub(crate) high: &'v DeValue<'v>,
    /// The value that the profile states.
    pub(crate) stated: &'v DeValue<'v>,
    /// From 0, the lowest value, to 255.
    pub(crate) place: u8,
}

impl InRange<'_> {
    /// Reads both ends, between which the stated value must lie.
    fn ends<K: Kind<Out: PartialOrd>>(&self, kind: &K) -> Result<(K::Out, K::Out), Problem> {
        let [low, high, stated] =
            [self.low, self.high, self.stated].map(|value| kind.read(self.key, value));
        let low = low?;
        let high = high?;
        if low > high {
            let words = "the lowest value of a range is above the highest";
            return Err(Problem::Contradiction(words));
        }
        if !(&low..=&high).contains(&&stated?) {
            return Err(self.excludes());
        }
        Ok((low, high))
    }

    /// Returns the problem that the stated value lies outside the range.
    pub(crate) fn excludes(&self) -> Problem {
        Problem::OutOfRange {
            key: self.key.to_owned(),
            given: written(self.stated),
            allowed: format!("its `range` is {} to {}", written(self.low), written(self.high)),
        }
    }

    /// Returns the number at its place between two numbers, each of which is as likely.
    fn step(&self, low: u64, high: u64) -> u64 {
        debug_assert!(low <= high, "a range from {low} to {high}");
        let step = u128::from(high - low + 1) * u128::from(self.place) / 256;
        low + u64::try_from(step).expect("a part of 64 bits")
    }
}

/// Any string.
pub(crate) struct Text;

/// `true` or `false`.
pub(crate) struct Flag;

/// One of several words, each of which stands for a value.
pub(crate) struct OneOf<'a, T>(pub &'a [(&'static str, T)]);

/// A whole number within a range.
pub(crate) struct Count<N>(pub RangeInclusive<N>);

/// A whole number that is one of a few, in rising order.
pub(crate) struct Among(pub &'static [u8]);

/// A time with its unit, at most an hour.
pub(crate) struct Time;

/// One of several figures that move together: in a reading all of a name have one place in their
/// ranges, such as half-way from the shortest to the longest time.
pub(crate) struct Together<K>(pub K, pub &'static str);

/// A size with its unit, within a range in bytes.
pub(crate) struct Bytes(pub RangeInclusive<u64>);

/// A rate with its unit, at least one byte per second.
pub(crate) struct Rate;

/// A time, or the word `never` for [`Duration::MAX`].
pub(crate) struct TimeOrNever;

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
        value
            .as_bool()
            .ok_or_else(|| misspelt(key, value, "true or false", instead::flag(&written(value))))
    }
}

impl<T> OneOf<'_, T> {
    /// Returns the place of the word that `value` is in the list of words.
    fn place(&self, key: &str, value: &DeValue<'_>) -> Result<usize, Problem> {
        debug_assert!(!self.0.is_empty(), "`{key}` has no words");
        let word = string(key, value, "a string")?;
        let found = self.0.iter().position(|(name, _)| *name == word);
        found.ok_or_else(|| Problem::UnknownValue {
            key: key.to_owned(),
            value: word.to_owned(),
            known: self.0.iter().map(|(name, _)| *name).collect(),
        })
    }

    /// Returns the places of the words from `low` to `high`, both included.
    pub(crate) fn places(
        &self,
        key: &str,
        [low, high]: [&DeValue<'_>; 2],
    ) -> Result<RangeInclusive<usize>, Problem> {
        let first = self.place(key, low)?;
        let last = self.place(key, high)?;
        if first > last {
            let words = "the words of a range are not in the order in which the key lists them";
            return Err(Problem::Contradiction(words));
        }
        Ok(first..=last)
    }
}

impl<T: Copy> Kind for OneOf<'_, T> {
    type Out = T;
    const FIGURE: bool = true;

    fn read(&self, key: &str, value: &DeValue<'_>) -> Result<T, Problem> {
        Ok(self.0[self.place(key, value)?].1)
    }

    /// A range of words has those between its ends in the list, both included. Each is as likely.
    fn vary(&self, range: &InRange<'_>) -> Result<T, Problem> {
        let places = self.places(range.key, [range.low, range.high])?;
        if !places.contains(&self.place(range.key, range.stated)?) {
            return Err(range.excludes());
        }
        let words = &self.0[places];
        Ok(words[usize::from(range.place) * words.len() / 256].1)
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
            let number =
                instead::number(&written(value)).and_then(|number| N::try_from(number).ok());
            let number = number.filter(|number| self.0.contains(number));
            let instead = match number {
                Some(number) => number.to_string(),
                None => format!("one from {} to {}", self.0.start(), self.0.end()),
            };
            return Err(misspelt(key, value, "a whole number", Some(instead)));
        };
        let number = whole(digits).and_then(|number| N::try_from(number).ok());
        number.filter(|number| self.0.contains(number)).ok_or_else(|| Problem::OutOfRange {
            key: key.to_owned(),
            given: digits.to_string(),
            allowed: format!("{} to {}", self.0.start(), self.0.end()),
        })
    }

    fn vary(&self, range: &InRange<'_>) -> Result<N, Problem> {
        let (first, _) = range.ends(self)?;
        let (low, high) = count(range.low).zip(count(range.high)).unwrap_or_default();
        Ok(N::try_from(range.step(low, high)).unwrap_or(first))
    }
}

/// Returns the whole number that `value` is, if it is one.
fn count(value: &DeValue<'_>) -> Option<u64> {
    match value {
        DeValue::Integer(digits) => whole(digits),
        _ => None,
    }
}

impl Kind for Among {
    type Out = u8;
    const FIGURE: bool = true;

    fn read(&self, key: &str, value: &DeValue<'_>) -> Result<u8, Problem> {
        debug_assert!(self.0.len() > 1 && self.0.is_sorted(), "`{key}` is one of {:?}", self.0);
        let (last, others) = self.0.split_last().expect("some numbers");
        match Count(self.0[0]..=*last).read(key, value) {
            Ok(number) if self.0.contains(&number) => Ok(number),
            Ok(_) | Err(Problem::OutOfRange { .. }) => {
                let others: Vec<_> = others.iter().map(u8::to_string).collect();
                let allowed = format!("{} or {last}", others.join(", "));
                Err(Problem::OutOfRange { key: key.to_owned(), given: written(value), allowed })
            }
            other => other,
        }
    }

    fn vary(&self, range: &InRange<'_>) -> Result<u8, Problem> {
        let (low, high) = range.ends(self)?;
        let all: Vec<_> = self.0.iter().filter(|number| (low..=high).contains(number)).collect();
        let at = usize::from(range.place) * all.len() / 256;
        Ok(*all[at])
    }
}

/// Returns a whole number of at most 64 bits.
fn whole(digits: &DeInteger<'_>) -> Option<u64> {
    u64::from_str_radix(digits.as_str(), digits.radix()).ok()
}

/// Returns `value` as a profile writes it, without quotes.
pub(crate) fn written(value: &DeValue<'_>) -> String {
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

impl Kind for Time {
    type Out = Duration;
    const FIGURE: bool = true;

    fn read(&self, key: &str, value: &DeValue<'_>) -> Result<Duration, Problem> {
        const FORM: Form = Form {
            units: TIME_UNITS,
            name: "a time with its unit",
            example: "a time with its unit in whole nanoseconds, such as \"1.5us\" or \"500ms\"",
        };
        let range = (0..=HOUR_NS, "at most 1h");
        FORM.scaled(key, value, instead::time, range).map(Duration::from_ns)
    }

    fn vary(&self, range: &InRange<'_>) -> Result<Duration, Problem> {
        let (low, high) = range.ends(self)?;
        Ok(Duration::from_ns(between(low.as_ns(), high.as_ns(), range.place)))
    }
}

impl<K: Kind> Kind for Together<K> {
    type Out = K::Out;
    const FIGURE: bool = K::FIGURE;

    fn read(&self, key: &str, value: &DeValue<'_>) -> Result<K::Out, Problem> {
        self.0.read(key, value)
    }

    fn moves_with<'k>(&self, _: &'k str) -> &'k str {
        self.1
    }

    fn vary(&self, range: &InRange<'_>) -> Result<K::Out, Problem> {
        self.0.vary(range)
    }
}

impl Kind for Bytes {
    type Out = u64;
    const FIGURE: bool = true;

    fn read(&self, key: &str, value: &DeValue<'_>) -> Result<u64, Problem> {
        const FORM: Form = Form {
            units: SIZE_UNITS,
            name: "a size with its unit",
            example: "a size with its unit, such as \"512KiB\" or \"1TiB\"",
        };
        let allowed = format!("{} to {}", size_words(*self.0.start()), size_words(*self.0.end()));
        FORM.scaled(key, value, instead::size, (self.0.clone(), &allowed))
    }

    fn vary(&self, range: &InRange<'_>) -> Result<u64, Problem> {
        let (low, high) = range.ends(self)?;
        if low.is_power_of_two() && high.is_power_of_two() {
            let steps = high.ilog2() - low.ilog2() + 1;
            return Ok(low << (steps * u32::from(range.place) / 256));
        }
        Ok(between(low, high, range.place))
    }
}

impl Kind for Rate {
    type Out = u64;
    const FIGURE: bool = true;

    fn read(&self, key: &str, value: &DeValue<'_>) -> Result<u64, Problem> {
        const FORM: Form = Form {
            units: RATE_UNITS,
            name: "a rate in bytes with its unit",
            example: "a rate with its unit, such as \"2400MB/s\"",
        };
        let range = (1..=u64::MAX, "at least 1B/s");
        FORM.scaled(key, value, |text| instead::rate(key, text), range)
    }

    fn vary(&self, range: &InRange<'_>) -> Result<u64, Problem> {
        let (low, high) = range.ends(self)?;
        Ok(between(low, high, range.place))
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

/// The form of a quantity.
struct Form {
    units: &'static [(&'static str, u64)],
    /// What it is.
    name: &'static str,
    /// What it is, with an example.
    example: &'static str,
}

impl Form {
    /// Reads a string such as `2.5us` as a whole number of the smallest unit, which must be in
    /// `range`, the words of which follow. `instead` finds what other text may mean.
    fn scaled(
        &self,
        key: &str,
        value: &DeValue<'_>,
        instead: impl Fn(&str) -> Option<String>,
        (range, allowed): (RangeInclusive<u64>, &str),
    ) -> Result<u64, Problem> {
        debug_assert!(range.start() <= range.end(), "`{key}` has an empty range");
        let amount = value.as_str().and_then(|text| whole_units(text, self.units));
        let Some(amount) = amount else {
            let instead = instead(&written(value));
            let wanted = if instead.is_some() { self.name } else { self.example };
            return Err(misspelt(key, value, wanted, instead));
        };
        if range.contains(&amount) {
            return Ok(amount);
        }
        let key = key.to_owned();
        let given = written(value);
        Err(Problem::OutOfRange { key, given, allowed: allowed.to_owned() })
    }
}

pub(crate) fn unsuitable(key: &str, value: &DeValue<'_>, wanted: &'static str) -> Problem {
    misspelt(key, value, wanted, None)
}

fn misspelt(
    key: &str,
    value: &DeValue<'_>,
    wanted: &'static str,
    instead: Option<String>,
) -> Problem {
    Problem::Unsuitable { key: key.to_owned(), given: written(value), wanted, instead }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<u16, Problem> {
        Count(0..=255_u16).read("n", DeValue::parse(text).unwrap().get_ref())
    }

    #[test]
    fn a_count_has_any_radix_and_is_not_negative() {
        assert_eq!(read("0x10"), Ok(16));
        assert_eq!(read("1_0"), Ok(10));
        assert!(matches!(read("-1"), Err(Problem::OutOfRange { .. })));
        assert!(matches!(read("70000"), Err(Problem::OutOfRange { .. })));
        assert!(matches!(read("1.0"), Err(Problem::Unsuitable { .. })));
    }
}
