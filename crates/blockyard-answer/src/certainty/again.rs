//! Asks a question again, with other seeds and other readings of the device.

use super::question::Question;
use super::{readings, seeds};
use crate::{Answer, Verdict};
use blockyard_devices::profile::{Design, Device};
use blockyard_sim::simulate::SimulationError;

impl Question<'_> {
    /// Runs the designs again, with `seeds` seeds and on `devices`, which are readings of the
    /// device, and adds the results to `answer`, whose verdict they judge. Fewer than two seeds,
    /// and no devices, add nothing. `ended` is called after each run.
    ///
    /// # Errors
    ///
    /// The first [`SimulationError`], in the order of seeds, readings and designs.
    pub(super) fn ask_again(
        self,
        answer: Answer,
        seeds: u32,
        devices: &[Device],
        ended: impl Fn() + Sync,
    ) -> Result<Answer, SimulationError> {
        let is_suited = |of: &&Design| answer.unsuited.iter().all(|other| other.design != of.name);
        let designs: Vec<_> = self.designs.iter().filter(is_suited).cloned().collect();
        debug_assert_eq!(designs.len(), answer.designs.len(), "an outcome for each design");
        let suited = Question { designs: &designs, ..self };
        // Without readings nothing is said of what they would test.
        let others = if devices.is_empty() { 0..0 } else { 1..designs.len() };
        let untested: Vec<_> =
            others.filter(|at| !suited.untested(&answer, [0, *at]).is_empty()).collect();
        let mut answer = answer;
        if seeds > 1 {
            answer = seeds::with_seeds(suited, answer, seeds, &untested, &ended)?;
        } else if !untested.is_empty() {
            answer.verdict =
                Verdict::over_seeds(answer.verdict.rows, &[], &untested, &answer.designs);
        }
        if !devices.is_empty() {
            let readings = readings::readings(suited, &answer, devices, &ended)?;
            answer.verdict.sentences.extend(readings.sentence());
            answer.readings = Some(readings);
        }
        Ok(answer)
    }
}
