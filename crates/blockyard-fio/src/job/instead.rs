//! Suggestions for a value that is not understood, as the end of a message: `; write 1536m` for
//! `1.5g`.

/// The units of sizes, with the power of 1024 that each stands for.
const SIZES: &[(&str, u32)] = &[("k", 1), ("m", 2), ("g", 3), ("t", 4), ("p", 5)];

/// The units of times in ns, as fio writes them, and other spellings of each.
const TIMES: &[(&str, u64, &[&str])] = &[
    ("us", 1_000, &["usec", "\u{b5}s", "\u{3bc}s", "usecs", "microsecond", "microseconds"]),
    ("ms", 1_000_000, &["msec", "msecs", "millisecond", "milliseconds"]),
    ("s", 1_000_000_000, &["sec", "secs", "second", "seconds"]),
    ("m", 60_000_000_000, &["min", "mins", "minute", "minutes"]),
    ("h", 3_600_000_000_000, &["hr", "hrs", "hour", "hours"]),
    ("d", 86_400_000_000_000, &["day", "days"]),
];

const COMMENTS: &str = "comments begin with ; or #";

/// Returns the size that `text` may mean, as fio and the command line read it: `1536m` for `1.5g`.
#[must_use]
pub fn size_hint(text: &str) -> Option<String> {
    let (number, unit) = split(text);
    let unit = unit.to_lowercase();
    let letter = unit.strip_suffix("ytes").or(unit.strip_suffix("yte")).unwrap_or(&unit);
    let letter = letter.strip_suffix('b').unwrap_or(letter);
    let power = SIZES.iter().find(|(name, _)| *name == letter).map(|(_, power)| *power);
    let power = if letter.is_empty() { Some(0) } else { power };
    power.and_then(|power| scaled(number, 1024_u64.pow(power))).map(size)
}

/// Returns the end of the message about `text`, which is no number.
pub(super) fn of_number(text: &str) -> String {
    let amount = text.strip_suffix("/s").or_else(|| text.strip_suffix('%')).unwrap_or(text);
    match size_hint(amount) {
        Some(written) => format!("; write {written}"),
        None if text.contains(char::is_whitespace) => {
            format!("; a number ends at a blank; {COMMENTS}")
        }
        None => String::new(),
    }
}

/// Returns the end of the message about `text`, which is no time.
pub(super) fn of_time(text: &str) -> String {
    let (number, unit) = split(text);
    let unit = unit.to_lowercase();
    let is_meant = |(name, _, others): &&(&str, u64, &[&str])| {
        *name == unit || others.contains(&unit.as_str())
    };
    let found = TIMES.iter().find(is_meant);
    let written = found.and_then(|(_, factor, _)| scaled(number, *factor)).and_then(time);
    match written {
        Some(time) => format!("; write {time}"),
        None if text.contains(char::is_whitespace) => {
            format!("; a number ends at a blank; {COMMENTS}")
        }
        None => "; units are us, ms, s, m, h and d".to_owned(),
    }
}

/// Returns the end of the message about `text`, which is none of the words of its option.
pub(super) fn of_word(text: &str) -> String {
    match text.contains(char::is_whitespace) {
        true => format!("; {COMMENTS}"),
        false => String::new(),
    }
}

/// Divides `text` into the decimal number at its start and the rest, without the blanks between
/// them.
fn split(text: &str) -> (&str, &str) {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let (number, rest) = text.split_at(end.unwrap_or(text.len()));
    (number, rest.trim())
}

/// Returns the decimal `number` times `factor`, if it is a whole number: 1536 for 1.5 and 1024.
fn scaled(number: &str, factor: u64) -> Option<u64> {
    blockyard_text::quantity::scaled_decimal(number, factor)
}

/// Returns `bytes` in the largest unit in which they are whole.
fn size(bytes: u64) -> String {
    let whole = |(_, power): &&(&str, u32)| bytes.is_multiple_of(1024_u64.pow(*power));
    match SIZES.iter().rev().find(whole) {
        Some((unit, power)) if bytes > 0 => format!("{}{unit}", bytes / 1024_u64.pow(*power)),
        _ => bytes.to_string(),
    }
}

/// Returns a bound of a number in the manner of `text`, the number as written: `16m` if it is `1g`.
pub(super) fn bound(bound: u64, text: &str) -> String {
    let has_unit = text.ends_with(|letter: char| letter.is_ascii_alphabetic());
    if has_unit { size(bound) } else { bound.to_string() }
}

/// Returns `bytes` for a message: `64m`, or `4000 bytes` where no unit fits.
pub(super) fn size_words(bytes: u64) -> String {
    let written = size(bytes);
    if written.ends_with(|letter: char| letter.is_ascii_digit()) {
        return format!("{written} bytes");
    }
    written
}

/// Returns a time in the largest unit in which it is whole, if there is one.
fn time(ns: u64) -> Option<String> {
    let whole = |(_, factor, _): &&(&str, u64, &[&str])| ns.is_multiple_of(*factor);
    let (unit, factor, _) = TIMES.iter().rev().find(whole)?;
    Some(format!("{}{unit}", ns / factor))
}

#[cfg(test)]
mod tests {
    use super::super::error::ValueFault;
    use super::*;

    fn message(text: &str) -> String {
        ValueFault::OutOfRange { text: text.to_owned(), min: 1, max: 16 << 20 }.to_string()
    }

    #[test]
    fn bounds_are_in_units_if_the_value_is() {
        assert_eq!(message("1g"), "1g is out of range: at least 1, at most 16m");
        assert_eq!(message("0"), "0 is out of range: at least 1, at most 16777216");
    }

    #[test]
    fn usual_spellings_are_shown_as_fio_reads_them() {
        for (found, expected) in [
            (of_number("1.5g"), "; write 1536m"),
            (of_number("4.5k"), "; write 4608"),
            (of_number("1 GB"), "; write 1g"),
            (of_number("4096bytes"), "; write 4k"),
            (of_number("20MB/s"), "; write 20m"),
            (of_number("70%"), "; write 70"),
            (of_number("8k 16k"), "; a number ends at a blank; comments begin with ; or #"),
            (of_number("many"), ""),
            (of_time("10min"), "; write 10m"),
            (of_time("900 us"), "; write 900us"),
            (of_time("900\u{b5}s"), "; write 900us"),
            (of_time("1.5s"), "; write 1500ms"),
            (of_time("60sec"), "; write 1m"),
            (of_time("100ns"), "; units are us, ms, s, m, h and d"),
            (of_word("write // x"), "; comments begin with ; or #"),
            (of_word("wriet"), ""),
        ] {
            assert_eq!(found, expected);
        }
    }
}
