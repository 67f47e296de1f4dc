//! The work of processors: one piece after another, some of it under the lock of a queue
//! ([lock-before-work]). Completions come before threads.

use super::actor::Actor;
use super::{Event, World};
use crate::machine::cpu::Switch;
use crate::machine::lock::{Ask, LockHolder};
use blockyard::time::Duration;
use blockyard::unit::{CpuId, QueueId};
use blockyard_trace::observe::{Observer, Work};

/// The kinds of work that take the lock of a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Locking {
    pub(super) submitting: bool,
    pub(super) completing: bool,
    /// Nobody waits for the lock of an elevator: work that finds it taken does without.
    pub(super) tries: bool,
}

impl World<'_> {
    /// Gives work to a processor. An idle processor begins the work now.
    pub(super) fn give_work(&mut self, cpu: CpuId, work: Work) {
        let now = self.now;
        let state = &mut self.cpus[cpu.index()];
        // The next switch to a thread then counts as one from idling.
        if state.is_idle(now) {
            state.idle(now);
            // A processor that sleeps leaves its state first: one that has idled for 10 ms begins
            // 915 us later. The time is nobody's work.
            let latency = self.machine.wake_latency(now.since(state.busy_until));
            if latency > Duration::ZERO {
                state.busy_until = now + latency;
            }
        }
        state.wake(work, now);
        if state.running {
            return;
        }
        state.running = true;
        // A processor whose last work has not ended, and that had nothing after it, has no event
        // for that end yet.
        if state.busy_until > self.now {
            let at = state.busy_until;
            self.schedule_soon(at, Event::CpuFree(cpu));
        } else {
            self.next_work(cpu);
        }
    }

    /// Lets a processor turn to its next work. An interrupt may have begun since this was
    /// scheduled, and then the end of its work is scheduled too.
    pub(super) fn on_cpu_free(&mut self, cpu: CpuId) {
        let state = &mut self.cpus[cpu.index()];
        if state.busy_until <= self.now && state.spinning.is_none() {
            state.running = true;
            self.next_work(cpu);
        }
    }

    /// Lets a processor that is free turn to its next work, or idle.
    pub(super) fn next_work(&mut self, cpu: CpuId) {
        self.end_spin(cpu);
        if let Some(doing) = self.take_paid(cpu) {
            return self.take_effect(cpu, doing);
        }
        let state = &mut self.cpus[cpu.index()];
        if let Some(at) = state.held_until(self.now) {
            // An interrupt that comes before begins at once.
            state.running = false;
            return self.schedule_soon(at, Event::CpuFree(cpu));
        }
        let Some(mut work) = state.take_work() else {
            return self.spin_or_idle(cpu);
        };
        if work.begin_paying(self, cpu) {
            return;
        }
        let Some(queue) = work.queue_to_lock(self) else { return self.perform(cpu, work) };
        match self.locks[queue.index()].ask(cpu, self.now) {
            Ask::Granted => self.perform(cpu, work),
            Ask::Wait(free_at) => {
                self.cpus[cpu.index()].spinning = Some((work, self.now));
                // Only the first waiter schedules the lock's release. A release schedules the next
                // one.
                if let Some(at) = free_at {
                    self.events.push(at, Event::LockFree(queue));
                }
            }
        }
    }

    /// Counts the interrupt that tells `cpu` of a thread that is woken there. The processor that
    /// wakes the thread does not idle, so if `cpu` does, it is another one.
    pub(super) fn count_interrupt_of(&mut self, cpu: CpuId) {
        let idles = self.cpus[cpu.index()].is_idle(self.now);
        self.totals.interprocessor_interrupts += u64::from(idles);
    }

    /// Counts the switch to `work` on `cpu`, if it is one. Returns what it costs: the memory of a
    /// thread that continues after a pause is still in the caches.
    pub(super) fn switch(&mut self, cpu: CpuId, work: &Work) -> Duration {
        let work = &self.work_of_submitter(work).unwrap_or(*work);
        let switch = self.cpus[cpu.index()].switches_to(work);
        if switch == Switch::None {
            return Duration::ZERO;
        }
        self.totals.context_switches += 1;
        if let Work::Step(task) | Work::Copy(task) | Work::Poll(task) = *work {
            let now = self.now;
            if let Some(stats) = self.stats_at(task, now) {
                stats.context_switches += 1;
            }
        }
        // After a pause the thread's memory is still in the caches, so only a change of thread
        // costs time.
        if switch == Switch::FromThread { self.machine.context_switch } else { Duration::ZERO }
    }

    /// Grants the free lock of `queue` to the processor that has waited longest
    /// ([lock-before-work]).
    pub(super) fn grant_lock(&mut self, queue: QueueId) {
        let granted = self.locks[queue.index()].grant(self.now);
        if let Some(cpu) = granted
            && let Some((work, since)) = self.cpus[cpu.index()].spinning.take()
        {
            let spun = self.now.since(since);
            self.host.sink.1.spun(cpu, since, self.now);
            self.cpus[cpu.index()].busy += spun;
            self.totals.spinning += spun;
            self.totals.cpu += spun;
            self.locks[queue.index()].note_wait(wanted_by(&work), spun);
            self.perform(cpu, work);
        }
        if let Some(at) = self.locks[queue.index()].next_grant() {
            self.events.push(at, Event::LockFree(queue));
        }
    }

    /// Takes the locks that a piece of work of `cpu` used. Returns how long it waited for them or
    /// held them.
    fn take_locks(&mut self, cpu: CpuId) -> Duration {
        let line = self.machine.line_transfer;
        let lines = Duration::from_ns(line.as_ns() * u64::from(self.machine.lock_lines));
        let mut cost = Duration::ZERO;
        let costs = &mut self.host.sink.0.0;
        while let Some(site) = costs.next_lock() {
            // A queue's lock moves with the lines that it guards; a word or a list is one line.
            let is_queue = costs.sites().is_queue(site);
            if is_queue && self.locking.tries && self.locks[site].is_taken(self.now) {
                continue;
            }
            let transfer = if is_queue { lines } else { line };
            let taken = self.locks[site].take(cpu, self.now, cost, costs.taken(), transfer);
            self.totals.spinning += taken.wait;
            cost += taken.wait + taken.held;
        }
        cost
    }

    /// Does a piece of work; its consequences begin when it ends.
    pub(super) fn perform(&mut self, cpu: CpuId, mut work: Work) {
        debug_assert!(self.cpus[cpu.index()].busy_until <= self.now, "{cpu:?} is still busy");
        self.host.sink.1.work_begins(cpu, &work, self.now);
        if let Some(places) = &mut self.places {
            places.act(cpu);
        }
        let mut cost = self.switch(cpu, &work);
        cost += work.act(self, cpu);
        if !self.host.driver.completes_one_by_one() {
            cost += self.complete_at_once();
        }
        // The processor itself moves the data of persistent memory.
        cost += self.host.driver.model_mut().take_spent();
        // The work may have brought work for a sleeping driver. Its wake-up belongs to this piece:
        // the processor that wakes a thread pays.
        let sleepers = self.driver_sleepers();
        self.enter_driver(&work, sleepers);
        cost += self.cost_of_waking(sleepers);
        // All changes are made, so all locks that they needed are known. The waits for these locks
        // lengthen the work.
        cost += self.take_locks(cpu) + self.host.sink.0.0.take_free();
        cost += work.plan_next(self, cpu, cost);
        let end = self.now + cost;
        self.host.sink.1.work_ends(end);
        self.totals.cpu += cost;
        self.host.driver.model_mut().start(end, &mut self.device_events);
        self.schedule_device();
        self.schedule_layers();
        self.check_controller();
        if self.self_check {
            self.host.driver.call_ended();
            self.queues.iter().for_each(|queue| queue.self_check(&self.host));
        }
        if let (Some(places), Work::Run { queue, hctx, .. }) = (&mut self.places, work) {
            places.note_run(queue, hctx, cpu, end);
        }
        let state = &mut self.cpus[cpu.index()];
        state.occupy(&work, cost, end);
        state.running = state.has_work();
        if state.running {
            self.schedule_soon(end, Event::CpuFree(cpu));
        }
        self.wake_driver(sleepers, end);
    }
}

/// Returns what `work`, which asks for the lock of a queue, does with it first: it waits as that
/// holder.
fn wanted_by(work: &Work) -> LockHolder {
    match work {
        Work::Step(_) => LockHolder::Submit,
        Work::Run { .. } => LockHolder::Dispatch,
        Work::Complete { .. } | Work::Vector(_) => LockHolder::Complete,
        Work::Actor(_) => LockHolder::Submit,
        _ => unreachable!("{work:?} asks for no lock"),
    }
}
