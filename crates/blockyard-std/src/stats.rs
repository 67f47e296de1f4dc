//! Counts of a disk's requests. The thread that does the disk's work changes them, and any thread
//! reads them.

use blockyard::bio::Op;
use core::sync::atomic::{AtomicU64, Ordering};

/// Requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Requests that have ended, successfully or not.
    pub ended: u64,
    /// Of those, the ones that failed.
    pub failed: u64,
    /// Bytes of the requests that succeeded.
    pub bytes: u64,
}

/// The requests of a disk since it was opened. A request that was refused before it began, such as
/// one beyond the end of the disk, is not counted. The counts are read one after the other while
/// requests are served, so they need not add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Reads.
    pub reads: Count,
    /// Writes.
    pub writes: Count,
    /// Flushes, without the last one of a shutdown.
    pub flushes: Count,
    /// Discards.
    pub discards: Count,
    /// Writes of zeroes.
    pub zeroes: Count,
    /// Requests that have begun and not ended.
    pub in_flight: u64,
}

/// The counters. One thread at a time changes them: the thread of the disk or, for a disk in
/// memory, the caller that has its queue.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    kinds: [[AtomicU64; 3]; 5],
    in_flight: AtomicU64,
}

impl Counters {
    pub(crate) fn begun(&self) {
        add(&self.in_flight, 1);
    }

    /// Counts a request of `bytes` that has ended.
    pub(crate) fn ended(&self, op: Op, bytes: u64, is_ok: bool) {
        add(&self.in_flight, u64::MAX); // one less
        let [ended, failed, moved] = &self.kinds[place_of(op)];
        add(ended, 1);
        match is_ok {
            true => add(moved, bytes),
            false => add(failed, 1),
        }
    }

    pub(crate) fn read(&self) -> Stats {
        Stats {
            reads: self.count(Op::Read),
            writes: self.count(Op::Write),
            flushes: self.count(Op::Flush),
            discards: self.count(Op::Discard),
            zeroes: self.count(Op::WriteZeroes),
            in_flight: self.in_flight.load(Ordering::Relaxed),
        }
    }

    fn count(&self, op: Op) -> Count {
        let [ended, failed, bytes] =
            [0, 1, 2].map(|at| self.kinds[place_of(op)][at].load(Ordering::Relaxed));
        Count { ended, failed, bytes }
    }
}

/// Adds to a counter that no other thread changes at the same time.
fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

fn place_of(op: Op) -> usize {
    match op {
        Op::Read => 0,
        Op::Write => 1,
        Op::Flush => 2,
        Op::Discard => 3,
        Op::WriteZeroes => 4,
        other => unreachable!("a disk offers no {other:?}"),
    }
}
