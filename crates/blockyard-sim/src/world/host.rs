//! Runs the [contexts](blockyard_devices::mmc::contexts) of an MMC host's driver on the processors
//! ([sleeping-driver-has-its-thread]).

use super::{Event, World};
use crate::machine::cpu::Cpu;
use blockyard::time::{Duration, Instant};
use blockyard::unit::CpuId;
use blockyard_devices::mmc::contexts::{
    Contexts, Doing, Effect, Sleepers, Step, Turn, thread_index,
};
use blockyard_devices::mmc::host::MmcHost;
use blockyard_devices::terms::Dispatch;
use blockyard_mmc::block::{Context, DISABLE_LIMIT};
use blockyard_trace::observe::Observer;
use blockyard_trace::observe::Runner;
use blockyard_trace::observe::Work;

impl<O: Observer> World<O> {
    /// Returns the contexts of the MMC host, and the host.
    fn contexts(&mut self) -> (&mut Contexts, &mut MmcHost) {
        let mmc = self.host.driver.model_mut().mmc_mut();
        (&mut self.contexts, mmc.expect("only an MMC host should have contexts that run"))
    }

    /// Whether the device is an MMC host, so that its driver has its own contexts.
    #[inline]
    fn host_has_contexts(&self) -> bool {
        self.dispatch != Dispatch::Direct
    }

    /// Makes submitting threads run the hardware queues of an MMC host themselves, and sleep in its driver.
    pub fn let_submitters_sleep(&mut self) {
        if self.host_has_contexts() {
            self.dispatch = Dispatch::HostSubmitter;
        }
    }

    /// Lets the task that has done `work` sleep in the driver, if it is to do what `sleepers` say
    /// ([submitter-sleeps-in-driver]).
    pub(super) fn enter_driver(&mut self, work: &Work, sleepers: Sleepers) {
        let Work::Step(id) = *work else { return };
        let task = &mut self.tasks[id.0 as usize];
        let is_free = self.in_driver.is_none() && !task.waits_for_tag();
        if self.dispatch == Dispatch::HostSubmitter && is_free && sleepers.has(Context::Thread) {
            task.sleep_in_driver();
            self.in_driver = Some(id);
            self.contexts.enter();
        }
    }

    /// Lets the task in the driver return once its requests have been started ([submitter-sleeps-in-driver]).
    fn leave_driver(&mut self) {
        let Some(id) = self.in_driver else { return };
        let (contexts, mmc) = self.contexts();
        if contexts.is_awake(Context::Thread)
            || contexts.has_wanted_runs()
            || mmc.holds_dispatcher()
        {
            return;
        }
        self.in_driver = None;
        let task = &mut self.tasks[id.0 as usize];
        task.leave_driver();
        let cpu = task.cpu;
        self.give(cpu, Work::Step(id));
    }

    /// Returns the processor of the task that is in the driver, if `thread` is that task.
    fn cpu_in_driver(&self, thread: Context) -> Option<CpuId> {
        let id = self.in_driver.filter(|_| thread == Context::Thread)?;
        Some(self.tasks[id.0 as usize].cpu)
    }

    /// Suspends the system at `at`. The system sleeps for `span` from the instant by which an MMC host must
    /// be idle. Other devices do not notice.
    pub fn suspend(&mut self, at: Instant, span: Duration) {
        self.events.push(at, Event::Suspend(span));
    }

    pub(super) fn suspend_host(&mut self, span: Duration) {
        let now = self.now;
        let Some(mmc) = self.host.driver.model_mut().mmc_mut() else { return };
        mmc.suspend(now);
        self.events.push(now + DISABLE_LIMIT + span, Event::Resume);
        self.schedule_layers();
        self.look_at_controller();
        self.host_time_has_come();
    }

    pub(super) fn resume_host(&mut self) {
        let (_, mmc) = self.contexts();
        self.totals.sleeps += u64::from(mmc.resume());
    }

    /// Handles possible news of the controller: reports the bus uses that are over, and hands an
    /// interrupt to its processor.
    #[inline]
    pub(super) fn look_at_controller(&mut self) {
        if self.host_has_contexts() && self.contexts().1.has_news() {
            self.hear_controller();
        }
    }

    fn hear_controller(&mut self) {
        let mmc = self
            .host
            .driver
            .model_mut()
            .mmc_mut()
            .expect("only an MMC host should have a controller with news");
        while let Some(used) = mmc.next_use() {
            self.host.sink.1.bus_used(&used);
        }
        if mmc.take_interrupt() {
            let cpu = mmc.interrupt_cpu();
            self.give(cpu, Work::Interrupt);
        }
    }

    /// Makes a call that the driver or a queue wanted at this instant. If the call must wake a thread, the
    /// processor on which that thread slept takes the timer's interrupt and wakes it ([waker-pays]).
    pub(super) fn host_time_has_come(&mut self) {
        if let Some(thread) = self.host_sleepers().first() {
            let cpu = self.host_cpu(thread);
            self.give(cpu, Work::Timer);
        } else {
            self.give_wanted_runs(self.now);
        }
    }

    /// Returns the processor on which a thread of the host runs or last ran.
    pub(super) fn host_cpu(&self, thread: Context) -> CpuId {
        self.host_cpus[thread_index(thread)]
    }

    /// Returns the sleeping threads of the host that have work.
    pub(super) fn host_sleepers(&mut self) -> Sleepers {
        if !self.host_has_contexts() {
            return Sleepers::default();
        }
        let now = self.now;
        let (contexts, mmc) = self.contexts();
        contexts.sleepers(mmc, now)
    }

    /// Wakes `sleepers` at `at`, when the wake-up has been paid for, and hands the wanted runs to
    /// their thread.
    #[inline]
    pub(super) fn wake_host(&mut self, sleepers: Sleepers, at: Instant) {
        if self.contexts.has_to_wake(sleepers) {
            self.wake_sleepers(sleepers, at, None);
        }
    }

    /// Wakes `sleepers` at `at`. `worker` is the processor of the deferred work that wakes them, if it does.
    fn wake_sleepers(&mut self, mut sleepers: Sleepers, at: Instant, worker: Option<CpuId>) {
        loop {
            let (contexts, mmc) = self.contexts();
            let Some(woken) = contexts.wake_next(mmc, &mut sleepers, at) else { break };
            self.totals.wakeups += u64::from(!woken.enters);
            let in_driver = self.cpu_in_driver(woken.thread);
            let behind = in_driver.or_else(|| worker.filter(|_| self.is_behind_waker()));
            let cpu = behind.unwrap_or_else(|| self.idle_cpu(woken.thread, at));
            self.host_cpus[thread_index(woken.thread)] = cpu;
            if let Some(begins_at) = woken.begins_at {
                self.soon(begins_at, Event::HostThread(woken.thread, behind.is_some()));
            }
        }
        self.give_wanted_runs(at);
    }

    /// Gives a woken thread to its processor. If that has got other work meanwhile, an idle one takes the thread,
    /// unless it is bound.
    pub(super) fn host_thread_arrives(&mut self, thread: Context, bound: bool) {
        if !bound {
            self.host_cpus[thread_index(thread)] = self.idle_cpu(thread, self.now);
        }
        self.give(self.host_cpu(thread), Work::Host(thread));
    }

    /// Returns whether the thread that deferred work wakes now runs on the processor of that work: as many of
    /// 100 do as the machine's profile says, evenly spread.
    fn is_behind_waker(&mut self) -> bool {
        let is_bound = !self.locking.completing;
        let share = if is_bound { 0 } else { self.machine.wake_on_waker };
        self.owed_to_waker += share;
        let is_due = self.owed_to_waker >= 100;
        self.owed_to_waker -= if is_due { 100 } else { 0 };
        is_due
    }

    /// Hands the wanted runs to the host's thread, which is awake, from `at` on.
    fn give_wanted_runs(&mut self, at: Instant) {
        while let Some((queue, hctx, begins_at)) = self.contexts.next_run(at) {
            self.soon(begins_at, Event::Run(Runner::HostThread, queue, hctx));
        }
    }

    /// Returns the processor for `thread`, which is woken at `at`.
    fn idle_cpu(&self, thread: Context, at: Instant) -> CpuId {
        let other = if thread == Context::Thread { Context::Deferred } else { Context::Thread };
        let is_taken = |cpu| self.contexts.is_awake(other) && self.host_cpu(other) == cpu;
        idle_cpu(&self.cpus, self.host_cpu(thread), is_taken, at)
    }

    /// Ends a run by the host's thread. The thread stays awake until the run has been paid for, and then
    /// looks for the work that the run brought.
    pub(super) fn host_run_ended(&mut self, cpu: CpuId) {
        self.contexts.piece_follows(Context::Thread);
        self.cpus[cpu.index()].push_next(Work::Host(Context::Thread));
    }

    /// Begins a piece of the driver's work. The processor first pays for the switch to that work.
    pub(super) fn perform_host(&mut self, cpu: CpuId, work: Work) {
        let cost = self.switch(cpu, &work);
        match work {
            Work::Interrupt => {
                let (contexts, mmc) = self.contexts();
                let (doing, interrupt_cost) = contexts.take_interrupt(mmc);
                self.do_host(cpu, doing, cost + interrupt_cost);
            }
            Work::Host(context) => {
                self.contexts.piece_begins(context);
                if cost > Duration::ZERO {
                    self.do_host(cpu, Doing::Enter(context), cost);
                } else {
                    self.take_turn(cpu, context);
                }
            }
            _ => unreachable!("{work:?} is not work of an MMC host's driver"),
        }
    }

    /// Applies the driver's work that `cpu` has now paid for.
    pub(super) fn host_did(&mut self, cpu: CpuId, doing: Doing) {
        let context = doing.context();
        let mmc = self
            .host
            .driver
            .model_mut()
            .mmc_mut()
            .expect("a processor should work only for an MMC host");
        match self.contexts.take_effect(doing, mmc, self.now, &mut self.device_events) {
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

    /// Gives `context` a turn on `cpu`. If the context has no work, `cpu` turns to other work. A thread stands aside for completions ([completions-before-threads]).
    fn take_turn(&mut self, cpu: CpuId, context: Context) {
        let is_thread = context != Context::Interrupt;
        let stands_aside = is_thread && self.cpus[cpu.index()].has_completions();
        let mut turn = Turn::new(context, stands_aside);
        loop {
            let now = self.now;
            let (contexts, mmc) = self.contexts();
            match contexts.next(&mut turn, mmc, now) {
                Step::LookAtController => self.hear_controller(),
                Step::Wake(sleepers, at) => {
                    let worker = (context == Context::Deferred).then_some(cpu);
                    self.wake_sleepers(sleepers, at, worker);
                }
                Step::Do(doing, cost) => return self.do_host(cpu, doing, cost),
                Step::Again => {
                    self.cpus[cpu.index()].push_next(Work::Host(context));
                    break;
                }
                Step::Rest => break,
            }
        }
        self.leave_driver();
        self.next_work(cpu);
    }

    /// Charges `cost` to `cpu` for `doing`, which takes effect afterwards.
    fn do_host(&mut self, cpu: CpuId, doing: Doing, cost: Duration) {
        if cost == Duration::ZERO {
            return self.host_did(cpu, doing);
        }
        let work = match &doing {
            Doing::Interrupt | Doing::Wake(Context::Interrupt) => Work::Interrupt,
            Doing::Enter(context) | Doing::Wake(context) => Work::Host(*context),
            Doing::Act(act, _) => Work::Act(act.kind(), act.slot()),
        };
        self.host.sink.1.work_begins(cpu, &work, self.now);
        let end = self.now + cost;
        self.host.sink.1.work_ends(end);
        self.totals.cpu += cost;
        let state = &mut self.cpus[cpu.index()];
        debug_assert!(state.running && state.doing.is_none(), "{cpu:?} does {:?}", state.doing);
        state.busy += cost;
        state.busy_until = end;
        state.doing = Some(doing);
        self.soon(end, Event::CpuFree(cpu));
    }
}

/// Returns the processor for a thread that is woken at `at`: the first one from `preferred` on that will be
/// idle and is not taken by another woken thread, or `preferred` if there is none.
pub(super) fn idle_cpu(
    cpus: &[Cpu],
    preferred: CpuId,
    is_taken: impl Fn(CpuId) -> bool,
    at: Instant,
) -> CpuId {
    debug_assert!(preferred.index() < cpus.len(), "{preferred:?} of {}", cpus.len());
    let from = |step| u16::try_from((preferred.index() + step) % cpus.len());
    let numbered = (0..cpus.len())
        .map(|step| CpuId(from(step).expect("a processor number should fit 16 bits")));
    let mut free = numbered.filter(|cpu| cpus[cpu.index()].is_idle(at) && !is_taken(*cpu));
    free.next().unwrap_or(preferred)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_goes_where_nobody_is_or_is_on_the_way_to() {
        let at = Instant::from_ns(1000);
        let mut cpus: Vec<_> = (0..4).map(|_| Cpu::new()).collect();
        let chosen = |cpus: &[Cpu], preferred, taken: Option<u16>| {
            idle_cpu(cpus, CpuId(preferred), |cpu| taken == Some(cpu.0), at).0
        };
        assert_eq!(chosen(&cpus, 2, None), 2);
        assert_eq!(chosen(&cpus, 2, Some(2)), 3);
        assert_eq!(chosen(&cpus, 3, Some(3)), 0, "past the last is the first");
        cpus[3].running = true;
        assert_eq!(chosen(&cpus, 2, Some(2)), 0);
        cpus[2].busy_until = at + Duration::from_ns(1);
        assert_eq!(chosen(&cpus, 2, Some(1)), 0);
        cpus[2].busy_until = at;
        assert_eq!(chosen(&cpus, 2, Some(1)), 2, "it is idle by then");
        cpus.iter_mut().for_each(|cpu| cpu.running = true);
        assert_eq!(chosen(&cpus, 2, Some(2)), 2, "where all are busy, where it was");
    }
}
