//! Polled completions, which wait for a poll, and processors that spin.

use super::actor::Actor;
use super::{Event, World};
use crate::machine::cpu::Spin;
use blockyard::driver::Finished;
use blockyard::time::{Duration, Instant};
use blockyard::unit::CpuId;
use blockyard_trace::observe::{Observer, TaskId, Work};

/// A task that polls its processor's hardware queue, as an actor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Poller(pub(super) TaskId);

impl Actor for Poller {
    fn act(&mut self, world: &mut World<'_>, cpu: CpuId) -> Duration {
        world.poll_completions(cpu)
    }

    fn plan_next(&mut self, world: &mut World<'_>, _cpu: CpuId, cost: Duration) -> Duration {
        world.charge_polling(self.0, world.now, world.now + cost);
        Duration::ZERO
    }
}

impl World<'_> {
    /// Lets an idle processor spin if a task on it waits for polled I/Os.
    pub(super) fn spin_or_idle(&mut self, cpu: CpuId) {
        let looker = self.cpus[cpu.index()].looker();
        if let Some(task) = looker.filter(|_| self.polled.has_for(cpu)) {
            // A completion came while the processor worked, so its first poll finds one.
            return self.perform(cpu, Work::Poll(task));
        }
        let state = &mut self.cpus[cpu.index()];
        state.running = false;
        state.polling = looker.map(|task| Spin { task, since: self.now, counted: self.now });
    }

    /// Ends the spin of a processor that turns to other work.
    pub(super) fn end_spin(&mut self, cpu: CpuId) {
        let Some(spin) = self.cpus[cpu.index()].polling.take() else { return };
        debug_assert!(spin.since <= spin.counted, "{spin:?}");
        let spun = self.now.since(spin.counted);
        self.cpus[cpu.index()].busy += spun;
        self.totals.polling += spun;
        self.totals.cpu += spun;
        self.charge_polling(spin.task, spin.counted, self.now);
        self.host.sink.1.polled(cpu, spin.since, self.now);
    }

    /// Returns when the first poll from `at` on of a spin since `since` begins.
    fn next_poll_at(&self, since: Instant, at: Instant) -> Instant {
        debug_assert!(since <= at, "a spin since {since} has a poll at {at}, before it began");
        let past_ns = at.since(since).as_ns();
        match self.machine.poll.as_ns() {
            0 => at,
            // Polls of 150 ns that began at 1000 ns: an event at 1200 ns is found by the poll that
            // begins at 1300 ns.
            poll_ns => since + Duration::from_ns(past_ns.div_ceil(poll_ns) * poll_ns),
        }
    }

    /// Keeps a polled completion, and schedules the polls that find it.
    pub(super) fn keep_polled(&mut self, finished: Finished) {
        self.polled.put(finished);
        for cpu in self.polled.cpus_of(finished.hctx) {
            // A processor that works polls later, between two threads or when it spins again.
            if let Some(spin) = self.cpus[cpu.index()].polling {
                self.events.push(
                    self.next_poll_at(spin.since, self.now),
                    Event::PollFinds(cpu, spin.since),
                );
            }
        }
    }

    /// Polls from `cpu`.
    pub(super) fn poll_completions(&mut self, cpu: CpuId) -> Duration {
        let mut cost = self.machine.poll;
        while let Some(finished) = self.polled.take(cpu) {
            cost += self.complete_request(finished, false);
        }
        cost
    }

    /// Lets a task that polled continue at the end of a poll of its processor, the first from
    /// `from` on. Returns whether the task polled.
    pub(super) fn end_polling(&mut self, task: TaskId, from: Instant) -> bool {
        let state = &mut self.cpus[self.tasks[task.0 as usize].cpu.index()];
        let Some(at) = state.pollers.iter().position(|poller| *poller == task) else {
            return false;
        };
        // The processor is in the middle of a poll, and turns to the task at the end of that poll.
        state.pollers.remove(at);
        let from = from.max(self.now);
        let resumes_at = state.polling.map_or(from, |spin| self.next_poll_at(spin.since, from));
        self.schedule_soon(resumes_at, Event::Wake(task));
        true
    }
}
