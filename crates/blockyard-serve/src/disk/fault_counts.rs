//! The counts of a disk's fault rules, which other threads may read.

use blockyard::layer::fault::{Count, FaultRule};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The fault rules of a disk, in order, with how often each matched and fired. See
/// [`Server::faults`](crate::Server::faults).
#[derive(Debug)]
pub struct FaultCounts {
    names: Vec<String>,
    counts: Mutex<Vec<Count>>,
}

impl FaultCounts {
    pub(super) fn new(rules: &[FaultRule]) -> Self {
        Self {
            names: rules.iter().map(|rule| rule.name.clone()).collect(),
            counts: Mutex::new(vec![Count::default(); rules.len()]),
        }
    }

    /// Returns the name of each rule with its counts. While the server runs, the counts are those of the last query
    /// of the metrics; after it has ended, they are final.
    #[must_use]
    pub fn read(&self) -> Vec<(String, Count)> {
        self.names.iter().cloned().zip(self.lock().iter().copied()).collect()
    }

    pub(crate) fn set(&self, counts: impl Iterator<Item = Count>) {
        for (to, from) in self.lock().iter_mut().zip(counts) {
            *to = from;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Count>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner) // each count is whole
    }
}
