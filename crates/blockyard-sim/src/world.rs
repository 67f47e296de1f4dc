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

use crate::data::verify::{Verified, Verifier};
use crate::device::stack::Stack;
use crate::device::{DeviceEvent, Events};
use crate::event::EventHeap;
use crate::log::Logs;
use crate::machine::cost::CostSink;
use crate::machine::cpu::{Cpu, Spin, TaskId, Work};
use crate::machine::lock::{Ask, Lock};
use crate::machine::poll::PolledQueues;
use crate::measure::JobStats;
use crate::observe::Observer;
use crate::profile::MachineProfile;
use crate::replay::{Player, TraceError};
use crate::task::{Plan, Taken, Task};
use blockyard::bio::{self, Bio};
use blockyard::driver::{Device, Finished};
use blockyard::host::Host;
use blockyard::policy::{Model as Locking, Policies};
use blockyard::request::Ended;
use blockyard::request_queue::RequestQueue;
use blockyard::stats::{Histogram, StageStats};
use blockyard::status::{Status, SubmitError};
use blockyard::time::{Duration, Instant};
use blockyard::trace::Action;
use blockyard::unit::{CpuId, HctxId, QueueId};

/// The host of a world: events go to what the world counts itself, then to its observer.
pub type SimHost<O = ()> = Host<Stack, ((CostSink, StageStats), O)>;

/// How long a run goes on in which the driver takes nothing and only the queues' own timers are left:
/// many times the timeout of a request.
const PATIENCE: Duration = Duration::from_secs(600);

/// Why a stack has media.
const KEPT: &str = "what is verified is kept";

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
    /// A worker thread is there to run a hardware queue.
    Run(QueueId, HctxId),
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
    /// What would be left if the power went? Asked again after this, unless it is zero.
    PowerCut(Duration),
}

/// Which locks the design's work takes.
#[derive(Clone, Copy, Debug)]
struct Locks {
    submitting: bool,
    completing: bool,
}

impl Locks {
    /// T3.
    const fn are_taken_by(self, work: &Work) -> bool {
        match work {
            Work::Complete { .. } | Work::Look(_) => self.completing,
            Work::Run { .. } | Work::Step(_) => self.submitting,
        }
    }
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
    polled: PolledQueues,
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

/// A trace that is replayed.
#[derive(Debug)]
struct Replaying {
    player: Player,
    /// When the next records are scheduled to be handed out.
    scheduled: Option<Instant>,
    /// The tasks know that there are no more.
    ended: bool,
    /// How much later than its trace says each record was issued, nanoseconds.
    late_ns: Histogram,
    error: Option<TraceError>,
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
    /// Nothing more can happen, and jobs are not done: a defect of the design or of Blockyard.
    Stuck,
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
            locks: Locks { submitting: single || elevator, completing: single },
            host,
            polls: vec![None; queues.len()],
            deferred: vec![vec![false; worker_cpu.len()]; queues.len()],
            queues,
            worker_cpu,
            polled,
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

    /// Hands the records of `player` to the tasks, which are added after this.
    pub fn replay(&mut self, player: Player) {
        self.replay = Some(Replaying {
            player,
            scheduled: None,
            ended: false,
            late_ns: Histogram::new(),
            error: None,
        });
        self.schedule_play(Instant::ZERO);
    }

    /// Of a replay: how much later than its trace says each record was issued, nanoseconds.
    #[must_use]
    pub fn late_ns(&self) -> Option<&Histogram> {
        self.replay.as_ref().map(|replay| &replay.late_ns)
    }

    /// What is wrong with the trace, after [`Failure::Trace`].
    #[must_use]
    pub fn trace_error(&self) -> Option<&TraceError> {
        self.replay.as_ref().and_then(|replay| replay.error.as_ref())
    }

    /// Checks the queues' accounts after every piece of work; slow.
    pub const fn check_every_step(&mut self) {
        self.self_check = true;
    }

    /// Holds what is on the media of the stack, which keeps them, against what ought to be.
    pub fn verify(&mut self, verifier: Verifier) {
        self.verifier = Some(Box::new(verifier));
    }

    /// Asks at `at` what would be left if the power went, and then after each `period` unless that
    /// is zero: at most once with a period. [`Self::verify`] comes first.
    pub fn cut_power(&mut self, at: Instant, period: Duration) {
        self.events.push(at, Event::PowerCut(period));
    }

    /// What was verified, if anything is: with what is on the media now. All bios have ended.
    #[must_use]
    pub fn verified(&self) -> Option<Verified> {
        let verifier = self.verifier.clone()?;
        Some(verifier.finish(self.host.driver.media().expect(KEPT), self.now))
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

    /// Forgets at `from` what was counted of the machine and the device until then.
    pub fn measure_from(&mut self, from: Instant) {
        self.measure_from = from;
        if from > Instant::ZERO {
            self.events.push(from, Event::Measure);
        }
    }

    /// All jobs have ended: if they did so before measuring began, nothing was measured.
    pub fn end_measuring(&mut self) {
        if self.now < self.measure_from {
            self.forget();
        }
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
            0 => Failure::Stuck,
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
                self.give(cpu, Work::Step(id));
            }
            Event::Alarm(id) => {
                let task = &mut self.tasks[id.0 as usize];
                let cpu = task.cpu;
                if task.alarm(self.now) {
                    self.give(cpu, Work::Step(id));
                }
            }
            Event::Play => self.play(),
            Event::Run(queue, hctx) => {
                self.give(self.worker_cpu[hctx.index()], Work::Run { queue, hctx });
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
                self.take_finished();
            }
            Event::Layers => {
                self.layers_at = self.layers_at.filter(|at| *at > self.now);
                self.take_finished();
            }
            Event::Measure => self.forget(),
            Event::PowerCut(period) => self.power_cut(period),
        }
    }

    fn power_cut(&mut self, period: Duration) {
        let verifier = self.verifier.as_mut().expect("whoever cuts the power verifies");
        verifier.power_cut(self.host.driver.media_mut().expect(KEPT), self.now);
        // Where nothing else is to come, nothing will ever be left but the same.
        let goes_on = self.next_event.is_some() || !self.events.is_empty();
        if period > Duration::ZERO && goes_on {
            self.cut_power(self.now + period, period);
        }
    }

    fn forget(&mut self) {
        self.totals = Totals::default();
        self.host.sink.0.1.clear();
        self.host.driver.model_mut().forget_activity(self.now);
        for cpu in &mut self.cpus {
            cpu.busy = Duration::ZERO;
            if let Some(spin) = &mut cpu.polling {
                spin.counted = self.now;
            }
        }
    }

    /// Hands out what has to be known now; the tasks it is for run from now on.
    fn play(&mut self) {
        let Some(replay) = &mut self.replay else { return };
        if replay.scheduled != Some(self.now) {
            return; // It was done earlier, at an instant scheduled later.
        }
        replay.scheduled = None;
        let mut woken = Vec::new();
        loop {
            match replay.player.take(self.now) {
                Ok(Some((id, delivery))) => {
                    if self.tasks[id.0 as usize].deliver(&delivery) {
                        woken.push(id);
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    replay.error = Some(error);
                    self.failure.get_or_insert(Failure::Trace);
                    return;
                }
            }
        }
        if replay.player.ended() && !replay.ended {
            replay.ended = true;
            let ends = |task: &mut Task| task.end_of_records().then_some(task.id);
            woken.extend(self.tasks.iter_mut().filter_map(ends));
        }
        let next_at = replay.player.next_at();
        for id in woken {
            self.give(self.tasks[id.0 as usize].cpu, Work::Step(id));
        }
        if let Some(at) = next_at {
            self.schedule_play(at.max(self.now));
        }
    }

    fn schedule_play(&mut self, at: Instant) {
        let Some(replay) = &mut self.replay else { return };
        if replay.scheduled.is_none_or(|earlier| at < earlier) {
            replay.scheduled = Some(at);
            self.events.push(at, Event::Play);
        }
    }

    /// A task has submitted a record that its trace issued at `at`.
    fn replayed(&mut self, at: Instant) {
        let Some(replay) = &mut self.replay else { return };
        replay.late_ns.record(self.now.since(at).as_ns());
        let room = replay.player.submitted();
        let earlier = replay.player.reached(at, self.now);
        if room || earlier {
            self.schedule_play(self.now);
        }
    }

    /// A queue's own time has come: what it wants to run is left to workers.
    fn poll(&mut self, queue: QueueId) {
        self.polls[queue.index()] = None;
        self.follow_up(queue, true);
    }

    /// Whether the driver has taken nothing for [`PATIENCE`], and nothing is to come but what queues
    /// do by themselves: asking the driver again for what it never ends.
    fn gives_up(&mut self) -> bool {
        let issued = self.host.sink.0.1.count(Action::Issue);
        if self.last_issue.0 != issued {
            self.last_issue = (issued, self.now);
        }
        self.now.since(self.last_issue.1) > PATIENCE && self.next_event.is_none() && {
            self.events.pending()
        }
        .all(|event| matches!(event, Event::Poll(_)))
    }

    fn schedule_poll(&mut self, queue: QueueId) {
        let Some(at) = self.queues[queue.index()].poll_at() else { return };
        let scheduled = &mut self.polls[queue.index()];
        if scheduled.is_none_or(|earlier| at < earlier) {
            *scheduled = Some(at);
            self.events.push(at.max(self.now), Event::Poll(queue));
        }
    }

    /// Gives a processor work; an idle one begins at once (T2).
    fn give(&mut self, cpu: CpuId, work: Work) {
        let state = &mut self.cpus[cpu.index()];
        state.push(work);
        if state.running {
            return;
        }
        state.running = true;
        if state.busy_until > self.now {
            let at = state.busy_until;
            self.soon(at, Event::CpuFree(cpu));
        } else {
            self.next_work(cpu);
        }
    }

    fn next_work(&mut self, cpu: CpuId) {
        self.end_spin(cpu);
        let Some(work) = self.cpus[cpu.index()].take_work() else {
            return self.spin_or_idle(cpu);
        };
        if !self.locks.are_taken_by(&work) {
            return self.perform(cpu, work);
        }
        match self.lock.ask(cpu, self.now) {
            Ask::Granted => self.perform(cpu, work),
            Ask::Wait(free_at) => {
                self.cpus[cpu.index()].spinning = Some((work, self.now));
                if let Some(at) = free_at {
                    self.events.push(at, Event::LockFree);
                }
            }
        }
    }

    /// A processor has nothing to do but to look for polled completions, if anybody wants that
    /// (T5).
    fn spin_or_idle(&mut self, cpu: CpuId) {
        let looker = self.cpus[cpu.index()].looker();
        if let Some(task) = looker.filter(|_| self.polled.has_for(cpu)) {
            return self.perform(cpu, Work::Look(task));
        }
        let state = &mut self.cpus[cpu.index()];
        state.running = false;
        state.polling = looker.map(|task| Spin { task, since: self.now, counted: self.now });
    }

    /// A processor turns from spinning to something else.
    fn end_spin(&mut self, cpu: CpuId) {
        let Some(spin) = self.cpus[cpu.index()].polling.take() else { return };
        let spun = self.now.since(spin.counted);
        self.cpus[cpu.index()].busy += spun;
        self.totals.polling += spun;
        self.totals.cpu += spun;
        self.charge(spin.task, spin.counted, self.now);
        self.host.sink.1.polled(cpu, spin.since, self.now);
    }

    /// A task polled from `begin` to `end`.
    fn charge(&mut self, id: TaskId, begin: Instant, end: Instant) {
        let task = &self.tasks[id.0 as usize];
        let measured = end.since(begin.max(task.measured_from()));
        self.stats[task.stats].cpu_ns += measured.as_ns();
    }

    /// When the look after the one that goes on now begins, in a spin that began at `since` (T6).
    fn next_look(&self, since: Instant) -> Instant {
        let past_ns = self.now.since(since).as_ns();
        match self.machine.poll.as_ns() {
            0 => self.now,
            look_ns => since + Duration::from_ns(past_ns.div_ceil(look_ns) * look_ns),
        }
    }

    /// A polled hardware queue has completed something: whoever spins finds it (T6).
    fn put_polled(&mut self, finished: Finished) {
        self.polled.put(finished);
        for cpu in self.polled.cpus_of(finished.hctx) {
            if let Some(spin) = self.cpus[cpu.index()].polling {
                self.events.push(self.next_look(spin.since), Event::Look(cpu, spin.since));
            }
        }
    }

    /// A look from `cpu`.
    fn look(&mut self, cpu: CpuId) -> Duration {
        let mut cost = self.machine.poll;
        while let Some(finished) = self.polled.take(cpu) {
            cost += self.complete(finished, false);
        }
        cost
    }

    /// T3.
    fn grant_lock(&mut self) {
        let Some(cpu) = self.lock.grant() else { return };
        if let Some((work, since)) = self.cpus[cpu.index()].spinning.take() {
            let spun = self.now.since(since);
            self.host.sink.1.spun(cpu, since, self.now);
            self.cpus[cpu.index()].busy += spun;
            self.totals.spinning += spun;
            self.totals.cpu += spun;
            self.perform(cpu, work);
        }
        if let Some(at) = self.lock.next_grant() {
            self.events.push(at, Event::LockFree);
        }
    }

    /// Does a piece of work and lets what follows from it begin when it ends.
    fn perform(&mut self, cpu: CpuId, work: Work) {
        self.host.sink.1.work_begins(cpu, &work, self.now);
        let mut cost = Duration::ZERO;
        if self.cpus[cpu.index()].switches_to(&work) {
            cost += self.machine.context_switch;
            self.totals.context_switches += 1;
            if let Work::Step(task) | Work::Look(task) = work {
                let task = &self.tasks[task.0 as usize];
                let counts = self.now >= task.measured_from();
                self.stats[task.stats].context_switches += u64::from(counts);
            }
        }
        cost += match work {
            Work::Complete { finished, interrupt } => self.complete(finished, interrupt),
            Work::Run { queue, hctx } => self.run_deferred(queue, hctx),
            Work::Step(task) => self.step(task),
            Work::Look(_) => self.look(cpu),
        };
        while let Some(finished) = self.host.driver.next_finished(self.now) {
            self.host.sink.1.device_done(&finished, self.now);
            if self.polled.contains(finished.hctx) {
                self.put_polled(finished);
            } else {
                cost += self.complete(finished, false);
            }
        }
        let (free_ns, locked_ns) = self.host.sink.0.0.take();
        let locked = Duration::from_ns(locked_ns);
        if self.locks.are_taken_by(&work) {
            self.lock.hold(self.now, locked);
        }
        cost += Duration::from_ns(free_ns) + locked;
        match work {
            Work::Step(task) => cost += self.end_step(task, cost),
            Work::Look(task) => self.charge(task, self.now, self.now + cost),
            Work::Complete { .. } | Work::Run { .. } => {}
        }
        let end = self.now + cost;
        self.host.sink.1.work_ends(end);
        self.cpus[cpu.index()].busy += cost;
        self.totals.cpu += cost;
        self.host.driver.model_mut().start(end, &mut self.device_events);
        self.schedule_device();
        self.schedule_layers();
        if self.self_check {
            self.host.driver.call_ended();
            self.queues.iter().for_each(|queue| queue.self_check(&self.host));
        }
        self.cpus[cpu.index()].busy_until = end;
        if self.cpus[cpu.index()].has_work() {
            self.soon(end, Event::CpuFree(cpu));
        } else {
            self.cpus[cpu.index()].running = false;
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

    /// Schedules what the device said.
    fn schedule_device(&mut self) {
        while let Some((at, event)) = self.device_events.pop_front() {
            self.soon(at, Event::Device(event));
        }
    }

    /// What the device is done with goes to the processors that submitted it.
    fn take_finished(&mut self) {
        let interrupt = self.host.driver.model().interrupts();
        while let Some(finished) = self.host.driver.next_finished(self.now) {
            self.host.sink.1.device_done(&finished, self.now);
            self.deliver(finished, interrupt);
        }
        self.schedule_layers();
    }

    fn schedule_layers(&mut self) {
        let Some(at) = self.host.driver.poll_at() else { return };
        if self.layers_at.is_none_or(|earlier| at < earlier) {
            self.layers_at = Some(at);
            self.events.push(at.max(self.now), Event::Layers);
        }
    }

    fn deliver(&mut self, finished: Finished, interrupt: bool) {
        if self.polled.contains(finished.hctx) {
            return self.put_polled(finished);
        }
        let queue = &self.queues[finished.queue.index()];
        let request = queue.in_flight_request(&self.host, finished.hctx, finished.tag);
        let cpu = request.expect("a device finishes what it owns").cpu;
        self.give(cpu, Work::Complete { finished, interrupt });
    }

    fn complete(&mut self, finished: Finished, interrupt: bool) -> Duration {
        let queue = finished.queue;
        let target = &mut self.queues[queue.index()];
        let known = target.conclude(&mut self.host, &finished, self.now);
        known.expect("a device finishes what it owns, once");
        let cost = if interrupt { self.machine.interrupt } else { Duration::ZERO };
        cost + self.follow_up(queue, true)
    }

    /// A bio has ended: its task has a result, and is woken if it waits for it.
    fn end_io(&mut self, cookie: u64, status: Status) -> Duration {
        let (task, slot) = split_cookie(cookie);
        if let Some(replay) = &mut self.replay
            && let Some(end) = self.tasks[task.0 as usize].recorded_end(slot)
            && replay.player.reached(end, self.now)
        {
            self.schedule_play(self.now);
        }
        if self.tasks[task.0 as usize].completed(slot, status, self.now) {
            return self.wake(task);
        }
        Duration::ZERO
    }

    fn wake(&mut self, task: TaskId) -> Duration {
        if self.ends_polling(task) {
            return Duration::ZERO;
        }
        self.totals.wakeups += 1;
        self.soon(self.now + self.machine.wakeup, Event::Wake(task));
        self.machine.wakeup
    }

    /// Whether the task polled rather than slept: then it goes on where a look of its processor
    /// ends.
    fn ends_polling(&mut self, task: TaskId) -> bool {
        let state = &mut self.cpus[self.tasks[task.0 as usize].cpu.index()];
        let Some(at) = state.pollers.iter().position(|poller| *poller == task) else {
            return false;
        };
        state.pollers.remove(at);
        let goes_on = state.polling.map_or(self.now, |spin| self.next_look(spin.since));
        self.soon(goes_on, Event::Wake(task));
        true
    }

    fn run_deferred(&mut self, queue: QueueId, hctx: HctxId) -> Duration {
        self.deferred[queue.index()][hctx.index()] = false;
        self.run(queue, hctx);
        self.follow_up(queue, false)
    }

    fn run(&mut self, queue: QueueId, hctx: HctxId) {
        self.totals.runs += 1;
        let _ = self.queues[queue.index()].run(&mut self.host, hctx, self.now);
    }

    /// Does or schedules what a call on `queue` left to be done, there and at queues that it made
    /// room for. After a completion every run is left to a worker.
    fn follow_up(&mut self, queue: QueueId, after_completion: bool) -> Duration {
        let mut cost = self.follow_up_at(queue, after_completion);
        while let Some((other, hctx)) = self.host.next_starved() {
            self.run(other, hctx);
            cost += self.follow_up_at(other, true);
        }
        cost
    }

    /// Runs, results, wake-ups and polls of one queue.
    fn follow_up_at(&mut self, queue: QueueId, after_completion: bool) -> Duration {
        while let Some(run) = self.queues[queue.index()].next_run(&mut self.host, self.now) {
            if run.deferred || after_completion {
                self.defer_run(queue, run.hctx, self.now);
            } else {
                self.run(queue, run.hctx);
            }
        }
        let mut cost = Duration::ZERO;
        while let Some(ended) = self.queues[queue.index()].next_ended() {
            self.verify_end(queue, &ended);
            cost += self.end_io(ended.bio.cookie, ended.status);
        }
        while let Some(waiter) = self.next_woken(queue) {
            cost += self.wake(TaskId(u32::try_from(waiter).expect("waiters are tasks")));
        }
        self.schedule_poll(queue);
        cost
    }

    fn verify_end(&mut self, queue: QueueId, ended: &Ended) {
        if let Some(verifier) = &mut self.verifier {
            verifier.ended(self.host.driver.media_mut().expect(KEPT), queue, ended, self.now);
        }
    }

    fn next_woken(&mut self, queue: QueueId) -> Option<u64> {
        self.queues[queue.index()].next_woken().or_else(|| self.host.next_woken())
    }

    /// T4.
    fn defer_run(&mut self, queue: QueueId, hctx: HctxId, from: Instant) {
        let pending = &mut self.deferred[queue.index()][hctx.index()];
        if !core::mem::replace(pending, true) {
            self.events.push(from + self.machine.run_delay, Event::Run(queue, hctx));
        }
    }

    /// A task takes results and asks for more.
    fn step(&mut self, id: TaskId) -> Duration {
        let mut cost = self.take_results(id);
        let submitted = self.submit_batch(id, &mut cost);
        if submitted > 0 {
            cost += self.machine.syscall;
        }
        cost
    }

    /// The task takes up to as many results as it does at once.
    fn take_results(&mut self, id: TaskId) -> Duration {
        let at = id.0 as usize;
        if !self.tasks[at].takes_now() {
            return Duration::ZERO;
        }
        let mut results = 0;
        while results < self.tasks[at].take_max() {
            let Some(taken) = self.tasks[at].take_completed(self.now) else { break };
            self.count(id, &taken);
            results += 1;
        }
        let task = &self.tasks[at];
        if self.now >= task.measured_from() {
            self.stats[task.stats].depths.completed(results);
        }
        if self.tasks[at].is_async() { self.machine.syscall } else { Duration::ZERO }
    }

    fn count(&mut self, id: TaskId, taken: &Taken) {
        let task = &self.tasks[id.0 as usize];
        let failed = taken.status != Status::Ok;
        if failed && !task.goes_on_after_error_of(taken.op) {
            self.failure.get_or_insert(Failure::Io(id, taken.status));
        }
        if taken.completed < task.measured_from() {
            return;
        }
        let (slat, clat) = (taken.slat.as_ns(), taken.clat.as_ns());
        let stats = &mut self.stats[task.stats];
        if failed {
            stats.errors += 1;
            stats.first_error.get_or_insert(taken.status);
            return;
        }
        let Some(op) = taken.op else {
            stats.sync_lat_ns.get_or_insert_default().record(slat + clat);
            return;
        };
        let Some(measured) = stats.op_mut(op) else { return };
        self.totals.untaken += self.now.since(taken.completed);
        measured.ios += 1;
        measured.bytes += u64::from(taken.len_bytes);
        measured.slat_ns.record(slat);
        measured.clat_ns.record(clat);
        measured.lat_ns.record(slat + clat);
        let from_begin = self.now.since(task.measured_from());
        self.sample(id, self.now);
        self.tasks[id.0 as usize].meter.add(op, taken.len_bytes);
        self.logs.io(id, op, taken, from_begin);
    }

    /// Takes the samples of a task that are due at `now`.
    fn sample(&mut self, id: TaskId, now: Instant) {
        while let Some(rate) = self.tasks[id.0 as usize].meter.next(now) {
            self.logs.rate(id, rate);
        }
    }

    /// A task has ended at `end`: nothing more is measured of it.
    fn end_measuring_of(&mut self, id: TaskId, end: Instant) {
        let task = &self.tasks[id.0 as usize];
        let (stats, from) = (task.stats, task.measured_from());
        if end >= from {
            self.sample(id, end);
            self.logs.end(id, end.since(from));
        }
        self.tasks[id.0 as usize].meter.end(&mut self.stats[stats]);
    }

    /// Submits as many I/Os as the task does in one call, and says how many. What each leaves to be
    /// done is done before the next, at a cost that is added to `cost`.
    fn submit_batch(&mut self, id: TaskId, cost: &mut Duration) -> u32 {
        let at = id.0 as usize;
        let (cpu, call) = (self.tasks[at].cpu, self.tasks[at].call());
        let (mut submitted, mut syncs) = (0, 0);
        let mut used = None;
        while submitted < call.left {
            let Some((queue, bio)) = self.tasks[at].next_bio(self.now) else { break };
            if used.is_some_and(|last| last != queue) {
                break;
            }
            let target = &mut self.queues[queue.index()];
            if call.plugs && used.is_none() {
                target.plug(cpu);
            }
            used = Some(queue);
            let taken = self.submit(queue, cpu, bio);
            match taken {
                Ok(()) => {
                    let recorded_at = self.tasks[at].recorded_at();
                    let waited = self.tasks[at].submitted(self.now);
                    self.totals.tag_wait += waited;
                    self.totals.tag_waits += u64::from(waited > Duration::ZERO);
                    submitted += 1;
                    syncs += u32::from(bio.op == bio::Op::Flush);
                    if let Some(recorded_at) = recorded_at {
                        self.replayed(recorded_at);
                    }
                    *cost += self.follow_up(queue, false);
                }
                Err(SubmitError::NoTag) => {
                    self.tasks[at].sleep_for_tag(self.now);
                    self.queues[queue.index()]
                        .wait(&mut self.host, cpu, &bio, u64::from(id.0), self.now)
                        .expect("there is room for every task to wait");
                    break;
                }
                Err(reason) => {
                    self.failure.get_or_insert(Failure::Refused(id, reason));
                    break;
                }
            }
        }
        let task = &self.tasks[at];
        if submitted > 0 && self.now >= task.measured_from() {
            let depths = &mut self.stats[task.stats].depths;
            depths.submitted(submitted, submitted - syncs, task.outstanding());
        }
        if let Some(queue) = used.filter(|_| call.plugs) {
            self.queues[queue.index()].unplug(&mut self.host, cpu, self.now);
        }
        if let Some(queue) = used {
            *cost += self.follow_up(queue, false);
        }
        if !self.tasks[at].waits_for_tag() {
            self.tasks[at].call_ended();
        }
        submitted
    }

    fn submit(&mut self, queue: QueueId, cpu: CpuId, bio: Bio) -> Result<(), SubmitError> {
        let target = &mut self.queues[queue.index()];
        let Some(verifier) = &mut self.verifier else {
            return target.submit(&mut self.host, cpu, bio, self.now);
        };
        verifier.submitting(self.host.driver.media_mut().expect(KEPT), &bio);
        let taken = target.submit(&mut self.host, cpu, bio, self.now);
        match taken {
            Ok(()) => verifier.submitted(queue, &bio),
            Err(_) => verifier.refused(self.host.driver.media_mut().expect(KEPT), &bio),
        }
        taken
    }

    /// The step of a task cost `cost`: what it does from then on. Returns how long it goes on to
    /// compute.
    fn end_step(&mut self, id: TaskId, cost: Duration) -> Duration {
        let end = self.now + cost;
        let task = &mut self.tasks[id.0 as usize];
        task.step_ended(end);
        let stats = &mut self.stats[task.stats];
        let plan = if task.waits_for_tag() { Plan::AwaitCompletions } else { task.plan(end) };
        let spin = task.take_spin();
        if self.now >= task.measured_from() {
            stats.cpu_ns += (cost + spin).as_ns();
        }
        match plan {
            Plan::Go => self.cpus[task.cpu.index()].push(Work::Step(id)),
            Plan::AwaitCompletions | Plan::AwaitRecord => {
                if task.polls() {
                    self.cpus[task.cpu.index()].pollers.push(id);
                }
            }
            Plan::AwaitInstant(due) => self.events.push(due, Event::Alarm(id)),
            Plan::End => {
                stats.ended = stats.ended.max(end);
                self.alive -= 1;
                self.last_end = end;
                if task.ends_all {
                    self.tasks.iter_mut().for_each(|task| task.stop(end));
                }
                self.end_measuring_of(id, end);
            }
        }
        spin
    }
}

/// The task and slot that a cookie names.
#[expect(clippy::cast_possible_truncation, reason = "both halves of 64 bits are 32 bits")]
const fn split_cookie(cookie: u64) -> (TaskId, u32) {
    (TaskId((cookie >> 32) as u32), cookie as u32)
}
