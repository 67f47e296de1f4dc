//! Answers as values: [`whatif()`] runs a job under several designs and returns an [`Answer`].
//!
//! An answer holds the figures of each run as a whole and of each job in each direction, histograms,
//! series over time, and an [`Explanation`] of the difference between the designs. Everything is
//! [`Serialize`], and with the feature `schema` has a JSON schema. Tables and sentences are renderings
//! of these values; [`number`] formats the numbers in both.

pub mod certainty;
mod explanation;
mod figures;
mod host;
mod job_figures;
mod job_time;
mod latency;
mod life;
pub mod number;
mod outcome;
mod pmem;
mod verified;

pub use explanation::{
    Bottleneck, CpuUse, Evidence, Explanation, Factor, IdlePart, IdleTime, LongestStage, Pair,
    PartTime, TransferPeriod,
};
pub use figures::Figures;
pub use host::{
    CommandCounts, CommandNumber, HostFigures, Overlapped, TransferCounts, TransferTimes, Woken,
};
pub use job_figures::{DirectionFigures, JobFigures};
pub use job_time::JobTime;
pub use latency::{Buckets, Latency};
pub use life::{Held, Holds, Life, LifeStage};
pub use outcome::Outcome;
pub use pmem::{PmemFigures, PmemParts};
pub use verified::{PowerCut, Verified};

use certainty::{Readings, Rests, Seeds};
use serde::Serialize;

use crate::job::JobFile;
use crate::parallel::each;
use crate::profile::{Design, Device};
use crate::simulate::{Conditions, Report, Simulation, SimulationError};

/// What several designs make of a job on a device.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// The job: its file, or the names of its sections.
    pub job: String,
    /// The name of the device.
    pub device: String,
    /// What the device's figures rest on.
    pub rests: Rests,
    /// The seed of all random draws.
    pub seed: u64,
    /// What each design made of the job, in the order asked for.
    pub designs: Vec<Outcome>,
    /// Where the difference comes from.
    pub explanation: Explanation,
    /// The explanation in sentences.
    pub why: String,
    /// What runs with other seeds say, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seeds: Option<Seeds>,
    /// What other readings of the device say, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readings: Option<Readings>,
}

/// The JSON schema of an [`Answer`].
#[cfg(feature = "schema")]
#[must_use]
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(Answer)
}

/// Runs `jobs` on `device` under each of `designs`, subject to `conditions`, on all processors.
///
/// # Errors
///
/// The first [`SimulationError`].
///
/// # Panics
///
/// If there is no design.
pub fn whatif(
    jobs: &JobFile,
    device: &Device,
    designs: &[Design],
    conditions: &Conditions<'_>,
) -> Result<Answer, SimulationError> {
    let reports =
        each(designs, |design| Simulation::under(jobs, device, design, *conditions)?.finish());
    let mut reports = reports.into_iter();
    whatif_by(jobs, device, designs, conditions, |_| {
        reports.next().expect("each design should have a report")
    })
}

/// Like [`whatif()`], but lets `run` do the runs: to observe them, or to show how far they are. `run`
/// has to simulate the job on the device under the design that it is given, and the conditions.
///
/// # Errors
///
/// The first error of `run`.
///
/// # Panics
///
/// If there is no design.
pub fn whatif_by<E>(
    jobs: &JobFile,
    device: &Device,
    designs: &[Design],
    conditions: &Conditions<'_>,
    mut run: impl FnMut(&Design) -> Result<Report, E>,
) -> Result<Answer, E> {
    assert!(!designs.is_empty(), "an answer needs a design");
    let mut outcomes: Vec<Outcome> = Vec::new();
    for design in designs {
        let report = run(design)?;
        let first_iops = outcomes.first().map(|first| first.figures.iops);
        outcomes.push(Outcome::of(&design.name, jobs, &report, conditions, first_iops));
    }
    let explanation = Explanation::of(device, &outcomes);
    let names: Vec<_> = jobs.jobs.iter().map(|job| job.name.as_str()).collect();
    Ok(Answer {
        job: names.join(","),
        device: device.name.clone(),
        rests: Rests::of(device),
        seed: conditions.seed,
        designs: outcomes,
        why: explanation.to_string(),
        explanation,
        seeds: None,
        readings: None,
    })
}
