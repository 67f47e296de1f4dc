//! A run to be compared with others, how far runs differ before it matters, and when a resource is
//! used up.

use crate::figures::Figures;

/// Rates within this factor of each other are called equal.
pub(super) const EQUAL: f64 = 1.02;
/// Latencies and idle times that differ by less than this factor are not worth naming.
pub(super) const MUCH_SLOWER: f64 = 1.25;

/// The utilisation from which a resource is called used up, in percent.
pub(super) const USED_UP: f64 = 95.0;

/// The name of a design and the figures of its run.
pub(super) type Run<'a> = (&'a str, &'a Figures);
