//! UFS: the table `[ufs]`.

use super::Ufs;
use crate::charges::{Charges, Resource};
use crate::fronts::front::{FETCH, FETCH_USUAL, FrontFamily};
use blockyard::time::Duration;

use crate::fronts::packets::packets_time;
use crate::reader::error::ProfileError;
use crate::reader::table::{Table, table_of};
use crate::reader::value::{Bytes, Count, Rate, Time};

/// The figures of a UFS host controller, its link and the device's side of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UfsProfile {
    /// Queues. With several (UFS 4), they share the depth.
    pub hw_queues: u16,
    /// Commands that the device takes at once.
    pub depth: u16,
    /// Time for which a processor is busy with telling the controller of a command.
    pub(crate) doorbell: Duration,
    /// Time for which a command occupies the controllers.
    pub(crate) interval: Duration,
    /// Latency of a command in them beyond that time.
    pub command: Duration,
    /// Bytes per second in each direction, of all lanes, headers included, after the encoding.
    pub link: u64,
    /// Bytes of data in one frame at most.
    pub frame: u64,
    /// Bytes that a frame adds to its data, with the acknowledgements.
    pub header: u64,
    /// Bytes of a write's data that the device asks for at a time, where the medium has room.
    pub(crate) fetch: u64,
}

impl UfsProfile {
    /// Returns the time for a transfer of `bytes` in one direction, rounded up; zero for no data.
    #[must_use]
    pub fn time(&self, bytes: u64) -> Duration {
        packets_time(bytes, self.frame, self.header, self.link)
    }
}

impl FrontFamily for UfsProfile {
    type Front = Ufs;

    const TABLE: &'static str = "ufs";
    const KIND: &'static str = "a UFS device";
    const BASE: Option<&'static str> = Some("ufs-3");
    const IS_SCSI: bool = true;

    fn read(top: &Table<'_>) -> Result<Self, ProfileError> {
        ufs(top)
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

    fn shares_depth(&self) -> bool {
        self.hw_queues > 1
    }

    fn build(&self) -> Self::Front {
        Ufs::new(*self)
    }
}

/// What each key of the table charges.
pub(crate) const CHARGES: Charges = &[
    ("interval", &[Resource::Controller]),
    ("command", &[Resource::Device]),
    ("link", &[Resource::Link]),
];

table_of!(UFS, /// Reads the table `[ufs]` of `top`.
pub(crate) fn ufs("ufs") -> UfsProfile {
    hw_queues: "hw-queues" need(Count(1..=32)),
    depth: "depth" need(Count(1..=256)),
    doorbell: "doorbell" need(Time),
    interval: "interval" need(Time),
    command: "command" need(Time),
    link: "link" need(Rate),
    frame: "frame" need(Bytes(64..=4096)),
    header: "header" need(Bytes(0..=4096)),
    fetch: "fetch" take_or(Bytes(FETCH), FETCH_USUAL),
});
