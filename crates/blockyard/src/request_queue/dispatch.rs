//! From staging to the driver: what a run sends, and what it does with refused requests.
//!
//! The rules are those of [`hardware_queue`](crate::hardware_queue).

use super::turn::Turn;
use super::{RequestQueue, is_in_flight};
use crate::bio::{Flags, Op};
use crate::driver::{Accept, DataEffect, Driver, Issue};
use crate::hardware_queue::{RETRY_DELAY, RunStop};
use crate::host::Host;
use crate::policy::{Dequeue, Dispatch, Model};
use crate::request::{List, Requests, State};
use crate::time::Instant;
use crate::trace::{Action, Event, Hold, Sink};
use crate::unit::{Budget, CpuId, DriverTag, HctxId, RequestId};

/// Requests on their way to the driver. A lone one, the usual case, is on no list.
#[derive(Debug)]
struct Batch {
    first: RequestId,
    rest: List,
}

impl Batch {
    const fn of(first: RequestId) -> Self {
        Self { first, rest: List::new() }
    }

    /// Takes the batch out of a list; `None` if the list is empty.
    fn take(requests: &mut Requests, list: &mut List) -> Option<Self> {
        Some(Self { first: list.pop_front(requests)?, rest: core::mem::take(list) })
    }

    const fn len(&self) -> u32 {
        1 + self.rest.len()
    }
}

/// The result of offering a batch to the driver.
#[derive(Debug)]
struct Sent {
    /// Requests that the driver accepted or failed.
    count: u32,
    /// Why the offers stopped before the end of the batch.
    held: Option<Hold>,
    /// The requests that were not sent, in order. The first has neither budget nor a tag that is not
    /// its own.
    left: List,
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

    /// Whether the elevator has requests for `hctx`, of those that wait beside the `taken` ones.
    fn has_sorted(&self, hctx: HctxId, taken: u32) -> bool {
        let elevator = self.elevator.as_ref().filter(|_| self.waiting() > taken);
        elevator.is_some_and(|elevator| elevator.has_work(hctx))
    }

    /// Returns how many requests one batch takes out of the elevator.
    fn batch_of(&self, hctx: HctxId) -> u32 {
        let busy = self.hctxs[hctx.index()].busy.is_busy();
        let batches = self.policies.dispatch == Dispatch::Budget
            && self.policies.model == Model::Multi
            && !busy;
        if batches { self.tags_per_hctx.min(self.run_batch_max) } else { 1 }
    }

    /// Whether the busy bit forbids pulling. With nothing in flight no completion would clear the
    /// bit, so it is ignored then ([no-lost-wake-up]).
    fn is_barred(&self, hctx: HctxId) -> bool {
        self.in_flight > 0 && self.hctxs[hctx.index()].busy.bars_pulling()
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
    fn keep(&mut self, hctx: HctxId, refused: &mut List) {
        debug_assert!(
            refused.iter_back(&self.requests).all(|id| self.requests[id].budget.is_none()),
            "[budget-given-back]: a request on the dispatch list has a budget"
        );
        let mut kept = core::mem::take(self.dispatch_list(hctx));
        kept.append(&mut self.requests, refused);
        *self.dispatch_list(hctx) = kept;
    }

    /// With a shared dispatch list, one refusal makes all hardware queues busy.
    fn share_busy(&mut self) {
        for hctx in &mut self.hctxs {
            hctx.busy.run_ended(true);
        }
    }
}

impl<D: Driver, S: Sink> Turn<'_, D, S> {
    fn run(&mut self, hctx: HctxId) -> RunStop {
        self.queue.runs.begin_run(hctx);
        if !self.queue.cursors.is_empty() {
            self.enter_waiting_splits();
        }
        if self.queue.is_quiesced() {
            return self.hold_run(hctx, Hold::Quiesced); // [quiesced-sends-none]
        }
        let first = self.send_direct(hctx);
        let stop = match first.or_else(|| self.send_dispatch_list(hctx)) {
            Some(stop) => stop,
            None if self.queue.elevator.is_some() => self.pull_from_elevator(hctx),
            None => self.pull_from_software_queues(hctx),
        };
        if self.queue.policies.dispatch == Dispatch::Budget && leaves_turn(stop) {
            self.queue.runs.pass_turn();
        }
        stop
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
        let (hctx, reserved) = (rq.hctx, rq.flags.contains(Flags::RESERVED));
        let direct = &mut self.queue.hctxs[hctx.index()].direct;
        if reserved {
            direct.push_front(&mut self.queue.requests, id); // requests before it may lack a tag that is not reserved
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
            let Sent { held, left, .. } = self.send(hctx, batch);
            list = left;
            let lacks_reserved = |id: &RequestId| {
                held == Some(Hold::Tag) && self.queue.requests[*id].flags.contains(Flags::RESERVED)
            };
            let Some(id) = list.first().filter(lacks_reserved) else { break held };
            list.remove(&mut self.queue.requests, id);
            lacking_reserved.push_back(&mut self.queue.requests, id);
        };
        // A request that the driver failed may have released further ones.
        let state = &mut self.queue.hctxs[hctx.index()];
        list.append(&mut self.queue.requests, &mut state.direct);
        (state.direct, state.lacking_reserved) = (list, lacking_reserved);
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
        let mut sent = self.send(hctx, batch);
        self.queue.keep(hctx, &mut sent.left);
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
        sent.held.map(RunStop::Held)
    }

    fn pull_from_elevator(&mut self, hctx: HctxId) -> RunStop {
        let mut total = 0;
        loop {
            if self.queue.is_barred(hctx) {
                return self.hold_run(hctx, Hold::Device);
            }
            if !self.queue.has_sorted(hctx, 0) {
                return RunStop::Idle;
            }
            let batch = match self.gather(hctx) {
                Ok(batch) => batch,
                Err(hold) => return self.hold_run(hctx, hold),
            };
            let mut sent = self.send(hctx, batch);
            total += sent.count;
            if let Some(hold) = sent.held {
                self.keep_batch(hctx, &mut sent.left, hold);
                return RunStop::Held(hold);
            }
            if total >= self.queue.run_batch_max || self.queue.has_bypassing(hctx) {
                self.queue.runs.mark(hctx, true);
                return RunStop::Batch;
            }
        }
    }

    /// Takes requests out of the elevator, which has some for `hctx`: one, or under budget
    /// ([budget-given-back]) as many as one batch has. Fails with the reason if it cannot take any.
    fn gather(&mut self, hctx: HctxId) -> Result<Batch, Hold> {
        let max = self.queue.batch_of(hctx);
        let mut newest = self.take_sorted(hctx)?;
        let mut batch = Batch::of(newest);
        // Without a tag the batch ends: the requests that cannot go now can still merge in the elevator.
        // Whether there are more is checked before budget is taken, so that a run with nothing more to
        // take is not reported as held for lack of budget.
        while self.has_driver_tag_for(newest)
            && batch.len() < max
            && self.queue.has_sorted(hctx, batch.len())
            && let Ok(id) = self.take_sorted(hctx)
        {
            batch.rest.push_back(&mut self.queue.requests, id);
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
        self.scheduled(id, budget);
        Ok(id)
    }

    /// Takes the driver tag that `id` needs. Returns whether `id` has one.
    #[inline]
    fn has_driver_tag_for(&mut self, id: RequestId) -> bool {
        let rq = &mut self.queue.requests[id];
        if rq.driver_tag.is_some() {
            return true;
        }
        let tag = if rq.flags.contains(Flags::RESERVED) {
            self.host.tags.take_reserved(self.queue.id, rq.hctx)
        } else {
            self.host.tags.take(self.queue.id, rq.hctx, u32::MAX)
        };
        let Some(tag) = tag else { return false };
        self.host.tags.assign(rq.hctx, tag, id);
        rq.driver_tag = Some(tag);
        true
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

    /// Pulls all requests of every software queue at once.
    fn pull_all(&mut self, hctx: HctxId) -> RunStop {
        let mut list = List::new();
        while let Some(feeder) = self.queue.hctxs[hctx.index()].pending.next_wrapping(0) {
            while let Some(id) = self.queue.pop_feeder(hctx, feeder) {
                self.scheduled(id, None);
                list.push_back(&mut self.queue.requests, id);
            }
        }
        let Some(batch) = Batch::take(&mut self.queue.requests, &mut list) else {
            return RunStop::Idle;
        };
        let mut sent = self.send(hctx, batch);
        self.queue.keep(hctx, &mut sent.left);
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
            let feeder = self.queue.hctxs[hctx.index()].next_pending_feeder();
            let id = feeder.and_then(|feeder| self.queue.pop_feeder(hctx, feeder));
            let id = id.expect("a pending software queue holds a request");
            self.scheduled(id, budget);
            let mut sent = self.send(hctx, Batch::of(id));
            if let Some(hold) = sent.held {
                self.queue.keep(hctx, &mut sent.left);
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
    fn scheduled(&mut self, id: RequestId, budget: Option<Budget>) {
        let rq = &mut self.queue.requests[id];
        rq.times.scheduled = self.now;
        debug_assert!(rq.budget.is_none(), "[budget-given-back]: request {} has a budget", id.0);
        rq.budget = budget;
        self.emit(Action::Schedule, id);
    }

    fn return_unused(&mut self, budget: Option<Budget>) {
        if let Some(budget) = budget {
            self.host.driver.return_budget(self.queue.id, budget); // [budget-given-back]
        }
    }

    /// Ends the run of `open`, unless the next request goes to the same hardware queue
    /// ([last-or-commit]).
    pub(super) fn end_run(&mut self, open: &mut Option<HctxId>, next: Option<HctxId>) {
        if let Some(hctx) = open.take_if(|hctx| next != Some(*hctx)) {
            self.host.driver.commit(self.queue.id, hctx, self.now);
        }
    }

    /// Offers a request to the driver without staging it. Returns whether the driver accepted it.
    ///
    /// A request without budget is staged, where it can merge; a refused request joins the dispatch
    /// list. Both hold the hardware queue ([no-lost-wake-up]): another run at this instant would
    /// achieve no more. If others are staged, the request is staged behind them and the hardware
    /// queue is marked ([no-overtaking-staged]). If `last` is not set, or the driver does not
    /// accept the request, the caller ends the run ([last-or-commit]).
    pub(super) fn issue_directly(&mut self, id: RequestId, last: bool) -> bool {
        let hctx = self.queue.requests[id].hctx;
        let others_wait = self.queue.waiting() > 1;
        let hold = if self.queue.is_quiesced() {
            Hold::Quiesced
        } else if others_wait && self.queue.has_leftovers(hctx) {
            Hold::Leftovers
        } else if !self.take_budget_for(id) {
            self.queue.hctxs[hctx.index()].busy.run_ended(true);
            Hold::Budget
        } else if others_wait && !self.queue.hctxs[hctx.index()].pending.is_empty() {
            self.put_budget(id); // [no-overtaking-staged]
            self.insert(self.queue.ctx_serving(self.queue.requests[id].cpu, hctx), id);
            self.queue.runs.mark(hctx, false);
            return false;
        } else {
            self.queue.requests[id].times.scheduled = self.now;
            let Accept::Busy(busy) = self.offer(id, last) else { return true };
            self.queue.hctxs[hctx.index()].busy.run_ended(true);
            let mut refused = List::new();
            refused.push_back(&mut self.queue.requests, id);
            self.keep_batch(hctx, &mut refused, busy.into());
            let _ = self.hold_run(hctx, busy.into());
            return false;
        };
        let ctx = self.queue.ctx_serving(self.queue.requests[id].cpu, hctx);
        self.insert(ctx, id);
        let _ = self.hold_run(hctx, hold);
        false
    }

    /// Takes budget for `id` if the design wants it. Returns whether `id` has what the design
    /// wants.
    fn take_budget_for(&mut self, id: RequestId) -> bool {
        let rq = &mut self.queue.requests[id];
        if self.queue.policies.dispatch == Dispatch::Budget && rq.budget.is_none() {
            rq.budget = self.host.driver.take_budget(self.queue.id);
            return rq.budget.is_some();
        }
        true
    }

    /// Offers a batch to the driver, in order, until the driver refuses a request. The rest is left
    /// for the caller to keep, the first without budget or tag, and the run is held
    /// ([no-lost-wake-up]).
    fn send(&mut self, hctx: HctxId, batch: Batch) -> Sent {
        let Batch { first, rest } = batch;
        let mut sent = Sent { count: 0, held: None, left: rest };
        let mut uncommitted = None;
        let mut next = Some(first);
        while let Some(id) = next {
            if let Err(hold) = self.send_one(id, sent.left.is_empty(), &mut uncommitted) {
                sent.left.push_front(&mut self.queue.requests, id);
                self.end_run(&mut uncommitted, None);
                sent.held = Some(self.stop_sending(hctx, id, hold));
                return sent;
            }
            sent.count += 1;
            next = sent.left.pop_front(&mut self.queue.requests);
        }
        self.queue.hctxs[hctx.index()].busy.run_ended(false);
        sent
    }

    /// Offers `id`, which is on no list, to the driver, with the budget and tag that it needs.
    fn send_one(
        &mut self,
        id: RequestId,
        last: bool,
        uncommitted: &mut Option<HctxId>,
    ) -> Result<(), Hold> {
        if !self.take_budget_for(id) {
            return Err(Hold::Budget);
        }
        if !self.has_driver_tag_for(id) {
            return Err(Hold::Tag);
        }
        let to = self.queue.requests[id].hctx;
        self.end_run(uncommitted, Some(to));
        match self.offer(id, last) {
            Accept::Busy(busy) => Err(busy.into()),
            Accept::Queued | Accept::Failed(_) => {
                *uncommitted = Some(to);
                Ok(())
            }
        }
    }

    /// Holds a run of `hctx` that could not send `id` because of `hold` ([no-lost-wake-up]). Returns why
    /// the run of `hctx` is held.
    #[cold]
    fn stop_sending(&mut self, hctx: HctxId, id: RequestId, hold: Hold) -> Hold {
        self.queue.hctxs[hctx.index()].busy.run_ended(true);
        if self.queue.shares_dispatch() {
            self.queue.share_busy();
        }
        self.release_holdings(id);
        let rq = &self.queue.requests[id];
        let (to, reserved) = (rq.hctx, rq.flags.contains(Flags::RESERVED));
        let mut held = hold;
        if hold == Hold::Tag {
            self.host.tags.starve(self.queue.id, to, reserved);
            if to != hctx {
                // The missing tag belongs to another hardware queue: that one must be named when a
                // tag is free.
                let _ = self.hold_run(to, hold);
                held = Hold::Leftovers;
            }
        }
        let _ = self.hold_run(hctx, held);
        held
    }

    /// A request that the driver does not own gives back its budget ([budget-given-back]) and, with
    /// an elevator, its driver tag ([tag-only-in-driver]).
    pub(super) fn release_holdings(&mut self, id: RequestId) {
        self.put_budget(id);
        if self.queue.keeps_driver_tag() {
            return;
        }
        let rq = &mut self.queue.requests[id];
        if let Some(tag) = rq.driver_tag.take() {
            self.host.tags.put(rq.hctx, tag);
        }
    }

    /// Gives back the budget that `id` holds ([budget-given-back]).
    fn put_budget(&mut self, id: RequestId) {
        if let Some(budget) = self.queue.requests[id].budget.take() {
            self.host.driver.return_budget(self.queue.id, budget);
        }
    }

    /// Offers one request that is on no list to the driver. Unless the driver refuses for now, the
    /// request has left this stage.
    fn offer(&mut self, id: RequestId, last: bool) -> Accept {
        debug_assert!(
            !self.queue.is_quiesced(),
            "[quiesced-sends-none]: request {} is offered",
            id.0
        );
        debug_assert_eq!(
            self.queue.requests[id].state(),
            State::Staged,
            "[request-life-cycle]: request {}",
            id.0
        );
        debug_assert_eq!(
            self.queue.requests[id].budget.is_some(),
            self.queue.policies.dispatch == Dispatch::Budget,
            "budget of request {}",
            id.0
        );
        let rq = &mut self.queue.requests[id];
        let prepared = core::mem::replace(&mut rq.prepared, true);
        let tag: DriverTag = rq.driver_tag.expect("a request is offered under a driver tag");
        let (hctx, budget) = (rq.hctx, rq.budget);
        let issue = Issue {
            queue: self.queue.id,
            hctx,
            tag,
            budget,
            last,
            now: self.now,
            effect: DataEffect::Whole,
            id,
            requests: &self.queue.requests,
            bios: &self.queue.bios,
        };
        if !prepared {
            self.host.driver.prepare(&issue);
        }
        let answer = self.host.driver.queue_rq(&issue);
        match answer {
            Accept::Queued => {
                let rq = &mut self.queue.requests[id];
                rq.state = State::InFlight;
                rq.times.issued = self.now;
                rq.deadline = self.now + self.queue.timeout;
                let deadline = rq.deadline;
                self.queue.in_flight += 1;
                self.queue.arm_timer(deadline);
                self.emit(Action::Issue, id);
            }
            Accept::Busy(busy) => self.emit(Action::Refuse(busy), id),
            Accept::Failed(status) => {
                self.host.driver.unprepare(&issue); // [prepared-until-undone]
                if last {
                    self.host.driver.commit(self.queue.id, hctx, self.now); // [last-or-commit]
                }
                // No completion will follow, so this wakes the requests and submitters that wait.
                self.finish(id, status);
                self.queue.mark_waiting_split();
                self.note_idle();
                self.host.note_room();
            }
        }
        debug_assert!(answer != Accept::Queued || is_in_flight(&self.queue.requests[id]));
        answer
    }

    /// Like [`RequestQueue::keep`] for a batch from the elevator: its requests may be for several hardware
    /// queues, and each may hold budget or a tag.
    fn keep_batch(&mut self, hctx: HctxId, refused: &mut List, hold: Hold) {
        while let Some(id) = refused.pop_front(&mut self.queue.requests) {
            self.release_holdings(id);
            let own = self.queue.requests[id].hctx;
            let mut alone = List::new();
            alone.push_back(&mut self.queue.requests, id);
            self.queue.keep(own, &mut alone);
            if own != hctx {
                debug_assert!(hold != Hold::Tag, "only the last of a batch may lack a tag");
                let _ = self.hold_run(own, hold);
            }
        }
    }

    /// Stops a run of `hctx` because of `hold`, and arranges for the next run ([no-lost-wake-up]).
    fn hold_run(&mut self, hctx: HctxId, hold: Hold) -> RunStop {
        debug_assert!(hold != Hold::Quiesced || self.queue.is_quiesced(), "held without a quiesce");
        if self.host.sink.listens() {
            self.host.sink.event(&Event {
                at: self.now,
                action: Action::Hold(hold),
                queue: self.queue.id,
                cpu: CpuId(0),
                hctx,
                op: Op::Read,
                flags: Flags::NONE,
                sector: 0,
                sectors: 0,
                request: None,
            });
        }
        match hold {
            Hold::Tag => {} // `starve` has registered the hardware queue
            Hold::Host => self.host.starve(self.queue.id, hctx),
            Hold::Resource => {} // the retry instant below runs it
            Hold::Quiesced => return RunStop::Held(hold), // `unquiesce` runs it
            Hold::Budget | Hold::Device | Hold::Leftovers | Hold::Order => {
                self.queue.runs.restart_on_completion(hctx);
            }
        }
        let no_completion_helps = hold == Hold::Resource || self.queue.in_flight == 0;
        if no_completion_helps {
            self.queue.runs.retry_at(hctx, self.now + RETRY_DELAY);
        }
        RunStop::Held(hold)
    }
}

/// Whether the reason stopped only this hardware queue, so that another may use the free room
/// ([no-lost-wake-up]).
const fn leaves_turn(stop: RunStop) -> bool {
    match stop {
        RunStop::Idle
        | RunStop::Held(Hold::Tag | Hold::Resource | Hold::Leftovers | Hold::Order) => true,
        RunStop::Batch
        | RunStop::Held(Hold::Budget | Hold::Device | Hold::Host | Hold::Quiesced) => false,
    }
}
