//! One question: `whatif`.

use blockyard_answer::Answer;
use blockyard_answer::certainty;
use blockyard_answer::certainty::{Demands, Watch};
use blockyard_answer::sweep::{Axis, Sweep};
use blockyard_devices::data::verify::Verify;
use blockyard_devices::profile::{Device, FaultRules, FileSystem, Override};
use blockyard_fio::job::JobFile;
use blockyard_sim::simulate::{Conditions, Stop};

use crate::refusal::Refusal;
use crate::rows;
use crate::sources::{JobText, Value, job, overrides};

/// The arguments of `whatif`.
pub(crate) struct Question {
    pub(crate) job: JobText,
    pub(crate) device: String,
    pub(crate) designs: Vec<String>,
    pub(crate) seed: u64,
    pub(crate) seeds: Option<u32>,
    pub(crate) readings: Option<u32>,
    pub(crate) set: Vec<Value>,
    /// Keys, and the values of each with which the designs run; none: no sweep.
    pub(crate) sweep: Vec<(String, Vec<String>)>,
    pub(crate) disks: Option<u16>,
    pub(crate) faults: Option<String>,
    /// The file system of the job's files; `None`: raw disks.
    pub(crate) filesystem: Option<String>,
    pub(crate) verify: bool,
}

impl Question {
    /// Returns the answer as JSON, its rows as JSON, and the notes about the job.
    pub(crate) fn answer(&self, stop: &Stop) -> Result<(String, String, Vec<String>), Refusal> {
        let (of_designs, set): (Vec<_>, Vec<_>) =
            overrides(&self.set).into_iter().partition(Override::is_of_design);
        let reader = Reader { question: self, set: &set };
        let device = reader.device(&[])?;
        let axes = self.sweep.iter().map(|(key, values)| Axis::new(key, values.clone()));
        let axes = axes.collect::<Result<Vec<_>, _>>()?;
        let sweep = Sweep::new(&axes, &self.designs)?;
        let designs = sweep.designs(&of_designs)?;
        let values = sweep.device_values();
        let devices = values.iter().map(|values| reader.device(values));
        let devices = devices.collect::<Result<Vec<_>, _>>()?;
        let faults = self.faults.as_deref().map(FaultRules::read).transpose()?;
        let file_system = self.filesystem.as_deref().map(FileSystem::lookup).transpose()?;
        let verify = self.verify.then(Verify::default);
        let jobs = job(&self.job)?;
        let conditions = Conditions {
            file_system: file_system.as_ref(),
            faults: faults.as_ref(),
            verify: verify.as_ref(),
            stop: Some(stop),
            ..Conditions::new(self.seed)
        };
        let question = certainty::Question {
            jobs: &jobs,
            device: &device,
            devices: &devices,
            designs: &designs,
            conditions: &conditions,
            goals: &[],
            sweep: (!axes.is_empty()).then_some(&sweep),
        };
        let demands = Demands { seeds: self.seeds, readings: self.readings };
        let answer = question.answer(demands, &reader)?;
        let answer = Answer { job: self.job.0.clone(), ..answer };
        let rows: Vec<_> = answer.designs.iter().flat_map(rows::of_design).collect();
        Ok((rows::json(&answer), rows::json(&rows), self.notes(&jobs)))
    }

    /// Returns the notes about the job. Those of raw disks do not concern files on a file system.
    fn notes(&self, jobs: &JobFile) -> Vec<String> {
        let has_files = self.filesystem.is_some();
        let told = jobs.notes.iter().filter(|note| !has_files || !note.is_of_raw_disks());
        told.map(ToString::to_string).collect()
    }

    fn with_disks(&self, device: Device) -> Result<Device, Refusal> {
        let Some(disks) = self.disks else { return Ok(device) };
        let name = device.name.clone();
        device.with_disks(disks).ok_or_else(|| Refusal::one_disk(&name))
    }
}

/// Reads the device of a question again.
struct Reader<'a> {
    question: &'a Question,
    set: &'a [Override],
}

impl Reader<'_> {
    /// Returns the device, in which `values` replace those of its profile, too.
    fn device(&self, values: &[Override]) -> Result<Device, Refusal> {
        let device = Device::lookup_with(&self.question.device, &self.with(values))?;
        self.question.with_disks(device)
    }

    fn with(&self, values: &[Override]) -> Vec<Override> {
        self.set.iter().chain(values).cloned().collect()
    }
}

impl Watch for Reader<'_> {
    type Error = Refusal;

    fn readings(&self, values: &[Override], count: u32) -> Result<Vec<Device>, Refusal> {
        let Question { device, seed, .. } = self.question;
        let devices = Device::readings(device, &self.with(values), *seed, count)?;
        devices.into_iter().map(|device| self.question.with_disks(device)).collect()
    }
}
