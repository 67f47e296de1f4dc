//! Sizes on the command line.

use blockyard_fio::job::size_hint;

/// Parses a number of bytes. The suffixes k, m, g and t are powers of 1024, as in fio.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let power = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 1,
        "m" | "mb" | "mib" => 2,
        "g" | "gb" | "gib" => 3,
        "t" | "tb" | "tib" => 4,
        _ => return Err(not_a_size(text)),
    };
    let number: u64 = digits.parse().map_err(|_| not_a_size(text))?;
    let bytes = number.checked_mul(1 << (10 * power)).filter(|bytes| *bytes > 0);
    bytes.ok_or_else(|| format!("{text:?} is too large or zero"))
}

/// The message for a text that is no size.
fn not_a_size(text: &str) -> String {
    match size_hint(text.strip_suffix("/s").unwrap_or(text)) {
        Some(instead) => format!("{text:?} is not a size: write {instead}"),
        None => format!("{text:?} is not a size: 512, 64k, 10m, 1g, 1GiB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        assert_eq!(bytes("1g"), Ok(1 << 30));
        assert_eq!(bytes("3KiB"), Ok(3072));
        assert_eq!(bytes("77"), Ok(77));
        for wrong in ["", "g", "1x", "-1", "0", "99999999t", "1.5g", "1g1"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
        for (wrong, instead) in
            [("1.5g", "1536m"), ("20MB/s", "20m"), ("4 k", "4k"), ("512bytes", "512")]
        {
            let error = bytes(wrong).unwrap_err();
            assert!(error.ends_with(&format!("write {instead}")), "{error}");
        }
    }
}
