//! Suggestions for a value that is not in the form of its kind: `"1TiB"` for `1TB`, `50` for
//! `"50%"`.

use blockyard::time::Duration;
use blockyard_text::quantity::{
    self, RATE_UNITS, SIZE_UNITS, TIME_UNITS, scaled_decimal, whole_units,
};

/// The units of 1000 bytes each, by the letter that they begin with.
const THOUSANDS: &[(&str, u64)] =
    &[("", 1), ("k", 1_000), ("m", 1_000_000), ("g", 1_000_000_000), ("t", 1_000_000_000_000)];

/// Returns the one whole number in `text`, if the rest of it multiplies nothing: `50%`, `7200rpm`,
/// `x4`, `4.0`.
pub(crate) fn number(text: &str) -> Option<u64> {
    let (_, text) = text.split_at(text.find(|letter: char| letter.is_ascii_digit())?);
    let (digits, rest) = split(text);
    let rest = rest.to_lowercase();
    let multiplies = rest.starts_with(|letter: char| "kmgtp,._".contains(letter));
    let is_one = !multiplies && !rest.contains(|letter: char| letter.is_ascii_digit());
    if is_one { scaled_decimal(digits, 1) } else { None }
}

/// Returns the word for `true` or `false` that `text` means.
pub(crate) fn flag(text: &str) -> Option<String> {
    match text.to_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some("true".to_owned()),
        "false" | "no" | "off" | "0" => Some("false".to_owned()),
        _ => None,
    }
}

/// Returns the times that `text` may mean.
pub(crate) fn time(text: &str) -> Option<String> {
    let (number, unit) = split(text);
    let unit = unit.to_lowercase().replace(['µ', 'μ'], "u");
    match unit.as_str() {
        // A figure without its unit is more likely 5 s than 5 min: only the units up to a second.
        "" => with_each(number, &TIME_UNITS[..4]),
        "ns" | "nsec" | "nanoseconds" => time_in(number, "ns"),
        "us" | "usec" | "microseconds" => time_in(number, "us"),
        "ms" | "msec" | "milliseconds" => time_in(number, "ms"),
        "s" | "sec" | "seconds" => time_in(number, "s"),
        "m" | "min" | "minutes" => time_in(number, "min"),
        "h" | "hour" | "hours" => time_in(number, "h"),
        _ => None,
    }
}

/// Returns `number` and `unit` as a profile writes them, if they are a time of at most an hour.
fn time_in(number: &str, unit: &str) -> Option<String> {
    let text = format!("{number}{unit}");
    quantity::time(&text).map(|_| format!("\"{text}\""))
}

/// Reads the time in `text` as [`quantity::time`] does.
///
/// # Errors
///
/// Returns the message for any other text, with what to write instead or else with `examples`.
pub fn read_time(text: &str, examples: &str) -> Result<Duration, String> {
    quantity::time(text).ok_or_else(|| match time(text) {
        Some(times) => format!("expected a time with its unit: write {}", times.replace('"', "")),
        None => format!("expected a time with its unit: {examples}"),
    })
}

/// Returns the sizes that `text` may mean. A unit such as `GB` counts 1024 bytes for some, as for
/// fio, and 1000 for others.
pub(crate) fn size(text: &str) -> Option<String> {
    let (number, unit) = split(text.strip_suffix("/s").unwrap_or(text));
    let unit = unit.to_lowercase();
    if unit.is_empty() {
        return with_each(number, SIZE_UNITS);
    }
    let (binary, _) = SIZE_UNITS.iter().find(|(name, _)| spells_size(&unit, name))?;
    let thousands = unit.strip_suffix('b').filter(|letter| !letter.is_empty());
    let thousands = THOUSANDS.iter().find(|(letter, _)| Some(*letter) == thousands);
    let decimal = thousands.and_then(|(_, factor)| scaled_decimal(number, *factor));
    let decimal = decimal.map(|bytes| format!("\"{bytes}B\" for units of 1000"));
    either(quantity(number, binary, SIZE_UNITS), decimal)
}

/// Whether `unit`, in lower case, is a spelling of the unit of sizes `name`: of `MiB`, those are
/// `mib`, `m` and `mb`.
fn spells_size(unit: &str, name: &str) -> bool {
    let name = name.to_lowercase();
    let short = name.strip_suffix("ib").unwrap_or(&name);
    [name.as_str(), short].contains(&unit) || unit == format!("{short}b")
}

/// Returns the rates that `text` of `key` may mean. One in bits is an eighth in bytes, or a tenth
/// through a link that sends ten bits for eight.
pub(crate) fn rate(key: &str, text: &str) -> Option<String> {
    let (number, unit) = split(text);
    if unit.is_empty() {
        return with_each(number, RATE_UNITS);
    }
    let amount = ["/s", "/sec", "ps"].iter().find_map(|end| unit.strip_suffix(end)).unwrap_or(unit);
    let lower = amount.to_lowercase();
    let bits = lower.strip_suffix("bits").or(lower.strip_suffix("bit"));
    let bits = bits.or(lower.strip_suffix('b').filter(|_| amount.ends_with('b')));
    let Some(letter) = bits.filter(|letter| !letter.ends_with('i')) else {
        let (unit, _) = RATE_UNITS.iter().find(|(name, _)| {
            name.strip_suffix("/s").is_some_and(|name| name.to_lowercase() == lower)
        })?;
        return quantity(number, unit, RATE_UNITS);
    };
    let (_, factor) = THOUSANDS.iter().find(|(known, _)| *known == letter)?;
    let bits = scaled_decimal(number, *factor)?;
    let bytes = format!("\"{}\"", in_decimal_units(bits / 8));
    if key.starts_with("link") {
        let encoded = in_decimal_units(bits / 10);
        return Some(format!("\"{encoded}\" for a link with 8b/10b encoding, else {bytes}"));
    }
    Some(bytes)
}

/// Divides `text` into the number at its start and the rest, without spaces between them.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let (number, rest) = text.split_at(end.unwrap_or(text.len()));
    (number, rest.trim())
}

/// Returns `number` and `unit` as a profile writes them, if they are a quantity in `units`.
fn quantity(number: &str, unit: &str, units: &[(&str, u64)]) -> Option<String> {
    debug_assert!(units.iter().any(|(known, _)| *known == unit), "no unit is called {unit}");
    let text = format!("{number}{unit}");
    whole_units(&text, units).map(|_| format!("\"{text}\""))
}

/// Returns `number` with each of `units`.
fn with_each(number: &str, units: &[(&str, u64)]) -> Option<String> {
    units
        .iter()
        .filter_map(|(unit, _)| quantity(number, unit, units))
        .reduce(|all, next| format!("{all} or {next}"))
}

fn either(one: Option<String>, other: Option<String>) -> Option<String> {
    [one, other].into_iter().flatten().reduce(|one, other| format!("{one}, or {other}"))
}

/// Returns a rate in the largest decimal unit in which it is whole.
fn in_decimal_units(bytes: u64) -> String {
    let decimal = RATE_UNITS.iter().filter(|(unit, _)| !unit.contains('i'));
    let (unit, factor) = decimal
        .rev()
        .find(|(_, factor)| bytes.is_multiple_of(*factor))
        .expect("a unit of one byte");
    format!("{}{unit}", bytes / factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_among_words_that_do_not_multiply_it() {
        for (text, found) in [
            ("50%", Some(50)),
            ("50 %", Some(50)),
            ("7200rpm", Some(7200)),
            ("7200 rpm", Some(7200)),
            ("x4", Some(4)),
            ("100", Some(100)),
            ("4.0", Some(4)),
            ("4.5", None),
            ("1k", None),
            ("2 million", None),
            ("1,000", None),
            ("1e3", None),
            ("PCIe 4.0 x4", None),
            ("many", None),
            ("", None),
        ] {
            assert_eq!(number(text), found, "{text}");
        }
    }

    fn error_of_time(text: &str) -> String {
        read_time(text, "20us, 2s").unwrap_err()
    }

    #[test]
    fn a_message_about_a_time_says_what_to_write() {
        assert_eq!(
            error_of_time("900"),
            "expected a time with its unit: write 900ns or 900us or 900ms or 900s"
        );
        assert_eq!(error_of_time("900 usec"), "expected a time with its unit: write 900us");
        assert_eq!(error_of_time("soon"), "expected a time with its unit: 20us, 2s");
        assert_eq!(read_time("2s", ""), Ok(Duration::from_secs(2)));
    }

    #[test]
    fn quantities_in_usual_spellings_are_shown_as_a_profile_writes_them() {
        for (found, expected) in [
            (time("40µs"), Some("\"40us\"")),
            (time("40 us"), Some("\"40us\"")),
            (time("1.5 MS"), Some("\"1.5ms\"")),
            (time("2 minutes"), Some("\"2min\"")),
            (time("1hour"), Some("\"1h\"")),
            (time("40"), Some("\"40ns\" or \"40us\" or \"40ms\" or \"40s\"")),
            (time("1.2345us"), None),
            (time("40 hours"), None), // longer than the longest time, an hour
            (time("us"), None),
            (size("1TB"), Some("\"1TiB\", or \"1000000000000B\" for units of 1000")),
            (size("1.92TB"), Some("\"1920000000000B\" for units of 1000")),
            (size("512kb"), Some("\"512KiB\", or \"512000B\" for units of 1000")),
            (size("200G"), Some("\"200GiB\"")),
            (size("200 gib"), Some("\"200GiB\"")),
            (size("125MiB/s"), Some("\"125MiB\"")),
            (size("77b"), Some("\"77B\"")),
            (size("8"), Some("\"8B\" or \"8KiB\" or \"8MiB\" or \"8GiB\" or \"8TiB\"")),
            (size("1PB"), None),
            (size("big"), None),
            (rate("bandwidth-limit", "6Gb/s"), Some("\"750MB/s\"")),
            (rate("bandwidth-limit", "100Mbit/s"), Some("\"12500kB/s\"")),
            (rate("bandwidth-limit", "600 MB/s"), Some("\"600MB/s\"")),
            (rate("bandwidth-limit", "600MB"), Some("\"600MB/s\"")),
            (rate("bandwidth-limit", "600MBps"), Some("\"600MB/s\"")),
            (rate("bandwidth-limit", "3mib/s"), Some("\"3MiB/s\"")),
            (rate("bandwidth-limit", "1Gib/s"), Some("\"1GiB/s\"")),
            (rate("bandwidth-limit", "fast"), None),
            (
                rate("link", "6Gb/s"),
                Some("\"600MB/s\" for a link with 8b/10b encoding, else \"750MB/s\""),
            ),
        ] {
            assert_eq!(found.as_deref(), expected);
        }
        assert_eq!([flag("Yes"), flag("0")], ["true", "false"].map(|word| Some(word.to_owned())));
        assert_eq!(flag("maybe"), None);
    }
}
