//! The native module of the Python package `blockyard`.
//!
//! ```text
//! python/blockyard ──► lib ─┬─► question ──► blockyard_answer         one answer, as JSON and rows
//!  (arguments, tables,      └─► points ────► blockyard_sim::simulate  many runs, only rows
//!   Dask)
//! ```
//!
//! Arguments arrive checked: `python/blockyard` decides what is a path and what is text. Every call
//! releases the interpreter lock (`interrupt`), and every failure becomes an exception of the
//! package (`refusal`).

mod interrupt;
mod points;
mod question;
mod refusal;
mod rows;
mod sources;

use core::num::NonZeroUsize;

use blockyard_devices::profile::{Builtin, Design, Device, builtin_designs, builtin_devices};
use blockyard_fio::job::{Source as _, SystemSource};
use interrupt::interruptible;
use points::{Point, Tables};
use pyo3::prelude::*;
use question::Question;
use refusal::Refusal;
use sources::{DesignText, DeviceText, JobText, Value};

#[pymodule]
#[pyo3(name = "_native")]
mod native {
    #[pymodule_export]
    use super::{
        check, defect, design_text, designs, device_text, devices, read_job, sweep, whatif,
    };
}

/// Returns an answer as JSON, its rows as JSON, and the notes about the job.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "they are those of the Python function")]
fn whatif(
    py: Python<'_>,
    job: JobText,
    device: String,
    designs: Vec<String>,
    seed: u64,
    seeds: Option<u32>,
    readings: Option<u32>,
    set: Vec<Value>,
    sweep: Vec<(String, Vec<String>)>,
    disks: Option<u16>,
    faults: Option<String>,
    filesystem: Option<String>,
    verify: bool,
) -> PyResult<(String, String, Vec<String>)> {
    let question = Question {
        job,
        device,
        designs,
        seed,
        seeds,
        readings,
        set,
        sweep,
        disks,
        faults,
        filesystem,
        verify,
    };
    answered(py, interruptible(py, |stop| question.answer(stop))?)
}

/// Reads every job, device and design, and returns the notes about the jobs.
#[pyfunction]
fn check(
    py: Python<'_>,
    jobs: Vec<JobText>,
    devices: Vec<DeviceText>,
    designs: Vec<DesignText>,
) -> PyResult<Vec<String>> {
    answered(py, interruptible(py, |_| points::notes(&jobs, &devices, &designs))?)
}

/// Simulates points, which are indices of a job, a device and a design, and a seed. Returns a list
/// as JSON: for each point its rows, its refusal, or null if it was left out because a point before
/// it was refused.
#[pyfunction]
fn sweep(
    py: Python<'_>,
    jobs: Vec<JobText>,
    devices: Vec<DeviceText>,
    designs: Vec<DesignText>,
    points: Vec<Point>,
    threads: NonZeroUsize,
    ends_at_refusal: bool,
) -> PyResult<String> {
    let run = |stop: &_| {
        let tables = Tables::read(&jobs, &devices, &designs)?;
        Ok(tables.run(&points, threads, ends_at_refusal, stop))
    };
    answered(py, interruptible(py, run)?)
}

/// Returns the bytes of a job file.
#[pyfunction]
fn read_job(py: Python<'_>, path: String) -> PyResult<Vec<u8>> {
    let bytes = py.detach(|| SystemSource.read(&path));
    answered(py, bytes.map_err(|kind| Refusal::unreadable_job(&path, kind)))
}

/// Returns the text of the device with this name or path.
#[pyfunction]
fn device_text(py: Python<'_>, name_or_path: String) -> PyResult<String> {
    answered(py, py.detach(|| Device::text(&name_or_path)).map_err(Refusal::from))
}

/// Returns the text of the design with this name or path; an empty text for `SCHEDULER+HOST`, which
/// its name describes.
#[pyfunction]
fn design_text(py: Python<'_>, name_or_path: String) -> PyResult<String> {
    let text = || match Design::text(&name_or_path) {
        Err(unknown) => Design::lookup(&name_or_path).map(|_| String::new()).map_err(|_| unknown),
        known => known,
    };
    answered(py, py.detach(text).map_err(Refusal::from))
}

/// Returns the names of the built-in devices.
#[pyfunction]
fn devices() -> Vec<&'static str> {
    names(builtin_devices())
}

/// Returns the names of the built-in designs, oldest first.
#[pyfunction]
fn designs() -> Vec<&'static str> {
    names(builtin_designs())
}

fn names(of: &[Builtin]) -> Vec<&'static str> {
    of.iter().map(|builtin| builtin.name).collect()
}

/// Fails as a defect of the simulator would: for tests.
#[pyfunction]
fn defect(py: Python<'_>, words: String) -> PyResult<()> {
    interruptible(py, |_| panic!("{words}"))
}

/// Returns what was asked for, or raises the refusal.
fn answered<T>(py: Python<'_>, result: Result<T, Refusal>) -> PyResult<T> {
    result.map_err(|refusal| refusal.raise(py))
}
