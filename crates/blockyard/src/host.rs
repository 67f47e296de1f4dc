//! What the request queues of one host share: its driver, its tags, the sink of their events.
//!
//! A host with one disk has one [`RequestQueue`](crate::request_queue::RequestQueue); a SCSI host
//! has one for each logical unit. Everything they share is here and is passed to their calls, so
//! that each has one owner and nothing is locked.
//!
//! A completion may make room for another queue than the one it belongs to. After each
//! [`complete`](crate::request_queue::RequestQueue::complete) the caller runs what
//! [`Host::next_starved`] names, and wakes whom [`Host::next_woken`] names.

use crate::tag::{TagSet, TagSetConfig};
use crate::unit::{HctxId, QueueId};
use alloc::collections::VecDeque;

/// A driver, its tags, and the sink of events.
#[derive(Debug)]
pub struct Host<D, S = ()> {
    /// The device.
    pub driver: D,
    /// Receives every event of every queue.
    pub sink: S,
    pub(crate) tags: TagSet,
    /// Hardware queues that the driver refused because the whole host was full.
    starved: VecDeque<(QueueId, HctxId)>,
    /// Whether a request has completed since the host last refused one.
    has_room: bool,
}

impl<D, S> Host<D, S> {
    /// Returns a host with tags as `config` says. Reserves all its memory.
    ///
    /// # Panics
    ///
    /// Panics if `config` is impossible; see [`TagSet::new`].
    #[must_use]
    pub fn new(driver: D, sink: S, config: TagSetConfig) -> Self {
        let pairs = usize::from(config.queues) * usize::from(config.hctxs);
        Self {
            driver,
            sink,
            tags: TagSet::new(config),
            starved: VecDeque::with_capacity(pairs),
            has_room: false,
        }
    }

    /// The driver tags.
    #[must_use]
    pub const fn tags(&self) -> &TagSet {
        &self.tags
    }

    /// Returns a hardware queue that stopped for lack of a shared resource which has since come
    /// free: run it before the next call. Drain this after every call on a queue of the host.
    pub fn next_starved(&mut self) -> Option<(QueueId, HctxId)> {
        if self.has_room
            && let Some(first) = self.starved.pop_front()
        {
            return Some(first);
        }
        self.tags.next_starved()
    }

    /// Returns a submitter that waited for a driver tag and should submit again.
    pub fn next_woken(&mut self) -> Option<u64> {
        self.tags.next_woken()
    }

    /// Registers `hctx`, which was refused because the host is full. Hardware queues that have
    /// waited longer stay ahead of it.
    pub(crate) fn starve(&mut self, queue: QueueId, hctx: HctxId) {
        self.has_room = false;
        if !self.starved.contains(&(queue, hctx)) {
            self.starved.push_back((queue, hctx));
        }
    }

    /// Notes that a request of some queue completed: the registered hardware queues may try again,
    /// in turn, until the host refuses one.
    pub(crate) const fn note_room(&mut self) {
        self.has_room = true;
    }
}
