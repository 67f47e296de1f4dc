//! The world: processors, tasks, request queues and a device, moved from event to event.
//!
//! The same five calls drive the queues as in real time. Everything that acts is an [`Actor`]. A
//! piece of its [`Work`] runs on a processor without interruption. The work makes its changes when
//! it begins. Its consequences (commands at the device, threads woken, runs left to a worker) begin
//! when it ends. Only the driver of an MMC host makes its changes when its work ends. An interrupt
//! waits on its processor for the end of such work. When a timer wakes a thread of that driver, the
//! processor on which the thread slept pays for the timer's interrupt and the wake-up.
//!
//! # Rules
//!
//! - **[events-in-time-order]** Events happen in the order of time, then in the order of
//!   scheduling. Nothing else decides an order.
//! - **[lock-before-work]** Each queue has a lock, if its design has one. Work under the lock of a
//!   queue begins when it has the lock. Until then its processor spins. Work that turns out to need
//!   the lock of another queue waits for that one after it has begun.
//! - **[one-deferred-run-pending]** A hardware queue has at most one deferred run pending.
//!
//! # Behaviour
//!
//! **Processors.** A processor does one thing at a time, and completions come before threads.
//!
//! **Interrupts.** A vector interrupts the processor of its hardware queue once while completions
//! wait for its handler, and the handler ends all of them. A completion during the handler's work
//! interrupts again.
//!
//! **Completions.** In the single-lock model an interrupt only raises a soft interrupt, which ends
//! the request later. In the multi-queue model the interrupt ends it. The submitting processor
//! accesses persistent memory itself, and is busy until the I/O is done: each I/O of a call ends
//! before the next is submitted, and no I/O is plugged.
//!
//! **Waits for a tag.** A completion wakes the task whose I/O has ended and the tasks that wait for
//! the tag. The first runs first, and may take the tag again, so that a waiter finds none. That
//! waiter has run for less time. When the next tag wakes it, it runs first, as Linux prefers a
//! thread that has had less than its share of the processor; of several such waiters, the one that
//! found none most often runs first. So every waiter gets a tag in the end. Such a waiter also runs
//! on an idle processor next time, if its own is busy and its job does not say where it runs.
//! Otherwise the tasks of the processor that has the interrupts would be late each time. A task
//! that polls stays.
//!
//! **Polls.** A polled hardware queue raises no interrupt. Its completions wait for a poll, and the
//! processor that polls completes them. A task that waits for polled I/Os does not sleep. Its
//! processor polls for all such tasks: once between two ready threads, and repeatedly while it has
//! no other work. A world does not simulate each poll of a spin. Polls begin a whole number of
//! polls after the spin began. The first poll that does not begin before a completion finds it, and
//! the task continues when a poll ends. The processor is busy all the time.
//!
//! **Threads of an MMC host.** The driver of an MMC host may sleep, so its thread does every run of
//! its hardware queue. A thread of the host wakes on an idle processor, and prefers the one on
//! which it last ran.
//!
//! **Submitters in an MMC driver.** Where a design says so, a thread that submits to an MMC host is
//! the driver's thread until the requests that it dispatches have been started. It sleeps there
//! while the bus is taken. One thread at a time does so; another one that finds the host full
//! leaves its requests in the queue.

mod actor;
mod adapting;
mod buffered;
mod committer;
mod device;
mod ending;
mod failure;
mod flusher;
mod load;
mod measuring;
mod media;
mod mmc;
mod owner;
mod owners_of_work;
mod places;
mod polling;
mod pre_reading;
mod processor;
mod queue;
mod repeating;
mod replaying;
mod scheduler;
mod standstill;
mod step;
mod throttle;
mod totals;
mod turns;

pub use actor::{ADDED_ACTORS_MAX, Actor};
pub use failure::{FailedIo, Failure};
pub(crate) use flusher::FLUSHER_PAGES_MAX;
pub use load::{DirtReport, Load};
pub use media::POWER_CUTS_MAX;
pub use scheduler::BfqReport;
pub use totals::Totals;

use actor::Added;
use flusher::Flushing;
use mmc::{DriverEvent, MmcDriver};
use places::Places;
use processor::Locking;
use replaying::Replaying;
pub use standstill::{HostStandstill, Standstill};
use turns::Flows;

use crate::machine::cost::CostSink;
use crate::machine::cpu::Cpu;
use crate::machine::lock::Contended;
use crate::machine::locks::LockUse;
use crate::machine::poll::PolledQueues;
use crate::page_cache::PageCache;
use crate::task::Task;
use blockyard::driver::Finished;
use blockyard::host::Host;
use blockyard::policy::{Model, Plugging, Policies};
use blockyard::request_queue::RequestQueue;
use blockyard::stats::StageStats;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, HctxId, QueueId};
use blockyard_devices::data::verify::Verifier;
use blockyard_devices::event::EventHeap;
use blockyard_devices::profile::{MachineProfile, Reach};
use blockyard_devices::stack::Stack;
use blockyard_devices::terms::{Completion, Dispatch};
use blockyard_devices::{DeviceEvent, Events};
use blockyard_fio::measure::JobStats;
use blockyard_fio::output::log::Logs;
use blockyard_trace::observe::{ActorId, Observer, Runner, TaskId, Work};
use std::collections::{BTreeSet, VecDeque};

/// The host of a world. It passes events to the world's own counts, then to the observer.
pub(crate) type SimHost<'o> = Host<Stack, ((CostSink, StageStats), Option<&'o mut dyn Observer>)>;

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
    /// The process of a task is gone.
    Exit(TaskId),
    /// Records of a trace are due.
    Records,
    /// A thread begins to run a hardware queue.
    Run(Runner, QueueId, HctxId),
    /// An actor that was added becomes ready.
    WakeActor(ActorId),
    /// A queue's requested call is due.
    QueueTimer(QueueId),
    /// A processor that has spun since this instant begins a poll that finds a completion.
    PollFinds(CpuId, Instant),
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
    /// The driver of an MMC host has an event.
    Driver(DriverEvent),
    /// A power cut is checked. The next one follows after this time, unless the time is zero.
    PowerCut(Duration),
}

/// Processors, tasks, queues and a device, with an observer that lives for `'o`.
#[derive(Debug)]
pub struct World<'o> {
    now: Instant,
    events: EventHeap<Event>,
    /// The event scheduled last, which may precede all events of the heap.
    next_event: Option<(Instant, Event)>,
    machine: MachineProfile,
    cpus: Vec<Cpu>,
    /// All locks and contended words, by [`Sites`](crate::machine::locks::Sites): first the lock of
    /// each queue.
    locks: Vec<Contended>,
    locking: Locking,
    /// Whether each call of an asynchronous engine plugs its I/Os, however few.
    plugs_calls: bool,
    /// The device with its tags, and the sinks of all events.
    pub host: SimHost<'o>,
    queues: Vec<RequestQueue>,
    /// The instant of the earliest scheduled timer of each queue.
    queue_timers: Vec<Option<Instant>>,
    /// Pending deferred runs, by queue and hardware queue ([one-deferred-run-pending]).
    deferred: Vec<Vec<bool>>,
    /// Tasks that tags have woken, with the number of times before that they found none; empty
    /// between two pieces of work.
    woken: Vec<(u32, TaskId)>,
    /// The processor of each hardware queue's vector, and of its worker, unless that one moves.
    worker_cpu: Vec<CpuId>,
    /// The places of workers that run by their lag.
    places: Option<Places>,
    /// The way in which the hardware queues are dispatched.
    dispatch: Dispatch,
    /// The way in which requests of unpolled hardware queues complete.
    completion: Completion,
    /// The driver of an MMC host, if the device is one.
    mmc: Option<MmcDriver>,
    polled: PolledQueues,
    /// Completions that wait for the handler of their vector, by hardware queue.
    vectors: Vec<VecDeque<Finished>>,
    flows: Flows,
    /// Whether a job has ended those that have not begun, too.
    ends_all: bool,
    /// The reporting groups whose jobs end, be it before they begin.
    ended_groups: BTreeSet<u32>,
    cache: PageCache,
    /// The writeback of dirty pages, if jobs write through the page cache.
    flushing: Option<Flushing>,
    /// The committer of each disk, if a file system has journals there.
    committers: Vec<ActorId>,
    /// The tasks whose jobs fill the page cache before they begin, with their ramp times and
    /// limits.
    pre_reading: Vec<(TaskId, Duration, Option<Duration>)>,
    /// The reach of read-ahead through the page cache, in pages.
    reach: Reach,
    tasks: Vec<Task>,
    /// The actors that were added.
    actors: Vec<Added>,
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
    /// The number of requests issued to the driver, and when a poll last found that this number had
    /// grown.
    last_issue: (u64, Instant),
    failure: Option<Failure>,
    ignores_groups: bool,
    self_check: bool,
    /// Whether a job may make runs of equal calls.
    has_runs: bool,
    /// Calls that were made in runs.
    calls_in_runs: u64,
    replay: Option<Replaying>,
    /// The verifier of the data on the media, if data is kept.
    verifier: Option<Box<Verifier>>,
}

impl<'o> World<'o> {
    /// Returns a world on `machine` with `queues` over `host`, at instant zero. The workers of each
    /// disk's hardware queues use `worker_cpu`. Tasks poll the hardware queues that `polled` names.
    #[must_use]
    pub fn new(
        machine: MachineProfile,
        policies: &Policies,
        host: SimHost<'o>,
        queues: Vec<RequestQueue>,
        worker_cpu: Vec<CpuId>,
        polled: PolledQueues,
    ) -> Self {
        assert!(machine.cpus > 0, "a machine must have processors");
        assert!(worker_cpu.iter().all(|cpu| cpu.0 < machine.cpus), "workers {worker_cpu:?}");
        let single = policies.model == Model::SingleLock;
        let tries = !single && policies.elevator.lists_insertions();
        let elevator = policies.elevator.has_one_lock() && !tries;
        Self {
            now: Instant::ZERO,
            events: EventHeap::new(),
            next_event: None,
            machine,
            cpus: (0..machine.cpus).map(|_| Cpu::new()).collect(),
            mmc: host.driver.model().mmc().map(|_| MmcDriver::new(&machine)),
            dispatch: host.driver.model().dispatch(),
            completion: host.driver.model().completion(),
            locks: vec![Contended::default(); host.sink.0.0.sites().all()],
            locking: Locking { submitting: single || elevator, completing: single, tries },
            plugs_calls: policies.plug == Plugging::Calls,
            host,
            queue_timers: vec![None; queues.len()],
            deferred: vec![vec![false; worker_cpu.len()]; queues.len()],
            vectors: vec![VecDeque::new(); worker_cpu.len()],
            queues,
            woken: Vec::new(),
            worker_cpu,
            places: None,
            actors: Vec::new(),
            polled,
            flows: Flows::default(),
            ends_all: false,
            ended_groups: BTreeSet::new(),
            cache: PageCache::default(),
            flushing: None,
            committers: Vec::new(),
            pre_reading: Vec::new(),
            reach: Reach { usual: 0, widest: 0, aligned: false },
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
            ignores_groups: false,
            self_check: false,
            has_runs: false,
            calls_in_runs: 0,
            replay: None,
            verifier: None,
        }
    }

    /// Sets the reach of read-ahead through the page cache. Without this call nothing is read
    /// ahead.
    pub const fn read_ahead(&mut self, reach: Reach) {
        self.reach = reach;
    }

    /// Makes the queues check their accounts after every piece of work, which is slow.
    pub(crate) const fn check_every_step(&mut self) {
        self.self_check = true;
    }

    /// Adds a task that begins at `begin` (see [`Task::begin`]).
    pub(crate) fn add_task(
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
        let id = task.id;
        self.events.push(begin, Event::Wake(id));
        self.alive += 1;
        task.measuring.hold();
        let is_pre_reading = task.is_pre_reading();
        self.tasks.push(task);
        self.has_runs |= self.allows_runs(id);
        if is_pre_reading {
            self.pre_reading.push((id, ramp, limit));
            return;
        }
        self.begin_task(id, begin, ramp, limit);
    }

    /// Returns the current virtual time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Returns the instant when the last task ended.
    #[must_use]
    pub(crate) const fn last_end(&self) -> Instant {
        self.last_end
    }

    /// Whether a job has ended those of `group` that have not begun, too.
    #[must_use]
    pub(crate) fn ends_before_it_begins(&self, group: u32) -> bool {
        self.ends_all || self.ended_groups.contains(&group)
    }

    /// Returns the instant when measurement began.
    #[must_use]
    pub(crate) const fn measured_from(&self) -> Instant {
        self.measure_from
    }

    /// Returns the counts of the run.
    #[must_use]
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Returns the number of page reads in flight. After the end of all jobs, no task waits for
    /// them.
    #[must_use]
    pub fn reading_ahead(&self) -> usize {
        self.cache.under_way()
    }

    /// Returns the use of locks and contended words, by kind.
    #[must_use]
    pub(crate) fn lock_uses(&self) -> Vec<LockUse> {
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

    /// Handles up to `max` events, all of them before `until`. Returns their number; `has_jobs`
    /// says whether jobs remain.
    ///
    /// # Errors
    ///
    /// Returns a [`Failure`]. The world stays at the instant of the failure.
    pub(crate) fn advance(&mut self, max: u64, until: Instant) -> Result<u64, Failure> {
        let mut handled = 0;
        while handled < max {
            if self.alive == 0 {
                return Ok(handled);
            }
            let Some((at, event)) = self.next_event(until) else {
                // Events after `until` are left for the next call. Without any, the jobs wait for
                // ever.
                let any = self.next_event.is_some() || !self.events.is_empty();
                return if any { Ok(handled) } else { Err(self.stuck()) };
            };
            debug_assert!(at >= self.now, "[events-in-time-order] {event:?} at {at}");
            self.now = at;
            self.totals.events += 1;
            handled += 1;
            if self.has_runs
                && let Event::CpuFree(cpu) = event
            {
                handled += self.repeat_calls(cpu, until, max - handled);
            }
            self.handle_event(event);
            if let Some(failure) = self.failure {
                return Err(failure);
            }
        }
        Ok(handled)
    }

    /// Returns whether jobs remain.
    #[must_use]
    pub(crate) const fn has_jobs(&self) -> bool {
        self.alive > 0
    }

    /// Returns the reason why no event is left.
    fn stuck(&self) -> Failure {
        match self.host.driver.lost() {
            0 => Failure::Stuck(self.standstill()),
            lost => Failure::Lost(lost),
        }
    }

    fn handle_event(&mut self, event: Event) {
        match event {
            Event::CpuFree(cpu) => self.on_cpu_free(cpu),
            Event::LockFree(queue) => self.grant_lock(queue),
            Event::Wake(id) => {
                let task = &mut self.tasks[id.0 as usize];
                task.wake();
                let cpu = task.cpu;
                let work = self.work_on_wake(id);
                self.give_work(cpu, work);
            }
            Event::Alarm(id) => {
                let task = &mut self.tasks[id.0 as usize];
                let cpu = task.cpu;
                if task.on_alarm(self.now) {
                    self.give_work(cpu, Work::Step(id));
                }
            }
            Event::Exit(id) => self.on_exit(id),
            Event::Records => self.deliver_records(),
            Event::Run(by, queue, hctx) => {
                let cpu = self.cpu_of_run(by, queue, hctx);
                self.give_work(cpu, Work::Run { by, queue, hctx });
            }
            Event::WakeActor(id) => self.on_actor_wake(id),
            Event::QueueTimer(queue) => {
                self.on_queue_timer(queue);
                if self.has_stalled() {
                    self.failure = Some(self.stuck());
                }
            }
            Event::PollFinds(cpu, since) => {
                let state = &mut self.cpus[cpu.index()];
                // A spin that has ended since, or another one, has no use for this poll.
                if state.polling.is_some_and(|spin| spin.since == since) {
                    state.running = true;
                    self.next_work(cpu);
                }
            }
            Event::Device(event) => {
                let now = self.now;
                self.host.driver.model_mut().event(event, now, &mut self.device_events);
                self.schedule_device();
                self.on_device_event();
            }
            Event::SoftInterrupt(cpu, finished) => {
                self.give_work(cpu, Work::Complete { finished, interrupt: true });
            }
            Event::Layers => {
                self.layers_at = self.layers_at.filter(|at| *at > self.now);
                self.take_finished();
                self.check_controller();
                self.on_host_timer();
            }
            // Another job may have begun earlier than the one that this event is of.
            Event::Measure if self.now != self.measure_from => {}
            Event::Measure => self.reset_counts(),
            Event::Steady(entry) => self.check_steady_state(entry),
            Event::Driver(event) => self.on_driver_event(event),
            Event::PowerCut(period) => self.power_cut(period),
        }
    }

    /// Schedules `event`. An event that precedes all others bypasses the heap.
    fn schedule_soon(&mut self, at: Instant, event: Event) {
        debug_assert!(at >= self.now, "{event:?} at {at}, in the past of {}", self.now);
        // The event before it goes to the heap, which orders them. Most events are taken before
        // another one comes.
        if let Some((earlier, other)) = self.next_event.replace((at, event)) {
            self.events.push(earlier, other);
        }
    }

    /// Takes the earliest event, if it is before `until` ([events-in-time-order]).
    fn next_event(&mut self, until: Instant) -> Option<(Instant, Event)> {
        // At one instant the heap's events come first: they were scheduled earlier.
        let next_at = self.events.next_at();
        if let Some((at, event)) = self.next_event {
            if next_at.is_none_or(|other| at < other) {
                return if at < until { self.next_event.take() } else { None };
            }
            self.next_event = None;
            // One pass through the heap takes its first event and puts this one in its place.
            if next_at? < until {
                return Some(self.events.exchange(at, event));
            }
            self.events.push(at, event);
        }
        if next_at? < until { self.events.pop() } else { None }
    }
}
