//! Verdicts on jobs that ended before their `ramp_time` was over.

use super::{Verdict, listed};
use crate::job_figures::JobFigures;

impl Verdict {
    /// Returns the verdict without a ranking if no job ran longer than its ramp time. If only some
    /// did not, the first sentence names them.
    pub(crate) fn unless_in_ramp(mut self, runs: &[&[JobFigures]]) -> Self {
        let mut names: Vec<&str> = Vec::new();
        let jobs = runs.iter().copied().flatten();
        for job in jobs.clone().filter(|job| job.ended_in_ramp) {
            if !names.contains(&job.name.as_str()) {
                names.push(&job.name);
            }
        }
        if names.is_empty() {
            return self;
        }
        let of_whole_jobs = format!(
            "{} ended before the ramp time was over: the figures are those of the whole job, warm-up included.",
            listed(&names)
        );
        if jobs.clone().all(|job| job.ended_in_ramp) {
            self = match runs.len() {
                1 => Self { sentences: Vec::new(), ..self },
                _ => self.not_ranked("The designs are not ranked.".to_owned()),
            };
        }
        self.sentences.insert(0, of_whole_jobs);
        self
    }
}
