//! Records, which own all of their data so that they can go to another thread.

use crate::observe::{TaskId, Work};
use blockyard::bio::{Flags, Op};
use blockyard::time::Instant;
use blockyard::trace::{Action, Event};
use blockyard::unit::{CpuId, DriverTag, HctxId, QueueId, RequestId};
use blockyard_mmc::bus_use::BusUse;

/// The lane of a record. The records of one lane are in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LaneId(pub(super) u16);

/// The thread that caused an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thread {
    /// No thread: an interrupt or a timer.
    None,
    /// The worker of the processor, which runs hardware queues.
    Worker,
    /// A job instance.
    Task(TaskId),
}

impl From<&Work> for Thread {
    fn from(work: &Work) -> Self {
        match work {
            Work::Complete { .. }
            | Work::Vector(_)
            | Work::Interrupt
            | Work::Timer
            | Work::MmcDriverStep(..) => Self::None,
            Work::Run { .. } | Work::MmcDriver(_) | Work::Actor(_) => Self::Worker,
            Work::Step(task) | Work::Copy(task) | Work::Poll(task) => Self::Task(*task),
        }
    }
}

/// An event of a queue, and the processor and thread that caused it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) at: Instant,
    pub(super) sector: u64,
    pub(super) sectors: u32,
    pub(super) request: Option<RequestId>,
    /// The processor that did the step.
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

impl Step {
    /// Returns the record of `event`, which thread `by` caused on processor `on`.
    #[inline]
    pub(super) fn of(event: &Event<'_>, on: CpuId, by: Thread) -> Self {
        Self {
            at: event.at,
            sector: event.sector,
            sectors: event.sectors,
            request: event.request.map(|(id, _)| id),
            on,
            by,
            queue: event.queue,
            cpu: event.cpu,
            hctx: event.hctx,
            tag: event.request.and_then(|(_, request)| request.driver_tag()),
            action: event.action,
            op: event.op,
            flags: event.flags,
        }
    }
}

/// An entry of a trace.
#[derive(Clone, Copy, Debug)]
pub(super) enum Record {
    /// An event of a queue.
    Step(Step),
    /// A processor did this work. Its commands reach the device at its end.
    Work { on: CpuId, work: Work, begin: Instant, end: Instant },
    /// A processor waited for the lock.
    Spin { on: CpuId, begin: Instant, end: Instant },
    /// A processor polled and found no completion.
    Poll { on: CpuId, begin: Instant, end: Instant },
    /// The bus to a card was used.
    Bus(BusUse),
    /// The device completed a command.
    DeviceDone { hctx: HctxId, tag: DriverTag, at: Instant },
}
