//! Job instances: when each asks for its next I/O, and what it waits for in between.
//!
//! A [`Task`] is a value that the world steps on a processor. It says what it wants to do
//! ([`Task::plan`]); the world does it and tells the task how it went.

use crate::job::{ContinueOnError, Engine, Job, Op, Resolved, SyncMode};
use crate::machine::cpu::TaskId;
use crate::workload::{Generator, Io, IoOp, Pacer};
use blockyard::bio::{self, Bio, Flags, IoPrio, PrioClass};
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, QueueId, SECTOR_BYTES};
use std::collections::VecDeque;

/// Bytes of a memory page: one segment of a payload.
const PAGE_BYTES: u32 = 4096;
/// A call that submits more I/Os than this plugs them: Linux has it so for libaio and `io_uring`.
const UNPLUGGED_MAX: u32 = 2;

/// Where a file of a job lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The request queue of its disk.
    pub queue: QueueId,
    /// First byte of the file on the disk.
    pub base_bytes: u64,
}

/// One instance of a job, with everything decided that differs between instances.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Its number among the instances of its job, from 0.
    pub number: u32,
    /// What it covers.
    pub resolved: Resolved,
    /// Where its files lie.
    pub placements: Vec<Placement>,
    /// The processor it runs on.
    pub cpu: CpuId,
    /// Which statistics it counts into.
    pub stats: usize,
}

/// An I/O under way.
#[derive(Clone, Copy, Debug)]
struct Slot {
    op: Option<Op>,
    len_bytes: u32,
    begun: Instant,
    submitted: Instant,
    completed: Instant,
    status: Status,
}

/// What a task does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Take results and ask for more, as far as there is room.
    Go,
    /// Sleep until enough I/Os have completed.
    AwaitCompletions,
    /// Sleep until this instant.
    AwaitInstant(Instant),
    /// It has done all it had to do.
    End,
}

/// What a task sleeps for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asleep {
    /// It is running or ready.
    No,
    /// For this many completed I/Os.
    Completions(u32),
    /// For an instant.
    Instant,
    /// For a tag.
    Tag,
}

/// An I/O that was completed and taken.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// What it was; `None` for a sync.
    pub op: Option<Op>,
    /// Its bytes.
    pub len_bytes: u32,
    /// Submission latency.
    pub slat: Duration,
    /// Completion latency.
    pub clat: Duration,
    /// When the device's answer was there for it.
    pub completed: Instant,
    /// How it ended.
    pub status: Status,
}

/// One instance of a job.
#[derive(Debug)]
pub struct Task {
    /// Its number.
    pub id: TaskId,
    /// The processor it runs on.
    pub cpu: CpuId,
    /// Which statistics it counts into.
    pub stats: usize,
    /// Its end is the end of all (`exitall`).
    pub ends_all: bool,
    continue_on_error: ContinueOnError,
    generator: Generator,
    placements: Vec<Placement>,
    pacers: [Option<Pacer>; 3],
    issued: [(u64, u64); 3],
    shape: Shape,
    slots: Vec<Slot>,
    free: Vec<u32>,
    completed: VecDeque<u32>,
    /// Slots that the current step submits.
    submitting: Vec<u32>,
    call: Call,
    /// Drawn from the generator, not submitted yet.
    drawn: Option<Io>,
    exhausted: bool,
    /// The depth was reached, and has not fallen to the low mark again.
    draining: bool,
    /// The next step takes results.
    taking: bool,
    asleep: Asleep,
    started: Instant,
    /// What completes from here on is measured.
    measured_from: Instant,
    stop_at: Instant,
    think: Think,
    pause_until: Instant,
}

/// What of a job decides how an instance proceeds.
#[derive(Clone, Copy, Debug)]
struct Shape {
    engine: Engine,
    depth: u32,
    batch: u32,
    complete_min: u32,
    complete_max: u32,
    low: u32,
    prio: IoPrio,
    flags: Flags,
}

/// A call that submits I/Os. It may sleep for a tag on the way and goes on where it stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// I/Os it has still to submit.
    pub left: u32,
    /// Whether it plugs them.
    pub plugs: bool,
}

/// Pauses between I/Os.
#[derive(Clone, Copy, Debug)]
struct Think {
    pause: Duration,
    spin: Duration,
    every: u32,
    since: u32,
    /// A pause is due once everything under way has completed.
    due: bool,
    /// Of the pause that has just begun, this much is spent computing.
    spin_now: Duration,
}

impl Task {
    /// `instance` of `job`, as task `id`; `seed` is the run's.
    #[must_use]
    pub fn new(id: TaskId, job: &Job, instance: Instance, seed: u64) -> Self {
        let Instance { number, resolved, placements, cpu, stats } = instance;
        let depth = job.depth();
        let or_depth = |count: u32| if count == 0 { depth } else { count.min(depth) };
        let complete_min = job.iodepth_batch_complete_min.max(1).min(depth);
        let idle = Slot {
            op: None,
            len_bytes: 0,
            begun: Instant::ZERO,
            submitted: Instant::ZERO,
            completed: Instant::ZERO,
            status: Status::Ok,
        };
        Self {
            id,
            cpu,
            stats,
            ends_all: job.exitall,
            continue_on_error: job.continue_on_error,
            generator: Generator::new(job, number, &resolved, seed),
            placements,
            pacers: [Op::Read, Op::Write, Op::Trim].map(|op| Pacer::new(job, op, number, seed)),
            issued: [(0, 0); 3],
            shape: Shape {
                engine: job.engine,
                depth,
                batch: or_depth(job.iodepth_batch_submit),
                complete_min,
                complete_max: job
                    .iodepth_batch_complete_max
                    .map_or(complete_min, or_depth)
                    .max(complete_min),
                low: job.iodepth_low.unwrap_or(depth).min(depth),
                prio: prio_of(job),
                flags: if job.sync == SyncMode::None {
                    Flags::SYNC
                } else {
                    Flags::SYNC | Flags::FUA
                },
            },
            slots: vec![idle; depth as usize],
            free: (0..depth).rev().collect(),
            completed: VecDeque::with_capacity(depth as usize),
            submitting: Vec::with_capacity(depth as usize),
            call: Call::default(),
            drawn: None,
            exhausted: false,
            draining: false,
            taking: false,
            asleep: Asleep::Instant,
            started: Instant::ZERO,
            measured_from: Instant::ZERO,
            stop_at: Instant::MAX,
            think: Think {
                pause: Duration::from_ns(job.thinktime_ns),
                spin: Duration::from_ns(job.thinktime_spin_ns),
                every: job.thinktime_blocks.max(1),
                since: 0,
                due: false,
                spin_now: Duration::ZERO,
            },
            pause_until: Instant::ZERO,
        }
    }

    /// The instance begins at `now`, is measured after `ramp`, and stops asking for more `limit`
    /// after that.
    pub fn begin(&mut self, now: Instant, ramp: Duration, limit: Option<Duration>) {
        self.started = now;
        self.measured_from = now + ramp;
        self.stop_at = limit.map_or(Instant::MAX, |limit| self.measured_from + limit);
    }

    /// When measuring it begins.
    #[must_use]
    pub const fn measured_from(&self) -> Instant {
        self.measured_from
    }

    /// Whether more than one I/O can be in flight, and completions are asked for by a call of
    /// their own.
    #[must_use]
    pub const fn is_async(&self) -> bool {
        self.shape.engine.is_async()
    }

    /// I/Os submitted and not taken yet.
    #[must_use]
    pub fn outstanding(&self) -> u32 {
        self.shape.depth - u32::try_from(self.free.len()).expect("as many as the depth")
    }

    /// What to do from `now` on. The task sleeps, or has ended, unless the answer is
    /// [`Plan::Go`].
    pub fn plan(&mut self, now: Instant) -> Plan {
        self.asleep = Asleep::No;
        self.taking = false;
        if now >= self.stop_at {
            self.exhausted = true;
            self.drawn = None;
        }
        self.draw();
        let finishing = self.drawn.is_none();
        let outstanding = self.outstanding();
        if self.think.due && outstanding == 0 && !finishing {
            self.think.due = false;
            self.think.spin_now = self.think.spin.min(self.think.pause);
            self.pause_until = now + self.think.pause;
        }
        let due = self.next_due();
        if outstanding == self.shape.depth {
            self.draining = true;
        } else if outstanding <= self.shape.low {
            self.draining = false;
        }
        // Before it pauses, and at its end, a job waits for everything it has under way, so that
        // no result lies untaken meanwhile.
        let settles = finishing || self.think.due || due > now;
        if settles && outstanding > 0 {
            return self.await_completions(outstanding);
        }
        if finishing {
            return Plan::End;
        }
        if due > now {
            self.asleep = Asleep::Instant;
            return Plan::AwaitInstant(due);
        }
        if self.draining {
            return self.await_completions(self.shape.complete_min.min(outstanding));
        }
        Plan::Go
    }

    fn await_completions(&mut self, wanted: u32) -> Plan {
        self.taking = true;
        if self.completed.len() >= wanted as usize {
            return Plan::Go;
        }
        self.asleep = Asleep::Completions(wanted);
        Plan::AwaitCompletions
    }

    /// The job ends: it asks for nothing more from `now` on.
    pub fn stop(&mut self, now: Instant) {
        self.stop_at = self.stop_at.min(now);
    }

    /// Whether results are to be taken in this step; not while a call goes on that slept for a tag.
    #[must_use]
    pub const fn takes_now(&self) -> bool {
        self.taking && self.call.left == 0
    }

    /// Whether it goes on after an error of `op`; `None` is a sync.
    #[must_use]
    pub const fn goes_on_after_error_of(&self, op: Option<Op>) -> bool {
        match op {
            Some(Op::Read) => self.continue_on_error.reads,
            Some(Op::Write | Op::Trim) | None => self.continue_on_error.writes,
        }
    }

    /// Takes one result; at most `complete_max` are taken in a step.
    pub fn take_completed(&mut self, now: Instant) -> Option<Taken> {
        let at = self.completed.pop_front()?;
        let slot = self.slots[at as usize];
        self.free.push(at);
        Some(Taken {
            op: slot.op,
            len_bytes: slot.len_bytes,
            slat: slot.submitted.since(slot.begun),
            clat: now.since(slot.submitted),
            completed: slot.completed,
            status: slot.status,
        })
    }

    /// Most results that one step takes.
    #[must_use]
    pub const fn take_max(&self) -> u32 {
        self.shape.complete_max
    }

    /// The call that this step makes, or goes on with.
    pub fn call(&mut self) -> Call {
        if self.call.left == 0 {
            let room = u32::try_from(self.free.len()).expect("as many as the depth");
            let left = self.shape.batch.min(room);
            self.call = Call { left, plugs: left > UNPLUGGED_MAX };
        }
        self.call
    }

    /// The call has returned.
    pub const fn call_ended(&mut self) {
        self.call.left = 0;
    }

    /// The next I/O to submit at `now`, as a bio for its queue; `None` if there is no room, nothing
    /// left, or it is too early. Say [`Self::submitted`] or leave it: it is offered again.
    pub fn next_bio(&mut self, now: Instant) -> Option<(QueueId, Bio)> {
        if self.outstanding() <= self.shape.low.min(self.shape.depth - 1) {
            self.draining = false;
        }
        if self.draining || self.think.due {
            return None;
        }
        let slot = *self.free.last()?;
        self.draw();
        let io = self.drawn?;
        if self.next_due() > now {
            return None;
        }
        let place = self.placements[usize::from(io.file)];
        let bytes = place.base_bytes + io.offset_bytes;
        let op = match io.op {
            IoOp::Read => bio::Op::Read,
            IoOp::Write => bio::Op::Write,
            IoOp::Trim => bio::Op::Discard,
            IoOp::Sync { .. } => bio::Op::Flush,
        };
        let cookie = u64::from(self.id.0) << 32 | u64::from(slot);
        let mut flags = self.shape.flags;
        if op != bio::Op::Write {
            flags = flags.without(Flags::FUA);
        }
        let segments = match op {
            bio::Op::Read | bio::Op::Write => io.len_bytes.div_ceil(PAGE_BYTES),
            _ => 1,
        };
        let bio = Bio {
            sector: bytes / u64::from(SECTOR_BYTES),
            sectors: io.len_bytes / SECTOR_BYTES,
            segments: u16::try_from(segments).unwrap_or(u16::MAX),
            flags,
            prio: self.shape.prio,
            ..Bio::new(op, 0, 0, cookie)
        };
        Some((place.queue, bio))
    }

    /// What [`Self::next_bio`] offered was taken by the queue in a step that began at `now`.
    pub fn submitted(&mut self, now: Instant) {
        let io = self.drawn.take().expect("an I/O was offered");
        let at = self.free.pop().expect("a slot was offered");
        let op = match io.op {
            IoOp::Read => Some(Op::Read),
            IoOp::Write => Some(Op::Write),
            IoOp::Trim => Some(Op::Trim),
            IoOp::Sync { .. } => None,
        };
        if let Some(op) = op {
            let (bytes, ios) = &mut self.issued[op as usize];
            *bytes += u64::from(io.len_bytes);
            *ios += 1;
            self.think.since += 1;
        }
        self.slots[at as usize] = Slot {
            op,
            len_bytes: io.len_bytes,
            begun: now,
            submitted: now,
            completed: now,
            status: Status::Ok,
        };
        self.submitting.push(at);
        self.call.left -= 1;
        if self.think.pause > Duration::ZERO && self.think.since >= self.think.every {
            self.think.since = 0;
            self.think.due = true;
        }
    }

    /// The step is over at `now`: what it submitted has been submitted.
    pub fn step_ended(&mut self, now: Instant) {
        for at in self.submitting.drain(..) {
            self.slots[at as usize].submitted = now;
        }
    }

    /// How long the pause that [`Self::plan`] has just begun keeps the processor busy.
    pub fn take_spin(&mut self) -> Duration {
        core::mem::take(&mut self.think.spin_now)
    }

    /// The I/O of `slot` has completed at `now`. Whether the task is to be woken.
    pub fn completed(&mut self, slot: u32, status: Status, now: Instant) -> bool {
        let done = &mut self.slots[slot as usize];
        (done.status, done.completed) = (status, now);
        self.completed.push_back(slot);
        match self.asleep {
            Asleep::Completions(wanted) if self.completed.len() >= wanted as usize => {
                self.asleep = Asleep::No;
                true
            }
            _ => false,
        }
    }

    /// It sleeps until it is woken for a tag.
    pub const fn sleep_for_tag(&mut self) {
        self.asleep = Asleep::Tag;
    }

    /// Whether it sleeps for a tag.
    #[must_use]
    pub fn waits_for_tag(&self) -> bool {
        self.asleep == Asleep::Tag
    }

    /// It runs again.
    pub const fn wake(&mut self) {
        self.asleep = Asleep::No;
    }

    fn draw(&mut self) {
        if self.drawn.is_none() && !self.exhausted {
            self.drawn = self.generator.next();
            self.exhausted = self.drawn.is_none();
        }
    }

    /// The earliest instant for the I/O drawn.
    fn next_due(&mut self) -> Instant {
        let Some(io) = self.drawn else { return Instant::ZERO };
        let op = match io.op {
            IoOp::Read => Op::Read,
            IoOp::Write => Op::Write,
            IoOp::Trim => Op::Trim,
            IoOp::Sync { .. } => return self.pause_until,
        };
        let paced = match &mut self.pacers[op as usize] {
            None => Instant::ZERO,
            Some(pacer) => {
                let (bytes, ios) = self.issued[op as usize];
                self.started + Duration::from_ns(pacer.next_allowed_ns(bytes, ios))
            }
        };
        paced.max(self.pause_until)
    }
}

fn prio_of(job: &Job) -> IoPrio {
    use crate::job::PriorityClass;
    let class = match job.priority_class {
        PriorityClass::RealTime => PrioClass::RealTime,
        PriorityClass::None | PriorityClass::BestEffort => PrioClass::BestEffort,
        PriorityClass::Idle => PrioClass::Idle,
    };
    IoPrio { class, level: job.priority.unwrap_or(0) }
}
