//! Limits the device of a lane to a depth that lanes share.
//!
//! The depth in requests is the core's budget: a request that gets no budget stays in the elevator,
//! where it can merge and be overtaken. The depth in bytes is taken when a request is offered,
//! because only then its length is known.
//!
//! A lane that waits is rung when another lane gives depth back. Its own completions need no ring:
//! after each one the core runs the queue again, and after a delay if nothing is in flight.

use crate::parts::depth::Depth;
use crate::parts::job::SECTOR;
use blockyard::bio::Op;
use blockyard::driver::{Accept, Busy, Device, Driver, Issue};
use blockyard::request::Request;
use blockyard::unit::{Budget, DriverTag, HctxId, QueueId};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A depth, and the bells of the lanes that may wait for it.
#[derive(Debug)]
pub struct SharedDepth {
    /// The depth.
    pub depth: Depth,
    /// Indexed by the number of the lane.
    pub bells: Vec<Arc<OwnedFd>>,
}

/// A device that is limited to a depth that lanes share.
#[derive(Debug)]
pub struct Limited<D> {
    below: D,
    shared: Arc<SharedDepth>,
    lane: u32,
    /// Whether the queue's design takes budget, which then counts the requests in flight.
    has_budget: bool,
    /// The number of requests of the depth that this lane holds.
    taken: u64,
}

impl<D> Limited<D> {
    /// Limits `below` to `shared`. `has_budget` says whether the design of its queue takes budget.
    pub fn new(below: D, shared: Arc<SharedDepth>, lane: u32, has_budget: bool) -> Self {
        Self { below, shared, lane, has_budget, taken: 0 }
    }

    fn take_request(&mut self) -> bool {
        let is_taken = self.shared.depth.take_request(self.lane, self.taken);
        self.taken += u64::from(is_taken);
        is_taken
    }

    fn put_request(&mut self) {
        self.taken -= 1;
        self.shared.depth.put_request(|woken| self.wake(woken));
    }

    fn put_bytes(&self, request: &Request) {
        self.shared.depth.put_bytes(bytes_of(request), |woken| self.wake(woken));
    }

    fn wake(&self, woken: u32) {
        if woken != self.lane {
            crate::parts::bell::ring(&self.shared.bells[woken as usize]);
        }
    }
}

impl<D: Driver> Driver for Limited<D> {
    blockyard::pass_on!(below: prepare, unprepare, commit, timed_out);

    fn take_budget(&mut self, _queue: QueueId) -> Option<Budget> {
        self.take_request().then_some(Budget(0))
    }

    fn return_budget(&mut self, _queue: QueueId, _budget: Budget) {
        self.put_request();
    }

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        let request = issue.request();
        if !self.has_budget && !self.take_request() {
            return Accept::Busy(Busy::Device);
        }
        let mut answer = Accept::Busy(Busy::Device);
        if self.shared.depth.take_bytes(self.lane, bytes_of(request)) {
            answer = self.below.queue_rq(issue);
            if answer != Accept::Queued {
                self.put_bytes(request);
            }
        }
        if answer != Accept::Queued && !self.has_budget {
            self.put_request();
        }
        answer
    }

    fn finish(&mut self, queue: QueueId, hctx: HctxId, tag: DriverTag, request: &Request) {
        self.below.finish(queue, hctx, tag, request);
        self.put_bytes(request);
        if !self.has_budget {
            self.put_request();
        }
    }
}

impl<D: Device> Device for Limited<D> {
    blockyard::pass_on!(below: next_finished, poll_at);
}

fn bytes_of(request: &Request) -> u64 {
    match request.op {
        Op::Read | Op::Write => u64::from(request.sectors) * SECTOR,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::device::at_once::{AtOnce, CarryOut};
    use blockyard::bio::Bio;
    use blockyard::host::Host;
    use blockyard::limits::Limits;
    use blockyard::policy::{Dispatch, Policies};
    use blockyard::request_queue::{QueueConfig, RequestQueue};
    use blockyard::status::Status;
    use blockyard::tag::TagSetConfig;
    use blockyard::time::Instant;
    use blockyard::unit::CpuId;

    #[derive(Default)]
    struct Lengths(Vec<u32>);

    impl CarryOut for Lengths {
        fn carry_out(&mut self, issue: &Issue<'_>) -> Status {
            self.0.push(issue.request().sectors);
            Status::Ok
        }
    }

    /// Submits two adjacent reads on lane 1 while lane 0 holds all of the depth. Returns the
    /// lengths of the requests at the device, in sectors.
    fn requests_of_two_bios(policies: Policies) -> Vec<u32> {
        let bells = (0..2).map(|_| Arc::new(crate::parts::bell::bell().unwrap())).collect();
        let shared = Arc::new(SharedDepth { depth: Depth::new(2, 1 << 20, 2), bells });
        assert!(shared.depth.take_request(0, 0) && shared.depth.take_request(0, 1));
        let has_budget = policies.dispatch == Dispatch::Budget;
        let device =
            Limited::new(AtOnce::new(Lengths::default()), Arc::clone(&shared), 1, has_budget);
        let tags = TagSetConfig {
            hctxs: 1,
            depth: 8,
            reserved: 0,
            shared_over_hctxs: false,
            queues: 1,
            max_waiters: 1,
        };
        let mut host = Host::new(device, (), tags);
        let config = QueueConfig::new(1, 1, Limits::new(1 << 20), policies);
        let mut queue = RequestQueue::new(QueueId(0), config, &host);
        for (cookie, sector) in [(0, 0), (1, 8)] {
            let bio = Bio::new(Op::Read, sector, 8, cookie);
            queue.submit(&mut host, CpuId(0), bio, Instant::ZERO).unwrap();
            queue.turn(&mut host, Instant::ZERO);
        }
        assert!(queue.next_ended().is_none(), "the other lane holds all of the depth");
        let mut rung = Vec::new();
        shared.depth.put_request(|lane| rung.push(lane));
        assert_eq!(rung, [1]);
        let _ = queue.run(&mut host, HctxId(0), Instant::ZERO); // as a lane does that has been rung
        queue.turn(&mut host, Instant::ZERO);
        assert_eq!(core::iter::from_fn(|| queue.next_ended()).count(), 2);
        shared.depth.put_request(|_| {});
        assert_eq!(host.driver.taken, 0, "everything was given back");
        assert!(shared.depth.take_request(0, 0) && shared.depth.take_request(0, 1));
        host.driver.below.below.0
    }

    #[test]
    fn a_request_that_waits_for_another_lane_can_merge() {
        assert_eq!(requests_of_two_bios(Policies::mq_deadline()), [16]);
        assert_eq!(requests_of_two_bios(Policies::NONE), [16]);
    }

    #[test]
    fn a_design_without_budget_is_held_to_the_depth_too() {
        let policies = Policies { dispatch: Dispatch::DrainAll, ..Policies::mq_deadline() };
        let sectors: u32 = requests_of_two_bios(policies).iter().sum();
        assert_eq!(sectors, 16);
    }
}
