//! Statistics: what the events of a queue add up to.
//!
//! A [`Histogram`] keeps a distribution with a stated error bound in fixed memory.
//! [`StageStats`] is a [`Sink`](crate::trace::Sink) that keeps one for each stage of a request's
//! way, apart for reads and writes, and counts every [`Action`](crate::trace::Action).

mod histogram;
mod hold;
mod stage;

pub use histogram::Histogram;
pub use stage::{Direction, Stage, StageStats};
