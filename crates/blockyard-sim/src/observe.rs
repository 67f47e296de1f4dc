//! Watching a world: what it tells beyond the events of its queues.
//!
//! # Rules
//!
//! - **W1.** What is told is told in the order of time; only the end of a piece of work lies ahead.
//!   What a bus was used for is told once it is over.
//! - **W2.** An event of a queue between the begin and the end of a piece of work is that work's
//!   doing. One outside of any is the machine's own: a queue's timer, the wake-up of another queue.
//! - **W3.** Who watches changes nothing: a world does the same with any observer, and with `()`
//!   it is the world without one.

use crate::device::mmc::used::BusUse;
use crate::machine::cpu::{TaskId, Work};
use blockyard::driver::Finished;
use blockyard::time::Instant;
use blockyard::trace::Sink;
use blockyard::unit::CpuId;

/// What a world is made of, as far as an observer has to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// What it is called: by its design.
    pub name: String,
    /// The name of the device.
    pub device: String,
    /// Processors of the machine.
    pub cpus: u16,
    /// Hardware queues of each disk.
    pub hctxs: u16,
    /// Driver tags of each hardware queue.
    pub depth: u16,
    /// Whether there is an MMC host, whose bus is told of.
    pub mmc: bool,
    /// In real time, how many lanes tell what happens in them, each in the order of time, and nothing
    /// of processors. `None` in a simulation.
    pub lanes: Option<u16>,
}

/// Receives the events of every queue, and what the machine around them does.
pub trait Observer: Sink {
    /// A world is about to begin, at instant zero. Comes first.
    fn world_begins(&mut self, setting: &Setting) {
        let _ = setting;
    }

    /// An instance of the job called `name` will run as `task`.
    fn task_begins(&mut self, task: TaskId, name: &str) {
        let _ = (task, name);
    }

    /// `cpu` begins `work` at `now`.
    fn work_begins(&mut self, cpu: CpuId, work: &Work, now: Instant) {
        let _ = (cpu, work, now);
    }

    /// The work that began last keeps its processor until `end`; commands that it handed over are at
    /// the device from then on.
    fn work_ends(&mut self, end: Instant) {
        let _ = end;
    }

    /// `cpu` has waited for the lock from `since` to `now`.
    fn spun(&mut self, cpu: CpuId, since: Instant, now: Instant) {
        let _ = (cpu, since, now);
    }

    /// `cpu` has looked for polled completions from `since` to `now`, in vain.
    fn polled(&mut self, cpu: CpuId, since: Instant, now: Instant) {
        let _ = (cpu, since, now);
    }

    /// The bus of an MMC host was used.
    fn bus_used(&mut self, used: &BusUse) {
        let _ = used;
    }

    /// The device has done what it could for a command.
    fn device_done(&mut self, finished: &Finished, now: Instant) {
        let _ = (finished, now);
    }
}

/// Nobody watches, at no cost.
impl Observer for () {}

/// An observer that somebody else keeps.
impl<O: Observer> Observer for &mut O {
    fn world_begins(&mut self, setting: &Setting) {
        (**self).world_begins(setting);
    }

    fn task_begins(&mut self, task: TaskId, name: &str) {
        (**self).task_begins(task, name);
    }

    fn work_begins(&mut self, cpu: CpuId, work: &Work, now: Instant) {
        (**self).work_begins(cpu, work, now);
    }

    fn work_ends(&mut self, end: Instant) {
        (**self).work_ends(end);
    }

    fn spun(&mut self, cpu: CpuId, since: Instant, now: Instant) {
        (**self).spun(cpu, since, now);
    }

    fn polled(&mut self, cpu: CpuId, since: Instant, now: Instant) {
        (**self).polled(cpu, since, now);
    }

    fn bus_used(&mut self, used: &BusUse) {
        (**self).bus_used(used);
    }

    fn device_done(&mut self, finished: &Finished, now: Instant) {
        (**self).device_done(finished, now);
    }
}
