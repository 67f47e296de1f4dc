//! A request from outside to end a run.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// Ends runs from another thread. Clones are one switch.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Makes every simulation under this condition end in its next
    /// [`advance`](super::Simulation::advance). Its report has what was measured until then, and
    /// says so: [`Stopped::Interrupted`](super::Stopped).
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns the switch itself, for handlers of signals, which set it.
    #[must_use]
    pub fn switch(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// Whether the runs are to end.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
