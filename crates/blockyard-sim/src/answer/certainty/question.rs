//! What an answer was made from, to ask it again.

use crate::answer::goal::Goal;
use crate::answer::{Answer, JobFigures, Stream};
use crate::job::JobFile;
use crate::profile::{Design, Device};
use crate::simulate::{Conditions, Simulation, SimulationError};
use serde::Serialize;

/// What an answer was made from.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The jobs.
    pub jobs: &'a JobFile,
    /// The device, as its profile states it.
    pub device: &'a Device,
    /// The designs that were asked for.
    pub designs: &'a [Design],
    /// The conditions of the run that was answered.
    pub conditions: &'a Conditions<'a>,
    /// The goals. The answer has a result for each.
    pub goals: &'a [Goal],
}

/// How often a question is asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The number of seeds, with that of the answer; fewer than two tell nothing.
    pub seeds: u32,
    /// The number of readings of the device.
    pub readings: u32,
}

/// In how many runs a design meets all goals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GoalsMet {
    /// The design.
    pub design: String,
    /// The number of runs.
    pub met: u32,
}

/// What a run says: the IOPS of each [`Stream`], and whether it meets all goals.
pub(super) struct Run {
    pub(super) iops: Vec<f64>,
    pub(super) meets: bool,
}

impl Wanted {
    /// Fills in defaults. Without a number of readings there are 8 if the answer has several designs, a figure that may
    /// vary, and at most 200,000 I/Os; otherwise none.
    #[must_use]
    pub fn of(seeds: Option<u32>, readings: Option<u32>, answer: &Answer) -> Self {
        const FEW: u32 = 8;
        const IOS_MAX: u64 = 200_000;
        let ios: u64 = answer.designs.iter().map(|of| of.figures.ios).sum();
        let tells = answer.designs.len() > 1 && answer.rests.varied > 0;
        let usual = if tells && ios <= IOS_MAX { FEW } else { 0 };
        Self { seeds: seeds.unwrap_or_default(), readings: readings.unwrap_or(usual) }
    }

    /// Returns the number of runs that this takes for `answer`.
    #[must_use]
    pub fn runs(self, answer: &Answer) -> usize {
        (self.seeds.saturating_sub(1) as usize + self.readings as usize) * answer.designs.len()
    }
}

impl Question<'_> {
    /// Runs the jobs on `device` under `design`, with this seed.
    pub(super) fn run(
        &self,
        device: &Device,
        design: &Design,
        seed: u64,
    ) -> Result<Run, SimulationError> {
        let conditions = Conditions { seed, ..*self.conditions };
        let report = Simulation::under(self.jobs, device, design, conditions)?.finish()?;
        let figures: Vec<_> = report.jobs.iter().map(JobFigures::of).collect();
        let streams = Stream::all(&figures);
        let meets = self.goals.iter().all(|goal| goal.is_met(&streams));
        Ok(Run { iops: streams.into_iter().map(|stream| stream.figures.iops).collect(), meets })
    }

    /// Counts the runs that meet all goals under each design; empty without goals. `runs` has a run of each design for each
    /// seed or reading.
    pub(super) fn goals_met(&self, runs: &[&[Run]]) -> Vec<GoalsMet> {
        if self.goals.is_empty() {
            return Vec::new();
        }
        let count = |at: usize| runs.iter().filter(|of| of[at].meets).count();
        let of_design = |(at, design): (usize, &Design)| GoalsMet {
            design: design.name.clone(),
            met: u32::try_from(count(at)).expect("a count of runs"),
        };
        self.designs.iter().enumerate().map(of_design).collect()
    }
}
