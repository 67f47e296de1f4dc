//! How sure an answer is: what the device's figures rest on, and how often the ranking of the designs holds if random draws
//! or assumed figures are others.

mod readings;
mod rests;
mod seeds;

pub use readings::{Decider, Ranking, Readings, readings, usual_readings};
pub use rests::Rests;
pub use seeds::{Comparison, Seeds, Verdict, seeds};

/// Two designs are equal if the ratio of their IOPS is within this much of 1.
pub const EQUAL_WITHIN: f64 = 0.02;
