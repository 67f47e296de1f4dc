//! The last step to the driver: a batch with budget and driver tags, and its refusal.
//!
//! The rules are those of [`hardware_queue`](crate::hardware_queue).

use super::is_in_flight;
use super::turn::Turn;
use crate::bio::{Flags, Op};
use crate::driver::{Accept, DataEffect, Driver, Issue};
use crate::hardware_queue::{RETRY_DELAY, RunStop};
use crate::policy::{Dispatch, Restart};
use crate::request::{List, Request, Requests, State};
use crate::trace::{Action, Event, Hold, Sink};
use crate::unit::{CpuId, DriverTag, HctxId, RequestId};

/// Requests on their way to the driver. A lone one, the usual case, is on no list.
#[derive(Debug)]
pub(super) struct Batch {
    first: RequestId,
    rest: List,
}

impl Batch {
    pub(super) const fn of(first: RequestId) -> Self {
        Self { first, rest: List::new() }
    }

    /// Takes the batch out of a list; `None` if the list is empty.
    pub(super) fn take(requests: &mut Requests, list: &mut List) -> Option<Self> {
        Some(Self { first: list.pop_front(requests)?, rest: core::mem::take(list) })
    }

    pub(super) fn push(&mut self, requests: &mut Requests, id: RequestId) {
        self.rest.push_back(requests, id);
    }

    pub(super) const fn len(&self) -> u32 {
        1 + self.rest.len()
    }
}

/// The result of offering a batch to the driver.
#[derive(Debug)]
pub(super) struct Sent {
    /// Requests that the driver accepted or failed.
    pub(super) count: u32,
    /// Why the offers stopped before the end of the batch.
    pub(super) held: Option<Hold>,
    /// The requests that were not sent, in order. The first has neither budget nor a tag that is
    /// not its own.
    pub(super) left: List,
}

impl<D: Driver, S: Sink> Turn<'_, D, S> {
    /// Offers a batch to the driver, in order, until the driver refuses a request. The rest is left
    /// for the caller to keep, the first without budget or tag, and the run is held
    /// ([no-lost-wake-up]).
    pub(super) fn send_batch(&mut self, hctx: HctxId, batch: Batch) -> Sent {
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
        // A batch may go to several hardware queues, each of which learns where its run ends.
        self.end_run(uncommitted, Some(to));
        match self.offer_request(id, last) {
            Accept::Busy(busy) => Err(busy.into()),
            Accept::Queued | Accept::Failed(_) => {
                *uncommitted = Some(to);
                Ok(())
            }
        }
    }

    /// Holds a run of `hctx` that could not send `id` because of `hold` ([no-lost-wake-up]).
    /// Returns why the run of `hctx` is held.
    #[cold]
    fn stop_sending(&mut self, hctx: HctxId, id: RequestId, hold: Hold) -> Hold {
        self.queue.hctxs[hctx.index()].busy.run_ended(true);
        if self.queue.shares_dispatch() {
            self.queue.share_busy();
        }
        self.release_holdings(id);
        let rq = &self.queue.requests[id];
        let to = rq.hctx;
        let reserved = rq.flags.contains(Flags::RESERVED);
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

    /// Takes budget for `id` if the design wants it. Returns whether `id` has what the design
    /// wants.
    pub(super) fn take_budget_for(&mut self, id: RequestId) -> bool {
        let rq = &mut self.queue.requests[id];
        if self.queue.policies.dispatch == Dispatch::Budget && rq.budget.is_none() {
            rq.budget = self.host.driver.take_budget(self.queue.id);
            return rq.budget.is_some();
        }
        true
    }

    /// Takes the driver tag that `id` needs. Returns whether `id` has one.
    #[inline(always)]
    pub(super) fn has_driver_tag_for(&mut self, id: RequestId) -> bool {
        let rq = &mut self.queue.requests[id];
        if rq.driver_tag.is_some() {
            return true;
        }
        let reserved = rq.flags.contains(Flags::RESERVED);
        rq.driver_tag = self.host.tags.take_for(self.queue.id, rq.hctx, reserved, |_| id);
        rq.driver_tag.is_some()
    }

    /// Offers one request that is on no list to the driver. Unless the driver refuses for now, the
    /// request has left this stage.
    #[inline(always)]
    pub(super) fn offer_request(&mut self, id: RequestId, last: bool) -> Accept {
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
        let Request { hctx, budget, .. } = *rq;
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
                if self.queue.wbt.is_some() {
                    self.queue.note_issued(id, self.now);
                }
                self.queue.in_flight += 1;
                self.queue.arm_timer(deadline);
                self.emit_request(Action::Issue, id);
            }
            Accept::Busy(busy) => self.emit_request(Action::Refuse(busy), id),
            Accept::Failed(status) => {
                self.host.driver.unprepare(&issue); // [prepared-until-undone]
                if last {
                    self.host.driver.commit(self.queue.id, hctx, self.now); // [last-or-commit]
                }
                self.finish_request(id, 0, status);
                self.follow_failed();
            }
        }
        debug_assert!(answer != Accept::Queued || is_in_flight(&self.queue.requests[id]));
        answer
    }

    /// The driver has failed a request when it was offered. No completion will follow, so this
    /// wakes the requests and submitters that wait.
    #[cold]
    fn follow_failed(&mut self) {
        if self.queue.runs.is_paced() {
            self.follow_elevator();
        }
        self.queue.mark_waiting_split();
        self.note_idle();
        self.host.note_room(self.queue.id);
    }

    /// Ends the run of `open`, unless the next request goes to the same hardware queue
    /// ([last-or-commit]).
    pub(super) fn end_run(&mut self, open: &mut Option<HctxId>, next: Option<HctxId>) {
        if let Some(hctx) = open.take_if(|hctx| next != Some(*hctx)) {
            self.host.driver.commit(self.queue.id, hctx, self.now);
        }
    }

    /// A request that the driver does not own gives back its budget ([budget-given-back]) and, with
    /// an elevator, its driver tag ([tag-only-in-driver]).
    pub(super) fn release_holdings(&mut self, id: RequestId) {
        self.put_budget(id);
        // Without an elevator the tag is the request's number, and stays until the request has
        // ended.
        if self.queue.keeps_driver_tag() {
            return;
        }
        let rq = &mut self.queue.requests[id];
        if let Some(tag) = rq.driver_tag.take() {
            self.host.tags.put(rq.hctx, tag);
        }
    }

    /// Gives back the budget that `id` holds ([budget-given-back]).
    pub(super) fn put_budget(&mut self, id: RequestId) {
        if let Some(budget) = self.queue.requests[id].budget.take() {
            self.host.driver.return_budget(self.queue.id, budget);
        }
    }

    /// Stops a run of `hctx` because of `hold`, and arranges for the next run ([no-lost-wake-up]).
    pub(super) fn hold_run(&mut self, hctx: HctxId, hold: Hold) -> RunStop {
        debug_assert!(hold != Hold::Quiesced || self.queue.is_quiesced(), "held without a quiesce");
        // A hold concerns a hardware queue: the fields of a bio or request mean nothing.
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
        let restart = self.queue.policies.restart;
        match hold {
            Hold::Tag => {} // `starve` has registered the hardware queue
            Hold::Host => self.host.register_starved(self.queue.id, hctx, restart),
            Hold::Resource => {} // the retry instant below runs it
            Hold::Quiesced => return RunStop::Held(hold), // `unquiesce` runs it
            Hold::Budget | Hold::Device | Hold::Leftovers => match restart {
                Restart::Own => self.queue.runs.restart_on_completion(hctx),
                Restart::InTurn => self.host.register_starved(self.queue.id, hctx, restart),
            },
            Hold::Order => self.wait_for_order(hctx),
        }
        if hold == Hold::Resource || self.queue.in_flight == 0 {
            self.retry_soon(hctx, hold);
        }
        RunStop::Held(hold)
    }

    /// Runs `hctx` after a while. Nothing tells the core when a resource is there again, or when a
    /// device with nothing in flight has room.
    #[cold]
    fn retry_soon(&mut self, hctx: HctxId, hold: Hold) {
        let at = self.now + RETRY_DELAY;
        if hold == Hold::Order {
            // These 3 ms do not anticipate the end of an idling that is 8 ms away.
            self.queue.runs.retry_at(hctx, at);
        } else {
            // The hardware queue may have to ask the elevator later than that.
            self.queue.runs.retry_by(hctx, at);
        }
    }

    /// Arranges for the run after one of `hctx` to which the elevator gave nothing.
    fn wait_for_order(&mut self, hctx: HctxId) {
        let elevator = self.queue.elevator.as_ref();
        if let Some(at) = elevator.and_then(|of| of.ask_again_at(self.now)) {
            debug_assert!(
                self.queue.runs.is_idling() || self.queue.idles_until(hctx).is_none(),
                "[no-lost-wake-up]: {hctx:?} gets nothing, and does not ask at the end of the wait"
            );
            return self.queue.runs.retry_at(hctx, at);
        }
        self.queue.runs.restart_on_completion(hctx);
        // While the elevator idles, no completion need come.
        if let Some(at) = self.queue.idles_until(hctx) {
            debug_assert!(at > self.now, "[idling-bounded] until {at}, at {}", self.now);
            self.queue.runs.retry_at(hctx, at);
        }
    }

    /// A request has finished: a hardware queue asks a paced elevator if it wants that, and when it
    /// no longer idles.
    #[cold] // under bfq alone
    pub(super) fn follow_elevator(&mut self) {
        let Some(elevator) = &self.queue.elevator else { return };
        self.queue.runs.follow(elevator.after_finish(), self.now);
    }

    /// Notes whether a paced elevator still idles, after a run of `hctx`.
    #[cold]
    pub(super) fn note_idling(&mut self, hctx: HctxId) {
        // Waits begin at completions alone.
        if self.queue.idles_until(hctx).is_none_or(|at| at <= self.now) {
            self.queue.runs.idle_until(hctx, None, self.now);
        }
    }
}
