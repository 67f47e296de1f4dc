//! The time of jobs by activity, in nanoseconds.

use serde::Serialize;

use blockyard_fio::measure::spent::Spent;
use blockyard_text::number::{approximate, ratio};

/// Times of all instances of all jobs, added up, in nanoseconds. The parts add up to `alive`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobTime {
    /// From the start of measurement to the end of each instance.
    pub alive: u64,
    /// Computing between I/Os (`thinktime_spin`).
    pub thinking: u64,
    /// Computing in calls: submitting, copying from the page cache, polling.
    pub in_calls: u64,
    /// Ready to run while the CPU ran another thread or an interrupt, or spinning for a lock.
    pub ready: u64,
    /// Asleep until I/Os end or a tag is free, and until the instance runs again.
    pub waiting: u64,
    /// Asleep by choice: think time, a rate limit, or the pace of a trace.
    pub pausing: u64,
    /// The part of `pausing` of instances that keep to a rate, or to the pace of a trace. An
    /// explanation needs it.
    #[serde(skip)]
    pub paced: u64,
}

impl From<&Spent> for JobTime {
    fn from(spent: &Spent) -> Self {
        Self {
            alive: spent.alive.as_ns(),
            thinking: spent.thinking.as_ns(),
            in_calls: spent.in_calls.as_ns(),
            ready: spent.ready().as_ns(),
            waiting: spent.waiting.as_ns(),
            pausing: spent.pausing.as_ns(),
            paced: spent.paced.as_ns(),
        }
    }
}

impl JobTime {
    /// Its parts with the names that tables use.
    #[must_use]
    pub const fn parts(&self) -> [(&'static str, u64); 5] {
        [
            ("thinking", self.thinking),
            ("in calls", self.in_calls),
            ("waiting for a CPU", self.ready),
            ("waiting for I/O", self.waiting),
            ("pausing", self.pausing),
        ]
    }

    /// The share of the whole time that `part_ns` is, in percent.
    #[expect(clippy::float_arithmetic, reason = "for the eye only: nothing is ordered by it")]
    #[must_use]
    pub fn percent(&self, part_ns: u64) -> f64 {
        ratio(100.0 * approximate(part_ns), approximate(self.alive))
    }
}
