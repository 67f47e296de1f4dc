//! Numbers and strings in JSON, appended to bytes.

use blockyard::time::Duration;

/// Appends `number`.
#[inline]
pub(super) fn number(to: &mut Vec<u8>, number: u64) {
    to.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends `ns` nanoseconds as microseconds with three decimals: 1234567 as 1234.567. No number
/// passes through a float, which would round the nanoseconds of a long run.
#[inline]
pub(super) fn micros(to: &mut Vec<u8>, ns: Duration) {
    let us = ns.as_ns() / 1000;
    let below_us = ns.as_ns() % 1000;
    number(to, us);
    to.extend_from_slice(&[b'.', digit(below_us / 100), digit(below_us / 10), digit(below_us)]);
}

/// The last decimal digit of a number.
fn digit(value: u64) -> u8 {
    b'0' + u8::try_from(value % 10).expect("a remainder of 10 is a digit")
}

/// Returns `text` with the escapes that JSON needs within quotes.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '"' | '\\' => escaped.extend(['\\', letter]),
            '\0'..='\u{1f}' => escaped += &format!("\\u{:04x}", u32::from(letter)),
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_keep_their_nanoseconds() {
        for (ns, expected) in
            [(0, "0.000"), (7, "0.007"), (1_050, "1.050"), (123_456_789, "123456.789")]
        {
            let mut text = Vec::new();
            micros(&mut text, Duration::from_ns(ns));
            assert_eq!(text, expected.as_bytes());
        }
    }

    #[test]
    fn strings_are_escaped() {
        assert_eq!(escaped("a\"b\\c\nd\u{e4}"), "a\\\"b\\\\c\\u000ad\u{e4}");
    }
}
