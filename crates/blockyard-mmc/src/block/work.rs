//! Which act a context does next, who else is kept from it, and what it does.

use super::errand::{Errand, OnBus, Phase};
use super::exclusive::Operation;
use super::slot::{Slot, Stage};
use super::{Act, ActKind, Context, Mmc};
use crate::command::Direction;
use crate::controller::{HostController, SlotId};
use crate::policy::{Bounce, Job, Jobs, Overlap};
use blockyard::status::Status;
use blockyard::time::Instant;
use blockyard::unit::SECTOR_BYTES;

/// What a context has to do.
#[derive(Clone, Copy, Debug)]
pub(super) enum Due {
    /// The job, for the request or operation in the slot.
    Slot(Job, SlotId),
    /// The act, for the command queue engine.
    Engine(ActKind),
}

impl<H: HostController> Mmc<H> {
    /// Whether `context` has something to do at `now`. [`Context::Interrupt`] is asked in interrupts
    /// only: what it could do at other times, another context does.
    #[inline]
    #[must_use]
    pub fn pending(&self, context: Context, now: Instant) -> bool {
        self.choose(context, now).is_some()
    }

    /// Begins the next act of `context`, if it has one, and keeps others from it.
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
                ActKind::Start => of.blocks_next(),
                _ if of.operation.is_some() => 0,
                _ => of.sectors,
            }
        });
        let direction = slot.map_or(Direction::Read, |slot| self.slots[slot.index()].direction);
        Some(Act { kind, context, slot, bytes: sectors * SECTOR_BYTES, direction })
    }

    /// Does what `act` is for, at the instant at which its cost has been paid.
    pub fn finish(&mut self, act: Act, now: Instant) {
        self.tick(now);
        let Act { kind, context, slot, .. } = act;
        let Some(slot) = slot else { return self.engine_step(now) };
        let stage = self.slots[slot.index()].stage;
        match kind {
            ActKind::CopyIn if stage == Stage::Preparing => {
                self.controller.copy_in(slot);
                self.slots[slot.index()].copied = true;
                self.goes_on(slot, Stage::Fresh);
            }
            ActKind::CopyOut if stage == Stage::Cleaning => {
                self.controller.copy_out(slot);
                self.goes_on(slot, Stage::Cleaned);
            }
            ActKind::Prepare => {
                self.controller.prepare(slot);
                self.slots[slot.index()].prepared = true;
                self.goes_on(slot, Stage::Ready);
            }
            ActKind::Post => {
                self.controller.post(slot);
                self.slots[slot.index()].prepared = false;
                let copies = self.copies_out(slot);
                self.goes_on(slot, if copies { Stage::Ended } else { Stage::Cleaned });
            }
            ActKind::Complete => self.complete(slot),
            ActKind::Start if stage == Stage::Starting => self.queue_task(slot, now),
            ActKind::SendCommand if stage == Stage::Starting => self.operate_directly(slot, now),
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
            | ActKind::Reset => self.on_bus(kind, context, now),
            ActKind::SwitchQueue
            | ActKind::EnableEngine
            | ActKind::DisableEngine
            | ActKind::HaltEngine
            | ActKind::DiscardTasks
            | ActKind::ClearTasks
            | ActKind::RestartEngine => unreachable!("{kind:?} is for no request"),
        }
    }

    /// An act for `slot` is done, and it waits at `stage`: first in line where it goes on with what was
    /// begun.
    fn goes_on(&mut self, slot: SlotId, stage: Stage) {
        if self.gone && matches!(stage, Stage::Fresh | Stage::Ready) {
            return self.retire(slot, Status::Gone, self.who_ends());
        }
        self.slots[slot.index()].stage = stage;
        match stage {
            Stage::Fresh => self.fresh.push_front(slot),
            Stage::Ready => self.ready.push(slot),
            Stage::Ended => self.ended.push_front(slot),
            Stage::Cleaned => self.cleaned.push(slot),
            _ => unreachable!("nothing waits at {stage:?}"),
        }
    }

    /// Begins and finishes the next act of `context`; says which it was.
    pub fn step(&mut self, context: Context, now: Instant) -> Option<ActKind> {
        let act = self.begin(context, now)?;
        let kind = act.kind;
        self.finish(act, now);
        Some(kind)
    }

    /// What `context` would do next.
    #[inline]
    fn choose(&self, context: Context, now: Instant) -> Option<Due> {
        let open = self.open_jobs();
        if open == Jobs::NONE && self.exclusive.is_none() {
            return None; // most of the time that a host is asked
        }
        self.choose_job(open, context, now)
    }

    /// The jobs that somebody may have something to do of. Of the others nobody has: what there is of them
    /// waits for what is under way on the bus, or at the engine.
    #[inline]
    fn open_jobs(&self) -> Jobs {
        let waits = !self.ready.is_empty();
        let (settles, starts) = match (&self.bus, &self.cqe) {
            (Some(bus), _) => (matches!(bus.phase, Phase::Due(_)), false),
            (None, None) => (false, waits),
            (None, Some(cqe)) => (self.engine_may_step(cqe, waits), waits),
        };
        Jobs::NONE
            .with(Job::Settle, settles)
            .with(Job::Start, starts)
            .with(Job::Prepare, !self.fresh.is_empty())
            .with(Job::Cleanup, !self.ended.is_empty())
            .with(Job::Complete, !self.cleaned.is_empty())
    }

    /// Whether [`Self::open_jobs`] says that nobody has anything to do. What it leaves out, nobody may have.
    #[cfg(test)]
    pub(super) fn checked_open_jobs(&self, now: Instant) -> bool {
        let open = self.open_jobs();
        for context in [Context::Thread, Context::Interrupt, Context::Deferred] {
            for &job in self.jobs_of(context).iter().filter(|job| !open.has(**job)) {
                let due = self.due(job, context, now);
                assert!(due.is_none(), "not open, but {due:?} is due for {context:?}");
            }
            if open == Jobs::NONE && self.exclusive.is_none() {
                let apart = self.due_apart(context, now);
                assert!(apart.is_none(), "nothing is open, but {apart:?} is due for {context:?}");
            }
        }
        open == Jobs::NONE
    }

    const fn jobs_of(&self, context: Context) -> &'static [Job] {
        match context {
            Context::Thread => self.plan.thread,
            Context::Interrupt => self.plan.interrupt,
            Context::Deferred => self.plan.deferred,
        }
    }

    /// The first of the jobs of `context` that there is something to do of, all of which are `open`.
    ///
    /// Not inlined, for most of the time nothing is open.
    #[inline(never)]
    fn choose_job(&self, open: Jobs, context: Context, now: Instant) -> Option<Due> {
        let mut jobs = self.jobs_of(context).iter().filter(|job| open.has(**job));
        let of_plan = jobs.find_map(|&job| self.due(job, context, now));
        of_plan.or_else(|| self.due_apart(context, now))
    }

    /// What `context` would do if it did `job`.
    ///
    /// Inlined, it would load what any job looks at before it looks at the first.
    #[inline(never)]
    fn due(&self, job: Job, context: Context, now: Instant) -> Option<Due> {
        let of_context = |slot: &SlotId| self.slots[slot.index()].ended_by == context;
        let slot = match job {
            Job::Settle => match self.due_on_bus(context, now) {
                None => return self.due_of_engine(context, now).map(Due::Engine),
                on_bus => on_bus,
            },
            Job::Start => self.ready.first().filter(|_| self.may_start(context)),
            Job::Prepare => self.fresh.first(),
            Job::Cleanup => self.ended.iter().find(of_context),
            Job::Complete => self.cleaned.iter().find(of_context),
        };
        slot.map(|slot| Due::Slot(job, slot))
    }

    /// The act that does next what is `due`, and the slot that it is for.
    fn act_of(&self, due: Due) -> (ActKind, Option<SlotId>) {
        let (job, slot) = match due {
            Due::Engine(kind) => return (kind, None),
            Due::Slot(job, slot) => (job, slot),
        };
        let kind = match job {
            Job::Settle => self.bus.as_ref().expect("it has something due").errand.act(),
            Job::Start => self.next_errand(slot).act(),
            Job::Prepare => self.preparing(slot),
            Job::Cleanup => self.cleaning(slot),
            Job::Complete => ActKind::Complete,
        };
        (kind, Some(slot))
    }

    /// The next act of the preparation of `slot`.
    fn preparing(&self, slot: SlotId) -> ActKind {
        let Slot { direction, copied, .. } = self.slots[slot.index()];
        let copies = self.policy.bounce == Bounce::Async && direction == Direction::Write;
        if copies && !copied { ActKind::CopyIn } else { ActKind::Prepare }
    }

    /// The next act of the cleanup of `slot`.
    fn cleaning(&self, slot: SlotId) -> ActKind {
        if self.slots[slot.index()].prepared { ActKind::Post } else { ActKind::CopyOut }
    }

    /// Whether what `slot` has read is copied out when it has been cleaned up.
    fn copies_out(&self, slot: SlotId) -> bool {
        let Slot { direction, status, .. } = self.slots[slot.index()];
        self.policy.bounce == Bounce::Async && direction == Direction::Read && status == Status::Ok
    }

    /// What the bus is next used for by `slot`, which is to transfer.
    pub(super) fn next_errand(&self, slot: SlotId) -> Errand {
        let Slot { direction, copied, operation, .. } = self.slots[slot.index()];
        let copies = self.policy.bounce == Bounce::Sync && direction == Direction::Write;
        if self.wants_retune && self.engine_is_off() && !self.is_within_erase(slot) {
            if self.has_unasked() { Errand::Ask } else { Errand::Retune }
        } else if operation == Some(Operation::Upkeep) {
            Errand::Look
        } else if operation.is_some() {
            Errand::Operate
        } else if copies && !copied {
            Errand::CopyIn
        } else {
            Errand::Transfer
        }
    }

    /// Whether `context` may put the next request on the bus, or give it to the engine that has it.
    fn may_start(&self, context: Context) -> bool {
        if self.cqe.is_some() {
            return self.may_queue();
        }
        let tunes_first = self.wants_retune && self.plan.deferred.contains(&Job::Start);
        let is_deferred = self.handed || tunes_first;
        let turn = match context {
            Context::Thread => !is_deferred,
            Context::Interrupt => !is_deferred && !self.defers_start,
            Context::Deferred => is_deferred,
        };
        turn && self.bus.is_none() && self.before_is_done() // P1
    }

    /// Whether all is done that is to be done between the one before and the next start.
    pub(super) fn before_is_done(&self) -> bool {
        let is_at = |stages: &[Stage]| self.slots.iter().any(|slot| stages.contains(&slot.stage));
        match self.plan.overlap {
            Overlap::AtOnce => true,
            Overlap::AfterCleanup => !is_at(&[Stage::Ended, Stage::Cleaning]),
            Overlap::AfterComplete => {
                !is_at(&[Stage::Ended, Stage::Cleaning, Stage::Cleaned, Stage::Completing])
            }
        }
    }

    /// `context` begins `kind` for `slot`: nobody else can (P3).
    fn claim(&mut self, kind: ActKind, context: Context, slot: SlotId) {
        let stage = self.slots[slot.index()].stage;
        let looked_for_a_start = match stage {
            Stage::Ready => true,
            Stage::Ended | Stage::Cleaned => self.ready.is_empty(),
            _ => false,
        };
        self.slots[slot.index()].stage = match stage {
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
                self.gather(slot);
                let errand = self.next_errand(slot);
                // It still waits itself: a dispatcher is there for what comes before its transfer.
                let by = self.who_ends();
                self.bus = Some(OnBus::starting(slot, errand, by));
                Stage::OnBus
            }
            Stage::Apart if self.goes_direct(slot) => Stage::Starting,
            Stage::Apart => {
                self.claim_apart(slot);
                Stage::OnBus
            }
            Stage::OnBus => {
                self.bus.as_mut().expect("it has something due").claim();
                Stage::OnBus
            }
            Stage::Ended => {
                self.ended.remove(slot);
                Stage::Cleaning
            }
            Stage::Cleaned => {
                self.cleaned.remove(slot);
                Stage::Completing
            }
            Stage::Free
            | Stage::Preparing
            | Stage::Starting
            | Stage::Queued
            | Stage::Direct
            | Stage::Cleaning
            | Stage::Completing => {
                unreachable!("P3: {kind:?} for a slot that is {stage:?}")
            }
        };
        if context == Context::Deferred && looked_for_a_start {
            self.handed = false;
        }
    }
}
