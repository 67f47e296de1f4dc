//! Failures as exceptions of the Python package. The messages are those of the command line.

use core::any::Any;
use core::panic::AssertUnwindSafe;
use std::io;
use std::panic::catch_unwind;
use std::sync::Arc;

use blockyard_answer::certainty::NoAnswer;
use blockyard_answer::sweep::SweepError;
use blockyard_devices::pairing::Unsuited;
use blockyard_devices::profile::ProfileError;
use blockyard_fio::job::{Fault, JobError, Place};
use blockyard_sim::simulate::SimulationError;
use pyo3::prelude::*;
use serde::Serialize;

/// An exception, before it is raised.
#[derive(Debug, Serialize)]
pub(crate) struct Refusal {
    /// The class, in `blockyard.errors`.
    class: &'static str,
    message: String,
    file: Option<String>,
    /// From 1.
    line: Option<usize>,
}

impl Refusal {
    fn new(class: &'static str, message: impl ToString) -> Self {
        Self { class, message: message.to_string(), file: None, line: None }
    }

    fn at(self, place: &Place) -> Self {
        let line = usize::try_from(place.line).ok().filter(|line| *line > 0);
        Self { file: Some(place.file.to_string()), line, ..self }
    }

    /// A job file that cannot be read.
    pub(crate) fn unreadable_job(path: &str, kind: io::ErrorKind) -> Self {
        let place = Place { file: Arc::from(path), line: 0 };
        JobError { place, fault: Fault::Unreadable(kind) }.into()
    }

    /// A device that cannot have several disks.
    pub(crate) fn one_disk(device: &str) -> Self {
        let words = "is one disk; a null device, a SCSI host or an AHCI host can have several";
        Self::new("ProfileError", format!("disks: `{device}` {words}"))
    }

    /// A panic of the simulator, with its payload.
    fn defect(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        let words = text.unwrap_or("no message");
        let what = "a defect of Blockyard, please report it with job, device, designs and seed";
        Self::new("SimulationError", format!("{what}: {words}"))
    }

    /// Returns the exception.
    pub(crate) fn raise(self, py: Python<'_>) -> PyErr {
        let Self { class, message, file, line } = self;
        let made = py.import("blockyard.errors").and_then(|errors| errors.getattr(class));
        match made.and_then(|class| class.call1((message, file, line))) {
            Ok(exception) => PyErr::from_value(exception),
            Err(error) => error,
        }
    }
}

/// Calls `work`. A panic is a refusal.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Refusal> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| Refusal::defect(&*payload))
}

impl From<JobError> for Refusal {
    fn from(error: JobError) -> Self {
        Self::new("JobError", &error).at(&error.place)
    }
}

impl From<ProfileError> for Refusal {
    fn from(error: ProfileError) -> Self {
        let refusal = Self::new("ProfileError", &error);
        match error {
            ProfileError::Wrong { file, line, .. } => {
                Self { file: Some(file), line: Some(line), ..refusal }
            }
            ProfileError::Unreadable { file, .. } | ProfileError::TooLong { file } => {
                Self { file: Some(file), ..refusal }
            }
            ProfileError::UnknownName { .. }
            | ProfileError::NoHost { .. }
            | ProfileError::Override { .. } => refusal,
        }
    }
}

impl From<SweepError> for Refusal {
    fn from(error: SweepError) -> Self {
        Self::new("ProfileError", format!("sweep: {error}"))
    }
}

impl From<NoAnswer<Self>> for Refusal {
    fn from(error: NoAnswer<Self>) -> Self {
        match error {
            NoAnswer::Simulation(error) => error.into(),
            NoAnswer::Goal(text, error) => Self::new("SimulationError", format!("{text}: {error}")),
            NoAnswer::Watch(refusal) => refusal,
        }
    }
}

impl From<SimulationError> for Refusal {
    fn from(error: SimulationError) -> Self {
        let words = error.to_string();
        match error {
            SimulationError::Job(error) => error.into(),
            SimulationError::FilesTooLarge { place, .. } | SimulationError::Unfit { place, .. } => {
                Self::new("JobError", words).at(&place)
            }
            SimulationError::NoSuchCpu { .. } => Self::new("JobError", words),
            SimulationError::Unsuited(error) => error.into(),
            SimulationError::CardFaults { file, .. } | SimulationError::Faults { file, .. } => {
                Self { file: Some(file), ..Self::new("ProfileError", words) }
            }
            SimulationError::Replay(_)
            | SimulationError::Log(_)
            | SimulationError::Failed { .. } => Self::new("SimulationError", words),
        }
    }
}

impl From<Unsuited> for Refusal {
    fn from(error: Unsuited) -> Self {
        let refusal = Self::new("ProfileError", &error);
        match error {
            Unsuited::TooManyQueues { file, line, .. }
            | Unsuited::OneQueue { file, line, .. }
            | Unsuited::Host { file, line, .. } => {
                Self { file: Some(file), line: Some(line), ..refusal }
            }
            Unsuited::NotMmc { .. }
            | Unsuited::NotPmem { .. }
            | Unsuited::NotServed { .. }
            | Unsuited::Queued { .. }
            | Unsuited::Sweep { .. }
            | Unsuited::NoInterruptCpu { .. } => refusal,
        }
    }
}
