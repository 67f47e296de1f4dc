//! The measurements of a task, and the instant at which they begin.

use super::Task;
use blockyard::time::{Duration, Instant};
use blockyard_fio::job::Job;
use blockyard_fio::measure::JobStats;
use blockyard_fio::measure::meter::Meter;
use blockyard_fio::measure::spent::Rest;
use blockyard_fio::measure::steady::SteadyWatch;

/// The measurement of a task.
#[derive(Debug)]
pub struct Measuring {
    /// The samples over time.
    pub(crate) meter: Meter,
    /// The current sleep.
    pub rest: Option<Rest>,
    /// The watch for a steady state, which the world takes over.
    pub steady: Option<SteadyWatch>,
    begun: Instant,
    /// Completions from this instant on are measured.
    from: Instant,
    /// What a job with a ramp time measures until then. It is reported if the job ends before.
    ramp: Option<Box<JobStats>>,
}

impl Measuring {
    pub(super) fn of(job: &Job) -> Self {
        Self {
            meter: Meter::new(&job.reporting),
            rest: None,
            steady: SteadyWatch::new(&job.targets.steady),
            begun: Instant::ZERO,
            from: Instant::ZERO,
            ramp: (job.ramp_time_ns > 0).then(|| Box::new(JobStats::new(job.pattern.mix.ops()))),
        }
    }

    /// Measures nothing until the instance begins.
    pub(crate) const fn hold(&mut self) {
        (self.begun, self.from) = (Instant::MAX, Instant::MAX);
    }

    /// Begins the instance at `now`. Measurement begins after `ramp`.
    pub(super) fn begin(&mut self, now: Instant, ramp: Duration) {
        self.begun = now;
        self.begin_anew(now + ramp);
    }

    /// Returns when the instance began.
    pub(super) const fn begun(&self) -> Instant {
        self.begun
    }

    /// Returns when measurement begins.
    pub(super) const fn from(&self) -> Instant {
        self.from
    }

    fn begin_anew(&mut self, from: Instant) {
        self.from = from;
        self.meter.begin(from);
    }
}

impl Task {
    /// Returns when the instance began.
    #[must_use]
    pub(crate) const fn begun(&self) -> Instant {
        self.measuring.begun
    }

    /// Returns what is measured until measurement begins, if there is a ramp time.
    pub(crate) fn ramp_mut(&mut self) -> Option<&mut JobStats> {
        self.measuring.ramp.as_deref_mut()
    }

    /// Returns when measurement begins.
    #[must_use]
    pub(crate) const fn measured_from(&self) -> Instant {
        self.measuring.from
    }

    /// Measures from `now` on.
    pub(crate) fn measure_anew(&mut self, now: Instant) {
        self.measuring.begin_anew(now);
    }
}
