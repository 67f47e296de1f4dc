//! The driver of an MMC host at work: its interrupt handler, its thread and its deferred work, act by
//! act (T7, T8).

use super::{Event, World};
use crate::device::mmc::host::MmcHost;
use crate::machine::cpu::{Doing, Work};
use crate::observe::Observer;
use blockyard::mmc::block::{ActKind, Context};
use blockyard::time::{Duration, Instant};
use blockyard::unit::CpuId;

/// A thread of the driver's: the one that dispatches, or the one of deferred work.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostThread {
    /// Where it runs, or ran last.
    pub(super) cpu: CpuId,
    /// It runs, or will without being woken.
    awake: bool,
    /// Pieces of work that it has not begun.
    queued: u32,
}

impl HostThread {
    /// Asleep, on `cpu`.
    pub(super) const fn new(cpu: CpuId) -> Self {
        Self { cpu, awake: false, queued: 0 }
    }
}

/// The contexts that are threads.
const THREADS: [Context; 2] = [Context::Thread, Context::Deferred];

impl<O: Observer> World<O> {
    fn mmc(&mut self) -> &mut MmcHost {
        self.host.driver.model_mut().mmc_mut().expect("only an MMC host has such work")
    }

    /// Whether runs of hardware queues are left to a thread of the host's: its driver may sleep
    /// (T7).
    pub(super) fn dispatch_blocks(&self) -> bool {
        self.host.driver.model().mmc().is_some()
    }

    fn thread(&mut self, context: Context) -> &mut HostThread {
        match context {
            Context::Thread => &mut self.host_threads[0],
            Context::Deferred => &mut self.host_threads[1],
            Context::Interrupt => unreachable!("an interrupt is no thread"),
        }
    }

    /// Something may have changed for the driver: what the bus was used for is told, its interrupts
    /// are taken, and threads that have something to do are woken, by `waker` if a processor does it.
    pub(super) fn look_at_host(&mut self, waker: Option<CpuId>) {
        let now = self.now;
        let Some(mmc) = self.host.driver.model_mut().mmc_mut() else { return };
        while let Some(used) = mmc.next_use() {
            self.host.sink.1.bus_used(&used);
        }
        if mmc.take_interrupt() {
            let cpu = mmc.interrupt_cpu();
            self.give(cpu, Work::Interrupt);
        }
        for context in THREADS {
            if !self.thread(context).awake && self.mmc().pending(context, now) {
                self.give_host_thread(context, Event::HostThread(context), waker);
            }
        }
    }

    /// A run of a hardware queue for the host's thread.
    pub(super) fn give_run(&mut self, event: Event, waker: Option<CpuId>) {
        self.give_host_thread(Context::Thread, event, waker);
    }

    /// `event` brings work to the thread of `context`, which is woken for it if it sleeps.
    fn give_host_thread(&mut self, context: Context, event: Event, waker: Option<CpuId>) {
        let sleeps = !core::mem::replace(&mut self.thread(context).awake, true);
        self.thread(context).queued += 1;
        let delay = if sleeps { self.machine.run_delay } else { Duration::ZERO };
        if sleeps {
            self.totals.wakeups += 1;
            let now = self.now;
            self.mmc().wakes(context, now);
            if let Some(waker) = waker {
                self.cpus[waker.index()].owes += self.machine.wakeup;
            }
            let last = self.thread(context).cpu;
            let cpu = self.idle_cpu(last);
            self.thread(context).cpu = cpu;
        }
        if self.working {
            self.following.push((delay, event));
        } else {
            self.soon(self.now + delay, event);
        }
    }

    /// A piece of work ends at `end`: what it gave to the host's threads comes to them then.
    pub(super) fn host_work_follows(&mut self, end: Instant) {
        self.working = false;
        let mut following = core::mem::take(&mut self.following);
        for (delay, event) in following.drain(..) {
            self.soon(end + delay, event);
        }
        self.following = following;
    }

    /// `preferred`, or else the first processor after it, that has nothing to do; `preferred` if none.
    fn idle_cpu(&self, preferred: CpuId) -> CpuId {
        let cpus = self.cpus.len();
        let from = |step| (preferred.index() + step) % cpus;
        let idle = (0..cpus).map(from).find(|&cpu| self.cpus[cpu].is_idle(self.now));
        idle.map_or(preferred, |cpu| CpuId(u16::try_from(cpu).expect("numbered by 16 bits")))
    }

    /// A thread of the driver's begins a piece of its work.
    pub(super) fn host_thread_begins(&mut self, context: Context) {
        self.thread(context).queued -= 1;
    }

    /// The host's thread has done a run: it goes on with what that brought.
    pub(super) fn host_run_ends(&mut self, cpu: CpuId) {
        self.end_or_go_on(cpu, Context::Thread);
    }

    /// The thread of `context` goes on if it has something to do, and else sleeps.
    fn end_or_go_on(&mut self, cpu: CpuId, context: Context) {
        let now = self.now;
        let thread = *self.thread(context);
        if self.mmc().pending(context, now) {
            self.thread(context).queued += 1;
            self.cpus[cpu.index()].go_on(Work::Host(context));
        } else if thread.queued == 0 {
            self.thread(context).awake = false;
        }
    }

    /// Begins a piece of the driver's work: what it takes to get there comes first.
    pub(super) fn perform_host(&mut self, cpu: CpuId, work: Work) {
        let mut cost = core::mem::take(&mut self.cpus[cpu.index()].owes);
        if self.cpus[cpu.index()].switches_to(&work) {
            cost += self.machine.context_switch;
            self.totals.context_switches += 1;
        }
        match work {
            Work::Interrupt => {
                cost += self.machine.interrupt + self.mmc().begin_interrupt();
                self.do_host(cpu, &work, Doing::Interrupt, cost);
            }
            Work::Host(context) => {
                self.host_thread_begins(context);
                if cost > Duration::ZERO {
                    self.do_host(cpu, &work, Doing::Enter(context), cost);
                } else {
                    self.next_act(cpu, context);
                }
            }
            _ => unreachable!("{work:?} is not the driver's"),
        }
    }

    /// What a processor did for the driver is done.
    pub(super) fn host_did(&mut self, cpu: CpuId, doing: Doing) {
        let (now, events) = (self.now, &mut self.device_events);
        let mmc = self.host.driver.model_mut().mmc_mut().expect("a processor worked for it");
        let (context, completes) = match doing {
            Doing::Enter(context) => return self.next_act(cpu, context),
            Doing::Interrupt => {
                mmc.end_interrupt(now, events);
                (Context::Interrupt, false)
            }
            Doing::Act(act, begun) => {
                let told = (act.context(), act.kind() == ActKind::Complete);
                mmc.finish_act(act, begun, now, events);
                told
            }
        };
        self.schedule_device();
        if completes {
            self.take_finished();
        } else {
            self.schedule_layers();
        }
        self.look_at_host(Some(cpu));
        self.next_act(cpu, context);
    }

    /// `context` does its next act on `cpu`, which else turns to something else. Completions go first
    /// (T2).
    fn next_act(&mut self, cpu: CpuId, context: Context) {
        let now = self.now;
        let is_thread = context != Context::Interrupt;
        if !(is_thread && self.cpus[cpu.index()].has_completions())
            && let Some((act, cost)) = self.mmc().begin_act(context, now)
        {
            let work = Work::Act(act.kind(), act.slot());
            let owed = core::mem::take(&mut self.cpus[cpu.index()].owes);
            return self.do_host(cpu, &work, Doing::Act(act, now), cost + owed);
        }
        if is_thread {
            self.end_or_go_on(cpu, context);
        }
        self.next_work(cpu);
    }

    /// `cpu` does something for the driver, which takes `cost` and then takes effect.
    fn do_host(&mut self, cpu: CpuId, work: &Work, doing: Doing, cost: Duration) {
        if cost == Duration::ZERO {
            return self.host_did(cpu, doing);
        }
        self.host.sink.1.work_begins(cpu, work, self.now);
        let end = self.now + cost;
        self.host.sink.1.work_ends(end);
        self.totals.cpu += cost;
        let state = &mut self.cpus[cpu.index()];
        state.busy += cost;
        state.busy_until = end;
        state.doing = Some(doing);
        self.soon(end, Event::CpuFree(cpu));
    }
}
