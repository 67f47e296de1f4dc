//! The measurements of one instance that are not added up over a group: its samples.

use super::JobStats;
use super::sampler::{Sample, Sampler, Unit};
use crate::job::{Logging, Op, Reporting};
use blockyard::time::Instant;

/// A sample, by its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Bandwidth, KiB per second.
    Bandwidth(Sample),
    /// I/Os per second.
    Iops(Sample),
}

/// The samplers of one instance.
#[derive(Clone, Debug)]
pub struct Meter {
    bandwidth: Sampler,
    iops: Sampler,
}

impl Meter {
    /// Returns a meter with the sampling periods of the job.
    #[must_use]
    pub fn new(reporting: &Reporting) -> Self {
        let logging: &Logging = &reporting.logging;
        let bandwidth_ms = if reporting.disable_bw { 0 } else { logging.bandwidth_period_ms() };
        Self {
            bandwidth: Sampler::new(Unit::KibPerSecond, bandwidth_ms),
            iops: Sampler::new(Unit::PerSecond, logging.iops_period_ms()),
        }
    }

    /// Starts measuring at `from`.
    pub fn begin(&mut self, from: Instant) {
        self.bandwidth.begin(from);
        self.iops.begin(from);
    }

    /// Returns the next sample whose period has ended at `now`. Call this until it returns `None`
    /// before anything at `now` is added, and at the end.
    pub fn next(&mut self, now: Instant) -> Option<Rate> {
        let bandwidth = self.bandwidth.next(now).map(Rate::Bandwidth);
        bandwidth.or_else(|| self.iops.next(now).map(Rate::Iops))
    }

    /// Returns the instant of the first call of [`Self::next`] that may return a sample.
    #[must_use]
    pub fn next_at(&self) -> Instant {
        self.bandwidth.next_at().min(self.iops.next_at())
    }

    /// Counts `times` I/Os of `len_bytes` that have ended.
    pub fn add(&mut self, op: Op, len_bytes: u32, times: u64) {
        self.bandwidth.add(op, u64::from(len_bytes) * times);
        self.iops.add(op, times);
    }

    /// Adds the samples of the instance, which has ended, to `stats`.
    pub fn end(&self, stats: &mut JobStats) {
        for op in [Op::Read, Op::Write, Op::Trim] {
            if let Some(measured) = stats.op_mut(op) {
                measured.bandwidth.extend(self.bandwidth.of(op));
                measured.iops.extend(self.iops.of(op));
            }
        }
    }
}
