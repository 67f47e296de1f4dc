//! The throttle of writeback at each stage: the place of a bio in its line, and the ends of reads.
//!
//! The rule is that of `wbt`.

use super::number::request_id;
use super::turn::Turn;
use super::{Class, RequestQueue, is_in_flight};
use crate::bio::Bio;
use crate::driver::Driver;
use crate::request::{BioId, State};
use crate::tag::Full;
use crate::time::Instant;
use crate::trace::Sink;
use crate::unit::RequestId;

impl RequestQueue {
    /// Notes that a writer to this disk pauses because it dirties pages faster than they are
    /// written back: for a second, writeback may have as many requests in flight as a sync. Without
    /// a throttle of writeback this does nothing. `now` must not be earlier than in any previous
    /// call.
    pub fn note_paused_writer(&mut self, now: Instant) {
        if let Some(wbt) = &mut self.wbt {
            wbt.note_pause(now);
        }
    }

    /// The end of the throttle's window; [`Instant::MAX`]: there is none.
    #[inline]
    pub(super) fn window_ends(&self) -> Instant {
        self.wbt.as_ref().map_or(Instant::MAX, |wbt| wbt.window_ends())
    }

    #[cold]
    pub(super) fn end_window(&mut self, now: Instant) {
        if let Some(wbt) = &mut self.wbt {
            wbt.end_window(now, &mut self.woken);
            self.mark_waiting_split();
        }
    }

    /// Whether `bio`, which was refused, would find no place in its line.
    pub(super) fn is_throttled(&self, bio: &Bio, now: Instant) -> bool {
        let Some(wbt) = &self.wbt else { return false };
        let class = Class::of(bio.op, bio.flags);
        class.is_some_and(|class| !wbt.admits(class, bio.flags, true, now))
    }

    /// Lets the submitter of `bio` sleep until there is a place.
    pub(super) fn wait_for_place(
        &mut self,
        bio: &Bio,
        waiter: u64,
        now: Instant,
    ) -> Result<(), Full> {
        match (&mut self.wbt, Class::of(bio.op, bio.flags)) {
            (Some(wbt), Some(class)) => wbt.wait(class, bio.flags, waiter, now),
            _ => unreachable!("only throttled bios wait for a place"),
        }
    }

    /// Checks that each throttled request has a place, for [`Self::self_check`].
    pub(super) fn check_throttled(&self) {
        let Some(wbt) = &self.wbt else { return };
        for class in [Class::Writeback, Class::Discard] {
            let requests = (0..self.requests.capacity()).map(|id| &self.requests[request_id(id)]);
            let held = requests
                .filter(|rq| rq.state != State::Idle && Class::of(rq.op, rq.flags) == Some(class));
            assert_eq!(held.count(), wbt.in_flight(class) as usize, "places of {class:?}");
        }
    }
}

impl<D: Driver, S: Sink> Turn<'_, D, S> {
    /// Whether `carried`, which joined no request, has a place in its line.
    pub(super) fn throttle_admits(&mut self, bio: BioId, carried: &Bio) -> bool {
        let begins = self.queue.bios.begins_bio(bio);
        let Some(wbt) = &mut self.queue.wbt else { return true };
        if carried.op.is_read() {
            wbt.note_read(self.now);
            return true;
        }
        let class = Class::of(carried.op, carried.flags);
        class.is_none_or(|class| wbt.admits(class, carried.flags, begins, self.now))
    }

    /// Gives `carried`, which has got a request, its place.
    pub(super) fn note_throttled(&mut self, bio: BioId, carried: &Bio) {
        let begins = self.queue.bios.begins_bio(bio);
        let class = Class::of(carried.op, carried.flags);
        if let (Some(wbt), Some(class)) = (&mut self.queue.wbt, class) {
            wbt.entered(class, begins, self.now);
        }
    }

    /// Takes the time of `id` in the device, which is done with it.
    pub(super) fn sample_end(&mut self, id: RequestId) {
        let rq = &self.queue.requests[id];
        let was_issued = is_in_flight(rq);
        let Some(wbt) = &mut self.queue.wbt else { return };
        wbt.left_driver(id);
        if was_issued {
            wbt.sample(rq.op, self.now.since(rq.times.issued));
        }
    }

    /// Takes back the place of `id`, which has ended or joined another request, and wakes those
    /// that wait for one.
    pub(super) fn give_place_back(&mut self, id: RequestId) {
        let Some(wbt) = &mut self.queue.wbt else { return };
        let rq = &self.queue.requests[id];
        if rq.op.is_read() {
            wbt.note_read(self.now);
        } else if let Some(class) = Class::of(rq.op, rq.flags) {
            wbt.ended(class, self.now, &mut self.queue.woken);
        }
    }
}
