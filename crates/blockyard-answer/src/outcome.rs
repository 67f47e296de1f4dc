//! The outcome of a job under one design.

use serde::{Deserialize, Serialize};

use super::bfq::BfqFigures;
use super::figures::Figures;
use super::job_figures::JobFigures;
use super::latency::Latency;
use super::verified::Verified;
use blockyard_devices::stack::FaultCount;
use blockyard_fio::job::JobFile;
use blockyard_sim::measure::series::Series;
use blockyard_sim::replay::Pace;
use blockyard_sim::simulate::{Conditions, Report, Stopped};
use blockyard_text::number::time;

/// What one design made of the job.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outcome {
    /// The name of the design.
    pub name: String,
    /// IOPS relative to those of the first design; null if these are 0, or if one of several runs
    /// was interrupted.
    pub ratio: f64,
    /// The figures of the whole run.
    #[serde(flatten)]
    pub figures: Figures,
    /// The figures of each job's instance, or of each group that reports as one.
    pub jobs: Vec<JobFigures>,
    /// Why the run was stopped before its jobs ended, and when in virtual time, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stop>,
    /// What BFQ did, if it is the scheduler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bfq: Option<BfqFigures>,
    /// Whether jobs are in control groups, and the scheduler does not share the device among
    /// groups.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub ignores_groups: bool,
    /// Rates and depths over time.
    pub series: Series,
    /// For a replay: from when the latency of an I/O counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_from: Option<LatencyFrom>,
    /// For a replay: how much later than recorded the I/Os were issued. Latencies contain it if
    /// they count from the recorded instants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_ns: Option<Latency>,
    /// How often each fault rule matched a request and fired, if there are fault rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faults: Option<Vec<FaultCount>>,
    /// What was found on the media, if the run was verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verified>,
}

/// From when the latency of an I/O of a trace counts, until its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LatencyFrom {
    /// From the instant at which the trace issued it, at the replay's speed: an open loop.
    RecordedInstant,
    /// From when all had happened that it waits for, and its pause had passed: think time.
    EndOfPause,
    /// From its issue: a closed loop has no instants.
    Issue,
}

impl From<Pace> for LatencyFrom {
    fn from(pace: Pace) -> Self {
        match pace {
            Pace::Open => Self::RecordedInstant,
            Pace::Think => Self::EndOfPause,
            Pace::Closed(_) => Self::Issue,
        }
    }
}

/// How a run was stopped before its jobs ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stop {
    /// Why.
    pub why: Stopped,
    /// The measured part of the run, in nanoseconds of virtual time.
    pub(crate) span_ns: u64,
}

impl Stop {
    /// Whether the run ended before its jobs did or their rates were known.
    #[must_use]
    pub(crate) fn is_partial(self) -> bool {
        self.why == Stopped::Interrupted
    }

    /// Says of the design `name` that it was stopped, when and why.
    #[must_use]
    pub fn words(&self, name: &str) -> String {
        let after = time(self.span_ns);
        match self.why {
            Stopped::Steady => format!(
                "{name}: stopped after {after} of virtual time: each job's rate is known within 1 %, \
                 and its p99 within 10 %"
            ),
            Stopped::Interrupted => {
                format!(
                    "{name}: interrupted after {after} of virtual time: its figures are partial"
                )
            }
        }
    }
}

impl Outcome {
    /// Whether the run was interrupted, so that its figures are those of a part of it.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.stopped.is_some_and(Stop::is_partial)
    }

    /// Says how late the I/Os of a trace were, if latencies count from the recorded instants.
    #[must_use]
    pub fn lateness(&self) -> Option<String> {
        let counts = self.latency_from == Some(LatencyFrom::RecordedInstant);
        let late_ns = self.late_ns.as_ref().filter(|late_ns| counts && late_ns.count > 0)?;
        Some(format!(
            "{}: I/Os were issued {} (median), {} (p99) and {} (max) later than recorded",
            self.name,
            time(late_ns.p50),
            time(late_ns.p99),
            time(late_ns.max)
        ))
    }

    /// Says that the control groups of jobs have no effect, if that is so.
    #[must_use]
    pub fn without_groups(&self) -> Option<String> {
        self.ignores_groups.then(|| {
            let name = &self.name;
            format!(
                "{name}: control groups and their weights have no effect, as its scheduler does not \
                 share the device among groups"
            )
        })
    }

    /// The outcome of `report`, the run of `jobs` under the design `name` and `conditions`;
    /// `first_iops` are those of the first design, or `None` if this is the first.
    #[expect(clippy::float_arithmetic, reason = "the ratio is for reading, and orders nothing")]
    #[must_use]
    pub fn of(
        name: &str,
        jobs: &JobFile,
        report: &Report,
        conditions: &Conditions<'_>,
        first_iops: Option<f64>,
    ) -> Self {
        let instances = jobs.jobs.iter().map(|job| job.numjobs).sum();
        let figures = Figures::of(report, instances);
        let first_iops = first_iops.unwrap_or(figures.iops);
        Self {
            name: name.to_owned(),
            ratio: if first_iops > 0.0 { figures.iops / first_iops } else { f64::NAN },
            figures,
            jobs: report.jobs.iter().map(JobFigures::of).collect(),
            stopped: report.stopped.map(|why| Stop { why, span_ns: report.span.as_ns() }),
            bfq: BfqFigures::of(report, &jobs.jobs),
            ignores_groups: report.ignores_groups,
            series: report.series.clone(),
            latency_from: conditions.replay.map(|replay| replay.options().pace.into()),
            late_ns: report.late_ns.as_ref().map(Latency::from),
            faults: conditions.faults.map(|_| report.faults.clone()),
            verified: report.verified.as_ref().map(Verified::from),
        }
    }
}
