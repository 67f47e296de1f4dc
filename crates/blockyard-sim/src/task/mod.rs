//! Job instances: when each one issues its next I/O, and which event it waits for until then.
//!
//! A [`Task`] is a value that the world steps on a processor. [`Task::plan`] returns the
//! task's next action. The world does it and reports the result to the task. The I/Os are generated
//! from a job, or recorded in a trace and delivered one by one ([`Task::deliver`]).

mod bounds;
mod reader;
mod recorded;
mod search;
mod share;
mod source;
mod targets;
mod think;

pub use bounds::Violation;
pub use reader::{READER_BIOS_MAX, ReadStep, Reader};
pub use share::Share;

use crate::measure::JobStats;
use crate::measure::meter::Meter;
use crate::measure::spent::Rest;
use crate::measure::steady::SteadyWatch;
use crate::page_cache::PageCache;
use crate::placement::Placement;
use blockyard::bio::{self, Bio, Flags};
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, QueueId};
use blockyard_fio::job::{
    ContinueOnError, Engine, ExitWhat, Job, Op, Priority, Resolved, ThinktimeBlocks, encoded,
};
use blockyard_trace::observe::TaskId;
use bounds::Watch;
use search::Search;
use source::{Ask, Generated, Recorded, Source, When};
use std::collections::VecDeque;
use think::{Pause, Think};

/// A call that submits more I/Os than this plugs them, as Linux does for libaio and `io_uring`.
const UNPLUGGED_MAX: u32 = 2;

/// The properties of one instance of a job.
#[derive(Clone, Debug)]
pub struct Instance {
    /// The number among the instances of its job, from 0.
    pub number: u32,
    /// The source of the I/Os.
    pub origin: Origin,
    /// The processor it runs on.
    pub cpu: CpuId,
    /// The index of its statistics.
    pub stats: usize,
}

/// The source of an instance's I/Os.
#[derive(Clone, Debug)]
pub enum Origin {
    /// Generated from its job.
    Generated {
        /// The regions of its files.
        resolved: Resolved,
        /// The places of its files on the disks.
        placements: Vec<Placement>,
    },
    /// Recorded in a trace, and delivered to the task.
    Recorded,
}

/// An I/O in flight.
#[derive(Clone, Copy, Debug)]
struct Slot {
    op: Option<Op>,
    len_bytes: u32,
    offset_bytes: u64,
    /// When a trace wanted the I/O to be issued, if that is earlier than `begun`, which it otherwise equals.
    due: Instant,
    begun: Instant,
    submitted: Instant,
    completed: Instant,
    status: Status,
    priority: Option<Priority>,
    polled: bool,
    /// When the trace completed the I/O.
    recorded_end: Option<Instant>,
}

/// The next action of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Reap results and issue more I/Os while there is room.
    Go,
    /// Continue the current call at once: request pages.
    Ask,
    /// Continue the current call at once: copy from a page.
    Copy,
    /// Sleep until enough I/Os have completed, a page has been read or a tag is free.
    AwaitCompletions,
    /// Sleep until this instant.
    AwaitInstant(Instant),
    /// Sleep until a record is delivered or an I/O has completed.
    AwaitRecord,
    /// Sleep until the task has a turn in its flow, or until this instant.
    AwaitTurn(Instant),
    /// The task has ended.
    End,
}

/// The event that a task sleeps for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asleep {
    /// None: the task is running or ready.
    No,
    /// This many completed I/Os.
    Completions(u32),
    /// An instant.
    Instant,
    /// This instant, or a completed I/O.
    InstantOrCompletion(Instant),
    /// A record, or a completed I/O.
    Record,
    /// A turn in its flow, or this instant.
    Turn(Instant),
    /// A page that is being read, or the end of one of the task's own bios.
    Page,
    /// A tag.
    Tag,
    /// The end of the I/O of its call.
    Call,
    /// The start of the requests that it has dispatched.
    Driver,
    /// None: the requests have started, and its call returns.
    Returns,
}

/// An I/O that was completed and reaped.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// The kind of I/O; `None` for a sync.
    pub op: Option<Op>,
    /// Length, bytes.
    pub len_bytes: u32,
    /// Offset in its file, bytes.
    pub offset_bytes: u64,
    /// How much later than due an I/O of a trace was issued.
    pub late: Duration,
    /// Submission latency.
    pub slat: Duration,
    /// Completion latency.
    pub clat: Duration,
    /// The instant at which the device completed the I/O.
    pub completed: Instant,
    /// The result.
    pub status: Status,
    /// The priority of the I/O, if it is not that of its job.
    pub priority: Option<Priority>,
}

impl Taken {
    /// Returns the total latency. It counts from the instant at which the I/O was due: an I/O of a trace that could not be
    /// issued then has waited, too.
    #[must_use]
    pub fn lat(&self) -> Duration {
        self.late + self.slat + self.clat
    }
}

/// One instance of a job.
#[derive(Debug)]
pub struct Task {
    /// The number of the task.
    pub id: TaskId,
    /// The processor it runs on.
    pub cpu: CpuId,
    /// Whether its job leaves the choice of processors to the system.
    pub may_move: bool,
    /// The index of its statistics.
    pub stats: usize,
    /// The samples over time.
    pub meter: Meter,
    /// The current sleep.
    pub rest: Option<Rest>,
    /// The reporting group of its job.
    pub group: u32,
    /// The jobs that end with this instance (`exitall`).
    pub ends: Option<ExitWhat>,
    /// Its share in a flow.
    pub share: Option<Share>,
    /// Whether the task has ended.
    pub is_over: bool,
    /// The watch for a steady state, which the world takes over.
    pub steady: Option<SteadyWatch>,
    continue_on_error: ContinueOnError,
    source: Source,
    /// The reader, if the task reads through the page cache.
    reader: Option<Box<Reader>>,
    shape: Shape,
    slots: Vec<Slot>,
    free: Vec<u32>,
    completed: VecDeque<u32>,
    /// Number of polled I/Os in flight.
    polled: u32,
    /// The slots that the current step has submitted.
    submitting: Vec<u32>,
    /// The I/O of a call that returns when it has ended.
    in_call: InCall,
    /// The engine refused the next I/O until others have completed.
    busy: bool,
    call: Call,
    /// The next I/O from the source.
    drawn: Option<Ask>,
    /// The queue of the I/O before it.
    last_queue: QueueId,
    exhausted: bool,
    /// Whether the depth was reached and the number in flight is still above the low mark.
    draining: bool,
    /// Whether the next step reaps results.
    taking: bool,
    asleep: Asleep,
    /// When the queue first refused the next I/O for lack of a tag, and how often it has.
    refused: Option<(Instant, u32)>,
    started: Instant,
    /// Completions from this instant on are measured.
    measured_from: Instant,
    /// What a job with a ramp time measures until then. It is reported if the job ends before.
    ramp: Option<Box<JobStats>>,
    stop_at: Instant,
    think: Think,
    /// A pause that is due: the task reaps results one by one, and issues nothing, until none is left, and then pauses.
    pause: Option<Pause>,
    pause_until: Instant,
    /// The computing part of the pause that has just begun.
    spin_now: Duration,
    /// The search for a depth that keeps a latency.
    search: Option<Box<Search>>,
    /// The bounds that end the run.
    watch: Option<Box<Watch>>,
    /// The priority of the job in Linux's encoding, if its I/Os may have others.
    priority_of_job: Option<u16>,
}

/// The options of the job that decide how an instance proceeds.
#[derive(Clone, Copy, Debug)]
struct Shape {
    engine: Engine,
    depth: u32,
    batch: u32,
    complete_min: u32,
    complete_max: u32,
    low: u32,
    /// Other threads submit, so that a pause does not wait for I/O in flight.
    offload: bool,
}

/// A call that submits I/Os. It may sleep for a tag and then continue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The number of I/Os that the call has yet to submit.
    pub left: u32,
    /// Whether the call plugs its I/Os.
    pub plugs: bool,
}

/// The I/O of a call that returns when it has ended, beside others that are in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InCall {
    /// No such call is under way.
    None,
    /// The I/O of this slot is in flight.
    Waits(u32),
    /// The I/O of this slot has ended.
    Returns(u32),
}

impl Shape {
    fn of(job: &Job) -> Self {
        let depth = job.depth();
        let or_depth = |count: u32| if count == 0 { depth } else { count.min(depth) };
        let complete_min = job.iodepth_batch_complete_min.max(1).min(depth);
        let complete_max = job.iodepth_batch_complete_max.map_or(complete_min, or_depth);
        Self {
            engine: job.engine,
            depth,
            batch: or_depth(job.iodepth_batch_submit),
            complete_min,
            complete_max: complete_max.max(complete_min),
            low: job.iodepth_low.unwrap_or(depth).min(depth),
            offload: job.offload,
        }
    }
}

impl Task {
    /// Returns `instance` of `job` as task `id`. `seed` is the seed of the run.
    #[must_use]
    pub fn new(id: TaskId, job: &Job, instance: Instance, seed: u64) -> Self {
        let Instance { number, origin, cpu, stats } = instance;
        let depth = job.depth();
        assert!(depth > 0, "a job must have a depth of at least 1");
        let idle = Slot {
            op: None,
            len_bytes: 0,
            offset_bytes: 0,
            due: Instant::ZERO,
            begun: Instant::ZERO,
            submitted: Instant::ZERO,
            completed: Instant::ZERO,
            status: Status::Ok,
            priority: None,
            polled: false,
            recorded_end: None,
        };
        let reader = match &origin {
            Origin::Generated { placements, .. } if !job.direct => {
                Some(Box::new(Reader::new(job, placements.clone())))
            }
            _ => None,
        };
        let source = match origin {
            Origin::Generated { resolved, placements } => Source::Generated(Box::new(
                Generated::new(job, number, &resolved, placements, seed),
            )),
            Origin::Recorded => Source::Recorded(Recorded::new(depth)),
        };
        let last_queue = source.first_queue();
        Self {
            id,
            cpu,
            may_move: job.cpus_allowed.is_empty(),
            stats,
            meter: Meter::new(&job.reporting),
            rest: None,
            group: job.group,
            ends: job.exitall.then_some(job.exit_what),
            share: Share::of(&job.flow),
            is_over: false,
            steady: SteadyWatch::new(&job.targets.steady),
            continue_on_error: job.continue_on_error,
            source,
            reader,
            shape: Shape::of(job),
            slots: vec![idle; depth as usize],
            free: (0..depth).rev().collect(),
            completed: VecDeque::with_capacity(depth as usize),
            polled: 0,
            submitting: Vec::with_capacity(depth as usize),
            in_call: InCall::None,
            busy: false,
            call: Call::default(),
            drawn: None,
            last_queue,
            exhausted: false,
            draining: false,
            taking: false,
            asleep: Asleep::Instant,
            refused: None,
            started: Instant::ZERO,
            measured_from: Instant::ZERO,
            ramp: (job.ramp_time_ns > 0).then(|| Box::new(JobStats::new(job.pattern.mix.ops()))),
            stop_at: Instant::MAX,
            think: Think::of(job),
            pause: None,
            spin_now: Duration::ZERO,
            search: Search::of(job).map(Box::new),
            watch: Watch::of(job).map(Box::new),
            priority_of_job: job
                .command_priority
                .is_used()
                .then(|| encoded(job.priority_class, job.priority)),
            pause_until: Instant::ZERO,
        }
    }

    /// Starts the instance at `now`. Measurement begins after `ramp`. The instance stops issuing I/Os
    /// `limit` later.
    pub fn begin(&mut self, now: Instant, ramp: Duration, limit: Option<Duration>) {
        debug_assert!(self.outstanding() == 0, "an instance must begin without I/Os");
        self.started = now;
        self.think.goes_on(now);
        self.measured_from = now + ramp;
        self.meter.begin(self.measured_from);
        if let Some(search) = &mut self.search {
            search.begin(now);
        }
        if let Some(watch) = &mut self.watch {
            watch.begin(now);
        }
        self.stop_at = limit.map_or(Instant::MAX, |limit| self.measured_from + limit);
    }

    /// Returns when the instance began.
    #[must_use]
    pub const fn begun(&self) -> Instant {
        self.started
    }

    /// Returns what is measured until measurement begins, if there is a ramp time.
    pub fn ramp_mut(&mut self) -> Option<&mut JobStats> {
        self.ramp.as_deref_mut()
    }

    /// Returns when measurement begins.
    #[must_use]
    pub const fn measured_from(&self) -> Instant {
        self.measured_from
    }

    /// Whether more than one I/O can be in flight, so that a separate call reaps completions.
    #[must_use]
    pub const fn is_async(&self) -> bool {
        self.shape.engine.is_async()
    }

    /// Whether the task polls while it waits, because polled I/Os are in flight.
    #[must_use]
    pub fn polls(&self) -> bool {
        self.polled > 0 && self.in_call == InCall::None
    }

    /// Returns the number of I/Os that were submitted and not reaped.
    #[must_use]
    pub fn outstanding(&self) -> u32 {
        self.shape.depth - u32::try_from(self.free.len()).expect("free slots should fit the depth")
    }

    /// Returns the next action at `now`. Unless it is [`Plan::Go`], the task now sleeps or has ended. If the task
    /// `has_turn`, it is not ahead of its share in its flow.
    pub fn plan(&mut self, now: Instant, has_turn: bool) -> Plan {
        self.asleep = Asleep::No;
        self.taking = false;
        self.ends_if_over(now);
        match self.in_call {
            InCall::None => {}
            InCall::Waits(_) => {
                self.asleep = Asleep::Call;
                return Plan::AwaitCompletions;
            }
            InCall::Returns(_) => return Plan::Go,
        }
        let outstanding = self.outstanding();
        if outstanding >= self.depth() {
            self.draining = true;
        } else if outstanding <= self.shape.low {
            self.draining = false;
        }
        let reaps_first = outstanding > 0 && (self.draining || self.pause.is_some());
        let draws = !(reaps_first && self.source.chooses_late());
        if draws {
            self.draw(now);
        }
        if let Source::Recorded(recorded) = &self.source {
            let more = self.drawn.is_some() || !(self.exhausted || recorded.ended());
            if recorded.timed() || (more && self.drawn.is_none()) {
                return self.plan_recorded(now, more);
            }
        }
        let finishing = draws && self.drawn.is_none();
        if outstanding == 0
            && !finishing
            && let Some(Pause { length, spin, is_not_caught_up }) = self.pause.take()
        {
            debug_assert!(spin <= length, "{spin:?} of a pause of {length:?}");
            debug_assert!(self.completed.is_empty(), "a pause begins when all results are reaped");
            (self.pause_until, self.spin_now) = (now + length, spin);
            self.think.goes_on(self.pause_until);
            if let Source::Generated(generated) = &mut self.source
                && is_not_caught_up
            {
                generated.ignores(length);
            }
        }
        let due = self.next_due().unwrap_or(Instant::MAX);
        if (finishing || self.settles_depth()) && outstanding > 0 {
            return self.await_completions(outstanding);
        }
        if finishing {
            return Plan::End;
        }
        let refused = core::mem::take(&mut self.busy) && outstanding > 0;
        if self.draining || refused {
            return self.await_completions(self.shape.complete_min.min(outstanding));
        }
        // As in fio, a job that is ahead of its rate sleeps for as long as it is ahead now, but only after all results.
        if due > now && outstanding > 0 && !self.shape.offload {
            self.pause.get_or_insert(Pause::of(due.since(now)));
        }
        if self.pause.is_some() {
            return self.await_completions(1);
        }
        let due = due.min(self.stop_at);
        if due > now && outstanding > 0 {
            self.taking = !self.completed.is_empty();
            if self.taking {
                return Plan::Go;
            }
            self.asleep = Asleep::InstantOrCompletion(due);
            return Plan::AwaitInstant(due);
        }
        if due > now {
            self.asleep = Asleep::Instant;
            return Plan::AwaitInstant(due);
        }
        if has_turn { Plan::Go } else { self.await_turn(now) }
    }

    /// Issues no more I/Os if the time of the job is over.
    fn ends_if_over(&mut self, now: Instant) {
        if now >= self.stop_at {
            self.exhausted = true;
            self.drawn = None;
        }
    }

    /// Sleeps for a turn: for the pause of its job, once its I/Os in flight have ended, or until there is a turn.
    fn await_turn(&mut self, now: Instant) -> Plan {
        let pause = self.share.map_or(Duration::ZERO, |share| share.pause);
        if pause == Duration::ZERO {
            self.asleep = Asleep::Turn(self.stop_at);
            return Plan::AwaitTurn(self.stop_at);
        }
        if self.outstanding() > 0 {
            return self.await_completions(self.outstanding());
        }
        self.asleep = Asleep::Instant;
        Plan::AwaitInstant(now + pause)
    }

    /// Whether the task sleeps for a turn.
    #[must_use]
    pub const fn waits_for_turn(&self) -> bool {
        matches!(self.asleep, Asleep::Turn(_))
    }

    fn await_completions(&mut self, wanted: u32) -> Plan {
        debug_assert!(
            0 < wanted && wanted <= self.outstanding(),
            "{wanted} I/Os must be in flight to complete"
        );
        self.taking = true;
        if self.completed.len() >= wanted as usize {
            return Plan::Go;
        }
        self.asleep = Asleep::Completions(wanted);
        Plan::AwaitCompletions
    }

    /// Ends the job: it issues no I/O from `now` on.
    pub fn stop(&mut self, now: Instant) {
        self.stop_at = self.stop_at.min(now);
    }

    /// Whether this step reaps results. A call that slept for a tag comes first.
    #[must_use]
    pub const fn takes_now(&self) -> bool {
        self.taking && self.call.left == 0
    }

    /// Whether the job continues after an error of `op`; `None` is a sync.
    #[must_use]
    pub const fn continues_after_error_of(&self, op: Option<Op>) -> bool {
        match op {
            Some(Op::Read) => self.continue_on_error.reads,
            Some(Op::Write | Op::Trim) | None => self.continue_on_error.writes,
        }
    }

    /// Returns the result of a call that has returned.
    pub fn take_returned(&mut self, now: Instant) -> Option<Taken> {
        let InCall::Returns(at) = self.in_call else { return None };
        self.in_call = InCall::None;
        Some(self.take(at, now))
    }

    /// Reaps one result. A step reaps at most `complete_max`.
    pub fn take_completed(&mut self, now: Instant) -> Option<Taken> {
        self.completed.pop_front().map(|at| self.take(at, now))
    }

    fn take(&mut self, at: u32, now: Instant) -> Taken {
        debug_assert!(self.free.len() < self.slots.len(), "slot {at} is in use");
        let slot = self.slots[at as usize];
        self.free.push(at);
        if slot.op.is_some() {
            self.thinks_after(ThinktimeBlocks::Complete, now);
        }
        Taken {
            op: slot.op,
            len_bytes: slot.len_bytes,
            offset_bytes: slot.offset_bytes,
            late: slot.begun.since(slot.due),
            slat: slot.submitted.since(slot.begun),
            clat: now.since(slot.submitted),
            completed: slot.completed,
            status: slot.status,
            priority: slot.priority,
        }
    }

    /// Counts an I/O that was issued or reaped at `now`, which may make a pause due.
    fn thinks_after(&mut self, event: ThinktimeBlocks, now: Instant) {
        self.think.count(event);
        if self.pause.is_none() {
            self.pause = self.think.due(now);
        }
    }

    /// Returns the maximum number of results that one step reaps.
    #[must_use]
    pub const fn take_max(&self) -> u32 {
        self.shape.complete_max
    }

    /// Returns the call of this step: a new call, or one that slept.
    pub fn call(&mut self, now: Instant) -> Call {
        if self.call.left == 0 {
            self.draw(now);
            let room = self.depth().saturating_sub(self.outstanding());
            debug_assert!(self.shape.batch > 0, "a batch must have an I/O");
            self.call = match &self.source {
                Source::Recorded(recorded) => {
                    let joined = u32::try_from(recorded.joined()).unwrap_or(u32::MAX - 1);
                    Call { left: room.min(1 + joined), plugs: joined > 0 }
                }
                Source::Generated(_) => {
                    let alone = self.drawn.is_some_and(|ask| ask.in_call);
                    let left = room.min(if alone { 1 } else { self.shape.batch });
                    Call { left, plugs: left > UNPLUGGED_MAX }
                }
            };
        }
        self.call
    }

    /// Notes that the call has returned.
    pub const fn call_ended(&mut self) {
        self.call.left = 0;
    }

    /// Returns the next I/O to submit at `now`, as a bio for its queue; `None` if there is no room, no
    /// I/O is left, or it is too early. The same I/O is returned until [`Self::submitted`].
    pub fn next_bio(&mut self, now: Instant) -> Option<(QueueId, Bio)> {
        if self.outstanding() <= self.shape.low.min(self.depth() - 1) {
            self.draining = false;
        }
        if self.draining || self.pause.is_some() || self.settles_depth() {
            return None;
        }
        let slot = *self.free.last()?;
        self.draw(now);
        let ask = self.drawn?;
        if ask.in_call && !self.submitting.is_empty() {
            self.busy = true;
            return None;
        }
        if self.next_due().is_none_or(|due| due > now) {
            return None;
        }
        let cookie = u64::from(self.id.0) << 32 | u64::from(slot);
        Some((ask.queue, Bio { cookie, ..ask.bio }))
    }

    /// Returns the queue of the next I/O, or if that is not known yet, of the one before.
    #[must_use]
    pub fn likely_queue(&self) -> QueueId {
        self.drawn.map_or(self.last_queue, |ask| ask.queue)
    }

    /// Notes that the queue has accepted the bio of [`Self::next_bio`], in a step that began at `now`.
    /// Returns how long its call had waited for a tag.
    pub fn submitted(&mut self, now: Instant) -> Duration {
        let waited = self.tag_wait_ends(now);
        let begun = Instant::from_ns(now.as_ns() - waited.as_ns());
        let ask = self.drawn.take().expect("a submitted bio should come from `next_bio`");
        let at = self.free.pop().expect("a submitted bio should have a slot");
        self.last_queue = ask.queue;
        let due = match &mut self.source {
            Source::Generated(generated) => {
                generated.submitted(&ask);
                begun
            }
            Source::Recorded(recorded) => recorded.submitted(&ask, now).min(begun),
        };
        let polled = ask.bio.flags.contains(Flags::POLLED);
        self.polled += u32::from(polled);
        self.slots[at as usize] = Slot {
            op: ask.kind,
            len_bytes: ask.len_bytes,
            offset_bytes: ask.offset_bytes,
            due,
            begun,
            submitted: now,
            completed: now,
            status: Status::Ok,
            priority: ask.priority,
            polled,
            recorded_end: ask.recorded_end,
        };
        self.submitting.push(at);
        if ask.in_call {
            self.in_call = InCall::Waits(at);
        }
        debug_assert!(self.call.left > 0, "a call must not submit more than its batch");
        self.call.left -= 1;
        if ask.kind.is_some() {
            self.thinks_after(ThinktimeBlocks::Issue, now);
        }
        waited
    }

    /// Ends a wait for a tag at `now`. Returns how long it lasted.
    pub fn tag_wait_ends(&mut self, now: Instant) -> Duration {
        self.refused.take().map_or(Duration::ZERO, |(since, _)| now.since(since))
    }

    /// Whether the next I/O at `now` is a read through the page cache.
    #[inline]
    pub fn reads_next(&mut self, now: Instant) -> bool {
        self.reader.is_some() && self.next_bio(now).is_some_and(|(_, bio)| bio.op == bio::Op::Read)
    }

    /// Returns the reader.
    ///
    /// # Panics
    ///
    /// If the task does not read through the page cache.
    pub fn reader(&mut self) -> &mut Reader {
        self.reader.as_mut().expect("a task with a read step should have a reader")
    }

    /// Returns the next step of the current call; `None` if no call reads through the page cache.
    #[inline]
    #[must_use]
    pub fn read_step(&self, cache: &PageCache) -> Option<ReadStep> {
        let reader = self.reader.as_deref()?;
        reader.in_call().then(|| reader.next(cache))
    }

    /// Begins a call at `now` for the read of [`Self::next_bio`].
    pub fn begin_read(&mut self, now: Instant) {
        let ask = self.drawn.expect("a read should come from `next_bio`");
        let slot = *self.free.last().expect("a read should have a slot");
        self.call(now);
        self.submitted(now);
        self.call_ended();
        self.reader().begin(slot, ask.file, ask.offset_bytes, ask.len_bytes, ask.bio.prio);
    }

    /// Returns from the call at `now`.
    pub fn read_returns(&mut self, status: Status, now: Instant) {
        let slot = self.reader().returns().expect("a call that returns should have begun");
        if self.is_async() {
            self.slots[slot as usize].submitted = now; // the call that submits is the one that reads
        }
        self.completed(slot, status, now);
    }

    /// Sleeps until a page has been read or a bio of the task's own has ended.
    pub const fn sleep_for_page(&mut self) {
        debug_assert!(self.reader.is_some(), "only a reader may wait for a page");
        self.asleep = Asleep::Page;
    }

    /// Whether the task sleeps for a page.
    #[must_use]
    pub fn waits_for_page(&self) -> bool {
        self.asleep == Asleep::Page
    }

    /// Ends a step at `now`: the I/Os of the step count as submitted now.
    pub fn step_ended(&mut self, now: Instant) {
        for at in self.submitting.drain(..) {
            self.slots[at as usize].submitted = now;
        }
    }

    /// Returns how long the pause that [`Self::plan`] has just begun keeps the processor busy.
    pub fn take_spin(&mut self) -> Duration {
        core::mem::take(&mut self.spin_now)
    }

    /// Notes that the I/O of `slot` has completed at `now`. Returns whether the task must be woken.
    pub fn completed(&mut self, slot: u32, status: Status, now: Instant) -> bool {
        debug_assert!(self.completed.len() < self.outstanding() as usize, "slot {slot} is idle");
        let done = &mut self.slots[slot as usize];
        (done.status, done.completed) = (status, now);
        self.polled -= u32::from(done.polled);
        if self.in_call == InCall::Waits(slot) {
            self.in_call = InCall::Returns(slot);
            let wakes = self.asleep == Asleep::Call;
            self.asleep = if wakes { Asleep::No } else { self.asleep };
            return wakes;
        }
        self.completed.push_back(slot);
        if let Source::Recorded(recorded) = &mut self.source {
            recorded.completed(now);
        }
        let wakes = match self.asleep {
            Asleep::Completions(wanted) => self.completed.len() >= wanted as usize,
            Asleep::InstantOrCompletion(_) | Asleep::Record => true,
            Asleep::No
            | Asleep::Instant
            | Asleep::Page
            | Asleep::Turn(_)
            | Asleep::Tag
            | Asleep::Call
            | Asleep::Driver
            | Asleep::Returns => false,
        };
        if wakes {
            self.asleep = Asleep::No;
        }
        wakes
    }

    /// Notes that the instant of a sleep has come. Returns whether the task must run. The result is false if
    /// another event has already woken the task.
    pub fn alarm(&mut self, now: Instant) -> bool {
        let due = match self.asleep {
            Asleep::Instant => true,
            Asleep::InstantOrCompletion(at) | Asleep::Turn(at) => at == now,
            _ => false,
        };
        if due {
            self.asleep = Asleep::No;
            self.ends_if_over(now);
        }
        due
    }

    /// Notes that the queue has refused the bio at `now`: the task sleeps for a tag.
    pub fn sleep_for_tag(&mut self, now: Instant) {
        let has_bio = self.drawn.is_some() || self.reader.is_some();
        debug_assert!(has_bio, "only a task with a bio may wait for a tag");
        self.refused.get_or_insert((now, 0)).1 += 1;
        self.asleep = Asleep::Tag;
    }

    /// Whether the task sleeps for a tag.
    #[must_use]
    pub fn waits_for_tag(&self) -> bool {
        self.asleep == Asleep::Tag
    }

    /// Whether the queue has refused the bio of [`Self::next_bio`] before.
    #[must_use]
    pub const fn was_refused(&self) -> bool {
        self.refused.is_some()
    }

    /// Returns how often a tag has woken the task and the queue has then refused its bio again.
    #[must_use]
    pub fn vain_wakes(&self) -> u32 {
        self.refused.map_or(0, |(_, times)| times - 1)
    }

    /// Sleeps in the driver, before its call returns.
    pub const fn sleep_in_driver(&mut self) {
        self.asleep = Asleep::Driver;
    }

    /// Whether the task keeps to a rate, or to the pace of a trace.
    #[must_use]
    pub fn keeps_pace(&self) -> bool {
        match &self.source {
            Source::Generated(generated) => generated.has_rate(),
            Source::Recorded(recorded) => recorded.timed(),
        }
    }

    /// Whether the task sleeps in the driver.
    #[must_use]
    pub fn is_in_driver(&self) -> bool {
        self.asleep == Asleep::Driver
    }

    /// Lets the call of the task in the driver return.
    pub fn leave_driver(&mut self) {
        debug_assert!(self.is_in_driver(), "{:?} leaves a driver in which it is not", self.id);
        self.asleep = Asleep::Returns;
    }

    /// Returns from the driver, if the task was there. It then does nothing else in this step, and plans what it does next.
    pub fn returns_from_driver(&mut self) -> bool {
        let returns = self.asleep == Asleep::Returns;
        self.asleep = if returns { Asleep::No } else { self.asleep };
        returns
    }

    /// Wakes the task.
    pub const fn wake(&mut self) {
        self.asleep = Asleep::No;
    }

    /// Takes the next I/O from the source at `now`, unless there is one already.
    #[inline]
    fn draw(&mut self, now: Instant) {
        if self.drawn.is_none() && !self.exhausted {
            self.draw_next(now);
        }
    }

    /// Takes the next I/O from the source at `now`.
    #[inline(never)]
    fn draw_next(&mut self, now: Instant) {
        match &mut self.source {
            Source::Generated(generated) => {
                self.drawn = generated.next(now.max(self.pause_until), self.started);
                self.exhausted = self.drawn.is_none();
            }
            Source::Recorded(recorded) => self.drawn = recorded.next(),
        }
    }

    /// Returns the earliest instant for the next I/O; `None` if it must wait for a completion.
    fn next_due(&mut self) -> Option<Instant> {
        let Some(ask) = self.drawn else { return Some(Instant::ZERO) };
        match (ask.when, &mut self.source) {
            (When::Paced, Source::Generated(generated)) => {
                let paced = generated.paced(ask.kind, self.started);
                Some(paced.max(self.pause_until))
            }
            (When::Recorded(due), Source::Recorded(recorded)) => recorded.due(due),
            _ => unreachable!("a task should issue only I/Os of its own source"),
        }
    }
}
