//! Statistics: what the events of a queue add up to.
//!
//! A [`Histogram`] keeps a distribution with a stated error bound in fixed memory.
//! [`StageStats`] is a [`Sink`](crate::trace::Sink) that keeps one for each stage of a request's
//! way, apart for reads and writes, and counts every [`Action`](crate::trace::Action). It can keep
//! another [`Distribution`] instead.

mod histogram;
mod hold;
mod stage;

pub use histogram::Histogram;
pub use stage::{Direction, Stage, StageStats};

/// Values that were recorded, in memory that does not depend on their number.
pub trait Distribution: Default {
    /// Records `value` once.
    fn record(&mut self, value: u64);

    /// Adds all values of `other`.
    fn merge(&mut self, other: &Self);

    /// Forgets all values.
    fn clear(&mut self);
}

impl Distribution for Histogram {
    #[inline]
    fn record(&mut self, value: u64) {
        self.record(value);
    }

    fn merge(&mut self, other: &Self) {
        self.merge(other);
    }

    fn clear(&mut self) {
        self.clear();
    }
}
