//! The traces that a command line requests.

use core::sync::atomic::{AtomicBool, Ordering};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use blockyard_sim::output::{Files, Recorder};
use blockyard_sim::simulate::SimulationError;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::message::Failure;

/// Set by the first signal to end.
static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

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
    catch_signals()?;
    let ended = runs(Some(&mut recorder));
    let written = recorder.finish();
    let ended = ended?;
    written?;
    if is_interrupted() {
        return Err(Failure::Run("interrupted: the traces end here".to_owned()));
    }
    Ok(ended)
}

/// Returns whether the run that `recorder` watches should stop early.
pub(crate) fn is_pointless(recorder: &Recorder) -> bool {
    recorder.is_broken() || is_interrupted()
}

/// Registers for signals. After this call, the first signal to end lets the process close its files, and the
/// second ends it at once.
fn catch_signals() -> Result<(), Failure> {
    let interrupted = INTERRUPTED.get_or_init(Arc::default);
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_default(signal, Arc::clone(interrupted))?;
        flag::register(signal, Arc::clone(interrupted))?;
    }
    Ok(())
}

fn is_interrupted() -> bool {
    INTERRUPTED.get().is_some_and(|interrupted| interrupted.load(Ordering::Relaxed))
}
