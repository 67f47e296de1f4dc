//! A value in cache lines of its own.

/// Aligns a value to a cache line of 64 bytes.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Padded<T>(pub(super) T);
