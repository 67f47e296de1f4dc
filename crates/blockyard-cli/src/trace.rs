//! The traces a command is asked for.

use std::path::PathBuf;

use blockyard_sim::output::{Files, OutputError, Recorder};

/// A recorder for the traces asked for, if any is; say [`finish`] when the last run has ended.
pub(crate) fn begin(
    perfetto: Option<&PathBuf>,
    blktrace: Option<&PathBuf>,
) -> Result<Option<Recorder>, OutputError> {
    let files = Files { perfetto: perfetto.cloned(), blktrace: blktrace.cloned() };
    if files == Files::default() { Ok(None) } else { Recorder::create(&files).map(Some) }
}

/// Writes the end of the traces.
pub(crate) fn finish(recorder: Option<Recorder>) -> Result<(), OutputError> {
    recorder.map_or(Ok(()), Recorder::finish)
}
