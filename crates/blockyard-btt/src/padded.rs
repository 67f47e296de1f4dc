//! A value with cache lines of its own.

/// Aligned to a line of 64 bytes.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Padded<T>(pub(super) T);
