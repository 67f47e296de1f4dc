//! The counts of a disk's fault rules, which other threads may read.

use blockyard::layer::fault::{Count, FaultRule};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The fault rules of a disk, in order, with how often each matched and fired. See
/// [`Server::faults`](crate::Server::faults).
#[derive(Debug)]
pub struct FaultCounts {
    counts: Mutex<Vec<(String, Count)>>,
}

impl FaultCounts {
    pub(super) fn new(rules: &[FaultRule]) -> Self {
        let counts = Self { counts: Mutex::default() };
        counts.set(rules.iter().map(|rule| (rule, Count::default())));
        counts
    }

    /// Returns the name of each rule with its counts. While the server runs, the counts are those
    /// of the last query of the metrics; after it has ended, they are final.
    #[must_use]
    pub fn read(&self) -> Vec<(String, Count)> {
        self.lock().clone()
    }

    pub(crate) fn set<'a>(&self, counts: impl Iterator<Item = (&'a FaultRule, Count)>) {
        *self.lock() = counts.map(|(rule, count)| (rule.name.clone(), count)).collect();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(String, Count)>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner) // each count is whole
    }
}
