//! The heap that a configuration takes.

use super::QueueConfig;
use super::cursor::Cursor;
use super::run_list::RunList;
use crate::elevator::adios::Adios;
use crate::elevator::bfq::Bfq;
use crate::elevator::deadline::Deadline;
use crate::elevator::kyber::Kyber;
use crate::hardware_queue::HardwareQueue;
use crate::plug::Plug;
use crate::policy::ElevatorKind;
use crate::request::{Bios, Requests};
use crate::sector_hash::HashNodes;
use crate::software_queue::SoftwareQueue;
use crate::tag::{TagPool, TagSetConfig};
use crate::wbt::Throttle;

impl QueueConfig {
    /// The heap that a queue with this configuration takes on a host with these tags, in bytes: all
    /// of it, from [`RequestQueue::new`](super::RequestQueue::new) to its drop, with the
    /// configuration's own maps. It is exact, for maps as
    /// [`QueueMap`](crate::hardware_queue::QueueMap) makes them.
    ///
    /// What an allocator adds to each of the pieces comes on top. So does what others own: the host
    /// ([`Host::memory`](crate::host::Host::memory)), the driver, the payload, and an elevator of
    /// the embedder's own.
    ///
    /// # Defaults for small systems
    ///
    /// [`QueueConfig::new`] has room for the submitters of a server: with mq-deadline and 32 tags a
    /// queue takes 349 kB on a 64-bit machine. Of these, each bio of [`Self::max_bios`] takes 72
    /// bytes and each waiter of [`Self::max_waiters`] 40 (16 without an elevator, for which the
    /// host takes 16 more); a request takes 112 (184 with mq-deadline). A small system sets
    /// `max_bios` to the most bios that it has at the same time, counting the parts of split ones,
    /// and `max_waiters` to 0 if no submitter waits.
    ///
    /// ```
    /// use blockyard::host::Host;
    /// use blockyard::limits::Limits;
    /// use blockyard::policy::Policies;
    /// use blockyard::request_queue::QueueConfig;
    /// use blockyard::tag::TagSetConfig;
    ///
    /// // A card with two slots, at most eight bios, and no submitter that waits.
    /// let tags = TagSetConfig { max_waiters: 0, ..TagSetConfig::single(2) };
    /// let kb = |policies| {
    ///     let usual = QueueConfig::new(1, 1, Limits::new(1 << 21), policies);
    ///     let small = QueueConfig { max_bios: 8, max_waiters: 0, ..usual };
    ///     (small.memory(&tags) + Host::memory(&tags)) / 1000
    /// };
    /// # #[cfg(target_pointer_width = "64")]
    /// assert_eq!([Policies::NONE, Policies::mq_deadline()].map(kb), [1, 3]);
    /// ```
    #[must_use]
    pub fn memory(&self, tags: &TagSetConfig) -> usize {
        let cpus = self.map.default.len();
        let ctxs = self.map.ctxs();
        let hctxs = self.map.hctxs();
        // Each processor feeds one hardware queue in each kind of map that is in use.
        let feeders = (0..hctxs).map(|hctx| {
            let of_all = self.map.kinds().into_iter().flatten();
            of_all.filter(|of| of.index() == hctx).count()
        });
        let of_feeders: usize = feeders.map(HardwareQueue::heap).sum();
        let ctx = size_of::<SoftwareQueue>() + SoftwareQueue::heap(self.policies.swq_merge);
        let waiters = self.max_woken(tags) + self.max_waiters as usize;
        let throttle = self.policies.wbt.map_or(0, |_| Throttle::heap(self.max_waiters));
        self.map.heap()
            + Requests::heap(self.requests(tags))
            + Bios::heap(self.max_bios)
            + self.max_bios as usize * size_of::<Cursor>()
            + cpus * size_of::<Plug>()
            + ctxs * (ctx + size_of::<u32>())
            + HashNodes::heap(self.hashed_requests(tags))
            + hctxs * size_of::<HardwareQueue>()
            + of_feeders
            + RunList::heap(hctxs)
            + waiters * size_of::<u64>()
            + throttle
            + self.heap_of_elevator(tags)
    }

    /// The heap of the elevator and its tags.
    fn heap_of_elevator(&self, tags: &TagSetConfig) -> usize {
        let elevator = match &self.policies.elevator {
            ElevatorKind::None => return 0,
            ElevatorKind::Deadline(tunables) => Deadline::heap(self.bio_requests(tags), tunables),
            ElevatorKind::Kyber(tunables) => Kyber::heap(&self.map, tunables),
            ElevatorKind::Adios(_) => Adios::heap(self.bio_requests(tags)),
            ElevatorKind::Bfq(_) => Bfq::heap(self.bio_requests(tags)),
            ElevatorKind::Other => 0,
        };
        let depth = self.tags_per_hctx(tags);
        let reserved = u32::from(tags.reserved);
        let pool = size_of::<TagPool>() + TagPool::heap(depth, reserved, self.max_waiters);
        elevator + self.map.hctxs() * pool
    }
}
