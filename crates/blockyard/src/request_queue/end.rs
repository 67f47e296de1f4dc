//! The way back: completions, requeues, and the runs and submitters that can continue because of them.

use super::{NotInFlight, RequestQueue, is_in_flight};
use crate::driver::{Device, Driver, Finished, Outcome};
use crate::elevator::Place;
use crate::host::Host;
use crate::policy::{BusyTrack, Dispatch};
use crate::request::State;
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
        let Finished { hctx, tag, .. } = *finished;
        match finished.outcome {
            Outcome::Done(status) => self.complete(host, hctx, tag, status, now),
            Outcome::Partial { sectors, status } => {
                self.complete_partly(host, hctx, tag, sectors, status, now)
            }
            Outcome::Again => self.requeue(host, hctx, tag, now),
            Outcome::AgainPrepared => self.requeue_prepared(host, hctx, tag, now),
        }
    }

    /// Completes the request that the driver knows as `tag` of `hctx`. Its bios end with `status`.
    ///
    /// Then drain [`Self::next_ended`], [`Self::next_run`], [`Host::next_starved`] and the wake-ups
    /// ([`Self::next_woken`], [`Host::next_woken`]). `now` must not be earlier than in any previous
    /// call.
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
        let id = self.take_back(host, hctx, tag)?;
        host.driver.finish(self.id, hctx, tag, &self.requests[id]);
        self.requests[id].done = sectors;
        self.finish(host, id, status, now);
        self.restart_waiting(host, now);
        Ok(())
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
        let id = self.take_back(host, hctx, tag)?;
        host.driver.finish(self.id, hctx, tag, &self.requests[id]);
        self.requests[id].prepared = false;
        self.stage_again(host, id, now);
        let rq = &mut self.requests[id];
        match &mut self.elevator {
            Some(elevator) if rq.sorted => {
                rq.sorted = false;
                elevator.finished(rq, now);
                elevator.insert(&mut self.requests, id, Place::Head, now);
            }
            _ => self.dispatch_next(id),
        }
        self.restart_waiting(host, now);
        Ok(())
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
        let id = self.take_back(host, hctx, tag)?;
        self.stage_again(host, id, now);
        self.leave_elevator(id, now);
        self.dispatch_next(id);
        self.restart_waiting(host, now);
        Ok(())
    }

    /// Takes the request behind a tag back from the driver ([first-end-wins]).
    fn take_back<D, S>(
        &mut self,
        host: &Host<D, S>,
        hctx: HctxId,
        tag: DriverTag,
    ) -> Result<RequestId, NotInFlight> {
        let id = self.in_flight_id(host, hctx, tag).ok_or(NotInFlight)?;
        debug_assert!(self.in_flight > 0, "requests in flight");
        self.in_flight -= 1;
        Ok(id)
    }

    /// Stages a request that the driver gave back, without the tag and budget that only requests of
    /// the driver hold, and marks its hardware queue.
    fn stage_again<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        id: RequestId,
        now: Instant,
    ) {
        debug_assert!(
            is_in_flight(&self.requests[id]),
            "[request-life-cycle]: request {} is requeued",
            id.0
        );
        self.requests[id].state = State::Staged;
        self.put_budget(host, id);
        self.put_waiting_tag(host, id);
        self.emit(host, now, Action::Requeue, id);
        self.runs.mark(self.requests[id].hctx, true);
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

    /// Notifies the elevator that `id` came out of, if any, that `id` has finished.
    fn leave_elevator(&mut self, id: RequestId, now: Instant) {
        let rq = &mut self.requests[id];
        if let Some(elevator) = &mut self.elevator
            && core::mem::take(&mut rq.sorted)
        {
            elevator.finished(rq, now);
        }
    }

    /// Moves `id`, which the driver is done with, to its next step, or ends it. Its budget, driver
    /// tag and scheduler tag are given back, in this order.
    pub(super) fn finish<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        id: RequestId,
        status: Status,
        now: Instant,
    ) {
        debug_assert!(
            matches!(self.requests[id].state(), State::Staged | State::InFlight),
            "[request-life-cycle]: request {} finishes twice",
            id.0
        );
        self.requests[id].state = State::Complete;
        self.emit(host, now, Action::Complete(status), id);
        self.leave_elevator(id, now);
        self.put_budget(host, id);
        self.put_waiting_tag(host, id);
        if self.is_flush(id) {
            self.flush_ended(host, id, status, now);
        } else if self.requests[id].steps.is_empty() {
            self.end_bios(host, id, status);
        } else {
            self.data_ended(host, id, status, now);
        }
    }

    /// Ends the bios of `id` with `status`, except those that were transferred. The request becomes
    /// idle.
    pub(super) fn end_bios<D, S>(&mut self, host: &mut Host<D, S>, id: RequestId, status: Status) {
        debug_assert!(!self.is_flush(id), "a flush command carries no bio");
        let first = self.requests.release(id);
        self.bios.end_chain(first, core::mem::take(&mut self.requests[id].done), status);
        self.put_request_tag(host, id);
    }

    /// A request has left the driver: hardware queues and bios that waited for it may try again
    /// ([no-lost-wake-up]).
    pub(super) fn restart_waiting<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        now: Instant,
    ) {
        if self.policies.dispatch == Dispatch::Budget {
            self.runs.give_turn();
        } else {
            self.runs.restart_all();
        }
        if self.policies.busy == BusyTrack::Bit {
            self.hctxs.iter_mut().for_each(|hctx| hctx.busy.completed());
        }
        self.note_idle(host, now);
        host.note_room();
        if !self.cursors.is_empty() {
            self.enter_waiting_splits(host, now);
        }
    }
}
