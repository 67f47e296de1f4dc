//! The world: processors, tasks, request queues and a device, moved from event to event.
//!
//! The same five calls drive the queues as in real time. A piece of [`Work`] runs on a processor without
//! interruption. The work makes its changes when it begins. Its consequences (commands at the device, threads
//! woken, runs left to a worker) begin when it ends. Only the driver of an MMC host makes its changes when its
//! work ends: see [`contexts`](blockyard_devices::mmc::contexts). An interrupt waits on its processor for the end
//! of such work. When a timer wakes a thread of that driver, the processor on which the thread
//! slept pays for the timer's interrupt and the wake-up.
//!
//! # Rules
//!
//! - **[events-in-time-order]** Events happen in the order of time, then in the order of scheduling.
//!   Nothing else decides an order.
//! - **[completions-before-threads]** A processor does one thing at a time, and completions come before
//!   threads.
//! - **[lock-before-work]** Each queue has a lock, if its design has one. Work under the lock of a queue begins when it has
//!   the lock. Until then its processor spins. Work that turns out to need the lock of another queue waits for that one
//!   while it goes on.
//! - **[single-lock-ends-late]** In the single-lock model an interrupt only raises a soft interrupt, which ends the
//!   request later. In the multi-queue model the interrupt ends it.
//! - **[one-deferred-run-pending]** A hardware queue has at most one deferred run pending.
//! - **[tag-waiter-wins-in-the-end]** A completion wakes the task whose I/O has ended and tasks that wait for a tag. The first runs
//!   first, and may take the tag again. A waiter that was woken in vain has run for less time. When the next tag wakes it, it runs
//!   first, as Linux prefers a thread that has had less than its share of the processor; and of several such waiters, the one
//!   first that was woken in vain most often. So nobody waits for ever.
//! - **[vain-waiter-moves]** A task that was woken in vain runs on an idle processor next time, if its own is busy and its job does
//!   not say where it runs: each waiter that a completion wakes on another one. Otherwise the tasks of the processor that has the
//!   interrupts would be late each time. A task that polls stays.
//! - **[one-interrupt-for-all]** A vector interrupts the processor of its hardware queue once while completions wait for
//!   its handler, and the handler ends all of them. A completion during the handler's work interrupts again.
//! - **[polled-queue-never-interrupts]** A polled hardware queue raises no interrupt. Its completions wait for
//!   a poll, and the processor that polls completes them. A task that waits for polled I/Os does not sleep.
//!   Its processor polls for all such tasks: once between two ready threads, and repeatedly while it has
//!   no other work.
//! - **[spin-in-whole-polls]** A world does not simulate each poll of a spin. Polls begin a whole number of
//!   polls after the spin began. The first poll that does not begin before a completion finds it, and the task
//!   continues when a poll ends. The processor is busy all the time.
//! - **[sleeping-driver-has-its-thread]** The driver of an MMC host may sleep, so its thread does every run of
//!   its hardware queue. A thread of the host wakes on an idle processor, and prefers the one on which it
//!   last ran.
//! - **[submitter-sleeps-in-driver]** Where a design says so, a thread that submits to an MMC host is the driver's
//!   thread until the requests that it dispatches have been started. It sleeps there while the bus is taken. One
//!   thread at a time does so; another one that finds the host full leaves its requests in the queue.
//! - **[pmem-completes-in-call]** The submitting processor accesses persistent memory itself, and is busy until
//!   the I/O is done. Each I/O of a call ends before the next is submitted, and no I/O is plugged.

mod adapting;
mod device;
mod host;
mod load;
mod measuring;
mod media;
mod polling;
mod processor;
mod queue;
mod reading;
mod replaying;
mod standstill;
mod step;
mod turns;

pub use media::POWER_CUTS_MAX;
use processor::Locking;
use replaying::Replaying;
pub use standstill::{HostStandstill, Standstill};
use turns::Flows;

use crate::log::Logs;
use crate::machine::cost::CostSink;
use crate::machine::cpu::Cpu;
use crate::machine::lock::Contended;
use crate::machine::locks::LockUse;
use crate::machine::poll::PolledQueues;
use crate::measure::JobStats;
use crate::page_cache::PageCache;
use crate::task::{Task, Violation};
use blockyard::driver::Finished;
use blockyard::host::Host;
use blockyard::policy::{Model, Policies};
use blockyard::request_queue::RequestQueue;
use blockyard::stats::StageStats;
use blockyard::status::{Status, SubmitError};
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, HctxId, QueueId};
use blockyard_devices::data::verify::Verifier;
use blockyard_devices::event::EventHeap;
use blockyard_devices::mmc::contexts::Contexts;
use blockyard_devices::profile::{MachineProfile, Reach};
use blockyard_devices::stack::Stack;
use blockyard_devices::terms::{Completion, Dispatch};
use blockyard_devices::{DeviceEvent, Events};
use blockyard_fio::job::Op;
use blockyard_mmc::block::Context;
use blockyard_trace::observe::Observer;
use blockyard_trace::observe::Runner;
use blockyard_trace::observe::{TaskId, Work};
use std::collections::VecDeque;

/// The host of a world. It passes events to the world's own counts, then to the observer.
pub type SimHost<O = ()> = Host<Stack, ((CostSink, StageStats), O)>;

/// The kinds of event.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A processor has finished its work.
    CpuFree(CpuId),
    /// The lock of a queue is free for the next waiter.
    LockFree(QueueId),
    /// A task becomes ready.
    Wake(TaskId),
    /// The sleep of a task ends.
    Alarm(TaskId),
    /// Records of a trace are due.
    Play,
    /// A thread begins to run a hardware queue.
    Run(Runner, QueueId, HctxId),
    /// A thread of an MMC host's driver runs.
    HostThread(Context, bool),
    /// A queue's requested call is due.
    Poll(QueueId),
    /// A processor that has spun since this instant begins a poll that finds a completion.
    Look(CpuId, Instant),
    /// The device has an event.
    Device(DeviceEvent),
    /// A soft interrupt ends a request on a processor.
    SoftInterrupt(CpuId, Finished),
    /// A layer's requested call is due.
    Layers,
    /// Measurement begins, and all counts are reset.
    Measure,
    /// A sample of these statistics is due, whose job looks for a steady state.
    Steady(usize),
    /// The system goes to sleep for this long.
    Suspend(Duration),
    /// The system wakes up.
    Resume,
    /// A power cut is checked. The next one follows after this time, unless the time is zero.
    PowerCut(Duration),
}

/// The counts of a run, in addition to the statistics of the queues.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Threads woken because an I/O or a tag was ready.
    pub wakeups: u64,
    /// Changes of a processor from one thread to another, or from idling to a thread.
    pub context_switches: u64,
    /// Time that processors spent, running or spinning.
    pub cpu: Duration,
    /// The part of this time spent spinning for locks.
    pub spinning: Duration,
    /// The part of this time spent on polls that found nothing.
    pub polling: Duration,
    /// The number of times that the system slept because an MMC host was idle in time.
    pub sleeps: u64,
    /// Interrupts that ended requests, except for those of MMC hosts.
    pub interrupts: u64,
    /// Runs of hardware queues.
    pub runs: u64,
    /// Events handled.
    pub events: u64,
    /// I/Os whose submission had to wait for a tag.
    pub tag_waits: u64,
    /// The total time of these waits.
    pub tag_wait: Duration,
    /// The total time from the end of each I/O until its job reaped it.
    pub not_reaped: Duration,
    /// I/Os and syncs that jobs reaped.
    pub reaped: u64,
}

/// Processors, tasks, queues and a device, with the observer `O`.
#[derive(Debug)]
pub struct World<O = ()> {
    now: Instant,
    events: EventHeap<Event>,
    /// The event scheduled last, which may precede all events of the heap.
    next_event: Option<(Instant, Event)>,
    machine: MachineProfile,
    cpus: Vec<Cpu>,
    /// All locks and contended words, by [`Sites`](crate::machine::locks::Sites): first the lock of each queue.
    locks: Vec<Contended>,
    locking: Locking,
    /// The device with its tags, and the sinks of all events.
    pub host: SimHost<O>,
    queues: Vec<RequestQueue>,
    /// The instant of the earliest scheduled poll of each queue.
    polls: Vec<Option<Instant>>,
    /// Pending deferred runs, by queue and hardware queue ([one-deferred-run-pending]).
    deferred: Vec<Vec<bool>>,
    /// Tasks that tags have woken, with the number of times before that this was in vain; empty between two pieces of work.
    woken: Vec<(u32, TaskId)>,
    /// The processor of each hardware queue's worker.
    worker_cpu: Vec<CpuId>,
    /// The way in which the hardware queues are dispatched.
    dispatch: Dispatch,
    /// The way in which requests of unpolled hardware queues complete.
    completion: Completion,
    /// The contexts of an MMC host's driver.
    contexts: Contexts,
    /// The task that sleeps in an MMC host's driver ([submitter-sleeps-in-driver]).
    in_driver: Option<TaskId>,
    /// The processors on which the host's threads run or last ran.
    host_cpus: [CpuId; 2],
    /// Hundredths of a wake-up that are owed to the waker's processor.
    owed_to_waker: u32,
    polled: PolledQueues,
    /// Completions that wait for the handler of their vector, by hardware queue.
    vectors: Vec<VecDeque<Finished>>,
    flows: Flows,
    /// Whether a job has ended those that have not begun, too.
    ends_all: bool,
    cache: PageCache,
    /// The reach of read-ahead through the page cache, in pages.
    reach: Reach,
    tasks: Vec<Task>,
    /// The statistics of each instance, or of each group that is reported as one.
    pub stats: Vec<JobStats>,
    /// The logs of tasks, if any were requested.
    pub logs: Logs,
    alive: u32,
    last_end: Instant,
    measure_from: Instant,
    totals: Totals,
    /// Events that the device wants scheduled.
    device_events: Events,
    /// The instant of the earliest scheduled call of the layers.
    layers_at: Option<Instant>,
    /// The number of requests issued to the driver, and when a poll last found that this number had grown.
    last_issue: (u64, Instant),
    failure: Option<Failure>,
    self_check: bool,
    replay: Option<Replaying>,
    /// The verifier of the data on the media, if data is kept.
    verifier: Option<Box<Verifier>>,
}

/// An I/O that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedIo {
    /// The kind of I/O; `None` for a sync.
    pub op: Option<Op>,
    /// Offset in its file, bytes.
    pub offset_bytes: u64,
    /// Length, bytes.
    pub len_bytes: u32,
    /// The error.
    pub status: Status,
}

impl core::fmt::Display for FailedIo {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { op, offset_bytes, len_bytes, status } = self;
        match op {
            Some(op) => {
                write!(f, "a {} of {len_bytes} bytes at {offset_bytes} failed: {status}", op.name())
            }
            None => write!(f, "a sync failed: {status}"),
        }
    }
}

/// The reason why a run ended before its jobs were done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A queue refused a bio for a reason that waiting does not resolve.
    Refused(TaskId, SubmitError),
    /// An I/O of a job failed.
    Io(TaskId, FailedIo),
    /// A job violated one of its own bounds.
    Bound(TaskId, Violation),
    /// No event is left, because fault rules lost this many completions.
    Lost(u64),
    /// The trace could not be read to its end.
    Trace,
    /// There would be more power cuts than [`POWER_CUTS_MAX`].
    PowerCuts,
    /// So many events passed without the end of an I/O that no I/O is likely to end.
    Endless(Standstill),
    /// No event is left, and jobs are not done. This is a defect of the design or of Blockyard.
    Stuck(Standstill),
}

impl<O: Observer> World<O> {
    /// Returns a world on `machine` with `queues` over `host`, at instant zero. The workers of each disk's
    /// hardware queues use `worker_cpu`. Tasks poll the hardware queues that `polled` names.
    #[must_use]
    pub fn new(
        machine: MachineProfile,
        policies: &Policies,
        host: SimHost<O>,
        queues: Vec<RequestQueue>,
        worker_cpu: Vec<CpuId>,
        polled: PolledQueues,
    ) -> Self {
        assert!(machine.cpus > 0, "a machine must have processors");
        assert!(worker_cpu.iter().all(|cpu| cpu.0 < machine.cpus), "workers {worker_cpu:?}");
        let single = policies.model == Model::SingleLock;
        let elevator = policies.elevator.has_one_lock();
        Self {
            now: Instant::ZERO,
            events: EventHeap::new(),
            next_event: None,
            machine,
            cpus: (0..machine.cpus).map(|_| Cpu::new()).collect(),
            dispatch: host.driver.model().dispatch(),
            completion: host.driver.model().completion(),
            locks: vec![Contended::default(); host.sink.0.0.sites().all()],
            locking: Locking { submitting: single || elevator, completing: single },
            host,
            polls: vec![None; queues.len()],
            deferred: vec![vec![false; worker_cpu.len()]; queues.len()],
            vectors: vec![VecDeque::new(); worker_cpu.len()],
            queues,
            woken: Vec::new(),
            worker_cpu,
            contexts: Contexts::new(&machine),
            in_driver: None,
            host_cpus: [CpuId(machine.cpus - 1); 2],
            owed_to_waker: 0,
            polled,
            flows: Flows::default(),
            ends_all: false,
            cache: PageCache::default(),
            reach: Reach { usual: 0, widest: 0 },
            tasks: Vec::new(),
            stats: Vec::new(),
            logs: Logs::default(),
            alive: 0,
            last_end: Instant::ZERO,
            measure_from: Instant::ZERO,
            totals: Totals::default(),
            device_events: Events::new(),
            layers_at: None,
            last_issue: (0, Instant::ZERO),
            failure: None,
            self_check: false,
            replay: None,
            verifier: None,
        }
    }

    /// Sets the reach of read-ahead through the page cache. Without this call nothing is read ahead.
    pub const fn read_ahead(&mut self, reach: Reach) {
        self.reach = reach;
    }

    /// Makes the queues check their accounts after every piece of work, which is slow.
    pub const fn check_every_step(&mut self) {
        self.self_check = true;
    }

    /// Adds a task that begins at `begin` (see [`Task::begin`]).
    pub fn add_task(
        &mut self,
        mut task: Task,
        begin: Instant,
        ramp: Duration,
        limit: Option<Duration>,
    ) {
        assert_eq!(task.id.0 as usize, self.tasks.len(), "tasks must be numbered in order");
        assert!(
            u32::from(task.cpu.0) < u32::from(self.machine.cpus),
            "{:?} is on no processor",
            task.id
        );
        task.begin(begin, ramp, limit);
        let stats = &mut self.stats[task.stats];
        stats.started = stats.started.min(task.measured_from());
        self.events.push(begin, Event::Wake(task.id));
        if let Some(watch) = task.steady.take() {
            self.watch_for_steady_state(task.stats, watch, begin);
        }
        self.tasks.push(task);
        self.alive += 1;
    }

    /// Returns the current virtual time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Returns the instant when the last task ended.
    #[must_use]
    pub const fn last_end(&self) -> Instant {
        self.last_end
    }

    /// Whether a job has ended those that have not begun, too.
    #[must_use]
    pub const fn ends_all(&self) -> bool {
        self.ends_all
    }

    /// Returns the instant when measurement began.
    #[must_use]
    pub const fn measured_from(&self) -> Instant {
        self.measure_from
    }

    /// Returns the counts of the run.
    #[must_use]
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Returns the number of page reads in flight. After the end of all jobs, no task waits for them.
    #[must_use]
    pub fn reading_ahead(&self) -> usize {
        self.cache.under_way()
    }

    /// Returns the use of locks and contended words, by kind.
    #[must_use]
    pub fn lock_uses(&self) -> Vec<LockUse> {
        self.host.sink.0.0.sites().uses(&self.locks)
    }

    /// Returns the request queues.
    #[must_use]
    pub fn queues(&self) -> &[RequestQueue] {
        &self.queues
    }

    /// Returns the number of hardware queues of all request queues.
    #[must_use]
    pub fn hctxs(&self) -> u32 {
        let all = self.queues.len() * self.worker_cpu.len();
        u32::try_from(all).expect("a product of two 16-bit counts should fit 32 bits")
    }

    /// Handles up to `max` events, all of them before `until`. Returns their number; [`Self::has_jobs`] says whether jobs remain.
    ///
    /// # Errors
    ///
    /// Returns a [`Failure`]. The world stays at the instant of the failure.
    pub fn advance(&mut self, max: u64, until: Instant) -> Result<u64, Failure> {
        for handled in 0..max {
            if self.alive == 0 {
                return Ok(handled);
            }
            let Some((at, event)) = self.next_event(until) else {
                let any = self.next_event.is_some() || !self.events.is_empty();
                return if any { Ok(handled) } else { Err(self.stuck()) };
            };
            debug_assert!(at >= self.now, "[events-in-time-order] {event:?} at {at}");
            self.now = at;
            self.totals.events += 1;
            self.handle(event);
            if let Some(failure) = self.failure {
                return Err(failure);
            }
        }
        Ok(max)
    }

    /// Returns whether jobs remain.
    #[must_use]
    pub const fn has_jobs(&self) -> bool {
        self.alive > 0
    }

    /// Returns the reason why no event is left.
    fn stuck(&self) -> Failure {
        match self.host.driver.lost() {
            0 => Failure::Stuck(self.standstill()),
            lost => Failure::Lost(lost),
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::CpuFree(cpu) => self.next_work(cpu),
            Event::LockFree(queue) => self.grant_lock(queue),
            Event::Wake(id) => {
                let task = &mut self.tasks[id.0 as usize];
                task.wake();
                let cpu = task.cpu;
                let work = self.resumes(id);
                self.give(cpu, work);
            }
            Event::Alarm(id) => {
                let task = &mut self.tasks[id.0 as usize];
                let cpu = task.cpu;
                if task.alarm(self.now) {
                    self.give(cpu, Work::Step(id));
                }
            }
            Event::Play => self.play(),
            Event::Run(by, queue, hctx) => {
                let cpu = self.cpu_of_run(by, hctx);
                self.give(cpu, Work::Run { by, queue, hctx });
            }
            Event::HostThread(context, bound) => self.host_thread_arrives(context, bound),
            Event::Poll(queue) => {
                self.poll(queue);
                if self.gives_up() {
                    self.failure = Some(self.stuck());
                }
            }
            Event::Look(cpu, since) => {
                let state = &mut self.cpus[cpu.index()];
                if state.polling.is_some_and(|spin| spin.since == since) {
                    state.running = true;
                    self.next_work(cpu);
                }
            }
            Event::Device(event) => {
                let (now, events) = (self.now, &mut self.device_events);
                self.host.driver.model_mut().event(event, now, events);
                self.schedule_device();
                self.device_has_news();
            }
            Event::SoftInterrupt(cpu, finished) => {
                self.give(cpu, Work::Complete { finished, interrupt: true });
            }
            Event::Layers => {
                self.layers_at = self.layers_at.filter(|at| *at > self.now);
                self.take_finished();
                self.look_at_controller();
                self.host_time_has_come();
            }
            Event::Measure => self.forget(),
            Event::Steady(entry) => self.look_for_steady_state(entry),
            Event::Suspend(span) => self.suspend_host(span),
            Event::Resume => self.resume_host(),
            Event::PowerCut(period) => self.power_cut(period),
        }
    }

    /// Schedules `event`. An event that precedes all others bypasses the heap.
    fn soon(&mut self, at: Instant, event: Event) {
        debug_assert!(at >= self.now, "{event:?} at {at}, in the past of {}", self.now);
        if let Some((earlier, other)) = self.next_event.replace((at, event)) {
            self.events.push(earlier, other);
        }
    }

    /// Takes the earliest event, if it is before `until` ([events-in-time-order]).
    fn next_event(&mut self, until: Instant) -> Option<(Instant, Event)> {
        let next_at = self.events.next_at();
        if let Some((at, event)) = self.next_event {
            if next_at.is_none_or(|other| at < other) {
                return if at < until { self.next_event.take() } else { None };
            }
            self.next_event = None;
            if next_at? < until {
                return Some(self.events.exchange(at, event));
            }
            self.events.push(at, event);
        }
        if next_at? < until { self.events.pop() } else { None }
    }
}

/// The bit in a cookie's slot that marks the number of a run of pages instead of an I/O of a task. Every
/// depth is below this bit.
const RUN_BIT: u32 = 1 << 31;

/// Returns the task and slot of a cookie.
#[expect(clippy::cast_possible_truncation, reason = "both halves of 64 bits are 32 bits")]
const fn split_cookie(cookie: u64) -> (TaskId, u32) {
    (TaskId((cookie >> 32) as u32), cookie as u32)
}
