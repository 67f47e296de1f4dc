//! The configuration of a request queue: its map, limits, design and sizes.

use crate::elevator::Elevator;
use crate::elevator::adios::Adios;
use crate::elevator::bfq::Bfq;
use crate::elevator::deadline::Deadline;
use crate::elevator::kyber::Kyber;
use crate::hardware_queue::QueueMap;
use crate::limits::Limits;
use crate::policy::{ElevatorKind, Model, Policies, SwqMerge, TagWakes};
use crate::tag::{TagPool, TagSetConfig};
use crate::time::Duration;
use crate::wbt::Throttle;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The configuration of a [`RequestQueue`](super::RequestQueue).
#[derive(Clone, Debug)]
pub struct QueueConfig {
    /// Which hardware queue serves which processor. Names at most as many hardware queues as the
    /// host's tag set has.
    pub map: QueueMap,
    /// What the device accepts.
    pub limits: Limits,
    /// The design.
    pub policies: Policies,
    /// The most bios, counting the parts of split ones, that have not ended.
    pub max_bios: u32,
    /// The most submitters that wait for a scheduler tag of one hardware queue.
    pub max_waiters: u32,
    /// The most requests that one run passes to the driver.
    pub run_batch_max: u32,
    /// The time after which the driver is asked about a request that it owns
    /// ([`Driver::timed_out`](crate::driver::Driver::timed_out)), at whole seconds.
    /// [`Duration::MAX`]: never.
    pub timeout: Duration,
}

impl QueueConfig {
    /// Returns a configuration with `cpus` processors spread evenly over `hctxs` hardware queues,
    /// memory for 4096 bios and 1024 waiters, runs of at most 1024 requests, and a timeout of 30 s,
    /// as most Linux drivers have. [`Self::memory`] says what a small system chooses instead.
    ///
    /// # Panics
    ///
    /// Panics if `cpus` or `hctxs` is 0.
    #[must_use]
    pub fn new(cpus: u16, hctxs: u16, limits: Limits, policies: Policies) -> Self {
        Self {
            map: QueueMap::even(cpus, hctxs),
            limits,
            policies,
            max_bios: 4096,
            max_waiters: 1024,
            run_batch_max: 1024,
            timeout: Duration::from_secs(30),
        }
    }

    /// The number of requests that a queue with this configuration has on a host with these tags,
    /// flush commands included.
    #[must_use]
    pub fn requests(&self, tags: &TagSetConfig) -> usize {
        self.bio_requests(tags) + self.map.hctxs()
    }

    /// The number of those that carry bios.
    pub(super) fn bio_requests(&self, tags: &TagSetConfig) -> usize {
        self.map.hctxs() * self.tags_per_hctx(tags) as usize
    }

    /// The number of those that an index of the software queues must have room for.
    pub(super) fn hashed_requests(&self, tags: &TagSetConfig) -> usize {
        if self.policies.swq_merge == SwqMerge::Hash { self.bio_requests(tags) } else { 0 }
    }

    /// The number of requests that each hardware queue may hold on a host with these tags:
    /// scheduler tags plus the host's reserved tags, or, without an elevator, driver tags.
    pub(super) fn tags_per_hctx(&self, tags: &TagSetConfig) -> u32 {
        let device_depth = u32::from(tags.depth);
        if !self.has_elevator() {
            return device_depth;
        }
        self.policies.sched_depth.tags(device_depth) + u32::from(tags.reserved)
    }

    /// The most submitters that are woken by one call.
    pub(super) fn max_woken(&self, tags: &TagSetConfig) -> usize {
        let lines_per_hctx = 1 + usize::from(tags.reserved > 0);
        let lines = if self.has_elevator() { self.map.hctxs() * lines_per_hctx } else { 0 };
        let throttled = if self.policies.wbt.is_some() { 2 } else { 0 };
        (lines + throttled + 1) * self.max_waiters as usize
    }

    /// Returns the throttle of writeback, if the design has one.
    pub(super) fn throttle(&self) -> Option<Throttle> {
        let wbt = self.policies.wbt?;
        Some(Throttle::new(wbt, self.limits.write_cache, self.max_waiters))
    }

    /// Returns the scheduler tags of each hardware queue; none without an elevator.
    pub(super) fn sched_tags(&self, tags: &TagSetConfig) -> Vec<TagPool> {
        let depth = self.tags_per_hctx(tags);
        let reserved = u32::from(tags.reserved);
        let hctxs = if self.has_elevator() { self.map.hctxs() } else { 0 };
        let mut all: Vec<_> =
            (0..hctxs).map(|_| TagPool::new(depth, reserved, self.max_waiters)).collect();
        if let ElevatorKind::Deadline(tunables) = self.policies.elevator
            && tunables.tag_wakes == TagWakes::Single
        {
            all.iter_mut().for_each(|tags| tags.resize(1)); // one tag makes a batch
        }
        all
    }

    /// Returns the built-in elevator of the design, if it has one.
    ///
    /// # Panics
    ///
    /// Panics if the design has an elevator of the embedder's own.
    pub(super) fn elevator(&self, tags: &TagSetConfig) -> Option<Box<dyn Elevator + Send>> {
        match self.policies.elevator {
            ElevatorKind::None => None,
            ElevatorKind::Deadline(tunables) => {
                let deadline = Deadline::new(self.bio_requests(tags), tunables);
                Some(Box::new(deadline.merging(self.policies.merges)))
            }
            ElevatorKind::Kyber(tunables) => Some(Box::new(Kyber::new(&self.map, tunables))),
            ElevatorKind::Bfq(tunables) => {
                let bfq = Bfq::new(self.bio_requests(tags), self.limits.rotational, tunables);
                Some(Box::new(bfq.merging(self.policies.merges)))
            }
            ElevatorKind::Adios(tunables) => {
                let adios = Adios::new(self.bio_requests(tags), self.limits.rotational, tunables);
                Some(Box::new(adios.merging(self.policies.merges)))
            }
            ElevatorKind::Other => {
                panic!("an elevator of your own goes to RequestQueue::with_elevator")
            }
        }
    }

    fn has_elevator(&self) -> bool {
        self.policies.elevator != ElevatorKind::None
    }

    /// Checks that a queue can be built by this configuration on a host with these tags.
    ///
    /// # Panics
    ///
    /// Panics if it cannot: see [`RequestQueue::new`](super::RequestQueue::new).
    pub(super) fn check(&self, tags: &TagSetConfig) {
        let cpus = self.map.default.len();
        let hctxs = self.map.hctxs();
        for kind in self.map.kinds() {
            assert!(
                kind.is_empty() || kind.len() == cpus,
                "every kind of map serves {cpus} processors"
            );
        }
        assert!(hctxs <= usize::from(tags.hctxs), "the map names {hctxs} hardware queues");
        assert!(
            self.policies.model == Model::Multi || hctxs == 1,
            "the single-lock model has one hardware queue"
        );
        self.limits.check();
        assert!(self.run_batch_max > 0, "a run must be allowed to send something");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::DeadlineTunables;

    /// Of 20 scheduler tags, a batch is two: an eighth. Linux 6.11 to 6.19 wakes for each one.
    #[test]
    fn waiters_for_a_scheduler_tag_are_woken_as_the_design_says() {
        for (tag_wakes, woken) in [(TagWakes::Batches, None), (TagWakes::Single, Some(7))] {
            let deadline = DeadlineTunables { tag_wakes, ..DeadlineTunables::default() };
            let elevator = ElevatorKind::Deadline(deadline);
            let policies = Policies { elevator, ..Policies::NONE };
            let config = QueueConfig::new(1, 1, Limits::new(64), policies);
            let mut tags = config.sched_tags(&TagSetConfig::single(10)).remove(0);
            let taken: Vec<_> = core::iter::from_fn(|| tags.take(u32::MAX)).collect();
            assert_eq!(taken.len(), 20);
            tags.wait(7, false).unwrap();
            tags.put(taken[0]);
            assert_eq!(tags.next_woken(), woken, "{tag_wakes:?}");
            tags.put(taken[1]);
            assert_eq!(tags.next_woken(), woken.is_none().then_some(7), "{tag_wakes:?}");
        }
    }

    fn sizes(policies: Policies, reserved: u16) -> (usize, usize, usize, Vec<u32>) {
        let config = QueueConfig::new(2, 2, Limits::new(64), policies);
        assert_eq!((config.max_bios, config.max_waiters), (4096, 1024));
        assert_eq!((config.run_batch_max, config.timeout), (1024, Duration::from_secs(30)));
        let tags = TagSetConfig { hctxs: 2, depth: 10, reserved, ..TagSetConfig::single(10) };
        let sched_tags: Vec<_> =
            config.sched_tags(&tags).iter().map(|tags| tags.map().reserved()).collect();
        let woken = config.max_woken(&tags) / 1024;
        (config.requests(&tags), config.hashed_requests(&tags), woken, sched_tags)
    }

    #[test]
    fn a_configuration_reserves_what_its_documentation_says() {
        let hash = Policies { swq_merge: SwqMerge::Hash, ..Policies::NONE };
        // Without an elevator: the driver tags of two hardware queues, and two flush commands.
        assert_eq!(sizes(Policies::NONE, 2), (22, 0, 1, Vec::new()));
        assert_eq!(sizes(hash, 2), (22, 20, 1, Vec::new()));
        // Twice the depth, and the reserved tags. Each kind of tag has a line of waiters.
        assert_eq!(sizes(Policies::mq_deadline(), 2), (46, 0, 5, alloc::vec![2, 2]));
        assert_eq!(sizes(Policies::mq_deadline(), 0), (42, 0, 3, alloc::vec![0, 0]));
    }
}
