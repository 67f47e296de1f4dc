//! When two designs count as equal.

/// Two designs are equal if the ratio of their IOPS is within this much of 1.
pub const EQUAL_WITHIN: f64 = 0.02;
/// The 99th percentiles of two designs are equal if their ratio is within this much of 1.
pub(super) const P99_EQUAL_WITHIN: f64 = 0.1;
