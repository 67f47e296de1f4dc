//! A modelled device without a machine around it, for callers that have their own processors, clock
//! and data. It has one disk with one hardware queue, which belongs to the processor that submits.
//!
//! An MMC host's driver keeps its costs, as the speed of the card depends on them: interrupts,
//! wake-ups, and the acts of `[host]`. Each of its [contexts](super::mmc::contexts) has a processor
//! of its own. The rest of `[cpu]` does not apply, because the caller's processors do that work.
//!
//! # Rules
//!
//! - **[live-device-never-late]** The device does each step at the model's instant, however late
//!   the caller looks. Lateness does not add up.

use super::mmc::contexts::{Contexts, Doing, Sleepers, Step, Turn};
use super::{DeviceEvent, Events, Model};
use crate::event::EventHeap;
use crate::families::DeviceModel;
use crate::machine::MachineProfile;
use crate::pairing::{self, Unsuited};
use crate::profile::{Design, Device as Profile};
use blockyard::driver::{Accept, Device, Driver, Finished, Issue};
use blockyard::prng::Prng;
use blockyard::time::{Duration, Instant};
use blockyard_mmc::block::Context;
use std::collections::VecDeque;

/// An event of a live device.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// An event within the device.
    Device(DeviceEvent),
    /// A woken thread starts to run.
    Runs(Context),
    /// The processor of a context has paid for its work.
    Paid(Context),
}

/// The processor that takes the controller's interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interrupts {
    /// No interrupt is being handled.
    Idle,
    /// The handler runs.
    Handling,
    /// The handler runs, and the controller has interrupted again.
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
    /// The work for which the processor of each context pays.
    doing: [Option<Doing>; 3],
    interrupts: Interrupts,
    finished: VecDeque<Finished>,
    now: Instant,
}

impl Live {
    /// Returns `device` alone, with one hardware queue and the host of `design`. `seed` determines
    /// its random draws.
    ///
    /// # Errors
    ///
    /// [`Unsuited::NotServed`] if the device is persistent memory, whose timing is that of the
    /// caller's processor; another [`Unsuited`] if the design does not work on the device.
    pub fn under(device: &Profile, design: &Design, seed: u64) -> Result<Self, Unsuited> {
        pairing::check(design, device)?;
        if matches!(device.model, DeviceModel::Pmem(_)) {
            return Err(Unsuited::NotServed { device: device.name.clone() });
        }
        let draws = Prng::new(seed).fork(0);
        Ok(Self::new(pairing::model(device, design, 1, draws)?, &device.machine))
    }

    /// Returns `model` as a live device. The driver's processors are like those of `machine`.
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

    /// Handles all events that are due until `now`, each at its own instant
    /// ([live-device-never-late]).
    fn run_until(&mut self, now: Instant) {
        while let Some(at) = self.next_at().filter(|at| *at <= now) {
            self.now = self.now.max(at);
            if self.events.next_at().is_some_and(|due| due <= self.now) {
                let (_, event) = self.events.pop().expect("the due event should be in the heap");
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
                self.take_effect(
                    doing.expect("a context should have the work that its processor paid for"),
                );
                self.take_turns(context);
            }
        }
    }

    /// Handles the results of the latest event: new events, completions, and wake-ups, which come
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
        while mmc.next_use().is_some() {} // the uses of the bus are not recorded
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

    /// Lets the processor of a context pay `cost` for `doing`.
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
            let begins_at =
                woken.begins_at.expect("no run of a live device should be left to a thread");
            self.events.push(begins_at, Event::Runs(woken.thread));
        }
    }

    fn take_effect(&mut self, doing: Doing) {
        let mmc = self.model.mmc_mut().expect("only an MMC host has contexts");
        self.contexts.take_effect(doing, mmc, self.now, &mut self.said);
    }

    /// Runs `context` on its processor until it pays for an act or has nothing to do.
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
    /// Returns the next request that has completed by `now`. Call this at each instant of
    /// [`Device::poll_at`].
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
    use crate::probe::swallowed;

    #[test]
    fn a_live_device_swallows_no_call() {
        let device = Profile::lookup("null").expect("a built-in device");
        assert_eq!(swallowed(|model| Live::new(model, &device.machine)), [""; 0]);
    }
}
