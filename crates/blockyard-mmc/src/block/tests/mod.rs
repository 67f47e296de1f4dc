//! Tests of the request path over a [scripted controller](scripted), in virtual time. A checked
//! layer watches the contract of the driver.
//!
//! [`Bench`] runs a request queue over an [`Mmc`] with two processors, for the thread and for
//! deferred work, and an interrupt handler that takes no time. It records which act ran when.

mod background;
mod beside;
mod bounce;
mod calls;
mod checked;
mod counted;
mod cqe;
mod direct;
mod direct_flush;
mod dispatcher;
mod doubtful_write;
mod error;
mod events;
mod exclusive;
mod extension;
mod gone;
mod hsq;
mod left_open;
mod limit;
mod overlap;
mod packed;
mod recovered;
mod reset;
mod retune;
mod scripted;
mod swarm;
mod way;

use super::act::{Act, ActKind, Context};
use super::claim::{BUSY_LIMIT, FIRST_PAUSE, LONGEST_PAUSE, REQUEST_LIMIT};
use super::counts::Counts;
use super::cqe::{CLEAR_LIMIT, HALT_LIMIT, LAST_HALT_LIMIT, TASK_LIMIT};
use super::error::Unsupported;
use super::exclusive::NoSanitize;
use super::mmc::Mmc;
use super::operation::Operation;
use super::power::{DISABLE_LIMIT, Idle, Power, StillEnabled};
use super::slot::Stage;
use super::tasks::direct_command::{DirectEnd, NotDirect};
use super::unconfirmed::UnconfirmedWrite;
use super::verdict::RETRIES_MAX;
use crate::card::ReliableWrite;
use crate::command::queue::TaskId;
use crate::command::{Addressing, Rca};
use crate::controller::HostEvent;
use crate::controller::{HostController, SlotId};
use crate::engine::EngineEvent;
use crate::host::HostCapabilities;
use crate::host::{BusyDetect, Transfer};
use crate::policy::{
    Bounce, EndedBy, HostPolicy, HsqDefer, HsqLimit, HsqOrder, HsqPolicy, Job, LoneRead, Pipeline,
    Plan,
};
use crate::register::ext_csd::example::emmc_5_1;
use crate::register::ext_csd::{ExceptionEvents, Hpi, index};
use crate::target::Target;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use blockyard::bio::{Bio, Flags, Op};
use blockyard::driver::{Accept, Busy, Device, Driver, Finished, Issue, Outcome};
use blockyard::host::Host;
use blockyard::layer::checked::{Checked, Terms};
use blockyard::limits::Limits;
use blockyard::policy::Policies;
use blockyard::prng::Prng;
use blockyard::request_queue::{QueueConfig, RequestQueue};
use blockyard::status::Status;
use blockyard::tag::TagSetConfig;
use blockyard::time::Duration;
use blockyard::time::Instant;
use blockyard::unit::CpuId;
use blockyard::unit::{Budget, QueueId};
use scripted::{Fault, Scripted, Span};
use std::collections::BTreeMap;
use std::format;
use std::string::String;
use std::vec;

const EVERY_PIPELINE: [Pipeline; 10] = [
    Pipeline::Cqe,
    Pipeline::Serial,
    Pipeline::TwoSlotMapOverlap,
    Pipeline::TwoSlotFull,
    Pipeline::PostBeforeStart,
    Pipeline::IssueOnCompletion,
    Pipeline::BlkMqWait,
    Pipeline::Hsq(HsqPolicy::V8),
    Pipeline::Hsq(HsqPolicy::TODAY),
    Pipeline::Hsq(HsqPolicy {
        order: HsqOrder::Fifo,
        limit: HsqLimit::Fixed(5),
        limit_off_by_one: false,
        defer: HsqDefer::Never,
    }),
];

/// The pipelines without a command queue engine, in which requests have the bus in turn.
fn one_by_one() -> impl Iterator<Item = Pipeline> {
    EVERY_PIPELINE.into_iter().filter(|pipeline| *pipeline != Pipeline::Cqe)
}

const EVERY_BUSY: [BusyDetect; 3] = [BusyDetect::Status, BusyDetect::Line, BusyDetect::Hardware];

const DEPTH: u8 = 8;

const CARD: Target = Target {
    set_block_count: true,
    queue_depth: DEPTH,
    ..Target::plain(Rca(1), Addressing::Sectors)
};

/// An eMMC 5.1 device with all its features turned on.
fn emmc() -> Target {
    let on = [index::CACHE_CTRL, index::ERASE_GROUP_DEF, index::HPI_MGMT];
    let card = crate::card::tests::emmc(emmc_5_1(), &on);
    Target::of(&card, Scripted::new(Transfer::Dma, BusyDetect::Hardware).capabilities())
}

/// The same device, whose host starts background operations.
fn emmc_by_host() -> Target {
    Target { bkops: true, ..emmc() }
}

fn task_done(number: u8) -> EngineEvent {
    EngineEvent::TaskDone(TaskId::new(number))
}

/// Returns the limits of a disk on `target`.
fn limits(target: &Target) -> Limits {
    let fua = target.reliable_write != ReliableWrite::None;
    Limits {
        write_cache: target.cache_on || fua,
        fua,
        max_discard_sectors: max_if(target.discard.is_some()),
        max_write_zeroes_sectors: max_if(target.write_zeroes.is_some()),
        logical_block_sectors: target.unit_sectors,
        ..Limits::new(1 << 33)
    }
}

fn max_if(able: bool) -> u32 {
    if able { u32::MAX } else { 0 }
}

/// Returns every policy.
fn every_policy() -> Vec<HostPolicy> {
    let mut all = Vec::new();
    for pipeline in EVERY_PIPELINE {
        for busy in EVERY_BUSY {
            for transfer in [Transfer::Dma, Transfer::Pio] {
                for close_ended in [false, true] {
                    let policy = HostPolicy::new(pipeline, busy);
                    all.push(HostPolicy { transfer, close_ended, ..policy });
                }
            }
        }
    }
    let beside = all.iter().filter(|policy| {
        let by_thread = Plan::of(policy.pipeline, DEPTH).ended_by == EndedBy::Thread;
        by_thread && policy.transfer == Transfer::Dma
    });
    let beside: Vec<_> =
        beside.map(|policy| HostPolicy { lone_read: LoneRead::BesideAccess, ..*policy }).collect();
    all.extend(beside);
    all.retain(|policy| match policy.pipeline {
        Pipeline::Hsq(_) => policy.busy == BusyDetect::Hardware,
        Pipeline::Cqe => policy.transfer == Transfer::Dma && policy.close_ended,
        _ => true,
    });
    all
}

fn us(us: u64) -> Duration {
    Duration::from_us(us)
}

/// Returns the cost of an act.
fn cost(kind: ActKind) -> Duration {
    us(match kind {
        ActKind::Prepare => 50,
        ActKind::PrepareFirst => 20,
        ActKind::PrepareMore => 30,
        ActKind::CopyIn | ActKind::CopyOut => 20,
        ActKind::Post => 30,
        ActKind::Complete => 10,
        ActKind::Start => 5,
        ActKind::SendStatus | ActKind::SendStop | ActKind::SwitchQueue | ActKind::DiscardTasks => 3,
        ActKind::SendCommand | ActKind::ReadRegister => 3,
        ActKind::EnableEngine | ActKind::DisableEngine | ActKind::RestartEngine => 7,
        ActKind::HaltEngine | ActKind::ClearTasks => 2,
        ActKind::HandleStatus | ActKind::PollLine => 1,
        ActKind::Reset => 1000,
        ActKind::Retune => 400,
    })
}

/// A finished act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Did {
    kind: ActKind,
    context: Context,
    /// The first sector of the request, or [`ENGINE`].
    sector: u64,
    bytes: u32,
    from: Instant,
    to: Instant,
}

/// Takes the place of a sector in acts of the engine.
const ENGINE: u64 = u64::MAX;

struct Bench {
    host: Host<Checked<Mmc<Scripted>>>,
    queue: RequestQueue,
    now: Instant,
    waiting: VecDeque<Bio>,
    running: [Option<(Act, Instant, Instant)>; 2],
    did: Vec<Did>,
    ended: BTreeMap<u64, Status>,
    most_held: u8,
    /// The largest number of bios in flight, at most the number of tags.
    depth: u32,
    /// Stretches costs at random, so that acts overlap in other ways.
    jitter: Option<Prng>,
    /// The first sectors of writes that have succeeded.
    written: Vec<u64>,
    /// The driver's reports, in order.
    outcomes: Vec<Outcome>,
    /// How many of the writes may be lost because a flush has failed.
    forgiven: usize,
    /// How many of the writes each flush must cover, by cookie.
    covers: BTreeMap<u64, usize>,
    /// How often no context had work, except an exclusive operation.
    nothing_open: u64,
}

const CONTEXTS: [Context; 2] = [Context::Thread, Context::Deferred];

impl Bench {
    fn new(policy: HostPolicy) -> Self {
        Self::on(Scripted::new(policy.transfer, policy.busy), policy)
    }

    fn on(controller: Scripted, policy: HostPolicy) -> Self {
        Self::under(Policies::NONE, controller, policy)
    }

    /// A bench with a request queue of this design.
    fn under(policies: Policies, controller: Scripted, policy: HostPolicy) -> Self {
        Self::with(policies, controller, CARD, policy)
    }

    /// A bench with this card.
    fn with(policies: Policies, controller: Scripted, target: Target, policy: HostPolicy) -> Self {
        Self::over(policies, Mmc::new(controller, target, policy).unwrap())
    }

    /// A bench with a request queue of this design over `mmc`.
    fn over(policies: Policies, mut mmc: Mmc<Scripted>) -> Self {
        mmc.controller.target = mmc.target;
        let by_tag = mmc.policy.pipeline == Pipeline::Cqe;
        let depth = if by_tag { mmc.plan.slots } else { super::super::policy::HSQ_SLOTS };
        let tags = TagSetConfig::single(depth.into());
        let mut limits = limits(&mmc.target);
        limits.write_cache |= mmc.policy.open_limit.is_some(); // [flush-closes-transfer]
        let config = QueueConfig::new(1, 1, limits, policies);
        let checked = Checked::new(mmc, vec![Terms::of(&config, &tags)], &tags);
        let host = Host::new(checked, (), tags);
        let queue = RequestQueue::new(QueueId(0), config, &host);
        Self {
            host,
            queue,
            now: Instant::ZERO,
            waiting: VecDeque::new(),
            running: [None, None],
            did: Vec::new(),
            ended: BTreeMap::new(),
            most_held: 0,
            depth: u32::from(depth),
            jitter: None,
            written: Vec::new(),
            outcomes: Vec::new(),
            forgiven: 0,
            covers: BTreeMap::new(),
            nothing_open: 0,
        }
    }

    fn mmc(&mut self) -> &mut Mmc<Scripted> {
        &mut self.host.driver.below
    }

    fn script(&mut self) -> &mut Scripted {
        &mut self.mmc().controller
    }

    fn spans(&self) -> &[Span] {
        &self.host.driver.below.controller.spans
    }

    /// Submits bios that are not merged, far from each other.
    fn submit(&mut self, bios: impl IntoIterator<Item = Bio>) {
        self.waiting.extend(bios);
    }

    /// Submits `count` reads of 8 sectors, at sectors 0, 100, 200 and so on.
    fn reads(&mut self, count: u64) {
        self.submit((0..count).map(|at| Bio::read(100 * at, 8, at)));
    }

    fn writes(&mut self, count: u64) {
        self.submit((0..count).map(|at| Bio::write(100 * at, 8, at)));
    }

    fn record(&mut self, act: Act, from: Instant) {
        let kind = act.kind();
        let context = act.context();
        let now = self.now;
        let sector = act.slot().map(|slot| self.host.driver.below.slots[slot.index()].sector);
        let sector = sector.unwrap_or(ENGINE);
        let bytes = act.bytes();
        self.did.push(Did { kind, context, sector, bytes, from, to: now });
        self.mmc().finish(act, now);
        self.look_for_work();
    }

    /// Lets every idle context look for work.
    fn look_for_work(&mut self) {
        let now = self.now;
        self.nothing_open += u64::from(self.mmc().checked_open_jobs(now));
    }

    fn interrupt(&mut self, event: HostEvent) {
        let now = self.now;
        self.mmc().interrupt(event, now);
        self.look_for_work();
        while let Some(act) = self.mmc().begin(Context::Interrupt, now) {
            self.record(act, now);
        }
    }

    /// Removes the card.
    fn pull_out(&mut self) {
        let now = self.now;
        self.script().abort(now);
        self.script().engine.reset();
        self.interrupt(HostEvent::CardGone);
    }

    /// Does everything that happens at this instant. Returns the next instant.
    fn turn(&mut self) -> Option<Instant> {
        let now = self.now;
        while let Some(event) = self.script().event_at(now) {
            self.interrupt(event);
        }
        for at in 0..2 {
            if let Some((act, from, _)) = self.running[at].take_if(|(_, _, to)| *to <= now) {
                self.record(act, from);
            }
        }
        while let Some(finished) = self.host.driver.next_finished(now) {
            self.outcomes.push(finished.outcome);
            self.queue
                .conclude(&mut self.host, &finished, now)
                .expect("a finished request should belong to the driver");
        }
        while self.queue.bios_in_use() < self.depth
            && let Some(bio) = self.waiting.pop_front()
        {
            let bio = bio.with_flags(blockyard::bio::Flags::NO_MERGE);
            if bio.op == Op::Flush {
                self.covers.insert(bio.cookie, self.written.len());
            }
            self.queue
                .submit(&mut self.host, CpuId(0), bio, now)
                .expect("a scheduler tag should be free");
        }
        while let Some(run) = self.queue.next_run(&mut self.host, now) {
            let _ = self.queue.run(&mut self.host, run.hctx, now);
        }
        self.host.driver.call_ended();
        self.queue.self_check(&self.host);
        while let Some(end) = self.queue.next_ended() {
            let before = self.ended.insert(end.bio.cookie, end.status);
            assert_eq!(before, None, "a bio should end once");
            self.check_durability(&end.bio, end.status);
        }
        self.mmc().self_check();
        self.look_for_work();
        self.most_held = self.most_held.max(self.mmc().slots_in_use);
        // What deferred work takes up may let the thread start the next request immediately.
        for (at, context) in CONTEXTS.into_iter().enumerate().chain([(0, CONTEXTS[0])]) {
            if self.running[at].is_none()
                && let Some(act) = self.mmc().begin(context, now)
            {
                let stretch = self.jitter.as_mut().map_or(0, |prng| prng.below(100_000));
                let to = now + cost(act.kind()) + Duration::from_ns(stretch);
                self.running[at] = Some((act, now, to));
            }
        }
        let told = [self.script().next_event(), self.mmc().poll_at(), self.queue.poll_at()];
        let refill =
            (self.queue.bios_in_use() < self.depth && !self.waiting.is_empty()).then_some(now);
        let running = self.running.iter().flatten().map(|(_, _, to)| *to);
        running.chain(told.into_iter().flatten()).chain(refill).min()
    }

    /// Checks that every write that a flush covers or that bypassed the cache is durable
    /// ([reset-loss-fails-flush], [late-write-error-fails-flush]).
    fn check_durability(&mut self, bio: &Bio, status: Status) {
        let flushes = bio.op == Op::Flush || bio.flags.contains(Flags::PREFLUSH);
        if flushes && status != Status::Ok {
            self.forgiven = self.written.len();
        }
        if status != Status::Ok || !self.mmc().target.cache_on {
            return;
        }
        if bio.op == Op::Write {
            self.written.push(bio.sector);
        }
        let covered = self.covers.get(&bio.cookie).map_or(0, |&count| count);
        let forced = bio.flags.contains(Flags::FUA).then_some(bio.sector);
        for &sector in self.written.iter().take(covered).skip(self.forgiven).chain(&forced) {
            let controller = &self.host.driver.below.controller;
            assert!(controller.is_durable(sector), "sector {sector} is not durable after {bio:?}");
        }
    }

    /// Runs until everything has ended.
    fn settle(&mut self) {
        for _ in 0..1_000_000 {
            let next = self.turn();
            if self.queue.is_empty() && self.waiting.is_empty() && self.mmc().slots_in_use == 0 {
                self.host.driver.all_ended();
                assert_eq!(self.mmc().idle(), Idle::Yes);
                self.script().all_ended();
                return;
            }
            let next = next.unwrap_or_else(|| panic!("no event is left at {}", self.now));
            assert!(next >= self.now, "time should not go back");
            self.now = next;
        }
        panic!("no end after a million turns at {}", self.now);
    }

    /// Runs until `end`.
    fn until(&mut self, end: Instant) {
        while let Some(next) = self.turn() {
            if next > end {
                break;
            }
            self.now = next;
        }
        self.now = end;
    }

    fn all_ended_with(&self, status: Status, count: usize) {
        assert_eq!(self.ended.len(), count);
        assert!(self.ended.values().all(|ended| *ended == status), "{:?}", self.ended);
    }

    fn count(&self, kind: ActKind) -> usize {
        self.did.iter().filter(|did| did.kind == kind).count()
    }

    /// Returns the one act of `kind` for the request at `sector`.
    fn the(&self, kind: ActKind, sector: u64) -> Did {
        let mut all = self.did.iter().filter(|did| (did.kind, did.sector) == (kind, sector));
        let one = *all.next().expect("the request should have an act of this kind");
        assert_eq!(all.next(), None, "the act should occur once");
        one
    }

    /// Returns the time for which the request at `sector`, which was transferred once, had the bus.
    fn span(&self, sector: u64) -> Span {
        let mut all = self.spans().iter().filter(|span| span.sector == Some(sector));
        let one = *all.next().expect("the request should have a transfer");
        assert!(all.next().is_none(), "the request should be transferred once");
        one
    }
}

/// Returns reads and writes, half each, of 1 to 16 sectors.
fn mixture(seed: u64, count: u64) -> impl Iterator<Item = Bio> {
    let mut prng = Prng::new(seed);
    (0..count).map(move |at| {
        let sectors = 1 + u32::try_from(prng.below(16)).unwrap();
        match prng.below(2) {
            0 => Bio::read(100 * at, sectors, at),
            _ => Bio::write(100 * at, sectors, at),
        }
    })
}
