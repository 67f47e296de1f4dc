//! Signals that end a run early.

use core::sync::atomic::{AtomicBool, Ordering};
use std::io;
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Set by the first signal to end.
static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Returns what the first signal to end sets.
pub(crate) fn flag() -> &'static AtomicBool {
    INTERRUPTED.get_or_init(Arc::default)
}

/// Registers for signals. After this call, the first signal to end lets a run report what it has measured, and the second
/// ends the process at once.
pub(crate) fn catch() -> io::Result<()> {
    let interrupted = INTERRUPTED.get_or_init(Arc::default);
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_default(signal, Arc::clone(interrupted))?;
        flag::register(signal, Arc::clone(interrupted))?;
    }
    Ok(())
}

/// Whether a signal to end has come.
pub(crate) fn has_come() -> bool {
    flag().load(Ordering::Relaxed)
}
