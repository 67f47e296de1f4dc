//! Who writes where, for writes that are no whole blocks of a file with direct I/O.
//!
//! Such a write reads the blocks at its edges, puts its bytes between, and writes them: whatever else
//! is written into those blocks meanwhile, from any lane, would be lost. So every write says where it
//! writes while it does, and one that overlaps another waits if either of them is of that kind. The end
//! of any write rings for the lanes that wait, which try again.

use core::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Clone, Debug, PartialEq, Eq)]
struct Writing {
    bytes: Range<u64>,
    keeps_edges: bool,
}

/// Where a file is being written, and who waits for that.
#[derive(Debug)]
pub(crate) struct Overlaps {
    all: Mutex<All>,
    /// How lanes are rung for, by their numbers.
    bells: Vec<Arc<OwnedFd>>,
}

#[derive(Debug, Default)]
struct All {
    writing: Vec<Writing>,
    /// Lanes, by their numbers, that were told to wait since a write ended last.
    waiting: Vec<u32>,
}

impl Overlaps {
    /// Of no write, in lanes with these bells.
    pub(crate) fn new(bells: &[Arc<OwnedFd>]) -> Self {
        Self { all: Mutex::default(), bells: bells.to_vec() }
    }

    /// `lane` begins to write `bytes`, whole blocks; `keeps_edges`: with what is read there first.
    /// Whether that may be now; if not, the lane is rung for when it may be.
    #[must_use]
    pub(crate) fn begin(&self, lane: u32, bytes: Range<u64>, keeps_edges: bool) -> bool {
        let mut all = self.lock();
        let waits = all.writing.iter().any(|other| {
            (keeps_edges || other.keeps_edges)
                && other.bytes.start < bytes.end
                && bytes.start < other.bytes.end
        });
        if !waits {
            all.writing.push(Writing { bytes, keeps_edges });
        } else if !all.waiting.contains(&lane) {
            all.waiting.push(lane);
        }
        !waits
    }

    /// What was begun with the same words is over.
    pub(crate) fn end(&self, bytes: Range<u64>, keeps_edges: bool) {
        let mut all = self.lock();
        let ended = Writing { bytes, keeps_edges };
        let at = all.writing.iter().position(|writing| *writing == ended).expect("it was begun");
        all.writing.swap_remove(at);
        for lane in all.waiting.drain(..) {
            crate::bell::ring(&self.bells[lane as usize]);
        }
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner) // a push or a remove is whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_writes_of_parts_of_blocks_exclude_others() {
        let bells: Vec<_> = (0..2).map(|_| Arc::new(crate::bell::bell().unwrap())).collect();
        let overlaps = Overlaps::new(&bells);
        assert!(overlaps.begin(0, 0..4096, false));
        assert!(overlaps.begin(1, 0..4096, false), "whole blocks tear nothing");
        assert!(!overlaps.begin(1, 0..512, true));
        assert!(overlaps.begin(0, 4096..8192, true));
        assert!(!overlaps.begin(1, 4096..4608, false));
        overlaps.end(0..4096, false);
        assert!(!overlaps.begin(1, 0..512, true), "one of the two writes still");
        overlaps.end(0..4096, false);
        assert!(overlaps.begin(1, 0..512, true));
    }

    #[test]
    fn a_waiting_lane_is_rung_when_a_write_ends() {
        let bells: Vec<_> = (0..3).map(|_| Arc::new(crate::bell::bell().unwrap())).collect();
        let overlaps = Overlaps::new(&bells);
        let rung = || {
            let mut rung = Vec::new();
            for (lane, bell) in bells.iter().enumerate() {
                let mut count = [0; 8];
                if rustix::io::read(bell, &mut count).is_ok() {
                    rung.push(lane);
                }
            }
            rung
        };
        assert!(overlaps.begin(0, 0..4096, true));
        assert!(!overlaps.begin(2, 0..4096, false));
        assert!(!overlaps.begin(1, 0..4096, true) && !overlaps.begin(1, 0..4096, true));
        assert!(rung().is_empty());
        overlaps.end(0..4096, true);
        assert_eq!(rung(), [1, 2]);
        assert!(overlaps.begin(1, 0..4096, true));
        overlaps.end(0..4096, true);
        assert!(rung().is_empty(), "nobody waits any more");
    }
}
