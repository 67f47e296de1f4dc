//! The whole way from a question to its answer: the runs, the goals, and the runs with other seeds
//! and other readings.

use super::question::{Question, Wanted};
use crate::goal::GoalError;
use crate::sweep::{Sweep, Swept};
use crate::{Answer, Outcome, whatif_each, whatif_in_turn};
use blockyard_devices::profile::{Device, Override};
use blockyard_sim::simulate::{Report, Simulation, SimulationError};
use core::fmt;

/// How often a question is asked again. `None` leaves the number to [`Wanted::of`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demands {
    /// Seeds, with that of the conditions.
    pub seeds: Option<u32>,
    /// Readings of the device.
    pub readings: Option<u32>,
}

/// An observer of the runs that an answer takes, on any number of threads. It shows how far they
/// are, and may end them early.
pub trait Watch: Sync {
    /// A failure of the observer's own.
    type Error;

    /// Returns `count` readings of the question's device, in which `values` replace those of its
    /// profile: those that a sweep gives to the device of one run.
    ///
    /// # Errors
    ///
    /// The file of the device can no longer be read, or figures within their ranges contradict each
    /// other.
    fn readings(&self, values: &[Override], count: u32) -> Result<Vec<Device>, Self::Error>;

    /// Runs the jobs of `question` under the design `at`, on its device.
    ///
    /// # Errors
    ///
    /// That of the simulation.
    fn simulate(&self, question: &Question<'_>, at: usize) -> Result<Report, SimulationError> {
        let Question { jobs, designs, conditions, .. } = *question;
        Simulation::under(jobs, question.device_of(at), &designs[at], *conditions)?.finish()
    }

    /// Whether the designs run one after the other, for a recorder of their events, instead of side
    /// by side.
    fn runs_in_turn(&self) -> bool {
        false
    }

    /// Receives the answer of the first runs, before any goal is judged.
    ///
    /// # Errors
    ///
    /// What the observer has kept of these runs cannot be stored. The question has no answer then.
    fn on_first_runs(&self, answer: &Answer) -> Result<(), Self::Error> {
        let _ = answer;
        Ok(())
    }

    /// Announces that `runs` more runs follow, with other seeds and readings.
    fn on_repetition(&self, runs: usize) {
        let _ = runs;
    }

    /// Reports that one of these runs has ended.
    fn on_repeated_run(&self) {}

    /// Whether the user has ended the runs. Then the answer rests on the first runs alone.
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// The reason why a question has no answer.
#[derive(Clone, Debug)]
pub enum NoAnswer<E> {
    /// A run failed, or no design suits the device.
    Simulation(SimulationError),
    /// A goal does not suit the jobs: its text, and why.
    Goal(String, GoalError),
    /// The observer failed: the device cannot be read again, or a record of the runs not be stored.
    Watch(E),
}

impl<E> From<SimulationError> for NoAnswer<E> {
    fn from(error: SimulationError) -> Self {
        Self::Simulation(error)
    }
}

impl<E: fmt::Display> fmt::Display for NoAnswer<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Simulation(error) => error.fmt(f),
            Self::Goal(text, error) => write!(f, "{text}: {error}"),
            Self::Watch(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for NoAnswer<E> {}

impl Question<'_> {
    /// Answers the question: runs the designs, judges the goals, and runs the designs again as
    /// `demands` say. `watch` observes.
    ///
    /// # Errors
    ///
    /// [`NoAnswer`].
    ///
    /// # Panics
    ///
    /// If there is no design.
    pub fn answer<W: Watch>(
        &self,
        demands: Demands,
        watch: &W,
    ) -> Result<Answer, NoAnswer<W::Error>> {
        let answer = self.repeated(demands, watch)?;
        let sweep = answer.sweep.clone();
        let sweep = sweep.map(|of| of.with_winner(&answer, self.designs, |at| self.device_of(at)));
        Ok(Answer { sweep, ..answer })
    }

    /// Answers the question, but does not name the winner of a sweep.
    fn repeated<W: Watch>(
        &self,
        demands: Demands,
        watch: &W,
    ) -> Result<Answer, NoAnswer<W::Error>> {
        let answer = if watch.runs_in_turn() {
            whatif_in_turn(self, |at| watch.simulate(self, at))
        } else {
            whatif_each(self, |at| watch.simulate(self, at))
        }?;
        watch.on_first_runs(&answer).map_err(NoAnswer::Watch)?;
        let mut answer = self.with_goals(answer)?;
        if !answer.verdict.unranked {
            answer.sweep = self.sweep.map(|of| Swept::of(of, self.designs, self.goals, &answer));
        }
        let wanted = Wanted::of(demands.seeds, demands.readings, &answer);
        let runs = wanted.runs(&answer);
        if runs == 0 || watch.is_interrupted() {
            return Ok(answer);
        }
        let devices = match wanted.readings {
            0 => Vec::new(),
            count => self.readings(count, watch).map_err(NoAnswer::Watch)?,
        };
        watch.on_repetition(runs);
        let surer =
            self.ask_again(answer.clone(), wanted.seeds, &devices, || watch.on_repeated_run())?;
        // The verdict of `surer` would rest on runs that were cut short.
        Ok(if watch.is_interrupted() { answer } else { surer })
    }

    /// Returns readings of the device, or of that of each design where a value of it is swept.
    fn readings<W: Watch>(&self, count: u32, watch: &W) -> Result<Vec<Vec<Device>>, W::Error> {
        let values = self.sweep.map_or_else(Vec::new, Sweep::device_values);
        if values.is_empty() {
            return Ok(vec![watch.readings(&[], count)?]);
        }
        values.iter().map(|values| watch.readings(values, count)).collect()
    }

    /// Adds what each design reaches of each goal. A part of a run tells nothing about goals.
    fn with_goals<E>(&self, mut answer: Answer) -> Result<Answer, NoAnswer<E>> {
        if !self.goals.is_empty() && answer.designs.iter().any(Outcome::is_partial) {
            answer.verdict.sentences.push("No goal is judged by a part of a run.".to_owned());
            return Ok(answer);
        }
        for goal in self.goals {
            let judged = goal.judge(&answer.designs);
            let result = judged.map_err(|error| NoAnswer::Goal(goal.text.clone(), error))?;
            answer.goals.push(result);
        }
        Ok(answer)
    }
}
