//! The lengths of I/Os: `bs`, `bsrange` and `bssplit`.

use super::error::ValueFault;
use super::op::{Op, PerOp};
use super::value::{Parsed, Value};

/// Lengths of I/Os, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockSizes {
    /// One length for all (`bs`).
    Fixed(u32),
    /// Multiples of `min_bytes` up to `max_bytes`, all equally likely, and `max_bytes` (`bsrange`).
    Range {
        /// The smallest length.
        min_bytes: u32,
        /// The largest length.
        max_bytes: u32,
    },
    /// Lengths in bytes, each with its percentage; the percentages sum to 100 (`bssplit`).
    Split(Vec<(u32, u8)>),
}

impl BlockSizes {
    /// Returns the bytes of the shortest I/O; 0 only for a split without entries, which the parser
    /// refuses.
    pub(crate) fn min_bytes(&self) -> u32 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Range { min_bytes, .. } => *min_bytes,
            Self::Split(entries) => {
                debug_assert!(
                    !entries.is_empty(),
                    "the parser must refuse a split without entries"
                );
                entries.iter().map(|(bytes, _)| *bytes).min().unwrap_or(0)
            }
        }
    }

    /// Returns the bytes of the longest I/O.
    pub fn max_bytes(&self) -> u32 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Range { max_bytes, .. } => *max_bytes,
            Self::Split(entries) => entries.iter().map(|(bytes, _)| *bytes).max().unwrap_or(0),
        }
    }
}

/// Sets one length for reads, writes and trims. As in fio, it does not replace a range or a split,
/// wherever that stands: with `[global] bsrange=8k-64k`, `bs=4k` in a job changes nothing.
pub(super) fn set_length(
    field: &mut PerOp<BlockSizes>,
    value: Value<'_>,
    read: impl Fn(Value<'_>) -> Parsed<BlockSizes>,
) -> Parsed<()> {
    let mut lengths = field.clone();
    value.per_op(&mut lengths, &[','], read)?;
    for op in Op::ALL {
        if let BlockSizes::Fixed(_) = field.of(op) {
            *field.of_mut(op) = lengths.of(op).clone();
        }
    }
    Ok(())
}

/// Sets ranges for reads, writes and trims. In fio, a split before them stays, and each of its
/// lengths is rounded down to a multiple of the least one and cut to the greatest.
pub(super) fn set_ranges(
    field: &mut PerOp<BlockSizes>,
    value: Value<'_>,
    read: impl Fn(Value<'_>) -> Parsed<BlockSizes>,
) -> Parsed<()> {
    if let Some(text) = value.text
        && field.each().into_iter().any(|sizes| matches!(sizes, BlockSizes::Split(_)))
    {
        let reason = "fio keeps the lengths of the `bssplit` before it, cut to this range; write one of them";
        return Err(ValueFault::NotModelled { text: text.to_owned(), reason });
    }
    value.per_op(field, &[',', '/'], read)
}
