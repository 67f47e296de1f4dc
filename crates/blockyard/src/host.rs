//! The parts that the request queues of one host share: driver, driver tags, event sink.
//!
//! A host with one disk has one [`RequestQueue`](crate::request_queue::RequestQueue); a SCSI host
//! has one for each logical unit. Everything they share is here and is passed to their calls, so
//! that each has one owner and nothing is locked.
//!
//! A completion may make room for another queue than the one it belongs to. After each
//! [`complete`](crate::request_queue::RequestQueue::complete) the caller runs what
//! [`Host::next_starved`] names, and wakes whom
//! [`next_woken`](crate::request_queue::RequestQueue::next_woken) of the queue names.

use crate::policy::Restart;
use crate::tag::{TagSet, TagSetConfig};
use crate::unit::{HctxId, QueueId};
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

/// A driver, its tags, and the sink of events.
#[derive(Debug)]
pub struct Host<D, S = ()> {
    /// The device.
    pub driver: D,
    /// Receives every event of every queue.
    pub sink: S,
    pub(crate) tags: TagSet,
    seats: Seats,
    /// Hardware queues that the driver refused because the whole host was full. With
    /// [`Restart::InTurn`], also those that it refused for another reason.
    starved: VecDeque<(QueueId, HctxId)>,
    restart: Restart,
    /// Whether a request has completed since the host last refused one.
    has_room: bool,
    /// The queue of that request.
    ended: QueueId,
}

impl Host<(), ()> {
    /// The heap that a host with these tags takes, in bytes, whatever its driver and sink, which
    /// have their own. [`QueueConfig::memory`](crate::request_queue::QueueConfig::memory) is that
    /// of each queue.
    ///
    /// ```
    /// use blockyard::host::Host;
    /// use blockyard::tag::TagSetConfig;
    ///
    /// assert!(Host::memory(&TagSetConfig::single(32)) < 1500);
    /// ```
    #[must_use]
    pub fn memory(config: &TagSetConfig) -> usize {
        // In front of the shared slice are its two counts.
        let seats = (usize::from(config.queues) + 1 + 2 * size_of::<usize>())
            .next_multiple_of(align_of::<usize>());
        TagSet::heap(config) + starved_max(config) * size_of::<(QueueId, HctxId)>() + seats
    }
}

impl<D, S> Host<D, S> {
    /// Returns a host with tags as `config` says. Reserves all its memory.
    ///
    /// # Panics
    ///
    /// Panics if `config` is impossible; see [`TagSet::new`].
    #[must_use]
    pub fn new(driver: D, sink: S, config: TagSetConfig) -> Self {
        Self {
            driver,
            sink,
            tags: TagSet::new(config),
            seats: Seats((0..=config.queues).map(|_| AtomicBool::new(false)).collect()),
            starved: VecDeque::with_capacity(starved_max(&config)),
            restart: Restart::Own,
            has_room: false,
            ended: QueueId(0),
        }
    }

    /// The driver tags.
    #[must_use]
    pub const fn tags(&self) -> &TagSet {
        &self.tags
    }

    /// Lets no queue of the host hold more than `tags` driver tags of a hardware queue from now on,
    /// at least 1. So disks have tags of their own, as the ports of an AHCI controller do: two
    /// disks with 32 each are two queues of a host with 64.
    ///
    /// # Panics
    ///
    /// Panics if `tags` is 0.
    pub fn limit_queues(&mut self, tags: u16) {
        assert!(tags > 0, "a queue without tags waits forever");
        self.tags.limit_queues(tags.into());
    }

    /// Returns a hardware queue that stopped for lack of a shared resource which has since come
    /// free: run it before the next call. Drain this after every call on a queue of the host.
    pub fn next_starved(&mut self) -> Option<(QueueId, HctxId)> {
        if self.has_room && !self.starved.is_empty() {
            return match self.restart {
                Restart::Own => self.starved.pop_front(),
                Restart::InTurn => self.next_in_turn(),
            };
        }
        self.tags.next_starved()
    }

    /// Returns the hardware queue whose disk comes next behind the one whose request has ended. The
    /// room is that of one request, so it is used up.
    fn next_in_turn(&mut self) -> Option<(QueueId, HctxId)> {
        self.has_room = false;
        // Of three disks, after a request of 1 the order is 2, 0, 1.
        let queues = self.tags.config().queues;
        let before = queues - self.ended.0 - 1;
        let at =
            (0..self.starved.len()).min_by_key(|at| (self.starved[*at].0.0 + before) % queues)?;
        self.starved.remove(at)
    }

    /// Takes the number `id` for a queue, until the queue drops the [`Seat`].
    ///
    /// # Panics
    ///
    /// Panics if `id` is out of range, or has a queue, or had one that left requests behind.
    pub(crate) fn take_seat(&self, id: QueueId) -> Seat {
        let queues = self.tags.config().queues;
        assert!(id.0 < queues, "{id:?} on a host for {queues} queues");
        // Their completions would end requests of the new queue.
        assert!(!self.tags.has_requests_of(id), "{id:?} has requests of a queue that was dropped");
        let was_taken = self.seats.0[id.index()].swap(true, Ordering::Relaxed);
        assert!(!was_taken, "{id:?} is the number of another queue of this host");
        Seat { id, seats: Arc::clone(&self.seats.0) }
    }

    /// Registers `hctx`, which was refused because the host is full, or for any reason under
    /// [`Restart::InTurn`]. Hardware queues that have waited longer stay ahead of it.
    pub(crate) fn register_starved(&mut self, queue: QueueId, hctx: HctxId, restart: Restart) {
        // One queue with this policy is enough: all take part in the round.
        if restart == Restart::InTurn {
            self.restart = restart;
        }
        self.has_room = false; // whoever was to be named next would be refused, too
        if !self.starved.contains(&(queue, hctx)) {
            self.starved.push_back((queue, hctx));
        }
    }

    /// Whether the disks have their turns.
    pub(crate) fn restarts_in_turn(&self) -> bool {
        self.restart == Restart::InTurn
    }

    /// A run of `hctx` begins. It answers the registration.
    pub(crate) fn begin_turn(&mut self, queue: QueueId, hctx: HctxId) {
        self.starved.retain(|other| *other != (queue, hctx));
    }

    /// Leaves the room of a completion to the next disk, unless the run that was to use it was
    /// refused and has registered `hctx` again.
    pub(crate) fn pass_room(&mut self, queue: QueueId, hctx: HctxId) {
        if !self.starved.contains(&(queue, hctx)) {
            self.note_room(queue);
        }
    }

    /// Notes that a request of `queue` completed: the registered hardware queues may try again, one
    /// after the other, until the host refuses one; with [`Restart::InTurn`], one of them.
    pub(crate) const fn note_room(&mut self, queue: QueueId) {
        self.has_room = true;
        self.ended = queue;
    }
}

/// The most hardware queues that a full host has refused.
fn starved_max(config: &TagSetConfig) -> usize {
    usize::from(config.queues) * usize::from(config.hctxs)
}

/// By number of the queue, whether a queue has it; and at the end, whether the host is gone.
#[derive(Debug)]
struct Seats(Arc<[AtomicBool]>);

impl Drop for Seats {
    fn drop(&mut self) {
        self.0[self.0.len() - 1].store(true, Ordering::Relaxed);
    }
}

/// The right of one queue to its number on its host.
#[derive(Debug)]
pub(crate) struct Seat {
    id: QueueId,
    seats: Arc<[AtomicBool]>,
}

impl Seat {
    /// Whether this is a seat on `host`.
    pub(crate) fn is_on<D, S>(&self, host: &Host<D, S>) -> bool {
        Arc::ptr_eq(&self.seats, &host.seats.0)
    }

    /// Whether the host, and with it the driver, was dropped.
    pub(crate) fn is_orphaned(&self) -> bool {
        self.seats[self.seats.len() - 1].load(Ordering::Relaxed)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats[self.id.index()].store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// They go in the order in which the host refused them, each once, from a completion until the
    /// host refuses one again. Behind them come those that wait for tags.
    #[test]
    fn those_that_a_full_host_refused_go_in_turn_when_there_is_room() {
        let config = TagSetConfig { hctxs: 2, queues: 2, ..TagSetConfig::single(1) };
        let mut host = Host::new((), (), config);
        let [a, b, c] =
            [(0, 1), (1, 0), (0, 0)].map(|(queue, hctx)| (QueueId(queue), HctxId(hctx)));
        host.tags.starve(c.0, c.1, false);
        assert_eq!((host.next_starved(), host.next_starved()), (Some(c), None), "a tag is free");
        for (queue, hctx) in [a, b, a] {
            host.register_starved(queue, hctx, Restart::Own);
        }
        host.tags.starve(c.0, c.1, false);
        assert_eq!((host.next_starved(), host.next_starved()), (Some(c), None), "no room yet");
        host.note_room(QueueId(0));
        host.tags.starve(c.0, c.1, false);
        assert_eq!([(); 4].map(|()| host.next_starved()), [Some(a), Some(b), Some(c), None]);
        [a, b]
            .into_iter()
            .for_each(|(queue, hctx)| host.register_starved(queue, hctx, Restart::Own));
        host.note_room(QueueId(0));
        assert_eq!(host.next_starved(), Some(a));
        host.register_starved(a.0, a.1, Restart::Own);
        assert_eq!(host.next_starved(), None, "refused again");
        host.note_room(QueueId(0));
        assert_eq!([(); 3].map(|()| host.next_starved()), [Some(b), Some(a), None]);
    }

    /// Disk 0 was refused three times, then disk 2. After a request of disk 0 it is the turn of
    /// disk 2, after one of disk 1 too, after one of disk 2 that of disk 0. Each makes room for
    /// one.
    #[test]
    fn a_completion_makes_room_for_the_next_disk_of_the_round() {
        let config = TagSetConfig { hctxs: 3, queues: 3, ..TagSetConfig::single(1) };
        for (ended, named) in [(0, (2, 0)), (1, (2, 0)), (2, (0, 0))] {
            let mut host = Host::new((), (), config);
            for (queue, hctx) in [(0, 0), (0, 1), (0, 2), (2, 0)] {
                host.register_starved(QueueId(queue), HctxId(hctx), Restart::InTurn);
            }
            host.note_room(QueueId(ended));
            let named = Some((QueueId(named.0), HctxId(named.1)));
            assert_eq!([host.next_starved(), host.next_starved()], [named, None], "after {ended}");
        }
    }
}
