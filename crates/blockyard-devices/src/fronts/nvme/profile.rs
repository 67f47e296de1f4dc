//! An NVMe controller and its link: the table `[nvme]`.

use blockyard::time::Duration;

use super::pcie::{PcieProfile, link};
use crate::profile::error::ProfileError;
use crate::profile::table::{Table, table_of};
use crate::profile::value::{Count, Time};

/// The figures of an NVMe controller and its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NvmeProfile {
    /// Pairs of a submission and a completion queue for I/O.
    pub hw_queues: u16,
    /// Commands that one queue takes.
    pub depth: u16,
    /// Time for which a processor is busy with ringing a doorbell.
    pub doorbell: Duration,
    /// Time for which a command occupies the controller.
    pub interval: Duration,
    /// Latency of a command in the controller beyond that time.
    pub command: Duration,
    /// The interrupts that are held back.
    pub coalescing: CoalescingProfile,
    /// The link.
    pub link: PcieProfile,
}

/// The coalescing of interrupts, for each vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoalescingProfile {
    /// Completions that are announced together. 1: nothing is held back.
    pub entries: u16,
    /// How long a completion waits for others. Zero: nothing is held back.
    pub time: Duration,
}

impl CoalescingProfile {
    /// Whether interrupts are held back at all. As in NVMe, it takes both figures.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.entries > 1 && self.time > Duration::ZERO
    }
}

table_of!(NVME, /// Reads the table `[nvme]` of `parent`.
pub(crate) fn nvme("nvme") -> NvmeProfile {
    hw_queues: "hw-queues" need(Count(1..=1024)),
    depth: "depth" need(Count(1..=1023)),
    doorbell: "doorbell" need(Time),
    interval: "interval" need(Time),
    command: "command" need(Time),
    coalescing: "coalescing" by(coalescing),
    link: "link" by(link),
});

table_of!(COALESCING, fn coalescing("nvme.coalescing") -> CoalescingProfile {
    entries: "entries" take_or(Count(1..=256), 1),
    time: "time" take_or(Time, Duration::ZERO),
});
