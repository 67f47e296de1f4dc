//! Verdicts on jobs that ended before their `ramp_time` was over.

use super::{Verdict, listed};
use crate::answer::outcome::Outcome;

impl Verdict {
    /// Returns the verdict without a ranking if no job ran longer than its ramp time. If only some did not, the first sentence names
    /// them.
    pub(super) fn unless_in_ramp(mut self, outcomes: &[Outcome]) -> Self {
        let jobs = || outcomes.iter().flat_map(|outcome| &outcome.jobs);
        let mut names: Vec<&str> = Vec::new();
        for job in jobs().filter(|job| job.ended_in_ramp) {
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
        if jobs().all(|job| job.ended_in_ramp) {
            self.sentences.clear();
            self.undecided.clear();
            let cells = self.rows.iter_mut().flat_map(|row| &mut row.designs);
            cells.for_each(|cell| cell.differs = false);
            if outcomes.len() > 1 {
                self.sentences.push("The designs are not ranked.".to_owned());
            }
        }
        self.sentences.insert(0, of_whole_jobs);
        self
    }
}
