//! The time for which hardware queues were held, by reason.
//!
//! A hold begins with an [`Action::Hold`](crate::trace::Action::Hold) of a hardware queue and ends
//! when the driver accepts a request for it. Another reason in between takes over from there; the
//! same reason again changes nothing. A hold that has not ended is not counted yet.

use crate::time::Instant;
use crate::trace::Hold;
use crate::unit::{HctxId, QueueId};
use alloc::boxed::Box;

/// The holds of the hardware queues of several request queues.
#[derive(Clone, Debug, Default)]
pub(super) struct HoldTimes {
    /// The number of hardware queues of each request queue.
    hctxs: usize,
    /// The current hold of each hardware queue, and its start.
    open: Box<[Option<(Hold, Instant)>]>,
    held_ns: [u128; Hold::ALL.len()],
}

impl HoldTimes {
    /// Watches `hctxs` hardware queues of each of `queues` request queues, numbered from 0.
    pub(super) fn new(queues: u16, hctxs: u16) -> Self {
        let watched = usize::from(queues) * usize::from(hctxs);
        Self {
            hctxs: usize::from(hctxs),
            open: alloc::vec![None; watched].into_boxed_slice(),
            held_ns: [0; Hold::ALL.len()],
        }
    }

    /// Clears all times and current holds.
    pub(super) fn clear(&mut self) {
        self.open.fill(None);
        self.held_ns.fill(0);
    }

    /// Adds the time that `other` counted.
    pub(super) fn merge(&mut self, other: &Self) {
        for (time, more) in self.held_ns.iter_mut().zip(other.held_ns) {
            *time += more;
        }
    }

    /// Returns the nanoseconds held for `hold`, over all hardware queues.
    pub(super) const fn held_ns(&self, hold: Hold) -> u128 {
        self.held_ns[hold as usize]
    }

    /// Notes that a run of a hardware queue stopped for `hold`.
    pub(super) fn begin_hold(&mut self, queue: QueueId, hctx: HctxId, hold: Hold, at: Instant) {
        let Some(open) = self.open_hold(queue, hctx) else { return };
        if open.is_some_and(|(same, _)| same == hold) {
            return; // the same hold continues
        }
        let before = open.replace((hold, at));
        self.count_hold(before, at);
    }

    /// Notes that the driver accepted a request for a hardware queue.
    pub(super) fn end_hold(&mut self, queue: QueueId, hctx: HctxId, at: Instant) {
        let ended = self.open_hold(queue, hctx).and_then(Option::take);
        self.count_hold(ended, at);
    }

    fn count_hold(&mut self, ended: Option<(Hold, Instant)>, at: Instant) {
        if let Some((hold, since)) = ended {
            self.held_ns[hold as usize] += u128::from(at.since(since).as_ns());
        }
    }

    fn open_hold(&mut self, queue: QueueId, hctx: HctxId) -> Option<&mut Option<(Hold, Instant)>> {
        if hctx.index() >= self.hctxs {
            return None;
        }
        self.open.get_mut(queue.index() * self.hctxs + hctx.index())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEUE: QueueId = QueueId(1);
    const HCTX: HctxId = HctxId(1);

    fn at(ns: u64) -> Instant {
        Instant::from_ns(ns)
    }

    #[test]
    fn a_hold_lasts_until_a_request_of_its_hardware_queue_is_issued() {
        let mut times = HoldTimes::new(2, 2);
        times.begin_hold(QUEUE, HCTX, Hold::Budget, at(100));
        times.begin_hold(QUEUE, HCTX, Hold::Budget, at(150));
        times.end_hold(QUEUE, HctxId(0), at(160));
        times.end_hold(QueueId(0), HCTX, at(170));
        assert_eq!(times.held_ns(Hold::Budget), 0, "HT3");
        times.end_hold(QUEUE, HCTX, at(400));
        times.end_hold(QUEUE, HCTX, at(500));
        assert_eq!(times.held_ns(Hold::Budget), 300, "HT1");
    }

    #[test]
    fn another_reason_takes_over() {
        let mut times = HoldTimes::new(2, 2);
        times.begin_hold(QUEUE, HCTX, Hold::Tag, at(100));
        times.begin_hold(QUEUE, HCTX, Hold::Device, at(130));
        times.end_hold(QUEUE, HCTX, at(200));
        let held = [Hold::Tag, Hold::Device, Hold::Budget].map(|hold| times.held_ns(hold));
        assert_eq!(held, [30, 70, 0]);
    }

    #[test]
    fn a_hold_that_was_forgotten_counts_nothing() {
        let mut times = HoldTimes::new(2, 2);
        times.begin_hold(QUEUE, HCTX, Hold::Tag, at(100));
        times.clear();
        times.end_hold(QUEUE, HCTX, at(200));
        assert_eq!(times.held_ns(Hold::Tag), 0);
    }

    #[test]
    fn what_is_not_watched_is_passed_over() {
        let mut times = HoldTimes::new(1, 2);
        for (queue, hctx) in [(QueueId(1), HctxId(0)), (QueueId(0), HctxId(2))] {
            times.begin_hold(queue, hctx, Hold::Tag, at(100));
            times.end_hold(queue, hctx, at(200));
        }
        assert_eq!(times.held_ns(Hold::Tag), 0);
        let mut times = HoldTimes::new(2, 2);
        times.begin_hold(QueueId(0), HctxId(2), Hold::Tag, at(100));
        times.end_hold(QueueId(1), HctxId(0), at(200));
        assert_eq!(times.held_ns(Hold::Tag), 0, "a number too high is not one of the next queue");
    }
}
