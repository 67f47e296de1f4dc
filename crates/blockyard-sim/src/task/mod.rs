//! Job instances: when each asks for its next I/O, and what it waits for in between.
//!
//! A [`Task`] is a value that the world steps on a processor. It says what it wants to do
//! ([`Task::plan`]); the world does it and tells the task how it went. Its I/Os come from a source:
//! generated from a job, or recorded in a trace and handed to it one by one ([`Task::deliver`]).

mod reader;
mod source;

pub use reader::{READER_BIOS_MAX, ReadStep, Reader};

use crate::job::{ContinueOnError, Engine, Job, Op, Resolved};
use crate::machine::cpu::TaskId;
use crate::measure::meter::Meter;
use crate::measure::spent::Rest;
use crate::page_cache::PageCache;
use crate::placement::Placement;
use crate::replay::Delivery;
use blockyard::bio::{self, Bio, Flags};
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, QueueId};
use source::{Ask, Generated, Recorded, Source, When};
use std::collections::VecDeque;

/// A call that submits more I/Os than this plugs them: Linux has it so for libaio and `io_uring`.
const UNPLUGGED_MAX: u32 = 2;

/// One instance of a job, with everything decided that differs between instances.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Its number among the instances of its job, from 0.
    pub number: u32,
    /// Where its I/Os come from.
    pub origin: Origin,
    /// The processor it runs on.
    pub cpu: CpuId,
    /// Which statistics it counts into.
    pub stats: usize,
}

/// Where the I/Os of an instance come from.
#[derive(Clone, Debug)]
pub enum Origin {
    /// They are generated from its job.
    Generated {
        /// What it covers.
        resolved: Resolved,
        /// Where its files lie.
        placements: Vec<Placement>,
    },
    /// They are recorded, and handed to it.
    Recorded,
}

/// An I/O under way.
#[derive(Clone, Copy, Debug)]
struct Slot {
    op: Option<Op>,
    len_bytes: u32,
    offset_bytes: u64,
    begun: Instant,
    submitted: Instant,
    completed: Instant,
    status: Status,
    polled: bool,
    /// When it was completed in the trace that it comes from.
    recorded_end: Option<Instant>,
}

/// What a task does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Take results and ask for more, as far as there is room.
    Go,
    /// Go on at once with the call that it is in, and have pages read.
    Ask,
    /// Go on at once with the call that it is in, and copy from a page.
    Copy,
    /// Sleep until enough I/Os have completed, a page has been read or a tag is free.
    AwaitCompletions,
    /// Sleep until this instant.
    AwaitInstant(Instant),
    /// Sleep until a record is handed to it, or an I/O has completed.
    AwaitRecord,
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
    /// For this instant, or for a completed I/O.
    InstantOrCompletion(Instant),
    /// For a record, or for a completed I/O.
    Record,
    /// For a page that is being read, or for a bio of its own to end.
    Page,
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
    /// Where in its file it begins.
    pub offset_bytes: u64,
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
    /// Samples of what it does over time.
    pub meter: Meter,
    /// Its latest sleep, while it lasts.
    pub rest: Option<Rest>,
    /// Its end is the end of all (`exitall`).
    pub ends_all: bool,
    continue_on_error: ContinueOnError,
    source: Source,
    /// How it reads, where that is through the page cache.
    reader: Option<Box<Reader>>,
    shape: Shape,
    slots: Vec<Slot>,
    free: Vec<u32>,
    completed: VecDeque<u32>,
    /// Polled I/Os that have not completed.
    polled: u32,
    /// Slots that the current step submits.
    submitting: Vec<u32>,
    call: Call,
    /// Drawn from the source, not submitted yet.
    drawn: Option<Ask>,
    exhausted: bool,
    /// The depth was reached, and has not fallen to the low mark again.
    draining: bool,
    /// The next step takes results.
    taking: bool,
    asleep: Asleep,
    /// When the queue first refused the I/O drawn, for want of a tag.
    refused_at: Option<Instant>,
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
        let Instance { number, origin, cpu, stats } = instance;
        let depth = job.depth();
        let or_depth = |count: u32| if count == 0 { depth } else { count.min(depth) };
        let complete_min = job.iodepth_batch_complete_min.max(1).min(depth);
        let idle = Slot {
            op: None,
            len_bytes: 0,
            offset_bytes: 0,
            begun: Instant::ZERO,
            submitted: Instant::ZERO,
            completed: Instant::ZERO,
            status: Status::Ok,
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
        Self {
            id,
            cpu,
            stats,
            meter: Meter::new(&job.reporting),
            rest: None,
            ends_all: job.exitall,
            continue_on_error: job.continue_on_error,
            source,
            reader,
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
            },
            slots: vec![idle; depth as usize],
            free: (0..depth).rev().collect(),
            completed: VecDeque::with_capacity(depth as usize),
            polled: 0,
            submitting: Vec::with_capacity(depth as usize),
            call: Call::default(),
            drawn: None,
            exhausted: false,
            draining: false,
            taking: false,
            asleep: Asleep::Instant,
            refused_at: None,
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
        self.meter.begin(self.measured_from);
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

    /// Whether it polls rather than sleeps while it waits: where polled I/Os of its are under way.
    #[must_use]
    pub const fn polls(&self) -> bool {
        self.polled > 0
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
        if let Source::Recorded(recorded) = &self.source {
            let more = self.drawn.is_some() || !(self.exhausted || recorded.ended());
            if recorded.timed() || (more && self.drawn.is_none()) {
                return self.plan_recorded(now, more);
            }
        }
        let finishing = self.drawn.is_none();
        let outstanding = self.outstanding();
        if self.think.due && outstanding == 0 && !finishing {
            self.think.due = false;
            self.think.spin_now = self.think.spin.min(self.think.pause);
            self.pause_until = now + self.think.pause;
        }
        let due = self.next_due().unwrap_or(Instant::MAX);
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

    /// As [`Self::plan`] for recorded I/Os that have their times, and of which there are `more`: a
    /// result is taken when it is there, and what is due does not wait for it.
    fn plan_recorded(&mut self, now: Instant, more: bool) -> Plan {
        let outstanding = self.outstanding();
        if !more {
            return if outstanding > 0 { self.await_completions(1) } else { Plan::End };
        }
        self.taking = !self.completed.is_empty();
        let due = if self.drawn.is_some() { self.next_due() } else { Some(Instant::MAX) };
        if self.taking || (due.is_some_and(|due| due <= now) && outstanding < self.shape.depth) {
            return Plan::Go;
        }
        if due.is_none() || outstanding == self.shape.depth {
            return self.await_completions(1);
        }
        match due.filter(|_| self.drawn.is_some()) {
            Some(due) => {
                self.asleep = Asleep::InstantOrCompletion(due);
                Plan::AwaitInstant(due)
            }
            None => {
                self.asleep = Asleep::Record;
                Plan::AwaitRecord
            }
        }
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
            offset_bytes: slot.offset_bytes,
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
        let ask = self.drawn?;
        if self.next_due().is_none_or(|due| due > now) {
            return None;
        }
        let cookie = u64::from(self.id.0) << 32 | u64::from(slot);
        Some((ask.queue, Bio { cookie, ..ask.bio }))
    }

    /// What [`Self::next_bio`] offered was taken by the queue in a step that began at `now`. Says
    /// how long the call that submits it waited for a tag before.
    pub fn submitted(&mut self, now: Instant) -> Duration {
        let waited = self.tag_wait_ends(now);
        let begun = Instant::from_ns(now.as_ns() - waited.as_ns());
        let ask = self.drawn.take().expect("an I/O was offered");
        let at = self.free.pop().expect("a slot was offered");
        self.think.since += u32::from(ask.kind.is_some());
        match &mut self.source {
            Source::Generated(generated) => generated.submitted(&ask),
            Source::Recorded(recorded) => recorded.submitted(now),
        }
        let polled = ask.bio.flags.contains(Flags::POLLED);
        self.polled += u32::from(polled);
        self.slots[at as usize] = Slot {
            op: ask.kind,
            len_bytes: ask.len_bytes,
            offset_bytes: ask.offset_bytes,
            begun,
            submitted: now,
            completed: now,
            status: Status::Ok,
            polled,
            recorded_end: ask.recorded_end,
        };
        self.submitting.push(at);
        self.call.left -= 1;
        if self.think.pause > Duration::ZERO && self.think.since >= self.think.every {
            self.think.since = 0;
            self.think.due = true;
        }
        waited
    }

    /// It has the tag that it needed at `now`: how long it waited for it.
    pub fn tag_wait_ends(&mut self, now: Instant) -> Duration {
        self.refused_at.take().map_or(Duration::ZERO, |since| now.since(since))
    }

    /// Whether a call that reads through the page cache is what it does next, at `now`.
    pub fn reads_next(&mut self, now: Instant) -> bool {
        self.reader.is_some() && self.next_bio(now).is_some_and(|(_, bio)| bio.op == bio::Op::Read)
    }

    /// How it reads.
    ///
    /// # Panics
    ///
    /// If that is not through the page cache.
    pub fn reader(&mut self) -> &mut Reader {
        self.reader.as_mut().expect("it reads through the page cache")
    }

    /// What the call does next that it is in; `None`: it is in none that reads through the cache.
    #[must_use]
    pub fn read_step(&self, cache: &PageCache) -> Option<ReadStep> {
        let reader = self.reader.as_ref().filter(|reader| reader.in_call())?;
        Some(reader.next(cache))
    }

    /// What [`Self::next_bio`] offered is a read, and a call for it begins at `now`.
    pub fn begin_read(&mut self, now: Instant) {
        let ask = self.drawn.expect("an I/O was offered");
        let slot = *self.free.last().expect("a slot was offered");
        self.call();
        self.submitted(now);
        self.call_ended();
        self.reader().begin(slot, ask.file, ask.offset_bytes, ask.len_bytes, ask.bio.prio);
    }

    /// The call returns at `now`.
    pub fn read_returns(&mut self, status: Status, now: Instant) {
        let slot = self.reader().returns().expect("a call is under way");
        self.completed(slot, status, now);
    }

    /// It sleeps until a page has been read, or a bio of its own has ended.
    pub const fn sleep_for_page(&mut self) {
        self.asleep = Asleep::Page;
    }

    /// Whether that is what it sleeps for.
    #[must_use]
    pub fn waits_for_page(&self) -> bool {
        self.asleep == Asleep::Page
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
        self.polled -= u32::from(done.polled);
        self.completed.push_back(slot);
        if let Source::Recorded(recorded) = &mut self.source {
            recorded.completed(now);
        }
        let wakes = match self.asleep {
            Asleep::Completions(wanted) => self.completed.len() >= wanted as usize,
            Asleep::InstantOrCompletion(_) | Asleep::Record => true,
            Asleep::No | Asleep::Instant | Asleep::Page | Asleep::Tag => false,
        };
        if wakes {
            self.asleep = Asleep::No;
        }
        wakes
    }

    /// When the I/O of `slot` was completed in the trace it comes from, if that is known.
    #[must_use]
    pub fn recorded_end(&self, slot: u32) -> Option<Instant> {
        self.slots[slot as usize].recorded_end
    }

    /// When the record that [`Self::next_bio`] offered was issued in its trace.
    #[must_use]
    pub fn recorded_at(&self) -> Option<Instant> {
        self.drawn.and_then(|ask| ask.recorded_at)
    }

    /// A record to be issued, behind those it has. Whether the task is to run because of it.
    ///
    /// # Panics
    ///
    /// If its I/Os are generated.
    pub fn deliver(&mut self, delivery: &Delivery) -> bool {
        self.recorded().push(delivery);
        self.stop_waiting_for_records()
    }

    /// There are no more records. Whether the task is to run because of it.
    ///
    /// # Panics
    ///
    /// If its I/Os are generated.
    pub fn end_of_records(&mut self) -> bool {
        self.recorded().end();
        self.stop_waiting_for_records()
    }

    fn recorded(&mut self) -> &mut Recorded {
        match &mut self.source {
            Source::Recorded(recorded) => recorded,
            Source::Generated(_) => panic!("records are for tasks that replay"),
        }
    }

    fn stop_waiting_for_records(&mut self) -> bool {
        let waits = self.asleep == Asleep::Record;
        if waits {
            self.asleep = Asleep::No;
        }
        waits
    }

    /// The instant it slept until has come, unless something else has woken it since. Whether it
    /// is to run.
    pub fn alarm(&mut self, now: Instant) -> bool {
        let due = match self.asleep {
            Asleep::Instant => true,
            Asleep::InstantOrCompletion(at) => at == now,
            _ => false,
        };
        if due {
            self.asleep = Asleep::No;
        }
        due
    }

    /// What [`Self::next_bio`] offered was refused at `now`: it sleeps until it is woken for a tag.
    pub fn sleep_for_tag(&mut self, now: Instant) {
        self.refused_at.get_or_insert(now);
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
        if self.drawn.is_some() || self.exhausted {
            return;
        }
        match &mut self.source {
            Source::Generated(generated) => {
                self.drawn = generated.next();
                self.exhausted = self.drawn.is_none();
            }
            Source::Recorded(recorded) => self.drawn = recorded.next(),
        }
    }

    /// The earliest instant for the I/O drawn; `None`: it waits for a completion.
    fn next_due(&mut self) -> Option<Instant> {
        let Some(ask) = self.drawn else { return Some(Instant::ZERO) };
        match (ask.when, &mut self.source) {
            (When::Paced, Source::Generated(generated)) => {
                let paced = generated.paced(&ask, self.started);
                Some(paced.max(self.pause_until))
            }
            (When::Recorded(due), Source::Recorded(recorded)) => recorded.due(due),
            _ => unreachable!("an I/O drawn is due by its own source"),
        }
    }
}
