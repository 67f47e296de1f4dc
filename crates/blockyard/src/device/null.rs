//! A device that is done with everything at once.

use crate::driver::{Accept, Busy, Driver, Issue};
use crate::status::Status;
use crate::unit::{DriverTag, HctxId, QueueId};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The smallest driver: does nothing, and reports every request as done.
///
/// A request it took counts against the depth of its hardware queue until
/// [`Self::next_completed`] has named it. Faults, delays and a size are other drivers' business.
#[derive(Clone, Debug)]
pub struct NullDevice {
    depth: u16,
    /// Requests of each hardware queue that have not been named.
    taken: Vec<u16>,
    completed: VecDeque<(QueueId, HctxId, DriverTag)>,
}

impl NullDevice {
    /// A device with `hctxs` hardware queues that take up to `depth` requests each.
    #[must_use]
    pub fn new(hctxs: u16, depth: u16) -> Self {
        let all = usize::from(hctxs) * usize::from(depth);
        Self {
            depth,
            taken: alloc::vec![0; usize::from(hctxs)],
            completed: VecDeque::with_capacity(all),
        }
    }

    /// The next request it is done with, in the order they came: pass it to
    /// [`complete`](crate::request_queue::RequestQueue::complete) of its queue.
    pub fn next_completed(&mut self) -> Option<(QueueId, HctxId, DriverTag, Status)> {
        let (queue, hctx, tag) = self.completed.pop_front()?;
        self.taken[hctx.index()] -= 1;
        Some((queue, hctx, tag, Status::Ok))
    }
}

impl Driver for NullDevice {
    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        let taken = &mut self.taken[issue.hctx.index()];
        if *taken == self.depth {
            return Accept::Busy(Busy::Device);
        }
        *taken += 1;
        self.completed.push_back((issue.queue, issue.hctx, issue.tag));
        Accept::Queued
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Bios, Requests};
    use crate::time::Instant;
    use crate::unit::RequestId;

    fn offer(device: &mut NullDevice, hctx: u16, tag: u16) -> Accept {
        device.queue_rq(&Issue {
            queue: QueueId(3),
            hctx: HctxId(hctx),
            tag: DriverTag(tag),
            budget: None,
            last: true,
            now: Instant::ZERO,
            id: RequestId(0),
            requests: &Requests::new(1),
            bios: &Bios::new(1),
        })
    }

    #[test]
    fn each_hardware_queue_takes_its_depth_and_completes_in_order() {
        let mut device = NullDevice::new(2, 2);
        assert_eq!(offer(&mut device, 0, 5), Accept::Queued);
        assert_eq!(offer(&mut device, 0, 1), Accept::Queued);
        assert_eq!(offer(&mut device, 0, 2), Accept::Busy(Busy::Device));
        assert_eq!(offer(&mut device, 1, 2), Accept::Queued);

        let done = |hctx, tag| Some((QueueId(3), HctxId(hctx), DriverTag(tag), Status::Ok));
        assert_eq!(device.next_completed(), done(0, 5));
        assert_eq!(offer(&mut device, 0, 9), Accept::Queued, "the first one made room");
        assert_eq!(device.next_completed(), done(0, 1));
        assert_eq!(device.next_completed(), done(1, 2));
        assert_eq!(device.next_completed(), done(0, 9));
        assert_eq!(device.next_completed(), None);
    }
}
