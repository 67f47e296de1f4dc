//! A run to be compared with others, and how far runs differ before it matters.

use crate::answer::figures::Figures;

/// Rates within this factor of each other are called equal.
pub(super) const EQUAL: f64 = 1.02;
/// Latencies and idle times that differ by less than this factor are not worth naming.
pub(super) const MUCH_SLOWER: f64 = 1.25;

/// The name of a design and the figures of its run.
pub(super) type Run<'a> = (&'a str, &'a Figures);
