//! Every design, driven through merges, splits, plugs, waiters, refusals and requeues, without one
//! allocation after construction.

use blockyard::bio::{Bio, Flags, Op};
use blockyard::device::null::NullDevice;
use blockyard::driver::{Accept, Busy, Device, Driver, Issue};
use blockyard::host::Host;
use blockyard::layer::checked::{Checked, Terms};
use blockyard::layer::delay::{Delayed, Extra};
use blockyard::layer::fault::{Action, FaultRule, Faulty, When};
use blockyard::layer::rate::{Limited, Rates};
use blockyard::layer::trace::{Ring, Traced};
use blockyard::limits::Limits;
use blockyard::mmc::block::{Context, Mmc, Target};
use blockyard::mmc::card::ReliableWrite;
use blockyard::mmc::command::state::CardState;
use blockyard::mmc::command::status::Status as CardStatus;
use blockyard::mmc::command::{Addressing, Command, Rca, Response, SwitchAccess};
use blockyard::mmc::controller::{
    HostController, HostError, HostEvent, NotNow, Part, Payload, SlotId, Transaction,
};
use blockyard::mmc::engine::{EngineEvent, QueueEngine, Task, TaskSet};
use blockyard::mmc::host::{BusyDetect, HostCapabilities};
use blockyard::mmc::policy::{HostPolicy, HsqPolicy, Packed, Pipeline};
use blockyard::mmc::register::ext_csd::index;
use blockyard::policy::{
    BusyTrack, DeadlineTunables, Dequeue, Dispatch, ElevatorKind, KyberAdjust, KyberTunables,
    Model, Plugging, Policies, SchedDepth, SwqMerge,
};
use blockyard::prng::Prng;
use blockyard::request_queue::{QueueConfig, RequestQueue};
use blockyard::status::{Status, SubmitError};
use blockyard::tag::TagSetConfig;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, DriverTag, HctxId, QueueId};
use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use std::alloc::System;
use std::collections::VecDeque;

std::thread_local! {
    /// Allocations of this thread; the test harness has others.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promises are those that this call needs.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const CPUS: u16 = 4;
const HCTXS: u16 = 2;
const DEPTH: u16 = 8;
const CAPACITY_SECTORS: u64 = 4096;

/// Takes up to half of the tags, refuses now and then, and is done with requests in any order.
struct Fickle {
    random: u64,
    taken: Vec<(HctxId, DriverTag)>,
}

impl Fickle {
    fn draw(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    fn next_done(&mut self) -> Option<(HctxId, DriverTag)> {
        let count = u64::try_from(self.taken.len()).expect("64 bits");
        let at = usize::try_from(self.draw(count.max(1))).expect("an index");
        (count > 0).then(|| self.taken.swap_remove(at))
    }
}

impl Driver for Fickle {
    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        if self.taken.len() >= usize::from(DEPTH) {
            return Accept::Busy(Busy::Device);
        }
        match self.draw(10) {
            0 => return Accept::Busy(Busy::Resource),
            1 => return Accept::Busy(Busy::Host),
            2 => return Accept::Failed(Status::IoError),
            _ => {}
        }
        self.taken.push((issue.hctx, issue.tag));
        Accept::Queued
    }
}

struct Rig {
    host: Host<Fickle>,
    queue: RequestQueue,
    now: Instant,
    /// What did happen, so that the test knows that it saw it.
    ended: u32,
    waited: u32,
    woken: u32,
}

impl Rig {
    fn new(policies: Policies) -> Self {
        let hctxs = if policies.model == Model::SingleLock { 1 } else { HCTXS };
        let tags = TagSetConfig {
            hctxs,
            depth: DEPTH,
            reserved: 0,
            shared_over_hctxs: false,
            queues: 1,
            max_waiters: 8,
        };
        let taken = Vec::with_capacity(usize::from(DEPTH * HCTXS));
        let host = Host::new(Fickle { random: 88_172_645_463_325_252, taken }, (), tags);
        let limits = Limits { max_sectors: 32, ..Limits::new(CAPACITY_SECTORS) };
        let sizes = QueueConfig {
            max_bios: 64,
            max_waiters: 8,
            ..QueueConfig::new(1, 1, limits.clone(), policies)
        };
        let config =
            QueueConfig { map: QueueConfig::new(CPUS, hctxs, limits, policies).map, ..sizes };
        let queue = RequestQueue::new(QueueId(0), config, &host);
        Self { host, queue, now: Instant::ZERO, ended: 0, waited: 0, woken: 0 }
    }

    fn draw_bio(&mut self) -> Bio {
        let sector = self.host.driver.draw(CAPACITY_SECTORS / 8 - 16) * 8;
        let sectors = [8, 8, 8, 8, 16, 120][usize::try_from(self.host.driver.draw(6)).unwrap()];
        let flags = if self.host.driver.draw(8) == 0 { Flags::NOWAIT } else { Flags::NONE };
        match self.host.driver.draw(2) {
            0 => Bio::read(sector, sectors, sector).with_flags(flags),
            _ => Bio::write(sector % 512, sectors, sector).with_flags(flags), // these often merge
        }
    }

    fn step(&mut self) {
        self.now = self.now + Duration::from_us(200);
        let cpu = CpuId(u16::try_from(self.host.driver.draw(CPUS.into())).unwrap());
        match self.host.driver.draw(8) {
            0 => self.queue.plug(cpu),
            1 => self.queue.unplug(&mut self.host, cpu, self.now),
            2..5 => self.complete_one(),
            _ => self.submit(cpu),
        }
        self.settle();
    }

    fn submit(&mut self, cpu: CpuId) {
        let bio = self.draw_bio();
        if self.queue.submit(&mut self.host, cpu, bio, self.now) == Err(SubmitError::NoTag) {
            let registered = self.queue.wait(&mut self.host, cpu, &bio, bio.cookie, self.now);
            self.waited += u32::from(registered.is_ok());
        }
    }

    fn complete_one(&mut self) {
        let Some((hctx, tag)) = self.host.driver.next_done() else { return };
        let done = if self.host.driver.draw(6) == 0 {
            self.queue.requeue(&mut self.host, hctx, tag, self.now)
        } else {
            self.queue.complete(&mut self.host, hctx, tag, Status::Ok, self.now)
        };
        done.expect("the driver owned it");
    }

    fn settle(&mut self) {
        while let Some(run) = self.queue.next_run(&mut self.host, self.now) {
            let _ = self.queue.run(&mut self.host, run.hctx, self.now);
        }
        while let Some((_, hctx)) = self.host.next_starved() {
            let _ = self.queue.run(&mut self.host, hctx, self.now);
        }
        while self.queue.next_ended().is_some() {
            self.ended += 1;
        }
        while self.queue.next_woken().or_else(|| self.host.next_woken()).is_some() {
            self.woken += 1;
        }
    }
}

/// So few that requests wait for them, and targets that are missed.
fn few_tokens() -> KyberTunables {
    KyberTunables {
        read_latency: Duration::from_us(100),
        read_depth: 3,
        write_depth: 2,
        ..Default::default()
    }
}

/// Today's designs, and each choice a design can make in at least one other.
fn designs() -> Vec<Policies> {
    let mut designs = vec![
        Policies::NONE,
        Policies::mq_deadline(),
        Policies { elevator: ElevatorKind::Kyber(few_tokens()), ..Policies::NONE },
    ];
    let deadline =
        ElevatorKind::Deadline(DeadlineTunables { classes: false, ..Default::default() });
    let kyber = ElevatorKind::Kyber(KyberTunables { adjust: KyberAdjust::Steps, ..few_tokens() });
    for elevator in [ElevatorKind::None, deadline, kyber] {
        for dispatch in
            [Dispatch::DrainAll, Dispatch::HoldUntilFlushed, Dispatch::SharedList, Dispatch::Budget]
        {
            for (busy, dequeue, swq_merge) in [
                (BusyTrack::Off, Dequeue::SpliceAll, SwqMerge::Off),
                (BusyTrack::Bit, Dequeue::RoundRobin, SwqMerge::Hash),
                (BusyTrack::Ewma, Dequeue::ByBusy, SwqMerge::Last8),
            ] {
                let sched_depth = SchedDepth::Fixed(6);
                let model = Model::Multi;
                let plug = Plugging::EveryBio;
                designs.push(Policies {
                    model,
                    elevator,
                    dispatch,
                    dequeue,
                    busy,
                    swq_merge,
                    plug,
                    sched_depth,
                });
            }
        }
    }
    designs.push(Policies { model: Model::SingleLock, ..Policies::mq_deadline() });
    designs
}

#[test]
fn no_call_allocates_after_construction() {
    for design in designs() {
        let mut rig = Rig::new(design);
        let before = ALLOCATIONS.get();
        for _ in 0..20_000 {
            rig.step();
        }
        assert_eq!(ALLOCATIONS.get(), before, "allocations of {design:?}");
        assert!(rig.ended > 2000, "{} bios ended with {design:?}", rig.ended);
        assert!(rig.waited > 0 && rig.woken > 0, "nobody waited with {design:?}");
        rig.queue.self_check(&rig.host);
    }
}

/// Every layer at once, with faults of each kind that completes, over a device that is always done.
#[test]
fn no_layer_allocates_after_construction() {
    let tags = TagSetConfig {
        hctxs: 1,
        depth: DEPTH,
        reserved: 0,
        shared_over_hctxs: false,
        queues: 1,
        max_waiters: 8,
    };
    let config = QueueConfig::new(1, 1, Limits::new(CAPACITY_SECTORS), Policies::mq_deadline());
    let terms = vec![Terms::of(&config, &tags)];
    let actions = [
        Action::Error(Status::Medium),
        Action::Delay(Duration::from_us(50)),
        Action::Fail(Status::NoSpace),
        Action::Busy(Busy::Device),
        Action::Again,
    ];
    let when = |ops| When { ops, one_in: Some(5), ..When::default() };
    let rules = actions.map(|then| FaultRule {
        name: String::new(),
        when: when(vec![Op::Read, Op::Write]),
        then,
    });
    let extra = Extra { least: Duration::ZERO, most: Duration::from_us(20), op: None };
    let rates = Rates { requests_per_s: Some(200_000), ..Rates::NONE };
    let device = Traced { below: NullDevice::new(1, DEPTH), sink: Ring::new(32) };
    let device = Checked::new(device, terms.clone(), &tags);
    let device = Delayed::new(device, extra, Prng::new(1), &tags);
    let device = Limited::new(device, rates, &tags);
    let device = Faulty::new(device, rules.into(), Prng::new(2), &tags);
    let mut host = Host::new(Checked::new(device, terms, &tags), (), tags);
    let mut queue = RequestQueue::new(QueueId(0), config, &host);
    let before = ALLOCATIONS.get();
    let mut ended = 0;
    for step in 0..20_000_u64 {
        let now = Instant::from_ns(step * 5_000);
        // Where there is no tag, the next step tries another bio.
        let _ = queue.submit(&mut host, CpuId(0), Bio::read(step % 500 * 8, 8, step), now);
        while let Some(finished) = host.driver.next_finished(now) {
            queue.conclude(&mut host, &finished, now).expect("the device owned it");
        }
        while let Some(run) = queue.next_run(&mut host, now) {
            let _ = queue.run(&mut host, run.hctx, now);
        }
        while queue.next_ended().is_some() {
            ended += 1;
        }
    }
    assert_eq!(ALLOCATIONS.get(), before);
    assert!(ended > 5000, "{ended} bios ended");
    let fired: Vec<_> = host.driver.below.counts().map(|(_, count)| count.fired).collect();
    assert!(fired.iter().all(|times| *times > 100), "{fired:?}");
}

/// A controller that does everything at once, but for every seventh transfer, which fails, and a card
/// that wants time for itself after every fifth.
struct AtOnce {
    capabilities: HostCapabilities,
    events: VecDeque<HostEvent>,
    transfers: u32,
    block: [u8; 512],
    packs: u32,
    target: Target,
}

impl AtOnce {
    fn new(target: Target) -> Self {
        let capabilities = HostCapabilities::full();
        Self {
            capabilities,
            events: VecDeque::with_capacity(64),
            transfers: 0,
            block: [0; 512],
            packs: 0,
            target,
        }
    }
}

impl HostController for AtOnce {
    fn capabilities(&self) -> &HostCapabilities {
        &self.capabilities
    }

    fn accept(&mut self, _slot: SlotId, _issue: &Issue<'_>) {}
    fn prepare(&mut self, _slot: SlotId) {}
    fn cleanup(&mut self, _slot: SlotId) {}

    fn block(&mut self) -> &mut [u8; 512] {
        &mut self.block
    }

    fn start(&mut self, transaction: &Transaction, _now: Instant) {
        let asks = transaction.data().is_some() && self.transfers.is_multiple_of(5);
        let asks = if asks { CardStatus::EXCEPTION_EVENT } else { 0 };
        let response = Response::Short(CardStatus::new(CardState::Transfer, true).0 | asks);
        self.packs += u32::from(matches!(transaction.payload, Payload::Packed(_)));
        if transaction.payload == Payload::Block {
            self.block = [0; 512];
            self.block[usize::from(index::EXT_CSD_REV)] = 8;
            self.block[usize::from(index::BKOPS_STATUS)] = 2;
        }
        let done = |part| HostEvent::CommandDone { part, response };
        self.events.extend(transaction.announce.map(|_| done(Part::Announce)));
        self.events.push_back(done(Part::Command));
        if transaction.data().is_some() {
            self.transfers += 1;
            if self.transfers.is_multiple_of(7) {
                let (part, error) = (Part::Data, HostError::Damaged);
                return self.events.push_back(HostEvent::Error { part, error, blocks: 0 });
            }
            self.events.push_back(HostEvent::DataDone);
        }
        self.events.extend(transaction.stop.map(|_| done(Part::Stop)));
        self.events.extend(transaction.ends_busy().then_some(HostEvent::BusyReleased));
    }

    fn start_atomic(&mut self, transaction: &Transaction, now: Instant) -> Result<(), NotNow> {
        self.start(transaction, now);
        Ok(())
    }

    fn card_busy(&mut self, _now: Instant) -> bool {
        false
    }

    fn engine(&mut self) -> Option<&mut dyn QueueEngine> {
        Some(self)
    }

    fn abort(&mut self, _now: Instant) {
        self.events.clear();
    }

    fn reset(&mut self, _now: Instant) -> Result<Target, HostError> {
        Ok(self.target)
    }
}

impl QueueEngine for AtOnce {
    fn enable(&mut self, _now: Instant) {}
    fn disable(&mut self, _now: Instant) {}

    fn queue(&mut self, task: &Task, _now: Instant) {
        let task = task.parameters.task;
        self.transfers += 1;
        if self.transfers.is_multiple_of(5) {
            let (tasks, status) = (TaskSet::of(task), CardStatus(CardStatus::EXCEPTION_EVENT));
            let event = EngineEvent::Responded { command: 44, tasks, status };
            self.events.push_back(HostEvent::Engine(event));
        }
        self.events.push_back(HostEvent::Engine(if self.transfers.is_multiple_of(7) {
            let (part, error) = (Part::Data, HostError::Damaged);
            EngineEvent::Failed { tasks: TaskSet::of(task), part, error }
        } else {
            EngineEvent::TaskDone(task)
        }));
    }

    fn direct(&mut self, _command: &Command, _now: Instant) {
        let response = Response::Short(CardStatus::new(CardState::Transfer, true).0);
        self.events.push_back(HostEvent::Engine(EngineEvent::DirectDone(response)));
    }

    fn halt(&mut self, _now: Instant) {
        self.events.push_back(HostEvent::Engine(EngineEvent::Halted));
    }

    fn clear(&mut self, _now: Instant) {
        self.events.push_back(HostEvent::Engine(EngineEvent::Cleared));
    }
}

/// Offers 2000 bios to the driver of a card; answers how many have ended well.
fn drive_card(host: &mut Host<Mmc<AtOnce>>, queue: &mut RequestQueue) -> u32 {
    let (mut ended, mut now) = (0, Instant::ZERO);
    for at in 0..2000 {
        now = now + Duration::from_us(1);
        let bio = match at % 12 {
            0 => Bio::new(Op::Flush, 0, 0, at),
            1 => Bio::write(at * 8 % 4096, 8, at).with_flags(Flags::FUA | Flags::PREFLUSH),
            2..5 => Bio::read(at * 8 % 4096, 8, at),
            _ => Bio::write(at * 8 % 4096, 8, at),
        };
        // Without a tag it is not taken: others are.
        let _ = queue.submit(host, CpuId(0), bio, now);
        while let Some(run) = queue.next_run(host, now) {
            let _ = queue.run(host, run.hctx, now);
        }
        while at % 8 == 7 && !queue.is_empty() {
            now = now + Duration::from_ms(1); // what is refused for want of a resource is tried again
            for context in [Context::Thread, Context::Deferred] {
                while host.driver.step(context, now).is_some() {}
            }
            while let Some(event) = host.driver.controller.events.pop_front() {
                host.driver.interrupt(event, now);
                while host.driver.step(Context::Interrupt, now).is_some() {}
            }
            let flush = Command::switch(SwitchAccess::WriteByte, index::FLUSH_CACHE, 1);
            let _ = host.driver.direct(&flush, Duration::from_secs(1), now);
            let _ = host.driver.next_direct();
            while let Some(finished) = host.driver.next_finished(now) {
                queue.conclude(host, &finished, now).expect("the driver owned it");
            }
            while let Some(end) = queue.next_ended() {
                ended += u32::from(end.status == Status::Ok);
            }
            while let Some(run) = queue.next_run(host, now) {
                let _ = queue.run(host, run.hctx, now);
            }
        }
    }
    ended
}

#[test]
fn no_host_path_of_a_card_allocates_after_construction() {
    let target = Target {
        set_block_count: true,
        cache_on: true,
        queue_depth: 31,
        reliable_write: ReliableWrite::Any,
        bkops: true,
        packed_writes: 20,
        packed_reads: 30,
        ..Target::plain(Rca(1), Addressing::Sectors)
    };
    let limits = Limits { write_cache: true, fua: true, ..Limits::new(CAPACITY_SECTORS) };
    let pipelines = [
        Pipeline::Serial,
        Pipeline::TwoSlotFull,
        Pipeline::IssueOnCompletion,
        Pipeline::BlkMqWait,
        Pipeline::Hsq(HsqPolicy::V8),
        Pipeline::Hsq(HsqPolicy::TODAY),
        Pipeline::Cqe,
    ];
    let packing = [Packed::Off, Packed::ReadWrite];
    let all = pipelines.into_iter().flat_map(|of| packing.map(|how| (of, how)));
    for (pipeline, packed) in all.filter(|how| *how != (Pipeline::Cqe, Packed::ReadWrite)) {
        let tags = TagSetConfig {
            hctxs: 1,
            depth: if pipeline == Pipeline::Cqe { 31 } else { 64 },
            reserved: 0,
            shared_over_hctxs: false,
            queues: 1,
            max_waiters: 8,
        };
        let policy = HostPolicy::new(pipeline, BusyDetect::Hardware);
        let policy = HostPolicy { packed, ..policy };
        let mmc = Mmc::new(AtOnce::new(target), target, policy).expect("the controller has it all");
        let mut host = Host::new(mmc, (), tags);
        let config = QueueConfig::new(1, 1, limits.clone(), Policies::NONE);
        let mut queue = RequestQueue::new(QueueId(0), config, &host);
        let before = ALLOCATIONS.get();
        let ended = drive_card(&mut host, &mut queue);
        assert_eq!(ALLOCATIONS.get() - before, 0, "{pipeline:?}");
        let (counts, packs) = (host.driver.counts(), host.driver.controller.packs);
        assert!(ended > 400 && counts.failures > 20, "{pipeline:?}: {ended} ended, {counts:?}");
        assert!(counts.upkeeps > 10, "{pipeline:?}: {counts:?}");
        let packs_none = packed == Packed::Off || pipeline == Pipeline::Serial;
        assert!(packs > 10 || packs_none, "{pipeline:?}: {packs}");
    }
}

#[test]
fn the_allocator_counts() {
    let before = ALLOCATIONS.get();
    drop(Box::new(7));
    assert_eq!(ALLOCATIONS.get(), before + 1);
}
