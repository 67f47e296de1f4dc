//! When two designs count as equal.

/// Two designs are equal if the ratio of their IOPS is within this much of 1.
pub const EQUAL_WITHIN: f64 = 0.02;
