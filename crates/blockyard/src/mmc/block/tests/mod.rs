//! The request path over a [scripted controller](scripted), in virtual time, under the contract's
//! watch.
//!
//! [`Bench`] runs a request queue over an [`Mmc`] with two processors, for the thread and for
//! deferred work, and an interrupt handler that takes no time. It records which act ran when.

mod bounce;
mod error;
mod hsq;
mod overlap;
mod retune;
mod scripted;
mod swarm;
mod way;

use super::*;
use crate::bio::Bio;
use crate::host::Host;
use crate::layer::checked::{Checked, Terms};
use crate::limits::Limits;
use crate::mmc::controller::HostEvent;
use crate::mmc::host::HostCapabilities;
use crate::policy::Policies;
use crate::prng::Prng;
use crate::request_queue::{QueueConfig, RequestQueue};
use crate::tag::TagSetConfig;
use crate::time::Duration;
use crate::unit::CpuId;
use scripted::{Fault, Scripted, Span};
use std::collections::BTreeMap;
use std::string::String;
use std::vec;

const EVERY_PIPELINE: [Pipeline; 9] = [
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

const EVERY_BUSY: [BusyDetect; 3] = [BusyDetect::Status, BusyDetect::Line, BusyDetect::Hardware];

const SD: Target =
    Target { rca: Rca(1), addressing: Addressing::Sectors, set_block_count: true, cache_on: false };

/// Every policy there is.
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
    all.retain(|policy| {
        !matches!(policy.pipeline, Pipeline::Hsq(_)) || policy.busy == BusyDetect::Hardware
    });
    all
}

fn us(us: u64) -> Duration {
    Duration::from_us(us)
}

/// What an act costs.
fn cost(kind: ActKind) -> Duration {
    us(match kind {
        ActKind::Prepare => 50,
        ActKind::CopyIn | ActKind::CopyOut => 20,
        ActKind::Cleanup => 30,
        ActKind::Complete => 10,
        ActKind::Start => 5,
        ActKind::SendStatus | ActKind::SendStop => 3,
        ActKind::LookAtLine => 1,
        ActKind::Reset => 1000,
        ActKind::Retune => 400,
    })
}

/// An act that was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Did {
    kind: ActKind,
    context: Context,
    /// The request's first sector.
    sector: u64,
    from: Instant,
    to: Instant,
}

struct Bench {
    host: Host<Checked<Mmc<Scripted>>>,
    queue: RequestQueue,
    now: Instant,
    waiting: VecDeque<Bio>,
    running: [Option<(Act, Instant, Instant)>; 2],
    did: Vec<Did>,
    ended: BTreeMap<u64, Status>,
    most_held: u8,
    /// Most bios that are submitted before one has ended.
    depth: u32,
    /// What stretches costs, so that acts meet in other ways.
    jitter: Option<Prng>,
}

const CONTEXTS: [Context; 2] = [Context::Thread, Context::Deferred];

impl Bench {
    fn new(policy: HostPolicy) -> Self {
        Self::on(Scripted::new(policy.transfer, policy.busy), policy)
    }

    fn on(controller: Scripted, policy: HostPolicy) -> Self {
        Self::under(Policies::NONE, controller, policy)
    }

    /// Under a request queue of this design.
    fn under(policies: Policies, controller: Scripted, policy: HostPolicy) -> Self {
        let tags = TagSetConfig {
            hctxs: 1,
            depth: u16::from(super::super::policy::HSQ_SLOTS),
            reserved: 0,
            shared_over_hctxs: false,
            queues: 1,
            max_waiters: 8,
        };
        let config = QueueConfig::new(1, 1, Limits::new(1 << 20), policies);
        let mmc = Mmc::new(controller, SD, policy).unwrap();
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
            depth: 64,
            jitter: None,
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

    /// Bios that are not to be merged, far from each other.
    fn submit(&mut self, bios: impl IntoIterator<Item = Bio>) {
        self.waiting.extend(bios);
    }

    /// `count` reads of 8 sectors, at sectors 0, 100, 200 and so on.
    fn reads(&mut self, count: u64) {
        self.submit((0..count).map(|at| Bio::read(100 * at, 8, at)));
    }

    fn writes(&mut self, count: u64) {
        self.submit((0..count).map(|at| Bio::write(100 * at, 8, at)));
    }

    fn record(&mut self, act: Act, from: Instant) {
        let (kind, context) = (act.kind(), act.context());
        let now = self.now;
        let sector = self.host.driver.below.slots[act.slot().index()].sector;
        self.did.push(Did { kind, context, sector, from, to: now });
        self.mmc().finish(act, now);
    }

    fn interrupt(&mut self, event: HostEvent) {
        let now = self.now;
        self.mmc().interrupt(event, now);
        while let Some(act) = self.mmc().begin(Context::Interrupt, now) {
            self.record(act, now);
        }
    }

    /// Everything that happens at this instant; returns the next one.
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
            self.queue.conclude(&mut self.host, &finished, now).expect("the driver owned it");
        }
        while self.queue.bios_in_use() < self.depth
            && let Some(bio) = self.waiting.pop_front()
        {
            let bio = bio.with_flags(crate::bio::Flags::NO_MERGE);
            self.queue.submit(&mut self.host, CpuId(0), bio, now).expect("there is a tag");
        }
        while let Some(run) = self.queue.next_run(&mut self.host, now) {
            let _ = self.queue.run(&mut self.host, run.hctx, now);
        }
        self.host.driver.call_ended();
        self.queue.self_check(&self.host);
        while let Some(end) = self.queue.next_ended() {
            let before = self.ended.insert(end.bio.cookie, end.status);
            assert_eq!(before, None, "a bio ends once");
        }
        self.check_places();
        self.most_held = self.most_held.max(self.mmc().held);
        for (at, context) in CONTEXTS.into_iter().enumerate() {
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

    /// P3: each slot is where its stage says, and nowhere else.
    fn check_places(&self) {
        let mmc = &self.host.driver.below;
        let with = |stage| -> Vec<_> {
            let of_stage = |slot: &SlotId| mmc.slots[slot.index()].stage == stage;
            (0..mmc.plan.slots).map(SlotId).filter(of_stage).collect()
        };
        let sorted = |slots: &mut dyn Iterator<Item = SlotId>| {
            let mut slots: Vec<_> = slots.collect();
            slots.sort_unstable();
            slots
        };
        assert_eq!(sorted(&mut mmc.fresh.iter()), with(Stage::Fresh));
        assert_eq!(sorted(&mut mmc.ended.iter()), with(Stage::Ended));
        assert_eq!(sorted(&mut mmc.cleaned.iter()), with(Stage::Cleaned));
        assert_eq!(sorted(&mut mmc.bus.iter().map(|bus| bus.slot)), with(Stage::OnBus));
        assert_eq!(mmc.ready.is_empty(), with(Stage::Ready).is_empty());
        let held = mmc.slots.len() - with(Stage::Free).len();
        assert_eq!(usize::from(mmc.held), held);
    }

    /// Until everything has ended.
    fn settle(&mut self) {
        for _ in 0..100_000 {
            let next = self.turn();
            if self.queue.is_empty() && self.waiting.is_empty() {
                self.host.driver.all_ended();
                assert_eq!(self.mmc().held, 0);
                assert_eq!(self.mmc().idle(), Idle::Yes);
                self.script().all_ended();
                return;
            }
            let next = next.unwrap_or_else(|| panic!("it hangs: {:?}", self.host.driver.below.bus));
            assert!(next >= self.now, "time goes back");
            self.now = next;
        }
        panic!("it goes round in circles at {}", self.now);
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

    /// The act of `kind` for the request at `sector`; there was one.
    fn the(&self, kind: ActKind, sector: u64) -> Did {
        let mut all = self.did.iter().filter(|did| (did.kind, did.sector) == (kind, sector));
        let one = *all.next().expect("it was done");
        assert_eq!(all.next(), None, "it was done once");
        one
    }

    /// The time that the request at `sector`, which was transferred once, had the bus.
    fn span(&self, sector: u64) -> Span {
        let mut all = self.spans().iter().filter(|span| span.sector == Some(sector));
        let one = *all.next().expect("it was transferred");
        assert!(all.next().is_none(), "it was transferred once");
        one
    }
}

/// Reads and writes, half each, of 1 to 16 sectors.
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
