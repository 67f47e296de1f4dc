//! Signals that end a run early.

use std::io;
use std::sync::{Arc, OnceLock};

use blockyard_sim::simulate::Stop;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Requested by the first signal to end.
static STOP: OnceLock<Stop> = OnceLock::new();

/// Returns what the first signal to end requests.
pub(crate) fn stop() -> &'static Stop {
    STOP.get_or_init(Stop::default)
}

/// Registers for signals. After this call, the first signal to end lets a run report what it has
/// measured, and the second ends the process immediately.
pub(crate) fn catch() -> io::Result<()> {
    let switch = stop().switch();
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_default(signal, Arc::clone(&switch))?;
        flag::register(signal, Arc::clone(&switch))?;
    }
    Ok(())
}

/// Whether a signal to end has come.
pub(crate) fn has_come() -> bool {
    stop().is_requested()
}
