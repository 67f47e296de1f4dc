//! The driver of an MMC host on the processors of a world: its interrupt handler, its dispatching
//! thread and its deferred work.
//!
//! [`Contexts`] decides what each context does next. This module gives the contexts processors, and
//! charges their costs.

use super::actor::Actor;
use super::standstill::HostStandstill;
use super::{Event, World};
use crate::machine::cpu::{Cpu, idle_cpu};
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, HctxId, QueueId};
use blockyard_devices::mmc::contexts::{
    Contexts, Doing, Effect, Sleepers, Step, THREADS, Turn, thread_index,
};
use blockyard_devices::mmc::host::MmcHost;
use blockyard_devices::profile::MachineProfile;
use blockyard_devices::terms::Dispatch;
use blockyard_mmc::block::{Context, DISABLE_LIMIT};
use blockyard_trace::observe::{Observer, Runner, TaskId, Work};

/// The driver's state, apart from that of its host.
#[derive(Debug)]
pub(super) struct MmcDriver {
    contexts: Contexts,
    /// The task that sleeps in the driver.
    submitter: Option<TaskId>,
    /// The processors on which the threads run or last ran.
    thread_cpus: [CpuId; 2],
    /// Hundredths of a wake-up that are owed to the waker's processor.
    owed_to_waker: u32,
    /// The work for which each processor pays now.
    paying: Vec<Option<Doing>>,
}

/// The events of an MMC host's driver.
#[derive(Clone, Copy, Debug)]
pub(super) enum DriverEvent {
    /// A thread runs, for the first time since it was woken.
    ThreadRuns {
        /// The thread.
        thread: Context,
        /// Whether its processor has been chosen, so that it does not look for an idle one.
        bound: bool,
    },
    /// The system goes to sleep for this long.
    Suspend(Duration),
    /// The system wakes up.
    Resume,
}

impl MmcDriver {
    pub(super) fn new(machine: &MachineProfile) -> Self {
        Self {
            contexts: Contexts::new(machine),
            submitter: None,
            thread_cpus: [CpuId(machine.cpus - 1); 2],
            owed_to_waker: 0,
            paying: (0..machine.cpus).map(|_| None).collect(),
        }
    }

    /// Returns the processor on which `thread` runs or last ran.
    fn cpu_of(&self, thread: Context) -> CpuId {
        self.thread_cpus[thread_index(thread)]
    }

    /// Returns the processor for `thread`, which is woken at `at`: an idle one to which the other
    /// thread is not on its way.
    fn idle_cpu_for(&self, thread: Context, cpus: &[Cpu], at: Instant) -> CpuId {
        let other = if thread == Context::Thread { Context::Deferred } else { Context::Thread };
        let other_cpu = self.contexts.is_awake(other).then(|| self.cpu_of(other));
        idle_cpu(cpus, self.cpu_of(thread), |cpu| other_cpu == Some(cpu), at)
    }

    /// Whether the thread that deferred work wakes now runs on the processor of that work.
    /// `percent` of all wake-ups do, evenly spread: with 40 these are the third and the fifth of
    /// five.
    const fn runs_behind_waker(&mut self, percent: u32) -> bool {
        self.owed_to_waker += percent;
        let is_due = self.owed_to_waker >= 100;
        if is_due {
            self.owed_to_waker -= 100;
        }
        is_due
    }
}

/// A context of the driver, as an actor. Its changes come when its processor has paid for them.
#[derive(Clone, Copy, Debug)]
pub(super) struct DriverContext(Context);

impl DriverContext {
    /// Returns the context of `work`.
    ///
    /// # Panics
    ///
    /// Panics if other actors do this work.
    pub(super) fn of(work: &Work) -> Self {
        match *work {
            Work::Interrupt => Self(Context::Interrupt),
            Work::MmcDriver(context) => Self(context),
            _ => unreachable!("{work:?} is not work of an MMC host's driver"),
        }
    }

    const fn work(self) -> Work {
        match self.0 {
            Context::Interrupt => Work::Interrupt,
            thread => Work::MmcDriver(thread),
        }
    }
}

impl Actor for DriverContext {
    fn begin_paying(&mut self, world: &mut World<'_>, cpu: CpuId) -> bool {
        let switch_cost = world.switch(cpu, &self.work());
        let (driver, host) = world.mmc_parts();
        if self.0 == Context::Interrupt {
            let (doing, interrupt_cost) = driver.contexts.take_interrupt(host);
            world.pay_for(cpu, doing, switch_cost + interrupt_cost);
            return true;
        }
        driver.contexts.piece_begins(self.0);
        if switch_cost > Duration::ZERO {
            // The switch is a piece of its own. The thread looks for work when it is there.
            world.pay_for(cpu, Doing::Enter(self.0), switch_cost);
        } else {
            world.take_turn(cpu, self.0);
        }
        true
    }
}

/// The timer that wakes threads of the driver, as an actor. The wake-up itself is a part of every
/// piece of work.
#[derive(Clone, Copy, Debug)]
pub(super) struct DriverTimer;

impl Actor for DriverTimer {
    fn act(&mut self, world: &mut World<'_>, _cpu: CpuId) -> Duration {
        world.machine.interrupt
    }
}

impl World<'_> {
    /// Returns the state of the MMC host and of its driver's threads, if the device is one.
    pub(super) fn host_standstill(&self) -> Option<HostStandstill> {
        let host = self.host.driver.model().mmc()?;
        let driver = self.mmc.as_ref()?;
        Some(HostStandstill {
            idle: host.idle(),
            awake: THREADS.map(|thread| driver.contexts.is_awake(thread)),
            pending: THREADS.map(|thread| host.pending(thread, self.now)),
        })
    }

    /// Takes the driver's work that `cpu` has paid for, if there is some.
    #[inline]
    pub(super) fn take_paid(&mut self, cpu: CpuId) -> Option<Doing> {
        self.mmc.as_mut()?.paying[cpu.index()].take()
    }
}

impl World<'_> {
    /// Returns the driver of the MMC host, and the host.
    ///
    /// # Panics
    ///
    /// Panics if the device is no MMC host.
    fn mmc_parts(&mut self) -> (&mut MmcDriver, &mut MmcHost) {
        let driver = self.mmc.as_mut();
        let host = self.host.driver.model_mut().mmc_mut();
        (
            driver.expect("only the driver of an MMC host should act"),
            host.expect("a driver of an MMC host should have its host"),
        )
    }

    /// Makes submitting threads run the hardware queues of an MMC host themselves, and sleep in its
    /// driver.
    pub(crate) const fn let_submitters_sleep(&mut self) {
        if self.mmc.is_some() {
            self.dispatch = Dispatch::HostSubmitter;
        }
    }

    /// Lets the task that has done `work` sleep in the driver, if it is to do what `sleepers` say
    ///.
    #[inline]
    pub(super) fn enter_driver(&mut self, work: &Work, sleepers: Sleepers) {
        if self.dispatch != Dispatch::HostSubmitter {
            return;
        }
        let Work::Step(id) = *work else { return };
        let Some(driver) = &mut self.mmc else { return };
        let task = &mut self.tasks[id.0 as usize];
        // A lone request that waits in an elevator has its run left to a worker (Linux 7.3), so its
        // submitter goes on, and more requests can join it while the worker sleeps.
        let left_to_worker = driver.contexts.has_wanted_runs();
        let is_free = driver.submitter.is_none() && !task.waits_for_tag() && !left_to_worker;
        // One thread at a time does so. Another one leaves its requests in the queue, and its call
        // returns.
        if is_free && sleepers.has(Context::Thread) {
            task.sleep_in_driver();
            driver.submitter = Some(id);
            driver.contexts.enter();
        }
    }

    /// Returns the work of the task that is the dispatching thread, if it does `work` of that
    /// thread.
    #[inline]
    pub(super) fn work_of_submitter(&self, work: &Work) -> Option<Work> {
        let submitter = self.mmc.as_ref()?.submitter?;
        let is_its_own = match work {
            Work::Run { by, .. } => *by == Runner::HostThread,
            work => work.dispatches(),
        };
        is_its_own.then_some(Work::Step(submitter))
    }

    /// Lets the task in the driver return once its requests have been started.
    fn leave_driver(&mut self) {
        let Some(id) = self.mmc.as_ref().and_then(|driver| driver.submitter) else { return };
        let (driver, host) = self.mmc_parts();
        let has_work = driver.contexts.is_awake(Context::Thread)
            || driver.contexts.has_wanted_runs()
            || host.holds_dispatcher();
        // The call returns when the thread that the task has become would sleep again.
        if has_work {
            return;
        }
        driver.submitter = None;
        let task = &mut self.tasks[id.0 as usize];
        task.leave_driver();
        let cpu = task.cpu;
        self.give_work(cpu, Work::Step(id));
    }

    /// Suspends the system at `at`. The system sleeps for `span` from the instant by which an MMC
    /// host must be idle. Other devices do not notice.
    pub(crate) fn suspend(&mut self, at: Instant, span: Duration) {
        self.events.push(at, Event::Driver(DriverEvent::Suspend(span)));
    }

    pub(super) fn on_driver_event(&mut self, event: DriverEvent) {
        match event {
            DriverEvent::ThreadRuns { thread, bound } => self.on_thread_there(thread, bound),
            DriverEvent::Suspend(span) => self.suspend_host(span),
            DriverEvent::Resume => {
                let (_, host) = self.mmc_parts();
                self.totals.sleeps += u64::from(host.resume());
            }
        }
    }

    fn suspend_host(&mut self, span: Duration) {
        let now = self.now;
        let Some(host) = self.host.driver.model_mut().mmc_mut() else { return };
        host.suspend(now);
        self.events.push(now + DISABLE_LIMIT + span, Event::Driver(DriverEvent::Resume));
        self.schedule_layers();
        self.check_controller();
        self.on_host_timer();
    }

    /// Handles possible news of an MMC host's controller.
    #[inline]
    pub(super) fn check_controller(&mut self) {
        if self.mmc.is_some() && self.mmc_parts().1.has_news() {
            self.drain_controller();
        }
    }

    /// Reports the bus uses that are over, and hands an interrupt to its processor.
    fn drain_controller(&mut self) {
        let host = self.host.driver.model_mut().mmc_mut();
        let host = host.expect("only an MMC host should have a controller with news");
        while let Some(used) = host.next_use() {
            self.host.sink.1.bus_used(&used);
        }
        if host.take_interrupt() {
            let cpu = host.interrupt_cpu();
            self.give_work(cpu, Work::Interrupt);
        }
    }

    /// Makes a call that the driver or a queue wanted at this instant. If the call must wake a
    /// thread, the processor on which that thread slept takes the timer's interrupt, wakes it and
    /// pays for both.
    pub(super) fn on_host_timer(&mut self) {
        if self.mmc.is_none() {
            return;
        }
        // One interrupt wakes all of them, on the processor of the first.
        match self.driver_sleepers().first() {
            Some(thread) => self.give_work(self.driver_cpu(thread), Work::Timer),
            None => self.give_wanted_runs(self.now),
        }
    }

    /// Returns the processor on which a thread of the driver runs or last ran.
    fn driver_cpu(&self, thread: Context) -> CpuId {
        self.mmc.as_ref().expect("only an MMC host should have such threads").cpu_of(thread)
    }

    /// Returns the sleeping threads of the driver that have work.
    #[inline]
    pub(super) fn driver_sleepers(&mut self) -> Sleepers {
        if self.mmc.is_none() {
            return Sleepers::default();
        }
        let now = self.now;
        let (driver, host) = self.mmc_parts();
        driver.contexts.sleepers(host, now)
    }

    /// Returns the cost of waking `sleepers` to the processor that wakes them.
    #[inline]
    pub(super) fn cost_of_waking(&self, sleepers: Sleepers) -> Duration {
        self.mmc.as_ref().map_or(Duration::ZERO, |driver| driver.contexts.cost_of_waking(sleepers))
    }

    /// Wakes `sleepers` at `at`, when the wake-up has been paid for, and hands the wanted runs to
    /// their thread.
    #[inline]
    pub(super) fn wake_driver(&mut self, sleepers: Sleepers, at: Instant) {
        if self.mmc.as_ref().is_some_and(|driver| driver.contexts.has_to_wake(sleepers)) {
            self.wake_sleepers(sleepers, at, None);
        }
    }

    /// Wakes `sleepers` at `at`. `worker` is the processor of the deferred work that wakes them, if
    /// it does.
    fn wake_sleepers(&mut self, mut sleepers: Sleepers, at: Instant, worker: Option<CpuId>) {
        loop {
            let (driver, host) = self.mmc_parts();
            let Some(woken) = driver.contexts.wake_next(host, &mut sleepers, at) else { break };
            let submitter = driver.submitter.filter(|_| woken.thread == Context::Thread);
            let driver = self.mmc.as_mut().expect("a driver whose threads are woken");
            // The submitter in the driver is that thread, and does not move.
            let chosen = match (submitter, worker) {
                (Some(id), _) => Some(self.tasks[id.0 as usize].cpu),
                // Workers of the multi-queue model are bound to their processors, and no thread
                // runs behind them.
                (None, Some(cpu)) if self.locking.completing => {
                    driver.runs_behind_waker(self.machine.wake_on_waker).then_some(cpu)
                }
                (None, _) => None,
            };
            let cpu = chosen.unwrap_or_else(|| driver.idle_cpu_for(woken.thread, &self.cpus, at));
            driver.thread_cpus[thread_index(woken.thread)] = cpu;
            self.totals.wakeups += u64::from(!woken.enters);
            if !woken.enters {
                self.count_interrupt_of(cpu);
            }
            if let Some(begins_at) = woken.begins_at {
                let bound = chosen.is_some();
                let event = DriverEvent::ThreadRuns { thread: woken.thread, bound };
                self.schedule_soon(begins_at, Event::Driver(event));
            }
        }
        self.give_wanted_runs(at);
    }

    /// Gives a woken thread to its processor. If that has got other work meanwhile, an idle one
    /// takes the thread, unless it is bound.
    fn on_thread_there(&mut self, thread: Context, bound: bool) {
        let driver = self.mmc.as_mut().expect("a driver whose threads run");
        // The processor was idle when the thread was woken, and may have got other work on the way.
        if !bound {
            let cpu = driver.idle_cpu_for(thread, &self.cpus, self.now);
            driver.thread_cpus[thread_index(thread)] = cpu;
        }
        let cpu = driver.cpu_of(thread);
        self.give_work(cpu, Work::MmcDriver(thread));
    }

    /// Returns the processor on which the dispatching thread runs or last ran.
    pub(super) fn dispatching_cpu(&self) -> CpuId {
        self.driver_cpu(Context::Thread)
    }

    /// Notes that the dispatching thread begins a run of a hardware queue.
    pub(super) fn begin_run_of_host(&mut self) {
        self.mmc_parts().0.contexts.piece_begins(Context::Thread);
    }

    /// Leaves a run of a hardware queue to the dispatching thread.
    pub(super) fn want_run(&mut self, queue: QueueId, hctx: HctxId) {
        self.mmc_parts().0.contexts.want_run(queue, hctx);
    }

    /// Hands the wanted runs to the dispatching thread, which is awake, from `at` on.
    fn give_wanted_runs(&mut self, at: Instant) {
        while let Some(driver) = &mut self.mmc
            && let Some((queue, hctx, begins_at)) = driver.contexts.next_run(at)
        {
            self.schedule_soon(begins_at, Event::Run(Runner::HostThread, queue, hctx));
        }
    }

    /// Plans what follows a run by the dispatching thread. The thread stays awake until the run has
    /// been paid for, and then looks for the work that the run brought.
    pub(super) fn plan_after_run(&mut self, cpu: CpuId) {
        self.mmc_parts().0.contexts.piece_follows(Context::Thread);
        self.cpus[cpu.index()].push_next(Work::MmcDriver(Context::Thread));
    }

    /// Applies the driver's work that `cpu` has now paid for.
    pub(super) fn take_effect(&mut self, cpu: CpuId, doing: Doing) {
        let context = doing.context();
        let now = self.now;
        let driver = self.mmc.as_ref().expect("a driver that acts");
        let host = self.host.driver.model_mut().mmc_mut();
        let host = host.expect("a processor should work only for an MMC host");
        match driver.contexts.take_effect(doing, host, now, &mut self.device_events) {
            Effect::Nothing => {}
            Effect::Controller => {
                self.schedule_device();
                self.schedule_layers();
            }
            Effect::Requests => {
                self.schedule_device();
                self.take_finished();
            }
        }
        self.take_turn(cpu, context);
    }

    /// Gives `context` a turn on `cpu`. If the context has no work, `cpu` turns to other work. A
    /// thread stands aside for completions, which come first.
    fn take_turn(&mut self, cpu: CpuId, context: Context) {
        let is_thread = context != Context::Interrupt;
        let stands_aside = is_thread && self.cpus[cpu.index()].has_completions();
        let mut turn = Turn::new(context, stands_aside);
        loop {
            let now = self.now;
            let (driver, host) = self.mmc_parts();
            match driver.contexts.next(&mut turn, host, now) {
                Step::LookAtController => self.drain_controller(),
                Step::Wake(sleepers, at) => {
                    let worker = (context == Context::Deferred).then_some(cpu);
                    self.wake_sleepers(sleepers, at, worker);
                }
                Step::Do(doing, cost) => return self.pay_for(cpu, doing, cost),
                // The thread continues after the completions, and before other threads.
                Step::Again => {
                    self.cpus[cpu.index()].push_next(Work::MmcDriver(context));
                    break;
                }
                Step::Rest => break,
            }
        }
        self.leave_driver();
        self.next_work(cpu);
    }

    /// Charges `cost` to `cpu` for `doing`, which takes effect afterwards.
    fn pay_for(&mut self, cpu: CpuId, doing: Doing, cost: Duration) {
        if cost == Duration::ZERO {
            return self.take_effect(cpu, doing);
        }
        let work = match &doing {
            Doing::Interrupt | Doing::Wake(Context::Interrupt) => Work::Interrupt,
            Doing::Enter(context) | Doing::Wake(context) => Work::MmcDriver(*context),
            Doing::Act(act, _) => Work::MmcDriverStep(act.kind(), act.slot()),
        };
        self.host.sink.1.work_begins(cpu, &work, self.now);
        let end = self.now + cost;
        self.host.sink.1.work_ends(end);
        self.totals.cpu += cost;
        let state = &mut self.cpus[cpu.index()];
        debug_assert!(state.running, "{cpu:?} pays for {doing:?} and does not run");
        state.busy += cost;
        state.busy_until = end;
        let driver = self.mmc.as_mut().expect("a driver that acts");
        let paying = &mut driver.paying[cpu.index()];
        debug_assert!(paying.is_none(), "{cpu:?} already pays for {paying:?}");
        *paying = Some(doing);
        self.schedule_soon(end, Event::CpuFree(cpu));
    }
}
