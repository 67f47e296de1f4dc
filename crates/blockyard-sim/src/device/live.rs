//! A modelled device without a machine around it: for whoever has processors and a clock of their own,
//! and data to keep.
//!
//! # Rules
//!
//! - **L1.** What the device does, it does at the instant that the model says, however late the caller
//!   comes to look: lateness does not add up.
//! - **L2.** What a driver's processors do for a card takes its time, as this is part of how fast the
//!   card is: interrupts, wake-ups, and the acts of `[host]`. Its interrupt handler and its two threads
//!   have a processor each. All else of `[cpu]` does not apply: the caller's processors do that.
//! - **L3.** There is one disk with one hardware queue, that of the processor that submits.

use super::{DeviceEvent, Events, Model};
use crate::event::EventHeap;
use crate::profile::MachineProfile;
use blockyard::driver::{Accept, Device, Driver, Finished, Issue};
use blockyard::request::Request;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{Budget, DriverTag, HctxId, QueueId};
use blockyard_mmc::block::{Act, Context};
use std::collections::VecDeque;

/// Contexts that are threads: they are woken.
const THREADS: [Context; 2] = [Context::Thread, Context::Deferred];

/// What comes to pass at an instant.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// At the device.
    Device(DeviceEvent),
    /// What a context was doing is done.
    Done(Context),
}

/// What a context is doing.
#[derive(Debug)]
enum Doing {
    /// On its way, or waking others.
    Enter,
    /// Taking an interrupt.
    Interrupt,
    /// An act, which began then.
    Act(Act, Instant),
}

/// A modelled device. See the [module](self).
#[derive(Debug)]
pub struct Live {
    model: Model,
    machine: MachineProfile,
    events: EventHeap<Event>,
    /// Said by the model, and not in `events` yet.
    said: Events,
    /// By context; an idle one does nothing.
    doing: [Option<Doing>; 3],
    /// The controller interrupts, and its handler is at work still.
    interrupts_again: bool,
    finished: VecDeque<Finished>,
    now: Instant,
}

impl Live {
    /// `model`, whose driver's processors are as those of `machine`.
    pub(crate) const fn new(model: Model, machine: MachineProfile) -> Self {
        Self {
            model,
            machine,
            events: EventHeap::new(),
            said: Events::new(),
            doing: [None, None, None],
            interrupts_again: false,
            finished: VecDeque::new(),
            now: Instant::ZERO,
        }
    }

    /// Everything that comes to pass until `now`, each at its instant (L1).
    fn go_on_until(&mut self, now: Instant) {
        while let Some(at) = self.next_at().filter(|at| *at <= now) {
            self.now = self.now.max(at);
            if self.events.next_at().is_some_and(|due| due <= self.now) {
                let (_, event) = self.events.pop().expect("it has been looked at");
                self.happens(event);
                self.settle(Duration::ZERO);
            } else {
                // The driver's timer: its processor is interrupted to wake whom it concerns.
                self.settle(self.machine.interrupt);
            }
        }
        self.now = self.now.max(now);
    }

    fn next_at(&self) -> Option<Instant> {
        self.events.next_at().into_iter().chain(self.model.poll_at()).min()
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Device(event) => self.model.event(event, self.now, &mut self.said),
            Event::Done(context) => self.done(context),
        }
    }

    /// What follows from what has been done: events to come, completions, and work for the contexts,
    /// whom it takes `first` to get at.
    fn settle(&mut self, first: Duration) {
        while let Some((at, event)) = self.said.pop_front() {
            self.events.push(at, Event::Device(event));
        }
        self.finished.extend(core::iter::from_fn(|| self.model.next_finished(self.now)));
        self.look_at_controller();
        self.wake_threads(first);
    }

    fn look_at_controller(&mut self) {
        let Some(mmc) = self.model.mmc_mut() else { return };
        while mmc.next_use().is_some() {} // nobody wants to know
        if !mmc.take_interrupt() {
            return;
        }
        if self.doing[Context::Interrupt as usize].is_some() {
            self.interrupts_again = true;
        } else {
            self.begin_interrupt();
        }
    }

    fn begin_interrupt(&mut self) {
        let handler =
            self.model.mmc_mut().expect("only a card's host interrupts").begin_interrupt();
        self.does(Context::Interrupt, Doing::Interrupt, self.machine.interrupt + handler);
    }

    fn does(&mut self, context: Context, doing: Doing, cost: Duration) {
        self.doing[context as usize] = Some(doing);
        self.events.push(self.now + cost, Event::Done(context));
    }

    /// Wakes the threads that have something to do; what it costs who wakes them, from `first` on.
    fn wake_threads(&mut self, first: Duration) -> Duration {
        let Some(mmc) = self.model.mmc_mut() else { return Duration::ZERO };
        let mut cost = Duration::ZERO;
        for context in THREADS {
            if self.doing[context as usize].is_some() || !mmc.pending(context, self.now) {
                continue;
            }
            cost += self.machine.wakeup;
            let at = self.now + first + cost;
            mmc.wakes(context, at);
            self.doing[context as usize] = Some(Doing::Enter);
            self.events.push(at + self.machine.run_delay, Event::Done(context));
        }
        cost
    }

    /// `context` has done what it was at, and goes on with its next act, if it has one.
    fn done(&mut self, context: Context) {
        // It is not to be woken meanwhile.
        let doing = self.doing[context as usize].replace(Doing::Enter);
        let mut doing = doing.expect("it was at something");
        loop {
            let mmc = self.model.mmc_mut().expect("only a card's host has contexts");
            match doing {
                Doing::Enter => {}
                Doing::Interrupt => mmc.end_interrupt(self.now, &mut self.said),
                Doing::Act(act, begun) => mmc.finish_act(act, begun, self.now, &mut self.said),
            }
            let next = mmc.begin_act(context, self.now);
            self.look_at_controller();
            let waking = self.wake_threads(Duration::ZERO);
            let (next, cost) = match next {
                Some((act, cost)) => (Doing::Act(act, self.now), cost + waking),
                None if waking > Duration::ZERO => (Doing::Enter, waking),
                None => break,
            };
            if cost > Duration::ZERO {
                return self.does(context, next, cost);
            }
            doing = next;
        }
        self.doing[context as usize] = None;
        if context == Context::Interrupt && core::mem::take(&mut self.interrupts_again) {
            self.begin_interrupt();
        }
    }
}

impl Driver for Live {
    blockyard::pass_on!(model: prepare, unprepare, commit, timed_out);

    fn take_budget(&mut self, queue: QueueId) -> Option<Budget> {
        self.model.take_budget(queue)
    }

    fn return_budget(&mut self, queue: QueueId, budget: Budget) {
        self.model.return_budget(queue, budget);
    }

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        self.go_on_until(issue.now);
        let accept = self.model.queue_rq(issue);
        self.model.start(issue.now, &mut self.said);
        self.settle(Duration::ZERO);
        accept
    }

    fn finish(&mut self, queue: QueueId, hctx: HctxId, tag: DriverTag, request: &Request) {
        self.model.finish(queue, hctx, tag, request);
    }
}

impl Device for Live {
    /// Polled at each instant that [`Device::poll_at`] tells, it names what it is done with at that
    /// instant.
    fn next_finished(&mut self, now: Instant) -> Option<Finished> {
        if self.finished.is_empty() {
            self.go_on_until(now);
        }
        self.finished.pop_front()
    }

    fn poll_at(&self) -> Option<Instant> {
        if self.finished.is_empty() { self.next_at() } else { Some(self.now) }
    }
}
