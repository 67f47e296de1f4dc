//! The grammar of values: numbers with units, words, and lists of them.
//!
//! fio stops reading a number at the first unexpected character, and continues with the number that
//! it has read: `4.5k` is 4 bytes, `10min` is ten microseconds. In Blockyard, a value that is not
//! understood as a whole is an error.
//!
//! Digits mean the same as in [`quantity`], the grammar of profiles. The rest differs, as measured
//! with fio 3.33: `bs=4k` reads 4096 bytes and `bs=4KiB` reads 4000 (`kb_base=1000` swaps them),
//! units may be in capitals, a unit may be missing, times may join units, `0x` begins a hexadecimal
//! number, and no number has decimals.

use super::error::ValueFault;
use super::op::PerOp;
use blockyard_text::quantity;

pub(super) type Parsed<T> = Result<T, ValueFault>;

/// An amount in bytes, or in percent of an amount that is known later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Bytes.
    Bytes(u64),
    /// Percent (0 to 100) of the amount that the field names.
    Percent(u8),
}

/// The text after `=` of one option, and the meaning of `k` in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value<'a> {
    pub(super) text: Option<&'a str>,
    pub(super) kb_base: u16,
}

/// The unit, in nanoseconds, of a time without a unit.
#[derive(Clone, Copy)]
pub(super) enum TimeUnit {
    Second = 1_000_000_000,
    Microsecond = 1_000,
}

impl<'a> Value<'a> {
    /// Returns the text, which is not empty.
    pub(super) fn text(self) -> Parsed<&'a str> {
        match self.text {
            None | Some("") => Err(ValueFault::Missing),
            Some(text) if text.starts_with(char::is_whitespace) => Err(ValueFault::LeadingSpace),
            Some(text) => Ok(text),
        }
    }

    /// Returns the text with the blanks at its head, which belong to it as in fio.
    pub(super) fn free_text(self) -> Parsed<&'a str> {
        self.text.filter(|text| !text.is_empty()).ok_or(ValueFault::Missing)
    }

    /// Returns a part of the text as a value.
    fn part(self, text: &'a str) -> Self {
        debug_assert!(
            self.text.is_some_and(|whole| whole.len() >= text.len()),
            "a part of {self:?}"
        );
        Self { text: Some(text), ..self }
    }

    /// Reads a flag: without a value it is set, and any number but 0 sets it, as in fio.
    pub(super) fn flag(self) -> Parsed<bool> {
        if self.text.is_none() {
            return Ok(true);
        }
        Ok(self.signed_count(u32::MAX.into())? != 0)
    }

    /// Reads 0 or 1.
    pub(super) fn boolean(self) -> Parsed<bool> {
        Ok(self.count(0, 1)? == 1)
    }

    /// Reads a whole number with an optional size suffix, from `min` to `max`.
    pub(super) fn count(self, min: u64, max: u64) -> Parsed<u64> {
        debug_assert!(min <= max, "a range must not be empty: {min} to {max}");
        let text = self.text()?;
        if before_comment(text).is_some() {
            return Err(ValueFault::Comment);
        }
        if text.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        {
            return Err(ValueFault::OutOfRange { text: text.to_owned(), min, max });
        }
        let value = number(text, |suffix| size_factor(suffix, self.kb_base))?;
        if (min..=max).contains(&value) {
            return Ok(value);
        }
        Err(ValueFault::OutOfRange { text: text.to_owned(), min, max })
    }

    /// Reads a number like [`Self::count`], from `-max` to `max`: `4k`, `-8k`.
    pub(super) fn signed_count(self, max: u64) -> Parsed<i64> {
        debug_assert!(max <= i64::MAX as u64, "a bound of {max} must fit a signed number");
        let text = self.text()?;
        let back = text.strip_prefix('-');
        let count = self.part(back.unwrap_or(text)).count(0, max)?.cast_signed();
        Ok(if back.is_some() { -count } else { count })
    }

    /// Reads a 32-bit number like [`Self::count`].
    pub(super) fn count_u32(self, min: u32, max: u32) -> Parsed<u32> {
        // The upper bound is a u32, so the fallback is never used.
        Ok(u32::try_from(self.count(min.into(), max.into())?).unwrap_or(max))
    }

    /// Reads 0 to 100, with or without `%`.
    pub(super) fn percent(self) -> Parsed<u8> {
        let text = self.text()?;
        let digits = self.part(text.strip_suffix('%').unwrap_or(text));
        Ok(u8::try_from(digits.count(0, 100)?).unwrap_or(100))
    }

    /// Reads bytes, or a percentage.
    pub(super) fn amount(self) -> Parsed<Amount> {
        let text = self.text()?;
        if text.ends_with('%') {
            return self.percent().map(Amount::Percent);
        }
        if text.ends_with(['z', 'Z']) {
            return Err(ValueFault::Unsupported("a size in zones"));
        }
        Ok(Amount::Bytes(self.count(0, u64::MAX)?))
    }

    /// Reads a time in nanoseconds; a number without a unit is in `unit`. Units may be joined, the
    /// longest first: `1m30s`.
    pub(super) fn time_ns(self, unit: TimeUnit) -> Parsed<u64> {
        let text = self.text()?;
        let fault = || ValueFault::NotATime(text.to_owned());
        // fio loses the unit of a time before a comment, and reads `60s // x` as 60 us.
        if let Some(time) = before_comment(text) {
            let plain = time.bytes().all(|byte| byte.is_ascii_digit());
            return Err(if plain { ValueFault::Comment } else { fault() });
        }
        let ends: Vec<_> = text
            .match_indices(|c: char| c.is_ascii_alphabetic())
            .map(|(at, _)| at + 1)
            .filter(|end| text[*end..].starts_with(|c: char| c.is_ascii_digit()))
            .collect();
        // The `x` of 0x10 is no unit.
        if ends.is_empty() || text.starts_with("0x") || text.starts_with("0X") {
            return number(text, |suffix| time_factor(suffix, unit)).map_err(|_| fault());
        }
        let mut sum_ns = 0_u64;
        let mut begin = 0;
        let mut longer = u64::MAX;
        for end in ends.into_iter().chain([text.len()]) {
            let part = &text[begin..end];
            let digits = part.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(fault)?;
            let suffix = part[digits..].to_ascii_lowercase();
            let factor = time_factor(&suffix, unit).filter(|factor| *factor < longer);
            longer = factor.ok_or_else(fault)?;
            let ns = number(part, |_| factor).map_err(|_| fault())?;
            sum_ns = sum_ns.checked_add(ns).ok_or_else(fault)?;
            begin = end;
        }
        Ok(sum_ns)
    }

    /// Splits a final `%` off. Returns the rest, and whether there was one.
    pub(super) fn without_percent_sign(self) -> Parsed<(Self, bool)> {
        let text = self.text()?;
        let rest = text.strip_suffix('%');
        Ok((self.part(rest.unwrap_or(text)), rest.is_some()))
    }

    /// Reads a decimal number in millionths. Further decimals are dropped.
    pub(super) fn millionths(self) -> Parsed<u64> {
        let text = self.text()?;
        let fault = || ValueFault::NotANumber(text.to_owned());
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        let all_digits = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        if !all_digits || decimals.contains('.') || whole.is_empty() {
            return Err(fault());
        }
        let whole: u64 = whole.parse().map_err(|_| fault())?;
        let six: String = decimals.chars().chain("000000".chars()).take(6).collect();
        let millionths: u64 = six.parse().map_err(|_| fault())?;
        let scaled = whole.checked_mul(1_000_000).and_then(|scaled| scaled.checked_add(millionths));
        scaled.ok_or_else(fault)
    }

    /// Reads a decimal fraction. `allowed` describes the fractions that `accept` accepts.
    pub(super) fn fraction(
        self,
        allowed: &'static str,
        accept: impl Fn(f64) -> bool,
    ) -> Parsed<f64> {
        let text = self.text()?;
        let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        match text.parse::<f64>() {
            Ok(value) if plain && accept(value) => Ok(value),
            _ => Err(ValueFault::BadFraction { text: text.to_owned(), allowed }),
        }
    }

    /// Reads one of the words in `table`.
    pub(super) fn word<T: Copy>(self, table: &[(&'static str, T)]) -> Parsed<T> {
        let text = self.text()?;
        table.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
            let words: Vec<_> = table.iter().map(|(word, _)| *word).collect();
            ValueFault::NotOneOf { text: text.to_owned(), allowed: words.join(" ") }
        })
    }

    /// Reads two numbers with `-` or `:` between them. Returns the smaller one first.
    pub(super) fn range(self, parse: impl Fn(Self) -> Parsed<u64>) -> Parsed<(u64, u64)> {
        let (from, to) = self
            .text()?
            .split_once(['-', ':'])
            .ok_or(ValueFault::Incomplete("a range such as 4k-16k"))?;
        let from = parse(self.part(from))?;
        let to = parse(self.part(to))?;
        Ok((from.min(to), from.max(to)))
    }

    /// Reads the parts between `separators`, at most `max` of them.
    pub(super) fn list<T>(
        self,
        separators: &[char],
        max: usize,
        parse: impl Fn(Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        debug_assert!(
            max > 0 && !separators.is_empty(),
            "a list must have room for a part and have separators"
        );
        let parts: Vec<_> = self.text()?.split(separators).take(max + 1).collect();
        if parts.len() > max {
            return Err(ValueFault::TooMany { max });
        }
        parts.into_iter().map(|part| parse(self.part(part))).collect()
    }

    /// Splits `head:tail`; the tail is `None` without a colon.
    pub(super) fn head_and_tail(self) -> Parsed<(Self, Option<Self>)> {
        let text = self.text()?;
        Ok(match text.split_once(':') {
            Some((head, tail)) => (self.part(head), Some(self.part(tail))),
            None => (self, None),
        })
    }

    /// Splits `first/second`; the second is `None` if it is missing or blank.
    pub(super) fn pair(self) -> Parsed<(Self, Option<Self>)> {
        let text = self.text()?;
        let (first, second) = text.split_once('/').unwrap_or((text, ""));
        Ok((self.part(first), (!second.is_empty()).then(|| self.part(second))))
    }

    /// Reads `read,write,trim` into `target`. The last value also applies to the kinds after it. A
    /// blank leaves its kind unchanged.
    pub(super) fn per_op<T: Clone>(
        self,
        target: &mut PerOp<T>,
        separators: &[char],
        parse: impl Fn(Self) -> Parsed<T>,
    ) -> Parsed<()> {
        let parts = self.list(separators, 3, |part| match part.text {
            Some("") => Ok(None),
            _ => parse(part).map(Some),
        })?;
        if parts.iter().all(Option::is_none) {
            return Err(ValueFault::Missing);
        }
        // A kind without a part of its own takes the last part.
        let part = |index: usize| parts.get(index).or(parts.last()).cloned().flatten();
        let [read, write, trim] = [part(0), part(1), part(2)];
        target.read = read.unwrap_or_else(|| target.read.clone());
        target.write = write.unwrap_or_else(|| target.write.clone());
        target.trim = trim.unwrap_or_else(|| target.trim.clone());
        Ok(())
    }
}

/// Returns what stands before a blank and a comment of another language: `2m` of `2m // bytes`.
pub(super) fn before_comment(text: &str) -> Option<&str> {
    let (number, rest) = text.split_once(char::is_whitespace)?;
    let rest = rest.trim_start();
    let is_comment = ["//", "/*", "--", "("].iter().any(|sign| rest.starts_with(sign));
    (is_comment && number.starts_with(|c: char| c.is_ascii_digit())).then_some(number)
}

/// Reads digits and a suffix that `factor` knows, or `0x` and hexadecimal digits.
fn number(text: &str, factor: impl Fn(&str) -> Option<u64>) -> Parsed<u64> {
    let fault = || ValueFault::NotANumber(text.to_owned());
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        // fio ignores a suffix of a hexadecimal number: 0x10k is 16.
        let plain = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let count = if plain { u64::from_str_radix(digits, 16).ok() } else { None };
        let factor = factor("").ok_or_else(fault)?;
        return count.and_then(|count| count.checked_mul(factor)).ok_or_else(fault);
    }
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let factor = factor(&text[end..].to_ascii_lowercase()).ok_or_else(fault)?;
    quantity::scaled_decimal(&text[..end], factor).ok_or_else(fault)
}

/// Returns the multiplier of a size suffix.
///
/// With `kb_base=1024`, `k` means 1024 and `kib` means 1000. With `kb_base=1000`, the two are
/// swapped. `ki` without `b` means `k`, as in fio itself; its manual says otherwise.
fn size_factor(suffix: &str, kb_base: u16) -> Option<u64> {
    debug_assert!(matches!(kb_base, 1000 | 1024), "kb_base={kb_base}");
    let mut letters = suffix.chars();
    let power = match letters.next() {
        None | Some('b') => 0,
        Some('k') => 1,
        Some('m') => 2,
        Some('g') => 3,
        Some('t') => 4,
        Some('p') => 5,
        Some(_) => return None,
    };
    let rest = letters.as_str();
    let base: u64 = match (power, rest, kb_base) {
        (0, "", _) => 1,
        (1.., "" | "b" | "i", 1000) | (1.., "ib", 1024) => 1000,
        (1.., "" | "b" | "i", _) | (1.., "ib", _) => 1024,
        _ => return None,
    };
    base.checked_pow(power)
}

/// Returns the number of nanoseconds in a unit of time.
fn time_factor(suffix: &str, default: TimeUnit) -> Option<u64> {
    Some(match suffix {
        "" => default as u64,
        "d" => 86_400_000_000_000,
        "h" => 3_600_000_000_000,
        "m" => 60_000_000_000,
        "s" => 1_000_000_000,
        "ms" | "msec" => 1_000_000,
        "us" | "usec" => 1_000,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value<'_> {
        Value { text: Some(text), kb_base: 1024 }
    }

    fn count_si(text: &str) -> Parsed<u64> {
        Value { text: Some(text), kb_base: 1000 }.count(0, u64::MAX)
    }

    fn count(text: &str) -> Parsed<u64> {
        value(text).count(0, u64::MAX)
    }

    #[test]
    fn sizes_follow_kb_base() {
        assert_eq!(count("4k"), Ok(4096));
        assert_eq!(count("4KiB"), Ok(4000));
        assert_eq!(count("4Ki"), Ok(4096));
        assert_eq!(count("0x10"), Ok(16));
        assert_eq!(count("7b"), Ok(7));
        assert_eq!(count_si("4k"), Ok(4000));
        assert_eq!(count_si("4kib"), Ok(4096));
        assert_eq!(count_si("4ki"), Ok(4000));
    }

    #[test]
    fn numbers_that_are_only_partly_understood_are_refused() {
        for text in [
            "4q",
            "4.5k",
            "1m+1m",
            "-1",
            "4 k",
            "k",
            "0x",
            "0x10k",
            "99999999999999999999",
            "20000p",
        ] {
            assert!(value(text).count(0, u64::MAX).is_err(), "{text}");
        }
        for text in
            ["10x", "3min", "1.5", "5sec", "300000d", "1m30", "30s1m", "1m1m", "1mm", "1m30x"]
        {
            assert!(value(text).time_ns(TimeUnit::Second).is_err(), "{text}");
        }
        for text in ["nan", "inf", "1e3", "-1", ".", ""] {
            assert!(value(text).fraction("a number", |_| true).is_err(), "{text}");
        }
    }

    fn seconds(text: &str) -> Parsed<u64> {
        value(text).time_ns(TimeUnit::Second).map(|ns| ns / 1_000_000_000)
    }

    /// fio takes such a time as one microsecond.
    #[test]
    fn units_of_time_may_be_joined() {
        assert_eq!(seconds("1m30s"), Ok(90));
        assert_eq!(seconds("1d2h3M4s"), Ok(86_400 + 7_200 + 180 + 4));
        assert_eq!(value("1s500ms").time_ns(TimeUnit::Second), Ok(1_500_000_000));
        assert_eq!(seconds("0x10"), Ok(16));
    }

    fn millionths(text: &str) -> Parsed<u64> {
        value(text).millionths()
    }

    #[test]
    fn decimals_are_read_to_millionths() {
        assert_eq!(millionths("0.1"), Ok(100_000));
        assert_eq!(millionths("12"), Ok(12_000_000));
        assert_eq!(millionths("5."), Ok(5_000_000));
        assert_eq!(millionths("1.23456789"), Ok(1_234_567));
        for bad in ["", ".5", "1.2.3", "-1", "1e3", "99999999999999999999"] {
            assert!(millionths(bad).is_err(), "{bad}");
        }
    }

    fn per_op(text: &str) -> Parsed<(u64, u64, u64)> {
        let mut target = PerOp::all(1);
        let result = value(text).per_op(&mut target, &[','], |v| v.count(0, 100));
        result.map(|()| (target.read, target.write, target.trim))
    }

    #[test]
    fn a_blank_part_leaves_its_kind_unchanged() {
        assert_eq!(per_op("8"), Ok((8, 8, 8)));
        assert_eq!(per_op("8,9"), Ok((8, 9, 9)));
        assert_eq!(per_op("8,9,"), Ok((8, 9, 1)));
        assert_eq!(per_op(",9"), Ok((1, 9, 9)));
        assert_eq!(per_op(",9,"), Ok((1, 9, 1)));
        assert!(per_op(",").is_err());
        assert!(per_op("1,2,3,4").is_err());
    }

    #[test]
    fn ranges_put_the_smaller_first() {
        assert_eq!(value("8k-4k").range(|v| v.count(0, u64::MAX)), Ok((4096, 8192)));
        assert!(value("4k").range(|v| v.count(0, u64::MAX)).is_err());
        assert!(value("4k-").range(|v| v.count(0, u64::MAX)).is_err());
    }
}
