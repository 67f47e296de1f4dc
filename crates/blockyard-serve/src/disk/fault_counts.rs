//! How often each fault rule of a disk was met, for those who ask from outside its lane.

use blockyard::layer::fault::{Count, FaultRule};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The fault rules of a disk, in order, and how often each was met. See
/// [`Server::faults`](crate::Server::faults).
#[derive(Debug)]
pub struct FaultCounts {
    names: Vec<String>,
    /// What the lane told last.
    counts: Mutex<Vec<Count>>,
}

impl FaultCounts {
    /// Of rules that were not met yet.
    pub(super) fn new(rules: &[FaultRule]) -> Self {
        Self {
            names: rules.iter().map(|rule| rule.name.clone()).collect(),
            counts: Mutex::new(vec![Count::default(); rules.len()]),
        }
    }

    /// Each rule by its name. While the server runs, that is as it was when metrics were told last;
    /// when it has ended, all of it.
    #[must_use]
    pub fn read(&self) -> Vec<(String, Count)> {
        self.names.iter().cloned().zip(self.lock().iter().copied()).collect()
    }

    /// Now it is so.
    pub(crate) fn set(&self, counts: impl Iterator<Item = Count>) {
        for (to, from) in self.lock().iter_mut().zip(counts) {
            *to = from;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Count>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner) // each count is whole
    }
}
