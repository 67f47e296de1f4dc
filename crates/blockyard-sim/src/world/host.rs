//! The driver of an MMC host at work: its interrupt handler, its thread and its deferred work, act by
//! act (T7, T8).

use super::{Event, World};
use crate::device::mmc::host::MmcHost;
use crate::machine::cpu::{Cpu, Doing, Work};
use crate::observe::Observer;
use blockyard::time::{Duration, Instant};
use blockyard::unit::CpuId;
use blockyard_mmc::block::{ActKind, Context, DISABLE_LIMIT};

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

    /// Whether it runs, or will without being woken.
    pub(super) const fn is_awake(&self) -> bool {
        self.awake
    }
}

/// The contexts that are threads, in the order in which a world keeps them.
const THREADS: [Context; 2] = [Context::Thread, Context::Deferred];

impl<O: Observer> World<O> {
    fn mmc(&mut self) -> &mut MmcHost {
        self.host.driver.model_mut().mmc_mut().expect("only an MMC host has such work")
    }

    /// The system is to sleep at `at`, for `span` from the instant at which an MMC host must be idle for
    /// it. Other devices do not notice.
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
        self.totals.sleeps += u64::from(self.mmc().resume());
    }

    fn thread(&mut self, context: Context) -> &mut HostThread {
        match context {
            Context::Thread => &mut self.host_threads[0],
            Context::Deferred => &mut self.host_threads[1],
            Context::Interrupt => unreachable!("an interrupt is no thread"),
        }
    }

    /// Something may have happened at the controller: what the bus was used for is told, and an
    /// interrupt is given to its processor.
    #[inline]
    pub(super) fn look_at_controller(&mut self) {
        if self.dispatch_blocks && self.mmc().has_news() {
            self.hear_controller();
        }
    }

    fn hear_controller(&mut self) {
        let mmc = self.host.driver.model_mut().mmc_mut().expect("a controller has news");
        while let Some(used) = mmc.next_use() {
            self.host.sink.1.bus_used(&used);
        }
        if mmc.take_interrupt() {
            let cpu = mmc.interrupt_cpu();
            self.give(cpu, Work::Interrupt);
        }
    }

    /// A time has come that the driver or a queue wanted to be told of: where a thread is to be woken
    /// for it, the processor on which it slept takes the timer's interrupt and does so (T9).
    pub(super) fn host_time_has_come(&mut self) {
        let wanted = self.wanted_threads();
        let thread = THREADS.into_iter().zip(wanted).find(|(_, is_wanted)| *is_wanted);
        if let Some((context, _)) = thread {
            let cpu = self.thread(context).cpu;
            self.give(cpu, Work::Timer);
        } else if !self.wanted_runs.is_empty() {
            self.give_wanted_runs(self.now);
        }
    }

    /// Which of [`THREADS`] sleep, and have something to do.
    pub(super) fn wanted_threads(&mut self) -> [bool; 2] {
        if !self.dispatch_blocks {
            return [false; 2];
        }
        let now = self.now;
        THREADS.map(|context| {
            let runs = context == Context::Thread && !self.wanted_runs.is_empty();
            !self.thread(context).awake && (runs || self.mmc().pending(context, now))
        })
    }

    /// What it costs a processor to wake those that are `wanted` (T9).
    pub(super) fn cost_of_waking(&self, wanted: [bool; 2]) -> Duration {
        let wake_ups = wanted.into_iter().filter(|is_wanted| *is_wanted);
        wake_ups.fold(Duration::ZERO, |cost, _| cost + self.machine.wakeup)
    }

    /// Threads that are `wanted` are woken at `at`, by what then is paid for it, and runs that are
    /// wanted are given to theirs.
    #[inline]
    pub(super) fn wake_host(&mut self, wanted: [bool; 2], at: Instant) {
        if wanted != [false; 2] || !self.wanted_runs.is_empty() {
            self.wake_wanted(wanted, at);
        }
    }

    fn wake_wanted(&mut self, wanted: [bool; 2], at: Instant) {
        for (context, is_wanted) in THREADS.into_iter().zip(wanted) {
            if !is_wanted || self.thread(context).awake {
                continue;
            }
            self.totals.wakeups += 1;
            self.mmc().wakes(context, at);
            let (cpu, there_at) = (self.idle_cpu(context, at), at + self.machine.run_delay);
            let thread = self.thread(context);
            (thread.cpu, thread.there_at, thread.awake) = (cpu, there_at, true);
            if context == Context::Deferred || self.wanted_runs.is_empty() {
                self.give_host_thread(context, Event::HostThread(context), at);
            }
        }
        self.give_wanted_runs(at);
    }

    /// Runs that are wanted of the host's thread, which is awake, are its from `at` on.
    fn give_wanted_runs(&mut self, at: Instant) {
        let mut runs = core::mem::take(&mut self.wanted_runs);
        for (queue, hctx) in runs.drain(..) {
            self.give_host_thread(Context::Thread, Event::Run(queue, hctx), at);
        }
        self.wanted_runs = runs;
    }

    /// `event` brings work to the thread of `context`, which is awake, from `at` on.
    fn give_host_thread(&mut self, context: Context, event: Event, at: Instant) {
        let thread = self.thread(context);
        thread.queued += 1;
        let at = at.max(thread.there_at);
        self.soon(at, event);
    }

    /// Where the thread of `context` runs that is woken at `at`.
    fn idle_cpu(&self, context: Context, at: Instant) -> CpuId {
        let [thread, deferred] = self.host_threads;
        let (this, other) =
            if context == Context::Thread { (thread, deferred) } else { (deferred, thread) };
        idle_cpu(&self.cpus, this.cpu, other.awake.then_some(other.cpu), at)
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
        let mut cost = Duration::ZERO;
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
            Doing::Enter(context) | Doing::Wake(context) => return self.next_act(cpu, context),
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
        self.look_at_controller();
        let wanted = self.wanted_threads();
        let waking = self.cost_of_waking(wanted);
        self.wake_host(wanted, now + waking);
        if let Some((act, cost)) = next {
            let work = Work::Act(act.kind(), act.slot());
            return self.do_host(cpu, &work, Doing::Act(act, now), cost + waking);
        }
        if waking > Duration::ZERO {
            let work = if is_thread { Work::Host(context) } else { Work::Interrupt };
            return self.do_host(cpu, &work, Doing::Wake(context), waking);
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

/// Which of `cpus` a thread runs on that is woken at `at`: `preferred`, or else the first after it, that
/// has nothing to do then, for all that is known, and that is not `taken` by another thread on its way;
/// `preferred` if there is none.
fn idle_cpu(cpus: &[Cpu], preferred: CpuId, taken: Option<CpuId>, at: Instant) -> CpuId {
    let from = |step| u16::try_from((preferred.index() + step) % cpus.len());
    let numbered = (0..cpus.len()).map(|step| CpuId(from(step).expect("numbered by 16 bits")));
    let mut free = numbered.filter(|cpu| cpus[cpu.index()].is_idle(at) && taken != Some(*cpu));
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
            idle_cpu(cpus, CpuId(preferred), taken.map(CpuId), at).0
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
