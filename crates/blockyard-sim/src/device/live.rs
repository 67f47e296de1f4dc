//! A modelled device without a machine around it, for callers that have processors, a clock and data of
//! their own: one disk with one hardware queue, that of the processor that submits.
//!
//! An MMC host's driver keeps its costs, as they are part of how fast the card is: interrupts, wake-ups,
//! and the acts of `[host]`. Each of its [contexts](super::mmc::contexts) has a processor of its own. The
//! rest of `[cpu]` does not apply: the caller's processors do that work.
//!
//! # Rules
//!
//! - **[live-device-never-late]** What the device does, it does at the instant that the model says,
//!   however late the caller looks: lateness does not add up.

use super::mmc::contexts::{Contexts, Doing, Sleepers, Step, Turn};
use super::{DeviceEvent, Events, Model};
use crate::event::EventHeap;
use crate::profile::MachineProfile;
use blockyard::driver::{Accept, Device, Driver, Finished, Issue};
use blockyard::time::{Duration, Instant};
use blockyard_mmc::block::Context;
use std::collections::VecDeque;

/// What happens at an instant.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// Something in the device.
    Device(DeviceEvent),
    /// A thread that was woken runs.
    Runs(Context),
    /// The processor of a context has paid for what it did.
    Paid(Context),
}

/// The processor that takes the controller's interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interrupts {
    /// No interrupt is being handled.
    Idle,
    /// The handler works.
    Handling,
    /// The handler works, and the controller has interrupted again.
    Again,
}

/// A modelled device. See the [module](self).
#[derive(Debug)]
pub struct Live {
    model: Model,
    contexts: Contexts,
    events: EventHeap<Event>,
    /// Events that the model wants scheduled, and that are not in `events` yet.
    said: Events,
    /// By context: what its processor pays for.
    doing: [Option<Doing>; 3],
    interrupts: Interrupts,
    finished: VecDeque<Finished>,
    now: Instant,
}

impl Live {
    /// `model`, whose driver's processors are as those of `machine`.
    pub(crate) const fn new(model: Model, machine: &MachineProfile) -> Self {
        Self {
            model,
            contexts: Contexts::new(machine),
            events: EventHeap::new(),
            said: Events::new(),
            doing: [None, None, None],
            interrupts: Interrupts::Idle,
            finished: VecDeque::new(),
            now: Instant::ZERO,
        }
    }

    /// Lets everything happen that is due until `now`, each event at its instant
    /// ([live-device-never-late]).
    fn run_until(&mut self, now: Instant) {
        while let Some(at) = self.next_at().filter(|at| *at <= now) {
            self.now = self.now.max(at);
            if self.events.next_at().is_some_and(|due| due <= self.now) {
                let (_, event) = self.events.pop().expect("the event that is due");
                self.handle(event);
                self.follow_up(Duration::ZERO);
            } else {
                // The driver's timer interrupts a processor, which wakes the threads concerned.
                self.follow_up(self.contexts.timer_cost());
            }
        }
        self.now = self.now.max(now);
    }

    fn next_at(&self) -> Option<Instant> {
        self.events.next_at().into_iter().chain(self.model.poll_at()).min()
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Device(event) => self.model.event(event, self.now, &mut self.said),
            Event::Runs(thread) => {
                self.contexts.piece_begins(thread);
                self.take_turns(thread);
            }
            Event::Paid(context) => {
                let doing = self.doing[context as usize].take();
                self.take_effect(doing.expect("work that the context's processor paid for"));
                self.take_turns(context);
            }
        }
    }

    /// Sees to what follows from the latest event: events to come, completions, and wake-ups, which come
    /// after `first`.
    fn follow_up(&mut self, first: Duration) {
        while let Some((at, event)) = self.said.pop_front() {
            self.events.push(at, Event::Device(event));
        }
        self.finished.extend(core::iter::from_fn(|| self.model.next_finished(self.now)));
        let Some(mmc) = self.model.mmc_mut() else { return };
        if mmc.has_news() {
            self.look_at_controller();
        }
        let mmc = self.model.mmc().expect("the model is still an MMC host");
        let sleepers = self.contexts.sleepers(mmc, self.now);
        self.wake(sleepers, self.now + first + self.contexts.cost_of_waking(sleepers));
    }

    fn look_at_controller(&mut self) {
        let mmc = self.model.mmc_mut().expect("only an MMC host has a controller");
        while mmc.next_use().is_some() {} // Nobody watches the bus.
        if !mmc.take_interrupt() {
            return;
        }
        match self.interrupts {
            Interrupts::Idle => self.begin_interrupt(),
            Interrupts::Handling | Interrupts::Again => self.interrupts = Interrupts::Again,
        }
    }

    fn begin_interrupt(&mut self) {
        let mmc = self.model.mmc_mut().expect("only an MMC host interrupts");
        let (doing, cost) = self.contexts.take_interrupt(mmc);
        self.interrupts = Interrupts::Handling;
        self.pay(doing, cost);
    }

    /// The processor of a context pays `cost` for `doing`.
    fn pay(&mut self, doing: Doing, cost: Duration) {
        let context = doing.context();
        let before = self.doing[context as usize].replace(doing);
        assert_eq!(before, None, "{context:?} does one thing at a time");
        self.events.push(self.now + cost, Event::Paid(context));
    }

    /// Wakes `sleepers` at `at`.
    fn wake(&mut self, mut sleepers: Sleepers, at: Instant) {
        let mmc = self.model.mmc_mut().expect("only an MMC host has threads");
        while let Some(woken) = self.contexts.wake_next(mmc, &mut sleepers, at) {
            let begins_at = woken.begins_at.expect("no run is left to a thread of a live device");
            self.events.push(begins_at, Event::Runs(woken.thread));
        }
    }

    fn take_effect(&mut self, doing: Doing) {
        let mmc = self.model.mmc_mut().expect("only an MMC host has contexts");
        self.contexts.take_effect(doing, mmc, self.now, &mut self.said);
    }

    /// `context` takes turns on its processor until it pays for something or has nothing to do.
    fn take_turns(&mut self, context: Context) {
        let mut turn = Turn::new(context, false);
        loop {
            let mmc = self.model.mmc_mut().expect("only an MMC host has contexts");
            match self.contexts.next(&mut turn, mmc, self.now) {
                Step::LookAtController => self.look_at_controller(),
                Step::Wake(sleepers, at) => self.wake(sleepers, at),
                Step::Do(doing, Duration::ZERO) => {
                    self.take_effect(doing);
                    turn = Turn::new(context, false);
                }
                Step::Do(doing, cost) => return self.pay(doing, cost),
                Step::Again => {
                    self.contexts.piece_begins(context);
                    turn = Turn::new(context, false);
                }
                Step::Rest => break,
            }
        }
        if context == Context::Interrupt {
            match core::mem::replace(&mut self.interrupts, Interrupts::Idle) {
                Interrupts::Again => self.begin_interrupt(),
                Interrupts::Handling => {}
                Interrupts::Idle => unreachable!("an interrupt ended that nobody handled"),
            }
        }
    }
}

impl Driver for Live {
    blockyard::pass_on!(model: take_budget, return_budget, prepare, unprepare, commit);
    blockyard::pass_on!(model: timed_out, finish);

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        self.run_until(issue.now);
        let accept = self.model.queue_rq(issue);
        self.model.start(issue.now, &mut self.said);
        self.follow_up(Duration::ZERO);
        accept
    }
}

impl Device for Live {
    /// Polled at each instant that [`Device::poll_at`] names, returns the requests that complete then.
    fn next_finished(&mut self, now: Instant) -> Option<Finished> {
        if self.finished.is_empty() {
            self.run_until(now);
        }
        self.finished.pop_front()
    }

    fn poll_at(&self) -> Option<Instant> {
        if self.finished.is_empty() { self.next_at() } else { Some(self.now) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::probe::swallowed;
    use crate::profile::Device as Profile;

    #[test]
    fn a_live_device_swallows_no_call() {
        let device = Profile::lookup("null").expect("a built-in device");
        assert_eq!(swallowed(|model| Live::new(model, &device.machine)), [""; 0]);
    }
}
