//! An AHCI port, its wire and the drive's side of it: the table `[ahci]`.

use super::Ahci;
use crate::charges::{Charges, Resource};
use crate::fronts::front::{FETCH, FETCH_USUAL, FrontFamily};
use blockyard::time::Duration;

use crate::reader::error::ProfileError;
use crate::reader::table::{Table, table_of};
use crate::reader::value::{Bytes, Count, Flag, Rate, Time};

/// The figures of an AHCI port, its wire and the drive's side of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AhciProfile {
    /// Commands that the drive takes at once, from 1 to 32.
    pub depth: u16,
    /// Time for which a processor is busy with telling the port of new commands.
    pub issue: Duration,
    /// Time for which a command occupies the drive's controller.
    pub(crate) interval: Duration,
    /// Latency of a command in the drive's controller beyond that time.
    pub command: Duration,
    /// Bytes per second through the wire, frames included, after the encoding.
    pub link: u64,
    /// Time of a frame, beside that of its bytes.
    pub frame: Duration,
    /// Bytes of a write's data that the drive asks for at a time, where the medium has room.
    pub(crate) fetch: u64,
    /// Whether the drive queues trims.
    pub(crate) queued_trim: bool,
}

impl FrontFamily for AhciProfile {
    type Front = Ahci;

    const TABLE: &'static str = "ahci";
    const KIND: &'static str = "a SATA drive";
    const BASE: Option<&'static str> = Some("sata-ssd");
    const IS_SCSI: bool = true;

    /// The ports of an AHCI host, each with a drive.
    const DISKS_MAX: u16 = 32;

    fn read(top: &Table<'_>) -> Result<Self, ProfileError> {
        ahci(top)
    }

    fn depth(&self) -> u16 {
        self.depth
    }

    fn doorbell(&self) -> Duration {
        self.issue
    }

    fn build(&self) -> Self::Front {
        Ahci::new(*self)
    }
}

/// What each key of the table charges.
pub(crate) const CHARGES: Charges = &[
    ("interval", &[Resource::Controller]),
    ("command", &[Resource::Controller, Resource::Device]),
    ("link", &[Resource::Link]),
    ("frame", &[Resource::Link]),
];

table_of!(AHCI, /// Reads the table `[ahci]` of `parent`.
pub(crate) fn ahci("ahci") -> AhciProfile {
    depth: "depth" need(Count(1..=32)),
    issue: "issue" need(Time),
    interval: "interval" need(Time),
    command: "command" need(Time),
    link: "link" need(Rate),
    frame: "frame" need(Time),
    fetch: "fetch" take_or(Bytes(FETCH), FETCH_USUAL),
    queued_trim: "queued-trim" take_or(Flag, false),
});
