//! A device held to a depth that lanes share: a layer over the device of one lane.

use crate::depth::Depth;
use crate::job::SECTOR;
use blockyard::bio::Op;
use blockyard::driver::{Accept, Busy, Device, Driver, Finished, Issue};
use blockyard::request::Request;
use blockyard::time::Instant;
use blockyard::unit::{DriverTag, HctxId, QueueId};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A depth, and how the lanes are rung that wait for it.
#[derive(Debug)]
pub(crate) struct SharedDepth {
    pub(crate) depth: Depth,
    /// By number of the lane.
    pub(crate) bells: Vec<Arc<OwnedFd>>,
}

/// A device held to a depth that lanes share.
#[derive(Debug)]
pub(crate) struct Limited<D> {
    below: D,
    shared: Arc<SharedDepth>,
    lane: u32,
    in_flight: u32,
}

impl<D> Limited<D> {
    pub(crate) fn new(below: D, shared: Arc<SharedDepth>, lane: u32) -> Self {
        Self { below, shared, lane, in_flight: 0 }
    }

    fn put(&mut self, request: &Request) {
        self.in_flight -= 1;
        let Self { shared, lane, .. } = self;
        shared.depth.put(bytes_of(request), |woken| {
            // This lane runs its queue after every completion by itself.
            if woken != *lane {
                crate::bell::ring(&shared.bells[woken as usize]);
            }
        });
    }
}

impl<D: Driver> Driver for Limited<D> {
    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        let request = issue.request();
        if !self.shared.depth.take(self.lane, self.in_flight, bytes_of(request)) {
            return Accept::Busy(if self.in_flight > 0 { Busy::Device } else { Busy::Resource });
        }
        self.in_flight += 1;
        let answer = self.below.queue_rq(issue);
        if answer != Accept::Queued {
            self.put(request);
        }
        answer
    }

    fn finish(&mut self, queue: QueueId, hctx: HctxId, tag: DriverTag, request: &Request) {
        self.below.finish(queue, hctx, tag, request);
        self.put(request);
    }
}

impl<D: Device> Device for Limited<D> {
    fn next_finished(&mut self, now: Instant) -> Option<Finished> {
        self.below.next_finished(now)
    }

    fn poll_at(&self) -> Option<Instant> {
        self.below.poll_at()
    }
}

/// Bytes of data that go with it.
fn bytes_of(request: &Request) -> u64 {
    match request.op {
        Op::Read | Op::Write => u64::from(request.sectors) * SECTOR,
        _ => 0,
    }
}
