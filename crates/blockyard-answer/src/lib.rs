//! Answers as values: [`whatif()`] runs a job under several designs and returns an [`Answer`].
//!
//! An answer holds the figures of each run as a whole and of each job in each direction,
//! histograms, series over time, and an [`Explanation`] of the difference between the designs.
//! Everything is [`Serialize`], and with the feature `schema` has a JSON schema. Tables and
//! sentences are renderings of these values; [`blockyard_text::number`] formats the numbers in
//! both.

mod bfq;
mod buffered;
pub mod certainty;
mod direction;
mod equality;
mod explanation;
mod figures;
mod file_system;
pub mod goal;
mod job_figures;
mod job_time;
mod latency;
mod life;
mod locks;
mod outcome;
pub mod parallel;
pub mod reproduce;
mod saved;
mod stream;
pub mod sweep;
mod verdict;
mod verified;

pub use bfq::{BfqFigures, GroupFigures};
pub use blockyard_devices::compare::{BusiestDisk, Pair};
pub use blockyard_devices::fronts::FrontPart;
pub use blockyard_devices::fronts::evidence::DriveLimit;
pub use blockyard_devices::fronts::figures::{DriveFigures, LoadFigures, PartsFigures};
pub use blockyard_devices::load::{MediumCause, MediumLimit, Parts, Work, WrittenFigures};
pub use blockyard_devices::mmc::evidence::{IdlePart, IdleTime, MmcLimit, TransferPeriod};
pub use blockyard_devices::mmc::figures::{
    CommandCounts, CommandNumber, HostFigures, Overlapped, TransferCounts, TransferTimes, Woken,
};
pub use blockyard_devices::pmem::evidence::{CpuParts, CpuTime, PartTime};
pub use blockyard_devices::pmem::figures::{PmemFigures, PmemParts};
pub use blockyard_devices::{FamilyEvidence, FamilyFigures, FamilyLimit};
pub use blockyard_sim::machine::lock::LockHolder;
pub use blockyard_sim::machine::locks::LockKind;
pub use buffered::{BufferedFigures, CallFigures};
pub use direction::Direction;
pub use explanation::{Bottleneck, CpuUse, Evidence, Explanation, Factor, JobReason, LongestStage};
pub use figures::Figures;
pub use file_system::FileSystemFigures;
pub use job_figures::{DirectionFigures, JobFigures};
pub use job_time::JobTime;
pub use latency::{Buckets, Latency};
pub use life::{Held, Holds, Life, LifeStage};
pub use locks::{HoldFigures, HolderFigures, LockFigures};
pub use outcome::{LatencyFrom, Outcome, Stop};
pub use saved::{Pair as SavedPair, Rest as SavedRest, Saved, SavedDesign};
pub use stream::Stream;
pub use verdict::{Cell, Row, Verdict};
pub use verified::{PowerCut, Verified};

use certainty::{Question, Readings, Rests, Seeds};
use goal::{GoalResult, Repeated};
use serde::Serialize;
use sweep::Swept;

use crate::parallel::each;
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::JobFile;
use blockyard_sim::simulate::{Conditions, Report, Simulation, SimulationError};

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
    /// The file system on each disk, if one is assumed; otherwise jobs use raw disks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_system: Option<FileSystemFigures>,
    /// The seed of all random draws.
    pub seed: u64,
    /// What the designs do to each job.
    pub verdict: Verdict,
    /// What each design reaches of each goal, if there are goals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goals: Vec<GoalResult>,
    /// What each design made of the job, in the order asked for.
    pub designs: Vec<Outcome>,
    /// The designs that cannot run on the device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsuited: Vec<Unsuited>,
    /// Where the difference comes from.
    pub explanation: Explanation,
    /// The explanation in sentences.
    pub why: String,
    /// The reason for the difference of each job whose rate differs, if there are several jobs or
    /// directions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<JobReason>,
    /// What was found of the values that were swept, if any were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sweep: Option<Swept>,
    /// What runs with other seeds say, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seeds: Option<Seeds>,
    /// What other readings of the device say, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readings: Option<Readings>,
}

impl Answer {
    /// Says which designs meet all goals with every seed and in every reading that was asked, and
    /// what the others miss.
    #[must_use]
    pub fn goal_sentences(&self) -> Vec<String> {
        let seeds = self.seeds.as_ref().map(|of| Repeated {
            count: of.count,
            runs: "seeds",
            met: &of.goals,
        });
        let readings = self.readings.as_ref().map(|of| Repeated {
            count: of.count,
            runs: "readings",
            met: &of.goals,
        });
        goal::sentences(&self.goals, &seeds.into_iter().chain(readings).collect::<Vec<_>>())
    }

    /// Whether a design meets all goals: in the run, with every seed, and in every reading of the
    /// device that was asked.
    #[must_use]
    pub fn has_met_goals(&self) -> bool {
        (0..self.designs.len()).any(|at| self.meets_goals(at))
    }

    /// Whether the design `at` meets all goals, in all of these.
    pub(crate) fn meets_goals(&self, at: usize) -> bool {
        let seeds = self.seeds.iter().map(|of| (of.count, &of.goals));
        let readings = self.readings.iter().map(|of| (of.count, &of.goals));
        let design = &self.designs[at].name;
        self.goals.iter().all(|goal| goal.designs[at].met)
            && seeds.chain(readings).all(|(count, goals)| {
                goals.iter().any(|of| of.design == *design && of.met == count)
            })
    }
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
/// The first [`SimulationError`] that does not concern a design alone; if no design can run on the
/// device, that of the first design.
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
    let question =
        Question { jobs, device, devices: &[], designs, conditions, goals: &[], sweep: None };
    whatif_each(&question, |at| {
        Simulation::under(jobs, device, &designs[at], *conditions)?.finish()
    })
}

/// Answers `question` like [`whatif()`], but lets `run` do the runs, to show how far they are.
/// `run` has to simulate the jobs under the design at the place that it is given.
///
/// # Errors
///
/// Those of [`whatif()`].
///
/// # Panics
///
/// If there is no design.
pub(crate) fn whatif_each(
    question: &Question<'_>,
    run: impl Fn(usize) -> Result<Report, SimulationError> + Sync,
) -> Result<Answer, SimulationError> {
    let places: Vec<_> = (0..question.designs.len()).collect();
    let reports = each(&places, |at| run(*at));
    answer(question, reports)
}

/// Like [`whatif_each()`], but makes one run after the other, for a `run` that observes them.
///
/// # Errors
///
/// Those of [`whatif()`].
///
/// # Panics
///
/// If there is no design.
pub(crate) fn whatif_in_turn(
    question: &Question<'_>,
    run: impl FnMut(usize) -> Result<Report, SimulationError>,
) -> Result<Answer, SimulationError> {
    let reports = (0..question.designs.len()).map(run).collect();
    answer(question, reports)
}

/// Returns the answer that `reports` give, one for each design of `question`.
fn answer(
    question: &Question<'_>,
    reports: Vec<Result<Report, SimulationError>>,
) -> Result<Answer, SimulationError> {
    let Question { jobs, device, designs, conditions, .. } = *question;
    assert!(!designs.is_empty(), "an answer needs a design");
    let mut outcomes: Vec<Outcome> = Vec::new();
    let mut devices = Vec::new();
    let mut unsuited = Vec::new();
    let mut first_error = None;
    for (at, (design, report)) in designs.iter().zip(reports).enumerate() {
        match report {
            Ok(report) => {
                let first_iops = outcomes.first().map(|first| first.figures.iops);
                devices.push(question.device_of(at));
                outcomes.push(Outcome::of(&design.name, jobs, &report, conditions, first_iops));
            }
            Err(error) => {
                let Some(why) = error.unsuited_design() else { return Err(error) };
                unsuited.push(Unsuited { design: design.name.clone(), why });
                first_error.get_or_insert(error);
            }
        }
    }
    if let Some(error) = first_error.filter(|_| outcomes.is_empty()) {
        return Err(error);
    }
    if outcomes.len() > 1 && outcomes.iter().any(Outcome::is_partial) {
        outcomes.iter_mut().for_each(|of| of.ratio = f64::NAN);
    }
    let explanation = Explanation::of_each(&devices, &outcomes);
    let names: Vec<_> = jobs.jobs.iter().map(|job| job.name.as_str()).collect();
    let verdict = Verdict::of(&outcomes);
    let is_unranked_by_ramp = verdict.unranked && !outcomes.iter().any(Outcome::is_partial);
    Ok(Answer {
        job: names.join(","),
        device: device.name.clone(),
        rests: Rests::of(device),
        file_system: conditions.file_system.map(FileSystemFigures::from),
        seed: conditions.seed,
        reasons: explanation::reasons(&outcomes, &verdict.rows),
        verdict,
        goals: Vec::new(),
        designs: outcomes,
        unsuited,
        // Jobs that ended in their ramp time are not ranked, and no difference is explained.
        why: if is_unranked_by_ramp { String::new() } else { explanation.to_string() },
        explanation,
        sweep: None,
        seeds: None,
        readings: None,
    })
}

/// A design that cannot run on the device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unsuited {
    /// Its name.
    pub design: String,
    /// What it lacks or needs.
    pub why: String,
}

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
