//! The front end of a USB drive: bulk-only transport, or USB Attached SCSI.
//!
//! Bulk-only transport has one command at a time. The command, its data and its status are three
//! transfers, and the host starts each when it has seen the end of the one before: it takes a
//! `turn` between a command and the data of its write, and between the data of a read and its
//! status. With USB Attached SCSI the drive has several commands, and the host has started all
//! their transfers beforehand.
//!
//! A drive of USB 2 has one direction at a time; one of USB 3 has both.
//!
//! Left out: hubs and other devices on the bus, polling of a drive that is not ready, errors and
//! resets, and the wait of a status that the host asks for later than the drive has it.

pub(crate) mod profile;

use super::front::{Front, FrontUse};
use super::line::Ways;
use crate::fronts::usb::profile::{UsbProfile, UsbProtocol};
use crate::medium::Access;
use blockyard::bio::Op;
use blockyard::time::{Duration, Instant};
use blockyard::unit::SECTOR_BYTES;

/// Bytes of a command and of a status (bulk-only transport, 1.0).
const BULK_ONLY: [u64; 2] = [31, 13];
/// Bytes of a command and of a status (USB Attached SCSI).
const ATTACHED_SCSI: [u64; 2] = [32, 16];
/// Bytes of the list of one range to be unmapped (SCSI).
const UNMAP_BYTES: u64 = 24;

/// The front end.
#[derive(Debug)]
pub(crate) struct Usb {
    profile: UsbProfile,
    /// In USB 2, the way to the drive is the way to the host, too.
    ways: Ways,
}

impl Usb {
    pub(super) fn new(profile: UsbProfile) -> Self {
        Self { profile, ways: Ways::default() }
    }

    /// Returns the bytes of a command and of its status.
    const fn ends(&self) -> [u64; 2] {
        match self.profile.protocol {
            UsbProtocol::BulkOnly => BULK_ONLY,
            UsbProtocol::AttachedScsi => ATTACHED_SCSI,
        }
    }

    /// Returns the time for which the host starts the next transfer of a command.
    const fn turn(&self) -> Duration {
        match self.profile.protocol {
            UsbProtocol::BulkOnly => self.profile.turn,
            UsbProtocol::AttachedScsi => Duration::ZERO,
        }
    }

    /// Returns when the host has `bytes` that the drive sends from `now` on.
    fn receive(&mut self, now: Instant, bytes: u64) -> Instant {
        let time = self.profile.time(bytes);
        let wire =
            if self.profile.both_ways { &mut self.ways.to_host } else { &mut self.ways.to_device };
        wire.pass(now, time)
    }
}

impl Front for Usb {
    fn send(&mut self, access: Access, now: Instant) -> Instant {
        let [command, _] = self.ends();
        let sent = self.ways.to_device.pass(now, self.profile.time(command));
        let data = match access.op {
            Op::Write => u64::from(access.sectors) * u64::from(SECTOR_BYTES),
            Op::Discard => UNMAP_BYTES,
            _ => 0,
        };
        let arrived = match data {
            0 => sent,
            bytes => self.ways.to_device.pass(sent + self.turn(), self.profile.time(bytes)),
        };
        self.ways.controller.pass(arrived, self.profile.interval) + self.profile.command
    }

    fn answer(&mut self, access: Access, now: Instant) -> Instant {
        let [_, status] = self.ends();
        let read = match access.op {
            Op::Read => {
                let bytes = u64::from(access.sectors) * u64::from(SECTOR_BYTES);
                self.receive(now, bytes) + self.turn()
            }
            _ => now,
        };
        self.receive(read, status)
    }

    fn used(&self) -> FrontUse {
        self.ways.used()
    }

    fn forget(&mut self) {
        self.ways.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard::unit::HctxId;

    const fn access(op: Op) -> Access {
        Access { op, start: 0, sectors: 8, fua: false, queue: HctxId(0) }
    }

    const fn at(us: u64) -> Instant {
        Instant::from_ns(us * 1000)
    }

    /// A wire of one byte a nanosecond, without headers.
    fn usb(protocol: UsbProtocol, both_ways: bool) -> Usb {
        Usb::new(UsbProfile {
            protocol,
            depth: 1,
            issue: Duration::ZERO,
            turn: Duration::from_us(40),
            interval: Duration::ZERO,
            command: Duration::from_us(100),
            link: 1_000_000_000,
            packet: 512,
            header: 0,
            both_ways,
        })
    }

    #[test]
    fn the_host_takes_a_turn_between_the_transfers_of_a_bulk_only_command() {
        let mut usb = usb(UsbProtocol::BulkOnly, true);
        assert_eq!(usb.send(access(Op::Read), at(0)).as_ns(), 31 + 100_000);
        assert_eq!(usb.answer(access(Op::Read), at(500)).as_ns(), 500_000 + 4096 + 40_000 + 13);
        assert_eq!(usb.send(access(Op::Write), at(900)).as_ns(), 900_031 + 40_000 + 4096 + 100_000);
        assert_eq!(usb.answer(access(Op::Write), at(2000)).as_ns(), 2_000_013);
    }

    #[test]
    fn attached_scsi_has_no_turns_of_the_host() {
        let mut usb = usb(UsbProtocol::AttachedScsi, true);
        assert_eq!(usb.send(access(Op::Write), at(0)).as_ns(), 32 + 4096 + 100_000);
        assert_eq!(usb.answer(access(Op::Read), at(500)).as_ns(), 500_000 + 4096 + 16);
    }

    #[test]
    fn only_usb_3_sends_both_ways_at_once() {
        let both = [true, false].map(|both_ways| {
            let mut usb = usb(UsbProtocol::AttachedScsi, both_ways);
            usb.send(access(Op::Write), at(0));
            usb.answer(access(Op::Read), at(0)).as_ns()
        });
        assert_eq!(both, [4096 + 16, 32 + 4096 + 4096 + 16]);
    }
}
