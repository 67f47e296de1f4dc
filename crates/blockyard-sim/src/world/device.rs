//! Completions: from the device to the processor and task that wait for each of them.

use super::actor::Actor;
use super::owner::{Owner, RUN_BIT};
use super::step::Job;
use super::{Event, World};
use blockyard::driver::{Device, Finished};
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, HctxId, QueueId};
use blockyard_devices::terms::Completion;
use blockyard_trace::observe::{Observer, TaskId, Work};

/// The handler of one completion, as an actor.
#[derive(Clone, Copy, Debug)]
pub(super) struct CompletionHandler {
    pub(super) finished: Finished,
    pub(super) interrupt: bool,
}

impl Actor for CompletionHandler {
    fn queue_to_lock(&self, world: &World<'_>) -> Option<QueueId> {
        world.locking.completing.then_some(self.finished.queue)
    }

    fn act(&mut self, world: &mut World<'_>, _cpu: CpuId) -> Duration {
        world.complete_request(self.finished, self.interrupt)
    }
}

/// The handler of a hardware queue's vector, as an actor.
#[derive(Clone, Copy, Debug)]
pub(super) struct VectorHandler(pub(super) HctxId);

impl Actor for VectorHandler {
    fn queue_to_lock(&self, world: &World<'_>) -> Option<QueueId> {
        let first = world.vectors[self.0.index()].front();
        first.filter(|_| world.locking.completing).map(|finished| finished.queue)
    }

    fn act(&mut self, world: &mut World<'_>, _cpu: CpuId) -> Duration {
        world.handle_vector(self.0)
    }
}

impl World<'_> {
    /// Schedules the events of the device.
    pub(super) fn schedule_device(&mut self) {
        while let Some((at, event)) = self.device_events.pop_front() {
            self.schedule_soon(at, Event::Device(event));
        }
    }

    /// Hands completed requests to the processors that submitted them.
    pub(super) fn take_finished(&mut self) {
        while let Some(finished) = self.host.driver.next_finished(self.now) {
            self.host.sink.1.device_done(&finished, self.now);
            self.route_completion(finished);
        }
        self.schedule_layers();
    }

    pub(super) fn schedule_layers(&mut self) {
        let Some(at) = self.host.driver.poll_at() else { return };
        // The layers may say an instant that has passed: then they are due now.
        if self.layers_at.is_none_or(|earlier| at < earlier) {
            self.layers_at = Some(at);
            self.events.push(at.max(self.now), Event::Layers);
        }
    }

    /// Returns how requests of `hctx` complete.
    fn completion_of(&self, hctx: HctxId) -> Completion {
        if self.polled.contains(hctx) { Completion::Polled } else { self.completion }
    }

    /// Handles an event of the device.
    pub(super) fn on_device_event(&mut self) {
        match self.completion {
            // The driver of this device ends its requests after an interrupt; the device ends none.
            Completion::HostInterrupt => self.check_controller(),
            _ => self.take_finished(),
        }
    }

    /// Hands a completed request to the processor that ends it: now, or after the delay of a soft
    /// interrupt.
    fn route_completion(&mut self, finished: Finished) {
        let completion = self.completion_of(finished.hctx);
        if completion == Completion::Polled {
            return self.keep_polled(finished);
        }
        let interrupt = matches!(completion, Completion::Interrupt | Completion::Vector);
        let queue = &self.queues[finished.queue.index()];
        let request = queue.in_flight_request(&self.host, finished.hctx, finished.tag);
        let cpu = request.expect("the device should complete only requests in flight").cpu;
        // In the single-lock model the interrupt only raises a soft interrupt.
        if interrupt && self.locking.completing && self.machine.softirq_delay > Duration::ZERO {
            let at = self.now + self.machine.softirq_delay;
            return self.events.push(at, Event::SoftInterrupt(cpu, finished));
        }
        if completion == Completion::Vector {
            return self.interrupt_by_vector(finished);
        }
        self.give_work(cpu, Work::Complete { finished, interrupt });
    }

    /// Interrupts the processor of the vector of `finished`, unless that interrupt is pending.
    fn interrupt_by_vector(&mut self, finished: Finished) {
        let hctx = finished.hctx;
        debug_assert!(!self.polled.contains(hctx), "{hctx:?} is polled, so it has no vector");
        let waiting = &mut self.vectors[hctx.index()];
        waiting.push_back(finished);
        // The second completion finds the interrupt pending, and its handler will end both.
        if waiting.len() == 1 {
            self.give_work(self.worker_cpu[hctx.index()], Work::Vector(hctx));
        }
    }

    /// Ends all requests that wait for the handler of the vector of `hctx`.
    pub(super) fn handle_vector(&mut self, hctx: HctxId) -> Duration {
        debug_assert!(!self.vectors[hctx.index()].is_empty(), "{hctx:?} interrupts for nothing");
        self.totals.interrupts += 1;
        let mut cost = self.machine.interrupt;
        // Afterwards none waits, so the next completion interrupts again.
        while let Some(finished) = self.vectors[hctx.index()].pop_front() {
            cost += self.complete_request(finished, false);
        }
        cost
    }

    /// Completes the requests that the device completed within the call, unless their queue is
    /// polled.
    pub(super) fn complete_at_once(&mut self) -> Duration {
        let mut cost = Duration::ZERO;
        while let Some(finished) = self.host.driver.next_finished(self.now) {
            self.host.sink.1.device_done(&finished, self.now);
            match self.completion_of(finished.hctx) {
                Completion::Polled => self.keep_polled(finished),
                _ => cost += self.complete_request(finished, false),
            }
        }
        cost
    }

    /// Ends a request. `interrupt` says whether an interrupt of its own announced it.
    pub(super) fn complete_request(&mut self, finished: Finished, interrupt: bool) -> Duration {
        let queue = finished.queue;
        let target = &mut self.queues[queue.index()];
        // A device that completes a request twice, or one that it never got, is a defect of its
        // model.
        let known = target.conclude(&mut self.host, &finished, self.now);
        known.expect("the device should complete a request only once");
        self.totals.interrupts += u64::from(interrupt);
        let cost = if interrupt { self.machine.interrupt } else { Duration::ZERO };
        cost + self.follow_up(queue, true)
    }

    /// Ends a bio: hands the result to its task, and wakes the task if it waits for the result. See
    /// [`Self::wake`] for `from`.
    pub(super) fn end_bio(&mut self, cookie: u64, status: Status, from: Instant) -> Duration {
        let (owner, number) = Owner::of_cookie(cookie);
        if number & RUN_BIT != 0 {
            return self.end_page_run(owner, number & !RUN_BIT, status);
        }
        let task = match owner {
            Owner::Task(task) => task,
            Owner::Added(id) => return self.end_bio_of_actor(id, number, status),
        };
        if Job(task).on_bio_end(self, number, status) {
            return self.wake(task, from);
        }
        Duration::ZERO
    }

    /// Wakes a task, or lets it continue if it polled: not before `from`, the instant at which the
    /// tasks that were woken first are ready.
    pub(super) fn wake(&mut self, task: TaskId, from: Instant) -> Duration {
        debug_assert!(
            from <= self.now + self.machine.wakeup,
            "a task should not wait until {from}"
        );
        // A task that polls is not asleep, so nobody pays for a wake-up.
        if self.end_polling(task, from) {
            return Duration::ZERO;
        }
        self.totals.wakeups += 1;
        let at = self.now + self.machine.wakeup;
        let cpu = self.tasks[task.0 as usize].cpu;
        self.count_interrupt_of(cpu);
        if let Some(worker) = &mut self.cpus[cpu.index()].worker {
            worker.note_woken(at);
        }
        self.schedule_soon(at, Event::Wake(task));
        self.machine.wakeup
    }
}
