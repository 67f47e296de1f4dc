//! Turns bytes into numbers, and the first numbers into a system.

use blockyard::bio::{Bio, Flags, IoPrio, Op, PrioClass};
use blockyard::hardware_queue::QueueMap;
use blockyard::limits::Limits;
use blockyard::policy::{
    BusyTrack, DeadlineTunables, Dequeue, Dispatch, ElevatorKind, Insertion, Merges, Model,
    Plugging, Policies, Restart, SchedDepth, SwqMerge, WbtTunables,
};
use blockyard::request_queue::QueueConfig;
use blockyard::tag::TagSetConfig;
use blockyard::time::Duration;

/// The size of each disk, small so that bios often touch.
const CAPACITY_SECTORS: u64 = 96;

/// Bytes, taken one at a time.
pub(super) struct Input<'a> {
    bytes: &'a [u8],
}

impl<'a> Input<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the next byte, or 0 after the last one.
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        *first
    }

    /// Returns a number below `count`, which is at most 256.
    pub(super) fn below(&mut self, count: usize) -> usize {
        usize::from(self.byte()) % count
    }

    /// Returns a number from `low` to `high`.
    pub(super) fn between(&mut self, low: u16, high: u16) -> u16 {
        low + u16::from(self.byte()) % (high - low + 1)
    }

    pub(super) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    pub(super) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == count - 1
    }

    /// Returns a bio for a disk with `limits`, sometimes one that the disk must refuse.
    pub(super) fn bio(&mut self, limits: &Limits, cookie: u64) -> Bio {
        const OPS: [Op; 11] = [
            Op::Write,
            Op::Write,
            Op::Write,
            Op::Read,
            Op::Read,
            Op::Flush,
            Op::Discard,
            Op::WriteZeroes,
            Op::SecureErase,
            Op::DriverIn,
            Op::DriverOut,
        ];
        const FLAGS: [Flags; 12] = [
            Flags::NONE,
            Flags::NONE,
            Flags::WRITEBACK,
            Flags::SYNC,
            Flags::PREFLUSH,
            Flags::FUA,
            Flags::NOWAIT,
            Flags::NO_MERGE,
            Flags::GAP_HEAD,
            Flags::GAP_TAIL,
            Flags::POLLED,
            Flags::RESERVED,
        ];
        let op = self.pick(&OPS);
        let flags = self.pick(&FLAGS) | self.pick(&FLAGS);
        if op == Op::Flush {
            return Bio::new(op, 0, 0, cookie).with_flags(flags);
        }
        let block = u64::from(limits.logical_block_sectors);
        let sectors = block * u64::from(self.pick(&[1_u8, 1, 1, 2, 3, 4, 8, 20]));
        let last = CAPACITY_SECTORS / block;
        let sector = block * u64::from(self.byte()).min(last) % CAPACITY_SECTORS;
        let class = [PrioClass::BestEffort, PrioClass::RealTime, PrioClass::Idle];
        let class = if self.one_in(8) { self.pick(&class) } else { PrioClass::BestEffort };
        let sectors = u32::try_from(sectors).expect("the sectors should be a few blocks");
        let bio = Bio::new(op, sector, sectors, cookie).with_flags(flags);
        let segments = if self.one_in(4) { self.between(1, 6) } else { 1 };
        Bio { segments, ..bio.with_prio(IoPrio { class, level: 0 }) }
    }
}

/// A host and its disks.
#[derive(Debug)]
pub(super) struct System {
    pub(super) tags: TagSetConfig,
    pub(super) cpus: u16,
    pub(super) queues: Vec<QueueConfig>,
    /// The number of requests for which the device has budget.
    pub(super) budget: u32,
}

impl System {
    pub(super) fn draw(input: &mut Input<'_>) -> Self {
        let cpus = input.between(1, 3);
        let queues = input.between(1, 2);
        let map = match input.below(4) {
            0 => QueueMap::with_kinds(cpus, 1, 1, 0),
            1 => QueueMap::with_kinds(cpus, 1, 0, 1),
            _ => QueueMap::even(cpus, input.between(1, 3)),
        };
        let hctxs = [&map.default, &map.read, &map.poll].into_iter().flatten().max();
        let hctxs = hctxs.expect("a map should serve a processor").0 + 1;
        let reserved = input.between(0, 1);
        let tags = TagSetConfig {
            hctxs,
            depth: reserved + input.pick(&[1, 1, 2, 3, 5, 8, 16]),
            reserved,
            shared_over_hctxs: input.one_in(4),
            queues,
            max_waiters: u32::from(input.between(1, 4)),
        };
        let queues = (0..queues).map(|_| queue(input, &map, hctxs)).collect();
        Self { tags, cpus, queues, budget: u32::from(input.pick(&[1_u8, 2, 4, 64])) }
    }
}

fn queue(input: &mut Input<'_>, map: &QueueMap, hctxs: u16) -> QueueConfig {
    let limits = limits(input);
    let policies = policies(input, hctxs);
    QueueConfig {
        map: map.clone(),
        max_bios: input.pick(&[3, 8, 64]),
        max_waiters: u32::from(input.between(1, 4)),
        run_batch_max: input.pick(&[1, 2, 64]),
        timeout: Duration::from_secs(input.pick(&[1, 2, 30])),
        ..QueueConfig::new(1, 1, limits, policies)
    }
}

fn limits(input: &mut Input<'_>) -> Limits {
    let write_cache = !input.one_in(4);
    Limits {
        logical_block_sectors: input.pick(&[1, 1, 2]),
        max_sectors: input.pick(&[64, 8, 4]),
        max_segments: input.pick(&[64, 4, 1]),
        max_discard_sectors: input.pick(&[64, 8]),
        max_discard_segments: input.pick(&[1, 4]),
        max_write_zeroes_sectors: input.pick(&[64, 8]),
        chunk_sectors: input.pick(&[0, 0, 16, 12]),
        virt_boundary: input.one_in(4),
        write_cache,
        fua: input.one_in(2),
        ..Limits::new(CAPACITY_SECTORS)
    }
}

fn policies(input: &mut Input<'_>, hctxs: u16) -> Policies {
    let dispatches =
        [Dispatch::Budget, Dispatch::HoldUntilFlushed, Dispatch::SharedList, Dispatch::DrainAll];
    let elevator = if input.one_in(2) {
        ElevatorKind::Deadline(DeadlineTunables {
            fifo_batch: input.pick(&[16, 1, 0]),
            front_merges: !input.one_in(4),
            async_depth: input.pick(&[None, Some(1)]),
            classes: !input.one_in(4),
            insertion: input.pick(&[Insertion::Locked, Insertion::Locked, Insertion::Listed]),
            ..DeadlineTunables::default()
        })
    } else {
        ElevatorKind::None
    };
    let model = if hctxs == 1 && input.one_in(4) { Model::SingleLock } else { Model::Multi };
    let dispatch = input.pick(&dispatches);
    let dequeue = input.pick(&[Dequeue::ByBusy, Dequeue::RoundRobin, Dequeue::SpliceAll]);
    let busy = input.pick(&[BusyTrack::Ewma, BusyTrack::Bit, BusyTrack::Off]);
    // One draw gives both values, so inputs recorded when only the first was drawn still work.
    let (plug, swq_merge) = input.pick(&[
        (Plugging::Batches, SwqMerge::Last8),
        (Plugging::Batches, SwqMerge::Hash),
        (Plugging::Batches, SwqMerge::Off),
        (Plugging::EveryBio, SwqMerge::Last8),
        (Plugging::EveryBio, SwqMerge::Hash),
        (Plugging::EveryBio, SwqMerge::Off),
        (Plugging::Calls, SwqMerge::Last8),
        (Plugging::Calls, SwqMerge::Hash),
    ]);
    fn wbt(queue_depth: u32) -> Option<WbtTunables> {
        Some(WbtTunables { latency: Duration::from_us(100), queue_depth })
    }
    Policies {
        model,
        elevator,
        dispatch,
        dequeue,
        busy,
        swq_merge,
        plug,
        sched_depth: input.pick(&[
            SchedDepth::FromDeviceDepth,
            SchedDepth::Fixed(1),
            SchedDepth::Fixed(3),
        ]),
        merges: input.pick(&[Merges::All, Merges::Last]),
        // One draw gives both values: inputs recorded before the second was drawn still work.
        ..input.pick(&[
            Policies { restart: Restart::Own, ..Policies::NONE },
            Policies { restart: Restart::InTurn, ..Policies::NONE },
            Policies { restart: Restart::Own, wbt: wbt(1), ..Policies::NONE },
            Policies { restart: Restart::InTurn, wbt: wbt(3), ..Policies::NONE },
        ])
    }
}
