//! Which act a context does next, who else is kept from it, and what it does.

use super::bus::{Errand, OnBus};
use super::slot::{Slot, Stage};
use super::{Act, ActKind, Context, Mmc};
use crate::mmc::command::Direction;
use crate::mmc::controller::{HostController, SlotId};
use crate::mmc::policy::{Bounce, Job, Overlap};
use crate::status::Status;
use crate::time::Instant;
use crate::unit::SECTOR_BYTES;

impl<H: HostController> Mmc<H> {
    /// Whether `context` has something to do at `now`. [`Context::Interrupt`] is asked in interrupts
    /// only: what it could do at other times, another context does.
    #[must_use]
    pub fn pending(&self, context: Context, now: Instant) -> bool {
        self.choose(context, now).is_some()
    }

    /// Begins the next act of `context`, if it has one, and keeps others from it.
    pub fn begin(&mut self, context: Context, now: Instant) -> Option<Act> {
        self.tick(now);
        let (kind, slot) = self.choose(context, now)?;
        self.claim(kind, context, slot);
        let of = &self.slots[slot.index()];
        let sectors = if kind == ActKind::Start { of.blocks_next() } else { of.sectors };
        Some(Act { kind, context, slot, bytes: sectors * SECTOR_BYTES })
    }

    /// Does what `act` is for, at the instant at which its cost has been paid.
    pub fn finish(&mut self, act: Act, now: Instant) {
        self.tick(now);
        let Act { kind, context, slot, .. } = act;
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
            ActKind::Cleanup => {
                self.controller.cleanup(slot);
                self.slots[slot.index()].prepared = false;
                let copies = self.copies_out(slot);
                self.goes_on(slot, if copies { Stage::Ended } else { Stage::Cleaned });
            }
            ActKind::Complete => self.complete(slot),
            ActKind::Start
            | ActKind::CopyIn
            | ActKind::CopyOut
            | ActKind::Retune
            | ActKind::SendStatus
            | ActKind::LookAtLine
            | ActKind::SendStop
            | ActKind::Reset => self.on_bus(kind, context, now),
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

    /// What `context` would do next, and for which slot.
    fn choose(&self, context: Context, now: Instant) -> Option<(ActKind, SlotId)> {
        let jobs = match context {
            Context::Thread => self.plan.thread,
            Context::Interrupt => self.plan.interrupt,
            Context::Deferred => self.plan.deferred,
        };
        let of_context = |slot: &SlotId| self.slots[slot.index()].ended_by == context;
        jobs.iter().find_map(|job| match job {
            Job::Settle => self.due_on_bus(context, now),
            Job::Start if self.may_start(context) => {
                self.ready.first().map(|slot| (self.next_errand(slot).act(), slot))
            }
            Job::Start => None,
            Job::Prepare => self.fresh.first().map(|slot| (self.preparing(slot), slot)),
            Job::Cleanup => self.ended.iter().find(of_context).map(|at| (self.cleaning(at), at)),
            Job::Complete => self.cleaned.iter().find(of_context).map(|at| (ActKind::Complete, at)),
        })
    }

    /// The next act of the preparation of `slot`.
    fn preparing(&self, slot: SlotId) -> ActKind {
        let Slot { direction, copied, .. } = self.slots[slot.index()];
        let copies = self.policy.bounce == Bounce::Async && direction == Direction::Write;
        if copies && !copied { ActKind::CopyIn } else { ActKind::Prepare }
    }

    /// The next act of the cleanup of `slot`.
    fn cleaning(&self, slot: SlotId) -> ActKind {
        if self.slots[slot.index()].prepared { ActKind::Cleanup } else { ActKind::CopyOut }
    }

    /// Whether what `slot` has read is copied out when it has been cleaned up.
    fn copies_out(&self, slot: SlotId) -> bool {
        let Slot { direction, status, .. } = self.slots[slot.index()];
        self.policy.bounce == Bounce::Async && direction == Direction::Read && status == Status::Ok
    }

    /// What the bus is next used for by `slot`, which is to transfer.
    pub(super) fn next_errand(&self, slot: SlotId) -> Errand {
        let Slot { direction, copied, .. } = self.slots[slot.index()];
        let copies = self.policy.bounce == Bounce::Sync && direction == Direction::Write;
        if self.wants_retune {
            Errand::Retune
        } else if copies && !copied {
            Errand::CopyIn
        } else {
            Errand::Transfer
        }
    }

    /// Whether `context` may put the next request on the bus.
    fn may_start(&self, context: Context) -> bool {
        let tunes_first = self.wants_retune && self.plan.deferred.contains(&Job::Start);
        let is_deferred = self.handed || tunes_first;
        let turn = match context {
            Context::Thread => !is_deferred,
            Context::Interrupt => !is_deferred && !self.defers_start,
            Context::Deferred => is_deferred,
        };
        let is_at = |stages: &[Stage]| self.slots.iter().any(|slot| stages.contains(&slot.stage));
        let before_is_done = match self.plan.overlap {
            Overlap::AtOnce => true,
            Overlap::AfterCleanup => !is_at(&[Stage::Ended, Stage::Cleaning]),
            Overlap::AfterComplete => {
                !is_at(&[Stage::Ended, Stage::Cleaning, Stage::Cleaned, Stage::Completing])
            }
        };
        turn && self.bus.is_none() && before_is_done // P1
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
            Stage::Ready => {
                self.ready.take(slot);
                self.adapt_limit(slot);
                let errand = self.next_errand(slot);
                // It still waits itself: a dispatcher is there for what comes before its transfer.
                let by = self.who_ends();
                self.bus = Some(OnBus::starting(slot, errand, by));
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
            Stage::Free | Stage::Preparing | Stage::Cleaning | Stage::Completing => {
                unreachable!("P3: {kind:?} for a slot that is {stage:?}")
            }
        };
        if context == Context::Deferred && looked_for_a_start {
            self.handed = false;
        }
    }
}
