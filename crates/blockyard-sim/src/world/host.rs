//! The driver of an MMC host at work: its interrupt handler, its thread and its deferred work, act by
//! act (T7, T8).

use super::{Event, World};
use crate::device::mmc::host::MmcHost;
use crate::machine::cpu::{Doing, Work};
use crate::observe::Observer;
use blockyard::mmc::block::{ActKind, Context};
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, HctxId, QueueId};

/// A thread of the driver's: the one that dispatches, or the one of deferred work.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostThread {
    /// Where it runs, or ran last.
    pub(super) cpu: CpuId,
    /// It runs, or will without being woken.
    awake: bool,
    /// When it runs after its last wake-up: what comes to it before waits until then.
    there_at: Instant,
    /// Pieces of work that it has not begun.
    queued: u32,
}

impl HostThread {
    /// Asleep, on `cpu`.
    pub(super) const fn new(cpu: CpuId) -> Self {
        Self { cpu, awake: false, there_at: Instant::ZERO, queued: 0 }
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
    /// are taken, and threads that have something to do are woken, by `waker` if a processor does it:
    /// if that is in the middle of a piece of work, when it ends.
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
            if self.thread(context).awake || !self.mmc().pending(context, now) {
                continue;
            }
            if let (true, Some(waker)) = (self.working, waker) {
                return self.following.push(Event::LookAtHost(waker));
            }
            self.give_host_thread(context, Event::HostThread(context), waker);
        }
    }

    /// A run of a hardware queue for the host's thread, when the piece of work ends that wants it.
    pub(super) fn give_run(&mut self, queue: QueueId, hctx: HctxId) {
        if self.working {
            self.following.push(Event::GiveRun(queue, hctx));
        } else {
            self.give_host_thread(Context::Thread, Event::Run(queue, hctx), None);
        }
    }

    /// `event` brings work to the thread of `context`, which is woken for it if it sleeps.
    fn give_host_thread(&mut self, context: Context, event: Event, waker: Option<CpuId>) {
        let sleeps = !core::mem::replace(&mut self.thread(context).awake, true);
        self.thread(context).queued += 1;
        if sleeps {
            self.totals.wakeups += 1;
            let now = self.now;
            self.mmc().wakes(context, now);
            if let Some(waker) = waker {
                self.cpus[waker.index()].owes += self.machine.wakeup;
            }
            let last = self.thread(context).cpu;
            let (cpu, there_at) = (self.idle_cpu(last), now + self.machine.run_delay);
            let thread = self.thread(context);
            (thread.cpu, thread.there_at) = (cpu, there_at);
        }
        let at = self.now.max(self.thread(context).there_at);
        self.soon(at, event);
    }

    /// A piece of work ends at `end`: the host's threads hear then of what it gave them.
    pub(super) fn host_work_follows(&mut self, end: Instant) {
        self.working = false;
        let mut following = core::mem::take(&mut self.following);
        for event in following.drain(..) {
            self.soon(end, event);
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

    /// The host's thread does a run: when that ends it looks for what it brought, awake until then.
    pub(super) fn host_run_goes_on(&mut self, cpu: CpuId) {
        self.thread(Context::Thread).queued += 1;
        self.cpus[cpu.index()].go_on(Work::Host(Context::Thread));
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
        self.next_act(cpu, context);
    }

    /// `context` does its next act on `cpu`, which else turns to something else. Completions go first
    /// (T2). Others are woken for what it does not begin itself.
    fn next_act(&mut self, cpu: CpuId, context: Context) {
        let now = self.now;
        let is_thread = context != Context::Interrupt;
        let stands_aside = is_thread && self.cpus[cpu.index()].has_completions();
        let next = if stands_aside { None } else { self.mmc().begin_act(context, now) };
        self.look_at_host(Some(cpu));
        if let Some((act, cost)) = next {
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
