//! No pipeline of a host allocates after construction, even through failures, background operations
//! and packed commands.

#[path = "../../blockyard/tests/allocations/mod.rs"]
mod allocations;

use allocations::allocations;
use blockyard::bio::{Bio, Flags, Op};
use blockyard::driver::{Device, Issue};
use blockyard::host::Host;
use blockyard::limits::Limits;
use blockyard::policy::Policies;
use blockyard::request_queue::{QueueConfig, RequestQueue};
use blockyard::status::Status;
use blockyard::tag::TagSetConfig;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, QueueId};
use blockyard_mmc::block::{Context, Mmc, Target};
use blockyard_mmc::card::ReliableWrite;
use blockyard_mmc::command::state::CardState;
use blockyard_mmc::command::status::Status as CardStatus;
use blockyard_mmc::command::{Addressing, Command, Rca, Response, SwitchAccess};
use blockyard_mmc::controller::{
    HostController, HostError, HostEvent, MmcRequest, NotNow, Part, Payload, SlotId,
};
use blockyard_mmc::engine::{EngineEvent, QueueEngine, Task, TaskSet};
use blockyard_mmc::host::{BusyDetect, HostCapabilities};
use blockyard_mmc::policy::{HostPolicy, HsqPolicy, Packed, Pipeline};
use blockyard_mmc::register::ext_csd::index;
use std::collections::VecDeque;

const CAPACITY_SECTORS: u64 = 4096;

/// A controller that completes everything at once, except that every seventh transfer fails. The
/// card's background operations become urgent after every fifth transfer.
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
    fn post(&mut self, _slot: SlotId) {}

    fn block(&mut self) -> &mut [u8; 512] {
        &mut self.block
    }

    fn start(&mut self, transaction: &MmcRequest, _now: Instant) {
        let asks = transaction.data().is_some() && self.transfers.is_multiple_of(5);
        let asks = if asks { CardStatus::EXCEPTION_EVENT } else { 0 };
        let response = Response::Short(CardStatus::new(CardState::Transfer, true).0 | asks);
        self.packs += u32::from(matches!(transaction.payload, Payload::Packed(_)));
        if transaction.payload == Payload::Block {
            self.block = [0; 512];
            self.block[usize::from(index::EXT_CSD_REV)] = 8;
            self.block[usize::from(index::BKOPS_STATUS)] = 2;
        }
        self.events.extend(
            transaction.announce.map(|_| HostEvent::CommandDone { part: Part::Announce, response }),
        );
        self.events.push_back(HostEvent::CommandDone { part: Part::Command, response });
        if transaction.data().is_some() {
            self.transfers += 1;
            if self.transfers.is_multiple_of(7) {
                let part = Part::Data;
                let error = HostError::Damaged;
                return self.events.push_back(HostEvent::Error { part, error, blocks: 0 });
            }
            self.events.push_back(HostEvent::DataDone);
        }
        self.events.extend(
            transaction.stop.map(|_| HostEvent::CommandDone { part: Part::Stop, response }),
        );
        self.events.extend(transaction.ends_busy().then_some(HostEvent::BusyReleased));
    }

    fn start_atomic(&mut self, transaction: &MmcRequest, now: Instant) -> Result<(), NotNow> {
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
            let tasks = TaskSet::of(task);
            let status = CardStatus(CardStatus::EXCEPTION_EVENT);
            let event = EngineEvent::Responded { command: 44, tasks, status };
            self.events.push_back(HostEvent::Engine(event));
        }
        self.events.push_back(HostEvent::Engine(if self.transfers.is_multiple_of(7) {
            let part = Part::Data;
            let error = HostError::Damaged;
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

/// Offers 2000 bios to the driver of a card. Returns how many succeeded.
fn drive_card(host: &mut Host<Mmc<AtOnce>>, queue: &mut RequestQueue) -> u32 {
    let mut ended = 0;
    let mut now = Instant::ZERO;
    for at in 0..2000 {
        now = now + Duration::from_us(1);
        let bio = match at % 12 {
            0 => Bio::new(Op::Flush, 0, 0, at),
            1 => Bio::write(at * 8 % 4096, 8, at).with_flags(Flags::FUA | Flags::PREFLUSH),
            2..5 => Bio::read(at * 8 % 4096, 8, at),
            _ => Bio::write(at * 8 % 4096, 8, at),
        };
        // Without a free tag the bio waits for other bios to end.
        let _ = queue.submit(host, CpuId(0), bio, now);
        while let Some(run) = queue.next_run(host, now) {
            let _ = queue.run(host, run.hctx, now);
        }
        while at % 8 == 7 && !queue.is_empty() {
            // Retries a request that was refused for lack of a resource.
            now = now + Duration::from_ms(1);
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
                queue
                    .conclude(host, &finished, now)
                    .expect("a finished request should belong to the driver");
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
        let mmc = Mmc::new(AtOnce::new(target), target, policy)
            .expect("a controller with all features should support the policy");
        let mut host = Host::new(mmc, (), tags);
        let config = QueueConfig::new(1, 1, limits.clone(), Policies::NONE);
        let mut queue = RequestQueue::new(QueueId(0), config, &host);
        let before = allocations();
        let ended = drive_card(&mut host, &mut queue);
        assert_eq!(allocations() - before, 0, "{pipeline:?}");
        let counts = host.driver.counts();
        let packs = host.driver.controller.packs;
        assert!(ended > 400 && counts.failures > 20, "{pipeline:?}: {ended} ended, {counts:?}");
        assert!(counts.bkops_starts > 10, "{pipeline:?}: {counts:?}");
        let packs_none = packed == Packed::Off || pipeline == Pipeline::Serial;
        assert!(packs > 10 || packs_none, "{pipeline:?}: {packs}");
    }
}
