//! Fields that several formats share.

use super::super::error::TraceFault;
use blockyard::unit::SECTOR_BYTES;

/// Checks that a byte offset and a length are multiples of a sector and do not overflow.
pub(super) fn on_sectors(offset_bytes: u64, len_bytes: u64) -> Result<(u64, u32), TraceFault> {
    let sector = u64::from(SECTOR_BYTES);
    let expected = "bytes, a multiple of 512";
    if !offset_bytes.is_multiple_of(sector) {
        let looks_like = "a sector number, or I/O through the page cache";
        return Err(TraceFault::Unit {
            field: "offset",
            found: offset_bytes,
            expected,
            looks_like,
        });
    }
    if !len_bytes.is_multiple_of(sector) {
        let looks_like = "a number of sectors, or I/O through the page cache";
        return Err(TraceFault::Unit { field: "length", found: len_bytes, expected, looks_like });
    }
    let end = offset_bytes.checked_add(len_bytes).ok_or(TraceFault::Beyond)?;
    let len_bytes = u32::try_from(len_bytes).map_err(|_| TraceFault::Unit {
        field: "length",
        found: len_bytes,
        expected: "bytes, below 4 GiB",
        looks_like: "another unit",
    })?;
    if end > i64::MAX.unsigned_abs() {
        Err(TraceFault::Beyond)
    } else {
        Ok((offset_bytes, len_bytes))
    }
}

/// Parses a whole number.
pub(super) fn number(
    field: &'static str,
    text: &str,
    expected: &'static str,
) -> Result<u64, TraceFault> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = if digits { text.parse().ok() } else { None };
    number.ok_or_else(|| TraceFault::Value { field, found: clip(text), expected })
}

/// Shortens a wrong word for a message.
pub(super) fn clip(text: &str) -> String {
    text.chars().take(40).collect()
}

/// The next field of a line, whose fields are `expected`.
pub(super) fn next<'a>(
    fields: &mut impl Iterator<Item = &'a str>,
    expected: &'static str,
) -> Result<&'a str, TraceFault> {
    fields.next().ok_or(TraceFault::Fields { expected })
}

/// Looks `text` up in `words`, ignoring case. The error suggests the nearest word.
pub(super) fn word<T: Copy>(
    field: &'static str,
    text: &str,
    words: &[(&'static str, T)],
    known: &'static str,
) -> Result<T, TraceFault> {
    if let Some((_, value)) = words.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)) {
        return Ok(*value);
    }
    let found = clip(text);
    let lower = found.to_ascii_lowercase();
    let nearest = words
        .iter()
        .map(|(name, _)| (strsim::damerau_levenshtein(&lower, &name.to_ascii_lowercase()), *name));
    let nearest =
        nearest.min().filter(|(far, name)| *far <= name.len() / 3 + 1).map(|(_, name)| name);
    Err(TraceFault::Word { field, found, nearest, known })
}
