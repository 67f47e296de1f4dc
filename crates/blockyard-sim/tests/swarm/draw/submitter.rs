//! Threads that submit bios, and the bios.

use super::{between, one_in, small};
use blockyard::bio::{Bio, Flags, IoPrio, Op, PrioClass, Submitter};
use blockyard::limits::Limits;
use blockyard::prng::Prng;
use blockyard::request_queue::QueueConfig;
use blockyard::time::Duration;
use blockyard::unit::{CpuId, QueueId};

/// The place of a submitter's next bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    Forward,
    Backward,
    Anywhere,
}

/// A thread that submits bios.
#[derive(Clone, Debug)]
pub(crate) struct SubmitterPlan {
    /// Who it is for an elevator that tells processes apart.
    pub(crate) submitter: Submitter,
    pub(crate) cpu: CpuId,
    pub(crate) queue: QueueId,
    pub(crate) depth: u64,
    /// The number of bios in the phase with faults and in the phase without.
    pub(crate) bios: [u64; 2],
    pub(crate) batch: u64,
    pub(crate) plugs: bool,
    /// The longest time for which a plug is held after the call that filled it.
    pub(crate) plug_hold_max: Duration,
    pub(crate) think_max: Duration,
    pub(crate) pattern: Pattern,
    pub(crate) ops: Vec<Op>,
    pub(crate) sectors_max: u64,
    pub(crate) flags_one_in: u64,
    /// [`Flags::FUA`], [`Flags::PREFLUSH`].
    pub(crate) durable_one_in: u64,
    pub(crate) reserved_one_in: u64,
    pub(crate) prio_one_in: u64,
    /// The submitter's part of the device.
    pub(crate) zone: (u64, u64),
}

impl SubmitterPlan {
    pub(super) fn draw(
        prng: &mut Prng,
        cpus: u16,
        queues: &[QueueConfig],
        has_reserve: bool,
    ) -> Self {
        let queue = prng.below(queues.len() as u64);
        let limits = &queues[usize::try_from(queue).expect("an index should fit usize")].limits;
        let ops: &[&[Op]] = &[
            &[Op::Read],
            &[Op::Write],
            &[Op::Read, Op::Write],
            &[Op::Discard],
            &[Op::Write, Op::Write, Op::Flush],
            &[Op::Read, Op::Write, Op::DriverIn, Op::DriverOut],
            &[Op::Read, Op::Write, Op::Discard, Op::WriteZeroes, Op::SecureErase, Op::Flush],
        ];
        let largest = u64::from(limits.max_sectors.min(128));
        let zone_len = prng.pick(&[64, 512, 1 << 13]);
        let zone = prng.below(2) * zone_len; // few zones, so that submitters meet
        Self {
            submitter: Submitter::NONE,
            cpu: CpuId(small(prng, 0, u64::from(cpus) - 1)),
            queue: QueueId(u16::try_from(queue).expect("a queue number should fit 16 bits")),
            depth: prng.pick(&[1, 2, 8, 32, 64]),
            bios: [prng.pick(&[0, 20, 60]), prng.pick(&[10, 50])],
            batch: prng.pick(&[1, 8, 40]),
            plugs: one_in(prng, 2),
            plug_hold_max: Duration::from_us(prng.pick(&[0, 0, 30])),
            think_max: Duration::from_us(prng.pick(&[0, 2, 300])),
            pattern: prng.pick(&[Pattern::Forward, Pattern::Backward, Pattern::Anywhere]),
            ops: prng.pick(ops).to_vec(),
            sectors_max: prng.pick(&[8, 8, 16, largest, 3 * largest]),
            flags_one_in: prng.pick(&[0, 0, 0, 2, 20]),
            durable_one_in: prng.pick(&[0, 0, 2, 10]),
            reserved_one_in: if has_reserve { prng.pick(&[0, 0, 3, 20]) } else { 0 },
            prio_one_in: prng.pick(&[0, 0, 2, 10]),
            zone: (zone, zone + zone_len),
        }
    }

    /// Makes it a process that has 32 reads under way until it has made 5000.
    pub(super) fn read_without_pause(&mut self, submitter: Submitter) {
        self.submitter = submitter;
        self.queue = QueueId(0);
        self.depth = 32;
        self.bios = [0, 5000];
        self.think_max = Duration::ZERO;
        self.pattern = Pattern::Anywhere; // neighbours would merge, and nothing be left
        self.zone = (0, 1 << 14);
        self.ops = vec![Op::Read];
        self.sectors_max = 64;
        self.flags_one_in = 0;
        self.durable_one_in = 0;
        self.reserved_one_in = 0;
        self.prio_one_in = 0;
    }

    /// Draws the bio numbered `cookie`; `at` is the start and end of the previous bio.
    pub(crate) fn bio(&self, prng: &mut Prng, limits: &Limits, at: (u64, u64), cookie: u64) -> Bio {
        let op = prng.pick(&self.ops);
        if op == Op::Flush {
            return Bio::new(op, 0, 0, cookie);
        }
        if op.is_passthrough() {
            return self.passthrough(prng, limits, op, cookie);
        }
        let block = u64::from(limits.logical_block_sectors);
        let room = (self.zone.1 - self.zone.0) / block;
        let blocks = between(prng, 1, (self.sectors_max / block).clamp(1, room));
        let sectors = blocks * block;
        let sector = self.place(prng, at, sectors, block);
        let segments = between(prng, 1, blocks.min(16));
        let mut bio = Bio {
            segments: u16::try_from(segments).expect("at most 16"),
            ..Bio::new(
                op,
                sector,
                u32::try_from(sectors).expect("a length within a zone should fit 32 bits"),
                cookie,
            )
        };
        let flags = [
            Flags::SYNC,
            Flags::META,
            Flags::NO_MERGE,
            Flags::NOWAIT,
            Flags::POLLED,
            Flags::GAP_HEAD,
            Flags::GAP_TAIL,
        ];
        let chances = flags
            .map(|flag| (flag, self.flags_one_in))
            .into_iter()
            .chain([Flags::FUA, Flags::PREFLUSH].map(|flag| (flag, self.durable_one_in)))
            .chain([(Flags::RESERVED, self.reserved_one_in)]);
        for (flag, chance) in chances {
            if one_in(prng, chance) {
                bio = bio.with_flags(flag);
            }
        }
        // Separate draws, so that those of other plans stay.
        let mut own = prng.fork(cookie);
        if op == Op::Write && one_in(&mut own, 2) {
            bio = bio.with_flags(Flags::WRITEBACK | own.pick(&[Flags::NONE, Flags::BACKGROUND]));
        }
        if one_in(prng, self.prio_one_in) {
            let class = prng.pick(&[PrioClass::RealTime, PrioClass::BestEffort, PrioClass::Idle]);
            let level = prng.pick(&[0, 7]);
            bio = bio.with_prio(IoPrio { class, level });
            bio.write_hint = prng.pick(&[0, 0, 3]);
        }
        bio
    }

    /// Draws a passthrough command, whose range has no meaning to the block layer.
    fn passthrough(&self, prng: &mut Prng, limits: &Limits, op: Op, cookie: u64) -> Bio {
        let sectors = prng.below(u64::from(limits.max_sectors.min(16)) + 1);
        let sectors = u32::try_from(sectors).expect("at most 16");
        let bio = Bio::new(op, prng.below(1 << 40), sectors, cookie);
        let reserved = one_in(prng, self.reserved_one_in);
        if reserved { bio.with_flags(Flags::RESERVED) } else { bio }
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
