//! The source of a task's I/Os: its job, or a trace.

use crate::placement::Placement;
use crate::replay::{Delivery, Due};
use blockyard::bio::{self, Bio, Flags, IoPrio, PrioClass};
use blockyard::time::{Duration, Instant};
use blockyard::unit::{QueueId, SECTOR_BYTES};
use blockyard_fio::job::{
    CommandPriority, Engine, Job, Op, Priority, PriorityClass, Resolved, SyncMode,
};
use blockyard_fio::workload::{Generator, Io, IoOp, Pacer, Prng, SyncCall};
use core::cmp::Ordering;
use std::collections::VecDeque;

/// The bytes of a memory page, which is one segment of a payload.
const PAGE_BYTES: u32 = 4096;

/// The next I/O of a tio.
#[derive(Clone, Copy, Debug)]
pub(super) struct NextIo {
    pub(super) queue: QueueId,
    /// The index of its file in the job.
    pub(super) file: u16,
    /// The bio, without a cookie.
    pub(super) bio: Bio,
    /// The kind of I/O; `None` for a sync.
    pub(super) kind: Option<Op>,
    /// The call of a sync of a job.
    pub(super) sync: Option<SyncCall>,
    pub(super) len_bytes: u32,
    /// Offset in its file, or on the disk of its trace.
    pub(super) offset_bytes: u64,
    pub(super) when: When,
    /// The priority of the I/O, if it is not that of the job.
    pub(super) priority: Option<Priority>,
    /// The call that issues the I/O returns when the I/O has ended.
    pub(super) in_call: bool,
    /// When the trace issued the I/O.
    pub(super) recorded_at: Option<Instant>,
    /// When the trace completed the I/O.
    pub(super) recorded_end: Option<Instant>,
}

/// What is known of the next I/O of a task.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    /// The source has not been asked, or its next record has not arrived.
    Unknown,
    /// The I/O. It stays the next one until it is submitted.
    Io(NextIo),
    /// There is none: the source has ended, or the task is to issue no more.
    End,
}

/// The rule for the instant at which an I/O may be submitted.
#[derive(Clone, Copy, Debug)]
pub(super) enum When {
    /// The job's rate and pauses decide.
    Paced,
    /// The trace decides.
    Recorded(Due),
}

/// The source of a task's I/Os.
#[derive(Debug)]
pub(super) enum Source {
    Generated(Box<Generated>),
    Recorded(Recorded),
}

impl Source {
    /// Whether the direction of the next I/O depends on the instant at which there is room for it.
    pub(super) fn chooses_late(&self) -> bool {
        matches!(self, Self::Generated(generated) if generated.is_mixed_under_rates)
    }

    /// Returns the queue of the first file, or disk.
    pub(super) fn first_queue(&self) -> QueueId {
        match self {
            Self::Generated(generated) => generated.placements.first(),
            Self::Recorded(_) => None,
        }
        .map_or(QueueId(0), |place| place.queue)
    }
}

/// I/Os generated from a job.
#[derive(Debug)]
pub(super) struct Generated {
    generator: Generator,
    placements: Vec<Placement>,
    pacers: [Option<Pacer>; 3],
    /// Reads and writes have rates, so that one direction may continue while the other is ahead of
    /// its rate. As in fio, a mix that is all reads or all writes has one direction only.
    is_mixed_under_rates: bool,
    issued: [(u64, u64); 3],
    /// The kind of the last I/O that was no sync.
    last: Option<Op>,
    /// The ramp time has not ended, and `number_ios` counts from its end on.
    is_ramping: bool,
    /// The time with which each rate does not catch up.
    exempt: [Duration; 3],
    prio: IoPrio,
    /// The priorities of single I/Os, with their draws.
    own_prio: Option<(CommandPriority, Prng)>,
    flags: Flags,
    engine: Engine,
}

impl Generated {
    pub(super) fn new(
        job: &Job,
        number: u32,
        resolved: &Resolved,
        placements: Vec<Placement>,
        seed: u64,
    ) -> Self {
        let durable = if job.sync == SyncMode::None { Flags::NONE } else { Flags::FUA };
        let polled = if job.hipri { Flags::POLLED } else { Flags::NONE };
        let pacers = Op::ALL.map(|op| Pacer::new(job, op, number, seed));
        Self {
            generator: Generator::new(job, number, resolved, seed),
            placements,
            is_mixed_under_rates: job.reads_and_writes() && pacers.iter().any(Option::is_some),
            pacers,
            issued: [(0, 0); 3],
            last: None,
            is_ramping: job.ramp_time_ns > 0 && job.number_ios.is_some(),
            exempt: [Duration::ZERO; 3],
            prio: prio_of(job.priority_class, job.priority),
            own_prio: job.command_priority.is_used().then(|| {
                let instance = u64::from(job.first_instance + number);
                (job.command_priority.clone(), Prng::new(seed).fork(6).fork(instance))
            }),
            flags: Flags::SYNC | durable | polled,
            engine: job.engine,
        }
    }

    /// Returns the next I/O, for an instance whose rates count from `begun`, or the end of the job.
    pub(super) fn next(&mut self, now: Instant, begun: Instant) -> Next {
        // Where reads and writes have rates, the one that may go first goes, whatever the mix would
        // draw.
        let direction = if self.is_mixed_under_rates { self.earlier(now, begun) } else { None };
        let Some(io) = self.generator.next(direction) else { return Next::End };
        let place = self.placements[usize::from(io.file)];
        let (op, kind) = match io.op {
            IoOp::Read => (bio::Op::Read, Some(Op::Read)),
            IoOp::Write => (bio::Op::Write, Some(Op::Write)),
            IoOp::Trim => (bio::Op::Discard, Some(Op::Trim)),
            IoOp::Sync(_) => (bio::Op::Flush, None),
        };
        let sync = if let IoOp::Sync(call) = io.op { Some(call) } else { None };
        // A draw for each I/O, also where the percentage is 0 or 100, so that the stream does not
        // depend on it.
        let priority = match (&mut self.own_prio, kind) {
            (Some((own, draws)), Some(kind)) => own.of(kind, io.len_bytes, draws.below(100)),
            _ => None,
        };
        let prio = priority.map_or(self.prio, |(class, level)| prio_of(class, Some(level)));
        Next::Io(NextIo {
            queue: place.queue,
            file: io.file,
            bio: Bio { prio, ..self.bio(op, &io, place.base_bytes) },
            kind,
            sync,
            len_bytes: io.len_bytes,
            offset_bytes: io.offset_bytes,
            when: When::Paced,
            priority,
            in_call: self.engine == Engine::Libaio && matches!(kind, None | Some(Op::Trim)),
            recorded_at: None,
            recorded_end: None,
        })
    }

    /// Returns the direction that may go before the other one, from `now` on: as in fio, it goes,
    /// whichever is drawn.
    fn earlier(&mut self, now: Instant, begun: Instant) -> Option<Op> {
        let [reads_at, writes_at] =
            [Op::Read, Op::Write].map(|op| self.paced(Some(op), begun).max(now));
        match reads_at.cmp(&writes_at) {
            Ordering::Less => Some(Op::Read),
            Ordering::Equal => None,
            Ordering::Greater => Some(Op::Write),
        }
    }

    fn bio(&self, op: bio::Op, io: &Io, base_bytes: u64) -> Bio {
        // The buffers of fio begin at multiples of the largest block, so one of 512 bytes ends
        // within a page.
        let ends_page = io.len_bytes.is_multiple_of(PAGE_BYTES);
        let tail = if ends_page { Flags::NONE } else { Flags::GAP_TAIL };
        let flags = match op {
            bio::Op::Write => self.flags | tail,
            // A read is always synchronous.
            bio::Op::Read => self.flags.without(Flags::FUA).without(Flags::SYNC) | tail,
            _ => self.flags.without(Flags::FUA).without(Flags::POLLED),
        };
        // A payload of 10,000 bytes lies in three pages, each of them a segment. Other operations
        // have one.
        let segments = match op {
            bio::Op::Read | bio::Op::Write => io.len_bytes.div_ceil(PAGE_BYTES),
            _ => 1,
        };
        let bytes = base_bytes + io.offset_bytes;
        Bio {
            sector: bytes / u64::from(SECTOR_BYTES),
            sectors: io.len_bytes / SECTOR_BYTES,
            segments: u16::try_from(segments).unwrap_or(u16::MAX),
            flags,
            ..Bio::new(op, 0, 0, 0)
        }
    }

    /// Returns the number of passes that ended before the I/O that was drawn last.
    pub(super) const fn passes_done(&self) -> u64 {
        self.generator.passes_done()
    }

    /// Returns how often the I/Os of file number `file` began anew within a pass, up to the I/O
    /// that was drawn last.
    pub(super) fn begun_anew(&self, file: u16) -> u64 {
        self.generator.begun_anew(file)
    }

    /// Notes that `io` was submitted.
    pub(super) fn submitted(&mut self, io: &NextIo) {
        if let Some(kind) = io.kind {
            let (bytes, ios) = &mut self.issued[kind as usize];
            *bytes += u64::from(io.len_bytes);
            *ios += 1;
            self.last = Some(kind);
        }
    }

    /// Notes that the ramp time is over, with `in_flight` I/Os: they are the first that count.
    pub(super) const fn end_ramp(&mut self, in_flight: u64) {
        if core::mem::replace(&mut self.is_ramping, false) {
            self.generator.count_anew(in_flight);
        }
    }

    /// Whether the job limits its rate.
    pub(super) fn has_rate(&self) -> bool {
        self.pacers.iter().any(Option::is_some)
    }

    /// Returns the earliest instant for an I/O of `kind` under its rate, for an instance whose
    /// rates count from `begun`.
    pub(super) fn paced(&mut self, kind: Option<Op>, begun: Instant) -> Instant {
        let Some(kind) = kind else { return Instant::ZERO };
        let Some(pacer) = &mut self.pacers[kind as usize] else { return Instant::ZERO };
        let (bytes, ios) = self.issued[kind as usize];
        begun + self.exempt[kind as usize] + Duration::from_ns(pacer.next_allowed_ns(bytes, ios))
    }

    /// Notes that the rate of the last I/O does not catch up with a pause. As in fio, the rate of
    /// the other direction does. See [`Pacer::forgiven_ns`].
    pub(super) fn exempt_pause(&mut self, pause: Duration) {
        let Some(kind) = self.last else { return };
        if let Some(pacer) = &self.pacers[kind as usize] {
            // The rate counts from later on: its clock stands while the job pauses.
            self.exempt[kind as usize] += Duration::from_ns(pacer.forgiven_ns(pause.as_ns()));
        }
    }
}

/// Returns the priority of a bio. A level without a class is one of best effort, as in fio.
fn prio_of(class: PriorityClass, level: Option<u8>) -> IoPrio {
    let class = match (class, level) {
        (PriorityClass::None, None) => PrioClass::None,
        (PriorityClass::RealTime, _) => PrioClass::RealTime,
        (PriorityClass::None | PriorityClass::BestEffort, _) => PrioClass::BestEffort,
        (PriorityClass::Idle, _) => PrioClass::Idle,
    };
    IoPrio { class, level: level.unwrap_or(0) }
}

/// The recorded I/Os that have been delivered.
#[derive(Debug)]
pub(super) struct Recorded {
    inbox: VecDeque<NextIo>,
    /// Whether records have their own instants.
    timed: bool,
    ended: bool,
    in_flight: u32,
    /// For each index, the instant when the number in flight last fell to it.
    fell_to: Vec<Instant>,
    latest_issue: Instant,
    /// When the latest call was due.
    call_due: Instant,
}

impl Recorded {
    /// Returns a source for a task with up to `depth` I/Os in flight.
    pub(super) fn new(depth: u32) -> Self {
        Self {
            inbox: VecDeque::new(),
            timed: false,
            ended: false,
            in_flight: 0,
            fell_to: vec![Instant::ZERO; depth as usize],
            latest_issue: Instant::ZERO,
            call_due: Instant::ZERO,
        }
    }

    pub(super) fn push(&mut self, delivery: &Delivery) {
        let Delivery { queue, bio, kind, len_bytes, due, at, ended } = *delivery;
        debug_assert!(!self.ended, "no record may follow the last one");
        // A trace without times says only in which order its I/Os come.
        self.timed |= matches!(due, Due::At(_) | Due::After { .. });
        let when = When::Recorded(due);
        self.inbox.push_back(NextIo {
            queue,
            file: 0,
            bio,
            kind,
            sync: None,
            len_bytes,
            offset_bytes: bio.sector * u64::from(SECTOR_BYTES),
            when,
            priority: None,
            in_call: false,
            recorded_at: Some(at),
            recorded_end: ended,
        });
    }

    /// Returns the next record. Without one now, one may come later.
    pub(super) fn next(&mut self) -> Next {
        self.inbox.pop_front().map_or(Next::Unknown, Next::Io)
    }

    /// Returns the number of I/Os in the inbox that the call of the one before them issues, too.
    pub(super) fn joined(&self) -> usize {
        self.inbox.iter().take_while(|io| matches!(io.when, When::Recorded(Due::Joined))).count()
    }

    /// Whether records have their own instants, rather than only an order.
    pub(super) const fn timed(&self) -> bool {
        self.timed
    }

    /// Notes that there are no more records.
    pub(super) const fn end(&mut self) {
        self.ended = true;
    }

    /// Whether all records have been returned.
    pub(super) fn ended(&self) -> bool {
        self.ended && self.inbox.is_empty()
    }

    /// Notes that `io` was submitted. Returns the instant from which its latency counts: in an open
    /// loop, that of the trace; with think time, when all had happened that it waits for, and the
    /// recorded time had passed since; `now` in a closed loop, in which nothing is late. I/Os of
    /// one call are due together.
    pub(super) fn submitted(&mut self, io: &NextIo, now: Instant) -> Instant {
        debug_assert!(
            (self.in_flight as usize) < self.fell_to.len(),
            "I/Os in flight must not exceed the depth"
        );
        let due = match io.when {
            When::Recorded(Due::AtOnce) | When::Paced => now,
            When::Recorded(Due::Joined) => self.call_due,
            When::Recorded(due @ (Due::At(_) | Due::After { .. })) => self.due(due).unwrap_or(now),
        };
        self.call_due = due;
        self.in_flight += 1;
        self.latest_issue = now;
        due
    }

    pub(super) fn completed(&mut self, now: Instant) {
        debug_assert!(self.in_flight > 0, "an I/O that completes must be in flight");
        self.in_flight -= 1;
        // From 5 in flight to 4 now: an I/O that waits for "at most 4 in flight" counts its gap
        // from here.
        self.fell_to[self.in_flight as usize] = now;
    }

    /// Returns when an I/O with this due time may be submitted; `None` if it must wait for a
    /// completion.
    pub(super) fn due(&self, due: Due) -> Option<Instant> {
        match due {
            Due::AtOnce | Due::Joined => Some(Instant::ZERO),
            Due::At(at) => Some(at),
            Due::After { outstanding, .. } if self.in_flight > outstanding => None,
            Due::After { outstanding, gap } => {
                // With room for one more, fewer than the depth are in flight.
                let fell = self.fell_to.get(outstanding as usize).copied();
                Some(fell.unwrap_or(Instant::ZERO).max(self.latest_issue) + gap)
            }
        }
    }
}
