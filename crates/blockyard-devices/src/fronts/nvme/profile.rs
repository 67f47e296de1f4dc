//! An NVMe controller and its link: the table `[nvme]`.

use super::Nvme;
use crate::charges::{Charges, Resource};
use crate::fronts::coalescing::{CoalescingProfile, coalescing};
use crate::fronts::front::{FETCH, FETCH_USUAL, FrontFamily};
use blockyard::time::Duration;

use super::pcie::{PcieProfile, link};
use crate::reader::error::ProfileError;
use crate::reader::table::{Table, table_of};
use crate::reader::value::{Bytes, Count, Time};

/// The figures of an NVMe controller and its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NvmeProfile {
    /// Pairs of a submission and a completion queue for I/O.
    pub hw_queues: u16,
    /// Commands that one queue takes.
    pub depth: u16,
    /// Time for which a processor is busy with ringing a doorbell.
    pub(crate) doorbell: Duration,
    /// Time for which a command occupies the controller.
    pub(crate) interval: Duration,
    /// Latency of a command in the controller beyond that time.
    pub command: Duration,
    /// The interrupts that are held back.
    pub(crate) coalescing: CoalescingProfile,
    /// The link.
    pub link: PcieProfile,
    /// Bytes of a write's data that the drive asks for at a time, where the medium has room.
    pub(crate) fetch: u64,
}

impl FrontFamily for NvmeProfile {
    type Front = Nvme;

    const TABLE: &'static str = "nvme";
    const KIND: &'static str = "an NVMe drive";
    const DISK_CONDITION: &'static str = r#"KERNEL=="nvme[0-9]*n[0-9]*""#;

    fn read(top: &Table<'_>) -> Result<Self, ProfileError> {
        nvme(top)
    }

    fn hw_queues(&self) -> u16 {
        self.hw_queues
    }

    fn depth(&self) -> u16 {
        self.depth
    }

    fn doorbell(&self) -> Duration {
        self.doorbell
    }

    fn batches(&self) -> bool {
        true
    }

    fn coalescing(&self) -> Option<CoalescingProfile> {
        Some(self.coalescing)
    }

    fn build(&self) -> Self::Front {
        Nvme::new(*self)
    }
}

/// What each key of the table charges.
pub(crate) const CHARGES: Charges =
    &[("interval", &[Resource::Controller]), ("command", &[Resource::Device])];

table_of!(NVME, /// Reads the table `[nvme]` of `parent`.
pub(crate) fn nvme("nvme") -> NvmeProfile {
    hw_queues: "hw-queues" need(Count(1..=1024)),
    depth: "depth" need(Count(1..=1023)),
    doorbell: "doorbell" need(Time),
    interval: "interval" need(Time),
    command: "command" need(Time),
    coalescing: "coalescing" by(coalescing),
    link: "link" by(link),
    fetch: "fetch" take_or(Bytes(FETCH), FETCH_USUAL),
});
