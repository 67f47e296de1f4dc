//! The counters of media, as `docs/devices` and the schema of an answer explain them. Each medium
//! has its rows in its folder. All are sums over the measured time, except
//! `write_amplification_percent`: that is the ratio of two sums.
//!
//! # Rules
//!
//! - **[every-counter-is-explained]** Each counter of each medium has a row, in the order in which
//!   the medium names them, and no other counter has one.

/// What a counter of a medium means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// The name in answers. Of a name that ends in `_ns`, or in `_percent`, tables leave the end
    /// out.
    pub name: &'static str,
    /// What is counted.
    pub meaning: &'static str,
    /// How to read a value: what follows from it, in sentences.
    pub reading: &'static str,
}

impl Counter {
    /// The unit of the counter, by its name.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        match self.name {
            name if name.ends_with("_ns") => "time, ns in JSON",
            name if name.ends_with("_percent") => "%",
            _ => "count",
        }
    }
}

/// Returns the row of a counter.
pub(crate) const fn counter(
    name: &'static str,
    meaning: &'static str,
    reading: &'static str,
) -> Counter {
    Counter { name, meaning, reading }
}

pub use crate::fronts::profile::counters;
