//! The way back: completions, requeues, and who may go on because of them.

use super::{NotInFlight, RequestQueue, hctx_id, is_in_flight};
use crate::driver::{Driver, Finished, Outcome};
use crate::elevator::Place;
use crate::host::Host;
use crate::policy::{BusyTrack, Dispatch};
use crate::request::State;
use crate::status::Status;
use crate::time::Instant;
use crate::trace::{Action, Sink};
use crate::unit::{DriverTag, HctxId, RequestId};

impl RequestQueue {
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
            Outcome::Again => self.requeue(host, hctx, tag, now),
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
        let id = self.take_back(host, hctx, tag)?;
        self.finish(host, id, status, now);
        self.go_on(host, now);
        Ok(())
    }

    /// The driver gives back the request it knows as `tag` of `hctx` undone: it goes to the front
    /// of the elevator, or without one of the dispatch list, and is prepared anew before it is
    /// offered again. Drain what [`Self::complete`] says.
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
        let id = self.take_back(host, hctx, tag)?;
        let rq = &mut self.requests[id];
        rq.state = State::Staged;
        rq.prepared = false;
        self.put_budget(host, id);
        self.put_waiting_tag(host, id);
        self.emit(host, now, Action::Requeue, id);
        match &mut self.elevator {
            Some(elevator) => {
                elevator.finished(&self.requests[id], now);
                elevator.insert(&mut self.requests, id, Place::Head, now);
            }
            None => {
                let mut list = core::mem::take(self.dispatch_list(hctx));
                list.push_front(&mut self.requests, id);
                *self.dispatch_list(hctx) = list;
            }
        }
        self.mark_run(hctx, true);
        self.go_on(host, now);
        Ok(())
    }

    /// The request behind a tag, out of the driver's hands.
    fn take_back<D: Driver, S>(
        &mut self,
        host: &mut Host<D, S>,
        hctx: HctxId,
        tag: DriverTag,
    ) -> Result<RequestId, NotInFlight> {
        let (queue, id) = host.tags.owner(hctx, tag).ok_or(NotInFlight)?;
        if queue != self.id || !is_in_flight(&self.requests[id]) {
            return Err(NotInFlight);
        }
        self.in_flight -= 1;
        host.driver.finish(queue, hctx, tag, &self.requests[id]);
        Ok(id)
    }

    /// Ends the bios of `id` with `status` and gives back all it holds: budget, driver tag,
    /// scheduler tag, in this order.
    pub(super) fn finish<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        id: RequestId,
        status: Status,
        now: Instant,
    ) {
        self.requests[id].state = State::Complete;
        self.emit(host, now, Action::Complete(status), id);
        if let Some(elevator) = &mut self.elevator {
            elevator.finished(&self.requests[id], now);
        }
        self.put_budget(host, id);
        self.put_waiting_tag(host, id);
        let first = self.requests.release(id);
        self.bios.end_chain(first, status);
        self.put_request_tag(host, id);
    }

    /// A request has left the driver: whoever waited for that may try again (H4).
    fn go_on<D: Driver, S: Sink>(&mut self, host: &mut Host<D, S>, now: Instant) {
        if self.policies.dispatch == Dispatch::Budget {
            self.turns = self.all_turns();
            self.restart_one();
        } else {
            self.restart_all();
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

    /// Under budget a completion frees room for one request, so one hardware queue is run, each in
    /// its turn. If the run leaves room, it passes the turn on, once round at most (H4).
    pub(super) fn restart_one(&mut self) {
        let Some(left) = self.turns.checked_sub(1) else { return };
        self.turns = left;
        if let Some(at) = self.restarts.next_wrapping(self.next_restart) {
            self.next_restart = (at + 1) % self.hctxs.len();
            self.restarts.remove(at);
            self.mark_run(hctx_id(at), true);
        }
    }

    /// Every hardware queue with the restart mark is run, from another one on each time, so that
    /// none is always the last.
    fn restart_all(&mut self) {
        self.next_restart = (self.next_restart + 1) % self.hctxs.len();
        while let Some(at) = self.restarts.next_wrapping(self.next_restart) {
            self.restarts.remove(at);
            self.mark_run(hctx_id(at), true);
        }
    }
}
