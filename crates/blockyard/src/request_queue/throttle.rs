//! The throttle of writeback at each stage: the place of a bio in its line, and the ends of reads.
//!
//! The rule is that of `wbt`.

use super::number::request_id;
use super::turn::Turn;
use super::{Class, RequestQueue};
use crate::bio::{Bio, Flags, Op};
use crate::driver::Driver;
use crate::request::{BioId, Request, State};
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

    /// Ends the throttle's window if it is over, and sets the timer for the next end.
    pub(super) fn end_window(&mut self, now: Instant) {
        let Some(wbt) = &mut self.wbt else { return };
        if wbt.window_ends() <= now {
            wbt.end_window(now, &mut self.woken);
            self.mark_waiting_split();
        }
        self.watch_window();
    }

    /// Sets the timer to fire no later than the window ends.
    fn watch_window(&mut self) {
        if let Some(wbt) = &self.wbt {
            self.timer = self.timer.min(wbt.window_ends());
        }
    }

    /// Notes that the driver owns `id`.
    #[cold]
    pub(super) fn note_issued(&mut self, id: RequestId, now: Instant) {
        if let Some(wbt) = &mut self.wbt {
            wbt.issued(id, self.requests[id].op, now);
        }
    }

    /// Takes the time of `id` in the device, if it was there, and takes its place back: it has
    /// ended or joined another request.
    #[inline(never)]
    pub(super) fn end_throttled(&mut self, id: RequestId, now: Instant) {
        let Some(wbt) = &mut self.wbt else { return };
        let Request { op, flags, times, .. } = self.requests[id];
        if times.issued > Instant::ZERO {
            wbt.left_driver(id);
            wbt.sample(op, now.since(times.issued));
        }
        if op.is_read() {
            wbt.note_read(now);
        }
        self.put_place(op, flags, now);
    }

    /// Takes the place of a bio or request back, if it has one, and wakes those that wait for it.
    pub(super) fn put_place(&mut self, op: Op, flags: Flags, now: Instant) {
        if let (Some(wbt), Some(class)) = (&mut self.wbt, Class::of(op, flags)) {
            wbt.ended(class, now, &mut self.woken);
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
            (Some(wbt), Some(class)) => wbt.wait(class, bio.flags, waiter, now)?,
            _ => unreachable!("only throttled bios wait for a place"),
        }
        self.watch_window();
        Ok(())
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
    /// Gives `carried`, which joined no request, its place. Returns whether there is one, or none
    /// is needed.
    #[inline(never)]
    pub(super) fn take_place(&mut self, bio: BioId, carried: &Bio) -> bool {
        let begins = self.queue.bios.begins_bio(bio);
        let Some(wbt) = &mut self.queue.wbt else { return true };
        if carried.op.is_read() {
            wbt.note_read(self.now);
        }
        let Some(class) = Class::of(carried.op, carried.flags) else { return true };
        let admitted = wbt.admits(class, carried.flags, begins, self.now);
        if admitted {
            wbt.entered(class, begins, self.now);
            self.queue.watch_window();
        }
        admitted
    }
}
