//! USB storage: the table `[usb]`.

use super::Usb;
use crate::charges::{Charges, Resource};
use crate::fronts::front::{FrontFamily, FrontPart};
use blockyard::time::Duration;

use crate::fronts::packets::packets_time;
use crate::reader::error::ProfileError;
use crate::reader::table::{Table, table_of};
use crate::reader::value::{Bytes, Count, Flag, OneOf, Rate, Time};

/// The figures of a USB drive and its bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsbProfile {
    /// The protocol.
    pub(crate) protocol: UsbProtocol,
    /// Commands that the drive takes at once. Bulk-only transport has one, whatever this says.
    pub depth: u16,
    /// Time for which a processor is busy with starting a command.
    pub issue: Duration,
    /// Time from the end of one transfer of a command to the start of the next, with bulk-only
    /// transport.
    pub turn: Duration,
    /// Time for which a command occupies the drive's controller or bridge.
    pub(crate) interval: Duration,
    /// Latency of a command in it beyond that time.
    pub command: Duration,
    /// Bytes per second through the wire, headers included, after the encoding.
    pub link: u64,
    /// Bytes of data in one packet at most.
    pub(crate) packet: u64,
    /// Bytes that a packet adds to its data, with the gaps around it.
    pub header: u64,
    /// Whether the wire carries both directions at once, as from USB 3 on.
    pub(crate) both_ways: bool,
}

/// How commands travel over USB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsbProtocol {
    /// Bulk-only transport: one command at a time.
    BulkOnly,
    /// USB Attached SCSI.
    AttachedScsi,
}

impl UsbProfile {
    /// Returns the time for a transfer of `bytes`, rounded up; zero for no data.
    #[must_use]
    pub fn time(&self, bytes: u64) -> Duration {
        packets_time(bytes, self.packet, self.header, self.link)
    }

    /// Returns how many commands the drive takes at once.
    pub(crate) const fn commands(&self) -> u16 {
        match self.protocol {
            UsbProtocol::BulkOnly => 1,
            UsbProtocol::AttachedScsi => self.depth,
        }
    }
}

const PROTOCOL: &[(&str, UsbProtocol)] =
    &[("bulk-only", UsbProtocol::BulkOnly), ("uas", UsbProtocol::AttachedScsi)];

impl FrontFamily for UsbProfile {
    type Front = Usb;

    const TABLE: &'static str = "usb";
    const KIND: &'static str = "a USB drive";
    const PART: FrontPart = FrontPart::UsbBridge;
    const BASE: Option<&'static str> = Some("usb-ssd");
    const IS_SCSI: bool = true;

    fn read(top: &Table<'_>) -> Result<Self, ProfileError> {
        usb(top)
    }

    fn depth(&self) -> u16 {
        self.commands()
    }

    fn doorbell(&self) -> Duration {
        self.issue
    }

    fn build(&self) -> Self::Front {
        Usb::new(*self)
    }
}

/// What each key of the table charges.
pub(crate) const CHARGES: Charges = &[
    ("interval", &[Resource::Controller]),
    ("command", &[Resource::Device]),
    ("link", &[Resource::Link]),
];

table_of!(USB, /// Reads the table `[usb]` of `top`.
pub(crate) fn usb("usb") -> UsbProfile {
    protocol: "protocol" need(OneOf(PROTOCOL)),
    depth: "depth" take_or(Count(1..=256), 1),
    issue: "issue" need(Time),
    turn: "turn" take_or(Time, Duration::ZERO),
    interval: "interval" need(Time),
    command: "command" need(Time),
    link: "link" need(Rate),
    packet: "packet" need(Bytes(64..=4096)),
    header: "header" need(Bytes(0..=4096)),
    both_ways: "both-ways" need(Flag),
});
