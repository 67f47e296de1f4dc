//! What a recorder notes: everything by value, so that it can go to another thread.

use crate::device::mmc::used::BusUse;
use crate::machine::cpu::{TaskId, Work};
use blockyard::bio::{Flags, Op};
use blockyard::time::Instant;
use blockyard::trace::Action;
use blockyard::unit::{CpuId, DriverTag, HctxId, QueueId, RequestId};

/// Whose doing something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thread {
    /// No thread's: an interrupt, or a timer.
    None,
    /// The worker of the processor, which runs hardware queues.
    Worker,
    /// A job instance.
    Task(TaskId),
}

impl From<&Work> for Thread {
    fn from(work: &Work) -> Self {
        match work {
            Work::Complete { .. } | Work::Interrupt | Work::Timer | Work::Act(..) => Self::None,
            Work::Run { .. } | Work::Host(_) => Self::Worker,
            Work::Step(task) | Work::Copy(task) | Work::Look(task) => Self::Task(*task),
        }
    }
}

/// An event of a queue, and where it happened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) at: Instant,
    pub(super) sector: u64,
    pub(super) sectors: u32,
    pub(super) request: Option<RequestId>,
    /// The processor that did it.
    pub(super) on: CpuId,
    pub(super) by: Thread,
    pub(super) queue: QueueId,
    /// The processor of the submitter.
    pub(super) cpu: CpuId,
    pub(super) hctx: HctxId,
    pub(super) tag: Option<DriverTag>,
    pub(super) action: Action,
    pub(super) op: Op,
    pub(super) flags: Flags,
}

/// One thing that happened.
#[derive(Clone, Copy, Debug)]
pub(super) enum Record {
    /// In a queue.
    Step(Step),
    /// A processor did this; commands handed over meanwhile reach the device at its end.
    Work { on: CpuId, work: Work, begin: Instant, end: Instant },
    /// A processor waited for the lock.
    Spin { on: CpuId, begin: Instant, end: Instant },
    /// A processor looked for polled completions in vain.
    Poll { on: CpuId, begin: Instant, end: Instant },
    /// The bus to a card was used.
    Bus(BusUse),
    /// The device is done with a command.
    DeviceDone { hctx: HctxId, tag: DriverTag, at: Instant },
}
