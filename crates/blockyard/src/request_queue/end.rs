//! The way back: completions, requeues, and the runs and submitters that can continue because of them.

use super::{NotInFlight, RequestQueue, is_in_flight};
use crate::driver::{Device, Driver, Finished, Outcome};
use crate::elevator::Place;
use crate::host::Host;
use crate::policy::{BusyTrack, Dispatch};
use crate::request::State;
use crate::status::Status;
use crate::tag::TagSet;
use crate::time::Instant;
use crate::trace::{Action, Sink};
use crate::unit::{DriverTag, HctxId, RequestId};

impl RequestQueue {
    /// A turn of the loop of a queue that has its host to itself: what the device is done with is taken
    /// back, and what is left to be run is run, until neither is there. Whether there was anything. What
    /// has ended and who is woken is to be asked for as after any call.
    ///
    /// Queues that share a host take turns one by one: [`Host::next_starved`] may name any of them.
    ///
    /// # Panics
    ///
    /// If the device names a request that it does not own.
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

    /// What a device named as finished: [`Self::complete`] or [`Self::requeue`], as it ended.
    ///
    /// # Errors
    ///
    /// As [`Self::complete`].
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

    /// The driver is done with the request it knows as `tag` of `hctx`; its bios end with `status`.
    ///
    /// Then drain [`Self::next_ended`], [`Self::next_run`], [`Host::next_starved`] and the wake-ups
    /// ([`Self::next_woken`], [`Host::next_woken`]). `now` is not earlier than in any call before.
    ///
    /// # Errors
    ///
    /// [`NotInFlight`] if the driver owns no such request of this queue: it completed already, or
    /// never was. Nothing changed.
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

    /// As [`Self::complete`], of a request whose first `sectors` are done well although the rest has
    /// failed with `status`: bios, or parts of such, that lie within these end well, the others with
    /// `status`. One that lies across fails: what of it is done, nobody is told.
    ///
    /// # Errors
    ///
    /// As [`Self::complete`].
    pub fn complete_partly<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        hctx: HctxId,
        tag: DriverTag,
        sectors: u32,
        status: Status,
        now: Instant,
    ) -> Result<(), NotInFlight> {
        let id = self.take_back(hctx, tag, &host.tags)?;
        host.driver.finish(self.id, hctx, tag, &self.requests[id]);
        self.requests[id].done = sectors;
        self.finish(host, id, status, now);
        self.go_on(host, now);
        Ok(())
    }

    /// The driver gives back the request it knows as `tag` of `hctx` undone: it goes to the front
    /// of the elevator, or of the dispatch list where it did not come from one, and is prepared
    /// anew before it is offered again. Drain what [`Self::complete`] says.
    ///
    /// # Errors
    ///
    /// As [`Self::complete`].
    pub fn requeue<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        hctx: HctxId,
        tag: DriverTag,
        now: Instant,
    ) -> Result<(), NotInFlight> {
        let id = self.take_back(hctx, tag, &host.tags)?;
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
        self.go_on(host, now);
        Ok(())
    }

    /// As [`Self::requeue`], for a request that stays prepared: the driver keeps what it has made
    /// of it under the request's queue and number ([`Issue::id`](crate::driver::Issue::id)), as the
    /// tag may be another one the next time. It goes to the front of the dispatch list, where
    /// nothing merges with it, and is offered again without being prepared or finished in between.
    ///
    /// # Errors
    ///
    /// As [`Self::complete`].
    pub fn requeue_prepared<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        hctx: HctxId,
        tag: DriverTag,
        now: Instant,
    ) -> Result<(), NotInFlight> {
        let id = self.take_back(hctx, tag, &host.tags)?;
        self.stage_again(host, id, now);
        self.leave_elevator(id, now);
        self.dispatch_next(id);
        self.go_on(host, now);
        Ok(())
    }

    /// The request behind a tag, out of the driver's hands.
    fn take_back(
        &mut self,
        hctx: HctxId,
        tag: DriverTag,
        tags: &TagSet,
    ) -> Result<RequestId, NotInFlight> {
        let (queue, id) = tags.owner(hctx, tag).ok_or(NotInFlight)?;
        if queue != self.id || !is_in_flight(&self.requests[id]) {
            return Err(NotInFlight);
        }
        self.in_flight -= 1;
        Ok(id)
    }

    /// A request that the driver gave back waits again, without what only the driver's requests
    /// hold; its hardware queue is to be run.
    fn stage_again<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        id: RequestId,
        now: Instant,
    ) {
        self.requests[id].state = State::Staged;
        self.put_budget(host, id);
        self.put_waiting_tag(host, id);
        self.emit(host, now, Action::Requeue, id);
        self.runs.mark(self.requests[id].hctx, true);
    }

    /// `id`, which is on no list, is the next of its hardware queue's dispatch list.
    fn dispatch_next(&mut self, id: RequestId) {
        let hctx = self.requests[id].hctx;
        let mut list = core::mem::take(self.dispatch_list(hctx));
        list.push_front(&mut self.requests, id);
        *self.dispatch_list(hctx) = list;
    }

    /// The elevator that `id` came out of, if any, is told that it has finished.
    fn leave_elevator(&mut self, id: RequestId, now: Instant) {
        let rq = &mut self.requests[id];
        if let Some(elevator) = &mut self.elevator
            && core::mem::take(&mut rq.sorted)
        {
            elevator.finished(rq, now);
        }
    }

    /// The driver is done with `id`: it goes on to its next step, or ends, with all it holds given
    /// back: budget, driver tag, scheduler tag, in this order.
    pub(super) fn finish<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        id: RequestId,
        status: Status,
        now: Instant,
    ) {
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

    /// Ends the bios of `id` with `status`, but for those that are done; the request is idle.
    pub(super) fn end_bios<D, S>(&mut self, host: &mut Host<D, S>, id: RequestId, status: Status) {
        let first = self.requests.release(id);
        self.bios.end_chain(first, core::mem::take(&mut self.requests[id].done), status);
        self.put_request_tag(host, id);
    }

    /// A request has left the driver: whoever waited for that may try again ([no-lost-wake-up]).
    pub(super) fn go_on<D: Driver, S: Sink>(&mut self, host: &mut Host<D, S>, now: Instant) {
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
            self.enter_rest(host, now);
        }
    }
}
