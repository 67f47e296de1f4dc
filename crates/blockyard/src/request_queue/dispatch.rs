//! From staging to the driver: what a run sends, and what it does with refused requests.
//!
//! The rules are those of [`hardware_queue`](crate::hardware_queue).

use super::{RequestQueue, is_in_flight};
use crate::bio::{Flags, Op};
use crate::driver::{Accept, DataEffect, Driver, Issue};
use crate::hardware_queue::{RETRY_DELAY, RunStop};
use crate::host::Host;
use crate::policy::{Dequeue, Dispatch, Model};
use crate::request::{List, Request, State};
use crate::time::Instant;
use crate::trace::{Action, Event, Hold, Sink};
use crate::unit::{Budget, CpuId, DriverTag, HctxId, RequestId};

/// The result of offering a list to the driver.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// Requests that the driver accepted or failed.
    count: u32,
    /// Why the offers stopped before the end of the list.
    held: Option<Hold>,
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
        self.check_host(host);
        self.runs.begin_run(hctx);
        if !self.cursors.is_empty() {
            self.enter_waiting_splits(host, now);
        }
        if self.is_quiesced() {
            return self.hold_run(host, hctx, Hold::Quiesced, now); // [quiesced-sends-none]
        }
        let first = self.send_direct(host, hctx, now);
        let stop = match first.or_else(|| self.send_dispatch_list(host, hctx, now)) {
            Some(stop) => stop,
            None if self.elevator.is_some() => self.pull_from_elevator(host, hctx, now),
            None => self.pull_from_software_queues(host, hctx, now),
        };
        if self.policies.dispatch == Dispatch::Budget && leaves_turn(stop) {
            self.runs.pass_turn();
        }
        stop
    }

    /// Sends `id`, which is on no list, past the elevator ([direct-requests-first]).
    pub(super) fn bypass_elevator(&mut self, id: RequestId, now: Instant) {
        debug_assert_eq!(
            self.requests[id].state(),
            State::Staged,
            "[request-life-cycle]: request {}",
            id.0
        );
        let rq = &mut self.requests[id];
        rq.times.scheduled = now;
        let (hctx, reserved) = (rq.hctx, rq.flags.contains(Flags::RESERVED));
        let direct = &mut self.hctxs[hctx.index()].direct;
        if reserved {
            direct.push_front(&mut self.requests, id); // requests before it may lack a tag that is not reserved
        } else {
            direct.push_back(&mut self.requests, id);
        }
    }

    /// Whether a request that bypasses the elevator has come up since the run began. It must not
    /// wait for the rest of the elevator ([direct-requests-first]).
    fn has_bypassing(&self, hctx: HctxId) -> bool {
        !self.hctxs[hctx.index()].direct.is_empty()
    }

    /// Sends the requests that bypass the elevator ([direct-requests-first]). Returns why the run
    /// ends there, if it does.
    fn send_direct<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        hctx: HctxId,
        now: Instant,
    ) -> Option<RunStop> {
        let state = &mut self.hctxs[hctx.index()];
        let mut list = core::mem::take(&mut state.lacking_reserved);
        list.append(&mut self.requests, &mut state.direct);
        if list.is_empty() {
            return None;
        }
        let mut lacking_reserved = List::new();
        let held = loop {
            let held = self.send(host, hctx, &mut list, now).held;
            let lacks_reserved = |id: &RequestId| {
                held == Some(Hold::Tag) && self.requests[*id].flags.contains(Flags::RESERVED)
            };
            let Some(id) = list.first().filter(lacks_reserved) else { break held };
            list.remove(&mut self.requests, id);
            lacking_reserved.push_back(&mut self.requests, id);
        };
        // A request that the driver failed may have released further ones.
        let state = &mut self.hctxs[hctx.index()];
        list.append(&mut self.requests, &mut state.direct);
        (state.direct, state.lacking_reserved) = (list, lacking_reserved);
        held.map(RunStop::Held)
    }

    /// Sends the dispatch list ([dispatch-list-first]). Returns why the run ends there, or `None`
    /// if the design continues with new requests.
    fn send_dispatch_list<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        hctx: HctxId,
        now: Instant,
    ) -> Option<RunStop> {
        let kept = self.dispatch_list(hctx);
        let mut list = core::mem::take(kept);
        if list.is_empty() {
            return None;
        }
        let sent = self.send(host, hctx, &mut list, now);
        self.keep(hctx, &mut list);
        if self.policies.dispatch == Dispatch::DrainAll {
            // As in Linux 4.13: without an elevator the run ends. With one it continues if the list
            // made no progress at all, and takes one more request out of the reach of merging.
            let pulls_anyway = self.elevator.is_some() && sent.count == 0;
            if pulls_anyway {
                return None;
            }
            if sent.held.is_none() {
                return Some(self.hold_run(host, hctx, Hold::Leftovers, now));
            }
        }
        sent.held.map(RunStop::Held)
    }

    fn pull_from_elevator<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        hctx: HctxId,
        now: Instant,
    ) -> RunStop {
        let mut total = 0;
        loop {
            if self.is_barred(hctx) {
                return self.hold_run(host, hctx, Hold::Device, now);
            }
            if self.elevator.as_ref().is_none_or(|elevator| !elevator.has_work(hctx)) {
                return RunStop::Idle;
            }
            let (mut list, stopped) = self.gather(host, hctx, now);
            if list.is_empty() {
                return self.hold_run(host, hctx, stopped.unwrap_or(Hold::Order), now);
            }
            let sent = self.send(host, hctx, &mut list, now);
            total += sent.count;
            if let Some(hold) = sent.held {
                self.keep_batch(host, hctx, &mut list, hold, now);
                return RunStop::Held(hold);
            }
            if let Some(hold) = stopped {
                return self.hold_run(host, hctx, hold, now);
            }
            if total >= self.run_batch_max || self.has_bypassing(hctx) {
                self.runs.mark(hctx, true);
                return RunStop::Batch;
            }
        }
    }

    /// Takes requests out of the elevator: one, or under budget ([budget-given-back]) as many as
    /// one batch has. Also returns why it could not take more.
    fn gather<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        hctx: HctxId,
        now: Instant,
    ) -> (List, Option<Hold>) {
        let mut list = List::new();
        let max = self.batch_of(hctx);
        while list.len() < max {
            // Checked first, so that a run with nothing to take is not reported as held for lack of
            // budget.
            if self.elevator.as_ref().is_none_or(|elevator| !elevator.has_work(hctx)) {
                return (list, None);
            }
            let mut budget = None;
            if self.policies.dispatch == Dispatch::Budget {
                budget = host.driver.take_budget(self.id);
                if budget.is_none() {
                    return (list, Some(Hold::Budget));
                }
            }
            let next = match &mut self.elevator {
                Some(elevator) => elevator.dispatch(&mut self.requests, hctx, now),
                None => None,
            };
            let Some(id) = next else {
                self.return_unused(host, budget);
                return (list, None);
            };
            self.requests[id].sorted = true;
            self.scheduled(host, id, budget, now);
            list.push_back(&mut self.requests, id);
            if !self.has_driver_tag_for(host, id) {
                break; // the requests that cannot go now can still merge in the elevator
            }
        }
        (list, None)
    }

    /// Returns how many requests one batch takes out of the elevator.
    fn batch_of(&self, hctx: HctxId) -> u32 {
        let busy = self.hctxs[hctx.index()].busy.is_busy();
        let batches = self.policies.dispatch == Dispatch::Budget
            && self.policies.model == Model::Multi
            && !busy;
        if batches { self.tags_per_hctx.min(self.run_batch_max) } else { 1 }
    }

    /// Takes the driver tag that `id` needs. Returns whether `id` has one.
    fn has_driver_tag_for<D, S>(&mut self, host: &mut Host<D, S>, id: RequestId) -> bool {
        if self.requests[id].driver_tag.is_some() {
            return true;
        }
        let Request { hctx, flags, .. } = self.requests[id];
        let tag = if flags.contains(Flags::RESERVED) {
            host.tags.take_reserved(self.id, hctx)
        } else {
            host.tags.take(self.id, hctx, u32::MAX)
        };
        let Some(tag) = tag else { return false };
        host.tags.assign(hctx, tag, id);
        self.requests[id].driver_tag = Some(tag);
        true
    }

    fn pull_from_software_queues<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        hctx: HctxId,
        now: Instant,
    ) -> RunStop {
        let state = &self.hctxs[hctx.index()];
        if state.pending.is_empty() {
            return RunStop::Idle;
        }
        if self.is_barred(hctx) {
            return self.hold_run(host, hctx, Hold::Device, now);
        }
        let one_by_one = match self.policies.dequeue {
            Dequeue::SpliceAll => false,
            Dequeue::RoundRobin => true,
            Dequeue::ByBusy => state.busy.is_busy(),
        };
        if one_by_one { self.pull_in_turn(host, hctx, now) } else { self.pull_all(host, hctx, now) }
    }

    /// Whether the busy bit forbids pulling. With nothing in flight no completion would clear the
    /// bit, so it is ignored then ([no-lost-wake-up]).
    fn is_barred(&self, hctx: HctxId) -> bool {
        self.in_flight > 0 && self.hctxs[hctx.index()].busy.bars_pulling()
    }

    /// Pulls all requests of every software queue at once.
    fn pull_all<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        hctx: HctxId,
        now: Instant,
    ) -> RunStop {
        let mut list = List::new();
        while let Some(feeder) = self.hctxs[hctx.index()].pending.next_wrapping(0) {
            while let Some(id) = self.pop_feeder(hctx, feeder) {
                self.scheduled(host, id, None, now);
                list.push_back(&mut self.requests, id);
            }
        }
        let sent = self.send(host, hctx, &mut list, now);
        self.keep(hctx, &mut list);
        sent.held.map_or(RunStop::Idle, RunStop::Held)
    }

    /// Pulls one request at a time, from one software queue after the other.
    fn pull_in_turn<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        hctx: HctxId,
        now: Instant,
    ) -> RunStop {
        for _ in 0..self.run_batch_max {
            if self.hctxs[hctx.index()].pending.is_empty() {
                return RunStop::Idle;
            }
            let mut budget = None;
            if self.policies.dispatch == Dispatch::Budget {
                budget = host.driver.take_budget(self.id);
                if budget.is_none() {
                    return self.hold_run(host, hctx, Hold::Budget, now); // [budget-given-back]
                }
            }
            let feeder = self.hctxs[hctx.index()].next_pending_feeder();
            let Some(id) = feeder.and_then(|feeder| self.pop_feeder(hctx, feeder)) else {
                self.return_unused(host, budget);
                return RunStop::Idle;
            };
            self.scheduled(host, id, budget, now);
            let mut list = List::new();
            list.push_back(&mut self.requests, id);
            let sent = self.send(host, hctx, &mut list, now);
            self.keep(hctx, &mut list);
            if let Some(hold) = sent.held {
                return RunStop::Held(hold);
            }
            if self.has_bypassing(hctx) {
                break;
            }
        }
        self.runs.mark(hctx, true);
        RunStop::Batch
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

    /// Notes that `id` has left the elevator or software queue.
    fn scheduled<D, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        id: RequestId,
        budget: Option<Budget>,
        now: Instant,
    ) {
        let rq = &mut self.requests[id];
        rq.times.scheduled = now;
        debug_assert!(rq.budget.is_none(), "[budget-given-back]: request {} has a budget", id.0);
        rq.budget = budget;
        self.emit(host, now, Action::Schedule, id);
    }

    fn return_unused<D: Driver, S>(&mut self, host: &mut Host<D, S>, budget: Option<Budget>) {
        if let Some(budget) = budget {
            host.driver.return_budget(self.id, budget); // [budget-given-back]
        }
    }

    /// Ends the run of `open`, unless the next request goes to the same hardware queue
    /// ([last-or-commit]).
    pub(super) fn end_run<D: Driver, S>(
        &self,
        host: &mut Host<D, S>,
        open: &mut Option<HctxId>,
        next: Option<HctxId>,
        now: Instant,
    ) {
        if let Some(hctx) = open.take_if(|hctx| next != Some(*hctx)) {
            host.driver.commit(self.id, hctx, now);
        }
    }

    /// Offers a request to the driver without staging it. Returns whether the driver accepted it.
    ///
    /// A request without budget is staged, where it can merge; a refused request joins the dispatch
    /// list. Both hold the hardware queue ([no-lost-wake-up]): another run at this instant would
    /// achieve no more. If others are staged, the request is staged behind them and the hardware
    /// queue is marked ([no-overtaking-staged]). If `last` is not set, or the driver does not
    /// accept the request, the caller ends the run ([last-or-commit]).
    pub(super) fn issue_directly<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        id: RequestId,
        last: bool,
        now: Instant,
    ) -> bool {
        let hctx = self.requests[id].hctx;
        let hold = if self.is_quiesced() {
            Hold::Quiesced
        } else if !self.hctxs[hctx.index()].direct.is_empty()
            || !self.dispatch_list(hctx).is_empty()
        {
            Hold::Leftovers
        } else if !self.take_budget_for(host, id) {
            self.hctxs[hctx.index()].busy.run_ended(true);
            Hold::Budget
        } else if !self.hctxs[hctx.index()].pending.is_empty() {
            self.put_budget(host, id); // [no-overtaking-staged]
            self.insert(host, self.ctx_serving(self.requests[id].cpu, hctx), id, now);
            self.runs.mark(hctx, false);
            return false;
        } else {
            self.requests[id].times.scheduled = now;
            let Accept::Busy(busy) = self.offer(host, id, last, now) else { return true };
            self.hctxs[hctx.index()].busy.run_ended(true);
            let mut refused = List::new();
            refused.push_back(&mut self.requests, id);
            self.keep_batch(host, hctx, &mut refused, busy.into(), now);
            let _ = self.hold_run(host, hctx, busy.into(), now);
            return false;
        };
        let ctx = self.ctx_serving(self.requests[id].cpu, hctx);
        self.insert(host, ctx, id, now);
        let _ = self.hold_run(host, hctx, hold, now);
        false
    }

    /// Takes budget for `id` if the design wants it. Returns whether `id` has what the design
    /// wants.
    fn take_budget_for<D: Driver, S>(&mut self, host: &mut Host<D, S>, id: RequestId) -> bool {
        if self.policies.dispatch == Dispatch::Budget && self.requests[id].budget.is_none() {
            self.requests[id].budget = host.driver.take_budget(self.id);
            return self.requests[id].budget.is_some();
        }
        true
    }

    /// Offers a list to the driver, in order, until the driver refuses one. The rest stays on the
    /// list for the caller to keep, the first without budget or tag, and the run is held
    /// ([no-lost-wake-up]).
    fn send<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        hctx: HctxId,
        list: &mut List,
        now: Instant,
    ) -> Sent {
        let mut sent = Sent { count: 0, held: None };
        let mut uncommitted = None;
        while let Some(id) = list.first() {
            let to = self.requests[id].hctx;
            sent.held = if !self.take_budget_for(host, id) {
                Some(Hold::Budget)
            } else if !self.has_driver_tag_for(host, id) {
                Some(Hold::Tag)
            } else {
                list.remove(&mut self.requests, id);
                self.end_run(host, &mut uncommitted, Some(to), now);
                let last = list.is_empty();
                match self.offer(host, id, last, now) {
                    Accept::Busy(busy) => {
                        list.push_front(&mut self.requests, id);
                        Some(busy.into())
                    }
                    Accept::Queued | Accept::Failed(_) => {
                        sent.count += 1;
                        uncommitted = (!last).then_some(to);
                        None
                    }
                }
            };
            if let Some(hold) = sent.held {
                self.end_run(host, &mut uncommitted, None, now);
                self.hctxs[hctx.index()].busy.run_ended(true);
                if self.shares_dispatch() {
                    self.share_busy();
                }
                self.release_holdings(host, id);
                if hold == Hold::Tag {
                    let reserved = self.requests[id].flags.contains(Flags::RESERVED);
                    host.tags.starve(self.id, to, reserved);
                }
                if hold == Hold::Tag && to != hctx {
                    // The missing tag belongs to another hardware queue: that one must be named
                    // when a tag is free.
                    let _ = self.hold_run(host, to, hold, now);
                    sent.held = Some(Hold::Leftovers);
                }
                let _ = self.hold_run(host, hctx, sent.held.unwrap_or(hold), now);
                return sent;
            }
        }
        self.hctxs[hctx.index()].busy.run_ended(false);
        debug_assert!(list.is_empty(), "a list that was sent is empty");
        sent
    }

    /// A request that must wait gives back its budget ([budget-given-back]) and, with an elevator,
    /// its tag ([tag-only-in-driver]).
    fn release_holdings<D: Driver, S>(&mut self, host: &mut Host<D, S>, id: RequestId) {
        self.put_budget(host, id);
        self.put_waiting_tag(host, id);
    }

    /// Offers one request that is on no list to the driver. Unless the driver refuses for now, the
    /// request has left this stage.
    fn offer<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        id: RequestId,
        last: bool,
        now: Instant,
    ) -> Accept {
        debug_assert!(!self.is_quiesced(), "[quiesced-sends-none]: request {} is offered", id.0);
        debug_assert_eq!(
            self.requests[id].state(),
            State::Staged,
            "[request-life-cycle]: request {}",
            id.0
        );
        debug_assert_eq!(
            self.requests[id].budget.is_some(),
            self.policies.dispatch == Dispatch::Budget,
            "budget of request {}",
            id.0
        );
        let rq = &mut self.requests[id];
        let prepared = core::mem::replace(&mut rq.prepared, true);
        let tag: DriverTag = rq.driver_tag.expect("a request is offered under a driver tag");
        let (hctx, budget) = (rq.hctx, rq.budget);
        let issue = Issue {
            queue: self.id,
            hctx,
            tag,
            budget,
            last,
            now,
            effect: DataEffect::Whole,
            id,
            requests: &self.requests,
            bios: &self.bios,
        };
        if !prepared {
            host.driver.prepare(&issue);
        }
        let answer = host.driver.queue_rq(&issue);
        match answer {
            Accept::Queued => {
                let rq = &mut self.requests[id];
                rq.state = State::InFlight;
                rq.times.issued = now;
                rq.deadline = now + self.timeout;
                let deadline = rq.deadline;
                self.in_flight += 1;
                self.arm_timer(deadline);
                self.emit(host, now, Action::Issue, id);
            }
            Accept::Busy(busy) => self.emit(host, now, Action::Refuse(busy), id),
            Accept::Failed(status) => {
                host.driver.unprepare(&issue); // [prepared-until-undone]
                if last {
                    host.driver.commit(self.id, hctx, now); // [last-or-commit]
                }
                // No completion will follow, so this wakes the requests and submitters that wait.
                self.finish(host, id, status, now);
                self.mark_waiting_split();
                self.note_idle(host, now);
                host.note_room();
            }
        }
        debug_assert!(answer != Accept::Queued || is_in_flight(&self.requests[id]));
        answer
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

    /// Like [`Self::keep`] for a batch from the elevator: its requests may be for several hardware
    /// queues, and each may hold budget or a tag.
    fn keep_batch<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        hctx: HctxId,
        refused: &mut List,
        hold: Hold,
        now: Instant,
    ) {
        while let Some(id) = refused.pop_front(&mut self.requests) {
            self.release_holdings(host, id);
            let own = self.requests[id].hctx;
            let mut alone = List::new();
            alone.push_back(&mut self.requests, id);
            self.keep(own, &mut alone);
            if own != hctx {
                if hold == Hold::Tag {
                    host.tags.starve(self.id, own, false);
                }
                let _ = self.hold_run(host, own, hold, now);
            }
        }
    }

    /// With a shared dispatch list, one refusal makes all hardware queues busy.
    fn share_busy(&mut self) {
        for hctx in &mut self.hctxs {
            hctx.busy.run_ended(true);
        }
    }

    /// Gives back the driver tag of a request that must wait, unless the request keeps its tag
    /// ([tag-only-in-driver]).
    pub(super) fn put_waiting_tag<D, S>(&mut self, host: &mut Host<D, S>, id: RequestId) {
        if self.keeps_driver_tag() {
            return;
        }
        if let Some(tag) = self.requests[id].driver_tag.take() {
            host.tags.put(self.requests[id].hctx, tag);
        }
    }

    /// Stops a run of `hctx` because of `hold`, and arranges for the next run ([no-lost-wake-up]).
    fn hold_run<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        hctx: HctxId,
        hold: Hold,
        now: Instant,
    ) -> RunStop {
        debug_assert!(hold != Hold::Quiesced || self.is_quiesced(), "held without a quiesce");
        if host.sink.listens() {
            host.sink.event(&Event {
                at: now,
                action: Action::Hold(hold),
                queue: self.id,
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
            Hold::Host => host.starve(self.id, hctx),
            Hold::Resource => {} // the retry instant below runs it
            Hold::Quiesced => return RunStop::Held(hold), // `unquiesce` runs it
            Hold::Budget | Hold::Device | Hold::Leftovers | Hold::Order => {
                self.runs.restart_on_completion(hctx);
            }
        }
        let no_completion_helps = hold == Hold::Resource || self.in_flight == 0;
        if no_completion_helps {
            self.runs.retry_at(hctx, now + RETRY_DELAY);
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
