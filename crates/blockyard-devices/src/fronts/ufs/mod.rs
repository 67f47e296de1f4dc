//! The front end of a UFS device: commands in lists in the host's memory, over UniPro.
//!
//! The processor writes a register for each command. The host controller fetches the command and
//! sends it to the device. The data of a write leaves the host when the device has answered its
//! command with a request for it. The request takes its time, and occupies nothing: it is 32 bytes,
//! and goes between other transfers. Each direction of the link carries one transfer at a time. A
//! medium that fetches asks for `fetch` bytes by each request, when it has room, and commands go
//! between the pieces.
//! Until UFS 3 the host controller has one list of 32 commands; with UFS 4 it has several queues,
//! whose commands share the device's own depth.
//!
//! Left out: power modes and their exits, background operations and write boosters that the host
//! switches, task management, errors, and answers that share a frame.

pub(crate) mod profile;

use super::front::{Front, FrontUse, sectors_of};
use super::line::Ways;
use crate::fronts::ufs::profile::UfsProfile;
use crate::medium::Access;
use blockyard::bio::Op;
use blockyard::time::{Duration, Instant};
use blockyard::unit::SECTOR_BYTES;

/// Bytes of a unit of the protocol without data: a command, a response, a request for data, or the
/// header of data (UFS).
const UNIT_BYTES: u64 = 32;
/// Bytes of the list of one range to be unmapped (SCSI).
const UNMAP_BYTES: u64 = 24;

/// The front end.
#[derive(Debug)]
pub(crate) struct Ufs {
    profile: UfsProfile,
    ways: Ways,
}

impl Ufs {
    pub(super) fn new(profile: UfsProfile) -> Self {
        Self { profile, ways: Ways::default() }
    }
}

impl Front for Ufs {
    fn send(&mut self, access: Access, now: Instant) -> Instant {
        let taken = self.ways.controller.pass(now, self.profile.interval) + self.profile.command;
        let command = self.profile.time(UNIT_BYTES);
        let data = match access.op {
            Op::Write => u64::from(access.sectors) * u64::from(SECTOR_BYTES),
            Op::Discard => UNMAP_BYTES,
            _ => return self.ways.to_device.pass(taken, command),
        };
        let sent = self.ways.to_device.pass(taken, command + self.profile.time(UNIT_BYTES + data));
        // The device's request for the data takes its time and occupies no direction of the link.
        sent + self.profile.time(UNIT_BYTES)
    }

    fn fetched_sectors(&self) -> Option<u32> {
        Some(sectors_of(self.profile.fetch))
    }

    fn send_alone(&mut self, access: Access, now: Instant) -> Instant {
        let unit = self.profile.time(UNIT_BYTES);
        let [ranges, request] = match access.op {
            Op::Discard => [self.profile.time(UNIT_BYTES + UNMAP_BYTES), unit],
            _ => [Duration::ZERO; 2],
        };
        // The command crosses first: data may cross while it waits for the controller.
        let arrived = self.ways.to_device.pass(now, unit + ranges) + request;
        self.ways.controller.pass(arrived, self.profile.interval) + self.profile.command
    }

    fn fetch(&mut self, sectors: u32, now: Instant) -> Instant {
        let bytes = UNIT_BYTES + u64::from(sectors) * u64::from(SECTOR_BYTES);
        let asked = now + self.profile.time(UNIT_BYTES);
        self.ways.to_device.pass(asked, self.profile.time(bytes))
    }

    fn answer(&mut self, access: Access, now: Instant) -> Instant {
        let data = match access.op {
            Op::Read => UNIT_BYTES + u64::from(access.sectors) * u64::from(SECTOR_BYTES),
            _ => 0,
        };
        self.ways.to_host.pass(now, self.profile.time(data) + self.profile.time(UNIT_BYTES))
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

    fn ufs() -> Ufs {
        Ufs::new(UfsProfile {
            hw_queues: 1,
            depth: 32,
            doorbell: Duration::ZERO,
            interval: Duration::from_us(2),
            command: Duration::from_us(3),
            link: 1_000_000_000,
            frame: 256,
            header: 16,
            fetch: 4096,
        })
    }

    #[test]
    fn a_write_sends_its_data_when_the_device_has_asked() {
        // A unit is one frame of 32 and 16 bytes; 4 KiB with a header are 4128 in 17 frames.
        let unit = 48;
        let data = 4128 + 17 * 16;
        let mut ufs = ufs();
        assert_eq!(ufs.send(access(Op::Read), Instant::ZERO).as_ns(), 5_000 + unit);
        let second = 7_000 + unit;
        assert_eq!(ufs.send(access(Op::Write), Instant::ZERO).as_ns(), second + unit + data);
    }

    /// A command takes 2 us in the controllers and begins 3 us later. A piece is asked for by 48
    /// bytes.
    #[test]
    fn a_command_goes_between_two_pieces_of_a_write() {
        let unit = 48;
        let data = 4128 + 17 * 16;
        let mut ufs = ufs();
        let begun = ufs.send_alone(access(Op::Write), Instant::ZERO);
        assert_eq!(begun.as_ns(), unit + 5_000);
        let piece = ufs.fetch(8, begun);
        assert_eq!(piece.as_ns(), unit + 5_000 + unit + data);
        let read = ufs.send_alone(access(Op::Read), begun).as_ns();
        assert_eq!(read, piece.as_ns() + unit + 5_000);
        assert_eq!(ufs.fetch(8, piece).as_ns(), piece.as_ns() + unit + data);
    }

    /// The request comes a millisecond later, and until then answers go.
    #[test]
    fn a_write_on_its_way_holds_no_answer_up() {
        let mut ufs = ufs();
        ufs.profile.command = Duration::from_ms(1);
        ufs.send(access(Op::Write), Instant::ZERO);
        let data = 4128 + 17 * 16;
        assert_eq!(ufs.answer(access(Op::Read), Instant::ZERO).as_ns(), data + 48);
    }

    #[test]
    fn a_read_and_its_response_share_the_way_to_the_host() {
        let unit = 48;
        let data = 4128 + 17 * 16;
        let mut ufs = ufs();
        let answered =
            [Op::Read, Op::Write, Op::Read].map(|op| ufs.answer(access(op), Instant::ZERO).as_ns());
        assert_eq!(answered, [data + unit, data + 2 * unit, 2 * data + 3 * unit]);
    }
}
