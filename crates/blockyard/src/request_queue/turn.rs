//! A queue's turn at its host, and the work that several stages do in a turn.

use super::number::driver_tag;
use super::{IDLE_AFTER, RequestQueue};
use crate::driver::Driver;
use crate::host::Host;
use crate::time::Instant;
use crate::trace::{Action, Event, Sink};
use crate::unit::{HctxId, RequestId};

/// A queue's turn at its host: one call of the queue, at one instant. The stages are methods of the
/// turn; what needs neither host nor instant is a method of the queue.
#[derive(Debug)]
pub(super) struct Turn<'a, D, S> {
    pub(super) queue: &'a mut RequestQueue,
    pub(super) host: &'a mut Host<D, S>,
    pub(super) now: Instant,
}

impl<'a, D, S> Turn<'a, D, S> {
    pub(super) fn new(queue: &'a mut RequestQueue, host: &'a mut Host<D, S>, now: Instant) -> Self {
        queue.check_host(host);
        Self { queue, host, now }
    }
}

impl<D: Driver, S: Sink> Turn<'_, D, S> {
    /// A queue that has become empty counts as idle after a while. This only matters to the queues
    /// with which it shares tags.
    pub(super) fn note_idle(&mut self) {
        debug_assert!(
            self.queue.held >= self.queue.in_flight,
            "{} requests held, {} in flight",
            self.queue.held,
            self.queue.in_flight
        );
        if self.host.tags.config().queues > 1 {
            let holds_nothing = self.queue.held == 0;
            self.queue.idle_at = if holds_nothing { self.now + IDLE_AFTER } else { Instant::MAX };
        }
    }

    /// Gives back the tag of `hctx` that belongs to the number `id`, and wakes a submitter that
    /// waits for it.
    #[inline(always)]
    pub(super) fn put_request_tag(&mut self, hctx: HctxId, id: RequestId) {
        debug_assert!(
            self.queue.held > self.queue.in_flight,
            "[request-life-cycle]: request {} is not held",
            id.0
        );
        if self.queue.wbt.is_some() {
            self.queue.end_throttled(id, self.now);
        }
        self.queue.held -= 1;
        let tag = self.queue.tag_on(hctx, id);
        match self.queue.sched_tags.get_mut(hctx.index()) {
            Some(tags) => {
                if tags.put(tag) {
                    self.queue.woken.extend(core::iter::from_fn(|| tags.next_woken()));
                }
            }
            None => self.host.tags.put(hctx, driver_tag(tag)),
        }
    }

    /// Reports `action` on `id` to the sink.
    #[inline(always)] // each caller knows its action
    pub(super) fn emit_request(&mut self, action: Action, id: RequestId) {
        if self.host.sink.listens() {
            let rq = &self.queue.requests[id];
            self.host.sink.event(&Event {
                at: self.now,
                action,
                queue: self.queue.id,
                cpu: rq.cpu,
                hctx: rq.hctx,
                op: rq.op,
                flags: rq.flags,
                sector: rq.sector,
                sectors: rq.sectors,
                request: Some((id, rq)),
            });
        }
    }
}
