//! The driver of one card: its state, and the life of a request in it.

use super::act::Context;
use super::cache::Cache;
use super::claim::Claim;
use super::counts::Counts;
use super::error::Unsupported;
use super::open::OpenTransfer;
use super::operation::Operation;
use super::order::{Fifo, Ready};
use super::pack_limit::PackLimit;
use super::power::Power;
use super::slot::{Kind, Slot, Stage};
use super::tasks::state::Cqe;
use super::unconfirmed::UnconfirmedWrite;
use crate::command::packed::MAX_ENTRIES;
use crate::controller::{HostController, SlotId};
use crate::host::{BusyDetect, Transfer};
use crate::policy::{
    Bounce, EndedBy, HostPolicy, HsqDefer, HsqLimit, HsqOrder, HsqPolicy, Job, LoneRead, Packed,
    Pipeline, Plan,
};
use crate::target::Target;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use blockyard::driver::{Finished, Outcome};
use blockyard::status::Status;
use blockyard::time::Instant;
use blockyard::unit::HctxId;

/// The driver of one card.
#[derive(Debug)]
pub struct Mmc<H> {
    /// The controller.
    pub controller: H,
    pub(super) policy: HostPolicy,
    pub(super) plan: Plan,
    pub(super) target: Target,
    /// Whether the interrupt handler, or the context that ends a request, leaves the next start to
    /// deferred work, and the end of the request with it.
    pub(super) defers_starts: bool,
    pub(super) slots: Vec<Slot>,
    /// The number of slots in use.
    pub(super) slots_in_use: u8,
    /// The number of budgets that are taken.
    pub(super) budgets_taken: u8,
    /// The largest number of requests at once.
    pub(super) limit: u8,
    pub(super) fresh: Fifo,
    pub(super) ready: Ready,
    pub(super) ended: Fifo,
    pub(super) posted: Fifo,
    pub(super) bus: Option<Claim>,
    /// The transfer that was left open, or is on the bus and stays open.
    pub(super) open: Option<OpenTransfer>,
    /// Whether a recovery stops an open transfer with writes that were reported.
    pub(super) stops_writes: bool,
    /// The read on the bus whose memory is not prepared, or not all of it, unless an act is at it.
    pub(super) unprepared: Option<SlotId>,
    /// The command queue engine, where the pipeline has it.
    pub(super) cqe: Option<Cqe>,
    /// Whether the next start is left to deferred work, whichever context finds the bus free.
    pub(super) start_deferred: bool,
    pub(super) pack_limit: PackLimit,
    /// The requests of the packed command that has the bus, in order; empty if none does.
    pub(super) pack: Vec<SlotId>,
    /// The exclusive operation that waits or is under way ([exclusive-waits-for-idle]).
    pub(super) exclusive: Option<SlotId>,
    /// The status with which a sanitize has ended.
    pub(super) sanitized: Option<Status>,
    pub(super) cache: Cache,
    pub(super) unconfirmed: UnconfirmedWrite,
    /// The first response after the unconfirmed write got lost ([failure-told-in-recovery]).
    pub(super) answer_lost: bool,
    pub(super) finished: VecDeque<Finished>,
    /// Whether the card was removed.
    pub(super) card_gone: bool,
    /// Whether the bus is to be tuned before the next transfer.
    pub(super) retune_needed: bool,
    pub(super) power: Power,
    /// The latest instant that the driver knows.
    pub(super) now: Instant,
    pub(super) counts: Counts,
}

/// The usual limit of a host software queue with [`HsqLimit::Dynamic`].
const HSQ_NORMAL: u8 = 2;
/// The limit of such a queue while small writes wait.
const HSQ_PERFORMANCE: u8 = 5;

/// Returns why `policy` does not work on `controller`, if it does not. `packs`: card and controller
/// can pack requests as the policy wants.
fn unsupported(
    controller: &mut impl HostController,
    policy: &HostPolicy,
    plan: &Plan,
    packs: bool,
) -> Option<Unsupported> {
    let wants_engine = policy.pipeline == Pipeline::Cqe;
    let has_engine = controller.engine().is_some();
    let capabilities = controller.capabilities();
    let lacks_engine = wants_engine && (!has_engine || capabilities.queue_engine_tasks() == 0);
    let hsq_limit = match policy.pipeline {
        Pipeline::Hsq(hsq) => Some(hsq.limit),
        _ => None,
    };
    let bounces = policy.bounce != Bounce::None;
    let is_beside = policy.lone_read == LoneRead::BesideAccess;
    let prepares_beside = policy.transfer == Transfer::Dma
        && !bounces
        && policy.packed == Packed::Off
        && plan.ended_by == EndedBy::Thread
        && capabilities.holds_data;
    let leaves_open = capabilities.keeps_open && !wants_engine && policy.packed == Packed::Off;
    let nobody_copies = policy.bounce == Bounce::Sync && !plan.thread.contains(&Job::Settle);
    let reasons = [
        (lacks_engine, Unsupported::NoEngine),
        (plan.slots == 0, Unsupported::NoCardQueue),
        (wants_engine && policy.transfer == Transfer::Pio, Unsupported::EngineCopiesNothing),
        (bounces && policy.transfer == Transfer::Pio, Unsupported::PioNeedsNoBounce),
        (bounces && !controller.has_bounce_buffers(), Unsupported::NoBounceBuffers),
        (nobody_copies, Unsupported::NobodyCopies),
        (!packs, Unsupported::Packed),
        (policy.transfer != capabilities.transfer, Unsupported::Transfer),
        (is_beside && !prepares_beside, Unsupported::BesideAccess),
        (policy.open_limit.is_some() && !leaves_open, Unsupported::LeftOpen),
        (!finds_busy(capabilities.busy_detect, policy.busy), Unsupported::BusyDetect),
        (hsq_limit.is_some() && policy.busy != BusyDetect::Hardware, Unsupported::HsqWithoutBusy),
        (hsq_limit == Some(HsqLimit::Fixed(0)), Unsupported::NoRequests),
    ];
    reasons.into_iter().find_map(|(holds, why)| holds.then_some(why))
}

/// Returns whether a controller that finds the end of busy by `has` can work as one that does by
/// `wants`.
const fn finds_busy(has: BusyDetect, wants: BusyDetect) -> bool {
    match wants {
        BusyDetect::Status => true,
        BusyDetect::Line => matches!(has, BusyDetect::Line | BusyDetect::Hardware),
        BusyDetect::Hardware => matches!(has, BusyDetect::Hardware),
    }
}

impl<H: HostController> Mmc<H> {
    /// The driver of the card `target` behind `controller`. Reserves all memory.
    ///
    /// # Errors
    ///
    /// Fails if `policy` asks for something that the controller or the card does not have.
    pub fn new(mut controller: H, target: Target, policy: HostPolicy) -> Result<Self, Unsupported> {
        let hsq = match policy.pipeline {
            Pipeline::Hsq(hsq) => Some(hsq),
            _ => None,
        };
        let capabilities = controller.capabilities();
        let queue_depth = target.queue_depth.min(capabilities.queue_engine_tasks());
        let plan = Plan::of(policy.pipeline, queue_depth);
        let pack_limit = PackLimit::of(&policy, &target, capabilities);
        if let Some(why) = unsupported(&mut controller, &policy, &plan, pack_limit.is_some()) {
            return Err(why);
        }
        let capabilities = controller.capabilities();
        let defers_starts = match hsq.map(|hsq| hsq.defer) {
            Some(HsqDefer::Always) => true,
            Some(HsqDefer::Removable) => !capabilities.non_removable,
            Some(HsqDefer::Never) | None => false,
        };
        let walks = hsq.is_some_and(|hsq| hsq.order == HsqOrder::TagWalk);
        let pack_limit = pack_limit.unwrap_or_default();
        let plan = plan.packing(pack_limit.largest());
        let ends_in_interrupt = hsq.is_some() && !defers_starts && policy.bounce == Bounce::None;
        let plan = if ends_in_interrupt { plan.ending_in_interrupt() } else { plan };
        let slots = plan.slots;
        debug_assert!((1..=64).contains(&slots), "a plan of {slots} slots");
        Ok(Self {
            controller,
            policy,
            plan,
            target,
            defers_starts,
            // the last one is for internal operations
            slots: alloc::vec![Slot::FREE; usize::from(slots) + 1],
            slots_in_use: 0,
            budgets_taken: 0,
            limit: match hsq {
                None => slots,
                Some(HsqPolicy { limit: HsqLimit::Dynamic, .. }) => HSQ_NORMAL,
                Some(HsqPolicy { limit: HsqLimit::Fixed(limit), .. }) => limit,
            },
            fresh: Fifo::new(slots),
            ready: if walks { Ready::tag_walk(slots) } else { Ready::fifo(slots) },
            ended: Fifo::new(slots),
            posted: Fifo::new(slots + 1),
            bus: None,
            open: None,
            stops_writes: false,
            unprepared: None,
            cqe: (policy.pipeline == Pipeline::Cqe).then(|| Cqe::new(slots)),
            start_deferred: false,
            pack_limit,
            pack: Vec::with_capacity(usize::from(MAX_ENTRIES)),
            exclusive: None,
            sanitized: None,
            cache: Cache::empty(target.cache_on),
            unconfirmed: UnconfirmedWrite::None,
            answer_lost: false,
            finished: VecDeque::with_capacity(usize::from(slots)),
            card_gone: false,
            retune_needed: false,
            power: Power::On,
            now: Instant::ZERO,
            counts: Counts::default(),
        })
    }

    /// Returns the counters of rare events.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the largest number of requests that the driver accepts at once, now.
    #[must_use]
    pub fn admits(&self) -> u8 {
        match self.policy.pipeline {
            Pipeline::Hsq(hsq) => hsq.admits(self.limit).min(self.plan.slots),
            _ => self.limit,
        }
    }

    /// Ends the request in `slot`, whose transfers are over, with `status`. The context `by` posts
    /// and reports it.
    pub(super) fn retire(&mut self, slot: SlotId, status: Status, by: Context) {
        debug_assert!(self.slots[slot.index()].is_in_use(), "{slot:?} holds no request to end");
        self.unprepared = self.unprepared.filter(|unprepared| *unprepared != slot);
        let is_exclusive = self.exclusive == Some(slot);
        let status = if is_exclusive { self.end_exclusive(slot, status) } else { status };
        let of = &mut self.slots[slot.index()];
        of.status = status;
        of.ended_by = by;
        if of.memory.is_prepared() {
            of.stage = Stage::Ended;
            self.ended.push(slot);
        } else {
            of.stage = Stage::Posted;
            self.posted.push(slot);
        }
    }

    /// Reports the request in `slot` as complete and frees the slot.
    pub(super) fn complete(&mut self, slot: SlotId) {
        self.reported(slot);
        let of = core::mem::replace(&mut self.slots[slot.index()], Slot::FREE);
        debug_assert!(!of.memory.is_prepared(), "[memory-prepared-once]: {slot:?} is not posted");
        self.slots_in_use -= 1;
        let Slot { queue, tag, status, .. } = of;
        match of.kind {
            Kind::Operation(Operation::Sanitize) => return self.sanitized = Some(status),
            Kind::Operation(Operation::Background | Operation::CloseTransfer) => return,
            _ => {}
        }
        let came_over = match of.kind {
            Kind::Read if self.policy.bounce == Bounce::None => of.done,
            _ => 0,
        };
        let outcome = match status {
            Status::Ok => Outcome::Done(status),
            _ if came_over == 0 || came_over == of.sectors => Outcome::Done(status),
            // The blocks before the error are good.
            _ => Outcome::Partial { sectors: came_over, status },
        };
        self.finished.push_back(Finished { queue, hctx: HctxId(0), tag, outcome });
    }

    /// Returns the context that ends the request which leaves the bus now.
    pub(super) fn ending_context(&self) -> Context {
        match self.plan.ended_by {
            EndedBy::Thread => Context::Thread,
            // The interrupt handler ends a request only within the interrupt of its transfer.
            EndedBy::Deferred | EndedBy::Interrupt => Context::Deferred,
            EndedBy::WaitingThread if self.has_to_start() => Context::Thread,
            EndedBy::WaitingThread => Context::Deferred,
        }
    }

    /// Returns whether an accepted request has not reached the bus.
    fn has_to_start(&self) -> bool {
        self.slots.iter().any(|slot| {
            matches!(slot.stage, Stage::Fresh | Stage::Preparing | Stage::Ready | Stage::Exclusive)
        })
    }

    /// Returns whether a thread that has dispatched a request, and that sleeps until the driver is
    /// done with it, still sleeps: a request is to be prepared or transfers nothing, or waits for
    /// the bus under a plan in which the thread starts it.
    #[must_use]
    pub fn holds_dispatcher(&self) -> bool {
        let starts = self.plan.ended_by == EndedBy::WaitingThread;
        let is_open = !self.fresh.is_empty() || self.exclusive.is_some();
        is_open || (starts && self.has_to_start())
    }

    /// Adapts a dynamic limit to the requests that are ready, as `first` is sent.
    pub(super) fn adapt_limit(&mut self, first: SlotId) {
        let Pipeline::Hsq(HsqPolicy { limit: HsqLimit::Dynamic, .. }) = self.policy.pipeline else {
            return;
        };
        let small_writes = usize::from(self.is_small_write(&first))
            + self.ready.count(|slot| self.is_small_write(slot));
        self.limit = if small_writes >= 2 { HSQ_PERFORMANCE } else { HSQ_NORMAL };
    }

    fn is_small_write(&self, slot: &SlotId) -> bool {
        self.slots[slot.index()].is_small_write()
    }

    /// Ends all waiting requests after the card was removed. Nothing is started from now on.
    pub(super) fn lose_card(&mut self) {
        self.card_gone = true;
        self.open = None;
        self.ready.clear();
        self.fresh.clear();
        let by = self.ending_context();
        self.lose_tasks(by);
        for at in 0..=self.plan.slots {
            let slot = SlotId(at);
            match self.slots[slot.index()].stage {
                Stage::Fresh | Stage::Ready => self.retire(slot, Status::Gone, by),
                Stage::Exclusive => self.retire(slot, Status::Gone, Context::Thread),
                _ => {}
            }
        }
    }

    /// Returns the slot for a request with `tag`.
    pub(super) fn place(&self, tag: usize) -> SlotId {
        let at = match self.policy.pipeline {
            Pipeline::Hsq(_) | Pipeline::Cqe => {
                let slots = usize::from(self.plan.slots);
                assert!(
                    tag < slots,
                    "tag {tag} of a host with {slots} slots: give its tag set at most {slots} tags"
                );
                tag
            }
            _ => {
                let free = self.slots.iter().position(|slot| slot.stage == Stage::Free);
                free.expect("free slot for an accepted request")
            }
        };
        SlotId(u8::try_from(at).expect("slot number of at most 64 slots"))
    }
}
