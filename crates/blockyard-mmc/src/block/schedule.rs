//! Which act a context does next, how other contexts are kept from it, and what it does.

use super::act::{Act, ActKind, Context};
use super::claim::{BusStep, Claim, Phase};
use super::mmc::Mmc;
use super::operation::Operation;
use super::slot::{Kind, Memory, Slot, Stage};
use crate::command::Direction;
use crate::controller::{HostController, SlotId};
use crate::policy::{Bounce, Job, Jobs, LoneRead, Overlap};
use blockyard::status::Status;
use blockyard::time::Instant;
use blockyard::unit::SECTOR_BYTES;

/// The work that a context has to do.
#[derive(Clone, Copy, Debug)]
pub(super) enum Due {
    /// A job for the request or operation in a slot.
    Slot(Job, SlotId),
    /// An act for the command queue engine.
    Engine(ActKind),
}

impl<H: HostController> Mmc<H> {
    /// Returns whether `context` has something to do at `now`. Ask for [`Context::Interrupt`] in
    /// interrupts only: at other times another context does what it could do.
    #[inline]
    #[must_use]
    pub fn pending(&self, context: Context, now: Instant) -> bool {
        self.choose(context, now).is_some()
    }

    /// Begins the next act of `context`, if it has one. No other context can begin it
    /// ([one-act-per-request]).
    pub fn begin(&mut self, context: Context, now: Instant) -> Option<Act> {
        self.tick(now);
        let (kind, slot) = self.act_of(self.choose(context, now)?);
        match slot {
            Some(slot) => self.claim(kind, context, slot),
            None => self.claim_engine(now),
        }
        let sectors = slot.map_or(0, |slot| {
            let of = &self.slots[slot.index()];
            match kind {
                ActKind::Start if !self.pack.is_empty() => self.packed_blocks(),
                ActKind::Start => of.next_blocks(),
                ActKind::PrepareFirst | ActKind::PrepareMore => of.next_prepared(),
                _ if of.is_exclusive() => 0,
                _ => of.sectors,
            }
        });
        let direction = slot.map_or(Direction::Read, |slot| self.slots[slot.index()].direction());
        Some(Act { kind, context, slot, bytes: sectors * SECTOR_BYTES, direction })
    }

    /// Lets `act` take effect, at the instant at which its cost has been paid.
    pub fn finish(&mut self, act: Act, now: Instant) {
        self.tick(now);
        let Act { kind, context, slot, .. } = act;
        let Some(slot) = slot else { return self.engine_step(now) };
        let stage = self.slots[slot.index()].stage;
        match kind {
            ActKind::CopyIn if stage == Stage::Preparing => {
                self.controller.copy_in(slot);
                self.slots[slot.index()].memory.copy_in();
                self.move_to(slot, Stage::Fresh);
            }
            ActKind::CopyOut if stage == Stage::Posting => {
                self.controller.copy_out(slot);
                self.move_to(slot, Stage::Posted);
            }
            ActKind::Prepare => {
                debug_assert_eq!(stage, Stage::Preparing, "[one-act-per-request]: {slot:?}");
                self.controller.prepare(slot);
                self.slots[slot.index()].memory.prepare(); // [memory-prepared-once]
                self.move_to(slot, Stage::Ready);
            }
            ActKind::PrepareFirst | ActKind::PrepareMore => self.prepared_beside(slot, now),
            ActKind::Post => {
                debug_assert_eq!(stage, Stage::Posting, "[one-act-per-request]: {slot:?}");
                self.controller.post(slot);
                self.slots[slot.index()].memory.post(); // [memory-prepared-once]
                let copies = self.copies_out(slot);
                self.move_to(slot, if copies { Stage::Ended } else { Stage::Posted });
            }
            ActKind::Complete => {
                debug_assert_eq!(stage, Stage::Completing, "[one-act-per-request]: {slot:?}");
                self.complete(slot);
            }
            ActKind::Start if stage == Stage::Starting => self.queue_task(slot, now),
            ActKind::SendCommand if stage == Stage::Starting => self.send_directly(slot, now),
            ActKind::Start
            | ActKind::CopyIn
            | ActKind::CopyOut
            | ActKind::Retune
            | ActKind::SendStatus
            | ActKind::HandleStatus
            | ActKind::PollLine
            | ActKind::SendStop
            | ActKind::SendCommand
            | ActKind::ReadRegister
            | ActKind::Reset => self.finish_bus_act(kind, context, now),
            ActKind::SwitchQueue
            | ActKind::EnableEngine
            | ActKind::DisableEngine
            | ActKind::HaltEngine
            | ActKind::DiscardTasks
            | ActKind::ClearTasks
            | ActKind::RestartEngine => {
                unreachable!("{kind:?} is an act of the engine, not of a request")
            }
        }
    }

    /// Moves the request in `slot`, for which an act has ended, to `stage`: to the front of the
    /// line where it goes on with what has begun.
    fn move_to(&mut self, slot: SlotId, stage: Stage) {
        if self.card_gone && matches!(stage, Stage::Fresh | Stage::Ready) {
            return self.retire(slot, Status::Gone, self.ending_context());
        }
        self.slots[slot.index()].stage = stage;
        match stage {
            Stage::Fresh => self.fresh.push_front(slot),
            Stage::Ready => self.ready.push(slot),
            Stage::Ended => self.ended.push_front(slot),
            Stage::Posted => self.posted.push(slot),
            _ => unreachable!("no request waits at {stage:?}"),
        }
    }

    /// Notes that memory of the read in `slot` has been prepared beside it.
    fn prepared_beside(&mut self, slot: SlotId, now: Instant) {
        let of = &mut self.slots[slot.index()];
        if of.stage != Stage::OnBus {
            return; // The card is gone. What was prepared before is posted, and no more is needed.
        }
        let blocks = of.next_prepared();
        let is_more_left = of.memory.prepare_more(blocks, of.sectors); // [memory-prepared-once]
        self.unprepared = is_more_left.then_some(slot);
        self.controller.prepare_beside(slot, blocks, now);
    }

    /// Begins and finishes the next act of `context`. Returns its kind.
    pub fn step(&mut self, context: Context, now: Instant) -> Option<ActKind> {
        let act = self.begin(context, now)?;
        let kind = act.kind;
        self.finish(act, now);
        Some(kind)
    }

    /// Returns what `context` would do next.
    #[inline]
    fn choose(&self, context: Context, now: Instant) -> Option<Due> {
        if context == Context::Thread
            && let Some(slot) = self.unprepared
        {
            // Before anything that follows the transfer: a retry needs all of the memory.
            return Some(Due::Slot(Job::Prepare, slot));
        }
        let open = self.open_jobs();
        if open == Jobs::NONE && self.exclusive.is_none() && self.open.is_none() {
            return None; // the usual case
        }
        self.choose_job(open, context, now)
    }

    /// Returns the jobs that some context may have to do. All other jobs wait for the bus or for
    /// the engine.
    #[inline]
    fn open_jobs(&self) -> Jobs {
        let waits = !self.ready.is_empty() || self.lone_read().is_some();
        let (settles, starts) = match (&self.bus, &self.cqe) {
            (Some(bus), _) => (matches!(bus.phase, Phase::Due(_)), false),
            (None, None) => (false, waits),
            (None, Some(cqe)) => (self.engine_may_step(cqe, waits), waits),
        };
        Jobs::NONE
            .with(Job::Settle, settles)
            .with(Job::Start, starts)
            .with(Job::Prepare, !self.fresh.is_empty())
            .with(Job::Post, !self.ended.is_empty())
            .with(Job::Complete, !self.posted.is_empty())
    }

    /// Returns whether no context has a job, according to [`Self::open_jobs`]. Checks that no
    /// context has a job that it leaves out.
    #[cfg(test)]
    pub(super) fn checked_open_jobs(&self, now: Instant) -> bool {
        let open = self.open_jobs();
        for context in [Context::Thread, Context::Interrupt, Context::Deferred] {
            for &job in self.jobs_of(context).iter().filter(|job| !open.has(**job)) {
                let due = self.due(job, context, now);
                assert!(due.is_none(), "not open, but {due:?} is due for {context:?}");
            }
            if open == Jobs::NONE && self.exclusive.is_none() && self.open.is_none() {
                let exclusive = self.due_exclusive(context, now);
                assert!(
                    exclusive.is_none(),
                    "nothing is open, but {exclusive:?} is due for {context:?}"
                );
            }
        }
        open == Jobs::NONE && self.unprepared.is_none()
    }

    /// Returns the jobs of `context`, in the order in which it prefers them.
    const fn jobs_of(&self, context: Context) -> &'static [Job] {
        match context {
            Context::Thread => self.plan.thread,
            Context::Interrupt => self.plan.interrupt,
            Context::Deferred => self.plan.deferred,
        }
    }

    /// Returns the first of the `open` jobs that `context` has to do.
    ///
    /// Not inlined: most of the time no job is open.
    #[inline(never)]
    fn choose_job(&self, open: Jobs, context: Context, now: Instant) -> Option<Due> {
        let mut jobs = self.jobs_of(context).iter().filter(|job| open.has(**job));
        let of_plan = jobs.find_map(|&job| self.due(job, context, now));
        of_plan.or_else(|| self.due_exclusive(context, now))
    }

    /// Returns what `context` has to do of `job`.
    ///
    /// Not inlined: inlined, it would load the fields that all jobs need before it checks the first
    /// job.
    #[inline(never)]
    fn due(&self, job: Job, context: Context, now: Instant) -> Option<Due> {
        let slot = match job {
            Job::Settle => match self.due_on_bus(context, now) {
                None => return self.due_of_engine(now).map(Due::Engine),
                on_bus => on_bus,
            },
            Job::Start => {
                let next = self.ready.first().or_else(|| self.lone_read());
                next.filter(|_| self.may_start(context))
            }
            Job::Prepare => self
                .fresh
                .first()
                .filter(|slot| !(self.lone_read() == Some(*slot) && self.may_start(context))),
            Job::Post => self.ended.iter().find(|slot| self.is_ended_by(context, slot)),
            Job::Complete => self.posted.iter().find(|slot| self.is_ended_by(context, slot)),
        };
        slot.map(|slot| Due::Slot(job, slot))
    }

    fn is_ended_by(&self, context: Context, slot: &SlotId) -> bool {
        self.slots[slot.index()].ended_by == context
    }

    /// Returns the kind of the next act of what is `due`, and its slot.
    fn act_of(&self, due: Due) -> (ActKind, Option<SlotId>) {
        let (job, slot) = match due {
            Due::Engine(kind) => return (kind, None),
            Due::Slot(job, slot) => (job, slot),
        };
        let kind = match job {
            Job::Settle => self.bus.as_ref().expect("claim with a step due").step.act(),
            Job::Start => self.next_bus_step(slot).act(),
            Job::Prepare => self.preparing(slot),
            Job::Post => self.posting(slot),
            Job::Complete => ActKind::Complete,
        };
        (kind, Some(slot))
    }

    /// Returns the next act of the preparation of `slot`.
    fn preparing(&self, slot: SlotId) -> ActKind {
        let of = &self.slots[slot.index()];
        if of.stage == Stage::OnBus {
            let is_begun = of.memory.is_prepared();
            return if is_begun { ActKind::PrepareMore } else { ActKind::PrepareFirst };
        }
        let copies = self.policy.bounce == Bounce::Async && of.is_write();
        if copies && !of.memory.is_copied() { ActKind::CopyIn } else { ActKind::Prepare }
    }

    /// Returns the next act of posting `slot`.
    fn posting(&self, slot: SlotId) -> ActKind {
        if self.slots[slot.index()].memory.is_prepared() { ActKind::Post } else { ActKind::CopyOut }
    }

    /// Returns whether the data that `slot` has read is copied out of the bounce buffer after
    /// posting.
    fn copies_out(&self, slot: SlotId) -> bool {
        let Slot { kind, status, .. } = self.slots[slot.index()];
        self.policy.bounce == Bounce::Async && kind.is_read() && status == Status::Ok
    }

    /// Returns the next step of the bus for `slot`, which has something to transfer or to do.
    pub(super) fn next_bus_step(&self, slot: SlotId) -> BusStep {
        let of = &self.slots[slot.index()];
        let copies = self.policy.bounce == Bounce::Sync && of.is_write();
        if self.closes_before(of) {
            BusStep::CloseTransfer // [open-transfer-closes-first]
        } else if self.retune_needed && self.engine_is_off() && !self.is_within_erase(slot) {
            if self.has_unconfirmed_write() { BusStep::AskBeforeTuning } else { BusStep::Retune }
        } else if of.kind == Kind::Operation(Operation::Background) {
            BusStep::ReadExtCsd
        } else if of.is_exclusive() {
            BusStep::Command
        } else if copies && !of.memory.is_copied() {
            BusStep::CopyIn
        } else {
            BusStep::Transfer
        }
    }

    /// Returns the read that is to start before its memory is prepared, if the bus is free for it.
    fn lone_read(&self) -> Option<SlotId> {
        let is_beside = self.policy.lone_read == LoneRead::BesideAccess;
        if !is_beside || self.bus.is_some() || !self.ready.is_empty() || self.retune_needed {
            return None;
        }
        self.fresh.first().filter(|slot| self.slots[slot.index()].kind.is_read())
    }

    /// Returns whether the memory of `slot`, which is on the bus, is prepared beside its transfer.
    pub(super) fn prepares_beside(&self, slot: SlotId) -> bool {
        let of = &self.slots[slot.index()];
        self.policy.lone_read == LoneRead::BesideAccess
            && of.stage == Stage::OnBus
            && of.kind.is_read()
            && of.memory == Memory::Unprepared
    }

    /// Returns whether `context` may start the next request on the bus, or give it to the engine.
    fn may_start(&self, context: Context) -> bool {
        if self.cqe.is_some() {
            return self.may_queue();
        }
        let tunes_first = self.retune_needed && self.plan.deferred.contains(&Job::Start);
        let is_deferred = self.start_deferred || tunes_first;
        let turn = match context {
            Context::Thread => !is_deferred,
            Context::Interrupt => !is_deferred && !self.defers_starts,
            Context::Deferred => is_deferred,
        };
        turn && self.bus.is_none() && self.previous_allows_start() // [one-claim-on-bus]
    }

    /// Returns whether the requests before have come as far as they must before the next one
    /// starts.
    pub(super) fn previous_allows_start(&self) -> bool {
        match self.plan.overlap {
            Overlap::AtOnce => true,
            Overlap::AfterTaken => !self.has_slot_at(&[Stage::Ended]),
            Overlap::AfterPost => !self.has_slot_at(&[Stage::Ended, Stage::Posting]),
            Overlap::AfterComplete => {
                !self.has_slot_at(&[Stage::Ended, Stage::Posting, Stage::Posted, Stage::Completing])
            }
        }
    }

    fn has_slot_at(&self, stages: &[Stage]) -> bool {
        self.slots.iter().any(|slot| stages.contains(&slot.stage))
    }

    /// Notes that `context` begins the act `kind` for `slot`. No other context can begin one
    /// ([one-act-per-request]).
    fn claim(&mut self, kind: ActKind, context: Context, slot: SlotId) {
        let stage = self.slots[slot.index()].stage;
        self.slots[slot.index()].stage = match stage {
            Stage::Fresh if kind == ActKind::Start => {
                self.fresh.remove(slot);
                self.claim_bus(slot)
            }
            Stage::Fresh => {
                self.fresh.remove(slot);
                Stage::Preparing
            }
            Stage::Ready if self.cqe.is_some() => {
                self.ready.take(slot);
                Stage::Starting
            }
            Stage::Ready => {
                self.ready.take(slot);
                self.adapt_limit(slot);
                self.fill_pack(slot);
                self.claim_bus(slot)
            }
            Stage::Exclusive if kind == ActKind::Complete => {
                self.end_empty_flush(slot);
                Stage::Completing
            }
            Stage::Exclusive if self.goes_direct(slot) => Stage::Starting,
            Stage::Exclusive => {
                self.claim_exclusive(slot);
                Stage::OnBus
            }
            Stage::OnBus if matches!(kind, ActKind::PrepareFirst | ActKind::PrepareMore) => {
                self.unprepared = None;
                Stage::OnBus
            }
            Stage::OnBus => {
                self.bus.as_mut().expect("claim with a step due").begin_step();
                Stage::OnBus
            }
            Stage::Ended => {
                self.ended.remove(slot);
                Stage::Posting
            }
            Stage::Posted => {
                self.posted.remove(slot);
                Stage::Completing
            }
            Stage::Free if kind == ActKind::SendStop => self.claim_stale(slot),
            Stage::Free
            | Stage::Preparing
            | Stage::Starting
            | Stage::Queued
            | Stage::Direct
            | Stage::Posting
            | Stage::Completing => {
                unreachable!("[one-act-per-request]: {kind:?} for a slot that is {stage:?}")
            }
        };
        // Deferred work has nothing more to start: the next request is its dispatcher's.
        if context == Context::Deferred && self.ready.is_empty() {
            self.start_deferred = false;
        }
    }

    /// Claims the bus for the request in `slot`.
    fn claim_bus(&mut self, slot: SlotId) -> Stage {
        let step = self.next_bus_step(slot);
        // This request still counts as waiting: its dispatcher does what comes before the transfer.
        let by = self.ending_context();
        debug_assert!(self.bus.is_none(), "[one-claim-on-bus]");
        self.bus = Some(Claim::starting(slot, step, by));
        Stage::OnBus
    }
}
