//! No design allocates after construction, through merges, splits, plugs, waiters, refusals and
//! requeues.

mod allocations;

use allocations::{allocations, bytes_of};
use blockyard::bio::{Bio, Flags, Op, Submitter};
use blockyard::device::null::NullDevice;
use blockyard::driver::{Accept, Busy, Device, Driver, Issue};
use blockyard::hardware_queue::QueueMap;
use blockyard::host::Host;
use blockyard::layer::checked::{Checked, Terms};
use blockyard::layer::delay::{Delayed, Extra};
use blockyard::layer::fault::{Action, FaultRule, Faulty, When};
use blockyard::layer::rate::{Limited, Rates};
use blockyard::layer::trace::{Ring, Traced};
use blockyard::limits::Limits;
use blockyard::policy::{
    AdiosBatchOrder, AdiosTunables, BfqTunables, BusyTrack, DeadlineTunables, Dequeue, Dispatch,
    ElevatorKind, KyberAdjust, KyberTunables, Merges, Model, Plugging, Policies, Restart,
    SchedDepth, SwqMerge, WbtTunables,
};
use blockyard::prng::Prng;
use blockyard::request_queue::{QueueConfig, RequestQueue};
use blockyard::status::{Status, SubmitError};
use blockyard::tag::TagSetConfig;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, DriverTag, HctxId, QueueId};

const CPUS: u16 = 4;
const HCTXS: u16 = 2;
const DEPTH: u16 = 8;
const CAPACITY_SECTORS: u64 = 4096;

/// A driver that accepts up to half of the tags, sometimes refuses, and completes requests in
/// random order.
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
        let count = u64::try_from(self.taken.len()).expect("a count should fit 64 bits");
        let at = usize::try_from(self.draw(count.max(1)))
            .expect("a draw below the length should fit an index");
        (count > 0).then(|| self.taken.swap_remove(at))
    }
}

impl Driver for Fickle {
    blockyard::leaf_calls!(
        take_budget,
        return_budget,
        prepare,
        unprepare,
        commit,
        timed_out,
        finish
    );

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
    /// Counts of events, which show that the test exercised them.
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
        let bio = match self.host.driver.draw(2) {
            0 => Bio::read(sector, sectors, sector).with_flags(flags),
            // These often merge.
            _ => Bio::write(sector % 512, sectors, sector).with_flags(flags | Flags::WRITEBACK),
        };
        // More processes and groups than an elevator remembers.
        let process = u32::try_from(sector / 8).unwrap();
        bio.with_submitter(Submitter { process, group: process % 40 })
    }

    fn step(&mut self) {
        self.now = self.now + Duration::from_us(200);
        let weight = u32::try_from(1 + self.host.driver.draw(1000)).unwrap();
        self.queue.weigh_group(weight % 20, weight);
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
        let submitted = self.queue.submit(&mut self.host, cpu, bio, self.now);
        if let Err(SubmitError::NoTag | SubmitError::Throttled) = submitted {
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
        done.expect("the driver should own the request");
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
        while self.queue.next_woken(&mut self.host).is_some() {
            self.woken += 1;
        }
    }
}

/// BFQ that waits for the next request of a process for at most two of the test's steps of 200 us.
fn short_waits() -> BfqTunables {
    BfqTunables { slice_idle: Duration::from_us(300), ..BfqTunables::default() }
}

/// ADIOS with batches by sector, on a rotational disk, of which the next begins beside each.
fn sweeps() -> AdiosTunables {
    AdiosTunables {
        batch_order: AdiosBatchOrder::Sweep,
        bq_refill_below_ratio: 100,
        ..AdiosTunables::default()
    }
}

/// A kyber with few tokens, so that requests wait for them, and with targets that it misses.
fn few_tokens() -> KyberTunables {
    KyberTunables {
        read_latency: Duration::from_us(100),
        read_depth: 3,
        write_depth: 2,
        ..Default::default()
    }
}

/// Returns today's designs, and designs that cover every other value of each policy.
fn designs() -> Vec<Policies> {
    let mut designs = vec![
        Policies::NONE,
        Policies::mq_deadline(),
        Policies { elevator: ElevatorKind::Kyber(few_tokens()), ..Policies::NONE },
        Policies { elevator: ElevatorKind::Bfq(short_waits()), ..Policies::NONE },
        Policies::mq_adios(),
        Policies { elevator: ElevatorKind::Adios(sweeps()), ..Policies::NONE },
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
                    merges: Merges::All,
                    restart: Restart::InTurn,
                    wbt: Some(WbtTunables { latency: Duration::from_us(100), queue_depth: 3 }),
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
        let before = allocations();
        for _ in 0..20_000 {
            rig.step();
        }
        assert_eq!(allocations(), before, "allocations of {design:?}");
        assert!(rig.ended > 1000, "{} bios ended with {design:?}", rig.ended);
        assert!(rig.waited > 0 && rig.woken > 0, "no submitter waited with {design:?}");
        rig.queue.self_check(&rig.host);
    }
}

/// A queue and a host take exactly the heap that their configurations say, in every design.
#[test]
fn a_configuration_says_how_much_memory_it_takes() {
    let mut draws = Prng::new(7);
    for policies in designs() {
        for _ in 0..20 {
            let multi = policies.model == Model::Multi;
            let (hctxs, reads) =
                if multi { (draws.pick(&[1, 2, 5]), draws.pick(&[0, 2])) } else { (1, 0) };
            let tags = TagSetConfig {
                hctxs: hctxs + reads,
                depth: draws.pick(&[3, 8, 33, 200]),
                reserved: draws.pick(&[0, 2]),
                shared_over_hctxs: draws.pick(&[false, true]),
                queues: draws.pick(&[1, 3, 9]),
                max_waiters: draws.pick(&[0, 1, 40]),
            };
            let max_bios = draws.pick(&[0, 7, 500]);
            let max_waiters = draws.pick(&[0, 3, 50]);
            let cpus = draws.pick(&[1, 5, 70]);
            let driver = Fickle { random: 1, taken: Vec::new() };
            let (host, of_host) = bytes_of(|| Host::new(driver, (), tags));
            assert_eq!(of_host, Host::memory(&tags), "{tags:?}");
            let mut said = 0;
            let (_queue, of_queue) = bytes_of(|| {
                let config = QueueConfig {
                    map: QueueMap::with_kinds(cpus, hctxs, reads, 0),
                    max_bios,
                    max_waiters,
                    ..QueueConfig::new(1, 1, Limits::new(CAPACITY_SECTORS), policies)
                };
                said = config.memory(&tags);
                RequestQueue::new(QueueId(0), config, &host)
            });
            assert_eq!(
                of_queue, said,
                "{max_bios} bios, {max_waiters} waiters, {cpus} processors, {tags:?}, {policies:?}"
            );
        }
    }
}

/// All layers at once, with each kind of fault that completes, over a device that completes at
/// once.
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
    let rules = actions.map(|then| FaultRule {
        name: String::new(),
        when: When { ops: vec![Op::Read, Op::Write], one_in: Some(5), ..When::default() },
        then,
    });
    let extra = Extra { min: Duration::ZERO, max: Duration::from_us(20), op: None };
    let rates = Rates { requests_per_s: Some(200_000), ..Rates::NONE };
    let device = Traced { below: NullDevice::new(1, DEPTH), sink: Ring::new(32) };
    let device = Checked::new(device, terms.clone(), &tags);
    let device = Delayed::new(device, extra, Prng::new(1), &tags);
    let device = Limited::new(device, rates, &tags);
    let device = Faulty::new(device, rules.into(), Prng::new(2), &tags);
    let mut host = Host::new(Checked::new(device, terms, &tags), (), tags);
    let mut queue = RequestQueue::new(QueueId(0), config, &host);
    let before = allocations();
    let mut ended = 0;
    for step in 0..20_000_u64 {
        let now = Instant::from_ns(step * 5_000);
        // Without a free tag, the next step tries another bio.
        let _ = queue.submit(&mut host, CpuId(0), Bio::read(step % 500 * 8, 8, step), now);
        while let Some(finished) = host.driver.next_finished(now) {
            queue.conclude(&mut host, &finished, now).expect("the device should own the request");
        }
        while let Some(run) = queue.next_run(&mut host, now) {
            let _ = queue.run(&mut host, run.hctx, now);
        }
        while queue.next_ended().is_some() {
            ended += 1;
        }
    }
    assert_eq!(allocations(), before);
    assert!(ended > 5000, "{ended} bios ended");
    let fired: Vec<_> = host.driver.below.counts().map(|(_, count)| count.fired).collect();
    assert!(fired.iter().all(|times| *times > 100), "{fired:?}");
    drop(host);
}
