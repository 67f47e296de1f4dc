//! Measurements of a run beyond those of its jobs: rates over time, and the bounds of a percentile.

mod interval;
pub mod series;

pub use interval::{Interval, P99_IOS_MIN, p99_ranks};
