//! A null device: every request is done as soon as it is accepted.

use crate::driver::{Accept, Busy, Device, Driver, Finished, Issue, Outcome};
use crate::status::Status;
use crate::time::Instant;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The smallest driver: does nothing, and reports every request as done.
///
/// An accepted request counts against the depth of its hardware queue until
/// [`Device::next_finished`] has returned it; requests finish in the order they came. Faults,
/// delays and rates are [layers](crate::layer) over this device.
#[derive(Clone, Debug)]
pub struct NullDevice {
    depth: u16,
    /// Requests of each hardware queue that have not been returned.
    taken: Vec<u16>,
    finished: VecDeque<Finished>,
}

impl NullDevice {
    /// Returns a device with `hctxs` hardware queues that accept up to `depth` requests each.
    #[must_use]
    pub fn new(hctxs: u16, depth: u16) -> Self {
        let all = usize::from(hctxs) * usize::from(depth);
        Self {
            depth,
            taken: alloc::vec![0; usize::from(hctxs)],
            finished: VecDeque::with_capacity(all),
        }
    }
}

impl Driver for NullDevice {
    crate::leaf_calls!(take_budget, return_budget, prepare, unprepare, commit, timed_out, finish);

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        let taken = &mut self.taken[issue.hctx.index()];
        if *taken == self.depth {
            return Accept::Busy(Busy::Device);
        }
        *taken += 1;
        self.finished.push_back(Finished {
            queue: issue.queue,
            hctx: issue.hctx,
            tag: issue.tag,
            outcome: Outcome::Done(Status::Ok),
        });
        Accept::Queued
    }
}

impl Device for NullDevice {
    fn next_finished(&mut self, _now: Instant) -> Option<Finished> {
        let finished = self.finished.pop_front()?;
        self.taken[finished.hctx.index()] -= 1;
        Some(finished)
    }

    fn poll_at(&self) -> Option<Instant> {
        (!self.finished.is_empty()).then_some(Instant::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Bios, Requests};
    use crate::unit::{DriverTag, HctxId, QueueId, RequestId};

    fn offer(device: &mut NullDevice, hctx: u16, tag: u16) -> Accept {
        let requests = Requests::new(1);
        let bios = Bios::new(1);
        let hctx = HctxId(hctx);
        let tag = DriverTag(tag);
        device.queue_rq(&Issue::new(hctx, tag, Instant::ZERO, RequestId(0), &requests, &bios))
    }

    fn done(hctx: u16, tag: u16) -> Option<Finished> {
        let queue = QueueId(0);
        let hctx = HctxId(hctx);
        let tag = DriverTag(tag);
        Some(Finished { queue, hctx, tag, outcome: Outcome::Done(Status::Ok) })
    }

    #[test]
    fn each_hardware_queue_takes_its_depth_and_completes_in_order() {
        let mut device = NullDevice::new(2, 2);
        assert_eq!(offer(&mut device, 0, 5), Accept::Queued);
        assert_eq!(offer(&mut device, 0, 1), Accept::Queued);
        assert_eq!(offer(&mut device, 0, 2), Accept::Busy(Busy::Device));
        assert_eq!(offer(&mut device, 1, 2), Accept::Queued);

        assert_eq!(device.poll_at(), Some(Instant::ZERO));
        assert_eq!(device.next_finished(Instant::ZERO), done(0, 5));
        assert_eq!(offer(&mut device, 0, 9), Accept::Queued, "the first one made room");
        assert_eq!(device.next_finished(Instant::ZERO), done(0, 1));
        assert_eq!(device.next_finished(Instant::ZERO), done(1, 2));
        assert_eq!(device.next_finished(Instant::ZERO), done(0, 9));
        assert_eq!((device.next_finished(Instant::ZERO), device.poll_at()), (None, None));
    }
}
