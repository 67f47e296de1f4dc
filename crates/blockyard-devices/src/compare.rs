//! Runs that are compared: totals and loads for the figures of a family, and pairs of figures.

#![expect(clippy::float_arithmetic, reason = "for reading only: nothing is ordered by the result")]

use blockyard::time::Duration;
use blockyard_text::number::nanoseconds;
use core::fmt;
use serde::Serialize;

/// Rates and times within this factor of each other are called equal.
pub const EQUAL: f64 = 1.02;
/// Times that differ by less than this factor are not worth naming.
pub(crate) const MUCH_SLOWER: f64 = 1.25;
/// The utilisation from which a resource is called used up, in percent.
pub const USED_UP: f64 = 95.0;

/// Totals of a run, for the figures of a family.
#[derive(Clone, Copy, Debug)]
pub struct RunTotals {
    /// The time of the run.
    pub span: Duration,
    /// I/Os that ended.
    pub ios: u64,
    /// The time for which the device was busy.
    pub device_busy: Duration,
    /// CPU time.
    pub cpu: Duration,
    /// Interrupts.
    pub interrupts: u64,
    /// Threads that were woken.
    pub wakeups: u64,
    /// Interrupts that processors sent to others to wake threads there.
    pub interprocessor_interrupts: u64,
    /// Context switches.
    pub context_switches: u64,
}

/// The load of a run on the device, to judge what limits it.
#[derive(Clone, Copy, Debug)]
pub struct RunLoad {
    /// Commands that the device completed.
    pub commands: u64,
    /// Bytes of I/Os.
    pub bytes: u64,
    /// Bytes that were read.
    pub read_bytes: u64,
    /// Bytes that were written.
    pub written_bytes: u64,
    /// Bytes per second.
    pub bytes_per_s: u64,
    /// The share of the time for which the device was busy.
    pub device_busy_percent: f64,
    /// The share of their time for which jobs pause or think.
    pub pausing_percent: f64,
}

/// The busiest of several disks: of all parts of all disks, one of its parts is in use for the
/// largest share of the time. Of equals, it is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BusiestDisk {
    /// Its number, from 1, in the order in which the jobs name their files.
    pub number: u16,
    /// The number of disks.
    pub disks: u16,
}

impl fmt::Display for BusiestDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "disk {} of {}", self.number, self.disks)
    }
}

/// A figure under the two designs that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pair {
    /// Under the design with fewer IOPS.
    pub low: f64,
    /// Under the one with more.
    pub high: f64,
}

impl Pair {
    /// The figure that `of` reads from the counters of both designs.
    pub(crate) fn of<T>(low: &T, high: &T, of: fn(&T) -> f64) -> Self {
        Self { low: of(low), high: of(high) }
    }

    /// How far apart both are, as a factor of at least 1. Of two factors, the one with the larger
    /// distance carries the larger part of the logarithm of their product.
    #[must_use]
    pub fn distance(&self) -> f64 {
        let factor = self.low / self.high;
        factor.max(1.0 / factor)
    }

    /// `low` of `what` instead of `high`, or just one of them where they look the same.
    #[must_use]
    pub fn instead(&self, write: fn(f64) -> String, what: &str) -> String {
        let low = write(self.low);
        let high = write(self.high);
        if low == high { low + what } else { format!("{low}{what} instead of {high}") }
    }

    /// A time instead of another.
    #[must_use]
    pub fn instead_ns(&self) -> String {
        self.instead(nanoseconds, "")
    }
}

/// `parts` in one sentence: a, b and c.
pub fn listed(parts: impl IntoIterator<Item = String>) -> String {
    let mut parts: Vec<_> = parts.into_iter().collect();
    let last = parts.pop().unwrap_or_default();
    if parts.is_empty() { last } else { format!("{} and {last}", parts.join(", ")) }
}
