//! What a seed draws: a whole system and what is done to it.

use blockyard::bio::{Bio, Flags, IoPrio, Op, PrioClass};
use blockyard::hardware_queue::QueueMap;
use blockyard::layer::fault::FaultRule;
use blockyard::limits::Limits;
use blockyard::policy::{
    BusyTrack, DeadlineTunables, Dequeue, Dispatch, ElevatorKind, KyberAdjust, KyberTunables,
    Model, Policies, SchedDepth, SwqMerge,
};
use blockyard::request_queue::QueueConfig;
use blockyard::tag::TagSetConfig;
use blockyard::time::Duration;
use blockyard::unit::{CpuId, QueueId};
use blockyard_sim::workload::Prng;

/// A number from `low` to `high`.
pub(crate) fn between(prng: &mut Prng, low: u64, high: u64) -> u64 {
    low + prng.below(high - low + 1)
}

/// One of `choices`.
pub(crate) fn pick<T: Copy>(prng: &mut Prng, choices: &[T]) -> T {
    let at = prng.below(choices.len() as u64);
    choices[usize::try_from(at).expect("below a length")]
}

/// True once in `n`; never if `n` is 0.
pub(crate) fn one_in(prng: &mut Prng, n: u64) -> bool {
    n > 0 && prng.below(n) == 0
}

fn small(prng: &mut Prng, low: u64, high: u64) -> u16 {
    u16::try_from(between(prng, low, high)).expect("the bounds are 16 bits")
}

/// A system and its workload.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) tags: TagSetConfig,
    pub(crate) queues: Vec<QueueConfig>,
    pub(crate) device: DevicePlan,
    pub(crate) faults: Vec<FaultRule>,
    pub(crate) submitters: Vec<SubmitterPlan>,
    /// Every run is left to a worker, not only those that the queue wants deferred.
    pub(crate) defers_all: bool,
    /// Longest time from a worker's being asked to its run.
    pub(crate) run_delay_max: Duration,
    /// Once in so many refusals the submitter registers only a while later.
    pub(crate) late_wait_one_in: u64,
    /// Whether the accounts are checked after each step.
    pub(crate) checks_each_step: bool,
}

/// What the device has room for, and how long it takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DevicePlan {
    /// Commands of one queue, by budget where the design asks for it.
    pub(crate) queue_depth: u32,
    /// Commands of all queues together.
    pub(crate) host_depth: u32,
    pub(crate) service_max: Duration,
    /// Once in so many chances it has no budget although there is room; 0: never.
    pub(crate) no_budget: u64,
    /// As often it is said to be full although it is not, nor anything in flight (D4).
    pub(crate) empty_promises: u64,
}

/// Where the next bio of a submitter lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    Forward,
    Backward,
    Anywhere,
}

/// A thread that submits bios.
#[derive(Clone, Debug)]
pub(crate) struct SubmitterPlan {
    pub(crate) cpu: CpuId,
    pub(crate) queue: QueueId,
    pub(crate) depth: u64,
    /// Bios while there are faults, and after that.
    pub(crate) bios: [u64; 2],
    pub(crate) batch: u64,
    pub(crate) plugs: bool,
    /// Longest time a plug is held beyond the call that filled it.
    pub(crate) plug_hold_max: Duration,
    pub(crate) think_max: Duration,
    pub(crate) pattern: Pattern,
    pub(crate) ops: Vec<Op>,
    pub(crate) sectors_max: u64,
    pub(crate) flags_one_in: u64,
    pub(crate) prio_one_in: u64,
    /// Its part of the device.
    pub(crate) zone: (u64, u64),
}

impl Plan {
    pub(crate) fn new(seed: u64) -> Self {
        let prng = &mut Prng::new(seed).fork(0x5157);
        let cpus = small(prng, 1, 16);
        let default = small(prng, 1, 4);
        let reads = pick(prng, &[0, 0, 1, 2]);
        let polls = pick(prng, &[0, 0, 1, 2]);
        let map = QueueMap::with_kinds(cpus, default, reads, polls);
        let hctxs = default + reads + polls;
        let count = pick(prng, &[1, 1, 2, 3]);
        let depth = pick(prng, &[1, 1, 2, 3, 4, 8, 31, 64]);
        let tags = TagSetConfig {
            hctxs,
            depth,
            reserved: small(prng, 0, 3).min(depth - 1),
            shared_over_hctxs: one_in(prng, 3),
            queues: count,
            max_waiters: 64,
        };
        let same = one_in(prng, 2);
        let first = policies(prng, hctxs);
        let queues: Vec<_> = (0..count)
            .map(|_| QueueConfig {
                map: map.clone(),
                limits: limits(prng),
                policies: if same { first } else { policies(prng, hctxs) },
                max_bios: pick(prng, &[4, 16, 64, 4096, 4096]),
                max_waiters: 64,
                run_batch_max: pick(prng, &[1, 2, 8, 1024]),
                timeout: Duration::from_secs(30),
            })
            .collect();
        let threads = between(prng, 1, 12);
        let submitters = (0..threads).map(|_| SubmitterPlan::draw(prng, cpus, &queues)).collect();
        Self {
            tags,
            queues,
            device: DevicePlan {
                queue_depth: pick(prng, &[1, 2, 5, 32, 1024]),
                host_depth: pick(prng, &[1, 3, 16, 1024, 1024]),
                service_max: Duration::from_us(pick(prng, &[1, 20, 100])),
                no_budget: pick(prng, &[0, 0, 0, 2, 5, 50]),
                empty_promises: pick(prng, &[0, 0, 0, 2, 5, 50]),
            },
            faults: crate::faults::draw(prng),
            submitters,
            defers_all: one_in(prng, 2),
            run_delay_max: Duration::from_us(pick(prng, &[0, 1, 50])),
            late_wait_one_in: pick(prng, &[0, 0, 3]),
            checks_each_step: one_in(prng, 4),
        }
    }
}

fn policies(prng: &mut Prng, hctxs: u16) -> Policies {
    let dispatch =
        [Dispatch::DrainAll, Dispatch::HoldUntilFlushed, Dispatch::SharedList, Dispatch::Budget];
    let single = hctxs == 1 && one_in(prng, 2);
    Policies {
        model: if single { Model::SingleLock } else { Model::Multi },
        elevator: if one_in(prng, 2) { ElevatorKind::None } else { elevator(prng) },
        dispatch: if one_in(prng, 3) { Dispatch::Budget } else { pick(prng, &dispatch) },
        dequeue: pick(prng, &[Dequeue::SpliceAll, Dequeue::RoundRobin, Dequeue::ByBusy]),
        busy: pick(prng, &[BusyTrack::Off, BusyTrack::Bit, BusyTrack::Ewma]),
        swq_merge: pick(prng, &[SwqMerge::Off, SwqMerge::Last8, SwqMerge::Hash]),
        sched_depth: pick(
            prng,
            &[
                SchedDepth::Fixed(1),
                SchedDepth::Fixed(3),
                SchedDepth::Fixed(256),
                SchedDepth::FromDeviceDepth,
            ],
        ),
    }
}

/// Kyber is drawn from a stream of its own, so that a seed of before it came draws the rest as then.
fn elevator(prng: &mut Prng) -> ElevatorKind {
    let own = &mut prng.fork(0x6b79);
    let tunables = tunables(prng);
    if one_in(own, 2) { ElevatorKind::Kyber(kyber(own)) } else { ElevatorKind::Deadline(tunables) }
}

fn tunables(prng: &mut Prng) -> DeadlineTunables {
    if one_in(prng, 3) {
        return DeadlineTunables::default();
    }
    DeadlineTunables {
        read_expire: Duration::from_us(pick(prng, &[0, 50, 500_000])),
        write_expire: Duration::from_us(pick(prng, &[0, 500, 5_000_000])),
        writes_starved: pick(prng, &[0, 1, 2, 5]),
        fifo_batch: pick(prng, &[0, 1, 4, 16]),
        front_merges: one_in(prng, 2),
        prio_aging_expire: pick(
            prng,
            &[Duration::from_us(0), Duration::from_ms(1), Duration::from_secs(10), Duration::MAX],
        ),
        async_depth: pick(prng, &[None, Some(1), Some(2), Some(48)]),
        classes: one_in(prng, 2),
    }
}

/// Often so few tokens that requests wait for them.
fn kyber(prng: &mut Prng) -> KyberTunables {
    let mut depth = |linux| pick(prng, &[1, 1, 2, 5, linux]);
    KyberTunables {
        read_depth: depth(256),
        write_depth: depth(128),
        discard_depth: depth(64),
        other_depth: depth(16),
        read_latency: Duration::from_us(pick(prng, &[0, 50, 2_000])),
        write_latency: Duration::from_us(pick(prng, &[0, 50, 10_000])),
        adjust: pick(prng, &[KyberAdjust::Percentiles, KyberAdjust::Steps]),
    }
}

fn limits(prng: &mut Prng) -> Limits {
    Limits {
        logical_block_sectors: pick(prng, &[1, 8]),
        max_sectors: pick(prng, &[8, 24, 64, 2560, 2560]),
        max_segments: pick(prng, &[1, 2, 5, 128, 128]),
        max_discard_sectors: pick(prng, &[16, 64, 1 << 20]),
        max_discard_segments: pick(prng, &[1, 1, 4, 256]),
        max_write_zeroes_sectors: pick(prng, &[16, 128, 1 << 20]),
        chunk_sectors: pick(prng, &[0, 0, 16, 40, 256]),
        virt_boundary: one_in(prng, 3),
        ..Limits::new(1 << 16)
    }
}

impl SubmitterPlan {
    fn draw(prng: &mut Prng, cpus: u16, queues: &[QueueConfig]) -> Self {
        let queue = prng.below(queues.len() as u64);
        let limits = &queues[usize::try_from(queue).expect("below a length")].limits;
        let ops: &[&[Op]] = &[
            &[Op::Read],
            &[Op::Write],
            &[Op::Read, Op::Write],
            &[Op::Discard],
            &[Op::Read, Op::Write, Op::Discard, Op::WriteZeroes, Op::SecureErase, Op::Flush],
        ];
        let largest = u64::from(limits.max_sectors.min(128));
        let zone_len = pick(prng, &[64, 512, 1 << 13]);
        let zone = prng.below(2) * zone_len; // few, so that submitters meet
        Self {
            cpu: CpuId(small(prng, 0, u64::from(cpus) - 1)),
            queue: QueueId(u16::try_from(queue).expect("few queues")),
            depth: pick(prng, &[1, 2, 8, 32, 64]),
            bios: [pick(prng, &[0, 20, 100]), pick(prng, &[10, 100])],
            batch: pick(prng, &[1, 8, 40]),
            plugs: one_in(prng, 2),
            plug_hold_max: Duration::from_us(pick(prng, &[0, 0, 30])),
            think_max: Duration::from_us(pick(prng, &[0, 2, 300])),
            pattern: pick(prng, &[Pattern::Forward, Pattern::Backward, Pattern::Anywhere]),
            ops: pick(prng, ops).to_vec(),
            sectors_max: pick(prng, &[8, 8, 16, largest, 3 * largest]),
            flags_one_in: pick(prng, &[0, 0, 0, 2, 20]),
            prio_one_in: pick(prng, &[0, 0, 2, 10]),
            zone: (zone, zone + zone_len),
        }
    }

    /// The bio numbered `cookie`; `at` is where the one before it began and ended.
    pub(crate) fn bio(&self, prng: &mut Prng, limits: &Limits, at: (u64, u64), cookie: u64) -> Bio {
        let op = pick(prng, &self.ops);
        if op == Op::Flush {
            return Bio::new(op, 0, 0, cookie);
        }
        let block = u64::from(limits.logical_block_sectors);
        let room = (self.zone.1 - self.zone.0) / block;
        let blocks = between(prng, 1, (self.sectors_max / block).clamp(1, room));
        let sectors = blocks * block;
        let sector = self.place(prng, at, sectors, block);
        let segments = between(prng, 1, blocks.min(16));
        let mut bio = Bio {
            segments: u16::try_from(segments).expect("at most 16"),
            ..Bio::new(op, sector, u32::try_from(sectors).expect("at most a zone"), cookie)
        };
        let flags = [
            Flags::SYNC,
            Flags::META,
            Flags::NO_MERGE,
            Flags::NOWAIT,
            Flags::POLLED,
            Flags::GAP_HEAD,
            Flags::GAP_TAIL,
            Flags::FUA,
        ];
        for flag in flags {
            if one_in(prng, self.flags_one_in) {
                bio = bio.with_flags(flag);
            }
        }
        if one_in(prng, self.prio_one_in) {
            let class = pick(prng, &[PrioClass::RealTime, PrioClass::BestEffort, PrioClass::Idle]);
            let level = pick(prng, &[0, 7]);
            bio = bio.with_prio(IoPrio { class, level });
            bio.write_hint = pick(prng, &[0, 0, 3]);
        }
        bio
    }

    fn place(&self, prng: &mut Prng, at: (u64, u64), sectors: u64, block: u64) -> u64 {
        let (first, end) = self.zone;
        match self.pattern {
            Pattern::Forward if at.1 >= first && at.1 + sectors <= end => at.1,
            Pattern::Forward => first,
            Pattern::Backward if at.0 <= end && at.0 >= first + sectors => at.0 - sectors,
            Pattern::Backward => end - sectors,
            Pattern::Anywhere => first + prng.below((end - first - sectors) / block + 1) * block,
        }
    }
}
