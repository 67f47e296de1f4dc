//! A request from outside to end a run.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// Ends runs from another thread. Clones are one switch.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Makes every simulation under this condition fail at its next [`advance`](super::Simulation::advance), with
    /// [`SimulationError::Stopped`](super::SimulationError::Stopped).
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the runs are to end.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
