//! Who writes where, for writes that are no whole blocks of a file with direct I/O.
//!
//! Such a write reads the blocks at its edges, puts its bytes between, and writes them: whatever else
//! is written into those blocks meanwhile, from any lane, would be lost. So every write says where it
//! writes while it does, and one that overlaps another waits if either of them is of that kind.

use core::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Clone, Debug, PartialEq, Eq)]
struct Writing {
    bytes: Range<u64>,
    keeps_edges: bool,
}

/// Where a file is being written.
#[derive(Debug, Default)]
pub(crate) struct Overlaps(Mutex<Vec<Writing>>);

impl Overlaps {
    /// Begins to write `bytes`, whole blocks; `keeps_edges`: with what is read there first. Whether
    /// that may be now.
    #[must_use]
    pub(crate) fn begin(&self, bytes: Range<u64>, keeps_edges: bool) -> bool {
        let mut all = self.lock();
        let waits = all.iter().any(|other| {
            (keeps_edges || other.keeps_edges)
                && other.bytes.start < bytes.end
                && bytes.start < other.bytes.end
        });
        if !waits {
            all.push(Writing { bytes, keeps_edges });
        }
        !waits
    }

    /// What was begun with the same words is over.
    pub(crate) fn end(&self, bytes: Range<u64>, keeps_edges: bool) {
        let mut all = self.lock();
        let ended = Writing { bytes, keeps_edges };
        let at = all.iter().position(|writing| *writing == ended).expect("it was begun");
        all.swap_remove(at);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Writing>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner) // a push or a remove is whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_keeps_edges_waits_for_others_and_lets_others_wait() {
        let overlaps = Overlaps::default();
        assert!(overlaps.begin(0..4096, false));
        assert!(overlaps.begin(0..4096, false), "whole blocks tear nothing");
        assert!(!overlaps.begin(0..512, true));
        assert!(overlaps.begin(4096..8192, true));
        assert!(!overlaps.begin(4096..4608, false));
        overlaps.end(0..4096, false);
        assert!(!overlaps.begin(0..512, true), "one of the two writes still");
        overlaps.end(0..4096, false);
        assert!(overlaps.begin(0..512, true));
    }
}
