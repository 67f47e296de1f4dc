//! Many runs, of which only the rows stay.

use core::num::NonZeroUsize;
use core::sync::atomic::{AtomicBool, Ordering};

use blockyard_answer::Outcome;
use blockyard_fio::job::JobFile;
use blockyard_answer::parallel::each_on;
use blockyard_devices::profile::{Design, Device};
use blockyard_sim::simulate::{Conditions, Simulation, Stop};
use pyo3::FromPyObject;
use serde::Serialize;

use crate::refusal::{Refusal, caught};
use crate::rows::{self, Row};
use crate::sources::{self, DesignText, DeviceText, JobText, design, device, job};

/// One run: indices into the tables, and a seed.
#[derive(Clone, Copy, Debug, FromPyObject)]
pub(crate) struct Point(usize, usize, usize, u64);

/// The jobs, devices and designs of the points.
pub(crate) struct Tables {
    jobs: Vec<JobFile>,
    devices: Vec<Device>,
    designs: Vec<Design>,
}

/// What became of a point.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Ended {
    Rows(Vec<Row>),
    Refused(Refusal),
}

impl Tables {
    /// Reads the tables. The first one that is wrong is refused.
    pub(crate) fn read(
        jobs: &[JobText],
        devices: &[DeviceText],
        designs: &[DesignText],
    ) -> Result<Self, Refusal> {
        Ok(Self {
            jobs: jobs.iter().map(job).collect::<Result<_, _>>()?,
            devices: devices.iter().map(device).collect::<Result<_, _>>()?,
            designs: designs.iter().map(design).collect::<Result<_, _>>()?,
        })
    }

    /// Simulates `points` on so many `threads`, and returns what became of each as JSON. After a refusal no further point
    /// begins if `ends_at_refusal`; as points begin in their order, the first point that would be refused always is.
    pub(crate) fn run(
        &self,
        points: &[Point],
        threads: NonZeroUsize,
        ends_at_refusal: bool,
        stop: &Stop,
    ) -> String {
        let refused = AtomicBool::new(false);
        let ended = each_on(threads, points, |point| {
            if stop.is_requested() || (ends_at_refusal && refused.load(Ordering::Relaxed)) {
                return None;
            }
            let rows = caught(|| self.simulate(*point, stop)).and_then(|rows| rows);
            refused.fetch_or(rows.is_err(), Ordering::Relaxed);
            Some(rows.map_or_else(Ended::Refused, Ended::Rows))
        });
        rows::json(&ended)
    }

    fn simulate(&self, point: Point, stop: &Stop) -> Result<Vec<Row>, Refusal> {
        let Point(job, device, design, seed) = point;
        let (jobs, design) = (&self.jobs[job], &self.designs[design]);
        let conditions = Conditions { stop: Some(stop), ..Conditions::new(seed) };
        let report =
            Simulation::under(jobs, &self.devices[device], design, conditions)?.finish()?;
        let outcome = Outcome::of(&design.name, jobs, &report, &conditions, None);
        Ok(rows::of(&outcome).collect())
    }
}

/// Reads each table entry, one at a time, and returns the notes about the jobs.
pub(crate) fn notes(
    jobs: &[JobText],
    devices: &[DeviceText],
    designs: &[DesignText],
) -> Result<Vec<String>, Refusal> {
    devices.iter().try_for_each(|of| device(of).map(drop))?;
    designs.iter().try_for_each(|of| design(of).map(drop))?;
    let mut notes = Vec::new();
    for of in jobs {
        notes.extend(sources::notes(&job(of)?));
    }
    Ok(notes)
}
