//! The request path of a host: from [`Driver::queue_rq`] to transactions on a bus and back.
//!
//! An [`Mmc`] is the driver of one card behind one [`HostController`]. Everything it does on a
//! processor is an [`Act`]: a context ([`Context`]) [begins](Mmc::begin) one and
//! [finishes](Mmc::finish) it, and in between whoever runs it may charge for it or lose the
//! processor. [`Mmc::step`] does both, for those that do not care. Which acts a context has, and in
//! which order, is the table of [`policy`](crate::policy).
//!
//! ```text
//! queue_rq ─► fresh ─prepare─► ready ─start─► on the bus ─settle─► ended ─cleanup─► cleaned ─complete─►
//!                                                 ▲  └─ error ─► recovery ─┐  next_finished
//!                                                 └────── again ◄──────────┘
//! ```
//!
//! # The loop
//!
//! - The interrupt handler passes events to [`Mmc::interrupt`], then does what
//!   [`Context::Interrupt`] has to do.
//! - A context runs while [`Mmc::pending`] says that it has something to do; it is woken when that
//!   turns true.
//! - Requests that are done come out of [`Device::next_finished`]. At [`Device::poll_at`] it is
//!   asked in any case.
//!
//! # Rules
//!
//! - **P1.** One request at a time has the bus, from its start until the card is ready for the next:
//!   busy and recovery included. Nothing else is started meanwhile. A command queue engine that is on
//!   has the bus for all of its tasks, until it has none and is turned off.
//! - **P2.** A request's memory is prepared once, and cleaned up once, when its last transfer is
//!   over.
//! - **P3.** A request is in one place, and at most one context has begun an act for it.
//! - **P4.** While an error is recovered from, no request is taken, and none is given to the command
//!   queue engine.
//! - **P5.** What has come over well does not go over again: what is tried again is the rest.
//! - **P6.** What a read has brought before it failed is reported as done, where no bounce buffer keeps
//!   it.
//!
//! What a card says late of a write: rules A1 to A5 of `unasked`.
//! What transfers nothing (flushes, erases) has the card for itself: rules O1 to O6 of `exclusive`.
//! Background operations that become urgent are run between two requests: U1 to U5 of `upkeep`.
//! Several requests go over in one packed command: Q1 to Q4 of `packed`. [`Driver::queue_rq`] refuses
//! commands of the driver's own.

mod act;
mod bus;
mod cqe;
mod errand;
mod error;
mod exclusive;
mod order;
mod packed;
mod recovery;
mod slot;
mod standby;
mod unasked;
mod upkeep;
mod work;

pub use super::target::Target;
pub use act::{Act, ActKind, Context};
pub use cqe::direct::{DirectEnd, NotDirect};
pub use cqe::{CLEAR_LIMIT, HALT_LIMIT, LAST_HALT_LIMIT, TASK_LIMIT};
pub use errand::{BUSY_LIMIT, FIRST_PAUSE, LONGEST_PAUSE, TRANSACTION_LIMIT};
pub use error::Unsupported;
pub use exclusive::NoSanitize;
pub use recovery::{DATA_RETRIES, RETRIES_MAX, SECTOR_TRIES};
pub use standby::{DISABLE_LIMIT, Idle, StillEnabled};

use super::command::Direction;
use super::command::packed::MAX_ENTRIES;
use super::controller::{HostController, SlotId};
use super::host::{BusyDetect, Transfer};
use super::policy::{
    Bounce, EndedBy, HostPolicy, HsqDefer, HsqLimit, HsqOrder, HsqPolicy, Job, Pipeline, Plan,
};
use super::register::ext_csd::ExceptionEvents;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use blockyard::driver::{Accept, Busy, Device, Driver, Finished, Issue, Outcome};
use blockyard::status::Status;
use blockyard::time::{Instant, earlier};
use blockyard::unit::{Budget, HctxId, QueueId};
use cqe::Cqe;
use errand::OnBus;
use exclusive::{Cache, Operation};
use order::{Fifo, Ready};
use packed::Most;
use slot::{Slot, Stage};
use standby::Power;
use unasked::Unasked;

/// What happened beside the plain way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events that belonged to no transaction.
    pub strays: u64,
    /// Starts that the controller refused in interrupt context.
    pub not_now: u64,
    /// Transfers that failed, and what else that the bus was used for.
    pub failures: u64,
    /// Resets.
    pub resets: u64,
    /// Transactions in which the card said that something exceptional is up
    /// ([`EXCEPTION_EVENT`](super::command::status::Status::EXCEPTION_EVENT)); what, its EXT_CSD
    /// says.
    pub exceptions: u64,
    /// All that EXT_CSD has said so.
    pub events: ExceptionEvents,
    /// How often background operations were started.
    pub bkops_starts: u64,
    /// How often they were interrupted.
    pub bkops_interrupts: u64,
    /// How often the card said that a write failed which had been reported as done: it is lost, and only a
    /// flush tells, if the card has a cache. Only where nobody asks after each write, as the controller or DAT0
    /// says when busy is over.
    pub lost_writes: u64,
    /// How often nobody can know whether a write failed that was reported as done, as the card's answer got lost,
    /// or may as well be about a write that is done again. Flushes fail as for one that did: see rule A3.
    pub doubtful_writes: u64,
}

/// The driver of one card.
#[derive(Debug)]
pub struct Mmc<H> {
    /// The controller.
    pub controller: H,
    policy: HostPolicy,
    plan: Plan,
    target: Target,
    /// The interrupt handler, or the one that ends a request, leaves the next start to deferred
    /// work.
    defers_start: bool,
    slots: Vec<Slot>,
    /// Slots that are in use.
    held: u8,
    permits: u8,
    /// Most requests at once.
    limit: u8,
    fresh: Fifo,
    ready: Ready,
    ended: Fifo,
    cleaned: Fifo,
    bus: Option<OnBus>,
    /// The command queue engine, where the pipeline has it.
    cqe: Option<Cqe>,
    /// The next start is deferred work's, whoever finds the bus free.
    handed: bool,
    most_packed: Most,
    /// What has the bus in one packed command, in order; else empty.
    pack: Vec<SlotId>,
    /// The exclusive operation that waits or is at work (O1).
    exclusive: Option<SlotId>,
    /// How a sanitize has ended.
    sanitized: Option<Status>,
    cache: Cache,
    unasked: Unasked,
    finished: VecDeque<Finished>,
    gone: bool,
    /// The bus is to be tuned before the next transfer.
    wants_retune: bool,
    power: Power,
    /// The latest instant that it was told.
    now: Instant,
    counts: Counts,
}

impl<H: HostController> Mmc<H> {
    /// The driver of the card `target` behind `controller`. Reserves all its memory.
    ///
    /// # Errors
    ///
    /// The policy wants what is not there: on this controller, or not yet at all.
    pub fn new(mut controller: H, target: Target, policy: HostPolicy) -> Result<Self, Unsupported> {
        let has_engine = policy.pipeline == Pipeline::Cqe;
        let has_none = controller.engine().is_none();
        let capabilities = controller.capabilities();
        let lacks_engine = has_engine && (has_none || capabilities.queue_engine_tasks() == 0);
        let hsq = match policy.pipeline {
            Pipeline::Hsq(hsq) => Some(hsq),
            _ => None,
        };
        let queue_depth = target.queue_depth.min(capabilities.queue_engine_tasks());
        let plan = Plan::of(policy.pipeline, queue_depth);
        let most_packed = Most::of(&policy, &target, capabilities);
        let bounces = policy.bounce != Bounce::None;
        let nobody_copies = policy.bounce == Bounce::Sync && !plan.thread.contains(&Job::Settle);
        let unsupported = [
            (lacks_engine, Unsupported::NoEngine),
            (plan.slots == 0, Unsupported::NoCardQueue),
            (has_engine && policy.transfer == Transfer::Pio, Unsupported::EngineCopiesNothing),
            (bounces && policy.transfer == Transfer::Pio, Unsupported::PioNeedsNoBounce),
            (bounces && !controller.has_bounce_buffers(), Unsupported::NoBounceBuffers),
            (nobody_copies, Unsupported::NobodyCopies),
            (most_packed.is_none(), Unsupported::Packed),
            (policy.transfer != capabilities.transfer, Unsupported::Transfer),
            (!finds_busy(capabilities.busy_detect, policy.busy), Unsupported::BusyDetect),
            (hsq.is_some() && policy.busy != BusyDetect::Hardware, Unsupported::HsqWithoutBusy),
            (hsq.is_some_and(|hsq| hsq.limit == HsqLimit::Fixed(0)), Unsupported::NoRequests),
        ];
        if let Some((_, why)) = unsupported.into_iter().find(|(is, _)| *is) {
            return Err(why);
        }
        let defers_start = match hsq.map(|hsq| hsq.defer) {
            None => policy.pipeline == Pipeline::IssueOnCompletion,
            Some(HsqDefer::Always) => true,
            Some(HsqDefer::Removable) => !capabilities.non_removable,
            Some(HsqDefer::Never) => false,
        };
        let walks = hsq.is_some_and(|hsq| hsq.order == HsqOrder::TagWalk);
        let most_packed = most_packed.unwrap_or_default();
        let plan = plan.packing(most_packed.most());
        let slots = plan.slots;
        Ok(Self {
            controller,
            policy,
            plan,
            target,
            defers_start,
            slots: alloc::vec![Slot::FREE; usize::from(slots) + 1], // and the host's own
            held: 0,
            permits: 0,
            limit: match hsq {
                None => slots,
                Some(HsqPolicy { limit: HsqLimit::Dynamic, .. }) => HSQ_NORMAL,
                Some(HsqPolicy { limit: HsqLimit::Fixed(limit), .. }) => limit,
            },
            fresh: Fifo::new(slots),
            ready: if walks { Ready::tag_walk(slots) } else { Ready::fifo(slots) },
            ended: Fifo::new(slots),
            cleaned: Fifo::new(slots + 1),
            bus: None,
            cqe: has_engine.then(|| Cqe::new(slots)),
            handed: false,
            most_packed,
            pack: Vec::with_capacity(usize::from(MAX_ENTRIES)),
            exclusive: None,
            sanitized: None,
            cache: Cache::default(),
            unasked: Unasked::None,
            finished: VecDeque::with_capacity(usize::from(slots)),
            gone: false,
            wants_retune: false,
            power: Power::On,
            now: Instant::ZERO,
            counts: Counts::default(),
        })
    }

    /// What happened beside the plain way.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Most requests that it takes at once, now.
    #[must_use]
    pub fn admits(&self) -> u8 {
        match self.policy.pipeline {
            Pipeline::Hsq(hsq) => hsq.admits(self.limit).min(self.plan.slots),
            _ => self.limit,
        }
    }

    /// The request in `slot`, whose transfers are over, has ended with `status`; `by` does the rest.
    fn retire(&mut self, slot: SlotId, status: Status, by: Context) {
        let is_apart = self.slots[slot.index()].operation.is_some();
        let status = if is_apart { self.ends_apart(slot, status) } else { status };
        let of = &mut self.slots[slot.index()];
        of.status = status;
        of.ended_by = by;
        if of.prepared {
            of.stage = Stage::Ended;
            self.ended.push(slot);
        } else {
            of.stage = Stage::Cleaned;
            self.cleaned.push(slot);
        }
    }

    fn complete(&mut self, slot: SlotId) {
        self.reported(slot);
        let of = core::mem::replace(&mut self.slots[slot.index()], Slot::FREE);
        self.held -= 1;
        let Slot { queue, tag, status, .. } = of;
        match of.operation {
            Some(Operation::Sanitize) => return self.sanitized = Some(status),
            Some(Operation::Upkeep) => return,
            _ => {}
        }
        let came_over = match of.direction {
            Direction::Read if self.policy.bounce == Bounce::None => of.done,
            _ => 0,
        };
        let outcome = match status {
            Status::Ok => Outcome::Done(status),
            _ if came_over == 0 || came_over == of.sectors => Outcome::Done(status),
            _ => Outcome::Partial { sectors: came_over, status }, // P6
        };
        self.finished.push_back(Finished { queue, hctx: HctxId(0), tag, outcome });
    }

    /// Who ends the request that leaves the bus now.
    fn who_ends(&self) -> Context {
        match self.plan.ended_by {
            EndedBy::Thread => Context::Thread,
            EndedBy::Deferred => Context::Deferred,
            EndedBy::WhoWaits => {
                let waits = |slot: &Slot| {
                    matches!(
                        slot.stage,
                        Stage::Fresh | Stage::Preparing | Stage::Ready | Stage::Apart
                    )
                };
                if self.slots.iter().any(waits) { Context::Thread } else { Context::Deferred }
            }
        }
    }

    /// As `first` is sent, the limit follows what is there, where it is to.
    fn adapt_limit(&mut self, first: SlotId) {
        let Pipeline::Hsq(HsqPolicy { limit: HsqLimit::Dynamic, .. }) = self.policy.pipeline else {
            return;
        };
        let is_small = |slot: &SlotId| self.slots[slot.index()].is_small_write();
        let small_writes = usize::from(is_small(&first)) + self.ready.count(is_small);
        self.limit = if small_writes >= 2 { HSQ_PERFORMANCE } else { HSQ_NORMAL };
    }

    /// The card is not there any more: nothing is started, and what waits ends.
    fn lose_card(&mut self) {
        self.gone = true;
        self.handed = false;
        self.ready.clear();
        self.fresh.clear();
        let by = self.who_ends();
        self.lose_tasks(by);
        for at in 0..=self.plan.slots {
            let slot = SlotId(at);
            match self.slots[slot.index()].stage {
                Stage::Fresh | Stage::Ready => self.retire(slot, Status::Gone, by),
                Stage::Apart => self.retire(slot, Status::Gone, Context::Thread),
                _ => {}
            }
        }
    }

    /// The slot for a request with `tag`.
    fn place(&self, tag: usize) -> SlotId {
        let at = match self.policy.pipeline {
            Pipeline::Hsq(_) | Pipeline::Cqe => {
                let slots = usize::from(self.plan.slots);
                assert!(tag < slots, "tag {tag}: the queue of this host has {slots} places");
                tag
            }
            _ => {
                let free = self.slots.iter().position(|slot| slot.stage == Stage::Free);
                free.expect("fewer are held than there are slots")
            }
        };
        SlotId(u8::try_from(at).expect("at most 64 slots"))
    }
}

/// Limits of a host software queue with [`HsqLimit::Dynamic`].
const HSQ_NORMAL: u8 = 2;
const HSQ_PERFORMANCE: u8 = 5;

/// Whether a controller that finds the end of busy by `has` can be used as one that does by `wants`.
const fn finds_busy(has: BusyDetect, wants: BusyDetect) -> bool {
    match wants {
        BusyDetect::Status => true,
        BusyDetect::Line => matches!(has, BusyDetect::Line | BusyDetect::Hardware),
        BusyDetect::Hardware => matches!(has, BusyDetect::Hardware),
    }
}

impl<H: HostController> Driver for Mmc<H> {
    blockyard::leaf_calls!(prepare, unprepare, commit, timed_out, finish);

    /// As many as it [admits](Mmc::admits): what waits for one stays in the elevator.
    fn take_budget(&mut self, _queue: QueueId) -> Option<Budget> {
        if self.permits >= self.admits() || self.exclusive.is_some() {
            return None; // O1
        }
        self.permits += 1;
        Some(Budget(0))
    }

    fn return_budget(&mut self, _queue: QueueId, _budget: Budget) {
        self.permits -= 1;
    }

    /// # Panics
    ///
    /// If it comes from another hardware queue than the first: a card has one.
    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        assert_eq!(issue.hctx, HctxId(0), "a card has one hardware queue");
        self.tick(issue.now);
        if self.gone {
            return Accept::Failed(Status::Gone);
        }
        let Some(mut slot) = Slot::of(issue, &self.target) else {
            return Accept::Failed(Status::NotSupported);
        };
        if self.power == Power::Off {
            return Accept::Busy(Busy::Resource);
        }
        if self.is_recovering() || self.exclusive.is_some() || self.held >= self.admits() {
            // P4, O1
            let only_own = self.held == 1 && self.slots[self.own_slot().index()].is_in_use();
            return Accept::Busy(if only_own { Busy::Resource } else { Busy::Device });
        }
        let at = self.place(issue.tag.index());
        self.held += 1;
        if slot.stage == Stage::Cleaned {
            self.cleaned.push(at);
        } else if slot.stage == Stage::Apart {
            self.await_idle(at, &mut slot, issue.request().times.queued);
        } else if self.policy.transfer == Transfer::Pio {
            self.controller.accept(at, issue);
            slot.stage = Stage::Ready;
            self.ready.push(at);
        } else {
            self.controller.accept(at, issue);
            self.fresh.push(at);
        }
        self.slots[at.index()] = slot;
        Accept::Queued
    }
}

impl<H: HostController> Device for Mmc<H> {
    fn next_finished(&mut self, now: Instant) -> Option<Finished> {
        self.tick(now);
        self.finished.pop_front()
    }

    /// When a card that was busy is to be asked again, or a time limit has passed. All else is told
    /// by the controller.
    fn poll_at(&self) -> Option<Instant> {
        let on_bus = self.bus.as_ref().and_then(OnBus::wakes_at);
        let to_come = |at: Option<Instant>| at.filter(|&at| at > self.now);
        let own = earlier(to_come(on_bus), to_come(self.power.wakes_at()));
        earlier(own, to_come(self.engine_wakes_at()))
    }
}

#[cfg(test)]
mod tests;
