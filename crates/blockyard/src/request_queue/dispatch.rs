//! From staging to the driver: what a run sends, and what it does with refused requests.
//!
//! The rules are those of [`hardware_queue`](crate::hardware_queue).

use super::RequestQueue;
use super::send::{Batch, Sent};
use super::turn::Turn;
use crate::bio::Flags;
use crate::driver::{Accept, Busy, Driver};
use crate::elevator::Place;
use crate::hardware_queue::RunStop;
use crate::host::Host;
use crate::policy::{BusyTrack, Dequeue, Dispatch, Model};
use crate::request::{List, Request, State};
use crate::time::Instant;
use crate::trace::{Action, Hold, Sink};
use crate::unit::{Budget, HctxId, RequestId};

/// Why a request was not issued directly.
enum NotIssued {
    /// Its hardware queue is held.
    Held(Hold),
    /// The driver gave no budget.
    NoBudget,
    /// Staged requests go first ([no-overtaking-staged]).
    OthersFirst,
    /// The driver refused it.
    Refused(Busy),
}

impl RequestQueue {
    /// Passes requests of `hctx` to the driver until none is left, the driver refuses one, no tag
    /// or budget is available, or the run has sent as many as one run may.
    ///
    /// Call this for each hardware queue that [`Self::next_run`] names. An early call costs a few
    /// comparisons; a late call adds latency but never loses a request. `now` must not be earlier
    /// than in any previous call.
    ///
    /// Returns why the run stopped. After anything but [`RunStop::Batch`], [`Self::next_run`] or
    /// [`Host::next_starved`] names the hardware queue when a request can move again.
    ///
    /// # Panics
    ///
    /// Panics if `hctx` is not a hardware queue of this queue.
    pub fn run<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        hctx: HctxId,
        now: Instant,
    ) -> RunStop {
        Turn::new(self, host, now).run(hctx)
    }

    /// Whether a request that bypasses the elevator has come up since the run began. It must not
    /// wait for the rest of the elevator ([direct-requests-first]).
    fn has_bypassing(&self, hctx: HctxId) -> bool {
        !self.hctxs[hctx.index()].direct.is_empty()
    }

    /// Whether `hctx` has requests that a run sends before new ones.
    fn has_leftovers(&mut self, hctx: HctxId) -> bool {
        self.has_bypassing(hctx) || !self.dispatch_list(hctx).is_empty()
    }

    /// Whether the elevator has requests for `hctx`, of those that wait in addition to the `taken`
    /// ones.
    fn has_sorted(&self, hctx: HctxId, taken: u32) -> bool {
        let elevator = self.elevator.as_ref().filter(|_| self.waiting() > taken);
        elevator.is_some_and(|elevator| elevator.has_work(hctx))
    }

    /// Returns the instant until which the elevator, which gave no request to `hctx`, waits for a
    /// better one ([idling-bounded]).
    pub(super) fn idles_until(&self, hctx: HctxId) -> Option<Instant> {
        self.elevator.as_ref()?.poll_at(hctx)
    }

    /// Returns how many requests one batch takes out of the elevator.
    fn batch_of(&self, hctx: HctxId) -> u32 {
        // While the device refuses, requests leave the elevator one by one: those that stay can
        // still merge.
        let busy = self.hctxs[hctx.index()].busy.is_busy();
        let batches = self.policies.dispatch == Dispatch::Budget
            && self.policies.model == Model::Multi
            && !busy;
        if batches { self.tags_per_hctx.min(self.run_batch_max) } else { 1 }
    }

    /// Whether the busy bit forbids pulling. With nothing in flight no completion would clear the
    /// bit, so it is ignored then ([no-lost-wake-up]).
    fn is_barred(&self, hctx: HctxId) -> bool {
        self.policies.busy == BusyTrack::Bit
            && self.in_flight > 0
            && self.hctxs[hctx.index()].busy.is_busy()
    }

    /// Takes the first request of a software queue that feeds `hctx`.
    fn pop_feeder(&mut self, hctx: HctxId, feeder: usize) -> Option<RequestId> {
        let state = &mut self.hctxs[hctx.index()];
        let ctx = &mut self.ctxs[state.feeders[feeder] as usize];
        let id = ctx.pop(&mut self.end_nodes, &mut self.requests);
        if ctx.is_empty() {
            state.pending.remove(feeder);
        }
        id
    }

    /// Appends refused requests to the dispatch list of `hctx`; constant time. They hold no budget,
    /// and no tag that is not their own.
    fn keep_refused(&mut self, hctx: HctxId, refused: &mut List) {
        debug_assert!(
            refused.iter_back(&self.requests).all(|id| self.requests[id].budget.is_none()),
            "[budget-given-back]: a request on the dispatch list has a budget"
        );
        let mut kept = core::mem::take(self.dispatch_list(hctx));
        kept.append(&mut self.requests, refused);
        *self.dispatch_list(hctx) = kept;
    }

    /// With a shared dispatch list, one refusal makes all hardware queues busy.
    pub(super) fn share_busy(&mut self) {
        for hctx in &mut self.hctxs {
            hctx.busy.run_ended(true);
        }
    }
}

impl<D: Driver, S: Sink> Turn<'_, D, S> {
    fn run(&mut self, hctx: HctxId) -> RunStop {
        self.queue.runs.begin_run(hctx);
        if self.host.restarts_in_turn() {
            self.host.begin_turn(self.queue.id, hctx);
        }
        // A tag may have come free for a part of a split bio; what enters now can go in this run.
        if !self.queue.cursors.is_empty() {
            self.enter_waiting_splits();
        }
        let stop = if self.queue.is_quiesced() {
            self.hold_run(hctx, Hold::Quiesced) // [quiesced-sends-none]
        } else {
            self.send_from_sources(hctx)
        };
        // The request may have come for which a paced elevator idled.
        if self.queue.runs.is_idling() {
            self.note_idling(hctx);
        }
        if self.queue.policies.dispatch == Dispatch::Budget && self.leaves_turn(stop) {
            self.queue.runs.pass_turn();
        }
        if self.host.restarts_in_turn() {
            self.host.pass_room(self.queue.id, hctx); // [no-lost-wake-up]
        }
        stop
    }

    /// Sends from three sources, in this order. A refusal on the way ends the run: the next request
    /// would be refused, too.
    #[inline(always)] // it has one caller
    fn send_from_sources(&mut self, hctx: HctxId) -> RunStop {
        let first = self.send_direct(hctx);
        match first.or_else(|| self.send_dispatch_list(hctx)) {
            Some(stop) => stop,
            None if self.queue.elevator.is_some() => self.pull_from_elevator(hctx),
            None => self.pull_from_software_queues(hctx),
        }
    }

    /// Sends `id`, which is on no list, past the elevator ([direct-requests-first]).
    pub(super) fn bypass_elevator(&mut self, id: RequestId) {
        debug_assert_eq!(
            self.queue.requests[id].state(),
            State::Staged,
            "[request-life-cycle]: request {}",
            id.0
        );
        let rq = &mut self.queue.requests[id];
        rq.times.scheduled = self.now;
        let reserved = rq.flags.contains(Flags::RESERVED);
        let direct = &mut self.queue.hctxs[rq.hctx.index()].direct;
        if reserved {
            // Requests before it may lack a tag that is not reserved.
            direct.push_front(&mut self.queue.requests, id);
        } else {
            direct.push_back(&mut self.queue.requests, id);
        }
    }

    /// Sends the requests that bypass the elevator ([direct-requests-first]). Returns why the run
    /// ends there, if it does.
    fn send_direct(&mut self, hctx: HctxId) -> Option<RunStop> {
        let state = &mut self.queue.hctxs[hctx.index()];
        if state.direct.is_empty() && state.lacking_reserved.is_empty() {
            return None;
        }
        let mut list = core::mem::take(&mut state.lacking_reserved);
        list.append(&mut self.queue.requests, &mut state.direct);
        let mut lacking_reserved = List::new();
        let held = loop {
            let Some(batch) = Batch::take(&mut self.queue.requests, &mut list) else {
                self.queue.hctxs[hctx.index()].busy.run_ended(false); // all others were sent
                break None;
            };
            let Sent { held, left, .. } = self.send_batch(hctx, batch);
            list = left;
            // The first request that was not sent may lack a reserved tag. It steps aside, and the
            // ones behind it go on: most need another kind of tag.
            let Some(id) = list.first() else { break held };
            let lacks_reserved =
                held == Some(Hold::Tag) && self.queue.requests[id].flags.contains(Flags::RESERVED);
            if !lacks_reserved {
                break held;
            }
            list.remove(&mut self.queue.requests, id);
            lacking_reserved.push_back(&mut self.queue.requests, id);
        };
        // A request that the driver failed may have released further ones.
        let state = &mut self.queue.hctxs[hctx.index()];
        list.append(&mut self.queue.requests, &mut state.direct);
        state.direct = list;
        state.lacking_reserved = lacking_reserved;
        held.map(RunStop::Held)
    }

    /// Sends the dispatch list ([dispatch-list-first]). Returns why the run ends there, or `None`
    /// if the design continues with new requests.
    fn send_dispatch_list(&mut self, hctx: HctxId) -> Option<RunStop> {
        let kept = self.queue.dispatch_list(hctx);
        if kept.is_empty() {
            return None;
        }
        let mut list = core::mem::take(kept);
        let batch = Batch::take(&mut self.queue.requests, &mut list)?;
        let mut sent = self.send_batch(hctx, batch);
        self.queue.keep_refused(hctx, &mut sent.left);
        if self.queue.policies.dispatch == Dispatch::DrainAll {
            // As in Linux 4.13: without an elevator the run ends. With one it continues if the list
            // made no progress at all, and takes one more request out of the reach of merging.
            let pulls_anyway = self.queue.elevator.is_some() && sent.count == 0;
            if pulls_anyway {
                return None;
            }
            if sent.held.is_none() {
                return Some(self.hold_run(hctx, Hold::Leftovers));
            }
        }
        // What had leftovers runs again at the next completion, whatever the elevator says to that.
        if self.queue.runs.is_paced() {
            self.queue.runs.restart_on_completion(hctx);
        }
        sent.held.map(RunStop::Held)
    }

    /// Files the requests that the design has listed, unless the elevator is taken. Then the run
    /// ends as if the elevator gave nothing.
    fn file_insertions(&mut self, hctx: HctxId) -> Option<RunStop> {
        if self.queue.elevator_taken {
            let has_work = !self.queue.insertions.is_empty() || self.queue.has_sorted(hctx, 0);
            return Some(if has_work { self.hold_run(hctx, Hold::Order) } else { RunStop::Idle });
        }
        while let Some(id) = self.queue.insertions.pop_front(&mut self.queue.requests) {
            let is_joined = self.join_staged(id);
            if let Some(elevator) = self.queue.elevator.as_mut().filter(|_| !is_joined) {
                elevator.insert(&mut self.queue.requests, id, Place::Sorted, self.now);
            }
        }
        None
    }

    fn pull_from_elevator(&mut self, hctx: HctxId) -> RunStop {
        if self.queue.lists_insertions
            && let Some(stop) = self.file_insertions(hctx)
        {
            return stop;
        }
        let mut total = 0;
        loop {
            if self.queue.is_barred(hctx) {
                return self.hold_run(hctx, Hold::Device);
            }
            if !self.queue.has_sorted(hctx, 0) {
                return RunStop::Idle;
            }
            let batch = match self.gather_batch(hctx) {
                Ok(batch) => batch,
                Err(hold) => return self.hold_run(hctx, hold),
            };
            let mut sent = self.send_batch(hctx, batch);
            total += sent.count;
            self.queue.runs.use_room(sent.count);
            if let Some(hold) = sent.held {
                self.keep_batch(hctx, &mut sent.left, hold);
                return RunStop::Held(hold);
            }
            // More may be left, but another hardware queue, or a flush that has come meanwhile, is
            // to have its turn.
            if total >= self.queue.run_batch_max || self.queue.has_bypassing(hctx) {
                self.queue.runs.mark(hctx, true);
                return RunStop::Batch;
            }
        }
    }

    /// Takes requests out of the elevator, which has some for `hctx`: one, or under budget
    /// ([budget-given-back]) as many as one batch has. Fails with the reason if it cannot take any.
    fn gather_batch(&mut self, hctx: HctxId) -> Result<Batch, Hold> {
        let mut newest = self.take_sorted(hctx)?;
        let mut batch = Batch::of(newest);
        // Without a tag the batch ends: the requests that cannot go now can still merge in the
        // elevator. Whether there are more is checked before budget is taken, so that a run with
        // nothing more to take is not reported as held for lack of budget.
        while self.has_driver_tag_for(newest)
            && self.queue.has_sorted(hctx, batch.len())
            && batch.len() < self.queue.batch_of(hctx)
            && let Ok(id) = self.take_sorted(hctx)
        {
            batch.push(&mut self.queue.requests, id);
            newest = id;
        }
        Ok(batch)
    }

    /// Takes one request out of the elevator, with budget if the design wants it.
    fn take_sorted(&mut self, hctx: HctxId) -> Result<RequestId, Hold> {
        let mut budget = None;
        if self.queue.policies.dispatch == Dispatch::Budget {
            budget = self.host.driver.take_budget(self.queue.id);
            if budget.is_none() {
                return Err(Hold::Budget);
            }
        }
        let next = match &mut self.queue.elevator {
            Some(elevator) => elevator.dispatch(&mut self.queue.requests, hctx, self.now),
            None => None,
        };
        let Some(id) = next else {
            self.return_unused(budget);
            return Err(Hold::Order);
        };
        self.queue.requests[id].sorted = true;
        self.note_scheduled(id, budget);
        Ok(id)
    }

    fn pull_from_software_queues(&mut self, hctx: HctxId) -> RunStop {
        let state = &self.queue.hctxs[hctx.index()];
        if state.pending.is_empty() {
            return RunStop::Idle;
        }
        if self.queue.is_barred(hctx) {
            return self.hold_run(hctx, Hold::Device);
        }
        let one_by_one = match self.queue.policies.dequeue {
            Dequeue::SpliceAll => false,
            Dequeue::RoundRobin => true,
            Dequeue::ByBusy => state.busy.is_busy(),
        };
        if one_by_one { self.pull_in_turn(hctx) } else { self.pull_all(hctx) }
    }

    /// Pulls all requests of every software queue, as one batch.
    fn pull_all(&mut self, hctx: HctxId) -> RunStop {
        let mut list = List::new();
        // All of one software queue, then all of the next, in the order of the processors.
        while let Some(feeder) = self.queue.hctxs[hctx.index()].pending.next_wrapping(0) {
            while let Some(id) = self.queue.pop_feeder(hctx, feeder) {
                self.note_scheduled(id, None);
                list.push_back(&mut self.queue.requests, id);
            }
        }
        let Some(batch) = Batch::take(&mut self.queue.requests, &mut list) else {
            return RunStop::Idle;
        };
        let mut sent = self.send_batch(hctx, batch);
        self.queue.keep_refused(hctx, &mut sent.left);
        sent.held.map_or(RunStop::Idle, RunStop::Held)
    }

    /// Pulls one request at a time, from one software queue after the other.
    fn pull_in_turn(&mut self, hctx: HctxId) -> RunStop {
        for _ in 0..self.queue.run_batch_max {
            if self.queue.hctxs[hctx.index()].pending.is_empty() {
                return RunStop::Idle;
            }
            let mut budget = None;
            if self.queue.policies.dispatch == Dispatch::Budget {
                budget = self.host.driver.take_budget(self.queue.id);
                if budget.is_none() {
                    return self.hold_run(hctx, Hold::Budget); // [budget-given-back]
                }
            }
            // Each run goes on behind the software queue where the last one stopped, so that none
            // is always first.
            let feeder = self.queue.hctxs[hctx.index()].next_pending_feeder();
            let id = feeder.and_then(|feeder| self.queue.pop_feeder(hctx, feeder));
            let id = id.expect("a pending software queue holds a request");
            self.note_scheduled(id, budget);
            let mut sent = self.send_batch(hctx, Batch::of(id));
            if let Some(hold) = sent.held {
                self.queue.keep_refused(hctx, &mut sent.left);
                return RunStop::Held(hold);
            }
            if self.queue.has_bypassing(hctx) {
                break;
            }
        }
        self.queue.runs.mark(hctx, true);
        RunStop::Batch
    }

    /// Notes that `id` has left the elevator or software queue.
    fn note_scheduled(&mut self, id: RequestId, budget: Option<Budget>) {
        let rq = &mut self.queue.requests[id];
        rq.times.scheduled = self.now;
        debug_assert!(rq.budget.is_none(), "[budget-given-back]: request {} has a budget", id.0);
        rq.budget = budget;
        self.emit_request(Action::Schedule, id);
    }

    fn return_unused(&mut self, budget: Option<Budget>) {
        if let Some(budget) = budget {
            self.host.driver.return_budget(self.queue.id, budget); // [budget-given-back]
        }
    }

    /// Offers a request of `hctx` to the driver without staging it. Returns whether the driver
    /// accepted it.
    ///
    /// A request without budget is staged, where it can merge; a refused request joins the dispatch
    /// list. Both hold the hardware queue ([no-lost-wake-up]): another run at this instant would
    /// achieve no more. If others are staged, the request is staged behind them and the hardware
    /// queue is marked ([no-overtaking-staged]). If `last` is not set, or the driver does not
    /// accept the request, the caller ends the run ([last-or-commit]).
    pub(super) fn issue_directly(&mut self, id: RequestId, hctx: HctxId, last: bool) -> bool {
        // One of those that wait is `id` itself. Mostly it is alone, and no list need be looked at.
        let others_wait = self.queue.waiting() > 1;
        let why = if self.queue.is_quiesced() {
            NotIssued::Held(Hold::Quiesced)
        } else if others_wait && self.queue.has_leftovers(hctx) {
            NotIssued::Held(Hold::Leftovers)
        } else if !self.take_budget_for(id) {
            NotIssued::NoBudget
        } else if others_wait && !self.queue.hctxs[hctx.index()].pending.is_empty() {
            NotIssued::OthersFirst
        } else {
            self.queue.requests[id].times.scheduled = self.now;
            let Accept::Busy(busy) = self.offer_request(id, last) else { return true };
            NotIssued::Refused(busy)
        };
        self.stage_unissued(id, why);
        false
    }

    /// Stages a request that was not issued directly.
    #[cold]
    fn stage_unissued(&mut self, id: RequestId, why: NotIssued) {
        let Request { hctx, cpu, .. } = self.queue.requests[id];
        let hold = match why {
            NotIssued::Held(hold) => hold,
            NotIssued::NoBudget => {
                self.queue.hctxs[hctx.index()].busy.run_ended(true);
                Hold::Budget
            }
            NotIssued::OthersFirst => {
                self.put_budget(id); // [no-overtaking-staged]
                self.insert_request(self.queue.map.kind_serving(cpu, hctx), id);
                return self.queue.runs.mark(hctx, false);
            }
            NotIssued::Refused(busy) => {
                self.queue.hctxs[hctx.index()].busy.run_ended(true);
                let mut refused = List::new();
                refused.push_back(&mut self.queue.requests, id);
                self.keep_batch(hctx, &mut refused, busy.into());
                let _ = self.hold_run(hctx, busy.into());
                return;
            }
        };
        self.insert_request(self.queue.map.kind_serving(cpu, hctx), id);
        let _ = self.hold_run(hctx, hold);
    }

    /// Like [`RequestQueue::keep_refused`] for a batch from the elevator: its requests may be for
    /// several hardware queues, and each may hold budget or a tag.
    fn keep_batch(&mut self, hctx: HctxId, refused: &mut List, hold: Hold) {
        while let Some(id) = refused.pop_front(&mut self.queue.requests) {
            self.release_holdings(id);
            // An elevator with one order for the queue may have given a request of another hardware
            // queue, which sends it.
            let own = self.queue.requests[id].hctx;
            let mut alone = List::new();
            alone.push_back(&mut self.queue.requests, id);
            self.queue.keep_refused(own, &mut alone);
            if own != hctx {
                debug_assert!(hold != Hold::Tag, "only the last of a batch may lack a tag");
                let _ = self.hold_run(own, hold);
            }
        }
    }

    /// Whether the reason stopped only this hardware queue, so that another may use the free room
    /// ([no-lost-wake-up]).
    const fn leaves_turn(&self, stop: RunStop) -> bool {
        match stop {
            RunStop::Idle | RunStop::Held(Hold::Tag | Hold::Resource | Hold::Leftovers) => true,
            RunStop::Held(Hold::Order) => self.queue.runs.has_room(),
            RunStop::Batch
            | RunStop::Held(Hold::Budget | Hold::Device | Hold::Host | Hold::Quiesced) => false,
        }
    }
}
