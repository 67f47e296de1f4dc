//! The front end of an NVMe drive: commands in queues in the host's memory, over PCI Express.
//!
//! The processor rings a doorbell for each queue in which it has posted commands, once for a batch.
//! The controller then fetches each command, and the data of a write. When the medium is done, the
//! controller sends the data of a read, and a completion. Each direction of the link carries one
//! transfer at a time. A medium that fetches asks for the data of writes when it has room, `fetch`
//! bytes at a time, and commands go between these pieces.
//!
//! The controller takes one command at a time from all queues, so it has a largest rate of
//! commands. The latency of a command in the controller occupies nothing. Data of reads shares the
//! link to the host with completions, data of writes shares the link to the drive with commands.
//! Packets add their headers.
//!
//! Left out: arbitration between queues (the controller takes commands in the order of their
//! doorbells), memory buffers of the host or the controller, acknowledgements and flow control on
//! the link, power states, and errors.

pub(crate) mod pcie;
pub(crate) mod profile;

use super::front::{Front, FrontUse, sectors_of};
use super::line::Ways;
use crate::fronts::nvme::profile::NvmeProfile;
use crate::medium::Access;
use blockyard::bio::Op;
use blockyard::time::Instant;
use blockyard::unit::SECTOR_BYTES;

/// Bytes of a command in its queue (NVMe).
const COMMAND_BYTES: u64 = 64;
/// Bytes of a completion (NVMe).
const COMPLETION_BYTES: u64 = 16;
/// Bytes of a range to be deallocated (NVMe, dataset management).
const RANGE_BYTES: u64 = 16;

/// The front end.
#[derive(Debug)]
pub(crate) struct Nvme {
    profile: NvmeProfile,
    ways: Ways,
}

impl Nvme {
    pub(super) fn new(profile: NvmeProfile) -> Self {
        Self { profile, ways: Ways::default() }
    }
}

impl Front for Nvme {
    fn send(&mut self, access: Access, now: Instant) -> Instant {
        // With an interval of 2 us, the third of three commands at 0 us is taken at 6 us.
        let taken = self.ways.controller.pass(now, self.profile.interval);
        let data = match access.op {
            Op::Write => u64::from(access.sectors) * u64::from(SECTOR_BYTES),
            Op::Discard => RANGE_BYTES,
            _ => 0,
        };
        let time = self.profile.link.time(COMMAND_BYTES) + self.profile.link.time(data);
        self.ways.to_device.pass(taken + self.profile.command, time)
    }

    fn fetched_sectors(&self) -> Option<u32> {
        Some(sectors_of(self.profile.fetch))
    }

    fn send_alone(&mut self, access: Access, now: Instant) -> Instant {
        let data = if access.op == Op::Discard { RANGE_BYTES } else { 0 };
        let time = self.profile.link.time(COMMAND_BYTES) + self.profile.link.time(data);
        // The command crosses first: data may cross while it waits for the controller.
        let arrived = self.ways.to_device.pass(now, time);
        self.ways.controller.pass(arrived, self.profile.interval) + self.profile.command
    }

    fn fetch(&mut self, sectors: u32, now: Instant) -> Instant {
        let bytes = u64::from(sectors) * u64::from(SECTOR_BYTES);
        self.ways.to_device.pass(now, self.profile.link.time(bytes))
    }

    fn answer(&mut self, access: Access, now: Instant) -> Instant {
        let data = match access.op {
            Op::Read => u64::from(access.sectors) * u64::from(SECTOR_BYTES),
            _ => 0,
        };
        let time = self.profile.link.time(data) + self.profile.link.time(COMPLETION_BYTES);
        self.ways.to_host.pass(now, time)
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
    use crate::fronts::coalescing::CoalescingProfile;
    use crate::fronts::nvme::pcie::PcieProfile;
    use blockyard::time::Duration;
    use blockyard::unit::HctxId;

    fn nvme() -> Nvme {
        Nvme::new(NvmeProfile {
            hw_queues: 1,
            depth: 8,
            doorbell: Duration::ZERO,
            interval: Duration::from_us(2),
            command: Duration::from_us(3),
            coalescing: CoalescingProfile { entries: 1, time: Duration::ZERO },
            link: PcieProfile { generation: 3, lanes: 4, payload: 256 },
            fetch: 4096,
        })
    }

    const fn access(op: Op, sectors: u32) -> Access {
        Access { op, start: 0, sectors, fua: false, queue: HctxId(0) }
    }

    const fn at(ns: u64) -> Instant {
        Instant::from_ns(ns)
    }

    #[test]
    fn the_controller_takes_one_command_at_a_time() {
        // 2 us for each, 3 us of latency beside the next one, and 64 bytes with a header of 24 at
        // 3.938 GB/s.
        let mut nvme = nvme();
        let ready: Vec<_> = (0..3).map(|_| nvme.send(access(Op::Read, 8), at(0))).collect();
        assert_eq!(ready, [at(5_023), at(7_023), at(9_023)]);
        assert_eq!(nvme.send(access(Op::Flush, 0), at(50_000)), at(55_023));
        assert_eq!(nvme.ways.controller.used(), Duration::from_us(8));
    }

    /// A command of 64 bytes crosses in 23 ns, is taken in 2 us and begins 3 us later. 4 KiB take
    /// 1138 ns.
    #[test]
    fn a_command_goes_between_two_pieces_of_a_write() {
        let mut nvme = nvme();
        assert_eq!(nvme.send_alone(access(Op::Write, 16), at(0)), at(5_023));
        assert_eq!(nvme.fetch(8, at(5_023)), at(5_023 + 1_138));
        assert_eq!(nvme.send_alone(access(Op::Read, 8), at(5_100)), at(6_161 + 23 + 5_000));
        assert_eq!(nvme.fetch(8, at(6_161)), at(6_161 + 23 + 1_138));
    }

    #[test]
    fn answers_share_the_link_to_the_host_and_not_the_link_to_the_drive() {
        // 4 KiB are 16 packets of 256 bytes with headers of 24, which take 1138 ns at 3.938 GB/s.
        let mut nvme = nvme();
        assert_eq!(nvme.answer(access(Op::Read, 8), at(0)), at(1_149));
        assert_eq!(nvme.answer(access(Op::Read, 8), at(0)), at(2_298));
        assert_eq!(nvme.answer(access(Op::Write, 8), at(0)), at(2_309));
        assert_eq!(nvme.send(access(Op::Write, 8), at(0)), at(5_000 + 23 + 1_138));
    }
}
