//! Asks a question again, with other seeds and other readings of the device.

use super::question::Question;
use super::{readings, seeds};
use crate::{Answer, Verdict};
use blockyard_devices::profile::Device;
use blockyard_sim::simulate::SimulationError;

impl Question<'_> {
    /// Runs the designs again, with `seeds` seeds and on `devices`, which are readings of the
    /// device, or of that of each design, and adds the results to `answer`, whose verdict they
    /// judge. Fewer than two seeds, and no devices, add nothing. `ended` is called after each run.
    ///
    /// # Errors
    ///
    /// The first [`SimulationError`], in the order of seeds, readings and designs.
    pub(super) fn ask_again(
        self,
        answer: Answer,
        seeds: u32,
        devices: &[Vec<Device>],
        ended: impl Fn() + Sync,
    ) -> Result<Answer, SimulationError> {
        let suited = (0..self.designs.len())
            .filter(|at| answer.unsuited.iter().all(|of| of.design != self.designs[*at].name));
        let suited: Vec<usize> = suited.collect();
        let designs: Vec<_> = suited.iter().map(|at| self.designs[*at].clone()).collect();
        debug_assert_eq!(designs.len(), answer.designs.len(), "an outcome for each design");
        let own = suited.iter().filter_map(|at| self.devices.get(*at)).cloned();
        let own: Vec<Device> = own.collect();
        let readings_of: Vec<_> = match devices {
            [all] => vec![all.as_slice(); designs.len()],
            _ => suited.iter().filter_map(|at| devices.get(*at)).map(Vec::as_slice).collect(),
        };
        let suited = Question { designs: &designs, devices: &own, ..self };
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
            let readings = readings::readings(suited, &answer, &readings_of, &ended)?;
            if let Some(words) = readings.contrary() {
                answer.verdict.qualify_fastest(&words);
            }
            answer.verdict.sentences.extend(readings.sentence());
            answer.readings = Some(readings);
        }
        Ok(answer)
    }
}
