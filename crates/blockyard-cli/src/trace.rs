//! The traces that a command line requests.

use std::path::PathBuf;

use blockyard_sim::simulate::SimulationError;
use blockyard_trace::output::{Files, Recorder};

use crate::message::Failure;

/// Calls `run` with a recorder for the traces, if any. A run that fails or is interrupted leaves
/// traces up to that point.
pub(crate) fn recorded<T>(
    perfetto: Option<&PathBuf>,
    blktrace: Option<&PathBuf>,
    run: impl FnOnce(Option<&mut Recorder>) -> Result<T, SimulationError>,
) -> Result<T, Failure> {
    let mut recorder = recorder(perfetto, blktrace)?;
    let ended = run(recorder.as_mut());
    let written = recorder.map_or(Ok(()), Recorder::finish);
    let ended = ended?;
    written?;
    Ok(ended)
}

/// Returns a recorder for the traces; `None` if there are none.
pub(crate) fn recorder(
    perfetto: Option<&PathBuf>,
    blktrace: Option<&PathBuf>,
) -> Result<Option<Recorder>, Failure> {
    let files = Files { perfetto: perfetto.cloned(), blktrace: blktrace.cloned() };
    if files == Files::default() {
        return Ok(None);
    }
    Ok(Some(Recorder::create(&files)?))
}
