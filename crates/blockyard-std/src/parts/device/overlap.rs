//! The ranges of a file that are being written, for direct I/O of partial blocks.
//!
//! A write of partial blocks reads the blocks at its edges, inserts its bytes, and writes the
//! blocks. A write to the same blocks in the meantime, from any lane, would be lost. Every write
//! therefore registers its range while it lasts. A write that overlaps another one waits if either
//! of them keeps edges. The end of a write rings the lanes that wait, which then try again.

use core::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Clone, Debug, PartialEq, Eq)]
struct Writing {
    bytes: Range<u64>,
    keeps_edges: bool,
}

/// The ranges of a file that are being written, and the lanes that wait.
#[derive(Debug)]
pub struct Overlaps {
    all: Mutex<All>,
    /// The bells of the lanes, by number.
    bells: Vec<Arc<OwnedFd>>,
}

#[derive(Debug, Default)]
struct All {
    writing: Vec<Writing>,
    /// The lanes that were refused since the last end of a write, by number.
    waiting: Vec<u32>,
}

impl Overlaps {
    /// Returns no ranges, for lanes with these bells.
    pub fn new(bells: &[Arc<OwnedFd>]) -> Self {
        Self { all: Mutex::default(), bells: bells.to_vec() }
    }

    /// Registers a write of `lane` to `bytes`, which are whole blocks. `keeps_edges` says whether
    /// the write reads blocks first. Returns whether the write may begin now. If not, the lane is
    /// rung when it may try again.
    #[must_use]
    pub fn begin(&self, lane: u32, bytes: Range<u64>, keeps_edges: bool) -> bool {
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

    /// Removes the write that was registered with the same arguments.
    pub fn end(&self, bytes: Range<u64>, keeps_edges: bool) {
        let mut all = self.lock();
        let ended = Writing { bytes, keeps_edges };
        let at = all
            .writing
            .iter()
            .position(|writing| *writing == ended)
            .expect("write that was registered");
        all.writing.swap_remove(at);
        for lane in all.waiting.drain(..) {
            crate::parts::bell::ring(&self.bells[lane as usize]);
        }
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner) // a panic leaves both lists whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_writes_of_parts_of_blocks_exclude_others() {
        let bells: Vec<_> = (0..2).map(|_| Arc::new(crate::parts::bell::bell().unwrap())).collect();
        let overlaps = Overlaps::new(&bells);
        assert!(overlaps.begin(0, 0..4096, false));
        assert!(overlaps.begin(1, 0..4096, false), "whole blocks tear nothing");
        assert!(!overlaps.begin(1, 0..512, true));
        assert!(overlaps.begin(0, 4096..8192, true));
        assert!(!overlaps.begin(1, 4096..4608, false));
        overlaps.end(0..4096, false);
        assert!(!overlaps.begin(1, 0..512, true), "one of the two writes still lasts");
        overlaps.end(0..4096, false);
        assert!(overlaps.begin(1, 0..512, true));
    }

    #[test]
    fn a_waiting_lane_is_rung_when_a_write_ends() {
        let bells: Vec<_> = (0..3).map(|_| Arc::new(crate::parts::bell::bell().unwrap())).collect();
        let overlaps = Overlaps::new(&bells);
        assert!(overlaps.begin(0, 0..4096, true));
        assert!(!overlaps.begin(2, 0..4096, false));
        assert!(!overlaps.begin(1, 0..4096, true) && !overlaps.begin(1, 0..4096, true));
        assert!(rung_lanes(&bells).is_empty());
        overlaps.end(0..4096, true);
        assert_eq!(rung_lanes(&bells), [1, 2]);
        assert!(overlaps.begin(1, 0..4096, true));
        overlaps.end(0..4096, true);
        assert!(rung_lanes(&bells).is_empty(), "nobody waits any more");
    }

    fn rung_lanes(bells: &[Arc<OwnedFd>]) -> Vec<usize> {
        let mut rung = Vec::new();
        for (lane, bell) in bells.iter().enumerate() {
            let mut count = [0; 8];
            if rustix::io::read(bell, &mut count).is_ok() {
                rung.push(lane);
            }
        }
        rung
    }
}
