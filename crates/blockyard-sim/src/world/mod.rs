//! The world: processors, tasks, request queues and a device, moved from event to event.
//!
//! The same five calls drive the queues as in real time. A piece of [`Work`] runs on a processor
//! without interruption: what it changes, it changes at the instant it begins; what follows from
//! it (commands at the device, threads woken, runs left to a worker) begins when it ends.
//!
//! # Rules
//!
//! - **T1.** Events happen in the order of time, then of scheduling. Nothing else decides an order.
//! - **T2.** A processor does one thing at a time; completions go before threads.
//! - **T3.** Work that takes the design's lock begins when it has the lock; until then its
//!   processor spins.
//! - **T4.** A deferred run of a hardware queue is pending at most once.
//! - **T5.** A polled hardware queue interrupts nobody: what it has completed waits for a look, and
//!   is completed on the processor that looks. A task that waits with polled I/Os under way does
//!   not sleep: its processor looks for all such tasks of it, between two threads that are ready
//!   once, and again and again while it has nothing else to do.
//! - **T6.** Such a spin is not played look by look. What is completed meanwhile is found by the
//!   first look that begins no earlier, a whole number of looks after the spin began; a task that
//!   goes on does so where a look ends. All of it is time the processor was busy.
//! - **T7.** The driver of an MMC host may sleep, so every run of its hardware queue is left to the
//!   host's thread, and so is what the driver has that thread do. A thread of the host's that sleeps
//!   is woken on a processor that is idle, on the one where it ran last if it can choose.
//! - **T8.** What that driver does is paid first and takes effect then: between the two, others see it
//!   as begun. It is not interrupted: an interrupt waits for its end on the same processor.
//! - **T9.** Who wakes a thread pays for it, as part of what it does at that time: a piece of work, an
//!   act, the end of an interrupt. For a time that has come that is the timer's interrupt, on the
//!   processor where the thread slept.
//! - **T10.** Persistent memory is used by the processor that submits, which is busy until that is done:
//!   each I/O ends before the next one of a call is submitted, and none is plugged.

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

pub use media::POWER_CUTS_MAX;
use processor::Locks;
use replaying::Replaying;
pub use standstill::{HostStandstill, Standstill};

use crate::data::verify::Verifier;
use crate::device::mmc::contexts::Contexts;
use crate::device::stack::Stack;
use crate::device::terms::{Completion, Dispatch, Runner};
use crate::device::{DeviceEvent, Events};
use crate::event::EventHeap;
use crate::log::Logs;
use crate::machine::cost::CostSink;
use crate::machine::cpu::{Cpu, TaskId, Work};
use crate::machine::lock::Lock;
use crate::machine::poll::PolledQueues;
use crate::measure::JobStats;
use crate::observe::Observer;
use crate::page_cache::PageCache;
use crate::profile::{MachineProfile, Reach};
use crate::task::Task;
use blockyard::host::Host;
use blockyard::policy::{Model as Locking, Policies};
use blockyard::request_queue::RequestQueue;
use blockyard::stats::StageStats;
use blockyard::status::{Status, SubmitError};
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, HctxId, QueueId};
use blockyard_mmc::block::Context;

/// The host of a world: events go to what the world counts itself, then to its observer.
pub type SimHost<O = ()> = Host<Stack, ((CostSink, StageStats), O)>;

/// What happens at an instant.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A processor has finished what it was doing.
    CpuFree(CpuId),
    /// The lock is free for whoever waits.
    LockFree,
    /// A task becomes ready.
    Wake(TaskId),
    /// The instant that a task sleeps until.
    Alarm(TaskId),
    /// Records of a trace are due to be handed to tasks.
    Play,
    /// A thread runs that is to run a hardware queue.
    Run(Runner, QueueId, HctxId),
    /// A thread of an MMC host's driver is there to work.
    HostThread(Context),
    /// A queue asked to be looked at again.
    Poll(QueueId),
    /// A processor that spins since this instant begins a look that finds something.
    Look(CpuId, Instant),
    /// Something happens in the device.
    Device(DeviceEvent),
    /// A layer over the device asked to be looked at.
    Layers,
    /// Measuring begins: what was counted so far is forgotten.
    Measure,
    /// The system goes to sleep, for so long.
    Suspend(Duration),
    /// It wakes up.
    Resume,
    /// What would be left if the power went? Asked again after this, unless it is zero.
    PowerCut(Duration),
}

/// Counts over a run, apart from those of the queues' own statistics.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Threads woken because an I/O or a tag was ready.
    pub wakeups: u64,
    /// Changes from one thread to another.
    pub context_switches: u64,
    /// Time processors spent, running or spinning.
    pub cpu: Duration,
    /// Of that, spinning for the lock.
    pub spinning: Duration,
    /// Of it, looking for polled completions that were not there.
    pub polling: Duration,
    /// Times that the system slept: that an MMC host was idle in time for it.
    pub sleeps: u64,
    /// Runs of hardware queues.
    pub runs: u64,
    /// Events handled.
    pub events: u64,
    /// I/Os whose submission had to wait for a tag.
    pub tag_waits: u64,
    /// Time they waited, all added up.
    pub tag_wait: Duration,
    /// Time from the end of I/Os until their jobs took the results, all added up.
    pub untaken: Duration,
}

/// Everything there is, and who watches.
#[derive(Debug)]
pub struct World<O = ()> {
    now: Instant,
    events: EventHeap<Event>,
    /// An event scheduled last, which may precede everything in the heap.
    next_event: Option<(Instant, Event)>,
    machine: MachineProfile,
    cpus: Vec<Cpu>,
    lock: Lock,
    locks: Locks,
    /// The device with its tags, and the sinks of all events.
    pub host: SimHost<O>,
    queues: Vec<RequestQueue>,
    /// Where the earliest poll of each queue is scheduled.
    polls: Vec<Option<Instant>>,
    /// Deferred runs that are pending, by queue and hardware queue (T4).
    deferred: Vec<Vec<bool>>,
    /// The processor that a hardware queue's worker uses.
    worker_cpu: Vec<CpuId>,
    /// How the device's hardware queues are dispatched.
    dispatch: Dispatch,
    /// How the device completes requests of hardware queues that are not polled.
    completion: Completion,
    /// The contexts of an MMC host's driver.
    contexts: Contexts,
    /// The processors on which the host's threads run, or ran last.
    host_cpus: [CpuId; 2],
    polled: PolledQueues,
    cache: PageCache,
    /// How far reads are ahead, in pages.
    reach: Reach,
    tasks: Vec<Task>,
    /// Statistics, one for each instance or group reported as one.
    pub stats: Vec<JobStats>,
    /// Logs of what tasks do, where any are asked for.
    pub logs: Logs,
    alive: u32,
    last_end: Instant,
    measure_from: Instant,
    totals: Totals,
    /// What the device wants scheduled.
    device_events: Events,
    /// Where the earliest look at the layers is scheduled.
    layers_at: Option<Instant>,
    /// Requests that the driver had taken at the latest poll that found more of them, and when that
    /// was.
    last_issue: (u64, Instant),
    failure: Option<Failure>,
    self_check: bool,
    replay: Option<Replaying>,
    /// Holds what is on the media against what ought to be; where they are kept.
    verifier: Option<Box<Verifier>>,
}

/// What ended a run before its jobs were done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A queue refused a bio for a reason that waiting does not mend.
    Refused(TaskId, SubmitError),
    /// An I/O of a job failed.
    Io(TaskId, Status),
    /// Nothing more can happen: so many completions were lost by fault rules.
    Lost(u64),
    /// The trace could not be read to its end.
    Trace,
    /// The power was to be lost more often than [`POWER_CUTS_MAX`].
    PowerCuts,
    /// Nothing more can happen, and jobs are not done: a defect of the design or of Blockyard.
    Stuck(Standstill),
}

impl<O: Observer> World<O> {
    /// A world on `machine` with `queues` over `host`, at instant zero. Of each disk's hardware
    /// queues, worker threads use `worker_cpu`, and tasks poll those that `polled` names.
    #[must_use]
    pub fn new(
        machine: MachineProfile,
        policies: &Policies,
        host: SimHost<O>,
        queues: Vec<RequestQueue>,
        worker_cpu: Vec<CpuId>,
        polled: PolledQueues,
    ) -> Self {
        let single = policies.model == Locking::SingleLock;
        let elevator = policies.elevator.has_one_lock();
        Self {
            now: Instant::ZERO,
            events: EventHeap::new(),
            next_event: None,
            machine,
            cpus: (0..machine.cpus).map(|_| Cpu::new()).collect(),
            lock: Lock::default(),
            dispatch: host.driver.model().dispatch(),
            completion: host.driver.model().completion(),
            locks: Locks { submitting: single || elevator, completing: single },
            host,
            polls: vec![None; queues.len()],
            deferred: vec![vec![false; worker_cpu.len()]; queues.len()],
            queues,
            worker_cpu,
            contexts: Contexts::new(&machine),
            host_cpus: [CpuId(machine.cpus - 1); 2],
            polled,
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

    /// Reads through the page cache are ahead of their reader as far as `reach` says; at first they
    /// are not.
    pub const fn read_ahead(&mut self, reach: Reach) {
        self.reach = reach;
    }

    /// Checks the queues' accounts after every piece of work; slow.
    pub const fn check_every_step(&mut self) {
        self.self_check = true;
    }

    /// Adds a task that begins at `begin`; see [`Task::begin`].
    pub fn add_task(
        &mut self,
        mut task: Task,
        begin: Instant,
        ramp: Duration,
        limit: Option<Duration>,
    ) {
        assert_eq!(task.id.0 as usize, self.tasks.len(), "tasks are numbered in order");
        task.begin(begin, ramp, limit);
        let stats = &mut self.stats[task.stats];
        stats.started = stats.started.min(task.measured_from());
        self.events.push(begin, Event::Wake(task.id));
        self.tasks.push(task);
        self.alive += 1;
    }

    /// Virtual time reached.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// When the last task ended.
    #[must_use]
    pub const fn last_end(&self) -> Instant {
        self.last_end
    }

    /// When measuring began.
    #[must_use]
    pub const fn measured_from(&self) -> Instant {
        self.measure_from
    }

    /// What was counted.
    #[must_use]
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Bios under way that read ahead or for pages: when all jobs have ended, nobody waits for them.
    #[must_use]
    pub fn reading_ahead(&self) -> usize {
        self.cache.under_way()
    }

    /// The request queues.
    #[must_use]
    pub fn queues(&self) -> &[RequestQueue] {
        &self.queues
    }

    /// Hardware queues of all request queues together.
    #[must_use]
    pub fn hctxs(&self) -> u32 {
        let all = self.queues.len() * self.worker_cpu.len();
        u32::try_from(all).expect("both are 16 bits")
    }

    /// Handles up to `max` events. Whether jobs remain to be done.
    ///
    /// # Errors
    ///
    /// A [`Failure`]; the world stands where it happened.
    pub fn advance(&mut self, max: u64) -> Result<bool, Failure> {
        for _ in 0..max {
            if self.alive == 0 {
                return Ok(false);
            }
            let Some((at, event)) = self.next_event() else { return Err(self.stuck()) };
            self.now = at;
            self.totals.events += 1;
            self.handle(event);
            if let Some(failure) = self.failure {
                return Err(failure);
            }
        }
        Ok(self.alive > 0)
    }

    /// Why nothing can happen.
    fn stuck(&self) -> Failure {
        match self.host.driver.lost() {
            0 => Failure::Stuck(self.standstill()),
            lost => Failure::Lost(lost),
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::CpuFree(cpu) => self.next_work(cpu),
            Event::LockFree => self.grant_lock(),
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
            Event::HostThread(context) => {
                let cpu = self.host_cpu(context);
                self.give(cpu, Work::Host(context));
            }
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
            Event::Layers => {
                self.layers_at = self.layers_at.filter(|at| *at > self.now);
                self.take_finished();
                self.look_at_controller();
                self.host_time_has_come();
            }
            Event::Measure => self.forget(),
            Event::Suspend(span) => self.suspend_host(span),
            Event::Resume => self.resume_host(),
            Event::PowerCut(period) => self.power_cut(period),
        }
    }

    /// Schedules `event`. One that nothing else precedes need not pass through the heap.
    fn soon(&mut self, at: Instant, event: Event) {
        if let Some((earlier, other)) = self.next_event.replace((at, event)) {
            self.events.push(earlier, other);
        }
    }

    /// The earliest event (T1).
    fn next_event(&mut self) -> Option<(Instant, Event)> {
        if let Some((at, event)) = self.next_event.take() {
            if self.events.next_at().is_none_or(|other| at < other) {
                return Some((at, event));
            }
            self.events.push(at, event);
        }
        self.events.pop()
    }
}

/// The bit of a cookie's slot that says it numbers a run of pages, not an I/O of a task: depths are
/// below it.
const RUN_BIT: u32 = 1 << 31;

/// The task and slot that a cookie names.
#[expect(clippy::cast_possible_truncation, reason = "both halves of 64 bits are 32 bits")]
const fn split_cookie(cookie: u64) -> (TaskId, u32) {
    (TaskId((cookie >> 32) as u32), cookie as u32)
}
