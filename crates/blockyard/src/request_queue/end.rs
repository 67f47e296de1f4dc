//! The way back: completions, requeues, and the runs and wake-ups that they cause.

use super::turn::Turn;
use super::{NotInFlight, RequestQueue, is_in_flight};
use crate::bio::Op;
use crate::driver::{Device, Driver, Finished, Outcome};
use crate::elevator::Place;
use crate::host::Host;
use crate::policy::{BusyTrack, Dispatch};
use crate::request::{Released, State};
use crate::status::Status;
use crate::time::Instant;
use crate::trace::{Action, Sink};
use crate::unit::{DriverTag, HctxId, RequestId};

impl RequestQueue {
    /// Takes back finished requests and runs marked hardware queues until neither is left: one turn
    /// of the loop of a queue that has its host to itself. Returns whether there was any work.
    /// Drain the ended bios and the wake-ups afterwards, as after any call.
    ///
    /// Queues that share a host take turns one by one: [`Host::next_starved`] may name any of them.
    ///
    /// # Panics
    ///
    /// Panics if the device reports a request that it does not own.
    pub fn turn<D: Device, S: Sink>(&mut self, host: &mut Host<D, S>, now: Instant) -> bool {
        let mut has_turned = false;
        loop {
            if let Some(finished) = host.driver.next_finished(now) {
                self.conclude(host, &finished, now).expect("the device owned it");
            } else if let Some((_, hctx)) = host.next_starved() {
                let _ = self.run(host, hctx, now);
            } else if let Some(run) = self.next_run(host, now) {
                let _ = self.run(host, run.hctx, now);
            } else {
                return has_turned;
            }
            has_turned = true;
        }
    }

    /// Handles a finished request: [`Self::complete`] or [`Self::requeue`], depending on its
    /// outcome.
    ///
    /// # Errors
    ///
    /// See [`Self::complete`].
    pub fn conclude<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        finished: &Finished,
        now: Instant,
    ) -> Result<(), NotInFlight> {
        Turn::new(self, host, now).conclude(finished)
    }

    /// Completes the request that the driver knows as `tag` of `hctx`. Its bios end with `status`.
    ///
    /// Then drain [`Self::next_ended`], [`Self::next_run`], [`Host::next_starved`] and
    /// [`Self::next_woken`]. `now` must not be earlier than in any previous call.
    ///
    /// # Errors
    ///
    /// Returns [`NotInFlight`] if the driver owns no such request of this queue: it has completed
    /// already, or never existed. Nothing changed.
    pub fn complete<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        hctx: HctxId,
        tag: DriverTag,
        status: Status,
        now: Instant,
    ) -> Result<(), NotInFlight> {
        self.complete_partly(host, hctx, tag, 0, status, now)
    }

    /// Like [`Self::complete`], for a request whose first `sectors` were transferred although the
    /// rest failed with `status`. Bios, or parts of bios, within these sectors end well, and the
    /// others with `status`. One that lies across the boundary fails, and nobody learns how much of
    /// it was transferred.
    ///
    /// # Errors
    ///
    /// See [`Self::complete`].
    pub fn complete_partly<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        hctx: HctxId,
        tag: DriverTag,
        sectors: u32,
        status: Status,
        now: Instant,
    ) -> Result<(), NotInFlight> {
        Turn::new(self, host, now).complete_partly(hctx, tag, sectors, status)
    }

    /// Requeues the request that the driver knows as `tag` of `hctx` and gives back undone. It goes
    /// to the front of the elevator, or of the dispatch list if it did not come from an elevator,
    /// and is prepared again before it is offered again. Drain the same calls as after
    /// [`Self::complete`].
    ///
    /// # Errors
    ///
    /// See [`Self::complete`].
    pub fn requeue<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        hctx: HctxId,
        tag: DriverTag,
        now: Instant,
    ) -> Result<(), NotInFlight> {
        Turn::new(self, host, now).requeue(hctx, tag)
    }

    /// Like [`Self::requeue`], for a request that stays prepared: the driver keeps its preparation
    /// under the request's queue and number ([`Issue::id`](crate::driver::Issue::id)), because the
    /// tag may be another one the next time. The request goes to the front of the dispatch list,
    /// where nothing merges with it, and is offered again without being prepared or finished in
    /// between.
    ///
    /// # Errors
    ///
    /// See [`Self::complete`].
    pub fn requeue_prepared<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        hctx: HctxId,
        tag: DriverTag,
        now: Instant,
    ) -> Result<(), NotInFlight> {
        Turn::new(self, host, now).requeue_prepared(hctx, tag)
    }

    /// Puts `id`, which is on no list, at the front of its hardware queue's dispatch list.
    fn dispatch_next(&mut self, id: RequestId) {
        debug_assert_eq!(
            self.requests[id].state(),
            State::Staged,
            "[request-life-cycle]: request {}",
            id.0
        );
        let hctx = self.requests[id].hctx;
        let mut list = core::mem::take(self.dispatch_list(hctx));
        list.push_front(&mut self.requests, id);
        *self.dispatch_list(hctx) = list;
    }
}

impl<D: Driver, S: Sink> Turn<'_, D, S> {
    pub(super) fn conclude(&mut self, finished: &Finished) -> Result<(), NotInFlight> {
        let Finished { hctx, tag, .. } = *finished;
        match finished.outcome {
            Outcome::Done(status) => self.complete_partly(hctx, tag, 0, status),
            Outcome::Partial { sectors, status } => {
                self.complete_partly(hctx, tag, sectors, status)
            }
            Outcome::Again => self.requeue(hctx, tag),
            Outcome::AgainPrepared => self.requeue_prepared(hctx, tag),
        }
    }

    fn complete_partly(
        &mut self,
        hctx: HctxId,
        tag: DriverTag,
        sectors: u32,
        status: Status,
    ) -> Result<(), NotInFlight> {
        let id = self.take_back(hctx, tag)?;
        self.host.driver.finish(self.queue.id, hctx, tag, &self.queue.requests[id]);
        self.finish_request(id, sectors, status);
        self.restart_waiting();
        Ok(())
    }

    fn requeue(&mut self, hctx: HctxId, tag: DriverTag) -> Result<(), NotInFlight> {
        let id = self.take_back(hctx, tag)?;
        self.host.driver.finish(self.queue.id, hctx, tag, &self.queue.requests[id]);
        self.queue.requests[id].prepared = false;
        self.stage_again(id);
        let rq = &mut self.queue.requests[id];
        // A flush, or data behind one, never was in the elevator: it goes to the front of the
        // dispatch list.
        match &mut self.queue.elevator {
            Some(elevator) if rq.sorted => {
                elevator.finished(id, rq, self.now);
                elevator.insert(&mut self.queue.requests, id, Place::Head, self.now);
            }
            _ => self.queue.dispatch_next(id),
        }
        self.restart_waiting();
        Ok(())
    }

    fn requeue_prepared(&mut self, hctx: HctxId, tag: DriverTag) -> Result<(), NotInFlight> {
        let id = self.take_back(hctx, tag)?;
        // Nothing may merge with a request that stays prepared, so it does not go back into the
        // elevator.
        self.stage_again(id);
        self.leave_elevator(id);
        self.queue.dispatch_next(id);
        self.restart_waiting();
        Ok(())
    }

    /// Takes the request behind a tag back from the driver ([first-end-wins]).
    fn take_back(&mut self, hctx: HctxId, tag: DriverTag) -> Result<RequestId, NotInFlight> {
        let id = self.queue.in_flight_id(self.host, hctx, tag).ok_or(NotInFlight)?;
        debug_assert!(self.queue.in_flight > 0, "requests in flight");
        self.queue.in_flight -= 1;
        Ok(id)
    }

    /// Stages a request that the driver gave back, without the tag and budget that only requests of
    /// the driver hold, and marks its hardware queue.
    fn stage_again(&mut self, id: RequestId) {
        debug_assert!(
            is_in_flight(&self.queue.requests[id]),
            "[request-life-cycle]: request {} is requeued",
            id.0
        );
        self.queue.requests[id].state = State::Staged;
        if let Some(wbt) = &mut self.queue.wbt {
            wbt.left_driver(id);
        }
        self.release_holdings(id);
        self.emit_request(Action::Requeue, id);
        self.queue.runs.mark(self.queue.requests[id].hctx, true);
    }

    /// Notifies the elevator that `id` came out of, if any, that `id` has finished.
    fn leave_elevator(&mut self, id: RequestId) {
        let Some(elevator) = &mut self.queue.elevator else { return };
        let rq = &mut self.queue.requests[id];
        if core::mem::take(&mut rq.sorted) {
            elevator.finished(id, rq, self.now);
        }
    }

    /// Moves `id`, of which the driver has transferred the first `done` sectors in any case, to its
    /// next step, or ends it. Its budget, driver tag and scheduler tag are given back, in this
    /// order.
    #[inline(always)]
    pub(super) fn finish_request(&mut self, id: RequestId, done: u32, status: Status) {
        debug_assert!(
            matches!(self.queue.requests[id].state(), State::Staged | State::InFlight),
            "[request-life-cycle]: request {} finishes twice",
            id.0
        );
        let rq = &mut self.queue.requests[id];
        rq.state = State::Complete;
        rq.done = done;
        self.emit_request(Action::Complete(status), id);
        // The elevator hears of it first: its token may be what the next request needs.
        self.leave_elevator(id);
        self.release_holdings(id);
        let rq = &self.queue.requests[id];
        if rq.op == Op::Flush {
            self.flush_ended(id, status); // of bios, the driver gets no flush
        } else if rq.steps.is_empty() {
            self.end_bios(id, status);
        } else {
            self.data_ended(id, status);
        }
    }

    /// Ends the bios of `id` with `status`, except those that were transferred. The request becomes
    /// idle.
    #[inline(always)]
    pub(super) fn end_bios(&mut self, id: RequestId, status: Status) {
        debug_assert!(!self.queue.is_flush(id), "a flush command carries no bio");
        let Released { first, done, hctx } = self.queue.requests.make_idle(id);
        self.queue.bios.end_chain(first, done, status);
        self.put_request_tag(hctx, id);
    }

    /// A request has left the driver: hardware queues and bios that waited for it may try again
    /// ([no-lost-wake-up]).
    #[inline(always)]
    pub(super) fn restart_waiting(&mut self) {
        // Budget makes room for one request at a time; before it, Linux ran every hardware queue
        // that waited.
        if self.queue.policies.dispatch == Dispatch::Budget {
            self.queue.runs.give_turn();
        } else {
            self.queue.runs.restart_all();
        }
        if self.queue.runs.is_paced() {
            self.follow_elevator();
        }
        if self.queue.policies.busy == BusyTrack::Bit {
            self.queue.hctxs.iter_mut().for_each(|hctx| hctx.busy.completed());
        }
        self.note_idle();
        // Queues of the host that the driver refused because it was full may try again, in turn.
        self.host.note_room(self.queue.id);
        if !self.queue.cursors.is_empty() {
            self.enter_waiting_splits();
        }
    }
}
