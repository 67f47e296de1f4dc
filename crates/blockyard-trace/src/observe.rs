//! The interface to an observer of a world: the events of the queues and the work of the machine.
//!
//! # Rules
//!
//! - **[observed-in-time-order]** Calls come in the order of time. Only the end of a piece of work
//!   is in the future. The use of a bus is reported when it is over.
//!
//! A queue's event between the start and the end of a piece of work belongs to that work. Any other
//! event belongs to the machine, such as a queue's timer or the wake-up of another queue. A world
//! behaves the same with any observer, and without one.

use blockyard::driver::Finished;
use blockyard::time::Instant;
use blockyard::trace::Sink;
use blockyard::unit::{CpuId, HctxId, QueueId};
use blockyard_mmc::block::{ActKind, Context};
use blockyard_mmc::bus_use::BusUse;
use blockyard_mmc::controller::SlotId;
use core::fmt;

/// The thread or processor that runs a hardware queue, and so calls the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runner {
    /// The processor that submits, or that has freed a tag.
    Submitter,
    /// A worker thread of the hardware queue.
    Worker,
    /// The thread of an MMC host's driver.
    HostThread,
}

/// The number of a job instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskId(pub u32);

/// The number of an actor that was added to a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActorId(pub u32);

/// A piece of work for a processor.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// Handle a completion, by interrupt or without.
    Complete {
        /// The completion.
        finished: Finished,
        /// Whether an interrupt announced the completion.
        interrupt: bool,
    },
    /// Take the interrupt of a hardware queue's vector, and handle all completions of the queue.
    Vector(HctxId),
    /// Run a hardware queue from a thread.
    Run {
        /// The thread.
        by: Runner,
        /// The request queue.
        queue: QueueId,
        /// The hardware queue.
        hctx: HctxId,
    },
    /// Let a job instance take its next step.
    Step(TaskId),
    /// Let a job instance copy from a page of the page cache.
    Copy(TaskId),
    /// Let a job instance poll its processor's hardware queue, for every instance that waits for
    /// it.
    Poll(TaskId),
    /// Let an actor that was added to the world act.
    Actor(ActorId),
    /// Take an interrupt of an MMC host.
    Interrupt,
    /// Take the interrupt of the timer that wakes threads of an MMC host.
    Timer,
    /// Run a thread of an MMC host's driver.
    MmcDriver(Context),
    /// A step of such a driver, for the request in a slot or for none. Only observers receive this
    /// kind of work; processors never do.
    MmcDriverStep(ActKind, Option<SlotId>),
}

impl Work {
    /// Whether a thread that dispatches requests does it: a worker, or that of an MMC host.
    #[must_use]
    pub const fn dispatches(&self) -> bool {
        matches!(self, Self::Run { .. } | Self::MmcDriver(Context::Thread))
    }
}

/// The description of a world for an observer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The name of the world, which is the name of its design.
    pub name: String,
    /// The name of the device.
    pub device: String,
    /// Processors of the machine.
    pub cpus: u16,
    /// Hardware queues of each disk.
    pub hctxs: u16,
    /// Driver tags of each hardware queue.
    pub depth: u16,
    /// Whether the device is behind an MMC host, so that bus uses are reported.
    pub mmc: bool,
    /// The number of lanes in real time; `None` in a simulation. A lane reports its queues in the
    /// order of time, and no processors.
    pub lanes: Option<u16>,
}

/// Receives the events of every queue and the work of the machine.
pub trait Observer: Sink {
    /// Reports the start of a world at instant zero. This call comes first.
    fn world_begins(&mut self, setting: &Setting) {
        let _ = setting;
    }

    /// Reports that an instance of the job called `name` will run as `task`.
    fn task_begins(&mut self, task: TaskId, name: &str) {
        let _ = (task, name);
    }

    /// Reports that `cpu` begins `work` at `now`.
    fn work_begins(&mut self, cpu: CpuId, work: &Work, now: Instant) {
        let _ = (cpu, work, now);
    }

    /// Reports that the current work occupies its processor until `end`. Commands that the work
    /// issued reach the device then.
    fn work_ends(&mut self, end: Instant) {
        let _ = end;
    }

    /// Reports that `cpu` has waited for the lock from `since` to `now`.
    fn spun(&mut self, cpu: CpuId, since: Instant, now: Instant) {
        let _ = (cpu, since, now);
    }

    /// Reports that `cpu` has polled from `since` to `now` and found no completion.
    fn polled(&mut self, cpu: CpuId, since: Instant, now: Instant) {
        let _ = (cpu, since, now);
    }

    /// Reports a use of the bus of an MMC host.
    fn bus_used(&mut self, used: &BusUse) {
        let _ = used;
    }

    /// Reports that the device has finished a command, successfully or not.
    fn device_done(&mut self, finished: &Finished, now: Instant) {
        let _ = (finished, now);
    }

    /// Returns whether the observer can take no more events, as a recorder with a full disk. The
    /// run is in vain then.
    fn is_broken(&self) -> bool {
        false
    }
}

impl fmt::Debug for dyn Observer + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("dyn Observer")
    }
}

/// Forwards to the observer that the caller keeps, if there is one.
impl Observer for Option<&mut dyn Observer> {
    fn is_broken(&self) -> bool {
        self.as_ref().is_some_and(|observer| observer.is_broken())
    }

    fn world_begins(&mut self, setting: &Setting) {
        if let Some(observer) = self {
            observer.world_begins(setting);
        }
    }

    fn task_begins(&mut self, task: TaskId, name: &str) {
        if let Some(observer) = self {
            observer.task_begins(task, name);
        }
    }

    fn work_begins(&mut self, cpu: CpuId, work: &Work, now: Instant) {
        if let Some(observer) = self {
            observer.work_begins(cpu, work, now);
        }
    }

    fn work_ends(&mut self, end: Instant) {
        if let Some(observer) = self {
            observer.work_ends(end);
        }
    }

    fn spun(&mut self, cpu: CpuId, since: Instant, now: Instant) {
        if let Some(observer) = self {
            observer.spun(cpu, since, now);
        }
    }

    fn polled(&mut self, cpu: CpuId, since: Instant, now: Instant) {
        if let Some(observer) = self {
            observer.polled(cpu, since, now);
        }
    }

    fn bus_used(&mut self, used: &BusUse) {
        if let Some(observer) = self {
            observer.bus_used(used);
        }
    }

    fn device_done(&mut self, finished: &Finished, now: Instant) {
        if let Some(observer) = self {
            observer.device_done(finished, now);
        }
    }
}
