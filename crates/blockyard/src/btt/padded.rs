//! A value with cache lines of its own.

/// Aligned to two lines of 64 bytes, as processors fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Padded<T>(pub(super) T);
