//! The question of an answer, to ask it again.

use crate::goal::{Goal, GoalsMet};
use crate::sweep::Sweep;
use crate::{Answer, JobFigures, Row, Stream, Verdict, verdict};
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::JobFile;
use blockyard_sim::simulate::{Conditions, Simulation, SimulationError, Stop};

/// What an answer was made from.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The jobs.
    pub jobs: &'a JobFile,
    /// The device, as its profile states it.
    pub device: &'a Device,
    /// The device of each design, where a value of the device is swept; else empty.
    pub devices: &'a [Device],
    /// The designs that were asked for.
    pub designs: &'a [Design],
    /// The conditions of the run that was answered.
    pub conditions: &'a Conditions<'a>,
    /// The goals. The answer has a result for each.
    pub goals: &'a [Goal],
    /// The sweep that the designs are runs of, if they are.
    pub sweep: Option<&'a Sweep>,
}

/// How often a question is asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The number of seeds, with that of the answer; fewer than two tell nothing.
    pub seeds: u32,
    /// The number of readings of the device.
    pub readings: u32,
}

/// A run: what each [`Stream`] did, and whether it meets all goals.
pub(super) struct Run {
    streams: Vec<Stream>,
    meets: bool,
}

impl Wanted {
    /// Fills in defaults. Designs that are not ranked are not asked again. Without a number of
    /// seeds there are 8, and without a number of readings 8 if a figure of the device may vary,
    /// for an answer with several designs whose runs have at most 200,000 I/Os together; otherwise
    /// none. So the runs that nobody asked for have at most 3 million I/Os, and equal questions get
    /// equal answers on every machine.
    #[must_use]
    pub fn of(seeds: Option<u32>, readings: Option<u32>, answer: &Answer) -> Self {
        const FEW: u32 = 8;
        const IOS_MAX: u64 = 200_000;
        let ios: u64 = answer.designs.iter().map(|of| of.figures.ios).sum();
        let is_cheap = answer.designs.len() > 1 && ios <= IOS_MAX;
        if answer.verdict.unranked {
            return Self { seeds: 0, readings: 0 };
        }
        let usual = if is_cheap { FEW } else { 0 };
        let usual_readings = if answer.rests.varied > 0 { usual } else { 0 };
        Self { seeds: seeds.unwrap_or(usual), readings: readings.unwrap_or(usual_readings) }
    }

    /// Returns the number of runs that this takes for `answer`.
    #[must_use]
    pub fn runs(self, answer: &Answer) -> usize {
        (self.seeds.saturating_sub(1) as usize + self.readings as usize) * answer.designs.len()
    }
}

impl<'a> Question<'a> {
    /// Returns the device of the design `at`.
    #[must_use]
    pub fn device_of(&self, at: usize) -> &'a Device {
        debug_assert!(self.devices.is_empty() || self.devices.len() == self.designs.len());
        self.devices.get(at).unwrap_or(self.device)
    }
}

impl Run {
    /// The streams of the run.
    pub(super) fn streams(&self) -> &[Stream] {
        &self.streams
    }
}

impl Question<'_> {
    /// Runs the jobs on `device` under `design`, with this seed. Another seed than that of the
    /// answer draws other offsets too, even for jobs whose draws repeat: an interval has to hold
    /// for other offsets of the same distribution.
    pub(super) fn run(
        &self,
        device: &Device,
        design: &Design,
        seed: u64,
    ) -> Result<Run, SimulationError> {
        let conditions = Conditions { seed, ..*self.conditions };
        if conditions.stop.is_some_and(Stop::is_requested) {
            // The caller leaves out what the runs say.
            return Ok(Run { streams: Vec::new(), meets: false });
        }
        let fresh = (seed != self.conditions.seed).then(|| self.jobs.with_fresh_draws());
        let jobs = fresh.as_ref().unwrap_or(self.jobs);
        let report = Simulation::under(jobs, device, design, conditions)?.finish()?;
        let figures: Vec<_> = report.jobs.iter().map(JobFigures::of).collect();
        let streams = Stream::all(&figures);
        let meets = self.goals.iter().all(|goal| goal.is_met(&streams));
        Ok(Run { streams, meets })
    }

    /// Counts the runs that meet all goals under each design; empty without goals. `runs` has a run
    /// of each design for each seed or reading.
    pub(super) fn goals_met(&self, runs: &[&[Run]]) -> Vec<GoalsMet> {
        if self.goals.is_empty() {
            return Vec::new();
        }
        let of_design = |(at, design): (usize, &Design)| GoalsMet {
            design: design.name.clone(),
            met: u32::try_from(runs.iter().filter(|of| of[at].meets).count())
                .expect("a count of runs"),
        };
        self.designs.iter().enumerate().map(of_design).collect()
    }

    /// Returns the rows of `runs`, one run of each design, in the places of the rows of the answer.
    pub(super) fn rows(&self, runs: &[Run], stated: &[Row]) -> Vec<Row> {
        debug_assert_eq!(runs.len(), self.designs.len(), "a run of each design");
        let named = self.designs.iter().zip(runs);
        let named: Vec<_> =
            named.map(|(design, run)| (design.name.as_str(), run.streams.clone())).collect();
        verdict::aligned(stated, &Verdict::rows(&named))
    }
}
