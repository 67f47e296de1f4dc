//! The traces that a command line requests.

use std::path::PathBuf;

use blockyard_sim::simulate::SimulationError;
use blockyard_trace::output::{Files, Recorder};

use crate::message::Failure;

/// Calls `runs` with a recorder for the traces, if any. A run that fails or is interrupted leaves traces up to
/// that point.
pub(crate) fn recorded<T>(
    perfetto: Option<&PathBuf>,
    blktrace: Option<&PathBuf>,
    runs: impl FnOnce(Option<&mut Recorder>) -> Result<T, SimulationError>,
) -> Result<T, Failure> {
    let files = Files { perfetto: perfetto.cloned(), blktrace: blktrace.cloned() };
    if files == Files::default() {
        return Ok(runs(None)?);
    }
    let mut recorder = Recorder::create(&files)?;
    let ended = runs(Some(&mut recorder));
    let written = recorder.finish();
    let ended = ended?;
    written?;
    Ok(ended)
}
